"""groups=: lists, names or labels, as groups of column numbers and a penalty."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from skadmm.estimators._columns import are_integers, check_mode, refuse_unknown, warn_unknown
from skadmm.estimators._penalty import Penalty
from skadmm.operators import overlapping_groups
from skadmm.operators.canonical import canonical, checked_weights

OVERLAPS = ("shared", "latent")
"""A feature of several groups: one coefficient in the norms of all, or the sum of a coefficient in each."""


class NamedGroups(NamedTuple):
    """Groups of features."""

    members: list[np.ndarray]
    """The column numbers of each."""
    names: list[str] | None = None
    """Their names: the keys of a mapping, or the labels; None for groups without names."""


def checked_groups(groups: Any, d: int, names: Sequence[Any] | None, unknown: str = "raise") -> NamedGroups:
    """The column numbers of each group, and the names of groups.

    A mapping (a dict, a pandas Series) whose values are sequences holds the members of each group; one whose values are
    single labels holds the group of each column, by the column's name, or by its number. Other sequences hold groups,
    or one label per column in column order. With ``unknown="ignore"`` members that are not among the columns are left
    out, with a warning; a group without members stays, so that groups keep their order, and has no effect.
    """
    ignore = check_mode(unknown)
    if groups is None:
        return NamedGroups([np.array([j]) for j in range(d)])
    if isinstance(groups, (str, PurePath)) and str(groups).lower().endswith(".json"):
        raise ValueError(f"groups={str(groups)!r} is a path: give its content, json.loads(Path(...).read_text())")
    if isinstance(groups, str) or not np.iterable(groups):
        raise ValueError(f"groups={groups!r}: it takes a list or a dict of groups, or one label per feature")
    if hasattr(groups, "columns"):  # a DataFrame
        kind = type(groups).__name__
        raise ValueError(f"groups: it takes a list or a dict of groups, or one label per feature, got a {kind}")
    keys, entries = _entries(groups)
    if not entries:
        raise ValueError("groups is empty: it takes at least one group")
    columns = _numbers_of(names)
    are_labels = [isinstance(entry, str) or not np.iterable(entry) for entry in entries]
    if all(are_labels):
        labels = entries if keys is None else _in_column_order(keys, entries, d, names, ignore)
        if len(labels) != d:
            raise ValueError(f"groups has {len(labels)} labels: X has {d} features")
        if keys is None and all(isinstance(label, str) and label in columns for label in labels):
            raise ValueError("groups holds the columns' names: it takes a list of lists of them, or labels")
        members = _by_label(labels)
        return NamedGroups([np.array(members[label], dtype=np.int64) for label in members], list(map(str, members)))
    if any(are_labels):
        odd = entries[are_labels.index(True)]
        raise ValueError(f"groups mixes sequences and single labels such as {odd!r}: it takes either")
    members_given = [group.tolist() if isinstance(group, np.ndarray) else list(group) for group in entries]
    _check_once(keys, members_given)
    found = _columns(members_given, columns, are_integers(names), ignore)
    if keys is not None:
        _check_named(keys, found, d, ignore)
    overlapping_groups([group for group in found if len(group)] if ignore else found, d)  # checks them
    return NamedGroups(
        [np.asarray(group, dtype=np.int64) for group in found], None if keys is None else list(map(str, keys))
    )


def _check_named(keys: list[Any], found: list[list[Any]], d: int, ignore: bool) -> None:
    """Raise with the name of a group that is empty or has a member outside the columns."""
    for key, group in zip(keys, found, strict=True):
        if not group and not ignore:
            raise ValueError(f"groups[{key!r}] must be a sequence of at least one feature, got {group!r}")
        for member in group:
            if isinstance(member, (int, np.integer)) and not 0 <= member < d:
                raise ValueError(f"groups[{key!r}] must hold features in 0 … {d - 1}, got {member}")


def _check_once(keys: list[Any] | None, groups: list[list[Any]]) -> None:
    """Raise with the name of a member that occurs twice in a group, as it was given."""
    for g, group in enumerate(groups):
        if len(set(group)) < len(group):
            twice = next(member for k, member in enumerate(group) if member in group[:k])
            raise ValueError(f"groups[{g if keys is None else keys[g]!r}] holds the feature {twice!r} twice")


def ungrouped(groups: Any, found: list[np.ndarray], d: int) -> np.ndarray:
    """The columns that lists of groups leave out; none where `groups` has labels, which say so column by column."""
    if groups is None or all(isinstance(entry, str) or not np.iterable(entry) for entry in _entries(groups)[1]):
        return np.empty(0, dtype=np.int64)
    return np.setdiff1d(np.arange(d), np.concatenate(found))


def _entries(groups: Any) -> tuple[list[Any] | None, list[Any]]:
    """The keys of a mapping (else None), and the groups or labels."""
    if isinstance(groups, Mapping):
        return list(groups), list(groups.values())
    if hasattr(groups, "index") and hasattr(groups, "items"):  # a pandas Series
        return groups.index.tolist(), groups.tolist()
    if hasattr(groups, "to_pylist"):  # pyarrow
        return None, groups.to_pylist()
    return None, groups.tolist() if isinstance(groups, np.ndarray) else list(groups)


def _numbers_of(names: Sequence[Any] | None) -> dict[Any, int]:
    if names is None:
        return {}
    columns = {name: j for j, name in enumerate(names)}
    if len(columns) < len(names):
        twice = next(name for j, name in enumerate(names) if columns[name] != j)
        raise ValueError(f"X has two columns named {twice!r}: groups cannot tell them apart")
    return columns


def _in_column_order(
    keys: list[Any], labels: list[Any], d: int, names: Sequence[Any] | None, ignore: bool
) -> list[Any]:
    """The label of each column; `keys` are the columns' names, or their numbers. Labels of other names are refused, or
    with `ignore` left out."""
    label_of = dict(zip(keys, labels, strict=True))
    if len(label_of) < len(keys):
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"groups has two labels for {twice!r}: it takes one per column")
    if all(isinstance(key, (int, np.integer)) for key in keys) and not are_integers(names):
        wanted: list[Any] = list(range(d))
    elif names is None:
        raise ValueError("groups has labels by name: to match them, X must be a DataFrame with columns of these names")
    else:
        wanted = list(names)
        _numbers_of(names)
    missing = [key for key in wanted if key not in label_of]
    if missing:
        what = "column" if isinstance(missing[0], str) or are_integers(names) else "column number"
        raise ValueError(f"groups has no label for {what} {missing[0]!r} ({len(missing)} of {d} have none)")
    known = set(wanted)
    unknown = [key for key in keys if key not in known]
    if unknown and not ignore:
        refuse_unknown("groups", unknown, len(keys))
    if unknown:
        warn_unknown("groups", len(unknown), len(keys), "with their labels")
    return [label_of[key] for key in wanted]


def _by_label(labels: list[Any]) -> dict[Any, list[int]]:
    """The features of each label, in the labels' order; negative numbers and missing values are in no group."""
    members: dict[Any, list[int]] = {}
    for j, label in enumerate(labels):
        if _is_missing(label):
            continue
        if isinstance(label, str):
            members.setdefault(label, []).append(j)
        elif isinstance(label, (int, float, np.integer, np.floating)) and float(label).is_integer():
            if label >= 0:
                members.setdefault(int(label), []).append(j)
        else:
            raise ValueError(f"groups has the label {label!r}: it takes integers or strings")
    if len({isinstance(label, str) for label in members}) > 1:
        raise ValueError("groups mixes numbers and strings as labels: it takes either")
    return {label: members[label] for label in sorted(members)}


def _is_missing(label: Any) -> bool:
    """Return whether a label is None, NaN or pandas' NA."""
    return label is None or type(label).__name__ in ("NAType", "NaTType") or label != label  # noqa: PLR0124


def _columns(groups: list[list[Any]], columns: dict[Any, int], numbered: bool, ignore: bool) -> list[list[Any]]:
    """The groups by column number; `numbered` says that integers are names of columns."""
    stated = dict.fromkeys(member for group in groups for member in group if isinstance(member, str) or numbered)
    unknown = [member for member in stated if member not in columns]
    if unknown and not columns:
        raise ValueError(
            f"groups has the member {unknown[0]!r}: to match names, X must be a DataFrame with columns of these names"
        )
    if unknown and not ignore:
        refuse_unknown("groups", unknown, len(stated))
    left = [[member for member in group if member not in set(unknown)] for group in groups] if unknown else groups
    if unknown:
        empty = sum(not group for group in left)
        emptied = f"which empties {empty} of {len(left)} groups" if empty else ""
        warn_unknown("groups", len(unknown), len(stated), emptied)
    if not any(left):
        raise ValueError("groups: none of its members is among the columns of X")
    return [[columns.get(member, member) if member in stated else member for member in group] for group in left]


def checked_overlap(overlap: Any) -> str:
    """`overlap`, one of OVERLAPS."""
    if overlap not in OVERLAPS:
        raise ValueError(f"overlap={overlap!r}: it takes one of {', '.join(map(repr, OVERLAPS))}")
    return str(overlap)


def latent_penalty(
    named: NamedGroups, d: int, weights: Any, l1_ratio: float, factors: np.ndarray | None = None
) -> Penalty:
    """(1 − l1_ratio) Σ w_g ‖f_g v_g‖ + l1_ratio Σ_g Σ_j f_j |v_gj|, where every group has coefficients of its own."""
    from skadmm.estimators._latent import copies_of

    scales = _scales(named, weights)
    zero = [g for g, group in enumerate(named.members) if group.size and scales[g] == 0.0]
    if zero:
        name = zero[0] if named.names is None else repr(named.names[zero[0]])
        raise ValueError(
            f"group_weights: the weight of group {name} is 0, and overlap='latent' takes weights > 0, because a group "
            "of weight 0 leaves its features without a penalty; penalty_factor=0 says so for features"
        )
    copies = copies_of(named.members, d, factors)
    own = None if factors is None else factors[copies.columns]
    penalty = group_penalty(NamedGroups(copies.members), copies.columns.size, scales, l1_ratio, own)
    return penalty._replace(members=named.members, member_names=named.names, copies=copies)


def group_penalty(
    named: NamedGroups, d: int, weights: Any, l1_ratio: float, factors: np.ndarray | None = None
) -> Penalty:
    """(1 − l1_ratio) Σ w_g ‖f_g x_g‖ + l1_ratio Σ f_j |x_j|, where the ℓ1 part consists of groups of one feature. f are
    the `factors`; a feature whose factor is zero is in no group."""
    groups = named.members
    scales = _scales(named, weights)
    members: list[Any] = []
    sizes: list[float] = []
    if l1_ratio < 1:
        members += groups
        sizes += list((1.0 - l1_ratio) * scales)
    if l1_ratio > 0:
        members += [np.array([j]) for j in range(d)]
        sizes += [l1_ratio] * d
    if factors is not None:
        members = [group[factors[group] > 0.0] for group in members]
    kept = [g for g, size in enumerate(sizes) if size > 0 and len(members[g])]
    A, rows = overlapping_groups([members[g] for g in kept], d, weights=[sizes[g] for g in kept])
    if factors is not None:
        A = canonical(A @ sp.diags_array(factors))
    return Penalty(A, rows, members=groups, member_names=named.names)


def _scales(named: NamedGroups, weights: Any) -> np.ndarray:
    """The weight of each group: the square root of its size, 1, or as given, in the order of groups or by name."""
    if isinstance(weights, str):
        if weights != "sqrt":
            raise ValueError(f"group_weights={weights!r}: it takes 'sqrt', None or one number per group")
        return np.sqrt([float(group.size) for group in named.members])
    keys, entries = _entries(weights) if np.iterable(weights) else (None, [])
    if keys is not None and named.names is not None and sorted(map(str, keys)) == sorted(named.names):
        by_name = dict(zip(map(str, keys), entries, strict=True))
        weights = [by_name[name] for name in named.names]
    elif keys is not None and keys != list(range(len(keys))):
        takes = "an array, in the order of groups_" if named.names is None else "one number for each of group_names_"
        odd = next((key for key in keys if str(key) not in (named.names or ())), None)
        problem = (
            f"has keys such as {odd!r}" if odd is not None else f"has {len(keys)} of {len(named.names or ())} names"
        )
        raise ValueError(f"group_weights {problem}: it takes {takes}")
    return checked_weights(weights, len(named.members), "group_weights", "group")

"""groups=: lists, names or labels, as groups of column numbers and a penalty."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from skadmm.estimators._penalty import Penalty
from skadmm.operators import overlapping_groups
from skadmm.operators.canonical import checked_weights


def checked_groups(groups: Any, d: int, names: Sequence[Any] | None) -> list[np.ndarray]:
    """The column numbers of each group."""
    if groups is None:
        return [np.array([j]) for j in range(d)]
    if isinstance(groups, str) or not np.iterable(groups):
        raise ValueError(f"groups={groups!r}: it takes a list of groups, or one integer label per feature")
    entries = list(groups.values()) if isinstance(groups, dict) else list(groups)
    if entries and all(isinstance(label, (int, np.integer)) for label in entries):
        labels = np.asarray(entries)
        if labels.size != d:
            raise ValueError(f"groups has {labels.size} labels: X has {d} features")
        return [np.flatnonzero(labels == label) for label in np.unique(labels[labels >= 0])]
    if not entries:
        raise ValueError("groups is empty: it takes at least one group")
    columns = {name: j for j, name in enumerate(names)} if names is not None else {}
    found = [_columns(group, g, columns) for g, group in enumerate(entries)]
    overlapping_groups(found, d)  # checks them
    return [np.asarray(group, dtype=np.int64) for group in found]


def _columns(group: Any, g: int, columns: dict[Any, int]) -> list[Any]:
    if isinstance(group, str) or not np.iterable(group):
        raise ValueError(f"groups[{g}]={group!r}: it takes a sequence of column numbers or names")
    answer = []
    for member in group:
        if not isinstance(member, str):
            answer.append(member)
        elif member in columns:
            answer.append(columns[member])
        else:
            raise ValueError(f"groups[{g}] has {member!r}, which is not among the columns of X")
    return answer


def group_penalty(groups: list[np.ndarray], d: int, weights: Any, l1_ratio: float) -> Penalty:
    """(1 − l1_ratio) Σ w_g ‖x_g‖ + l1_ratio ‖x‖₁: the plain part as groups of one feature."""
    if isinstance(weights, str):
        if weights != "sqrt":
            raise ValueError(f"group_weights={weights!r}: it takes 'sqrt', None or one number per group")
        scales = np.sqrt([float(group.size) for group in groups])
    else:
        scales = checked_weights(weights, len(groups), "group_weights", "group")
    members: list[Any] = []
    sizes: list[float] = []
    if l1_ratio < 1:
        members += groups
        sizes += list((1.0 - l1_ratio) * scales)
    if l1_ratio > 0:
        members += [np.array([j]) for j in range(d)]
        sizes += [l1_ratio] * d
    kept = [g for g, size in enumerate(sizes) if size > 0]
    A, rows = overlapping_groups([members[g] for g in kept], d, weights=[sizes[g] for g in kept])
    return Penalty(A, rows, members=groups)

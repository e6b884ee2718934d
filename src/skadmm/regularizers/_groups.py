"""Disjoint groups of coordinates, as a person writes them and as kernels read them."""

from typing import Any, NamedTuple

import numpy as np

from skadmm.regularizers._base import checked_weights


class Groups(NamedTuple):
    """Group g is ``members[starts[g]:starts[g + 1]]``; what follows ``starts[-1]`` is in no group."""

    members: np.ndarray
    starts: np.ndarray


def checked_groups(reg: Any, role: str, size: int) -> Groups:
    """The field `groups` as :class:`Groups` over the coordinates 0 … size − 1.

    It takes None (one group of all coordinates), an integer label per coordinate (a negative one means in no group;
    groups are numbered in the order of their labels) or a list of index arrays.
    """
    where = f"{role}={type(reg).__name__}(...): groups"
    groups = reg.groups
    if isinstance(groups, Groups):
        if groups.members.size != size:
            raise ValueError(f"{where} were prepared for length {groups.members.size}, not {size}")
        return groups
    if groups is None:
        return _from_labels(np.zeros(size, dtype=np.int64))
    if isinstance(groups, str | dict) or not hasattr(groups, "__iter__"):
        raise TypeError(f"{where} must be a list of index arrays or an integer label per coordinate, got {groups!r}")
    groups = list(groups) if not hasattr(groups, "__array__") else np.asarray(groups)
    if len(groups) > 0 and np.isscalar(groups[0]):
        return _from_labels(_checked_labels(groups, where, size))
    return _from_indices([_checked_indices(group, where, g, size) for g, group in enumerate(groups)], where, size)


def checked_group_weights(reg: Any, role: str, groups: Groups) -> np.ndarray:
    """The field `weights` as one float64 per group; ones for None."""
    count = groups.starts.size - 1
    weights = checked_weights(reg, role, count)
    return weights if weights.size == count else np.ones(count)


def _checked_labels(labels: Any, where: str, size: int) -> np.ndarray:
    labels = _as_array(labels)
    if labels is None or labels.ndim != 1 or labels.dtype.kind not in "iu":
        raise TypeError(f"{where} given as one label per coordinate must all be integers")
    if labels.size != size:
        raise ValueError(f"{where} given as one label per coordinate must have length {size}, got {labels.size}")
    return labels.astype(np.int64)


def _checked_indices(group: Any, where: str, g: int, size: int) -> np.ndarray:
    indices = _as_array(group)
    if indices is None or indices.ndim != 1 or (indices.size > 0 and indices.dtype.kind not in "iu"):
        raise TypeError(f"{where}[{g}] must be a one-dimensional array of integer indices, got {group!r}")
    if indices.size == 0:
        raise ValueError(f"{where}[{g}] is empty")
    for j in (indices.min(), indices.max()):
        if not 0 <= j < size:
            raise ValueError(f"{where}[{g}] has the index {j}, out of range for length {size}")
    return indices.astype(np.int64)


def _as_array(entries: Any) -> np.ndarray | None:
    try:
        return np.asarray(entries)
    except ValueError:  # ragged
        return None


def _from_labels(labels: np.ndarray) -> Groups:
    order = np.argsort(labels, kind="stable").astype(np.int64)
    free = int(np.count_nonzero(labels < 0))
    _, counts = np.unique(labels[labels >= 0], return_counts=True)
    return Groups(np.concatenate([order[free:], order[:free]]), _starts(counts))


def _from_indices(groups: list[np.ndarray], where: str, size: int) -> Groups:
    grouped = np.concatenate([np.empty(0, dtype=np.int64), *groups])
    occurrences = np.bincount(grouped, minlength=size)
    if np.any(occurrences > 1):
        raise ValueError(
            f"{where} must be disjoint, but coordinate {np.argmax(occurrences > 1)} occurs more than once; "
            "for groups that overlap use A = operators.overlapping_groups(...)"
        )
    free = np.flatnonzero(occurrences == 0).astype(np.int64)
    return Groups(np.concatenate([grouped, free]), _starts(np.array([group.size for group in groups], dtype=np.int64)))


def _starts(counts: np.ndarray) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)

"""Checks of targets and sample weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from skadmm import _checks
from skadmm.backends.local import normalised
from skadmm.losses import Loss


def as_target(
    target: Any, n: int, loss: Loss, classes: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray | None]:
    """The target as float64, and None; in classification coded as −1 and +1, and the two classes in sorted order."""
    if target is None:
        raise ValueError("target=None: it takes a vector with an entry for each row of X")
    array = np.asarray(target)
    if array.ndim != 1 or array.size != n:
        raise ValueError(f"target has shape {array.shape}: it takes a vector of length {n}, the number of rows of X")
    if not loss.labels:
        return _checks.vector(array, "target", n, of="the number of rows of X"), None
    if array.dtype.kind == "f":
        _checks.finite(array, "target")
    if classes is None:
        classes = _two_classes(array, loss)
    elif not np.isin(array, classes).all():
        raise ValueError(f"target holds classes other than {classes.tolist()}")
    return np.where(array == classes[1], 1.0, -1.0), classes


def _two_classes(array: np.ndarray, loss: Loss) -> np.ndarray:
    try:
        classes = np.unique(array)
    except TypeError:
        raise TypeError("target mixes values that cannot be sorted: it takes two classes of one type") from None
    if classes.size != 2:
        shown = ", ".join(repr(v) for v in classes[:5].tolist()) + (", …" if classes.size > 5 else "")
        raise ValueError(f"target has {classes.size} class(es) ({shown}): the {loss.name} loss takes exactly two")
    return classes


def as_weight(weight: Any, n: int) -> np.ndarray:
    """The weights scaled to mean one; an empty array where none are given."""
    if weight is None:
        return np.empty(0)
    weight = _checks.vector(weight, "sample_weight", n, of="the number of rows of X")
    if np.any(weight < 0) or not np.any(weight > 0):
        raise ValueError("sample_weight takes numbers ≥ 0, at least one of them > 0")
    return normalised(weight)

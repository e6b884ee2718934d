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
    """Check the targets; classes are coded as −1 and +1.

    Parameters
    ----------
    target : array-like of length n
        Numbers, or two classes.
    n : int
        The number of rows.
    loss : loss
        It says whether targets are classes.
    classes : ndarray, optional
        The two classes, where they are known already.

    Returns
    -------
    target : ndarray of float
        The targets as compiled code reads them.
    classes : ndarray or None
        The two classes in sorted order; None in regression.

    See Also
    --------
    skadmm.backends.as_weight : Checks the weights.

    Examples
    --------
    >>> from skadmm.backends import as_target
    >>> from skadmm.losses import Logistic
    >>> as_target(["no", "yes", "no"], 3, Logistic())
    (array([-1.,  1., -1.]), array(['no', 'yes'], dtype='<U3'))
    """
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
    """Check the weights of the samples, and scale them to mean one.

    Parameters
    ----------
    weight : array-like of length n or None
        Numbers ≥ 0.
    n : int
        The number of rows.

    Returns
    -------
    ndarray
        The weights with mean one; empty where none are given.

    See Also
    --------
    skadmm.backends.as_target : Checks the targets.

    Examples
    --------
    >>> from skadmm.backends import as_weight
    >>> as_weight([1, 3], 2)
    array([0.5, 1.5])
    """
    if weight is None:
        return np.empty(0)
    weight = _checks.vector(weight, "sample_weight", n, of="the number of rows of X")
    if np.any(weight < 0) or not np.any(weight > 0):
        raise ValueError("sample_weight takes numbers ≥ 0, at least one of them > 0")
    return normalised(weight)

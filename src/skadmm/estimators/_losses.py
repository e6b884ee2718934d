"""loss=: which losses an estimator takes, and what a loss says about predictions and scores."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import brentq

from skadmm._names import nearest
from skadmm.backends.named_columns import stored_column
from skadmm.kernels.samples import Samples, mean_conjugate, mean_loss, mean_slope
from skadmm.losses import LOSSES, as_loss
from skadmm.losses.offset import TARGET, offset_loss, output_offset, split_offset, with_offset

Mean = Callable[[np.ndarray], np.ndarray]
WIDEST = 4096.0
"""A constant margin is searched within this distance: beyond it every exponential is 0 or infinite."""


def checked_loss(loss: Any, *, labels: bool) -> Any:
    """`loss`, a name in ``LOSSES`` or an instance, as an instance; `labels` says whether targets are classes.

    Raises
    ------
    ValueError
        Where the name is unknown, or the loss is of the other kind; the message lists the names allowed.
    TypeError
        Where it is neither a name nor an instance of a loss.
    """
    if isinstance(loss, str) and loss not in LOSSES:
        names, allowed = _allowed(labels)
        raise ValueError(f"loss={loss!r}: {allowed}.{nearest(loss, names)}")
    try:
        found = as_loss(loss)
    except TypeError:
        raise TypeError(f"loss={loss!r}: {_allowed(labels)[1]}") from None
    if found.coupled:
        more = "multi_class='multinomial' joins all classes in one model"
        raise ValueError(f"loss={loss!r}: {_allowed(labels)[1]}; {more}")
    if found.labels != labels:
        raise ValueError(f"loss={loss!r}: {_allowed(labels)[1]}")
    return found


def _allowed(labels: bool) -> tuple[list[str], str]:
    """The names of the losses for classes or for numbers, and a sentence that lists them."""
    losses: dict[str, Any] = dict(LOSSES.items())
    names = [name for name, cls in losses.items() if cls.labels == labels and not cls.coupled]
    kind = "two classes" if labels else "numbers"
    return names, f"it takes one of {', '.join(map(repr, names))}, or an instance of a loss for {kind}"


def mean_of(loss: Any) -> Mean | None:
    """The function from margins to expected targets; None where the loss defines none."""
    if isinstance(loss, str):
        loss = LOSSES[loss]() if loss in LOSSES else None
    return None if loss is None else as_loss(loss).mean


def class_probabilities(loss: Any, margins: np.ndarray) -> np.ndarray:
    """The probabilities of the first and of the second class, one row per margin."""
    loss = as_loss(loss)
    second = loss.mean(margins)
    # For a symmetric loss mean(−z) is more accurate than 1 − mean(z).
    return np.column_stack([loss.mean(-margins) if loss.symmetric else 1.0 - second, second])


def check_storable(loss: Any) -> None:
    """Refuse to write a model whose loss a file cannot name."""
    if not isinstance(loss, str) and all(type(loss) is not cls for _, cls in LOSSES.items()):
        name = getattr(loss, "name", "a-name")
        raise TypeError(
            f"loss={loss!r} cannot be saved: a file names its loss, and this one is not in skadmm.losses.LOSSES. "
            f"LOSSES.add({name!r}, {type(loss).__name__}) adds it, here and before the file is loaded"
        )


# -- offsets ----------------------------------------------------------------------------------------------------------


def checked_offset(offset: Any, n: int, outputs: int = 1, *, classes: bool = False) -> np.ndarray:
    """An offset per row, or per row and output; `classes` says whether outputs are classes, each with a column."""
    if isinstance(offset, str):
        raise TypeError(f"offset={offset!r}: it takes an array with a number for each row, not the name of a column")
    return output_offset(offset, n, outputs, joined=classes)


def prediction_offset(X: Any, offset: Any, n: int, outputs: int, *, classes: bool = False) -> np.ndarray | None:
    """The offset of the rows of X in a prediction: None, a number for all of them, or as in the fit."""
    given = stored_column(X, offset, "offset")
    if given is None or (np.ndim(given) == 0 and given == 0.0):
        return None
    return checked_offset(np.full(n, given) if np.ndim(given) == 0 else given, n, outputs, classes=classes)


def offset_target(loss: Any, target: np.ndarray, offset: np.ndarray | None) -> np.ndarray:
    """A target that carries its offset, for :func:`loss_of`."""
    return target if offset is None else with_offset(loss, target, offset)[1]


def loss_of(loss: Any, target: Any) -> Any:
    """The loss of a target, which may carry an offset."""
    return offset_loss(loss) if getattr(target, "dtype", None) == TARGET else loss


# -- scores -----------------------------------------------------------------------------------------------------------


def best_constant(loss: Any, target: np.ndarray, weight: np.ndarray | None) -> float:
    """The constant margin with the smallest mean loss; very large where the loss decreases without end."""
    plain, values, offset = split_offset(loss, target)
    weights = np.empty(0) if weight is None else np.asarray(weight, dtype=float)
    samples = Samples(None, target, weights, loss, target.size)
    start = float(np.average(values, weights=weight)) if plain.residual else 0.0
    if plain.link is not None and not plain.labels:
        start = float(plain.link(np.asarray(np.average(values, weights=weight))))
        start = start if math.isfinite(start) else 0.0
        start -= 0.0 if offset is None else float(np.average(offset, weights=weight))

    def slope(margin: float) -> float:
        found = mean_slope(samples, margin)
        return found if math.isfinite(found) else math.copysign(1e300, found)

    at_start, width = slope(start), 0.5 * max(1.0, abs(start) if plain.residual else 1.0)
    if at_start == 0.0:
        return start
    widest = WIDEST if not plain.residual else math.inf
    toward = -math.copysign(1.0, at_start)
    while slope(start + toward * width) * at_start > 0.0:
        width *= 2.0
        if width > widest:
            return start + toward * width
    return float(brentq(slope, *sorted((start, start + toward * width)), xtol=1e-13, rtol=1e-14, maxiter=500))


def explained(loss: Any, target: np.ndarray, margins: np.ndarray, weight: np.ndarray | None) -> float:
    """D²: the share of the deviance of the best constant that the margins explain.

    The deviance of a sample is its loss minus the smallest loss over all margins, which is −ℓ*(0). The target may carry
    an offset, which margins do not include. Where the constant has no deviance, the result is 1 if the margins have
    none either, and 0 otherwise.
    """
    weights = np.empty(0) if weight is None else np.asarray(weight, dtype=float)
    samples = Samples(None, target, weights, loss, target.size)
    constant = np.full(target.size, best_constant(loss, target, weight))
    smallest = -mean_conjugate(samples, np.zeros(target.size))
    ours, null = (mean_loss(samples, z) - smallest for z in (margins, constant))
    if null <= 0.0:
        return 1.0 if ours <= 0.0 else 0.0
    return 1.0 - ours / null

"""loss=: which losses an estimator takes, and what a loss says about predictions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import numpy as np
from scipy.special import expit

from skadmm._names import nearest
from skadmm.losses import LOSSES, Huber, Logistic, Squared, as_loss

Mean = Callable[[np.ndarray], np.ndarray]


@runtime_checkable
class LossWithMean(Protocol):
    """A loss that is the negative logarithm of a likelihood, and knows the mean of that distribution."""

    def mean(self, margins: np.ndarray) -> np.ndarray:
        """The expected target at each margin; for classes, the probability of the second one."""
        ...


def checked_loss(loss: Any, *, labels: bool) -> Any:
    """`loss`, a name in ``LOSSES`` or an instance, as an instance; `labels` says whether targets are classes.

    Raises
    ------
    ValueError
        Where the name is unknown, or the loss is of the other kind; the message lists the names allowed.
    TypeError
        Where it is neither a name nor an instance of a loss.
    """
    losses: dict[str, Any] = dict(LOSSES.items())
    names = [name for name, cls in losses.items() if cls.labels == labels]
    allowed = f"it takes one of {', '.join(map(repr, names))}, or an instance of a loss for "
    allowed += "two classes" if labels else "numbers"
    if isinstance(loss, str) and loss not in LOSSES:
        raise ValueError(f"loss={loss!r}: {allowed}.{nearest(loss, names)}")
    try:
        found = as_loss(loss)
    except TypeError:
        raise TypeError(f"loss={loss!r}: {allowed}") from None
    if found.labels != labels:
        raise ValueError(f"loss={loss!r}: {allowed}")
    return found


def mean_of(loss: Any) -> Mean | None:
    """The function from margins to expected targets; None where the loss defines none."""
    if isinstance(loss, str):
        loss = LOSSES[loss]() if loss in LOSSES else None
    if isinstance(loss, Logistic):
        return expit
    return loss.mean if isinstance(loss, LossWithMean) else None


def depends_on_residual(loss: Any) -> bool:
    """Is ℓ(z, b) known to be a function of z − b, so that targets may be centred? Assumed of no other loss."""
    return isinstance(loss, (Squared, Huber))


def class_probabilities(mean: Mean, margins: np.ndarray) -> np.ndarray:
    """The probabilities of the first and of the second class, one row per margin."""
    second = mean(margins)
    # The logistic function is symmetric: mean(−z) keeps the digits that 1 − mean(z) would lose.
    return np.column_stack([expit(-margins) if mean is expit else 1.0 - second, second])


def check_storable(loss: Any) -> None:
    """Refuse to write a model whose loss a file cannot name."""
    if not isinstance(loss, str) and all(type(loss) is not cls for _, cls in LOSSES.items()):
        raise TypeError(f"loss={loss!r} cannot be saved: a file names its loss, and this one is not in LOSSES")

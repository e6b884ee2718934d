"""Losses ℓ(z, b) of a margin z = a·x, one file each."""

from typing import Any

from skadmm._names import Registry
from skadmm.kernels.loss_functions import conjugate, curvature, derivative, value
from skadmm.losses._base import Loss, define, deviance
from skadmm.losses.huber import Huber
from skadmm.losses.logistic import Logistic
from skadmm.losses.squared import Squared
from skadmm.losses.squared_hinge import SquaredHinge

LOSSES: Registry[type] = Registry("loss")
LOSSES.add("logistic", Logistic)
LOSSES.add("squared", Squared)
LOSSES.add("huber", Huber)
LOSSES.add("squared-hinge", SquaredHinge)


def as_loss(loss: Any) -> Any:
    """A loss from its name, or the loss itself."""
    if isinstance(loss, str):
        return LOSSES[loss]()
    if isinstance(loss, type) or not hasattr(loss, "curvature_bound"):
        known = ", ".join(map(repr, LOSSES))
        raise TypeError(f"loss={loss!r} is not a loss; it takes one of {known}, or an instance such as Huber(0.5)")
    return loss.prepared() if hasattr(loss, "prepared") else loss


__all__ = [
    "LOSSES",
    "Huber",
    "Logistic",
    "Loss",
    "Squared",
    "SquaredHinge",
    "as_loss",
    "conjugate",
    "curvature",
    "define",
    "derivative",
    "deviance",
    "value",
]

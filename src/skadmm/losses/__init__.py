"""Losses ℓ(z, b) of a margin z = a·x, one file each."""

from typing import Any

from skadmm._names import Registry
from skadmm.kernels.loss_functions import conjugate, curvature, derivative, value
from skadmm.losses._base import Loss, define, deviance
from skadmm.losses.huber import Huber
from skadmm.losses.logistic import Logistic
from skadmm.losses.multinomial import Multinomial
from skadmm.losses.squared import Squared
from skadmm.losses.squared_hinge import SquaredHinge

LOSSES: Registry[type] = Registry("loss")
LOSSES.add("logistic", Logistic)
LOSSES.add("squared", Squared)
LOSSES.add("huber", Huber)
LOSSES.add("squared-hinge", SquaredHinge)
LOSSES.add("multinomial", Multinomial)


def as_loss(loss: Any) -> Any:
    """Turn the name of a loss into the loss.

    Parameters
    ----------
    loss : str or loss
        A name in ``skadmm.losses.LOSSES``, or an instance, whose parameters are checked.

    Returns
    -------
    loss
        An instance of one of the classes of losses.

    See Also
    --------
    skadmm.losses.define : Make a loss of one's own.

    Examples
    --------
    >>> from skadmm.losses import as_loss
    >>> as_loss("huber")
    Huber(delta=1.0)
    """
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
    "Multinomial",
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

"""Losses ℓ(z, b) of a margin z = a·x, one file each."""

from typing import cast

from skadmm._names import Registry
from skadmm._types import LossLike
from skadmm.kernels.loss_functions import conjugate, curvature, derivative, value
from skadmm.losses._base import Loss, define, deviance
from skadmm.losses.absolute import Absolute
from skadmm.losses.binomial import Binomial
from skadmm.losses.check import check_loss
from skadmm.losses.gamma import Gamma
from skadmm.losses.hinge import Hinge
from skadmm.losses.huber import Huber
from skadmm.losses.logistic import Logistic
from skadmm.losses.multinomial import Multinomial
from skadmm.losses.negative_binomial import NegativeBinomial
from skadmm.losses.poisson import Poisson
from skadmm.losses.quantile import Quantile
from skadmm.losses.smoothed_quantile import SmoothedQuantile
from skadmm.losses.squared import Squared
from skadmm.losses.squared_hinge import SquaredHinge
from skadmm.losses.tweedie import Tweedie

LOSSES: Registry[type] = Registry("loss", "losses")
LOSSES.add("logistic", Logistic)
LOSSES.add("squared", Squared)
LOSSES.add("huber", Huber)
LOSSES.add("squared-hinge", SquaredHinge)
LOSSES.add("multinomial", Multinomial)
LOSSES.add("poisson", Poisson)
LOSSES.add("gamma", Gamma)
LOSSES.add("binomial", Binomial)
LOSSES.add("tweedie", Tweedie)
LOSSES.add("negative-binomial", NegativeBinomial)
LOSSES.add("quantile", Quantile)
LOSSES.add("smoothed-quantile", SmoothedQuantile)
LOSSES.add("absolute", Absolute)
LOSSES.add("hinge", Hinge)


def as_loss(loss: LossLike | Loss) -> Loss:
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
    skadmm.losses.define : Defines a new loss.

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
    return cast(Loss, loss.prepared() if hasattr(loss, "prepared") else loss)


__all__ = [
    "LOSSES",
    "Absolute",
    "Binomial",
    "Gamma",
    "Hinge",
    "Huber",
    "Logistic",
    "Loss",
    "Multinomial",
    "NegativeBinomial",
    "Poisson",
    "Quantile",
    "SmoothedQuantile",
    "Squared",
    "SquaredHinge",
    "Tweedie",
    "as_loss",
    "check_loss",
    "conjugate",
    "curvature",
    "define",
    "derivative",
    "deviance",
    "value",
]

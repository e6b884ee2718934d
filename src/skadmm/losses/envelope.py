"""The Moreau envelope of a loss with kinks."""

from typing import Any, NamedTuple

from skadmm.kernels.compile import facts
from skadmm.kernels.loss_functions import conjugate, envelope_curvature, envelope_slope, value
from skadmm.losses._base import define, inherits


@facts(smooth=True)
@inherits("name", "labels", "attained", "residual")
class Envelope(NamedTuple):
    """e(z, b) = min over u of ℓ(u, b) + (u − z)²/(2·width): differentiable, and at most ℓ.

    Its derivative is a subgradient of ℓ at the minimising u, so it lies in the domain of ℓ*.
    """

    loss: Any
    width: float

    @property
    def curvature_bound(self) -> float:
        return 1.0 / self.width


def _value(loss, z, b):
    slope = envelope_slope(loss.loss, z, b, loss.width)
    return value(loss.loss, z - loss.width * slope, b) + 0.5 * loss.width * slope * slope


def _derivative(loss, z, b):
    return envelope_slope(loss.loss, z, b, loss.width)


def _curvature(loss, z, b):
    return envelope_curvature(loss.loss, z, b, loss.width)


def _conjugate(loss, theta, b):
    return conjugate(loss.loss, theta, b) + 0.5 * loss.width * theta * theta


define(Envelope, value=_value, derivative=_derivative, curvature=_curvature, conjugate=_conjugate)

"""The squared loss."""

from typing import NamedTuple

from skadmm.kernels.compile import facts
from skadmm.losses._base import define


@facts(name="squared", labels=False, attained=True, gaussian=True)
class Squared(NamedTuple):
    """ℓ(z, b) = ½ (z − b)²."""

    @property
    def curvature_bound(self) -> float:
        return 1.0


def _value(loss, z, b):
    return 0.5 * (z - b) * (z - b)


def _derivative(loss, z, b):
    return z - b


def _curvature(loss, z, b):
    return 1.0


def _conjugate(loss, theta, b):
    return theta * (b + 0.5 * theta)


define(Squared, value=_value, derivative=_derivative, curvature=_curvature, conjugate=_conjugate)

"""Huber's loss."""

import math
from typing import NamedTuple, Self

from skadmm import _checks
from skadmm.kernels.compile import facts
from skadmm.losses._base import define


@facts(name="huber", labels=False, attained=True)
class Huber(NamedTuple):
    """ℓ(z, b) = ½r² for |r| ≤ δ and δ|r| − ½δ² beyond, with r = z − b.

    AIC and BIC take exp(−ℓ) for the likelihood, which is right where targets are in units of the noise.

    Reference: Huber, P. J. (1964). Robust estimation of a location parameter.
    """

    delta: float = 1.0

    def prepared(self) -> Self:
        """δ checked."""
        return self._replace(delta=_checks.number(self.delta, "loss=Huber(...): delta", above=0))

    @property
    def curvature_bound(self) -> float:
        return 1.0


def _value(loss, z, b):
    r = abs(z - b)
    return 0.5 * r * r if r <= loss.delta else loss.delta * (r - 0.5 * loss.delta)


def _derivative(loss, z, b):
    return min(max(z - b, -loss.delta), loss.delta)


def _curvature(loss, z, b):
    return 1.0 if abs(z - b) <= loss.delta else 0.0


def _conjugate(loss, theta, b):
    if abs(theta) > loss.delta:
        return math.inf
    return theta * (b + 0.5 * theta)


define(Huber, value=_value, derivative=_derivative, curvature=_curvature, conjugate=_conjugate)

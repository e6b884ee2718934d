"""Huber's loss."""

import math
from typing import NamedTuple, Self

from skadmm import _checks
from skadmm.kernels.compile import facts
from skadmm.losses._base import ROUNDING, define


@facts(name="huber", labels=False, attained=True, residual=True)
class Huber(NamedTuple):
    """Huber's loss, quadratic for small residuals and linear for large ones.

    ℓ(z, b) = ½r² for |r| ≤ δ and δ|r| − ½δ² beyond, with r = z − b. A few outliers in the targets then have a bounded
    influence. AIC and BIC take exp(−ℓ) for the likelihood, which is right where targets are in units of the noise.

    Parameters
    ----------
    delta : float
        The residual δ > 0 at which the loss turns from quadratic to linear.

    See Also
    --------
    skadmm.losses.Squared : The loss without the linear part.

    References
    ----------
    Huber, P. J. (1964). Robust estimation of a location parameter.

    Examples
    --------
    >>> from skadmm.losses import Huber, value
    >>> [value(Huber(1.0), z, 0.0) for z in (0.5, 1.0, 10.0)]
    [0.125, 0.5, 9.5]
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
    if abs(theta) > loss.delta * (1.0 + ROUNDING):
        return math.inf
    theta = min(max(theta, -loss.delta), loss.delta)
    return theta * (b + 0.5 * theta)


define(Huber, value=_value, derivative=_derivative, curvature=_curvature, conjugate=_conjugate)

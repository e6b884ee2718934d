"""The negative binomial loss with a logarithmic link, for counts that vary more than Poisson's."""

import math
from typing import NamedTuple, Self

from skadmm import _checks
from skadmm.kernels.compile import facts
from skadmm.losses._base import define
from skadmm.losses._log_link import SATURATED, exp_mean, log_link, xlogx


@facts(
    name="negative-binomial", labels=False, attained=False, target_minimum=0.0, mean=exp_mean, link=log_link,
    examples=((0.1,), (5.0,)),
)  # fmt: skip
class NegativeBinomial(NamedTuple):
    """The negative binomial loss with a logarithmic link, for counts that vary more than Poisson's.

    ℓ(z, b) = (b + r) log((r + exp z)/(r + b)) − b(z − log b) with r = 1/dispersion: half the deviance of a negative
    binomial distribution with mean μ = exp(z) and variance μ + dispersion·μ². Targets are numbers ≥ 0.

    Parameters
    ----------
    dispersion : float
        The dispersion > 0. It is given, not estimated.

    See Also
    --------
    skadmm.losses.Poisson : The limit at dispersion 0.

    Examples
    --------
    >>> from skadmm.losses import NegativeBinomial, value
    >>> round(value(NegativeBinomial(0.5), 0.0, 0.0), 4)
    0.8109
    """

    dispersion: float = 1.0

    def prepared(self) -> Self:
        """The dispersion checked."""
        name = "loss=NegativeBinomial(...): dispersion"
        return self._replace(dispersion=_checks.number(self.dispersion, name, above=0))

    @property
    def curvature_bound(self) -> float:
        return math.inf  # (b + r)/4, for a target b of any size


def _value(loss, z, b):
    # With t = z − log r: (b + r)(log(1 + exp t) − log(1 + b/r)) − b t + b log(b/r), without overflow.
    r = 1.0 / loss.dispersion
    t = z - math.log(r)
    soft = math.log1p(math.exp(-abs(t))) + max(t, 0.0)
    return (b + r) * (soft - math.log1p(b / r)) - b * t + r * xlogx(b / r)


def _derivative(loss, z, b):
    r = 1.0 / loss.dispersion
    t = z - math.log(r)
    e = math.exp(-abs(t))
    return (r - b * e) / (1.0 + e) if t >= 0.0 else (r * e - b) / (1.0 + e)


def _curvature(loss, z, b):
    r = 1.0 / loss.dispersion
    e = math.exp(-abs(z - math.log(r)))
    return (b + r) * e / ((1.0 + e) * (1.0 + e))


def _model_curvature(loss, z, b):
    # On a flat side, far from the minimiser, there is a slope and next to no curvature.
    r = 1.0 / loss.dispersion
    t = z - math.log(r)
    away = z - math.log(b) if b > 0.0 else t
    if (away > SATURATED and t > SATURATED) or (away < -SATURATED and b > 0.0):
        return _derivative(loss, z, b) / away
    return _curvature(loss, z, b)


def _conjugate(loss, theta, b):
    r = 1.0 / loss.dispersion
    share = (theta + b) / (b + r)
    if share < 0.0 or share > 1.0:
        return math.inf
    entropy = xlogx(share) + ((1.0 - share) * math.log1p(-share) if share < 1.0 else 0.0)
    return (b + r) * (entropy + math.log1p(b / r)) + theta * math.log(r) - r * xlogx(b / r)


define(
    NegativeBinomial,
    value=_value,
    derivative=_derivative,
    curvature=_curvature,
    conjugate=_conjugate,
    model_curvature=_model_curvature,
)

"""The Poisson loss, for counts and rates."""

import math
from typing import NamedTuple

from skadmm.kernels.compile import facts
from skadmm.losses._base import ROUNDING, define
from skadmm.losses._log_link import SATURATED, exp_mean, exponential, log_link, xlogx

FAR_BELOW = math.exp(-SATURATED)


@facts(name="poisson", labels=False, attained=False, target_minimum=0.0, mean=exp_mean, link=log_link)
class Poisson(NamedTuple):
    """The Poisson loss with a logarithmic link, for counts and rates.

    ℓ(z, b) = exp(z) − bz + b log b − b: half the deviance of a Poisson distribution with mean exp(z). Targets are
    numbers ≥ 0: counts, with the logarithm of the exposure as offset, or rates, with the exposure as sample weight.

    See Also
    --------
    skadmm.losses.NegativeBinomial : For counts that vary more than those of a Poisson distribution.

    Examples
    --------
    >>> from skadmm.losses import Poisson, value
    >>> value(Poisson(), 0.0, 0.0), value(Poisson(), 0.0, 1.0)
    (1.0, 0.0)
    """

    @property
    def curvature_bound(self) -> float:
        return math.inf


def _value(loss, z, b):
    return exponential(z) - b * z + xlogx(b) - b


def _derivative(loss, z, b):
    return exponential(z) - b


def _curvature(loss, z, b):
    return exponential(z)


def _model_curvature(loss, z, b):
    e = exponential(z)
    if e < FAR_BELOW * b:
        return (b - e) / (math.log(b) - z)
    return e


def _conjugate(loss, theta, b):
    mean = theta + b
    if mean < -ROUNDING * b:
        return math.inf
    mean = max(mean, 0.0)
    return xlogx(mean) - xlogx(b) - theta


define(
    Poisson,
    value=_value,
    derivative=_derivative,
    curvature=_curvature,
    conjugate=_conjugate,
    model_curvature=_model_curvature,
)

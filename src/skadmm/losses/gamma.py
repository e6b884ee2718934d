"""The gamma loss with a logarithmic link, for costs and durations."""

import math
from typing import NamedTuple

from skadmm.kernels.compile import facts
from skadmm.losses._base import define
from skadmm.losses._log_link import SATURATED, exp_mean, exponential, log_link, xlogx


@facts(name="gamma", labels=False, attained=True, target_minimum=0.0, target_open=True, mean=exp_mean, link=log_link)
class Gamma(NamedTuple):
    """The gamma loss with a logarithmic link, for costs and durations.

    ℓ(z, b) = b exp(−z) + z − log b − 1: half the deviance of a gamma distribution with mean exp(z). Targets are
    numbers > 0. AIC and BIC take the shape that maximises the likelihood.

    See Also
    --------
    skadmm.losses.Tweedie : For totals that may be zero.

    Examples
    --------
    >>> from skadmm.losses import Gamma, value
    >>> round(value(Gamma(), 0.0, 2.0), 4)
    0.3069
    """

    @property
    def curvature_bound(self) -> float:
        return math.inf

    def deviance(self, mean_loss: float, n_samples: int) -> float:
        """With the shape k of maximum likelihood, for which log k − ψ(k) is the mean loss."""
        from scipy.optimize import brentq
        from scipy.special import digamma, gammaln

        level = max(mean_loss, 1e-12)
        log_k = brentq(lambda u: u - float(digamma(math.exp(u))) - level, -40.0 - level, 40.0)
        k = math.exp(log_k)
        return float(-2.0 * n_samples * (k * log_k - k * (level + 1.0) - gammaln(k)))


def _value(loss, z, b):
    t = math.log(b) - z
    return exponential(t) - 1.0 - t


def _derivative(loss, z, b):
    return 1.0 - exponential(math.log(b) - z)


def _curvature(loss, z, b):
    return exponential(math.log(b) - z)


def _model_curvature(loss, z, b):
    t = math.log(b) - z
    e = exponential(t)
    return (1.0 - e) / -t if t < -SATURATED else e


def _conjugate(loss, theta, b):
    u = 1.0 - theta
    if u < 0.0:
        return math.inf
    return xlogx(u) - u + 1.0 + theta * math.log(b)


define(
    Gamma,
    value=_value,
    derivative=_derivative,
    curvature=_curvature,
    conjugate=_conjugate,
    model_curvature=_model_curvature,
)

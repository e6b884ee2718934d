"""The Tweedie loss with a logarithmic link, for totals that are often exactly zero."""

import math
import sys
from numbers import Real
from typing import NamedTuple, Self

from skadmm.kernels.compile import facts
from skadmm.losses._base import define
from skadmm.losses._log_link import exp_mean, exponential, log_link

NEWTON_STEPS = 100


@facts(
    name="tweedie", labels=False, attained=False, target_minimum=0.0, mean=exp_mean, link=log_link,
    examples=((1.1,), (1.9,)),
)  # fmt: skip
class Tweedie(NamedTuple):
    """The Tweedie loss with a logarithmic link, for totals that are often exactly zero.

    ℓ(z, b) = exp((2−p)z)/(2−p) + b exp(−(p−1)z)/(p−1) − b^(2−p)/((2−p)(p−1)): half the deviance of a Tweedie
    distribution with mean exp(z), a sum of a Poisson number of gamma variables, such as the total of the claims of a
    year. Its variance is in proportion to mean^p. Targets are numbers ≥ 0.

    Parameters
    ----------
    power : float in (1, 2)
        The exponent p of the variance.

    See Also
    --------
    skadmm.losses.Poisson : The limit at p = 1.
    skadmm.losses.Gamma : The limit at p = 2.

    Examples
    --------
    >>> from skadmm.losses import Tweedie, value
    >>> value(Tweedie(1.5), 0.0, 0.0), value(Tweedie(1.5), 0.0, 1.0)
    (2.0, 0.0)
    """

    power: float = 1.5

    def prepared(self) -> Self:
        """p checked."""
        number = isinstance(self.power, Real) and not isinstance(self.power, bool)
        if not number or not 1.0 < float(self.power) < 2.0:
            raise ValueError(
                f"loss=Tweedie(...): power={self.power!r}: it takes a number between 1 and 2, both excluded; "
                "loss='poisson' is the limit at 1 and loss='gamma' that at 2"
            )
        return self._replace(power=float(self.power))

    @property
    def curvature_bound(self) -> float:
        return math.inf

    def deviance(self, mean_loss: float, n_samples: int) -> float:
        """By the extended quasi-likelihood of Nelder and Pregibon (1987), with its estimate of the dispersion."""
        return n_samples * math.log(max(2.0 * mean_loss, sys.float_info.min))


def _value(loss, z, b):
    a, c = 2.0 - loss.power, loss.power - 1.0
    total = exponential(a * z) / a
    if b > 0.0:
        total += b * exponential(-c * z) / c - math.exp(a * math.log(b)) / (a * c)
    return total


def _derivative(loss, z, b):
    a, c = 2.0 - loss.power, loss.power - 1.0
    return exponential(a * z) - (b * exponential(-c * z) if b > 0.0 else 0.0)


def _curvature(loss, z, b):
    a, c = 2.0 - loss.power, loss.power - 1.0
    return a * exponential(a * z) + (c * b * exponential(-c * z) if b > 0.0 else 0.0)


def _conjugate(loss, theta, b):
    a, c = 2.0 - loss.power, loss.power - 1.0
    if b == 0.0:
        if theta < 0.0:
            return math.inf
        return theta * (math.log(theta) - 1.0) / a if theta > 0.0 else 0.0
    # The margin z with exp(az) − b exp(−cz) = θ, by Newton's method between two bounds of it.
    start = math.log(b)
    power = math.exp(a * start)
    low = high = start
    if theta > 0.0:
        high = math.log(theta + power) / a
    elif theta < 0.0:
        low = start / c - math.log(power - theta) / c
    z = high if theta > 0.0 else low
    for _ in range(NEWTON_STEPS):
        first, second = exponential(a * z), b * exponential(-c * z)
        slope = first - second - theta
        if slope > 0.0:
            high = z
        else:
            low = z
        new = z - slope / (a * first + c * second)
        if not low < new < high:
            new = 0.5 * (low + high)
        if abs(new - z) <= 1e-15 * max(1.0, abs(z)):
            break
        z = new
    return theta * z - (exponential(a * z) / a + b * exponential(-c * z) / c - power / (a * c))


define(Tweedie, value=_value, derivative=_derivative, curvature=_curvature, conjugate=_conjugate)

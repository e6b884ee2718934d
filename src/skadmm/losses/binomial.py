"""The binomial loss, for proportions and for probabilities of two outcomes."""

import math
from typing import NamedTuple

import numpy as np

from skadmm.kernels.compile import facts
from skadmm.losses._base import ROUNDING, define
from skadmm.losses._log_link import xlogx

SATURATED = 8.0
"""Beyond this margin on the wrong side a model takes the majoriser's curvature."""


def _mean(loss: object, margins: np.ndarray) -> np.ndarray:
    """The probability."""
    from scipy.special import expit

    return np.asarray(expit(margins))


def _link(loss: object, means: np.ndarray) -> np.ndarray:
    """The logarithm of the odds."""
    from scipy.special import logit

    return np.asarray(logit(means))


@facts(name="binomial", labels=False, attained=False, target_minimum=0.0, target_maximum=1.0, mean=_mean, link=_link)
class Binomial(NamedTuple):
    """The binomial loss with a logistic link, for proportions and for outcomes 0 and 1.

    ℓ(z, b) = log(1 + exp(z)) − bz + b log b + (1 − b) log(1 − b): half the deviance of a proportion b with probability
    1/(1 + exp(−z)). Targets are numbers from 0 to 1: outcomes 0 and 1, or shares of successes with the numbers of
    trials as sample weights. On outcomes it is the logistic loss, for models that predict the probability itself.

    See Also
    --------
    skadmm.losses.Logistic : The same loss for classifiers, whose targets are classes.
    skadmm.losses.Poisson : For counts without an upper bound.

    Examples
    --------
    >>> from skadmm.losses import Binomial, value
    >>> round(value(Binomial(), 0.0, 1.0), 4), round(value(Binomial(), 0.0, 0.5), 4)
    (0.6931, 0.0)
    """

    @property
    def curvature_bound(self) -> float:
        return 0.25


def _value(loss, z, b):
    return math.log1p(math.exp(-abs(z))) + max(z, 0.0) - b * z + xlogx(b) + xlogx(1.0 - b)


def _derivative(loss, z, b):
    e = math.exp(-abs(z))
    # 1 − b is exact for b = 0 and 1, so that small slopes keep their digits on both sides.
    return (1.0 - b - e * b) / (1.0 + e) if z >= 0.0 else (e * (1.0 - b) - b) / (1.0 + e)


def _curvature(loss, z, b):
    e = math.exp(-abs(z))
    return e / ((1.0 + e) * (1.0 + e))


def _model_curvature(loss, z, b):
    # As for the logistic loss: the parabola that touches the loss at z and at −z.
    e = math.exp(-abs(z))
    if (z > SATURATED and b < 0.5) or (z < -SATURATED and b > 0.5):
        return (1.0 - e) / ((1.0 + e) * 2.0 * abs(z))
    return e / ((1.0 + e) * (1.0 + e))


def _conjugate(loss, theta, b):
    p = theta + b
    if p < -ROUNDING or p > 1.0 + ROUNDING:
        return math.inf
    p = min(max(p, 0.0), 1.0)
    return xlogx(p) + xlogx(1.0 - p) - xlogx(b) - xlogx(1.0 - b)


define(
    Binomial,
    value=_value,
    derivative=_derivative,
    curvature=_curvature,
    conjugate=_conjugate,
    model_curvature=_model_curvature,
)

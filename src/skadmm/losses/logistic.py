"""The logistic loss."""

import math
from typing import NamedTuple

import numpy as np

from skadmm.kernels.compile import facts
from skadmm.losses._base import define

SATURATED = 8.0
"""Beyond this margin on the wrong side a model takes the majoriser's curvature."""


@facts(name="logistic", labels=True, attained=False, symmetric=True, curvature_bound=0.25)
class Logistic(NamedTuple):
    """The logistic loss for two classes, ℓ(z, b) = log(1 + exp(−bz)) with b ∈ {−1, +1}.

    It is the negative log likelihood of logistic regression.

    See Also
    --------
    skadmm.losses.SquaredHinge : Another loss for two classes, zero beyond the margin.

    Examples
    --------
    >>> from skadmm.losses import Logistic, value
    >>> round(value(Logistic(), 0.0, 1.0), 4)
    0.6931
    >>> Logistic().curvature_bound
    0.25
    """

    def mean(self, margins: np.ndarray) -> np.ndarray:
        """The probability of the second class."""
        from scipy.special import expit

        return np.asarray(expit(margins))

    def link(self, means: np.ndarray) -> np.ndarray:
        """The logarithm of the odds."""
        from scipy.special import logit

        return np.asarray(logit(means))


# They all take exp(−|bz|), so that a kernel that wants several takes it once.


def _value(loss, z, b):
    m = b * z
    # log1p keeps all digits on both sides; exp never overflows.
    return math.log1p(math.exp(-abs(m))) + max(-m, 0.0)


def _derivative(loss, z, b):
    m = b * z
    e = math.exp(-abs(m))
    return -b * (e if m >= 0.0 else 1.0) / (1.0 + e)


def _curvature(loss, z, b):
    e = math.exp(-abs(b * z))
    return e / ((1.0 + e) * (1.0 + e))


def _model_curvature(loss, z, b):
    # Far on the wrong side there is a slope and next to no curvature, so a model would send the sample as far to the
    # other side; the parabola that touches the loss at z and at −z and lies above it does not.
    m = b * z
    e = math.exp(-abs(m))
    if m < -SATURATED:
        return (1.0 - e) / ((1.0 + e) * -2.0 * m)
    return e / ((1.0 + e) * (1.0 + e))


def _conjugate(loss, theta, b):
    # With p = −bθ in [0, 1]: p log p + (1 − p) log(1 − p).
    p = -b * theta
    if p < 0.0 or p > 1.0:
        return math.inf
    total = 0.0
    if p > 0.0:
        total += p * math.log(p)
    if p < 1.0:
        total += (1.0 - p) * math.log1p(-p)
    return total


define(
    Logistic,
    value=_value,
    derivative=_derivative,
    curvature=_curvature,
    conjugate=_conjugate,
    model_curvature=_model_curvature,
)

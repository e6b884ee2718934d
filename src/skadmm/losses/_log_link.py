"""What losses with a logarithmic link share: the mean exp(z), and an exponential that overflows to infinity."""

import math

import numpy as np

from skadmm.kernels.compile import jitable

SATURATED = 8.0
"""Beyond this distance from its minimiser, on a flat side, a sample's model takes the curvature of the parabola whose
minimiser is that of the sample: the curvature itself would send the model exp(SATURATED) times as far."""
LARGEST_EXPONENT = 709.7
"""exp of more is infinite."""


@jitable
def exponential(z):
    """exp(z), infinite where it overflows."""
    return math.exp(z) if z < LARGEST_EXPONENT else math.inf


@jitable
def xlogx(t):
    """t log t, 0 at 0."""
    return t * math.log(t) if t > 0.0 else 0.0


def exp_mean(loss: object, margins: np.ndarray) -> np.ndarray:
    """exp(z)."""
    with np.errstate(over="ignore"):
        return np.exp(margins)


def log_link(loss: object, means: np.ndarray) -> np.ndarray:
    """log μ."""
    with np.errstate(divide="ignore"):
        return np.log(means)

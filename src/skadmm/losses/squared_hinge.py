"""The squared hinge loss."""

import math
from typing import NamedTuple

from skadmm.kernels.compile import facts
from skadmm.losses._base import define


@facts(name="squared-hinge", labels=True, attained=True, symmetric=True)
class SquaredHinge(NamedTuple):
    """The squared hinge loss for two classes, ℓ(z, b) = ½ max(0, 1 − bz)² with b ∈ {−1, +1}.

    Samples on the right side of the margin, bz ≥ 1, contribute nothing. There are no probabilities.

    See Also
    --------
    skadmm.losses.Logistic : The loss of logistic regression, with probabilities.

    Examples
    --------
    >>> from skadmm.losses import SquaredHinge, value
    >>> [value(SquaredHinge(), z, 1.0) for z in (-1.0, 0.0, 2.0)]
    [2.0, 0.5, 0.0]
    """

    @property
    def curvature_bound(self) -> float:
        return 1.0


def _value(loss, z, b):
    slack = max(0.0, 1.0 - b * z)
    return 0.5 * slack * slack


def _derivative(loss, z, b):
    return -b * max(0.0, 1.0 - b * z)


def _curvature(loss, z, b):
    return 1.0 if b * z < 1.0 else 0.0


def _conjugate(loss, theta, b):
    u = b * theta
    if u > 0.0:
        return math.inf
    return u + 0.5 * u * u


define(SquaredHinge, value=_value, derivative=_derivative, curvature=_curvature, conjugate=_conjugate)

"""The squared loss."""

from typing import NamedTuple

from skadmm.kernels.compile import facts
from skadmm.losses._base import define


@facts(name="squared", labels=False, attained=True, residual=True, gaussian=True)
class Squared(NamedTuple):
    """The squared loss for numbers, ℓ(z, b) = ½ (z − b)².

    See Also
    --------
    skadmm.losses.Huber : Less sensitive to outliers.

    Examples
    --------
    >>> from skadmm.losses import Squared, derivative, value
    >>> value(Squared(), 3.0, 1.0), derivative(Squared(), 3.0, 1.0)
    (2.0, 2.0)
    """

    @property
    def curvature_bound(self) -> float:
        return 1.0


def _value(loss, z, b):
    return 0.5 * (z - b) * (z - b)


def _derivative(loss, z, b):
    return z - b


def _curvature(loss, z, b):
    return 1.0


def _conjugate(loss, theta, b):
    return theta * (b + 0.5 * theta)


define(Squared, value=_value, derivative=_derivative, curvature=_curvature, conjugate=_conjugate)

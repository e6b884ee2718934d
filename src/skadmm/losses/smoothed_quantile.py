"""The quantile loss with a parabola in place of its kink."""

import math
import sys
from typing import NamedTuple, Self

from skadmm import _checks
from skadmm.kernels.compile import facts
from skadmm.losses._base import ROUNDING, define
from skadmm.losses.quantile import checked_quantile


@facts(name="smoothed-quantile", labels=False, attained=True, residual=True, examples=((0.9, 0.5), (0.1, 2.0)))
class SmoothedQuantile(NamedTuple):
    """The quantile loss with a parabola in place of its kink.

    The Moreau envelope of the quantile loss: with r = z − b, r²/(2·width) for −q·width ≤ r ≤ (1−q)·width, and the
    quantile loss less a constant beyond.

    Parameters
    ----------
    q : float in (0, 1)
        The quantile.
    width : float
        The width > 0 of the parabola, in units of the targets. The fit tends to that of the exact loss as it tends
        to 0.

    See Also
    --------
    skadmm.losses.Quantile : The exact loss.

    Examples
    --------
    >>> from skadmm.losses import SmoothedQuantile, value
    >>> [round(value(SmoothedQuantile(0.5, 1.0), z, 0.0), 3) for z in (0.2, 1.0)]
    [0.02, 0.375]
    """

    q: float = 0.5
    width: float = 0.1

    def prepared(self) -> Self:
        """The parameters checked."""
        width = _checks.number(self.width, "loss=SmoothedQuantile(...): width", above=0)
        return self._replace(q=checked_quantile(self.q, "SmoothedQuantile"), width=width)

    @property
    def curvature_bound(self) -> float:
        return 1.0 / self.width if self.width > 0.0 else math.inf

    def deviance(self, mean_loss: float, n_samples: int) -> float:
        """That of an asymmetric Laplace distribution whose scale is estimated."""
        return 2.0 * n_samples * math.log(max(mean_loss, sys.float_info.min))


def _derivative(loss, z, b):
    return min(max((z - b) / loss.width, -loss.q), 1.0 - loss.q)


def _value(loss, z, b):
    slope = min(max((z - b) / loss.width, -loss.q), 1.0 - loss.q)
    return slope * (z - b - 0.5 * loss.width * slope)


def _curvature(loss, z, b):
    scaled = (z - b) / loss.width
    return 1.0 / loss.width if -loss.q <= scaled <= 1.0 - loss.q else 0.0


def _conjugate(loss, theta, b):
    if theta < -loss.q - ROUNDING or theta > 1.0 - loss.q + ROUNDING:
        return math.inf
    theta = min(max(theta, -loss.q), 1.0 - loss.q)
    return theta * (b + 0.5 * loss.width * theta)


define(SmoothedQuantile, value=_value, derivative=_derivative, curvature=_curvature, conjugate=_conjugate)

"""The absolute error."""

import math
import sys
from typing import NamedTuple

from skadmm.kernels.compile import facts
from skadmm.losses._two_pieces import define_two_pieces


@facts(name="absolute", labels=False, attained=True, smooth=False, residual=True)
class Absolute(NamedTuple):
    """The absolute error: predictions are medians.

    ℓ(z, b) = |z − b|. It is minimised exactly, with a duality gap.

    See Also
    --------
    skadmm.losses.Quantile : For quantiles other than the median.

    Examples
    --------
    >>> from skadmm.losses import Absolute, value
    >>> value(Absolute(), 2.0, 0.5)
    1.5
    """

    @property
    def curvature_bound(self) -> float:
        return math.inf

    def deviance(self, mean_loss: float, n_samples: int) -> float:
        """That of a Laplace distribution whose scale is estimated."""
        return 2.0 * n_samples * math.log(max(mean_loss, sys.float_info.min))


define_two_pieces(Absolute, kink=lambda loss, b: b, lower=lambda loss, b: -1.0, upper=lambda loss, b: 1.0)

"""The hinge loss of support vector machines."""

import math
from typing import NamedTuple

from skadmm.kernels.compile import facts
from skadmm.losses._two_pieces import define_two_pieces


@facts(name="hinge", labels=True, attained=True, symmetric=True, smooth=False)
class Hinge(NamedTuple):
    """The hinge loss of support vector machines.

    ℓ(z, b) = max(0, 1 − bz), b ∈ {−1, +1}. It is minimised exactly, with a duality gap.

    See Also
    --------
    skadmm.losses.SquaredHinge : Its square, which is differentiable.

    Examples
    --------
    >>> from skadmm.losses import Hinge, value
    >>> [value(Hinge(), z, 1.0) for z in (0.0, 2.0)]
    [1.0, 0.0]
    """

    @property
    def curvature_bound(self) -> float:
        return math.inf


define_two_pieces(Hinge, kink=lambda loss, b: b, lower=lambda loss, b: min(-b, 0.0), upper=lambda loss, b: max(-b, 0.0))

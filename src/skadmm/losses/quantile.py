"""The quantile loss."""

import math
import sys
from typing import Any, NamedTuple, Self

from skadmm import _checks
from skadmm.kernels.compile import facts
from skadmm.losses._two_pieces import define_two_pieces


def checked_quantile(q: Any, name: str) -> float:
    """q, a number between 0 and 1."""
    number = _checks.number(q, f"loss={name}(...): q", above=0)
    if not number < 1.0:
        raise ValueError(f"loss={name}(...): q={q!r}: it takes a number between 0 and 1, both excluded")
    return number


@facts(name="quantile", labels=False, attained=True, smooth=False, residual=True, examples=((0.9,), (0.1,)))
class Quantile(NamedTuple):
    """The quantile loss: predictions are the q-quantile of the target.

    ℓ(z, b) = q·(b − z) for z ≤ b and (1 − q)·(z − b) for z ≥ b. It is minimised exactly, with a duality gap.

    Parameters
    ----------
    q : float in (0, 1)
        The quantile.

    See Also
    --------
    skadmm.losses.SmoothedQuantile : With a parabola in place of the kink.

    References
    ----------
    Koenker, R. and Bassett, G. (1978). Regression quantiles.

    Examples
    --------
    >>> from skadmm.losses import Quantile, value
    >>> [value(Quantile(0.75), z, 0.0) for z in (-1.0, 1.0)]
    [0.75, 0.25]
    """

    q: float = 0.5

    def prepared(self) -> Self:
        """q checked."""
        return self._replace(q=checked_quantile(self.q, "Quantile"))

    @property
    def curvature_bound(self) -> float:
        return math.inf

    def deviance(self, mean_loss: float, n_samples: int) -> float:
        """That of an asymmetric Laplace distribution whose scale is estimated."""
        return 2.0 * n_samples * math.log(max(mean_loss, sys.float_info.min))


define_two_pieces(Quantile, kink=lambda loss, b: b, lower=lambda loss, b: -loss.q, upper=lambda loss, b: 1.0 - loss.q)

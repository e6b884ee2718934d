"""Ridge, with optional weights."""

import math
from typing import Any, NamedTuple, Self

from skadmm.kernels.compile import facts, jitable
from skadmm.regularizers._base import checked_strength, checked_weights, define_separable


@facts(name="squared-l2", separable=True, smooth=True, subdifferentiable=True)
class SquaredL2(NamedTuple):
    """The squared ℓ2 norm, reg(v) = ½ · strength · Σ weights_j v_j².

    A coordinate with a weight of zero, such as an intercept, is not penalised.

    Parameters
    ----------
    strength : float
        The factor ≥ 0 of the whole function.
    weights : array-like, optional
        One number ≥ 0 per coordinate; all 1 by default. A coordinate of weight 0 is not penalised.

    See Also
    --------
    skadmm.regularizers.ElasticNet : With an ℓ1 norm added.

    Examples
    --------
    >>> import numpy as np
    >>> from skadmm import Problem
    >>> from skadmm.regularizers import SquaredL2
    >>> problem = Problem(np.eye(3), np.zeros(3), loss="squared", psi=SquaredL2(1.0))
    >>> problem.psi_value(np.array([3.0, -4.0, 0.0]))
    12.5
    >>> problem.prox_psi(np.array([3.0, -4.0, 0.0]))
    array([ 1.5, -2. ,  0. ])
    """

    strength: float = 1.0
    weights: Any = None

    def prepared(self, size: int, role: str) -> Self:
        return self._replace(strength=checked_strength(self, role), weights=checked_weights(self, role, size))

    @property
    def strong_convexity(self) -> float:
        return self.strength if self.weights is None or len(self.weights) == 0 else self.strength * min(self.weights)

    def lipschitz(self, size: int) -> float:
        return math.inf if self.strength > 0 else 0.0


@jitable
def _ridge(reg, j):
    return reg.strength if reg.weights.size == 0 else reg.strength * reg.weights[j]


def _conjugate_at(reg, j, w):
    ridge = _ridge(reg, j)
    if ridge == 0.0:
        return 0.0 if w == 0.0 else math.inf
    return 0.5 * w * w / ridge


define_separable(
    SquaredL2,
    value_at=lambda reg, j, v: 0.5 * _ridge(reg, j) * v * v,
    prox_at=lambda reg, j, v, step: v / (1.0 + step * _ridge(reg, j)),
    subgradient_at=lambda reg, j, v: _ridge(reg, j) * v,
    conjugate_at=_conjugate_at,
    dual_scale_at=lambda reg, j, w: 1.0 if _ridge(reg, j) > 0.0 or w == 0.0 else 0.0,
    dual_norm_at=lambda reg, j, w: 0.0 if w == 0.0 else math.inf,
)

"""The ℓ1 norm, with optional weights."""

import math
from typing import Any, NamedTuple, Self

import numpy as np

from skadmm.kernels.compile import facts, jitable
from skadmm.regularizers._base import checked_strength, checked_weights, define_separable, shrunk


@facts(name="l1", separable=True, smooth=False, subdifferentiable=True)
class L1(NamedTuple):
    """The weighted ℓ1 norm, reg(v) = strength · Σ weights_j |v_j|.

    Its proximal step sets small coordinates exactly to zero.

    Parameters
    ----------
    strength : float
        The factor ≥ 0 of the whole function.
    weights : array-like, optional
        One number ≥ 0 per coordinate; all 1 by default. A coordinate of weight 0 is not penalised.

    See Also
    --------
    skadmm.regularizers.ElasticNet : With a squared ℓ2 norm added.

    Examples
    --------
    >>> import numpy as np
    >>> from skadmm import Problem
    >>> from skadmm.regularizers import L1
    >>> problem = Problem(np.eye(3), np.zeros(3), loss="squared", psi=L1(1.0))
    >>> problem.psi_value(np.array([3.0, -4.0, 0.0]))
    7.0
    >>> problem.prox_psi(np.array([3.0, -4.0, 0.0]))
    array([ 2., -3.,  0.])
    """

    strength: float = 1.0
    weights: Any = None

    def prepared(self, size: int, role: str) -> Self:
        return self._replace(strength=checked_strength(self, role), weights=checked_weights(self, role, size))

    @property
    def strong_convexity(self) -> float:
        return 0.0

    def lipschitz(self, size: int) -> float:
        norm = math.sqrt(size) if self.weights is None or len(self.weights) == 0 else np.linalg.norm(self.weights)
        return float(self.strength * norm)


@jitable
def _threshold(reg, j):
    return reg.strength if reg.weights.size == 0 else reg.strength * reg.weights[j]


def _value_at(reg, j, v):
    return _threshold(reg, j) * abs(v)


def _prox_at(reg, j, v, step):
    # v minus its clip to the box: one branch-free expression.
    bound = step * _threshold(reg, j)
    return v - min(max(v, -bound), bound)


def _subgradient_at(reg, j, v):
    bound = _threshold(reg, j)
    if v > 0.0:
        return bound
    if v < 0.0:
        return -bound
    return 0.0


def _conjugate_at(reg, j, w):
    return 0.0 if abs(w) <= _threshold(reg, j) else math.inf


def _dual_scale_at(reg, j, w):
    bound = _threshold(reg, j)
    return 1.0 if abs(w) <= bound else shrunk(bound / abs(w), 1)


def _dual_norm_at(reg, j, w):
    bound = _threshold(reg, j)
    if w == 0.0:
        return 0.0
    return abs(w) / bound if bound > 0.0 else math.inf


define_separable(
    L1,
    value_at=_value_at,
    prox_at=_prox_at,
    subgradient_at=_subgradient_at,
    conjugate_at=_conjugate_at,
    dual_scale_at=_dual_scale_at,
    dual_norm_at=_dual_norm_at,
)

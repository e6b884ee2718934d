"""The elastic net: ℓ1 and ridge together."""

import math
from typing import Any, NamedTuple, Self

import numpy as np

from skadmm.kernels.compile import facts, jitable
from skadmm.regularizers._base import checked_strength, checked_weights, define_separable, shrunk


@facts(name="elastic-net", separable=True, smooth=False, subdifferentiable=True)
class ElasticNet(NamedTuple):
    """The elastic net, reg(v) = strength · (l1_ratio · Σ weights_j |v_j| + ½ (1 − l1_ratio) · ‖v‖²).

    Parameters
    ----------
    strength : float
        The factor ≥ 0 of the whole function.
    l1_ratio : float
        The share of the ℓ1 norm, between 0 and 1.
    weights : array-like, optional
        One number ≥ 0 per coordinate; all 1 by default. A coordinate of weight 0 has no ℓ1 penalty.

    See Also
    --------
    skadmm.regularizers.L1 : The ℓ1 norm alone.
    skadmm.regularizers.SquaredL2 : The squared ℓ2 norm alone.

    References
    ----------
    Zou, H. and Hastie, T. (2005). Regularization and variable selection via the elastic net.

    Examples
    --------
    >>> import numpy as np
    >>> from skadmm import Problem
    >>> from skadmm.regularizers import ElasticNet
    >>> problem = Problem(np.eye(3), np.zeros(3), loss="squared", psi=ElasticNet(1.0, l1_ratio=0.5))
    >>> problem.psi_value(np.array([3.0, -4.0, 0.0]))
    9.75
    >>> problem.prox_psi(np.array([3.0, -4.0, 0.0]))
    array([ 1.66666667, -2.33333333,  0.        ])
    """

    strength: float = 1.0
    l1_ratio: float = 0.5
    weights: Any = None

    def prepared(self, size: int, role: str) -> Self:
        l1_ratio = checked_strength(self, role, "l1_ratio")
        if l1_ratio > 1:
            raise ValueError(f"{role}=ElasticNet(...): l1_ratio must lie between 0 and 1, got {self.l1_ratio!r}")
        return self._replace(
            strength=checked_strength(self, role), l1_ratio=l1_ratio, weights=checked_weights(self, role, size)
        )

    @property
    def strong_convexity(self) -> float:
        return self.strength * (1.0 - self.l1_ratio)

    def lipschitz(self, size: int) -> float:
        if self.strong_convexity > 0:
            return math.inf
        norm = math.sqrt(size) if self.weights is None or len(self.weights) == 0 else np.linalg.norm(self.weights)
        return float(self.strength * self.l1_ratio * norm)


@jitable
def _threshold(reg, j):
    bound = reg.strength * reg.l1_ratio
    return bound if reg.weights.size == 0 else bound * reg.weights[j]


@jitable
def _ridge(reg):
    return reg.strength * (1.0 - reg.l1_ratio)


def _value_at(reg, j, v):
    return _threshold(reg, j) * abs(v) + 0.5 * _ridge(reg) * v * v


def _prox_at(reg, j, v, step):
    bound = step * _threshold(reg, j)
    return (v - min(max(v, -bound), bound)) / (1.0 + step * _ridge(reg))


def _subgradient_at(reg, j, v):
    bound = _threshold(reg, j)
    if v > 0.0:
        return bound + _ridge(reg) * v
    if v < 0.0:
        return -bound + _ridge(reg) * v
    return 0.0


def _conjugate_at(reg, j, w):
    excess = abs(w) - _threshold(reg, j)
    if excess <= 0.0:
        return 0.0
    ridge = _ridge(reg)
    return 0.5 * excess * excess / ridge if ridge > 0.0 else math.inf


def _dual_scale_at(reg, j, w):
    bound = _threshold(reg, j)
    return 1.0 if _ridge(reg) > 0.0 or abs(w) <= bound else shrunk(bound / abs(w), 1)


def _dual_norm_at(reg, j, w):
    bound = _threshold(reg, j)
    if w == 0.0:
        return 0.0
    return abs(w) / bound if bound > 0.0 else math.inf


define_separable(
    ElasticNet,
    value_at=_value_at,
    prox_at=_prox_at,
    subgradient_at=_subgradient_at,
    conjugate_at=_conjugate_at,
    dual_scale_at=_dual_scale_at,
    dual_norm_at=_dual_norm_at,
)

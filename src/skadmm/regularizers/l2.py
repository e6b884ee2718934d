"""The Euclidean norm."""

import math
from typing import NamedTuple, Self

from skadmm.kernels.compile import facts
from skadmm.regularizers._base import checked_strength, define, shrunk
from skadmm.regularizers._norms import norm_l2


@facts(name="l2", separable=False, smooth=False, subdifferentiable=True)
class L2(NamedTuple):
    """The Euclidean norm, reg(v) = strength · ‖v‖₂.

    All coordinates are zero together, or none is.

    Parameters
    ----------
    strength : float
        The factor ≥ 0 of the whole function.

    See Also
    --------
    skadmm.regularizers.GroupL2 : A sum of such norms over groups of coordinates.

    Examples
    --------
    >>> import numpy as np
    >>> from skadmm import Problem
    >>> from skadmm.regularizers import L2
    >>> problem = Problem(np.eye(3), np.zeros(3), loss="squared", psi=L2(1.0))
    >>> problem.psi_value(np.array([3.0, -4.0, 0.0]))
    5.0
    >>> problem.prox_psi(np.array([3.0, -4.0, 0.0]))
    array([ 2.4, -3.2,  0. ])
    """

    strength: float = 1.0

    def prepared(self, size: int, role: str) -> Self:
        return self._replace(strength=checked_strength(self, role))

    @property
    def strong_convexity(self) -> float:
        return 0.0

    def lipschitz(self, size: int) -> float:
        return self.strength


def _value(reg, v):
    return reg.strength * norm_l2(v, range(v.size))


def _prox(reg, v, step, out):
    bound = step * reg.strength
    norm = norm_l2(v, range(v.size))
    factor = 0.0 if norm <= bound else 1.0 - bound / norm
    for j in range(v.size):
        out[j] = factor * v[j]


def _subgradient(reg, v, out):
    norm = norm_l2(v, range(v.size))
    factor = reg.strength / norm if norm > 0.0 else 0.0
    for j in range(v.size):
        out[j] = factor * v[j]


def _conjugate(reg, w):
    return 0.0 if norm_l2(w, range(w.size)) <= reg.strength else math.inf


def _dual_scale(reg, w):
    norm = norm_l2(w, range(w.size))
    return 1.0 if norm <= reg.strength else shrunk(reg.strength / norm, w.size)


def _dual_norm(reg, w):
    norm = norm_l2(w, range(w.size))
    if norm == 0.0:
        return 0.0
    return norm / reg.strength if reg.strength > 0.0 else math.inf


define(
    L2,
    value=_value,
    prox=_prox,
    conjugate=_conjugate,
    dual_scale=_dual_scale,
    subgradient=_subgradient,
    dual_norm=_dual_norm,
)

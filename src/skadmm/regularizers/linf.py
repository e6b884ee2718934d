"""The largest absolute value."""

import math
from typing import NamedTuple, Self

from skadmm.kernels.compile import facts
from skadmm.regularizers._base import checked_strength, define, shrunk
from skadmm.regularizers._norms import clip_linf, norm_l1, norm_linf, subgradient_linf


@facts(name="linf", separable=False, smooth=False, subdifferentiable=True)
class LInf(NamedTuple):
    """The maximum norm, reg(v) = strength · ‖v‖∞.

    Its proximal step shortens the largest coordinates to one common size.

    Parameters
    ----------
    strength : float
        The factor ≥ 0 of the whole function.

    See Also
    --------
    skadmm.regularizers.GroupLInf : A sum of such norms over groups of coordinates.

    Examples
    --------
    >>> import numpy as np
    >>> from skadmm import Problem
    >>> from skadmm.regularizers import LInf
    >>> problem = Problem(np.eye(3), np.zeros(3), loss="squared", psi=LInf(1.0))
    >>> problem.psi_value(np.array([3.0, -4.0, 0.0]))
    4.0
    >>> problem.prox_psi(np.array([3.0, -4.0, 0.0]))
    array([ 3., -3.,  0.])
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
    return reg.strength * norm_linf(v, range(v.size))


def _prox(reg, v, step, out):
    clip_linf(v, range(v.size), step * reg.strength, out)


def _subgradient(reg, v, out):
    subgradient_linf(v, range(v.size), reg.strength, out)


def _conjugate(reg, w):
    return 0.0 if norm_l1(w, range(w.size)) <= reg.strength else math.inf


def _dual_scale(reg, w):
    norm = norm_l1(w, range(w.size))
    return 1.0 if norm <= reg.strength else shrunk(reg.strength / norm, w.size)


def _dual_norm(reg, w):
    norm = norm_l1(w, range(w.size))
    if norm == 0.0:
        return 0.0
    return norm / reg.strength if reg.strength > 0.0 else math.inf


define(
    LInf,
    value=_value,
    prox=_prox,
    conjugate=_conjugate,
    dual_scale=_dual_scale,
    subgradient=_subgradient,
    dual_norm=_dual_norm,
)

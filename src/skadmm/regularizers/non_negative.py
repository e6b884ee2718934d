"""The constraint v ≥ 0."""

import math
from typing import NamedTuple, Self

from skadmm.kernels.compile import facts
from skadmm.regularizers._base import define_separable


@facts(name="non-negative", separable=True, smooth=False, subdifferentiable=False)
class NonNegative(NamedTuple):
    """The constraint that every coordinate is at least zero.

    The function is 0 where every v_j ≥ 0 and infinite elsewhere.

    See Also
    --------
    skadmm.regularizers.Box : Bounds on both sides.

    Examples
    --------
    >>> import numpy as np
    >>> from skadmm import Problem
    >>> from skadmm.regularizers import NonNegative
    >>> problem = Problem(np.eye(3), np.zeros(3), loss="squared", psi=NonNegative())
    >>> problem.psi_value(np.array([3.0, -4.0, 0.0]))
    inf
    >>> problem.prox_psi(np.array([3.0, -4.0, 0.0]))
    array([3., 0., 0.])
    """

    def prepared(self, size: int, role: str) -> Self:
        return self

    @property
    def strong_convexity(self) -> float:
        return 0.0

    def lipschitz(self, size: int) -> float:
        return math.inf


def _clip_dual(reg, w, out):
    for j in range(w.size):
        out[j] = 0.0 if w[j] > 0.0 else w[j]


define_separable(
    NonNegative,
    value_at=lambda reg, j, v: 0.0 if v >= 0.0 else math.inf,
    prox_at=lambda reg, j, v, step: 0.0 if v < 0.0 else v,
    conjugate_at=lambda reg, j, w: 0.0 if w <= 0.0 else math.inf,
    dual_scale_at=lambda reg, j, w: 1.0 if w <= 0.0 else 0.0,
    clip_dual=_clip_dual,
)

"""No regulariser at all."""

import math
from typing import NamedTuple, Self

from skadmm.kernels.compile import facts
from skadmm.regularizers._base import define_separable


@facts(name="zero", separable=True, smooth=True, subdifferentiable=True)
class Zero(NamedTuple):
    """The function that is zero everywhere, reg(v) = 0.

    See Also
    --------
    skadmm.regularizers.as_regularizer : Takes it in place of None.

    Examples
    --------
    >>> import numpy as np
    >>> from skadmm import Problem
    >>> from skadmm.regularizers import Zero
    >>> problem = Problem(np.eye(3), np.zeros(3), loss="squared", psi=Zero())
    >>> problem.psi_value(np.array([3.0, -4.0, 0.0]))
    0.0
    >>> problem.prox_psi(np.array([3.0, -4.0, 0.0]))
    array([ 3., -4.,  0.])
    """

    def prepared(self, size: int, role: str) -> Self:
        return self

    @property
    def strong_convexity(self) -> float:
        return 0.0

    def lipschitz(self, size: int) -> float:
        return 0.0


define_separable(
    Zero,
    value_at=lambda reg, j, v: 0.0,
    prox_at=lambda reg, j, v, step: v,
    subgradient_at=lambda reg, j, v: 0.0,
    conjugate_at=lambda reg, j, w: 0.0 if w == 0.0 else math.inf,
    dual_scale_at=lambda reg, j, w: 1.0 if w == 0.0 else 0.0,
)

"""No regulariser at all."""

import math
from typing import NamedTuple, Self

from skadmm.kernels.compile import facts
from skadmm.regularizers._base import define_separable


@facts(name="zero", separable=True, smooth=True, subdifferentiable=True)
class Zero(NamedTuple):
    """reg(v) = 0."""

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

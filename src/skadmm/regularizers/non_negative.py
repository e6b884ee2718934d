"""The constraint v ≥ 0."""

import math
from typing import NamedTuple, Self

from skadmm.kernels.compile import facts
from skadmm.regularizers._base import define_separable


@facts(name="non-negative", separable=True, smooth=False, subdifferentiable=False)
class NonNegative(NamedTuple):
    """reg(v) = 0 where every v_j ≥ 0, infinite elsewhere."""

    def prepared(self, size: int, role: str) -> Self:
        return self

    @property
    def strong_convexity(self) -> float:
        return 0.0

    def lipschitz(self, size: int) -> float:
        return math.inf


define_separable(
    NonNegative,
    value_at=lambda reg, j, v: 0.0 if v >= 0.0 else math.inf,
    prox_at=lambda reg, j, v, step: 0.0 if v < 0.0 else v,
    conjugate_at=lambda reg, j, w: 0.0 if w <= 0.0 else math.inf,
    dual_scale_at=lambda reg, j, w: 1.0 if w <= 0.0 else 0.0,
)

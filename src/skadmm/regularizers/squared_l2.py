"""Ridge."""

import math
from typing import NamedTuple, Self

from skadmm._compile import facts
from skadmm.regularizers._base import checked_strength, define_separable


@facts(name="squared-l2", separable=True, smooth=True, subdifferentiable=True)
class SquaredL2(NamedTuple):
    """reg(v) = ½ · strength · ‖v‖²."""

    strength: float = 1.0

    def prepared(self, size: int, role: str) -> Self:
        return self._replace(strength=checked_strength(self, role))

    @property
    def strong_convexity(self) -> float:
        return self.strength

    def lipschitz(self, size: int) -> float:
        return math.inf if self.strength > 0 else 0.0


def _conjugate_at(reg, j, w):
    if reg.strength == 0.0:
        return 0.0 if w == 0.0 else math.inf
    return 0.5 * w * w / reg.strength


define_separable(
    SquaredL2,
    value_at=lambda reg, j, v: 0.5 * reg.strength * v * v,
    prox_at=lambda reg, j, v, step: v / (1.0 + step * reg.strength),
    subgradient_at=lambda reg, j, v: reg.strength * v,
    conjugate_at=_conjugate_at,
    dual_scale_at=lambda reg, j, w: 1.0 if reg.strength > 0.0 or w == 0.0 else 0.0,
    dual_norm_at=lambda reg, j, w: 0.0 if w == 0.0 else math.inf,
)

"""Two regularisers on the two parts of one vector, under one strength: a penalty on Ax with a share of the ℓ1 norm."""

from typing import Any, NamedTuple, Self

import numpy as np

from skadmm.kernels.compile import facts
from skadmm.regularizers import define
from skadmm.regularizers._base import checked_strength, conjugate, dual_norm, dual_scale, prox, subgradient, value


@facts(name="mixture", separable=False, smooth=False, allocates=True)
class Mixture(NamedTuple):
    """reg([v; z]) = strength · (first(v) + second(z)), v of length `split`.

    :class:`~skadmm.regularizers.Stacked` is the same function without a strength. A path needs the strength.
    """

    strength: float
    first: Any
    second: Any
    split: int

    @property
    def subdifferentiable(self) -> bool:
        return bool(self.first.subdifferentiable and self.second.subdifferentiable)

    def prepared(self, size: int, role: str) -> Self:
        return self._replace(
            strength=checked_strength(self, role),
            first=self.first.prepared(self.split, role),
            second=self.second.prepared(size - self.split, role),
        )

    @property
    def strong_convexity(self) -> float:
        return self.strength * min(self.first.strong_convexity, self.second.strong_convexity)

    def lipschitz(self, size: int) -> float:
        first, second = self.first.lipschitz(self.split), self.second.lipschitz(size - self.split)
        return float(self.strength * np.hypot(first, second)) if self.strength > 0.0 else 0.0


def _value(reg, v):
    if reg.strength == 0.0:
        return 0.0
    return reg.strength * (value(reg.first, v[: reg.split]) + value(reg.second, v[reg.split :]))


def _prox(reg, v, step, out):
    if reg.strength == 0.0:
        out[:] = v
        return
    prox(reg.first, v[: reg.split], step * reg.strength, out[: reg.split])
    prox(reg.second, v[reg.split :], step * reg.strength, out[reg.split :])


def _subgradient(reg, v, out):
    subgradient(reg.first, v[: reg.split], out[: reg.split])
    subgradient(reg.second, v[reg.split :], out[reg.split :])
    for j in range(v.size):
        out[j] *= reg.strength


def _conjugate(reg, w):
    """(sF)*(w) = s F*(w/s)."""
    if reg.strength == 0.0:
        return 0.0 if np.all(w == 0.0) else np.inf
    u = w / reg.strength
    return reg.strength * (conjugate(reg.first, u[: reg.split]) + conjugate(reg.second, u[reg.split :]))


def _dual_scale(reg, w):
    if reg.strength == 0.0:
        return 1.0 if np.all(w == 0.0) else 0.0
    u = w / reg.strength
    return min(dual_scale(reg.first, u[: reg.split]), dual_scale(reg.second, u[reg.split :]))


def _dual_norm(reg, w):
    if reg.strength == 0.0:
        return 0.0 if np.all(w == 0.0) else np.inf
    return max(dual_norm(reg.first, w[: reg.split]), dual_norm(reg.second, w[reg.split :])) / reg.strength


define(
    Mixture,
    value=_value,
    prox=_prox,
    conjugate=_conjugate,
    dual_scale=_dual_scale,
    subgradient=_subgradient,
    dual_norm=_dual_norm,
)

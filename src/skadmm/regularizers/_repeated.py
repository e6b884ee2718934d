"""One regulariser on every part of a vector that has equal parts: the penalty of each of several outputs."""

from functools import singledispatch
from typing import Any, NamedTuple, Self

import numpy as np

from skadmm.kernels.compile import facts
from skadmm.regularizers._base import (
    attach,
    clip_dual,
    conjugate,
    conjugate_at,
    define,
    dual_norm,
    dual_norm_at,
    dual_scale,
    dual_scale_at,
    prox,
    prox_at,
    subgradient,
    subgradient_at,
    value,
    value_at,
    with_strength,
)
from skadmm.regularizers.elastic_net import ElasticNet
from skadmm.regularizers.l1 import L1


@facts(name="repeated")
class Repeated(NamedTuple):
    """reg([v_1; …; v_k]) = each(v_1) + … + each(v_k), every part of length `size`.

    The type does not depend on k, so kernels are compiled once for any number of parts; with
    :class:`~skadmm.regularizers.Stacked` each number would have kernels of its own.
    """

    each: Any
    size: int

    @property
    def separable(self) -> bool:
        return bool(self.each.separable)

    @property
    def smooth(self) -> bool:
        return bool(self.each.smooth)

    @property
    def subdifferentiable(self) -> bool:
        return bool(self.each.subdifferentiable)

    @property
    def strength(self) -> float:
        """The strength of each part."""
        return float(self.each.strength)

    def prepared(self, size: int, role: str) -> Self:
        if size % self.size:
            raise ValueError(f"{role}=Repeated(...): size={self.size} does not divide the length {size}")
        return self._replace(each=self.each.prepared(self.size, role))

    @property
    def strong_convexity(self) -> float:
        return float(self.each.strong_convexity)

    def lipschitz(self, size: int) -> float:
        return float(np.sqrt(size // self.size) * self.each.lipschitz(self.size))


@with_strength.register
def _(reg: Repeated, strength: float, role: str = "psi") -> Any:
    return reg._replace(each=with_strength(reg.each, strength, role))


@singledispatch
def repeated(reg: Any, size: int, times: int) -> Any:
    """A regulariser of vectors of length `size` on each of `times` such parts of a longer vector."""
    return Repeated(reg, size)


@repeated.register(L1)
@repeated.register(ElasticNet)
def _(reg: Any, size: int, times: int) -> Any:
    """The same regulariser of the longer vector, for which there are special solvers."""
    return reg if reg.weights is None else reg._replace(weights=np.tile(reg.weights, times))


def _value(reg, v):
    total = 0.0
    for start in range(0, v.size, reg.size):
        total += value(reg.each, v[start : start + reg.size])
    return total


def _prox(reg, v, step, out):
    for start in range(0, v.size, reg.size):
        prox(reg.each, v[start : start + reg.size], step, out[start : start + reg.size])


def _subgradient(reg, v, out):
    for start in range(0, v.size, reg.size):
        subgradient(reg.each, v[start : start + reg.size], out[start : start + reg.size])


def _conjugate(reg, w):
    total = 0.0
    for start in range(0, w.size, reg.size):
        total += conjugate(reg.each, w[start : start + reg.size])
    return total


def _dual_scale(reg, w):
    scale = 1.0
    for start in range(0, w.size, reg.size):
        scale = min(scale, dual_scale(reg.each, w[start : start + reg.size]))
    return scale


def _clip_dual(reg, w, out):
    for start in range(0, w.size, reg.size):
        clip_dual(reg.each, w[start : start + reg.size], out[start : start + reg.size])


def _dual_norm(reg, w):
    largest = 0.0
    for start in range(0, w.size, reg.size):
        largest = max(largest, dual_norm(reg.each, w[start : start + reg.size]))
    return largest


define(
    Repeated,
    value=_value,
    prox=_prox,
    conjugate=_conjugate,
    dual_scale=_dual_scale,
    subgradient=_subgradient,
    dual_norm=_dual_norm,
    clip_dual=_clip_dual,
)

# Only reached where `each` is separable; Numba compiles them on that first use.
attach(value_at, Repeated, lambda reg, j, v: value_at(reg.each, j % reg.size, v))
attach(prox_at, Repeated, lambda reg, j, v, step: prox_at(reg.each, j % reg.size, v, step))
attach(subgradient_at, Repeated, lambda reg, j, v: subgradient_at(reg.each, j % reg.size, v))
attach(conjugate_at, Repeated, lambda reg, j, w: conjugate_at(reg.each, j % reg.size, w))
attach(dual_scale_at, Repeated, lambda reg, j, w: dual_scale_at(reg.each, j % reg.size, w))
attach(dual_norm_at, Repeated, lambda reg, j, w: dual_norm_at(reg.each, j % reg.size, w))

"""Two regularisers on the two parts of one vector: how Ω is folded into ψ."""

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
from skadmm.regularizers.box import Box
from skadmm.regularizers.non_negative import NonNegative
from skadmm.regularizers.zero import Zero


@facts(name="stacked")
class Stacked(NamedTuple):
    """The sum of two functions of two parts of a vector, reg([v; z]) = first(v) + second(z).

    Differences that are penalised by one function and coefficients by another are one ψ with a stacked A. It has a
    strength, that of `first`, where `second` is a constraint.

    Parameters
    ----------
    first : regulariser
        Of the first `split` coordinates.
    second : regulariser
        Of the others.
    split : int
        The number of coordinates in the first part.

    See Also
    --------
    skadmm.operators.stack : The matrix whose parts belong to it.

    Examples
    --------
    >>> import numpy as np
    >>> from skadmm import Problem
    >>> from skadmm.operators import chain, stack
    >>> from skadmm.regularizers import L1, NonNegative, Stacked
    >>> psi = Stacked(L1(0.1), NonNegative(), split=2)
    >>> problem = Problem(np.eye(3), np.zeros(3), loss="squared", psi=psi, A=stack(chain(3), "identity"))
    >>> problem.penalty(np.array([1.0, 1.0, 3.0]))
    0.2
    """

    first: Any
    second: Any
    split: int

    @property
    def separable(self) -> bool:
        return bool(self.first.separable and self.second.separable)

    @property
    def smooth(self) -> bool:
        return bool(self.first.smooth and self.second.smooth)

    @property
    def subdifferentiable(self) -> bool:
        return bool(self.first.subdifferentiable and self.second.subdifferentiable)

    @property
    def strength(self) -> float:
        """The strength of `first`."""
        return float(self.first.strength)

    def prepared(self, size: int, role: str) -> Self:
        if not 0 <= self.split <= size:
            raise ValueError(f"{role}=Stacked(...): split must lie between 0 and {size}, got {self.split!r}")
        return self._replace(
            first=self.first.prepared(self.split, role), second=self.second.prepared(size - self.split, role)
        )

    @property
    def strong_convexity(self) -> float:
        return min(self.first.strong_convexity, self.second.strong_convexity)

    def lipschitz(self, size: int) -> float:
        return float(np.hypot(self.first.lipschitz(self.split), self.second.lipschitz(size - self.split)))


@with_strength.register
def _(reg: Stacked, strength: float, role: str = "psi") -> Any:
    if not isinstance(reg.second, (Box, NonNegative, Zero)):
        raise TypeError(
            f"{role}=Stacked(...) has a strength only where its second part is a constraint, "
            f"got {type(reg.second).__name__}"
        )
    return reg._replace(first=with_strength(reg.first, strength, role))


def _value(reg, v):
    return value(reg.first, v[: reg.split]) + value(reg.second, v[reg.split :])


def _prox(reg, v, step, out):
    prox(reg.first, v[: reg.split], step, out[: reg.split])
    prox(reg.second, v[reg.split :], step, out[reg.split :])


def _subgradient(reg, v, out):
    subgradient(reg.first, v[: reg.split], out[: reg.split])
    subgradient(reg.second, v[reg.split :], out[reg.split :])


def _conjugate(reg, w):
    return conjugate(reg.first, w[: reg.split]) + conjugate(reg.second, w[reg.split :])


def _dual_scale(reg, w):
    return min(dual_scale(reg.first, w[: reg.split]), dual_scale(reg.second, w[reg.split :]))


def _clip_dual(reg, w, out):
    clip_dual(reg.first, w[: reg.split], out[: reg.split])
    clip_dual(reg.second, w[reg.split :], out[reg.split :])


def _dual_norm(reg, w):
    return max(dual_norm(reg.first, w[: reg.split]), dual_norm(reg.second, w[reg.split :]))


define(
    Stacked,
    value=_value,
    prox=_prox,
    conjugate=_conjugate,
    dual_scale=_dual_scale,
    subgradient=_subgradient,
    dual_norm=_dual_norm,
    clip_dual=_clip_dual,
)


def _value_at(reg, j, v):
    return value_at(reg.first, j, v) if j < reg.split else value_at(reg.second, j - reg.split, v)


def _prox_at(reg, j, v, step):
    return prox_at(reg.first, j, v, step) if j < reg.split else prox_at(reg.second, j - reg.split, v, step)


def _subgradient_at(reg, j, v):
    return subgradient_at(reg.first, j, v) if j < reg.split else subgradient_at(reg.second, j - reg.split, v)


def _conjugate_at(reg, j, w):
    return conjugate_at(reg.first, j, w) if j < reg.split else conjugate_at(reg.second, j - reg.split, w)


def _dual_scale_at(reg, j, w):
    return dual_scale_at(reg.first, j, w) if j < reg.split else dual_scale_at(reg.second, j - reg.split, w)


def _dual_norm_at(reg, j, w):
    return dual_norm_at(reg.first, j, w) if j < reg.split else dual_norm_at(reg.second, j - reg.split, w)


# Only reached when both parts are separable; Numba compiles them on that first use.
attach(value_at, Stacked, _value_at)
attach(prox_at, Stacked, _prox_at)
attach(subgradient_at, Stacked, _subgradient_at)
attach(conjugate_at, Stacked, _conjugate_at)
attach(dual_scale_at, Stacked, _dual_scale_at)
attach(dual_norm_at, Stacked, _dual_norm_at)

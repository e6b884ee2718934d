"""The ℓ1/ℓ∞ mixed norm: the largest absolute value per group."""

import math
from typing import Any, NamedTuple, Self

import numpy as np

from skadmm.kernels.compile import facts
from skadmm.regularizers._base import checked_strength, define, shrunk
from skadmm.regularizers._groups import checked_group_weights, checked_groups
from skadmm.regularizers._norms import clip_linf, norm_l1, norm_linf, subgradient_linf


@facts(name="group-linf", separable=False, smooth=False, subdifferentiable=True)
class GroupLInf(NamedTuple):
    """reg(v) = strength · Σ_g weights_g ‖v_g‖∞ over disjoint groups; coordinates in no group are free.

    `groups` and `weights` are those of :class:`~skadmm.regularizers.GroupL2`.

    Reference: Turlach, B. A., Venables, W. N. and Wright, S. J. (2005). Simultaneous variable selection.
    """

    strength: float = 1.0
    groups: Any = None
    weights: Any = None

    def prepared(self, size: int, role: str) -> Self:
        groups = checked_groups(self, role, size)
        weights = checked_group_weights(self, role, groups)
        return self._replace(strength=checked_strength(self, role), groups=groups, weights=weights)

    @property
    def strong_convexity(self) -> float:
        return 0.0

    def lipschitz(self, size: int) -> float:
        return self.strength * float(np.linalg.norm(self.weights))


def _value(reg, v):
    members, starts = reg.groups
    total = 0.0
    for g in range(starts.size - 1):
        total += reg.weights[g] * norm_linf(v, members[starts[g] : starts[g + 1]])
    return reg.strength * total


def _prox(reg, v, step, out):
    members, starts = reg.groups
    for g in range(starts.size - 1):
        clip_linf(v, members[starts[g] : starts[g + 1]], step * reg.strength * reg.weights[g], out)
    for j in members[starts[-1] :]:
        out[j] = v[j]


def _subgradient(reg, v, out):
    members, starts = reg.groups
    for g in range(starts.size - 1):
        subgradient_linf(v, members[starts[g] : starts[g + 1]], reg.strength * reg.weights[g], out)
    for j in members[starts[-1] :]:
        out[j] = 0.0


def _conjugate(reg, w):
    members, starts = reg.groups
    for g in range(starts.size - 1):
        if not norm_l1(w, members[starts[g] : starts[g + 1]]) <= reg.strength * reg.weights[g]:
            return math.inf
    for j in members[starts[-1] :]:
        if w[j] != 0.0:
            return math.inf
    return 0.0


def _dual_scale(reg, w):
    members, starts = reg.groups
    scale = 1.0
    for g in range(starts.size - 1):
        group = members[starts[g] : starts[g + 1]]
        bound = reg.strength * reg.weights[g]
        norm = norm_l1(w, group)
        if not norm <= bound:
            scale = min(scale, shrunk(bound / norm, group.size))
    for j in members[starts[-1] :]:
        if w[j] != 0.0:
            return 0.0
    return scale


def _dual_norm(reg, w):
    members, starts = reg.groups
    largest = 0.0
    for g in range(starts.size - 1):
        bound = reg.strength * reg.weights[g]
        norm = norm_l1(w, members[starts[g] : starts[g + 1]])
        if norm > 0.0:
            largest = max(largest, norm / bound if bound > 0.0 else math.inf)
    for j in members[starts[-1] :]:
        if w[j] != 0.0:
            return math.inf
    return largest


define(
    GroupLInf,
    value=_value,
    prox=_prox,
    conjugate=_conjugate,
    dual_scale=_dual_scale,
    subgradient=_subgradient,
    dual_norm=_dual_norm,
)

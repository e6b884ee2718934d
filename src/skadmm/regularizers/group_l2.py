"""The group lasso: a Euclidean norm per group."""

import math
from typing import Any, NamedTuple, Self

import numpy as np

from skadmm.kernels.compile import facts
from skadmm.regularizers._base import checked_strength, define, shrunk
from skadmm.regularizers._groups import checked_group_weights, checked_groups
from skadmm.regularizers._norms import norm_l2


@facts(name="group-l2", separable=False, smooth=False, subdifferentiable=True)
class GroupL2(NamedTuple):
    """reg(v) = strength · Σ_g weights_g ‖v_g‖₂ over disjoint groups; coordinates in no group are free.

    `groups` is a list of index arrays, an integer label per coordinate (negative: in no group), or None for one group
    of all. `weights` are 1 unless given, in the order of the groups or of the labels.

    Reference: Yuan, M. and Lin, Y. (2006). Model selection and estimation in regression with grouped variables.
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
        total += reg.weights[g] * norm_l2(v, members[starts[g] : starts[g + 1]])
    return reg.strength * total


def _prox(reg, v, step, out):
    members, starts = reg.groups
    for g in range(starts.size - 1):
        group = members[starts[g] : starts[g + 1]]
        bound = step * reg.strength * reg.weights[g]
        norm = norm_l2(v, group)
        factor = 0.0 if norm <= bound else 1.0 - bound / norm
        for j in group:
            out[j] = factor * v[j]
    for j in members[starts[-1] :]:
        out[j] = v[j]


def _subgradient(reg, v, out):
    members, starts = reg.groups
    for g in range(starts.size - 1):
        group = members[starts[g] : starts[g + 1]]
        norm = norm_l2(v, group)
        factor = reg.strength * reg.weights[g] / norm if norm > 0.0 else 0.0
        for j in group:
            out[j] = factor * v[j]
    for j in members[starts[-1] :]:
        out[j] = 0.0


def _conjugate(reg, w):
    members, starts = reg.groups
    for g in range(starts.size - 1):
        if not norm_l2(w, members[starts[g] : starts[g + 1]]) <= reg.strength * reg.weights[g]:
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
        norm = norm_l2(w, group)
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
        norm = norm_l2(w, members[starts[g] : starts[g + 1]])
        if norm > 0.0:
            largest = max(largest, norm / bound if bound > 0.0 else math.inf)
    for j in members[starts[-1] :]:
        if w[j] != 0.0:
            return math.inf
    return largest


define(
    GroupL2,
    value=_value,
    prox=_prox,
    conjugate=_conjugate,
    dual_scale=_dual_scale,
    subgradient=_subgradient,
    dual_norm=_dual_norm,
)

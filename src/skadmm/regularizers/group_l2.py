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
    """The group lasso penalty, reg(v) = strength · Σ_g weights_g ‖v_g‖₂ over disjoint groups.

    A group is zero as a whole or not at all. Coordinates in no group are not penalised.

    Parameters
    ----------
    strength : float
        The factor ≥ 0 of the whole function.
    groups : list of arrays, array of int, or None
        The coordinates of each group; or one integer label per coordinate, negative where it is in no group; or None
        for one group of all coordinates.
    weights : array-like, optional
        One number ≥ 0 per group, in the order of the groups or of the sorted labels; all 1 by default.

    See Also
    --------
    skadmm.operators.overlapping_groups : Groups that overlap.
    skadmm.regularizers.GroupLInf : The maximum norm within each group.

    References
    ----------
    Yuan, M. and Lin, Y. (2006). Model selection and estimation in regression with grouped variables.

    Examples
    --------
    >>> import numpy as np
    >>> from skadmm import Problem
    >>> from skadmm.regularizers import GroupL2
    >>> problem = Problem(np.eye(3), np.zeros(3), loss="squared", psi=GroupL2(1.0, groups=[[0, 1], [2]]))
    >>> problem.psi_value(np.array([3.0, -4.0, 0.0]))
    5.0
    >>> problem.prox_psi(np.array([3.0, -4.0, 0.0]))
    array([ 2.4, -3.2,  0. ])
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

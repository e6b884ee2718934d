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
    """The sum of maximum norms, reg(v) = strength · Σ_g weights_g ‖v_g‖∞ over disjoint groups.

    A group is zero as a whole or not at all, and its largest coordinates tend to have one size. Coordinates in no group
    are not penalised.

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
    skadmm.regularizers.GroupL2 : The Euclidean norm within each group.

    References
    ----------
    Turlach, B. A., Venables, W. N. and Wright, S. J. (2005). Simultaneous variable selection.

    Examples
    --------
    >>> import numpy as np
    >>> from skadmm import Problem
    >>> from skadmm.regularizers import GroupLInf
    >>> problem = Problem(np.eye(3), np.zeros(3), loss="squared", psi=GroupLInf(1.0, groups=[[0, 1], [2]]))
    >>> problem.psi_value(np.array([3.0, -4.0, 0.0]))
    4.0
    >>> problem.prox_psi(np.array([3.0, -4.0, 0.0]))
    array([ 3., -3.,  0.])
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

"""The duality gap: a bound of the suboptimality that needs no knowledge of the optimum.

With β the multiplier of A x + B y = c and θᵢ a slope for each sample, the dual objective is

    D(θ, β) = −(1/n) Σ ℓ*(θᵢ) − Ω*(−r) − ψ*(−Bᵀβ) − β·c,      r = (1/n) Xᵀθ + Aᵀβ

and P(x) − D bounds P(x) − P* whenever D is finite. Two things stand in the way. Without Ω, D is finite only when r = 0
exactly, so β is corrected: on rows of A that hold a single feature, or by least squares where A has full column rank.
And β must lie in the domain of ψ*: scaling θ and β together keeps r = 0 and brings it there.

A feature that no row of A reaches (an intercept) has only the data's part of r, so θ itself must be orthogonal to it; a
Newton correction of the feature's coefficient makes it so.

Rows of A on which ψ is a cone, such as x ≥ 0, allow no scaling: their multipliers are clipped to the side that the cone
allows, and the other rows take the correction.

A squared ℓ2 with weights holds the features whose weight is positive. On the others r must vanish as it does without Ω:
by θ where no row of A reaches the feature, by β on a row that holds it alone where one does.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp

from skadmm.backends.base import FAR_BELOW
from skadmm.kernels.compile import compiled
from skadmm.operators.clusters import clusters
from skadmm.operators.row_correction import correction, gram_of, is_cheap, is_orthonormal, symmetric_factor
from skadmm.problem.free_columns import ORTHOGONAL, LocalFreeColumns, orthogonal
from skadmm.problem.kkt import KKT
from skadmm.problem.problem import Problem
from skadmm.regularizers import SquaredL2, Zero
from skadmm.regularizers._base import clip_dual, clips_dual, conjugate, dual_scale

ZERO_OBJECTIVE = 1e-5
"""The gap is measured against at least this share of the scale of the loss: where the minimum is zero, nothing else is.
The scale is the loss at zero, or at the best constant margin where the loss at zero is much larger."""
HUGE, ROUNDING = 1e6, 1e-12
"""From an objective of more than HUGE a dual objective is lowered by ROUNDING times it, where the loss at zero is far
above that at the best constant margin."""
TINY = float(np.finfo(float).tiny)
"""The smallest normal number."""
CONTRADICTION = 1e-9
"""A lower bound above the objective of a point by more than this share of its scale consists of rounding errors."""


class Certificate(NamedTuple):
    """A pair of bounds: ``dual`` ≤ P* ≤ ``primal``."""

    primal: float
    dual: float
    """−∞ where no dual point could be built."""
    scale: float = 0.0
    """What the gap is measured against."""

    @property
    def gap(self) -> float:
        """P − D, a bound of the suboptimality; infinite without a dual point."""
        return max(self.primal - self.dual, 0.0)

    @property
    def relative(self) -> float:
        """The gap relative to the objective, or to ``scale`` where that is larger."""
        return self.gap / max(abs(self.primal), self.scale, TINY)


class Assessment(NamedTuple):
    """What a solver knows about its own point, where the general evaluation would lose digits or repeat its work."""

    loss: float
    """The mean loss."""
    gradient: np.ndarray
    """The gradient of the mean loss."""
    kkt: KKT
    certificate: Certificate
    more_accurate: bool = True
    """False where the general evaluation would be as accurate, and is only saved."""


_conjugate = compiled(conjugate)
_dual_scale = compiled(dual_scale)
_clip_dual = compiled(clip_dual)


def dual_rounding(problem: Problem, objective: float) -> float:
    """What a dual objective from a point with this objective may be too large by, where the point is far above any
    solution: the terms of the dual objective are of the size of the objective, and it outlives the point."""
    size = abs(objective)
    return 0.0 if not size > HUGE or problem.far_constant is None else ROUNDING * size


@dataclass(eq=False)
class Certifier:
    """Dual points for one problem. ``kind`` says what they rest on:

    "l1" (a row of A for every feature), "full-rank" (least squares), "omega" (Ω bounds the residual), "none" (no
    certificate: there is only the KKT residual).
    """

    problem: Problem

    def reweighted(self, problem: Problem) -> Self:
        """The same for a problem that differs in the strength of ψ alone: what depends on A and on the rows is kept."""
        other = copy.copy(self)
        other.problem = problem
        return other

    @cached_property
    def _far_above(self) -> float:
        """An objective of this size is measured against itself; others may be smaller than the least size."""
        return FAR_BELOW * abs(self.problem.loss_at_zero)

    def size(self, objective: float) -> float:
        """What a gap at a point with this objective is measured against."""
        size = abs(objective)
        return size if size >= self._far_above else max(size, ZERO_OBJECTIVE * self.problem.scales(size).loss)

    def pair(self, primal: float, dual: float) -> Certificate:
        """Bounds of the optimum of this problem."""
        dual = self.consistent(dual - dual_rounding(self.problem, primal), primal)
        return Certificate(primal, dual, self.size(primal))

    def consistent(self, bound: float, objective: float) -> float:
        """A lower bound of the optimum; −∞ where the objective of a point contradicts it."""
        return -np.inf if bound > objective and bound - objective > CONTRADICTION * self.size(objective) else bound

    @cached_property
    def unheld(self) -> np.ndarray:
        """Which features Ω does not hold: Ω* is finite only where r is zero on them."""
        omega, d = self.problem.omega, self.problem.n_features
        if isinstance(omega, SquaredL2):
            return omega.weights * omega.strength == 0.0 if omega.weights.size else np.full(d, omega.strength == 0.0)
        return np.full(d, isinstance(omega, Zero))

    @cached_property
    def free(self) -> np.ndarray:
        """Features that no row of A reaches and no Ω holds: θ must be orthogonal to their columns."""
        reached = np.zeros(self.problem.n_features, bool)
        A = self.problem.constraint.A
        reached[A.indices[A.data != 0]] = True
        return np.flatnonzero(self.unheld & ~reached)

    @cached_property
    def cones(self) -> np.ndarray:
        """The rows of A on which ψ is a cone: ψ* is infinite on one side of zero, or on both."""
        m, B, psi = self.problem.n_split, self.problem.constraint.B, self.problem.psi
        found = np.zeros(self.problem.n_constraints, bool)
        if m == 0 or B is not None or not clips_dual(psi):
            return found
        for sign in (-1.0, 1.0):
            clipped = np.empty(m)
            _clip_dual(psi, np.full(m, sign), clipped)
            found |= clipped != sign
        return found

    @cached_property
    def node_rows(self) -> tuple[np.ndarray, np.ndarray] | None:
        """For every feature a row of A, no cone, that holds it alone (−1 for none), and the entry there; None if one
        that is reached, and that Ω does not hold, has none."""
        A = self.problem.constraint.A
        counts = np.diff(A.indptr)
        single = np.flatnonzero((counts == 1) & ~self.cones)
        features, entries = A.indices[A.indptr[single]], A.data[A.indptr[single]]
        row = np.full(A.shape[1], -1)
        entry = np.ones(A.shape[1])
        # The largest entry takes the smallest correction.
        order = np.argsort(np.abs(entries))
        row[features[order]] = single[order]
        entry[features[order]] = entries[order]
        missing = (row < 0) & self.unheld
        missing[self.free] = False
        return None if missing.any() else (row, entry)

    @cached_property
    def _normal_solve(self) -> Any:
        """The reached features, the rows of A that are no cones, and v ↦ (AᵀA)⁻¹v for these rows and features; None
        where they have not full column rank."""
        whole = self.problem.constraint.A
        A = sp.csr_array(whole[~self.cones]) if self.cones.any() else whole
        is_held = np.ones(A.shape[1], bool)
        is_held[self.free] = False
        held = np.flatnonzero(is_held)
        if A.shape[0] < held.size or held.size == 0:
            return None
        narrow = int(np.diff(A.indptr).max()) <= 2
        if narrow and np.any(clusters(A, np.ones(A.shape[0], bool))[0][held] >= 0):
            return None
        part = A[:, held]
        if is_orthonormal(part):
            return held, part, np.copy
        gram = gram_of(part)
        if gram is None or not is_cheap(gram):
            return None
        factor = symmetric_factor(gram)
        if factor is None:
            return None
        pivots = np.abs(factor.U.diagonal())
        if pivots.min() <= 1e-12 * pivots.max():
            return None
        return held, part, factor.solve

    @cached_property
    def _bounded(self) -> bool:
        """Can every multiplier, clipped on cones, be scaled into the domains of ψ* and Ω*? Not so for a cone in Ω, or
        with a general B, where the slightest rounding on the wrong side makes the dual objective −∞."""
        problem, held = self.problem, (~self.unheld).astype(float)
        scaled = np.ones(problem.n_split)
        if self.cones.any():
            scaled[self.cones] = 0.0
        for reg, ones in ((problem.psi, scaled), (problem.omega, held)):
            if isinstance(reg, Zero) or ones.size == 0:
                continue
            if not min(_dual_scale(reg, ones), _dual_scale(reg, -ones)) > 0:
                return False
        return True

    @cached_property
    def kind(self) -> str:
        """What the dual point rests on."""
        problem = self.problem
        if not self._bounded:
            return "none"
        if not self.unheld.all():
            return "none" if self.node_rows is None else "omega"
        if problem.n_constraints == 0:
            return "none"
        if self.node_rows is not None:
            return "l1"
        return "full-rank" if self._normal_solve is not None else "none"

    def corrected(self, multiplier: np.ndarray, residual: np.ndarray) -> np.ndarray:
        """β changed so that Aᵀβ shrinks by `residual` on the reached features."""
        if self.node_rows is not None:
            row, entry = self.node_rows
            held = row >= 0
            changed = multiplier.copy()
            changed[row[held]] -= residual[held] / entry[held]
            return changed
        held, part, solve = self._normal_solve
        for _ in range(2):  # once more, for the rounding of an ill-conditioned AᵀA
            correction = part @ solve(residual[held])
            multiplier = multiplier.copy()
            multiplier[~self.cones] -= correction
            residual = residual.copy()
            residual[held] -= part.T @ correction
        return multiplier

    def settled(self, multiplier: np.ndarray, residual: np.ndarray, slack: np.ndarray) -> np.ndarray:
        """β changed on the rows in `slack` alone, by least squares, towards Aᵀβ less `residual`.

        Where y is zero β lies inside its bounds and may move; where y is not, it sits on the bound and must stay.
        """
        changed = multiplier.copy()
        changed[slack] += correction(self.problem.constraint.A[slack], residual)
        return changed

    def certify(
        self,
        primal: float,
        slopes: Any,
        gradient: np.ndarray,
        multiplier: np.ndarray,
        slack: np.ndarray | None = None,
    ) -> Certificate:
        """Bounds from θ = `slopes` of an evaluation, its sum `gradient` = (1/n)Xᵀθ, and a multiplier close to optimal.

        `slack` marks the rows where y is zero; with it a second, often far better, dual point is tried.
        """

        def mean_conjugate(scale: float) -> float:
            return self.problem.backend.mean_conjugate(slopes, scale)

        return self.bounds(primal, mean_conjugate, gradient, multiplier, slack)

    def bounds(
        self,
        primal: float,
        mean_conjugate: Callable[[float], float],
        gradient: np.ndarray,
        multiplier: np.ndarray,
        slack: np.ndarray | None = None,
    ) -> Certificate:
        """The same with slopes that are kept elsewhere: `mean_conjugate` maps a scale s to (1/n) Σ ℓ*(s θᵢ)."""
        if self.kind == "none":
            return self.pair(primal, -np.inf)
        scale, multiplier, residual = self.dual_point(gradient, multiplier, slack)
        problem, push = self.problem, -self.problem.constraint.Bt(multiplier)
        dual = -mean_conjugate(scale)
        dual -= _conjugate(problem.omega, -scale * residual) if self.kind == "omega" else 0.0
        dual -= _conjugate(problem.psi, scale * push) if push.size else 0.0
        dual -= scale * float(multiplier @ problem.constraint.c)
        return self.pair(primal, dual if np.isfinite(dual) else -np.inf)

    def dual_point(
        self, gradient: np.ndarray, multiplier: np.ndarray, slack: np.ndarray | None
    ) -> tuple[float, np.ndarray, np.ndarray]:
        """A scale, a multiplier and its residual r for which the dual objective is finite; the better of two."""
        dual_points = [self._feasible(gradient, multiplier)]
        if slack is not None and slack.any() and self.problem.constraint.B is None:
            residual = gradient + self.problem.constraint.At(multiplier)
            if np.abs(residual).max(initial=0.0) > ORTHOGONAL * np.abs(gradient).max(initial=0.0):
                dual_points.append(self._feasible(gradient, self.settled(multiplier, residual, slack)))
        # The dual objective grows with the scale, so one evaluation of the samples is enough.
        return max(dual_points, key=lambda dual_point: dual_point[0])

    def _feasible(self, gradient: np.ndarray, multiplier: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """A scale, a multiplier and its residual r for which the dual objective is finite."""
        problem = self.problem
        if self.cones.any():
            clipped = np.empty_like(multiplier)
            _clip_dual(problem.psi, multiplier, clipped)
            multiplier = clipped
        residual = gradient + problem.constraint.At(multiplier)
        if self.unheld.any():
            multiplier = self.corrected(multiplier, np.where(self.unheld, residual, 0.0))
            residual = np.where(self.unheld, 0.0, residual)
        push = -problem.constraint.Bt(multiplier)
        scale = _dual_scale(problem.psi, push) if push.size else 1.0
        if self.kind == "omega":
            scale = min(scale, _dual_scale(problem.omega, -residual))
        return scale, multiplier, residual

    @cached_property
    def _free_columns(self) -> LocalFreeColumns:
        backend: Any = self.problem.backend
        return LocalFreeColumns(backend.samples(), backend.rows_per_chunk, backend.between_chunks)

    def orthogonal_slopes(self, slopes: np.ndarray, margins: np.ndarray) -> tuple[np.ndarray, np.ndarray, int] | None:
        """θ made orthogonal to the free features' columns, its new gradient, and the samples touched."""
        if not self.problem.loss.smooth:  # no step changes its slopes little
            return None
        n, columns = self.problem.n_samples, self._free_columns
        columns.place(margins, slopes)
        gradient = orthogonal(columns, self.free)
        return None if gradient is None else (columns.taken(), gradient / n, 2 * n)

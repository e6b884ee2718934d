"""Signals over graphs and grids: accelerated alternating projections, one layer of chains at a time.

    minimise over x      ½ x·Hx − q·x + Σ_c g_c(x),      H diagonal

g_c is the ℓ1 norm of the differences along a layer of chains (``chain_layers.py``), or of single features. With s_c in
the domain of its conjugate, a set K_c, the dual problem is to bring Σ s_c as close to q as it can be:

    minimise over s_c ∈ K_c      ½ ‖q − Σ s_c‖² in the metric H⁻¹,      x = H⁻¹(q − Σ s_c)

The projection onto K_c is the dynamic programme of that layer, so a sweep projects onto one after the other. With
Nesterov's momentum between sweeps, restarted where it increases the dual objective, a gap of 1e-4 on an image takes
about twenty sweeps, and 1e-10 about a hundred. Every sweep ends at a feasible dual point, so there is always a gap.

References
----------
Chambolle, A. and Pock, T. (2015). A remark on accelerated block coordinate descent for computing the proximity
operators of a sum of convex functions. SMAI Journal of Computational Mathematics 1.
O'Donoghue, B. and Candès, E. (2015). Adaptive restart for accelerated gradient schemes. Foundations of Computational
Mathematics 15.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from skadmm import _cancel
from skadmm.operators.clusters import clusters
from skadmm.problem.certificate import Assessment, Certificate
from skadmm.problem.problem import Problem
from skadmm.solvers.base import Setup
from skadmm.solvers.dual_update import Point
from skadmm.solvers.second_order.base import SecondOrderSolver, SolverState
from skadmm.solvers.second_order.chain_layers import MAX_LAYERS, Layer, layer_numbers, layers_of, rows_of_two
from skadmm.solvers.second_order.diagonal_quadratic import DiagonalQuadratic, SignalObjective
from skadmm.solvers.second_order.interior_point import InteriorPoint
from skadmm.solvers.second_order.l1_rows import row_strengths


@dataclass(frozen=True)
class ChainDescentConfig:
    """Settings of chain descent."""

    max_sweeps: int = 3000
    """The maximum number of sweeps."""
    patience: int = 300
    """The solver stops when this many sweeps have not halved the gap."""
    smallest_gap: float = 1e-12
    """The relative gap to reach where no tolerance is given."""
    objective_floor: float = 1e-6
    """A gap is measured against at least this share of the loss at zero."""
    inside: tuple[float, ...] = (1e-9, 1e-6, 1e-4, 1e-3, 1e-2)
    """A multiplier inside its bounds by more than this share ties the coefficients of its row. All values are tried,
    and the tied coefficients with the smallest objective are taken."""


class Structure(NamedTuple):
    """The parts of a problem that do not depend on the strength."""

    quadratic: DiagonalQuadratic
    layers: list[Layer]
    single: np.ndarray
    """The rows of A with one feature."""
    feature: np.ndarray
    """The features of those rows."""
    entry: np.ndarray
    """The entries of those rows."""


@dataclass(kw_only=True)
class ChainDescentState(SolverState):
    """State of chain descent. ``point`` is the best point so far."""

    parts: np.ndarray
    """s of each layer, and of the single features after them."""
    ahead: np.ndarray
    """The same with momentum, from which the next sweep starts."""
    momentum: float = 1.0
    """Nesterov's t."""
    mark: float = np.inf
    """The gap that has to be halved."""
    since: int = 0
    """The number of sweeps since `mark` was set."""


class ChainDescent(SecondOrderSolver[ChainDescentState]):
    """Sweeps of exact projections onto the layers' sets, with momentum and restarts. A sweep counts as a pass."""

    name = "chain-descent"
    summary = "Accelerated projections by dynamic programming, for signals over graphs and grids: squared loss, ψ = ℓ1"
    Config: ClassVar[type[Any]] = ChainDescentConfig
    config: ChainDescentConfig

    def __init__(
        self, setup: Setup, config: ChainDescentConfig | None = None, structure: Structure | None = None
    ) -> None:
        super().__init__(setup, config)
        self.structure = structure_of(setup.problem) if structure is None else structure
        strengths = row_strengths(setup.problem.psi, setup.problem.n_split)
        assert strengths is not None, "see applies()"
        self.objective = SignalObjective(self.structure.quadratic, strengths, self.config.objective_floor)
        single, feature, entry = self.structure[2:]
        reach = strengths[single] * np.abs(entry)
        self.threshold = np.bincount(feature, weights=reach, minlength=setup.problem.n_features)

    @classmethod
    def applies(cls, problem: Problem) -> str | None:
        """As for the interior point solver, and rows of A with one entry, or two of the same size."""
        reason = InteriorPoint.applies(problem)
        if reason is None:
            reason = rows_of_two(problem.constraint.A)
        if reason is None and layer_numbers(problem.constraint.A) is None:
            reason = f"the graph takes more than {MAX_LAYERS} layers of chains"
        return reason

    def init(self, point: Point, rho: float) -> ChainDescentState:
        """Start from multipliers of zero."""
        shape = (len(self.structure.layers) + 1, self.problem.n_features)
        return ChainDescentState(
            point=point, rho=rho, multiplier=rho * point.dual, parts=np.zeros(shape), ahead=np.zeros(shape)
        )

    def step(self, state: ChainDescentState) -> None:
        """Make a sweep, and compute its gap."""
        _cancel.check_cancelled()
        state.point.clock[1] += self.problem.n_samples
        quadratic = self.structure.quadratic
        new = state.ahead.copy()
        x = self._sweep(new)
        step, turn = new - state.parts, state.ahead - new
        uphill = float(np.sum(turn[1:] * step[1:] / quadratic.h)) > 0.0
        t = 1.0 if uphill else 0.5 * (1.0 + float(np.sqrt(1.0 + 4.0 * state.momentum**2)))
        share = 0.0 if uphill else (state.momentum - 1.0) / t
        state.parts, state.ahead, state.momentum = new, new + share * step, t
        rest = quadratic.q - new.sum(axis=0)
        dual = quadratic.constant - 0.5 * float(np.sum(rest**2 / quadratic.h))
        state.lower_bound = max(state.lower_bound, dual)
        for candidate in (x, rest / quadratic.h):
            self._keep_better(state, candidate)
        self._judge(state)

    def finish(self, state: ChainDescentState) -> None:
        """Compute the multipliers, and make tied coefficients equal to the last bit."""
        u = self._multipliers(state.parts)
        state.multiplier = u
        state.point.dual[:] = u / state.rho
        state.lower_bound = max(state.lower_bound, self._dual_value(u))
        candidates = [self._tied(u, inside) for inside in self.config.inside]
        tied = min(candidates, key=lambda x: self.objective.value(x, self.structure.quadratic.A @ x))
        self._keep_better(state, tied, slack=self._allowed(state))

    def optimality(self, state: ChainDescentState) -> tuple[str, float]:
        """The relative duality gap of the best point."""
        certificate = self.certificate(state)
        return "gap", np.inf if certificate is None else certificate.relative

    def certificate(self, state: ChainDescentState) -> Certificate | None:
        """Bounds from the parts themselves, each of which is in its set."""
        if state.objective == np.inf:
            return None
        return Certificate(state.objective, state.lower_bound, self.objective.scale)

    def assessed(self, state: ChainDescentState, x: np.ndarray, y: np.ndarray) -> Assessment | None:
        """The best point, with the bounds of its run."""
        certificate = self.certificate(state)
        if certificate is None or not (np.array_equal(x, state.point.x) and np.array_equal(y, state.point.y)):
            return None
        quadratic = self.structure.quadratic
        loss, gradient = quadratic.loss(x), quadratic.gradient(x)
        kkt = self.problem.kkt(x, y, self._multipliers(state.parts), gradient, loss)
        return Assessment(loss, gradient, kkt, certificate)

    def reweighted(self, problem: Problem) -> Self:
        """The same sums over the samples, and the same layers."""
        return type(self)(replace(self.setup, problem=problem), self.config, self.structure)

    def follow(self, state: ChainDescentState, problem: Problem) -> ChainDescentState:
        """Start from the last parts, scaled into their new sets."""
        new = self.init(state.point, state.rho)
        old = problem.psi.strength
        if old > 0.0:
            new.parts = state.parts * (self.problem.psi.strength / old)
            new.ahead = new.parts.copy()
        return new

    # -- a sweep -------------------------------------------------------------------------------------------------

    def _sweep(self, parts: np.ndarray) -> np.ndarray:
        """Project the parts one after the other, and return the x after the last projection."""
        quadratic, bound = self.structure.quadratic, self.objective.bound
        rest = quadratic.q - parts.sum(axis=0)
        x = rest / quadratic.h
        for layer, part in zip(self.structure.layers, parts[:-1], strict=True):
            rest = rest + part
            x = rest / quadratic.h
            part[:] = 0.0
            x[layer.order], part[layer.order] = layer.project(quadratic.h, rest, bound)
            rest = rest - part
        if self.structure.single.size:
            rest = rest + parts[-1]
            parts[-1] = np.clip(rest, -self.threshold, self.threshold)
            x = (rest - parts[-1]) / quadratic.h
        return x

    def _keep_better(self, state: ChainDescentState, x: np.ndarray, slack: float = 0.0) -> None:
        """Keep x where its objective is the smallest so far, up to `slack`."""
        y = self.structure.quadratic.A @ x
        value = self.objective.value(x, y)
        if value < state.objective + slack:
            state.objective = value
            state.point.x[:], state.point.y[:] = x, y

    def _judge(self, state: ChainDescentState) -> None:
        """Decide whether the gap meets the tolerance, or no longer decreases."""
        relative = self.optimality(state)[1]
        state.finished = relative <= (self.config.smallest_gap if self.tol is None else self.tol)
        state.since += 1
        if relative <= 0.5 * state.mark:
            state.mark, state.since = relative, 0
        tired = state.since >= self.config.patience or state.steps + 1 >= self.config.max_sweeps
        state.stalled = tired and not state.finished

    # -- multipliers and ties --------------------------------------------------------------------------------------

    def _multipliers(self, parts: np.ndarray) -> np.ndarray:
        """The multipliers of the rows of A."""
        u, bound = np.zeros(self.objective.bound.size), self.objective.bound
        for layer, part in zip(self.structure.layers, parts[:-1], strict=True):
            u[layer.row] = layer.multipliers(part[layer.order])
        single, feature, entry = self.structure[2:]
        share = parts[-1] / np.where(self.threshold > 0.0, self.threshold, 1.0)
        u[single] = bound[single] * np.sign(entry) * share[feature]
        return np.clip(u, -bound, bound)

    def _dual_value(self, u: np.ndarray) -> float:
        quadratic = self.structure.quadratic
        return quadratic.constant - 0.5 * float(np.sum((quadratic.q - quadratic.A.T @ u) ** 2 / quadratic.h))

    def _allowed(self, state: ChainDescentState) -> float:
        """How much the objective may increase when coefficients are tied exactly: half of what the tolerance leaves."""
        wanted = self.config.smallest_gap if self.tol is None else self.tol
        scale = max(abs(state.objective), self.objective.scale)
        return max(0.0, 0.5 * (wanted * scale - (state.objective - state.lower_bound)))

    def _tied(self, u: np.ndarray, inside: float) -> np.ndarray:
        """The minimiser with Ax = 0 on rows whose multiplier is inside its bounds, and multipliers ±bound on the
        others: a weighted mean on each cluster of tied coefficients."""
        quadratic, bound = self.structure.quadratic, self.objective.bound
        A = quadratic.A
        tied = np.abs(u) < bound * (1.0 - inside)
        labels, factors = clusters(A, tied)
        rest = quadratic.q - A.T @ np.where(tied, 0.0, bound * np.sign(u))
        free = labels >= 0
        size = int(labels.max(initial=-1)) + 1
        total = np.bincount(labels[free], weights=(factors * rest)[free], minlength=size)
        weight = np.bincount(labels[free], weights=(factors**2 * quadratic.h)[free], minlength=size)
        x = np.zeros(labels.size)
        x[free] = factors[free] * (total / weight)[labels[free]]
        return x


def structure_of(problem: Problem, quadratic: DiagonalQuadratic | None = None) -> Structure:
    """The layers of a problem, with the sums over its samples unless they are given."""
    A = problem.constraint.A
    layers = layers_of(A)
    single = np.flatnonzero(np.diff(A.indptr) == 1)
    at = A.indptr[single]
    # The line of a chain has scaled rows; here the rows are those of A.
    quadratic = replace(DiagonalQuadratic.of(problem) if quadratic is None else quadratic, line=None)
    return Structure(quadratic, layers, single, A.indices[at].astype(np.int64), A.data[at])

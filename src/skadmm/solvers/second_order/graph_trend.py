"""Trends of order one and two over graphs and grids: ADMM on z = L x, with exact steps, accelerated.

    minimise over x      ½ x·Hx − q·x + Σ_c g_c(L x),      H diagonal, L = GᵀG the Laplacian

For order one g is the ℓ1 norm, and its proximal step a soft threshold. For order two g is the total variation over the
graph: each of its layers of chains (``chain_layers.py``) has a copy z_c of L x, and its proximal step is a dynamic
programme. The step in x is a system with L² (``laplacian_systems.py``), whose matrix does not change. Where H is no
multiple of the identity, its largest entry takes its place there, with a proximal term for the difference.

An iteration depends on the previous one only through t_c = w_c + ρ z_c, w_c the multiplier of z_c = L x. Anderson's
extrapolation from the last few iterations reduces their number several times. The multipliers of the proximal steps are
within their bounds, so every iteration has a lower bound of the optimum, const − ½‖q − L Σ w_c‖² in the metric H⁻¹.

References
----------
Wang, Y.-X., Sharpnack, J., Smola, A. and Tibshirani, R. J. (2016). Trend filtering on graphs. JMLR 17.
Ramdas, A. and Tibshirani, R. J. (2016). Fast and flexible ADMM algorithms for trend filtering. JCGS 25.
Walker, H. F. and Ni, P. (2011). Anderson acceleration for fixed-point iterations. SIAM Journal on
Numerical Analysis 49.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from skadmm import _cancel
from skadmm.operators.line import GraphTrend
from skadmm.operators.row_correction import factor_work
from skadmm.problem.certificate import Assessment, Certificate
from skadmm.problem.problem import Problem
from skadmm.solvers.base import Setup
from skadmm.solvers.dual_update import Point
from skadmm.solvers.second_order.base import SecondOrderSolver, SolverState
from skadmm.solvers.second_order.chain_layers import MAX_LAYERS, Layer, layer_numbers, layers_of
from skadmm.solvers.second_order.diagonal_quadratic import DiagonalQuadratic, SignalObjective
from skadmm.solvers.second_order.interior_point import InteriorPoint
from skadmm.solvers.second_order.l1_rows import row_strengths
from skadmm.solvers.second_order.laplacian_systems import FactoredSystem, GridSystem, grid_of


@dataclass(frozen=True)
class GraphTrendConfig:
    """Settings of trends over graphs."""

    max_steps: int = 2000
    """The maximum number of steps."""
    iterations: int = 20
    """Iterations in a step; the gap is computed after each step."""
    memory: int = 8
    """The number of earlier iterations that the extrapolation uses."""
    relaxation: float = 1.7
    """The over-relaxation, between 1 (none) and 2."""
    threshold_share: float = 4.0
    """ρ for order one, in units of the ℓ1 strength divided by the mean absolute value of L at the data."""
    chain_share: float = 20.0
    """ρ for order two, in the same units."""
    patience: int = 20
    """ρ is changed when this many steps have not halved the gap."""
    rho_factors: tuple[float, ...] = (5.0, 0.04, 125.0, 0.0016)
    """The factors by which ρ is changed, one after the other; the solver stops after the last."""
    growth: float = 2.0
    """The extrapolation is restarted where the residual of an iteration exceeds this multiple of the smallest one."""
    regularisation: float = 1e-10
    """The regularisation of the least squares problem of the extrapolation, relative to its matrix."""
    smallest_gap: float = 1e-10
    """The relative gap to reach where no tolerance is given."""
    objective_floor: float = 1e-6
    """A gap is measured against at least this share of the loss at zero."""
    max_factor_work: float = 1e11
    """Multiplications of a factorisation of the Laplacian, by a bound of its fill, where it is not that of a grid."""


class GraphStructure:
    """The parts of a problem that do not depend on the strength.

    Parameters
    ----------
    quadratic : DiagonalQuadratic
    trend : GraphTrend
        A trend of order one or two.
    """

    def __init__(self, quadratic: DiagonalQuadratic, trend: GraphTrend) -> None:
        self.quadratic, self.order = quadratic, trend.order
        self.L = trend.laplacian()
        self.layers: list[Layer] = layers_of(trend.G) if trend.order == 2 else []
        self.uniform = bool(np.all(quadratic.h == quadratic.h[0]))
        self.top = float(quadratic.h.max())

    @property
    def copies(self) -> int:
        """The number of copies of L x."""
        return max(1, len(self.layers))

    @cached_property
    def system(self) -> GridSystem | FactoredSystem:
        """Systems with L²."""
        return grid_of(self.L) or FactoredSystem(self.L)

    @cached_property
    def roughness(self) -> float:
        """The mean size of L at the data."""
        return float(np.abs(self.L @ (self.quadratic.q / self.quadratic.h)).mean()) or 1.0


@dataclass(kw_only=True)
class GraphTrendState(SolverState):
    """State of trends over graphs. ``point`` is the best point so far."""

    weight: float
    """The ρ of this method."""
    x: np.ndarray
    """The iterate."""
    t: np.ndarray
    """w + ρ z of each copy, shape (copies, d)."""
    best_w: np.ndarray
    """The multipliers with the largest lower bound."""
    images: np.ndarray
    """The changes of the results of the last iterations, each a value of (t, x) in a row."""
    residuals: np.ndarray
    """The changes of the residuals of the last iterations, one row each."""
    last_image: np.ndarray
    """The result of the last iteration, a value of (t, x)."""
    last_residual: np.ndarray
    """The residual of the last iteration."""
    kept: int = -1
    """Rows of `images` made since the extrapolation started; −1 before the first iteration."""
    smallest_residual: float = np.inf
    """The smallest residual since the extrapolation started."""
    mark: float = np.inf
    """The gap that has to be halved."""
    since: int = 0
    """The number of steps since `mark` was set."""
    changes: int = 0
    """How many times ρ was changed."""


class GraphTrendADMM(SecondOrderSolver[GraphTrendState]):
    """Accelerated ADMM over a graph. A step of several iterations counts as a pass."""

    name = "graph-trend"
    summary = "Accelerated ADMM with exact steps, for trends of order one and two over graphs and grids: squared loss"
    Config: ClassVar[type[Any]] = GraphTrendConfig
    config: GraphTrendConfig

    def __init__(
        self, setup: Setup, config: GraphTrendConfig | None = None, structure: GraphStructure | None = None
    ) -> None:
        super().__init__(setup, config)
        problem = setup.problem
        if structure is None:
            trend = problem.constraint.graph_trend
            assert trend is not None, "see applies()"
            # The systems here are those of A, without a line.
            structure = GraphStructure(replace(DiagonalQuadratic.of(problem), line=None), trend)
        self.structure = structure
        strengths = row_strengths(problem.psi, problem.n_split)
        assert strengths is not None, "see applies()"
        self.objective = SignalObjective(structure.quadratic, strengths, self.config.objective_floor)

    @classmethod
    def applies(cls, problem: Problem) -> str | None:
        """As for the interior point solver, and A is GᵀG or GGᵀG for a graph with incidence matrix G."""
        reason = InteriorPoint.applies(problem)
        if reason is not None:
            return reason
        trend = problem.constraint.graph_trend
        if trend is None or trend.order not in (1, 2):
            return "A must be GᵀG or GGᵀG, G the incidence matrix of a graph"
        if trend.order == 2 and layer_numbers(trend.G) is None:
            return f"the graph takes more than {MAX_LAYERS} layers of chains"
        L = trend.laplacian()
        if grid_of(L) is None and factor_work(L) > cls.Config().max_factor_work:
            return "the factors of the graph's Laplacian would be too large"
        return None

    def init(self, point: Point, rho: float) -> GraphTrendState:
        """Start from multipliers of zero and the data."""
        structure, d = self.structure, self.problem.n_features
        rows = structure.copies if structure.uniform else structure.copies + 1
        share = self.config.threshold_share if structure.order == 1 else self.config.chain_share
        weight = share * float(self.objective.bound.mean()) / structure.roughness
        x = structure.quadratic.q / structure.quadratic.h
        empty = np.zeros((self.config.memory, rows * d))
        return GraphTrendState(
            point=point, rho=rho, multiplier=rho * point.dual, weight=weight, x=x, t=np.zeros((structure.copies, d)),
            best_w=np.zeros((structure.copies, d)), images=empty, residuals=empty.copy(),
            last_image=np.zeros(rows * d), last_residual=np.zeros(rows * d),
        )  # fmt: skip

    def step(self, state: GraphTrendState) -> None:
        """Make some iterations, and compute their gap."""
        state.point.clock[1] += self.problem.n_samples
        for _ in range(self.config.iterations):
            _cancel.check_cancelled()
            self._iterate(state)
        self._keep_better(state)
        self._judge(state)

    def finish(self, state: GraphTrendState) -> None:
        """The multipliers with the largest bound, and zeros of Ax where the proximal steps have them."""
        u = self._multipliers(state.best_w)
        state.multiplier = u
        state.point.dual[:] = u / state.rho
        state.point.y[self._zeros(self._split(state)[0])] = 0.0

    def optimality(self, state: GraphTrendState) -> tuple[str, float]:
        """The relative duality gap of the best point."""
        certificate = self.certificate(state)
        return "gap", np.inf if certificate is None else certificate.relative

    def certificate(self, state: GraphTrendState) -> Certificate | None:
        """Bounds from the multipliers of the proximal steps."""
        if state.objective == np.inf:
            return None
        return Certificate(state.objective, state.lower_bound, self.objective.scale)

    def assessed(self, state: GraphTrendState, x: np.ndarray, y: np.ndarray) -> Assessment | None:
        """The best point, with the bounds of its run."""
        certificate = self.certificate(state)
        if certificate is None or not (np.array_equal(x, state.point.x) and np.array_equal(y, state.point.y)):
            return None
        quadratic = self.structure.quadratic
        loss, gradient = quadratic.loss(x), quadratic.gradient(x)
        kkt = self.problem.kkt(x, y, self._multipliers(state.best_w), gradient, loss)
        return Assessment(loss, gradient, kkt, certificate)

    def reweighted(self, problem: Problem) -> Self:
        """The same sums over the samples, and the same systems."""
        return type(self)(replace(self.setup, problem=problem), self.config, self.structure)

    def follow(self, state: GraphTrendState, problem: Problem) -> GraphTrendState:
        """Start from the last iterate, with multipliers and ρ scaled by the ratio of the strengths, which keeps z."""
        new = self.init(state.point, state.rho)
        if problem.psi.strength > 0.0:
            ratio = self.problem.psi.strength / problem.psi.strength
            new.x, new.t, new.weight = state.x, ratio * state.t, ratio * state.weight
        return new

    # -- an iteration ----------------------------------------------------------------------------------------------

    def _split(self, state: GraphTrendState) -> tuple[np.ndarray, np.ndarray]:
        """z and w of each copy, from t."""
        t, bound, weight = state.t, self.objective.bound, state.weight
        if self.structure.order == 1:
            w = np.clip(t, -bound, bound)
            return (t - w) / weight, w
        z, w, h = t / weight, np.zeros_like(t), np.full(t.shape[1], weight)
        for c, layer in enumerate(self.structure.layers):
            z[c, layer.order], w[c, layer.order] = layer.project(h, t[c], bound)
        return z, w

    def _iterate(self, state: GraphTrendState) -> None:
        """t and x after one iteration, extrapolated."""
        structure, weight, share = self.structure, state.weight, self.config.relaxation
        L, quadratic = structure.L, structure.quadratic
        z, w = self._split(state)
        pull = L @ (structure.copies * weight * (L @ state.x) + (w - weight * z).sum(axis=0))
        rest = quadratic.q - quadratic.h * state.x - pull
        x = state.x + structure.system.solve(rest, structure.top, structure.copies * weight)
        t = w + weight * (share * (L @ x) + (1.0 - share) * z)
        state.t, state.x = self._extrapolated(state, t, x)

    def _extrapolated(self, state: GraphTrendState, t: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Anderson's step from the results of the last iterations. Where H is a multiple of the identity, x follows
        from t."""
        size, unit = t.size, np.sqrt(state.weight * self.structure.top)
        uniform = self.structure.uniform
        image = t.ravel() if uniform else np.concatenate([t.ravel(), unit * x])
        before = state.t.ravel() if uniform else np.concatenate([state.t.ravel(), unit * state.x])
        residual = image - before
        length = float(np.linalg.norm(residual))
        if length > self.config.growth * state.smallest_residual:
            state.kept, state.smallest_residual = -1, np.inf
        state.smallest_residual = min(state.smallest_residual, length)
        if state.kept >= 0:
            row = state.kept % self.config.memory
            state.images[row], state.residuals[row] = image - state.last_image, residual - state.last_residual
        state.kept += 1
        state.last_image, state.last_residual = image, residual
        used = min(state.kept, self.config.memory)
        if used:
            R = state.residuals[:used]
            gram = R @ R.T
            gram[np.diag_indices(used)] += self.config.regularisation * np.trace(gram)
            try:
                found = image - np.linalg.solve(gram, R @ residual) @ state.images[:used]
            except np.linalg.LinAlgError:
                found = image
            image = found if np.all(np.isfinite(found)) else image
        return image[:size].reshape(t.shape), x if uniform else image[size:] / unit

    # -- the gap ---------------------------------------------------------------------------------------------------

    def _keep_better(self, state: GraphTrendState) -> None:
        """Update the lower bound by the multipliers, and keep the better point."""
        quadratic = self.structure.quadratic
        w = self._split(state)[1]
        rest = quadratic.q - self.structure.L @ w.sum(axis=0)
        bound = quadratic.constant - 0.5 * float(np.sum(rest**2 / quadratic.h))
        if bound > state.lower_bound:
            state.lower_bound, state.best_w = bound, w
        for x in (state.x, rest / quadratic.h):
            y = quadratic.A @ x
            value = self.objective.value(x, y)
            if value < state.objective:
                state.objective = value
                state.point.x[:], state.point.y[:] = x, y

    def _judge(self, state: GraphTrendState) -> None:
        """Decide whether the gap meets the tolerance, or ρ has to change."""
        config, relative = self.config, self.optimality(state)[1]
        state.finished = relative <= (config.smallest_gap if self.tol is None else self.tol)
        state.since += 1
        if relative <= 0.5 * state.mark:
            state.mark, state.since = relative, 0
        if state.since >= config.patience and not state.finished:
            if state.changes == len(config.rho_factors):
                state.stalled = True
                return
            self._reweigh(state, config.rho_factors[state.changes])
            state.changes, state.since = state.changes + 1, 0
        state.stalled = not state.finished and state.steps + 1 >= config.max_steps

    def _reweigh(self, state: GraphTrendState, factor: float) -> None:
        """Another ρ, with the same z and w."""
        z, w = self._split(state)
        state.weight *= factor
        state.t = w + state.weight * z
        state.kept, state.smallest_residual = -1, np.inf

    # -- rows of A -------------------------------------------------------------------------------------------------

    def _multipliers(self, w: np.ndarray) -> np.ndarray:
        """The multipliers of the rows of A."""
        bound = self.objective.bound
        if self.structure.order == 1:
            return np.clip(w[0], -bound, bound)
        u = np.zeros(bound.size)
        for layer, part in zip(self.structure.layers, w, strict=True):
            u[layer.row] = layer.multipliers(part[layer.order])
        return np.clip(u, -bound, bound)

    def _zeros(self, z: np.ndarray) -> np.ndarray:
        """The rows of A that the proximal steps hold at zero."""
        if self.structure.order == 1:
            return z[0] == 0.0
        zero = np.zeros(self.objective.bound.size, bool)
        for layer, part in zip(self.structure.layers, z, strict=True):
            along = part[layer.order] * layer.sign
            zero[layer.row] = along[layer.inner] == along[layer.inner + 1]
        return zero

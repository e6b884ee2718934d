"""A primal-dual interior point method for signals: squared loss, every sample sees one coefficient, ψ an ℓ1 norm.

    minimise over x      ½ x·Hx − q·x + Σ bound_e |(D x)_e|,      H diagonal

A signal has as many coefficients as it has places of observation, and its penalty matrix is banded or that of a graph.
So the Newton systems are sparse (``signal_systems.py``), and a few dozen of them give an exact solution, where a
first-order method needs very many steps along a line. The samples are summed up once, in H and q. Three cases need no
iteration or end it: polynomials along a line are known to be the solution from a strength on; a chain is solved by
dynamic programming; and once the zeros of D x are known the minimiser solves one linear system (``exact_pattern.py``).

References
----------
Kim, Koh, Boyd, Gorinevsky (2009). ℓ1 trend filtering. SIAM Review 51.
Mehrotra (1992). On the implementation of a primal-dual interior point method. SIAM Journal on Optimization 2.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np

from skadmm import _cancel
from skadmm.operators.line import ROUNDING
from skadmm.problem.certificate import Assessment, Certificate
from skadmm.problem.kkt import KKT
from skadmm.problem.problem import Problem
from skadmm.regularizers import L1, SquaredL2, Zero
from skadmm.solvers.base import Setup
from skadmm.solvers.dual_update import Point
from skadmm.solvers.second_order.barrier_move import MoveConfig, Solve, System, move
from skadmm.solvers.second_order.base import SecondOrderSolver, SolverState
from skadmm.solvers.second_order.chains import denoise, merge_rounding, multipliers_along
from skadmm.solvers.second_order.diagonal_quadratic import DiagonalQuadratic, SignalObjective, reason_against
from skadmm.solvers.second_order.exact_pattern import PatternConfig, exact_minimiser
from skadmm.solvers.second_order.l1_rows import row_strengths
from skadmm.solvers.second_order.signal_systems import SignalPoint

MULTIPLIER_FLOOR = 1e-8
"""Residuals of multipliers are measured against at least this share of their bounds."""


@dataclass(frozen=True)
class InteriorPointConfig(MoveConfig):
    """Settings of the interior point solver."""

    max_steps: int = 100
    """The maximum number of steps."""
    max_increases: int = 4
    """The solver stops when this many steps in a row have not decreased the gap."""
    smallest_gap: float = 1e-13
    """The steps never aim at a smaller relative gap. Along a line they always aim at this one."""
    tol_share: float = 0.01
    """On a graph the steps aim at this share of the tolerance, so that the zeros of D x can be identified."""
    near_gap: float = 1e-3
    """From this relative gap on the systems are solved for changes, not for points."""
    objective_floor: float = 1e-6
    """A gap is measured against at least this share of the loss at zero."""
    pattern: PatternConfig = field(default_factory=PatternConfig)
    """Settings of the exact finish."""


@dataclass(kw_only=True)
class InteriorPointState(SolverState):
    """State of the interior point solver. ``point`` is the best point so far."""

    x: np.ndarray
    """The iterate."""
    v: np.ndarray
    """D x."""
    up: np.ndarray
    """The multiplier of v ≤ s. The multiplier of D x is up − down."""
    down: np.ndarray
    """The multiplier of −v ≤ s; up + down = bound."""
    s: np.ndarray
    """The bound of |v|."""
    best_v: np.ndarray
    """D x at the best point."""
    best_u: np.ndarray
    """The multiplier of D x at the best point."""
    best_gap: float = np.inf
    """The duality gap at the best point."""
    best_smooth: float = np.inf
    """The quadratic at the best point."""
    increases: int = 0
    """Steps in a row that have not decreased the gap."""
    beyond: float = 0.0
    """Along a chain, how far the multipliers that x requires exceed their bounds."""


def no_signal(problem: Problem) -> str | None:
    """Why a problem is not one over a signal, whatever its loss. For a signal every sample depends on one coefficient,
    ψ is an ℓ1 norm with positive weights, B = −I and c = 0; None where all of this holds."""
    if not problem.backend.local_rows:
        return f"it {problem.lacks_local_rows()}"
    if not isinstance(problem.psi, L1):
        return f"psi must be an ℓ1 norm, not {type(problem.psi).__name__}"
    if problem.constraint.B is not None or problem.constraint.c.any():
        return "it takes problems with B = −I and c = 0"
    if problem.n_constraints == 0:
        return "A has no rows"
    if not problem.psi.strength * problem.psi.weights.min(initial=1.0) > 0:
        return "the strength of psi, and each of its weights, must be positive"
    if not isinstance(problem.omega, (Zero, SquaredL2)):
        return f"omega must be a squared ℓ2 norm or nothing, not {type(problem.omega).__name__}"
    return reason_against(problem)


class InteriorPoint(SecondOrderSolver[InteriorPointState]):
    """Mehrotra's predictor and corrector on the multiplier u = up − down, with Hx + Dᵀu = q and v = D x throughout.

    With s bounding |v|, the products up·(s − v) and down·(s + v) go to zero together. A step is one factorisation; it
    counts as one pass over the samples.
    """

    name = "interior-point"
    summary = "Interior point steps on sparse systems, for signals: squared loss, one feature per sample, ψ = ℓ1"
    Config: ClassVar[type[Any]] = InteriorPointConfig
    config: InteriorPointConfig

    def __init__(
        self, setup: Setup, config: InteriorPointConfig | None = None, quadratic: DiagonalQuadratic | None = None
    ) -> None:
        super().__init__(setup, config)
        self.quadratic = DiagonalQuadratic.of(setup.problem) if quadratic is None else quadratic
        strengths = row_strengths(setup.problem.psi, setup.problem.n_split)
        assert strengths is not None, "see applies()"
        bound = strengths * np.abs(self.quadratic.row_scale)
        self.objective = SignalObjective(self.quadratic, bound, self.config.objective_floor)

    @classmethod
    def applies(cls, problem: Problem) -> str | None:
        """Squared loss, a diagonal XᵀX, ψ an ℓ1 norm with positive weights, B = −I and c = 0."""
        if problem.backend.local_rows and problem.loss.name != "squared":
            return f"the loss must be squared, not {problem.loss.name}"
        return no_signal(problem)

    def init(self, point: Point, rho: float) -> InteriorPointState:
        """The centre of the multipliers' bounds. A polynomial that is known to be the solution is put in place."""
        quadratic, bound = self.quadratic, self.objective.bound
        if self._is_chain():
            none = np.empty(0)  # the only step needs no iterate
            return InteriorPointState(
                point=point, rho=rho, multiplier=rho * point.dual, x=none, v=none, up=none, down=none, s=none,
                best_v=none, best_u=none,
            )  # fmt: skip
        x = quadratic.q / quadratic.h
        v = (quadratic.A @ x) / quadratic.row_scale
        state = InteriorPointState(
            point=point, rho=rho, multiplier=rho * point.dual, x=x, v=v, up=bound / 2, down=bound / 2,
            s=np.abs(v) + (float(np.abs(v).mean()) or 1.0), best_v=np.zeros_like(v), best_u=np.zeros_like(v),
        )  # fmt: skip
        self._place_polynomial(state)
        return state

    def step(self, state: InteriorPointState) -> None:
        """Judge the iterate, and move it where it is not good enough."""
        _cancel.check_cancelled()
        state.point.clock[1] += self.problem.n_samples
        if self._is_chain():
            solution, state.beyond = self._denoised()
            self._place(state, solution)
            state.finished = True
            return
        relative = self._keep_best(state)
        target = self.config.smallest_gap
        if self.quadratic.line is None and self.tol is not None:
            target = max(self.config.tol_share * self.tol, target)
        state.finished = relative <= target
        tired = state.increases >= self.config.max_increases or state.steps + 1 >= self.config.max_steps
        if state.finished or tired:
            state.stalled = not state.finished
            return
        self._move(state, near=relative <= self.config.near_gap)

    def finish(self, state: InteriorPointState) -> None:
        """The minimiser on the pattern of the best point, with fused coefficients equal to the last bit."""
        if self._is_chain() or self.objective.polynomial() is not None:
            return
        self._keep_best(state)
        bound = self.objective.bound
        best = SignalPoint(state.point.x.copy(), state.best_v, np.clip(state.best_u, -bound, bound))
        self._place(state, self.objective.fused(exact_minimiser(self.objective, best, self.config.pattern)))

    def optimality(self, state: InteriorPointState) -> tuple[str, float]:
        """The relative duality gap of the best point."""
        certificate = self.certificate(state)
        return "gap", np.inf if certificate is None else certificate.relative

    def certificate(self, state: InteriorPointState) -> Certificate | None:
        """Bounds from the multiplier itself: H is positive, so every multiplier within its bounds gives one."""
        if state.best_gap == np.inf:
            return None
        return Certificate(state.objective, state.lower_bound, self.objective.scale)

    def assessed(self, state: InteriorPointState, x: np.ndarray, y: np.ndarray) -> Assessment | None:
        """The assessment of the best point, more accurate than by products with A where differences are of high order;
        that of zero at the start, without a product."""
        certificate = self.certificate(state)
        if certificate is None:
            return self._assessed_zero(state, x, y)
        if not (np.array_equal(x, state.point.x) and np.array_equal(y, state.point.y)):
            return None
        quadratic = self.quadratic
        gradient = quadratic.gradient(x)
        loss = state.best_smooth - quadratic.omega(x)
        if quadratic.line is None:
            kkt = self.problem.kkt(x, y, state.multiplier, gradient, loss)
        else:
            kkt = self._residual_along(state, x, y, gradient)
        return Assessment(loss, gradient, kkt, certificate)

    def _assessed_zero(self, state: InteriorPointState, x: np.ndarray, y: np.ndarray) -> Assessment | None:
        """The point zero with a multiplier of zero."""
        if x.any() or y.any() or state.multiplier.any():
            return None
        quadratic = self.quadratic
        size = float(np.linalg.norm(quadratic.q))
        stationarity = float(np.linalg.norm(quadratic.q / (1.0 + quadratic.ridge))) if quadratic.has_ridge else size
        bounds = Certificate(quadratic.constant, quadratic.constant - 0.5 * quadratic.explained, self.objective.scale)
        kkt = KKT(stationarity, 0.0, 0.0, stationarity / size if size > 0.0 else 0.0)
        return Assessment(quadratic.constant, -quadratic.q, kkt, bounds)

    def _residual_along(self, state: InteriorPointState, x: np.ndarray, y: np.ndarray, gradient: np.ndarray) -> KKT:
        """The KKT residual on a line. Along a long line Aᵀu is inaccurate, and the multiplier that x requires is used
        in its place."""
        quadratic, bound = self.quadratic, self.objective.bound
        wrong = state.beyond
        if not self._is_chain():
            wrong = float(np.linalg.norm(quadratic.multiplier(x) - state.best_u))
        size = max(float(np.linalg.norm(state.best_u)), MULTIPLIER_FLOOR * float(np.linalg.norm(bound)))
        split = float(np.linalg.norm(y - self.problem.prox_psi(y + state.multiplier)))
        total = gradient + quadratic.ridge * x if quadratic.has_ridge else gradient
        stationarity = wrong / size * float(np.linalg.norm(total))
        return KKT(stationarity, 0.0, split, max(wrong, split) / size)

    def warm_start(self, state: InteriorPointState) -> None:
        """The steps start from the centre in any case."""
        super().warm_start(state)
        self._place_polynomial(state)

    def reweighted(self, problem: Problem) -> Self:
        """The same sums over the samples, and the same systems."""
        return type(self)(replace(self.setup, problem=problem), self.config, self.quadratic)

    def follow(self, state: InteriorPointState, problem: Problem) -> InteriorPointState:
        """The steps start from the centre in any case."""
        return self.init(state.point, state.rho)

    # -- the best point ----------------------------------------------------------------------------------------

    def _place_polynomial(self, state: InteriorPointState) -> None:
        flat = None if self._is_chain() else self.objective.polynomial()
        if flat is not None:
            self._place(state, self.objective.fused(flat))
            state.finished = True

    def _place(self, state: InteriorPointState, best: SignalPoint, gap: float | None = None) -> None:
        """Make `best` the best point."""
        scale = self.quadratic.row_scale
        point, state.best_v, state.best_u = state.point, best.v, best.u
        state.best_gap = self.objective.gap(best) if gap is None else gap
        state.best_smooth = self.quadratic.value(best.x)
        state.objective = state.best_smooth + self.objective.norm(best.v)
        state.lower_bound = state.objective - state.best_gap
        state.multiplier = best.u / scale
        point.x[:] = best.x
        point.y[:] = best.v * scale
        point.dual[:] = state.multiplier / state.rho

    def _keep_best(self, state: InteriorPointState) -> float:
        """Keep the iterate where its gap is the smallest so far, and return its relative gap."""
        u = state.up - state.down
        gap = self.objective.norm(state.v) - float(u @ state.v)
        state.increases = state.increases + 1 if gap >= state.best_gap else 0
        if gap < state.best_gap:
            self._place(state, SignalPoint(state.x, state.v, u), gap)
        value = self.objective.value(state.x, state.v)
        with np.errstate(over="ignore"):  # the objective of a start may be 0, and the gap any number
            return gap / max(value, np.finfo(float).tiny)

    def _is_chain(self) -> bool:
        """Return whether the penalty is on first differences along a line."""
        line = self.quadratic.line
        return line is not None and line.order == 0

    def _denoised(self) -> tuple[SignalPoint, float]:
        """The solution along a chain, by dynamic programming, and by how much its multipliers exceed their bounds."""
        quadratic, bound = self.quadratic, self.objective.bound
        x, u = np.empty_like(quadratic.q), np.empty_like(bound)
        reachable = self._reachable(bound)
        denoise(quadratic.h, quadratic.q, reachable, x)
        merge_rounding(quadratic.h, quadratic.q, reachable, ROUNDING, x)
        beyond = multipliers_along(quadratic.h, quadratic.q, x, bound, ROUNDING, u)
        return SignalPoint(x, np.diff(x), u), float(beyond)

    def _reachable(self, bound: np.ndarray) -> np.ndarray:
        """The bounds along a chain, limited to the largest possible multiplier: very large numbers add rounding."""
        h, q = self.quadratic.h, self.quadratic.q
        if float(bound.max()) <= float(np.abs(q).sum()):
            return bound
        target = q / h
        return np.minimum(bound, 2.0 * float(h.sum()) * float(target.max() - target.min()))

    # -- a step ------------------------------------------------------------------------------------------------

    def _move(self, state: InteriorPointState, *, near: bool) -> None:
        """A predictor step, and a corrector step along which the iterate moves."""
        quadratic = self.quadratic

        def factored(e: np.ndarray) -> Solve:
            factor = quadratic.system.factor(e)
            return lambda b, refine: factor.solve(0.0 if near else quadratic.q, b, refine=refine)

        state.stalled = move(state, System(factored, near), self.config) == 0.0

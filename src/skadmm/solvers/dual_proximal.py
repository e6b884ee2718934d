"""The method of multipliers on the margins, for losses with kinks: quantile, absolute error, hinge.

With a copy zᵢ of every margin aᵢ·x, multipliers θᵢ and a width μ, a step minimises

    (1/n) Σ min over zᵢ of (ℓ(zᵢ) + θᵢ(aᵢ·x − zᵢ) + (aᵢ·x − zᵢ)²/(2μ)) + Ω(x) + ψ(Ax)

The inner minimum is the Moreau envelope of ℓ at aᵢ·x + μθᵢ, minus a constant. It is a smooth loss, so a step is solved
by the solver that ``select.py`` chooses for it, from the solution of the previous step. Then θᵢ ← the slopes of the
envelope there. They are subgradients of ℓ, in the domain of ℓ*, and with the multiplier of the smooth problem they give
a lower bound for the problem itself: the duality gap is that of the loss with its kinks.

In the dual it is a proximal point method with steps 1/μ; on piecewise linear losses with ℓ1 penalties it ends after
finitely many steps. μ decreases while the gap does not decrease fast.

References
----------
Rockafellar, R. T. (1976). Augmented Lagrangians and applications of the proximal point algorithm.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from skadmm import _cancel
from skadmm.backends.base import Evaluation
from skadmm.kernels.samples import mean_loss
from skadmm.problem.certificate import Assessment, Certifier
from skadmm.problem.kink_slopes import balanced
from skadmm.problem.problem import Problem
from skadmm.problem.smoothing import complementarity, multipliers_of, smoothed
from skadmm.solvers import dual_update, select
from skadmm.solvers.dual_update import Point
from skadmm.solvers.registry import SOLVERS, register_solver
from skadmm.solvers.second_order.base import SecondOrderSolver, SolverState
from skadmm.solvers.second_order.best_point import BestPointState

ONE_STEP = np.zeros(1, np.int64)


@dataclass(frozen=True)
class DualProximalConfig:
    """Settings of the method of multipliers on the margins."""

    first_width: float = 1.0
    """μ at the start, in units of the mean loss at the starting point."""
    width_factor: float = 0.2
    """μ is multiplied by this after a step that left more than the share `gap_left` of the gap."""
    gap_left: float = 0.2
    """The share of the gap that a step may leave without a change of μ."""
    min_width: float = 1e-7
    """The smallest μ, in units of the first one."""
    first_tol: float = 1e-3
    """The relative gap to which the first smooth problem is solved."""
    tol_share: float = 0.03
    """Later smooth problems are solved to this share of the relative gap reached so far."""
    min_tol: float = 1e-11
    """The smallest relative gap to which a smooth problem is solved."""
    idle_factor: float = 0.1
    """The tolerance of smooth problems is multiplied by this for each step without progress: a gap that is small beside
    the objective may be large beside a weak penalty."""
    max_inner_steps: int = 200
    """The maximum number of steps of a solver on one smooth problem."""
    max_steps: int = 60
    """The maximum number of smooth problems."""
    max_idle: int = 8
    """The solver stops after this many smooth problems in a row that do not halve the measure of optimality."""


@dataclass(kw_only=True)
class DualProximalState(SolverState):
    """State of the method of multipliers on the margins. ``point`` is the best point so far, and ``objective`` its
    objective; the next smooth problem starts from the last solution, which may be another point."""

    theta: np.ndarray
    """θ of each sample, a subgradient of its loss."""
    width: float = 0.0
    """μ; 0 before the first step."""
    first_width: float = 0.0
    """μ at the start."""
    x: np.ndarray
    """The x of the last solution of a smooth problem."""
    y: np.ndarray
    """The y of the last solution of a smooth problem."""
    dual: np.ndarray
    """The scaled dual of the last solution of a smooth problem."""
    inner_rho: float
    """The penalty parameter ρ of that scaled dual."""
    loss: float = np.inf
    """The mean loss at ``point``."""
    gradient: np.ndarray
    """(1/n) Xᵀθ of the θ that belongs to ``point``."""
    complementarity: float = np.inf
    """(1/n) Σ (ℓ(zᵢ) + ℓ*(θᵢ) − θᵢzᵢ) at ``point``: zero where every θᵢ is a subgradient at its margin."""
    reached: float = np.inf
    """The smallest measure of optimality so far, as of the last progress."""
    idle: int = 0
    """The number of steps since the last progress."""
    inner: str = ""
    """The solver that took over in the last smooth problem, where one did: the next one starts with it."""


@register_solver
class DualProximal(SecondOrderSolver[DualProximalState]):
    """The method of multipliers on the margins. A step solves one smooth problem."""

    name = "dual-proximal"
    summary = "The method of multipliers on the margins, for losses with kinks"
    Config: ClassVar[type[Any]] = DualProximalConfig
    config: DualProximalConfig
    takes_kinks = True

    @classmethod
    def applies(cls, problem: Problem) -> str | None:
        """The loss must have kinks, and the rows be in this process."""
        if problem.loss.smooth:
            return f"loss={problem.loss.name} has no kinks: other solvers take it as it is"
        return problem.lacks_local_rows()

    def init(self, point: Point, rho: float) -> DualProximalState:
        """The state at the point, with θ = 0, which is in the domain of ℓ*."""
        problem = self.problem
        return DualProximalState(
            point=point, rho=rho, multiplier=rho * point.dual, theta=np.zeros(problem.n_samples), x=point.x.copy(),
            y=point.y.copy(), dual=point.dual.copy(), inner_rho=rho, gradient=np.zeros(problem.n_features),
        )  # fmt: skip

    def warm_start(self, state: DualProximalState) -> None:
        """Start from an earlier point."""
        super().warm_start(state)
        state.x, state.y, state.dual = state.point.x.copy(), state.point.y.copy(), state.point.dual.copy()
        state.inner_rho = state.rho

    def follow(self, state: DualProximalState, problem: Problem) -> DualProximalState:
        """Start from the last solution, with its θ and μ, neither of which depends on the strength of ψ."""
        after = super().follow(state, problem)
        after.theta, after.width, after.first_width = state.theta, state.width, state.first_width
        return after

    def step(self, state: DualProximalState) -> None:
        """Solve the smooth problem of θ and μ; then update θ, the certificate and μ."""
        _cancel.check_cancelled()
        config = self.config
        if state.width == 0.0:
            self._first_width(state)
        before = self._measured(state)
        smooth = self._smooth_problem(state)
        settled, at = self._minimise(state, smooth, before)
        self._take(state, smooth, at)
        reached = self._measured(state)
        if not reached <= config.gap_left * before and settled:
            state.width = max(config.width_factor * state.width, config.min_width * state.first_width)
        elif not settled:  # the solvers did not reach the tolerance of the smooth problem
            state.width = min(2.0 * state.width / config.width_factor, state.first_width)
        if reached <= 0.5 * state.reached:
            state.reached, state.idle = reached, 0
        else:
            state.idle += 1
        state.finished = self.tol is not None and reached <= self.tol
        exhausted = state.idle >= config.max_idle or state.steps + 1 >= config.max_steps
        state.stalled = not state.finished and exhausted

    def finish(self, state: DualProximalState) -> None:
        """Evaluate the start where no step was made; otherwise the best point is already the solution."""
        if not np.isfinite(state.objective):
            self._keep(state, self._margins(state, state.point.x), state.point.x, state.point.y, state.multiplier)

    def optimality(self, state: DualProximalState) -> tuple[str, float]:
        """The relative gap; without a certificate, the relative KKT residual of x, y, θ and the multiplier."""
        return "gap" if self._gapped else "kkt", self._measured(state)

    def last_loss(self, state: DualProximalState) -> float:
        """The mean loss at the best point."""
        return state.loss

    def loss_gradient(self, state: DualProximalState) -> np.ndarray:
        """The gradient from the θ that belongs to the best point."""
        return state.gradient

    def assessed(self, state: DualProximalState, x: np.ndarray, y: np.ndarray) -> Assessment | None:
        """The assessment of the best point with its own θ; the general evaluation would take any subgradient."""
        if not np.isfinite(state.objective):
            return None
        if not (np.array_equal(x, state.point.x) and np.array_equal(y, state.point.y)):
            return None
        kkt = self.problem.kkt(x, y, state.multiplier, state.gradient, state.loss)
        kkt = kkt._replace(relative=max(kkt.relative, self._relative(state, state.complementarity)))
        lower = state.lower_bound if self._gapped else -np.inf
        return Assessment(state.loss, state.gradient, kkt, self.certifier.pair(state.objective, lower))

    # -- a step ----------------------------------------------------------------------------------------------------

    @property
    def _gapped(self) -> bool:
        """Does the gap decide? Where y does not follow from x, the objective is that of a point which meets the
        constraint only up to rounding, so a gap alone proves nothing."""
        return self.certifier.kind != "none" and self.problem.constraint.has_y_of_x

    def _relative(self, state: DualProximalState, amount: float) -> float:
        return amount / max(self.certifier.size(state.objective), np.finfo(float).tiny)

    def _measured(self, state: DualProximalState) -> float:
        """The measure on which the solver stops, at the best point."""
        if not np.isfinite(state.objective):
            return np.inf
        if self._gapped:
            return self.certifier.pair(state.objective, state.lower_bound).relative
        assessment = self.assessed(state, state.point.x, state.point.y)
        return np.inf if assessment is None else assessment.kkt.relative

    def _margins(self, state: DualProximalState, x: np.ndarray) -> Evaluation:
        state.point.clock[1] += self.problem.n_samples
        return self.problem.backend.evaluate(x)

    def _first_width(self, state: DualProximalState) -> None:
        """Set the first μ, in proportion to the mean loss."""
        loss = self._margins(state, state.x).loss
        scale = loss or self.problem.loss_at_zero or 1.0
        state.width = state.first_width = self.config.first_width * scale

    def _smooth_problem(self, state: DualProximalState) -> Problem:
        """The problem with the Moreau envelope of the loss at the margins plus μθ."""
        return smoothed(self.problem, state.width, state.theta)

    def _minimise(self, state: DualProximalState, smooth: Problem, measured: float) -> tuple[bool, np.ndarray | None]:
        """Solve the smooth problem from the last solution. Returns whether its tolerance was met, and the point whose
        slopes belong to its multiplier, where the solver knows one: where μ is small, the slopes at a point that is
        as good may be far from them."""
        config = self.config
        tol = min(config.first_tol, max(config.tol_share * measured, config.min_tol))
        if self.tol is not None:
            tol = max(tol, min(config.tol_share * self.tol, config.first_tol))
        tol = max(config.idle_factor**state.idle * tol, config.min_tol)
        setup = replace(self.setup, problem=smooth, tol=tol, warm=True, solver="", options={}, checkpoint=None)
        point = dual_update.start(smooth, state.x, state.y, state.dual)
        solvers = select.solvers_for(setup, point)[0]
        if state.inner:
            solvers = (SOLVERS[state.inner], *(solver for solver in solvers if solver.name != state.inner))
        engine = select.start(setup, point, solvers, rho=state.inner_rho)
        for _ in range(config.max_inner_steps):
            if engine.finished:
                break
            engine.advance(ONE_STEP)
        engine.finish()
        engine.close()
        state.point.clock[1] += int(engine.point.clock[1])
        state.x, state.y, state.dual = (array.copy() for array in (engine.point.x, engine.point.y, engine.point.dual))
        state.inner_rho = engine.rho
        if engine.number > 0 and engine.optimality()[1] <= tol:
            state.inner = engine.solver.name
        at = engine.current.bound_x if isinstance(engine.current, BestPointState) else None
        return bool(engine.optimality()[1] <= 10.0 * tol), at

    def _take(self, state: DualProximalState, smooth: Problem, at: np.ndarray | None) -> None:
        """θ ← the slopes of the envelopes; then update the lower bound and the best point."""
        problem, n = self.problem, self.problem.n_samples
        evaluation = smooth.backend.evaluate(state.x)
        state.point.clock[1] += n
        margins = np.asarray(evaluation.margins)
        if at is None or np.array_equal(at, state.x):
            dual = evaluation
        else:
            dual = smooth.backend.evaluate(at)
            state.point.clock[1] += n
        slopes, gradient, margins_there = dual.slopes, dual.gradient, np.asarray(dual.margins)
        multiplier = state.inner_rho * state.dual
        certifier, before = Certifier(smooth), self._measured(state)
        bounded = True
        if certifier.free.size:
            orthogonal = certifier.orthogonal_slopes(slopes, margins_there)
            bounded = orthogonal is not None
            if orthogonal is not None:
                slopes, gradient, touched = orthogonal
                state.point.clock[1] += touched
        state.theta = multipliers_of(problem, slopes)
        exact = evaluation._replace(loss=mean_loss(problem.samples(), margins), gradient=gradient, slopes=slopes)
        self._keep(state, exact, state.x, state.y, multiplier, bounded=bounded)
        reached = self._measured(state)
        if not reached <= max(self.config.gap_left * before, self.tol or 0.0):
            self._balance(state, exact, multiplier)

    def _balance(self, state: DualProximalState, evaluation: Evaluation, multiplier: np.ndarray) -> None:
        """Try slopes that balance the penalty exactly, for the bound and the measure. θ itself stays: it belongs to the
        smooth problem."""
        problem = self.problem
        found = balanced(problem, state.x, evaluation.slopes, multiplier, state.y == 0.0)
        if found is None:
            return
        state.point.clock[1] += 2 * problem.n_samples
        if self._gapped and found.orthogonal_to(problem, self.certifier.free):
            bounds = self.certifier.certify(
                state.objective, found.slopes, found.gradient, found.multiplier, state.y == 0.0
            )  # fmt: skip
            state.lower_bound = max(state.lower_bound, bounds.dual)
        best = self.assessed(state, state.point.x, state.point.y)
        if best is None or not (np.array_equal(state.x, state.point.x) and np.array_equal(state.y, state.point.y)):
            return
        before = state.gradient, state.multiplier, state.complementarity
        margins = np.asarray(evaluation.margins)
        state.gradient, state.multiplier = found.gradient, found.multiplier
        state.complementarity = complementarity(problem, state.loss, found.slopes, margins)
        after = self.assessed(state, state.point.x, state.point.y)
        if after is None or not after.kkt.relative < best.kkt.relative:
            state.gradient, state.multiplier, state.complementarity = before
        state.point.dual[:] = state.multiplier / state.rho

    def _keep(
        self,
        state: DualProximalState,
        evaluation: Evaluation,
        x: np.ndarray,
        y: np.ndarray,
        multiplier: np.ndarray,
        *,
        bounded: bool = True,
    ) -> None:
        """Raise the lower bound, where the slopes give one, and keep the point where it is the best so far."""
        problem = self.problem
        y_of_x = problem.y_of_x(x)
        objective = evaluation.loss + problem.penalty(x, y if y_of_x is None else y_of_x)
        if self._gapped and bounded:
            bounds = self.certifier.certify(objective, evaluation.slopes, evaluation.gradient, multiplier, y == 0)
            state.lower_bound = max(state.lower_bound, bounds.dual)
        off = complementarity(problem, evaluation.loss, evaluation.slopes, np.asarray(evaluation.margins))
        better = objective < state.objective
        if not self._gapped and np.isfinite(state.objective):
            better = off <= state.complementarity or objective < state.objective
        if better:
            state.objective, state.loss, state.complementarity = objective, evaluation.loss, off
            state.gradient, state.multiplier, state.rho = evaluation.gradient, multiplier, state.inner_rho
            state.point.x[:], state.point.y[:], state.point.dual[:] = x, y, state.dual

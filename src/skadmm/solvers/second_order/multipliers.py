"""The method of multipliers with Newton steps, which converges for any convex problem.

Newton steps minimise the augmented Lagrangian φ (``augmented_lagrangian.py``) to any accuracy; then the multiplier u
becomes σ(w − prox(w)), a subgradient of g, the centre v₀ moves to v, and σ grows where the residual of the constraint
decreases slowly. The method converges whatever the rank of A, B or X, also where sweeps of ADMM on a model stall. Near
the solution few steps are needed; each reads all samples and factorises a matrix of the size of v.

References
----------
Rockafellar, R. T. (1976). Augmented Lagrangians and applications of the proximal point algorithm in convex programming.
Li, X., Sun, D. and Toh, K.-C. (2018). A highly efficient semismooth Newton augmented Lagrangian method for solving
lasso problems. SIAM Journal on Optimization 28.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from skadmm.problem.problem import COUPLED, Problem
from skadmm.regularizers._envelope import can_differentiate
from skadmm.solvers.base import Setup
from skadmm.solvers.dual_update import Point
from skadmm.solvers.second_order.augmented_lagrangian import AugmentedLagrangian, LagrangianState, NewtonConfig
from skadmm.solvers.second_order.best_point import BestPointSolver, BestPointState, Candidate
from skadmm.solvers.second_order.multiplier_updates import UpdateConfig
from skadmm.solvers.second_order.polish import ConstrainedRows
from skadmm.solvers.second_order.split_penalty import Gradient

MAX_VARIABLES = 5000
"""The largest number of variables for which the Newton matrix is formed and factorised."""


@dataclass(frozen=True)
class MultipliersConfig(UpdateConfig, NewtonConfig):
    """Settings of the method of multipliers."""

    max_newton_steps: int = 150
    """After this many Newton steps another solver may take over."""


@dataclass(kw_only=True)
class MultipliersState(BestPointState):
    """State of the method of multipliers."""

    lagrangian: LagrangianState
    """φ, and v, at which it is being minimised."""
    first_size: float = 0.0
    """The size of the loss gradient at the start, against which later gradients are measured."""
    last_residual: float = np.inf
    """The residual of the constraint at the last change of the multiplier."""
    newton_steps: int = 0
    """Newton steps since the multiplier last changed."""
    minimised: bool = False
    """True where φ is at its minimum up to rounding."""
    refusals: int = 0
    """Newton steps in a row that did not decrease φ."""
    idle: int = 0
    """Changes of the multiplier since the measure of optimality last improved."""


class Multipliers(BestPointSolver[MultipliersState]):
    """The method of multipliers. A step is one Newton step: one evaluation of all samples."""

    name = "multipliers"
    summary = "The method of multipliers with semismooth Newton steps"
    Config: ClassVar[type[Any]] = MultipliersConfig
    config: MultipliersConfig

    def __init__(self, setup: Setup, config: MultipliersConfig | None = None) -> None:
        super().__init__(setup, config)
        self.lagrangian = AugmentedLagrangian(setup.problem, self.ridge, self.config)
        self.constrained = None if self.folded else ConstrainedRows.of(setup.problem)

    @classmethod
    def applies(cls, problem: Problem) -> str | None:
        """The Newton matrix must fit, and the prox of ψ have a derivative."""
        if problem.is_coupled:
            return COUPLED
        size = problem.n_features + (0 if problem.constraint.B is None else problem.n_split)
        if not problem.backend.local_rows:
            return "its rows are on a cluster"
        if size > MAX_VARIABLES:
            return f"{size} variables are more than a Newton matrix can hold ({MAX_VARIABLES})"
        if problem.n_split and not can_differentiate(problem.psi, problem.n_split):
            return f"psi={type(problem.psi).__name__} has no derivative of its prox at this size"
        return None

    def init(self, point: Point, rho: float) -> MultipliersState:
        """The state before the first evaluation."""
        multiplier = rho * point.dual
        return MultipliersState(
            point=point, rho=rho, multiplier=multiplier, x=point.x.copy(), y=point.y.copy(),
            lagrangian=self.lagrangian.init(point.x, point.y, multiplier, self.config.first_kappa),
        )  # fmt: skip

    def step(self, state: MultipliersState) -> None:
        """Change the multiplier while the gradient of φ is small enough; then take a Newton step."""
        if not state.steps:
            self._start(state)
        gradient = self._change_multiplier(state)
        if gradient is not None:
            self._newton_step(state, gradient)
        self.give_up(state)

    def slow(self, state: MultipliersState) -> bool:
        """Return whether the solver has stopped, or made more steps than it needs where it is fast, before it met the
        tolerance."""
        ended = state.stalled or (state.steps >= self.config.max_newton_steps and not state.finished)
        return ended and self.tol is not None and state.reached > self.tol

    def finish(self, state: MultipliersState) -> None:
        """The best point, exactly fused and sparse."""
        if not state.steps:
            self._start(state)
        if not (state.finished or state.stalled):
            self._measure(state)
        self.polish(state)
        self.give_up(state)

    def warm_start(self, state: MultipliersState) -> None:
        """Start from an earlier point."""
        super().warm_start(state)
        point = state.point
        state.lagrangian = self.lagrangian.init(point.x, point.y, state.multiplier, self.config.first_kappa)
        state.x, state.y = point.x.copy(), point.y.copy()

    # -- a step ----------------------------------------------------------------------------------------------

    def _start(self, state: MultipliersState) -> None:
        inner = state.lagrangian
        self.lagrangian.evaluate(inner)
        state.point.clock[1] += self.problem.n_samples
        gradient = np.zeros_like(inner.v)
        gradient[: self.problem.n_features] = self.lagrangian.loss_gradient(inner)
        state.first_size = self.lagrangian.size(gradient)
        inner.sigma = self._first_sigma(inner, gradient)
        self._measure(state)

    def _first_sigma(self, inner: LagrangianState, gradient: np.ndarray) -> float:
        """σ for which the thresholds of the prox are of the size of K v after one Newton step on the loss."""
        phi, problem = self.lagrangian, self.problem
        step = phi.solve(inner, phi.matrix(inner, None), gradient)
        size = float(np.linalg.norm(phi.weight * (phi.K @ (inner.v + step) + phi.offset)))
        bound = problem.psi.lipschitz(problem.n_split) if problem.n_split else 0.0
        if not 0.0 < bound < np.inf or size == 0.0:
            return 1.0
        return float(np.clip(bound / size, self.config.min_sigma, 1.0))

    def _change_multiplier(self, state: MultipliersState) -> Gradient | None:
        """Change the multiplier until φ has to be minimised further. Returns the gradient of φ, or None where the run
        has ended."""
        phi, inner, config = self.lagrangian, state.lagrangian, self.config
        loss_gradient = phi.loss_gradient(inner)
        gradient = None
        for _ in range(config.max_changes):
            gradient = phi.gradient(inner, loss_gradient)
            scale = max(phi.size(gradient.smooth), phi.size(gradient.coupling), 1e-10 * state.first_size, 1e-300)
            residual = phi.residual(inner, gradient.s)
            if not state.minimised and phi.size(gradient.total) > config.enough(residual, scale):
                break
            self._take_multiplier(state, gradient, residual, loss_gradient)
            if state.finished or state.stalled:
                return None
        return gradient

    def _take_multiplier(
        self, state: MultipliersState, gradient: Gradient, residual: float, loss_gradient: np.ndarray
    ) -> None:
        """u ← σ(w − s); then update σ, κ and v₀. Returns whether the run continues."""
        inner, config = state.lagrangian, self.config
        inner.u = gradient.t
        state.minimised = False
        inner.centre = inner.v.copy()
        inner.kappa = config.next_kappa(inner.kappa)
        better = self._measure(state, gradient.s, loss_gradient)
        state.idle = 0 if better else state.idle + 1
        inner.sigma = config.next_sigma(inner.sigma, state.newton_steps, residual, state.last_residual)
        state.newton_steps, state.last_residual = 0, residual
        state.finished = self.tol is not None and state.reached <= self.tol
        state.stalled = not state.finished and state.idle >= config.max_idle

    def _newton_step(self, state: MultipliersState, gradient: Gradient) -> None:
        length, state.minimised = self.lagrangian.newton_step(state.lagrangian, gradient)
        state.point.clock[1] += self.problem.n_samples
        state.newton_steps += 1
        state.refusals = 0 if length > 0.0 else state.refusals + 1
        if state.refusals >= self.config.max_refusals:
            self._measure(state)
            state.stalled = True

    # -- the best point --------------------------------------------------------------------------------------

    def _measure(
        self, state: MultipliersState, s: np.ndarray | None = None, gradient: np.ndarray | None = None
    ) -> bool:
        """Measure the optimality of the point that v stands for, and keep it where it is the best so far. Returns
        whether the measure improved."""
        problem, d, p = self.problem, self.problem.n_features, self.problem.n_split
        inner = state.lagrangian
        if s is None:
            s = self.lagrangian.prox(inner, self.lagrangian.shifted(inner, inner.v))
        multiplier, x, y = self.lagrangian.multiplier_of(inner.u), inner.v[:d], s[:p]
        if self.folded and not np.array_equal(x, y[-d:]):
            state.point.clock[1] += problem.n_samples
            evaluation = problem.backend.evaluate(y[-d:])
            return self.measure(state, Candidate.at(y[-d:], y, multiplier, evaluation))
        if self.constrained is not None:
            x = self.constrained.moved(x, y, self.lagrangian.metric[:d])
            state.point.clock[1] += problem.n_samples
            return self.measure(state, Candidate.at(x, y, multiplier, problem.backend.evaluate(x)))
        gradient = self.lagrangian.loss_gradient(inner) if gradient is None else gradient
        return self.measure(state, Candidate(x, y, multiplier, inner.loss, gradient, inner.slopes, inner.margins))

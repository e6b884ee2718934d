"""Proximal gradient steps, for penalties whose proximal step is exact.

Where the penalty lies along chains (``chains.py``) the problem can be minimised without splitting it: a step

    x ← prox of tψ(A·) at x − t∇f(x)

costs one evaluation of all samples and O(d). Its length t is spectral (Barzilai and Borwein 1988), long and short in
turn, and halved while the objective does not fall below the largest of the last few (Grippo et al. 1986; Wright et al.
2009). On well-conditioned data ten to twenty such steps suffice, which costs less than forming XᵀX once. On other data
they are slow; the solver measures its rate and stops where Newton steps, which continue from its point, are faster.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from skadmm.backends import tasks
from skadmm.backends.base import Evaluation
from skadmm.problem.problem import COUPLED, Problem
from skadmm.solvers.base import Setup
from skadmm.solvers.dual_update import Point
from skadmm.solvers.second_order import chains
from skadmm.solvers.second_order.base import SecondOrderSolver, SolverState, ridge_of
from skadmm.solvers.second_order.line_search import ROUNDING


@dataclass(frozen=True)
class ProxGradientConfig:
    """Settings of the proximal gradient solver."""

    memory: int = 5
    """A step may increase the objective, but not above the largest of this many earlier values."""
    sufficient_decrease: float = 1e-5
    """The objective after a step must be below that value by this share of ‖step‖² / 2t."""
    max_halvings: int = 30
    """The maximum number of halvings of one step's length."""
    rate_span: int = 4
    """The rate of convergence is measured over this many steps, without the first ones, which are not typical. Where a
    certificate needs evaluations of its own, it is computed once in as many steps."""
    max_steps_left: int = 60
    """The solver stops when it would need more steps than this at the measured rate."""
    max_steps_left_sparse: int = 20
    """The same number on sparse rows, of which Newton steps on clusters read less."""
    max_nonzero: int = 1000
    """The first steps leave many features nonzero that are zero at the solution. Where there are more than this, the
    next solver starts from the point this one began at."""
    smallest_tol: float = 1e-14
    """The tolerance aimed at where none is given."""
    gives_way: bool = True
    """True stops the solver when Newton steps would be faster. It is False where the solver runs alone."""
    max_idle: int = 25
    """Where the solver runs alone, it stops after this many measurements of the rate without progress in the optimality
    measure."""


@dataclass(kw_only=True)
class ProxGradientState(SolverState):
    """State of the proximal gradient solver."""

    length: float
    """t, the length of the next step; 0 when no length decreased the objective."""
    origin: np.ndarray
    """x at the start of the run."""
    recent: np.ndarray
    """The last objectives, the newest first."""
    gradient: np.ndarray
    """The gradient of the loss and of Ω at x."""
    slopes: np.ndarray
    """ℓ' of each sample at x."""
    margins: np.ndarray
    """aᵢ·x of each sample."""
    measured: float = np.inf
    """The optimality measure when the rate was last computed."""
    best_measured: float = np.inf
    """The smallest optimality measure, at the last progress."""
    idle: int = 0
    """Measurements of the rate since the last progress."""


class ProxGradient(SecondOrderSolver[ProxGradientState]):
    """Proximal gradient steps. A step is one evaluation of all samples, or several where it is shortened."""

    name = "proximal-gradient"
    summary = "Exact proximal steps of spectral lengths, for penalties along chains"
    Config: ClassVar[type[Any]] = ProxGradientConfig
    config: ProxGradientConfig

    def __init__(self, setup: Setup, config: ProxGradientConfig | None = None) -> None:
        super().__init__(setup, config)
        self.ridge = ridge_of(setup.problem)
        self.penalty = chains.chains_of(setup.problem)

    @classmethod
    def applies(cls, problem: Problem) -> str | None:
        """The penalty must lie along chains."""
        if problem.is_coupled:
            return COUPLED
        return chains.reason_against(problem)

    @classmethod
    def alone(cls, config: ProxGradientConfig) -> ProxGradientConfig:
        """The settings with `gives_way` = False."""
        return replace(config, gives_way=False)

    def init(self, point: Point, rho: float) -> ProxGradientState:
        """The state before the first evaluation."""
        n, d = self.problem.n_samples, self.problem.n_features
        return ProxGradientState(
            point=point, rho=rho, multiplier=rho * point.dual, length=0.0, origin=point.x.copy(),
            recent=np.full(self.config.memory, -np.inf), gradient=np.zeros(d), slopes=np.zeros(n), margins=np.zeros(n),
        )  # fmt: skip

    def step(self, state: ProxGradientState) -> None:
        """Take a proximal step, then decide whether to continue."""
        if not state.steps:
            self._start(state)
        self._move(state)
        self._judge(state)

    def slow(self, state: ProxGradientState) -> bool:
        """Return whether another solver should take over."""
        return state.stalled

    def loss_gradient(self, state: ProxGradientState) -> np.ndarray:
        """The gradient of the mean loss, without the part of Ω."""
        return state.gradient - self.ridge * state.point.x

    def evaluated_at(self, state: ProxGradientState, x: np.ndarray) -> Evaluation | None:
        """The last evaluation, if it was at `x`."""
        return self.problem.backend.evaluations.known(x)

    def finish(self, state: ProxGradientState) -> None:
        """Certify x, which is exactly fused and sparse at all times."""
        if not state.steps:
            self._start(state)
        if not state.finished:
            self._certify(state)

    def warm_start(self, state: ProxGradientState) -> None:
        """Start from an earlier point."""
        super().warm_start(state)
        state.origin[:] = state.point.x

    # -- a step ----------------------------------------------------------------------------------------------

    def _start(self, state: ProxGradientState) -> None:
        """Evaluate the start; the first length comes from the curvature along the gradient there."""
        state.objective, state.gradient = self._evaluate(state, state.point.x)
        state.recent[0] = state.objective
        problem, gradient = self.problem, state.gradient
        state.point.clock[1] += problem.n_samples
        curvature = problem.typical_curvature * problem.backend.mean(tasks.mean_square, gradient)
        curvature += float(gradient @ (self.ridge * gradient))
        state.length = float(gradient @ gradient) / curvature if curvature > 0.0 else 0.0

    def _evaluate(self, state: ProxGradientState, x: np.ndarray) -> tuple[float, np.ndarray]:
        """The objective and the gradient of the smooth part."""
        evaluation, touched = self.problem.backend.evaluations.at(x)
        state.point.clock[1] += touched
        state.slopes, state.margins = evaluation.slopes, np.asarray(evaluation.margins)
        return evaluation.loss + self.problem.penalty(x), evaluation.gradient + self.ridge * x

    def _move(self, state: ProxGradientState) -> None:
        x, config = state.point.x, self.config
        for _ in range(config.max_halvings):
            if not 0.0 < state.length < np.inf:
                state.stalled = True
                return
            candidate, multiplier = self.penalty.prox(x - state.length * state.gradient, state.length)
            step = candidate - x
            square = float(step @ step)
            objective, gradient = self._evaluate(state, candidate)
            highest = state.recent.max() + ROUNDING * abs(state.objective)
            fell = objective <= highest - config.sufficient_decrease * square / (2.0 * state.length)
            if fell and np.isfinite(objective) and np.isfinite(gradient).all():
                break
            state.length *= 0.5
        else:
            state.length = 0.0
            state.objective, state.gradient = self._evaluate(state, x)
            state.stalled = True
            return
        change = gradient - state.gradient
        along = float(step @ change)
        if along > 0.0:
            state.length = square / along if state.steps % 2 else along / float(change @ change)
        self._place(state, candidate, multiplier)
        state.objective, state.gradient = objective, gradient
        state.recent = np.concatenate([[objective], state.recent[:-1]])

    def _place(self, state: ProxGradientState, x: np.ndarray, multiplier: np.ndarray) -> None:
        point, state.multiplier = state.point, multiplier
        point.x[:] = x
        point.y[:] = self.penalty.values(x)
        point.dual[:] = multiplier / state.rho

    def _judge(self, state: ProxGradientState) -> None:
        """Decide whether the tolerance is met, and if not, whether the solver continues."""
        config = self.config
        due = (state.steps + 1) % config.rate_span == 1
        if due or not self.certifier.free.size:
            self._certify(state)
        reached = self.optimality(state)[1]
        state.finished = self.tol is not None and reached <= self.tol
        if not due or state.finished:
            return
        reached = max(reached, np.finfo(float).tiny)
        ended = self._too_slow(state, reached) if config.gives_way else self._idle(state, reached)
        state.stalled = state.stalled or ended
        state.measured = reached
        many = config.max_nonzero + np.count_nonzero(state.origin)
        if state.stalled and config.gives_way and np.count_nonzero(state.point.x) > many:
            self._place(state, state.origin, np.zeros_like(state.multiplier))

    def _too_slow(self, state: ProxGradientState, reached: float) -> bool:
        """Return whether more steps are needed, at the rate measured last, than another solver would take."""
        made, config = state.steps + 1, self.config
        rate = np.log(state.measured / reached) / config.rate_span
        left = np.log(reached / (config.smallest_tol if self.tol is None else self.tol))
        limit = config.max_steps_left_sparse if self.problem.is_sparse else config.max_steps_left
        return made > 2 * config.rate_span and not left <= limit * rate

    def _idle(self, state: ProxGradientState, reached: float) -> bool:
        """Return whether the optimality measure has not improved for `max_idle` measurements."""
        if reached < 0.99 * state.best_measured:
            state.best_measured, state.idle = reached, 0
        else:
            state.idle += 1
        return state.idle >= self.config.max_idle

    def _certify(self, state: ProxGradientState) -> None:
        """The best lower bound so far."""
        self.raise_bound(state, state.slopes, state.margins, self.loss_gradient(state))

"""L-BFGS for problems that are smooth: no ψ, and a squared norm as Ω.

A step reads all samples. Margins and gradients are products of whole matrices, so that several outputs cost little more
than one. The slopes at a point give a lower bound where Ω holds every feature, so an answer has a duality gap.

References
----------
Nocedal, J. (1980). Updating quasi-Newton matrices with limited storage. Mathematics of Computation 35.
Liu, D. C. and Nocedal, J. (1989). On the limited memory BFGS method for large scale optimization.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from skadmm import _cancel
from skadmm.backends.base import Evaluation
from skadmm.io.state import transient
from skadmm.kernels.expansion import expand
from skadmm.kernels.rows import as_matrix
from skadmm.problem.problem import Problem
from skadmm.regularizers import SquaredL2
from skadmm.solvers.base import Setup
from skadmm.solvers.dual_update import Point
from skadmm.solvers.second_order.base import SecondOrderSolver, SolverState, ridge_of
from skadmm.solvers.second_order.line_search import ROUNDING

LIKELY = 1.5
"""A certificate is computed where the gap that is expected is at most this many times the tolerance."""


@dataclass(frozen=True)
class LimitedMemoryConfig:
    """Settings of L-BFGS."""

    memory: int = 10
    """The number of pairs of steps and changes of the gradient that are kept."""
    moves_per_step: int = 10
    """The number of line searches in a step, each of which reads all samples about once."""
    max_trials: int = 20
    """The maximum number of points tried in one line search."""
    growth: float = 4.0
    """The factor by which a step is lengthened while the objective falls steeply at its end."""
    decrease: float = 1e-4
    """The share of the expected decrease that a step must reach."""
    slope_left: float = 0.9
    """The share of the slope that a step may leave."""
    max_idle: int = 10
    """The solver stops after this many steps in a row that decrease the objective by no more than rounding."""


@dataclass(kw_only=True)
class LimitedMemoryState(SolverState):
    """State of L-BFGS. The objective is that of ``point.x``."""

    moves: np.ndarray
    """The last steps, one in each row, each in place of the oldest."""
    changes: np.ndarray
    """The changes of the gradient along them."""
    pairs: int = 0
    """How many steps and changes have been kept since the last restart."""
    gradient: np.ndarray
    """The gradient of the objective at the point; empty before the first step."""
    certified: bool = False
    """True where the lower bound includes that of the point."""
    idle: int = 0
    """Steps in a row that did not decrease the objective."""
    here: Evaluation | None = transient(default=None)
    """The samples at the point."""


class LimitedMemory(SecondOrderSolver[LimitedMemoryState]):
    """L-BFGS. A step is a few line searches."""

    name = "limited-memory"
    summary = "L-BFGS for smooth problems"
    Config: ClassVar[type[Any]] = LimitedMemoryConfig
    config: LimitedMemoryConfig

    def __init__(self, setup: Setup, config: LimitedMemoryConfig | None = None) -> None:
        super().__init__(setup, config)
        problem = setup.problem
        rows = problem.rows
        self.ridge = ridge_of(problem)
        self.held = np.where(self.ridge > 0.0, self.ridge, np.inf) * np.ones(problem.n_features)
        """The ridge of each feature; infinite where there is none."""
        self.outputs = problem.n_outputs
        self.X = as_matrix(rows.rows if self.outputs > 1 else rows)
        self.Xt = self.X.T
        self.every = np.arange(problem.n_samples)

    @classmethod
    def applies(cls, problem: Problem) -> str | None:
        """No ψ, a squared norm as Ω, and rows in this process."""
        if problem.n_constraints or problem.n_split:
            return "it takes no ψ"
        if not isinstance(problem.omega, SquaredL2) or not problem.omega.strength > 0.0:
            return "it needs a squared l2 as omega"
        if not np.isfinite(problem.loss_at_zero):
            return "the loss at zero is infinite"
        return problem.lacks_local_rows()

    def init(self, point: Point, rho: float) -> LimitedMemoryState:
        """The state before the first evaluation."""
        none = np.zeros((self.config.memory, self.problem.n_features))
        return LimitedMemoryState(
            point=point, rho=rho, multiplier=rho * point.dual, moves=none, changes=none.copy(), gradient=np.empty(0)
        )  # fmt: skip

    def step(self, state: LimitedMemoryState) -> None:
        """Move along some quasi-Newton directions."""
        if not state.gradient.size:
            self._take(state, state.point.x, self._evaluate(state, state.point.x))
        for _ in range(self.config.moves_per_step):
            _cancel.check_cancelled()
            state.finished = self.tol is not None and self.optimality(state)[1] <= self.tol
            state.stalled = not state.finished and state.idle >= self.config.max_idle
            if state.finished or state.stalled:
                return
            before = state.objective
            self._move(state)
            state.idle = 0 if state.objective < before - ROUNDING * abs(before) else state.idle + 1

    def finish(self, state: LimitedMemoryState) -> None:
        """The point is the solution; it gets a bound of its own where it has none."""
        if not state.certified:
            here = self._evaluate(state, state.point.x)
            self._take(state, state.point.x, here)
            if not state.certified:
                self.raise_bound(state, here.slopes, np.asarray(here.margins), here.gradient)

    def loss_gradient(self, state: LimitedMemoryState) -> np.ndarray | None:
        """The gradient of the mean loss at the point."""
        return state.gradient - self.ridge * state.point.x if state.gradient.size else None

    def evaluated_at(self, state: LimitedMemoryState, x: np.ndarray) -> Evaluation | None:
        """The evaluation at the point."""
        return state.here if np.array_equal(x, state.point.x) else None

    # -- a step ----------------------------------------------------------------------------------------------

    def _evaluate(self, state: LimitedMemoryState, x: np.ndarray) -> Evaluation:
        """All samples at `x`."""
        k, n = self.outputs, self.problem.n_samples
        margins = np.ascontiguousarray(self.X @ x.reshape(k, -1).T).ravel() if k > 1 else np.asarray(self.X @ x)
        slopes, curvatures = np.empty(n), np.empty(n)
        loss = float(expand(self.problem.samples(), self.every, margins, slopes, curvatures))
        gradient = (self.Xt @ slopes.reshape(-1, k)).T.ravel() if k > 1 else self.Xt @ slopes
        state.point.clock[1] += n
        return Evaluation(loss / n, np.asarray(gradient) / n, slopes, margins)

    def _take(self, state: LimitedMemoryState, x: np.ndarray, here: Evaluation) -> None:
        """Make x the point, and raise the lower bound where the gap is likely to meet the tolerance: where Ω holds all
        features it is Σ gradient²/(2 ridge) up to rounding."""
        state.point.x[:], state.here = x, here
        state.gradient = here.gradient + self.ridge * x
        state.objective = here.loss + 0.5 * float(x @ (self.ridge * x))
        gap = 0.5 * float(np.sum((state.gradient**2 / self.held)[self.held < np.inf]))
        if self.tol is None or gap <= LIKELY * self.tol * self.certifier.size(state.objective):
            self.raise_bound(state, here.slopes, np.asarray(here.margins), here.gradient)
            state.certified = True
        else:
            state.certified = False

    def _direction(self, state: LimitedMemoryState) -> np.ndarray:
        """−H⁻¹ gradient by the two loops over the pairs."""
        q, memory = -state.gradient, self.config.memory
        newest_first = [i % memory for i in range(state.pairs - 1, max(state.pairs - memory, 0) - 1, -1)]
        inverse = {i: 1.0 / float(state.moves[i] @ state.changes[i]) for i in newest_first}
        shares = {}
        for i in newest_first:
            shares[i] = inverse[i] * float(state.moves[i] @ q)
            q -= shares[i] * state.changes[i]
        if newest_first:
            i = newest_first[0]
            q /= inverse[i] * float(state.changes[i] @ state.changes[i])
        else:
            q /= max(float(np.linalg.norm(q)), 1.0)
        for i in reversed(newest_first):
            q += (shares[i] - inverse[i] * float(state.changes[i] @ q)) * state.moves[i]
        return q

    def _move(self, state: LimitedMemoryState) -> None:
        """A line search by the conditions of Wolfe, and the pair that it gives."""
        config, x, before = self.config, state.point.x.copy(), state.objective
        step = self._direction(state)
        slope = float(state.gradient @ step)
        if not slope < 0.0:
            state.pairs = 0
            step = self._direction(state)
            slope = float(state.gradient @ step)
        low, high, length = 0.0, np.inf, 1.0
        for _ in range(config.max_trials):
            trial = x + length * step
            here = self._evaluate(state, trial)
            value = here.loss + 0.5 * float(trial @ (self.ridge * trial))
            if not value <= before + config.decrease * length * slope + ROUNDING * abs(before):
                high = length
            elif float((here.gradient + self.ridge * trial) @ step) < config.slope_left * slope:
                low = length
            else:
                break
            length = 0.5 * (low + high) if np.isfinite(high) else config.growth * length
        if not value <= before + ROUNDING * abs(before):
            state.pairs = 0
            return
        old = state.gradient
        self._take(state, trial, here)
        moved, change = trial - x, state.gradient - old
        if moved @ change > 1e-14 * np.linalg.norm(moved) * np.linalg.norm(change):
            at = state.pairs % config.memory
            state.moves[at], state.changes[at] = moved, change
            state.pairs += 1

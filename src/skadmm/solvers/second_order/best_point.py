"""Solvers that keep the best point of their run: which point is better, and how a point is polished at the end.

Points are compared by the objective where there is a duality gap (the lower bound holds for every point), else by the
relative KKT residual among points whose objectives hardly differ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np

from skadmm.backends.base import Evaluation
from skadmm.io.state import transient
from skadmm.kernels.coupled_hessian import sum_coupled_outer
from skadmm.kernels.expansion import expand, sum_outer
from skadmm.problem.certificate import Certificate
from skadmm.problem.problem import Problem
from skadmm.solvers.base import Setup
from skadmm.solvers.second_order.base import SecondOrderSolver, SolverState, ridge_of
from skadmm.solvers.second_order.line_search import ROUNDING
from skadmm.solvers.second_order.polish import has_pattern, polished

SAME_OBJECTIVE = 1e-7
"""Objectives closer than this, relatively, do not decide which of two points without a duality gap is better."""
MAX_POLISHED = 5000
"""Up to this many features a point is polished, which takes a matrix of that order."""


@dataclass(kw_only=True)
class BestPointState(SolverState):
    """State of a solver that keeps the best point. The objective is that of the best point; the multiplier is the one
    with the best lower bound, and where there is none that of the best point."""

    x: np.ndarray
    """The x of the best point so far, by the measure that the run stops on."""
    y: np.ndarray
    """The y of the best point so far."""
    reached: float = np.inf
    """The relative gap of the best point, or its relative KKT residual where there is no certificate."""
    bound_x: np.ndarray | None = transient(default=None)
    """The point whose slopes give the best lower bound together with the multiplier."""


class Candidate(NamedTuple):
    """A point, with the samples evaluated at its x."""

    x: np.ndarray
    y: np.ndarray
    multiplier: np.ndarray
    loss: float
    gradient: np.ndarray
    """The gradient of the mean loss."""
    slopes: np.ndarray
    margins: np.ndarray

    @classmethod
    def at(cls, x: np.ndarray, y: np.ndarray, multiplier: np.ndarray, evaluation: Evaluation) -> Candidate:
        """A candidate from an evaluation of all samples at x."""
        return cls(
            x, y, multiplier, evaluation.loss, evaluation.gradient, evaluation.slopes, np.asarray(evaluation.margins)
        )


S = TypeVar("S", bound=BestPointState)


def constraint_values(problem: Problem, x: np.ndarray) -> np.ndarray:
    """A x − c, set to zero where it is only rounding error."""
    y = np.asarray(problem.y_of_x(x))
    y[np.abs(y) <= 1e-13 * (abs(problem.constraint.A) @ np.abs(x))] = 0.0
    return y


def hessian(problem: Problem, curvatures: np.ndarray) -> np.ndarray:
    """The second derivative of the mean loss."""
    n, k = problem.n_samples, problem.n_outputs
    per_row = problem.nnz / n if problem.is_sparse else problem.n_features
    work = 0.5 * n * per_row**2
    if not problem.is_coupled:
        return sum_outer(problem.rows, np.flatnonzero(curvatures), curvatures / n, work)
    backend = problem.local
    index = np.arange(n // k)
    return sum_coupled_outer(problem.rows, index, curvatures / n, k * work, problem.n_rows, backend.between_chunks)


class BestPointSolver(SecondOrderSolver[S]):
    """A solver whose answer is the best point that it has measured."""

    def __init__(self, setup: Setup, config: Any = None) -> None:
        super().__init__(setup, config)
        problem = setup.problem
        self.ridge = ridge_of(problem) if setup.omega_mode == "system" else 0.0
        self.folded = setup.omega_mode == "fold"
        self.gapped = self.certifier.kind != "none" and problem.y_of_x(np.zeros(problem.n_features)) is not None
        """True where there is a duality gap to stop on."""

    def optimality(self, state: S) -> tuple[str, float]:
        """The relative gap of the best point, or its relative KKT residual where there is no certificate."""
        return ("gap" if self.gapped and state.lower_bound > -np.inf else "kkt"), state.reached

    def certificate(self, state: S) -> Certificate | None:
        """Bounds of the optimum, where there is a duality gap."""
        return super().certificate(state) if self.gapped else None

    def give_up(self, state: S) -> None:
        """The best point so far."""
        point = state.point
        point.x[:], point.y[:] = state.x, state.y
        point.dual[:] = state.multiplier / state.rho

    def measure(self, state: S, candidate: Candidate) -> bool:
        """Measure the optimality of a point, and keep it where it is the best so far. Returns whether the measure
        improved. A point with an infinite loss is none: its slopes are not numbers."""
        if not np.isfinite(candidate.loss):
            return False
        problem = self.problem
        x, y, multiplier = candidate.x, candidate.y, candidate.multiplier
        exact_y = problem.y_of_x(x)
        objective = candidate.loss + problem.penalty(x, y if exact_y is None else exact_y)
        if self.gapped:
            bound = state.lower_bound
            self.raise_bound(
                state, candidate.slopes, candidate.margins, candidate.gradient, y == 0,
                objective=objective, multiplier=multiplier,
            )  # fmt: skip
            better = objective <= state.objective
            if state.lower_bound > bound:
                state.multiplier = self.certifier.dual_point(candidate.gradient, multiplier, y == 0)[1]
                state.bound_x = x.copy()
            if not better and state.lower_bound > -np.inf:
                state.reached = self.certifier.pair(state.objective, state.lower_bound).relative
        if self.gapped and state.lower_bound > -np.inf:
            reached = self.certifier.pair(objective, state.lower_bound).relative
        else:  # there is no certificate, or no dual point was found
            reached = problem.kkt(x, y, multiplier, candidate.gradient, candidate.loss).relative
        if not self.gapped:
            better = self._is_better(state, objective, reached, exact=exact_y is not None)
        if not better:
            return False
        improved = reached < 0.9 * state.reached
        state.reached, state.objective = reached, objective
        if not (self.gapped and state.lower_bound > -np.inf):
            state.multiplier = multiplier
        state.x, state.y = x.copy(), y.copy()
        return improved

    def _is_better(self, state: S, objective: float, reached: float, *, exact: bool) -> bool:
        """Return whether a point without a gap is better than the best one. Its KKT residual decides; but where y
        follows from x, all points are feasible, and an objective that is clearly lower decides."""
        if not np.isfinite(state.objective):
            return True
        margin = SAME_OBJECTIVE * self.certifier.size(state.objective)
        if exact and abs(objective - state.objective) > margin:
            return objective < state.objective
        return reached < state.reached

    def polish(self, state: S) -> None:
        """The best point with y's zeros exact in A x, where that is no worse."""
        problem, d, n = self.problem, self.problem.n_features, self.problem.n_samples
        if self.folded or d > MAX_POLISHED or not has_pattern(problem, state.y):
            return
        evaluation = problem.backend.evaluate(state.x)
        margins, slopes, curvatures = np.asarray(evaluation.margins), np.empty(n), np.empty(n)
        expand(problem.samples(), np.arange(n), margins, slopes, curvatures)
        H = hessian(problem, curvatures)
        np.einsum("ii->i", H)[:] += self.ridge
        q = H @ state.x - evaluation.gradient - self.ridge * state.x
        candidates = polished(problem, state.x, state.y, H, q)
        state.point.clock[1] += 2 * n
        if not candidates or np.array_equal(candidates[0], state.x):
            return
        refined = candidates[0]
        seen = problem.backend.evaluate(refined)
        state.point.clock[1] += n
        y = constraint_values(problem, refined)
        objective = seen.loss + problem.penalty(refined, y)
        if objective > state.objective + ROUNDING * abs(state.objective):
            return
        if not self.gapped:
            reached = problem.kkt(refined, y, state.multiplier, seen.gradient, seen.loss).relative
            if reached > max(state.reached, self.tol or 0.0):
                return
            state.reached = reached
        state.x, state.y, state.objective = refined, y, objective

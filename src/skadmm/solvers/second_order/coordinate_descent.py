"""Coordinate descent on second-order models, for penalties that act on each feature separately.

Where every row of A holds one feature (the plain lasso, weighted or not) and most features stay at zero, as where there
are more of them than samples, a step

  selects    the features that are not zero, and as many again of those that violate optimality most;
  models     the loss to second order in the margins, and minimises the model over one feature after another; each
             change is carried to the samples at once, so no Hessian is formed; most sweeps are over nonzero features;
  searches   along the change, in the margins; a new model is made there, until the selected features are near optimal;
  evaluates  all samples and features: objective, gradient, certificate.

Where columns are strongly correlated many sweeps are needed. The solver detects this and stops, and Newton steps
continue from its point.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from skadmm import _cancel
from skadmm.backends.base import Evaluation
from skadmm.kernels.expansion import add_rows, expand_along, margins, sum_rows
from skadmm.kernels.rows import (
    from_matrix,
    multiply,
    norms_squared,
    scaled_entries,
    stored_entries,
)
from skadmm.problem.problem import COUPLED, Problem
from skadmm.solvers.base import Setup
from skadmm.solvers.dual_update import Point
from skadmm.solvers.second_order import chains
from skadmm.solvers.second_order.base import SecondOrderSolver, SolverState, ridge_of
from skadmm.solvers.second_order.coordinate_sweeps import descend
from skadmm.solvers.second_order.line_search import ROUNDING, shorten
from skadmm.solvers.second_order.working_set import by_columns


@dataclass(frozen=True)
class CoordinateDescentConfig:
    """Settings of the coordinate descent solver."""

    first_selected: int = 100
    """The number of features selected in the first step."""
    growth: int = 2
    """Later steps select this many times the number of nonzero features, where that is more than `first_selected`."""
    violation_left: float = 0.1
    """A step ends when the largest violation among the selected features is this share of what it was. The same share
    ends the descent on one model."""
    max_models: int = 10
    """The maximum number of models of the loss in one step."""
    short_sweeps: int = 10
    """After a sweep over all selected features come at most this many over those that are not zero."""
    max_sweeps: int = 40
    """The maximum number of sweeps on one model, unless `solve_cost` allows more."""
    solve_cost: float = 250.0
    """With k features, the sweeps on one model may also be k³ divided by this many times their stored entries, which is
    about the cost of an exact solve of the model by Newton's method."""
    max_passes: float = 16.0
    """The solver stops after this many passes over the data, where sweeps count by the entries that they read, unless
    an exact solve would cost more than `max_sweeps` sweeps. They are counted from the last step in which the number of
    nonzero features grew, see `still_growing`."""
    still_growing: float = 1.25
    """The nonzero features grow where a step leaves this many times as many as before, and more than `first_selected`;
    another solver would have to find them too."""
    entries_per_chunk: int = 1 << 26
    """The number of entries that sweeps read between two checks of whether the run was cancelled."""
    min_sample_curvature: float = 1e-6
    """The smallest curvature of a sample in a model, as a share of the largest that the loss has: slopes are divided by
    it."""
    min_curvature: float = 1e-12
    """The smallest curvature of a feature in a model, as a share of the largest among the selected features."""
    gives_way: bool = True
    """True stops the solver when Newton steps would be faster. It is False where the solver runs alone."""
    max_idle: int = 5
    """Where the solver runs alone, it stops after this many steps that neither decrease the objective nor, together,
    halve the largest violation; otherwise it stops after one such step."""


@dataclass(kw_only=True)
class CoordinateDescentState(SolverState):
    """State of the coordinate descent solver."""

    evaluated_x: np.ndarray
    """x at the last evaluation of all samples and features; NaN before the first one and within a step."""
    margins: np.ndarray
    """aᵢ·x of each sample."""
    slopes: np.ndarray
    """ℓ' of each sample."""
    curvatures: np.ndarray
    """ℓ'' of each sample."""
    gradient: np.ndarray
    """The gradient of the loss and of Ω."""
    loss: float = np.inf
    """The mean loss."""
    violation: float = np.inf
    """The largest violation of optimality of any feature."""
    touched: int = 0
    """Samples touched by this solver."""
    settled: int = 0
    """The samples touched when the number of features that are not zero last grew."""
    expensive_solve: bool = False
    """True where an exact solve of the last model would cost more than `max_sweeps` sweeps."""
    last_violation: float = np.inf
    """The largest violation at the last step with progress."""
    idle: int = 0
    """The number of steps since the last step with progress."""


class Selected(NamedTuple):
    """Some features: all that are not zero, and others."""

    features: np.ndarray
    """The indices of the features."""
    columns: Any
    """The columns of the features in X; each is a row here."""
    threshold: np.ndarray
    """The ℓ1 strengths of the features."""
    entries: int
    """The number of stored entries in these columns."""


def violations(x: np.ndarray, gradient: np.ndarray, threshold: np.ndarray) -> np.ndarray:
    """How far each feature is from being optimal: the smallest absolute value of a subgradient."""
    at_zero = np.maximum(np.abs(gradient) - threshold, 0.0)
    return np.where(x == 0.0, at_zero, np.abs(gradient + threshold * np.sign(x)))


class CoordinateDescent(SecondOrderSolver[CoordinateDescentState]):
    """Coordinate descent on selected features. A step ends with one evaluation of all samples."""

    name = "coordinate-descent"
    summary = "Coordinate descent on second-order models over a growing set of features"
    Config: ClassVar[type[Any]] = CoordinateDescentConfig
    config: CoordinateDescentConfig

    def __init__(self, setup: Setup, config: CoordinateDescentConfig | None = None) -> None:
        super().__init__(setup, config)
        problem = setup.problem
        self.penalty = chains.chains_of(problem)
        self.ridge = np.full(problem.n_features, ridge_of(problem))
        self.samples, self.every = problem.samples(), np.arange(problem.n_samples)

    @cached_property
    def columns(self) -> Any:
        """X as a matrix whose columns can be selected fast."""
        return by_columns(self.problem)

    @classmethod
    def applies(cls, problem: Problem) -> str | None:
        """Every row of A must hold one feature."""
        if problem.is_coupled:
            return COUPLED
        reason = chains.reason_against(problem)
        if reason is None and chains.chains_of(problem).ties:
            return "A ties features to each other"
        return reason

    @classmethod
    def alone(cls, config: CoordinateDescentConfig) -> CoordinateDescentConfig:
        """The settings with `gives_way` = False."""
        return replace(config, gives_way=False)

    def init(self, point: Point, rho: float) -> CoordinateDescentState:
        """The state before the first evaluation; the columns are prepared here, before the clock runs."""
        _ = self.columns
        n, d = self.problem.n_samples, self.problem.n_features
        return CoordinateDescentState(
            point=point, rho=rho, multiplier=rho * point.dual, evaluated_x=np.full(d, np.nan), margins=np.zeros(n),
            slopes=np.empty(n), curvatures=np.empty(n), gradient=np.zeros(d),
        )  # fmt: skip

    def step(self, state: CoordinateDescentState) -> None:
        """Minimise over the features that violate optimality most; then evaluate all."""
        if not state.steps:
            self._start(state)
        before, violation, config = state.objective, state.violation, self.config
        had = int(np.count_nonzero(state.point.x))
        selected = self._selected(state)
        gradient, left, useful = state.gradient[selected.features], violation, True
        for _ in range(config.max_models):
            gradient, useful = self._descend(state, selected, gradient, config.violation_left * left)
            left = violations(state.point.x[selected.features], gradient, selected.threshold).max(initial=0.0)
            if not useful or left <= config.violation_left * violation:
                break
        self._evaluate_point(state)
        growing = self._is_growing(state, had)
        spent = state.touched - state.settled > config.max_passes * self.problem.n_samples and not state.expensive_solve
        if before - state.objective <= ROUNDING * abs(before) and state.violation >= 0.5 * state.last_violation:
            state.idle += 1
        else:
            state.last_violation, state.idle = state.violation, 0
        if config.gives_way:
            state.stalled = state.idle > 0 or spent or not (useful or growing)
        else:
            state.stalled = state.idle >= config.max_idle
        state.finished = self.tol is not None and self.optimality(state)[1] <= self.tol

    def _is_growing(self, state: CoordinateDescentState, had: int) -> bool:
        """Return whether many more features are in use than the `had` before the step."""
        now = int(np.count_nonzero(state.point.x))
        growing = now > self.config.first_selected and now >= self.config.still_growing * had
        if growing:
            state.settled = state.touched
        return growing

    def slow(self, state: CoordinateDescentState) -> bool:
        """Return whether another solver should take over."""
        return state.stalled

    def loss_gradient(self, state: CoordinateDescentState) -> np.ndarray:
        """The gradient of the mean loss, without the part of Ω."""
        return state.gradient - self.ridge * state.point.x

    def evaluated_at(self, state: CoordinateDescentState, x: np.ndarray) -> Evaluation | None:
        """The last evaluation, if it was at `x`."""
        if np.array_equal(state.evaluated_x, x):
            return Evaluation(state.loss, state.gradient - self.ridge * x, state.slopes, state.margins)
        return self.problem.backend.evaluations.known(x)

    def finish(self, state: CoordinateDescentState) -> None:
        """x is exactly sparse at all times, and certified after every step."""
        if not state.steps:
            self._start(state)

    def reweighted(self, problem: Problem) -> Self:
        """The same solver for another strength of ψ; the columns stay the same."""
        solver = super().reweighted(problem)
        solver.columns = self.columns
        return solver

    def follow(self, state: CoordinateDescentState, problem: Problem) -> CoordinateDescentState:
        """Margins, slopes and gradients do not depend on the strength of ψ; keep them where they are those of x."""
        new = super().follow(state, problem)
        if np.array_equal(state.evaluated_x, new.point.x):
            new.margins, new.slopes, new.curvatures = state.margins, state.slopes, state.curvatures
            new.loss, new.gradient, new.evaluated_x = state.loss, state.gradient, state.evaluated_x
        return new

    # -- a step ----------------------------------------------------------------------------------------------

    def _start(self, state: CoordinateDescentState) -> None:
        """Evaluate the start, where that has not been done at another strength of ψ."""
        if np.array_equal(state.evaluated_x, state.point.x):
            self._measure(state)
        else:
            margins(self.problem.rows, self.every, state.point.x, state.margins)
            state.loss = self._expand(state, np.zeros(self.every.size), 0.0)
            self._evaluate_point(state)
        state.last_violation = state.violation

    def _expand(self, state: CoordinateDescentState, change: np.ndarray, t: float) -> float:
        """The mean loss at the margins plus t times their change; slopes and curvatures there."""
        total = expand_along(self.samples, self.every, state.margins, change, t, state.slopes, state.curvatures)
        return float(total) / self.problem.n_samples

    def _evaluate_point(self, state: CoordinateDescentState) -> None:
        """All features at x, where the loss and its slopes are known."""
        problem, n, x = self.problem, self.problem.n_samples, state.point.x
        state.gradient = sum_rows(problem.rows, self.every, state.slopes, problem.nnz) / n + self.ridge * x
        state.evaluated_x = x.copy()
        self._count(state, n)
        self._measure(state)

    def _measure(self, state: CoordinateDescentState) -> None:
        """Objective, violation, y, multiplier and lower bound at x, where the gradient is known."""
        point, x, before = state.point, state.point.x, int(state.point.clock[1])
        state.objective = state.loss + self.problem.penalty(x)
        state.violation = float(violations(x, state.gradient, self.penalty.threshold).max())
        point.y[:] = self.penalty.values(x)
        state.multiplier = self.penalty.prox(x - state.gradient, 1.0).multiplier
        point.dual[:] = state.multiplier / state.rho
        self.raise_bound(state, state.slopes, state.margins, self.loss_gradient(state))
        state.touched += int(point.clock[1]) - before

    def _count(self, state: CoordinateDescentState, samples: int) -> None:
        state.point.clock[1] += samples
        state.touched += samples

    def _selected(self, state: CoordinateDescentState) -> Selected:
        x, threshold, config = state.point.x, self.penalty.threshold, self.config
        violation = violations(x, state.gradient, threshold)
        violation[x != 0.0] = np.inf
        features = np.flatnonzero(violation)
        limit = max(config.first_selected, config.growth * int(np.count_nonzero(x)))
        if features.size > limit:
            features = np.sort(features[np.argpartition(-violation[features], limit)[:limit]])
        part = self.columns[:, features]
        columns = from_matrix(part.T if self.problem.is_sparse else np.ascontiguousarray(part.T))
        return Selected(features, columns, threshold[features], stored_entries(columns))

    def _descend(
        self, state: CoordinateDescentState, selected: Selected, gradient: np.ndarray, goal: float
    ) -> tuple[np.ndarray, bool]:
        """Make a model at x, and move towards its minimiser as far as the objective decreases. Returns the gradient
        there, and whether another model should follow."""
        n, features = self.problem.n_samples, selected.features
        x, change = state.point.x[features], np.zeros(n)
        new, sweeps, converged = self._minimised(state, selected, x, goal)
        state.evaluated_x[:] = np.nan
        add_rows(selected.columns, np.arange(x.size), new - x, change)
        decreased = self._search(state, selected, x, new, change, float(gradient @ (new - x)))
        gradient = np.empty(x.size)
        multiply(selected.columns, state.slopes / n, gradient)
        # Besides the sweeps: the curvatures, the change of the margins, and this gradient.
        self._count(state, round(n * (sweeps + 3.0) * selected.entries / max(self.problem.nnz, 1)))
        useful = decreased and (converged or not self.config.gives_way)
        return gradient + self.ridge[features] * state.point.x[features], useful

    def _minimised(
        self, state: CoordinateDescentState, selected: Selected, x: np.ndarray, goal: float
    ) -> tuple[np.ndarray, float, bool]:
        """The minimiser of the model at x; the number of sweeps, and whether they met the goal.

        With the entries of every sample times the root of its curvature the model is one of least squares.
        """
        n, entries, config = self.problem.n_samples, max(selected.entries, 1), self.config
        smallest = config.min_sample_curvature * self.problem.typical_curvature
        root = np.sqrt(np.maximum(state.curvatures, smallest) / n)
        columns = scaled_entries(selected.columns, root)
        ridge = self.ridge[selected.features]
        curvature = norms_squared(columns) + ridge
        curvature = np.maximum(curvature, config.min_curvature * curvature.max(initial=np.finfo(float).tiny))
        new, residual = x.copy(), state.slopes / (n * root)
        order = np.empty(x.size, np.int64)
        model = (columns, curvature, selected.threshold, ridge, order, new, residual, goal, config.short_sweeps)
        limit = max(float(config.max_sweeps), x.size**3 / (config.solve_cost * entries))
        per_chunk = max(config.entries_per_chunk / entries, 1.0)
        state.expensive_solve = limit > config.max_sweeps
        sweeps, converged = 0.0, False
        while sweeps < limit and not converged:
            _cancel.check_cancelled()
            made, converged = descend(*model, min(per_chunk, limit - sweeps))
            sweeps += made
        return new, sweeps, converged

    def _search(
        self,
        state: CoordinateDescentState,
        selected: Selected,
        x: np.ndarray,
        new: np.ndarray,
        change: np.ndarray,
        smooth: float,
    ) -> bool:
        """From x towards `new`, by which the margins change by `change`; False where no length decreases the objective.
        `smooth` is the derivative of the smooth part along the way."""
        threshold, ridge, losses = selected.threshold, self.ridge[selected.features], {}

        def at(t: float) -> np.ndarray:
            return new if t == 1.0 else x + t * (new - x)

        def penalty(x: np.ndarray) -> float:
            return float(threshold @ np.abs(x)) + 0.5 * float(x @ (ridge * x))

        def merit(t: float) -> float:
            losses[t] = self._expand(state, change, t)
            return losses[t] + penalty(at(t))

        expected = smooth + float(threshold @ (np.abs(new) - np.abs(x)))
        length = shorten(merit, state.loss + penalty(x), expected)
        if length == 0.0:
            change[:] = 0.0
            merit(0.0)
        state.margins += length * change
        state.loss = losses[length]
        state.point.x[selected.features] = at(length)
        return length > 0.0

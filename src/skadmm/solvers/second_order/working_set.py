"""Newton ADMM on a small set of features at a time, for many features and rows of A with three entries or more.

When every feature carries an ℓ1 term, most are zero at the solution. The problem is solved on a working set of
features, the others held at zero; one product Xᵀθ then shows which of the others violate their optimality condition,
and the worst of them join. A feature that is far from leaving zero may leave the set, but only once, or the sets could
cycle. The multipliers of rows that reach outside the set take part in the test there, so the run ends with a
certificate for the whole problem.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import scipy.sparse

from skadmm.backends import LocalBackend
from skadmm.io.state import resizable
from skadmm.kernels.expansion import expand
from skadmm.kernels.rows import as_matrix, from_matrix
from skadmm.problem.certificate import Certifier
from skadmm.problem.constraint import Constraint
from skadmm.problem.problem import COUPLED, Problem
from skadmm.regularizers import L1, Zero
from skadmm.solvers.base import Setup
from skadmm.solvers.dual_update import Point
from skadmm.solvers.second_order.base import SecondOrderSolver, SolverState
from skadmm.solvers.second_order.l1_rows import checked_strengths, row_strengths
from skadmm.solvers.second_order.newton_admm import NewtonADMM, NewtonADMMConfig


@dataclass(frozen=True)
class WorkingSetConfig:
    """Settings of the working-set solver."""

    first_set: int = 400
    """At most this many features join in a round; once more than that are not zero, as many as those."""
    idle_share: float = 0.9
    """A zero feature whose violation is below this share of its bound may leave the set."""
    min_excess: float = 1e-10
    """A feature joins when its violation exceeds its bound by more than this share."""
    steps_per_round: int = 4
    """Steps of Newton ADMM on one set."""
    sweeps: int = 40
    """Sweeps of ADMM in such a step."""
    settled: tuple[float, ...] = (1e-2, 1e-3, 1e-4, 1e-6, 1e-8)
    """A round ends when a step improves the objective by less than this share; one entry per round at first."""
    last_settled: float = 1e-13
    """The same share for all later rounds."""


@dataclass(kw_only=True)
class WorkingSetState(SolverState):
    """State of the working-set solver."""

    features: np.ndarray = resizable()
    """The working set."""
    left: np.ndarray
    """Which features have left the set before."""
    returned: np.ndarray
    """Which of those have come back, and stay."""
    margins: np.ndarray
    """aᵢ·x of each sample."""
    slopes: np.ndarray
    """ℓ' of each sample at x."""
    gradient: np.ndarray
    """The gradient of the mean loss at x."""
    rounds: int = 0
    """The number of sets on which the problem was solved; a warm start counts as one."""
    evaluated: bool = False
    """True where margins, slopes and gradient are those of ``point.x``."""


class _Round(NamedTuple):
    """The solution on one set."""

    point: Point
    multiplier: np.ndarray
    rho: float


class WorkingSet(SecondOrderSolver[WorkingSetState]):
    """Rounds of Newton ADMM on growing sets. A step is one round."""

    name = "working-set"
    summary = "Second-order models over a growing set of features"
    Config: ClassVar[type[Any]] = WorkingSetConfig
    config: WorkingSetConfig

    def __init__(self, setup: Setup, config: WorkingSetConfig | None = None) -> None:
        super().__init__(setup, config)
        self.strengths = checked_strengths(setup.problem)
        self.data = ColumnAccess(setup.problem)
        nodes = self.certifier.node_rows
        if nodes is None:
            raise ValueError("A must have a row for every feature alone")
        self.node_row, self.node_entry = nodes
        self.node_bound = self.strengths[self.node_row] * np.abs(self.node_entry)
        """λ_j of each feature's own row, in units of the gradient."""

    @classmethod
    def applies(cls, problem: Problem) -> str | None:
        """Every feature must carry an ℓ1 term of its own."""
        if problem.is_coupled:
            return COUPLED
        constraint, strengths = problem.constraint, row_strengths(problem.psi, problem.n_split)
        plain = isinstance(problem.omega, Zero) and constraint.B is None and not constraint.c.any()
        positive = strengths is not None and strengths.min() > 0
        if problem.backend.local_rows and plain and positive and Certifier(problem).kind == "l1":
            return None
        return "psi must be an ℓ1 norm with a row of A for every feature alone, without omega, B and c"

    def init(self, point: Point, rho: float) -> WorkingSetState:
        """The features that are not zero are the first set."""
        n, d = self.problem.n_samples, self.problem.n_features
        return WorkingSetState(
            point=point, rho=rho, multiplier=np.zeros(self.problem.n_constraints), features=np.flatnonzero(point.x),
            left=np.zeros(d, bool), returned=np.zeros(d, bool), margins=np.zeros(n), slopes=np.zeros(n),
            gradient=np.zeros(d),
        )  # fmt: skip

    def step(self, state: WorkingSetState) -> None:
        """A round: extend the set, solve on it, evaluate the whole problem."""
        if not state.evaluated:
            self._evaluate(state)
        self._grow(state)
        self._solve_on_set(state)
        self._evaluate(state)
        state.finished = self.tol is not None and self.optimality(state)[1] <= self.tol

    def loss_gradient(self, state: WorkingSetState) -> np.ndarray:
        """The gradient at the last evaluation."""
        return state.gradient

    def finish(self, state: WorkingSetState) -> None:
        """The rounds end with a polished x and a certificate."""
        if not state.evaluated:
            self._evaluate(state)

    def warm_start(self, state: WorkingSetState) -> None:
        """Start from an earlier point, with its support as the first set."""
        super().warm_start(state)
        state.features = np.flatnonzero(state.point.x)
        state.rounds = 1
        state.evaluated = False

    def reweighted(self, problem: Problem) -> Self:
        """The same solver for another strength of ψ, with the columns of this one."""
        other = super().reweighted(problem)
        other.data = self.data
        return other

    def follow(self, state: WorkingSetState, problem: Problem) -> WorkingSetState:
        """Start from the last solution and its support."""
        after = super().follow(state, problem)
        self.warm_start(after)
        return after

    # -- a round ---------------------------------------------------------------------------------------------

    def _evaluate(self, state: WorkingSetState) -> None:
        """The whole problem at x: objective, gradient over all features, and a lower bound."""
        problem, columns, n, x = self.problem, self.data.columns, self.problem.n_samples, state.point.x
        support = np.flatnonzero(x)
        state.margins[:] = columns[:, support] @ x[support] if support.size else 0.0
        loss = expand(problem.samples(), np.arange(n), state.margins, state.slopes, np.empty(n)) / n
        state.objective = loss + problem.penalty(x)
        state.gradient = columns.T @ (state.slopes / n)
        state.point.clock[1] += n
        state.evaluated = True
        self.raise_bound(state, state.slopes, state.margins, state.gradient, state.point.y == 0)

    def _grow(self, state: WorkingSetState) -> None:
        """Add the features with the largest violations to the set; features that stay at zero leave it, once each."""
        config, x = self.config, state.point.x
        excess = self._violation(state) / self.node_bound
        inside = np.zeros(self.problem.n_features, bool)
        inside[state.features] = True
        violators = np.flatnonzero(~inside & (excess > 1.0 + config.min_excess))
        state.stalled = violators.size == 0 and state.rounds > len(config.settled)
        limit = max(config.first_set, int(np.count_nonzero(x)))
        if violators.size > limit:
            violators = violators[np.argpartition(-excess[violators], limit)[:limit]]
        elif violators.size:
            # Few violations are left. Their neighbours hold these features or would join next, so they join now.
            violators = np.union1d(violators, self.data.neighbours[violators].indices)
        idle = inside & (x == 0) & (excess < config.idle_share) & ~state.returned
        state.left |= idle
        inside[idle] = False
        inside[violators] = True
        state.returned |= inside & state.left
        state.features = np.flatnonzero(inside)

    def _violation(self, state: WorkingSetState) -> np.ndarray:
        """|∂f + Aᵀβ| of each feature without its own row, whose multiplier is free."""
        violation = state.gradient + self.problem.constraint.At(state.multiplier)
        return np.abs(violation - self.node_entry * state.multiplier[self.node_row])

    def _solve_on_set(self, state: WorkingSetState) -> None:
        """Run Newton ADMM on the set, from the end of the last round."""
        features, point = state.features, state.point
        rows = np.unique(self.data.A_columns[:, features].indices)
        small = self._restricted(features, rows)
        x = point.x[features]
        start = Point(
            x.copy(), small.constraint.A @ x, state.multiplier[rows] / state.rho, np.zeros(x.size), np.zeros(x.size),
            np.zeros(rows.size), np.zeros(2, np.int64),
        )  # fmt: skip
        solution = self._round(small, start, state)
        point.clock[1] += int(solution.point.clock[1])
        state.rho = solution.rho
        state.rounds += 1
        point.x[:] = 0.0
        point.x[features] = solution.point.x
        point.y[:] = self.problem.constraint.A @ point.x
        point.y[rows] = solution.point.y
        state.multiplier[rows] = solution.multiplier
        point.dual[:] = state.multiplier / state.rho
        state.evaluated = False

    def _round(self, small: Problem, start: Point, state: WorkingSetState) -> _Round:
        """Take a few steps of Newton ADMM, fewer in the first rounds."""
        config, rounds = self.config, state.rounds
        setup = Setup(small, state.rho, self.setup.step, 1, "none", rho_given=rounds > 0, warm=True)
        adapt_rho = not self.setup.rho_given
        newton = NewtonADMMConfig(
            full_sweeps=config.sweeps, small_model=0.0, revisit_large_shifts=False, adapt_rho=adapt_rho
        )
        engine = NewtonADMM.engine(setup, start, newton)
        settled = config.settled[rounds] if rounds < len(config.settled) else config.last_settled
        before = np.inf
        one = np.zeros(1, np.int64)
        for _ in range(config.steps_per_round):
            engine.advance(one)
            objective = engine.current.objective
            if before - objective <= settled * abs(objective):
                break
            before = objective
        engine.finish()
        return _Round(start, engine.current.multiplier, engine.rho)

    def _restricted(self, features: np.ndarray, rows: np.ndarray) -> Problem:
        """The problem on some features, the others zero, with the rows of A that reach them."""
        whole, part = self.problem, self.data.columns[:, features]
        part = part.tocsr() if scipy.sparse.issparse(part) else np.ascontiguousarray(part)
        samples = whole.local
        return whole.replace(
            backend=LocalBackend(
                from_matrix(part), samples.target, samples.weight, whole.loss, classes=samples.classes
            ),
            constraint=Constraint(whole.constraint.A[rows][:, features], None, None, features.size),
            psi=L1(1.0, self.strengths[rows]),
        )


class ColumnAccess:
    """X and A by columns, which do not depend on the strength of ψ; computed when first used."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem

    @cached_property
    def columns(self) -> Any:
        """X."""
        return by_columns(self._problem)

    @cached_property
    def A_columns(self) -> scipy.sparse.csc_array:
        """A."""
        return scipy.sparse.csc_array(self._problem.constraint.A)

    @cached_property
    def neighbours(self) -> scipy.sparse.csr_array:
        """Which features share a row of A."""
        magnitude = abs(self._problem.constraint.A)
        return scipy.sparse.csr_array(magnitude.T @ magnitude)


def by_columns(problem: Problem) -> Any:
    """X as a matrix whose columns can be selected fast."""
    matrix = as_matrix(problem.rows)
    return matrix.tocsc() if problem.is_sparse else matrix

"""SAN-ADMM for many features and rows of A with three entries or more: a small set of features at a time.

When every feature carries an ℓ1 term, most are zero at the solution. The problem is solved on a working set of
features, the others held at zero; one product Xᵀθ then shows which of the others want to leave zero, and the worst of
them join. A feature that is far from leaving zero may go, but only once, or the sets could cycle. The multipliers of
rows that reach outside the set take part in the test there, so the run ends with a certificate for the whole problem.
"""

from typing import Any

import numpy as np
import scipy.sparse

from skadmm.backends import LocalBackend
from skadmm.kernels.expansion import expand
from skadmm.kernels.rows import as_matrix, from_matrix
from skadmm.problem.certificate import Certificate, Certifier
from skadmm.problem.constraint import Constraint
from skadmm.problem.problem import Problem
from skadmm.regularizers import L1, Zero
from skadmm.solvers.base import Setup
from skadmm.solvers.dual_update import Point
from skadmm.solvers.second_order.base import SolverEngine
from skadmm.solvers.second_order.newton_admm import NewtonADMM, NewtonADMMConfig
from skadmm.solvers.second_order.point_engine import PointEngine
from skadmm.solvers.second_order.reduced_newton import row_strengths

FIRST_SET = 400
"""At most this many features join in a round; once more than that are not zero, as many as those."""
IDLE = 0.9
"""A zero feature whose pull is below this share of its bound may leave the set."""
ROUND_STEPS, ROUND_SWEEPS = 4, 40
SETTLED = (1e-2, 1e-3, 1e-4, 1e-6, 1e-8)
"""A round ends when a step improves the objective by less than this share; one entry a round, the last one repeats."""
LAST_SETTLED = 1e-13


def applies(problem: Problem) -> bool:
    """Does every feature carry an ℓ1 of its own, in a problem without other complications?"""
    strengths = row_strengths(problem.psi, problem.n_split)
    if strengths is None or not isinstance(problem.omega, Zero) or problem.constraint.B is not None:
        return False
    return bool(strengths.min() > 0 and not problem.constraint.c.any() and Certifier(problem).kind == "l1")


class WorkingSet(PointEngine):
    """Rounds of SAN-ADMM on growing sets. One step is one round."""

    solver_name = "working-set"

    def __init__(self, setup: Setup, point: Point) -> None:
        problem = self.problem = setup.problem
        self.setup = setup
        self.point = point
        self.tol = setup.tol
        self.finished = False
        self.stalled = False
        self.certificate = None
        self.certifier = Certifier(problem)
        self.rho = setup.rho
        strengths, nodes = row_strengths(problem.psi, problem.n_split), self.certifier.node_rows
        assert strengths is not None, "see applies()"
        assert nodes is not None, "see applies()"
        self.strengths, self.nodes = strengths, nodes
        self.node_bound = strengths[nodes[0]] * np.abs(nodes[1])
        """λ_j of each feature's own row, in the units of the gradient."""
        self.columns = by_columns(problem)
        self.A_columns = scipy.sparse.csc_array(problem.constraint.A)
        self.neighbours = scipy.sparse.csr_array(abs(problem.constraint.A).T @ abs(problem.constraint.A))
        self.multiplier = np.zeros(problem.n_constraints)
        self.left, self.returned = np.zeros(problem.n_features, bool), np.zeros(problem.n_features, bool)
        self.lower_bound, self.objective = -np.inf, np.inf
        self.rounds = 0
        self.margins, self.slopes = np.zeros(problem.n_samples), np.empty(problem.n_samples)
        self.gradient = np.zeros(problem.n_features)
        self.features = np.flatnonzero(point.x)
        self.evaluated = False

    # -- what the loop sees ----------------------------------------------------------------------------------

    def advance(self, order: np.ndarray, until: float = np.inf) -> None:
        """As many rounds as `order` has entries."""
        for _ in order:
            if self.finished or self.point.clock[1] >= until:
                return
            if not self.evaluated:
                self._evaluate_point()
            self._grow()
            self._solve_on_set()
            self._evaluate_point()
            self._step_made()
            self.finished = self.stalled or (self.tol is not None and self.optimality()[1] <= self.tol)

    @property
    def slow(self) -> bool:
        """Has it come to its end short of the tolerance?"""
        return self.stalled and self.tol is not None and self.optimality()[1] > self.tol

    def optimality(self) -> tuple[str, float]:
        """The relative duality gap of the whole problem."""
        return "gap", Certificate(self.objective, self.lower_bound).relative

    def finish(self) -> None:
        """The rounds end with a polished x; certify it."""
        if not self.evaluated:
            self._evaluate_point()
        self.certificate = Certificate(self.objective, self.lower_bound)

    def restore(self, tables: dict[str, np.ndarray]) -> None:
        """Go on from an earlier point, with its support as the first set."""
        super().restore(tables)
        self.features = np.flatnonzero(self.point.x)
        self.rounds = 1

    # -- a round ---------------------------------------------------------------------------------------------

    def _evaluate_point(self) -> None:
        """The whole problem at x: objective, gradient over all features, and a lower bound."""
        problem, n = self.problem, self.problem.n_samples
        x = self.point.x
        support = np.flatnonzero(x)
        self.margins[:] = self.columns[:, support] @ x[support] if support.size else 0.0
        loss = expand(problem.samples(), np.arange(n), self.margins, self.slopes, np.empty(n)) / n
        self.objective = loss + problem.penalty(x)
        self.gradient = self.columns.T @ (self.slopes / n)
        self.point.clock[1] += n
        self.evaluated = True
        slack = self.point.y == 0
        bounds = self.certifier.certify(self.objective, self.slopes, self.gradient, self.multiplier, slack)
        self.lower_bound = max(self.lower_bound, bounds.dual)

    def _grow(self) -> None:
        """The worst violators outside the set join it; features that idle in it leave, each at most once."""
        excess = self._pull() / self.node_bound
        inside = np.zeros(self.problem.n_features, bool)
        inside[self.features] = True
        violators = np.flatnonzero(~inside & (excess > 1.0 + 1e-10))
        self.stalled = violators.size == 0 and self.rounds > len(SETTLED)
        most = max(FIRST_SET, int(np.count_nonzero(self.point.x)))
        if violators.size > most:
            violators = violators[np.argpartition(-excess[violators], most)[:most]]
        elif violators.size:
            # Few are left: their neighbours hold them, or will want in next, so they come along.
            violators = np.union1d(violators, self.neighbours[violators].indices)
        idle = inside & (self.point.x == 0) & (excess < IDLE) & ~self.returned
        self.left |= idle
        inside[idle] = False
        inside[violators] = True
        self.returned |= inside & self.left
        self.features = np.flatnonzero(inside)

    def _pull(self) -> np.ndarray:
        """|∂f + Aᵀβ| of each feature without its own row, which is free to answer."""
        row, entry = self.nodes
        pull = self.gradient + self.problem.constraint.At(self.multiplier)
        return np.abs(pull - entry * self.multiplier[row])

    def _solve_on_set(self) -> None:
        """SAN-ADMM on the set, from where the last round ended."""
        features = self.features
        rows = np.unique(self.A_columns[:, features].indices)
        small = self._restricted(features, rows)
        x = self.point.x[features]
        dual = self.multiplier[rows] / self.rho
        start = Point(
            x.copy(), small.constraint.A @ x, dual, np.zeros(x.size), np.zeros(x.size), np.zeros(rows.size),
            np.zeros(2, np.int64),
        )  # fmt: skip
        setup = Setup(small, self.rho, self.setup.step, 1, "none", rho_given=self.rounds > 0, warm=True)
        config = NewtonADMMConfig(
            full_sweeps=ROUND_SWEEPS, revisit_large_shifts=False, adapt_rho=not self.setup.rho_given
        )
        engine = SolverEngine(NewtonADMM(setup, config), start)
        settled = SETTLED[self.rounds] if self.rounds < len(SETTLED) else LAST_SETTLED
        before = np.inf
        one = np.zeros(1, np.int64)
        for _ in range(ROUND_STEPS):
            engine.advance(one)
            objective = engine.current.objective
            if before - objective <= settled * abs(objective):
                break
            before = objective
        engine.finish()
        self.point.clock[1] += int(start.clock[1])
        self.rho = engine.rho
        self.rounds += 1
        self.point.x[:] = 0.0
        self.point.x[features] = start.x
        self.point.y[:] = self.problem.constraint.A @ self.point.x
        self.point.y[rows] = start.y
        self.multiplier[rows] = engine.current.multiplier
        self.point.dual[:] = self.multiplier / self.rho
        self.evaluated = False

    def _restricted(self, features: np.ndarray, rows: np.ndarray) -> Problem:
        """The problem on some features, the others zero, with the rows of A that reach them."""
        whole, part = self.problem, self.columns[:, features]
        part = part.tocsr() if scipy.sparse.issparse(part) else np.ascontiguousarray(part)
        samples = whole.local
        return whole.replace(
            backend=LocalBackend(
                from_matrix(part), samples.target, samples.weight, whole.loss, classes=samples.classes
            ),
            constraint=Constraint(whole.constraint.A[rows][:, features], None, None, features.size),
            psi=L1(1.0, self.strengths[rows]),
        )


def by_columns(problem: Problem) -> Any:
    """X as a matrix whose columns are quickly at hand."""
    matrix = as_matrix(problem.rows)
    return matrix.tocsc() if problem.is_sparse else matrix

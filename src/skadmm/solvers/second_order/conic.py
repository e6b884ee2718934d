"""A conic interior point method (Clarabel) for small problems, which takes over where all other solvers stall.

The first step solves the problem itself, where its loss has a conic form; later steps solve the problem with the loss
expanded to second order around the best point, and search along the step to their solution. Points are measured like
those of every other solver, by the duality gap or the KKT residual of this package. The status that Clarabel reports is
not used.

References
----------
Goulart, P. J. and Chen, Y. (2024). Clarabel: an interior-point solver for conic programs with quadratic objectives.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp

from skadmm import _cancel
from skadmm.kernels.expansion import expand
from skadmm.kernels.rows import as_matrix
from skadmm.losses.offset import has_offset, split_offset
from skadmm.problem.problem import COUPLED, Problem
from skadmm.regularizers import SquaredL2, Zero
from skadmm.solvers.base import Setup
from skadmm.solvers.dual_update import Point
from skadmm.solvers.second_order import conic_terms
from skadmm.solvers.second_order.best_point import BestPointSolver, BestPointState, Candidate
from skadmm.solvers.second_order.conic_terms import (
    Expansion,
    Programme,
    add_expansion,
    add_loss,
    add_regularizer,
    takes,
    takes_loss,
)
from skadmm.solvers.second_order.polish import ConstrainedRows, penalty_slopes

INSTALL = "pip install 'skadmm[conic]'"
MAX_ENTRIES = 2_000_000
"""The largest number of entries of X, A and B for which the programme is formed."""
MAX_VARIABLES = 20_000
"""The largest number of samples, features and rows of A together for which the programme is formed."""


@dataclass(frozen=True)
class ConicConfig:
    """Settings of the conic solver."""

    tolerance: float = 1e-12
    """The gap and infeasibility at which Clarabel stops; it stops earlier where rounding prevents progress."""
    max_iterations: int = 200
    """The maximum number of iterations of Clarabel in one step."""
    max_idle: int = 3
    """The solver stops after this many steps without a better measure of optimality."""
    shortest: float = 1e-6
    """The smallest share of a step that is tried."""


@dataclass(kw_only=True)
class ConicState(BestPointState):
    """State of the conic solver."""

    idle: int = 0
    """Steps since the measure of optimality last improved."""


def positive(sizes: np.ndarray) -> np.ndarray:
    """Sizes with ones in place of zeros."""
    return np.where(sizes > 0.0, sizes, 1.0)


class Units(NamedTuple):
    """Units of the variables and of the rows of A x + B y = c in a programme."""

    x: np.ndarray
    """x is this times the variables of the programme."""
    y: float
    """y is this times the variables of the programme."""
    rows: np.ndarray
    """The rows are multiplied by this."""

    @classmethod
    def of(cls, problem: Problem, sizes: np.ndarray) -> Units:
        """Units in which columns of these sizes have size one, and so have the rows of A."""
        x = 1.0 / positive(sizes)
        A = problem.constraint.A @ sp.diags_array(x)
        norms = np.sqrt(np.asarray(A.multiply(A).sum(axis=1)).ravel())
        return cls(x, float(np.median(norms[norms > 0.0])) if np.any(norms > 0.0) else 1.0, 1.0 / positive(norms))


def has_conic_loss(problem: Problem) -> bool:
    """Return whether one programme solves the problem, because its loss has a conic form."""
    return takes_loss(problem.loss.loss if has_offset(problem.loss) else problem.loss)


class Conic(BestPointSolver[ConicState]):
    """Conic programmes. A step solves one of them, and counts as one evaluation of all samples for every point that is
    tried."""

    name = "conic"
    summary = "A conic interior point method, by Clarabel"
    Config: ClassVar[type[Any]] = ConicConfig
    config: ConicConfig

    def __init__(self, setup: Setup, config: ConicConfig | None = None) -> None:
        super().__init__(setup, config)
        problem = setup.problem
        self.X = sp.csr_array(as_matrix(problem.rows), dtype=np.float64)
        self.scale = problem.loss_at_zero if problem.loss_at_zero > 0.0 else 1.0
        """The objective of the programme is divided by this. Rounding may make a loss of zero negative."""
        squares = np.asarray(self.X.multiply(self.X).mean(axis=0)).ravel()
        reach = np.asarray(problem.constraint.A.multiply(problem.constraint.A).sum(axis=0)).ravel()
        self.weight = positive(np.where(squares > 0.0, squares, reach))
        """The curvature of a squared loss along each feature; where there is none, that of the rows of A."""
        self.units = [Units.of(problem, sizes) for sizes in self._sizes(squares)]
        """Units of the programme, the best ones first."""
        self.constrained = None if self.folded else ConstrainedRows.of(problem)

    @classmethod
    def applies(cls, problem: Problem) -> str | None:
        """Small problems in memory, whose penalties have a conic form."""
        if problem.is_coupled and not has_conic_loss(problem):
            return COUPLED
        if not conic_terms.is_installed():
            return f"it needs Clarabel: {INSTALL}"
        if not problem.backend.local_rows:
            return "its rows are on a cluster"
        reason = cls.too_large(problem)
        if reason is not None:
            return reason
        if problem.n_split and not takes(problem.psi, problem.n_split):
            return f"psi={type(problem.psi).__name__} has no conic form"
        if not isinstance(problem.omega, (Zero, SquaredL2)) and not takes(problem.omega, problem.n_features):
            return f"omega={type(problem.omega).__name__} has no conic form"
        return None

    @classmethod
    def too_large(cls, problem: Problem) -> str | None:
        """Why a problem is too large; None where it is not."""
        constraint = problem.constraint
        entries = problem.nnz + constraint.A.nnz + (0 if constraint.B is None else constraint.B.nnz)
        size = problem.n_samples + problem.n_features + problem.n_split + problem.n_constraints
        if entries > MAX_ENTRIES:
            return f"{entries} entries of X, A and B are more than a conic programme should have ({MAX_ENTRIES})"
        if size > MAX_VARIABLES:
            return f"samples, features and rows of A are {size} variables, and it takes {MAX_VARIABLES}"
        return None

    def init(self, point: Point, rho: float) -> ConicState:
        """The state before the first evaluation."""
        multiplier = rho * point.dual
        return ConicState(point=point, rho=rho, multiplier=multiplier, x=point.x.copy(), y=point.y.copy())

    def warm_start(self, state: ConicState) -> None:
        """Start from an earlier point."""
        super().warm_start(state)
        state.x, state.y = state.point.x.copy(), state.point.y.copy()

    def step(self, state: ConicState) -> None:
        """Solve a programme, and keep its solution where that is better."""
        _cancel.check_cancelled()
        if not np.isfinite(state.objective):
            self._try(state, state.x, state.y, state.multiplier)
        x, y, multiplier = self._solution(state)
        improved = np.isfinite(x).all() and self._search(state, x, y, multiplier)
        state.idle = 0 if improved else state.idle + 1
        state.finished = self.tol is not None and state.reached <= self.tol
        state.stalled = not state.finished and state.idle >= self.config.max_idle
        self.give_up(state)

    def finish(self, state: ConicState) -> None:
        """The best point, exactly fused and sparse."""
        if not np.isfinite(state.objective):
            self._try(state, state.x, state.y, state.multiplier)
        self.polish(state)
        self.give_up(state)

    # -- a step ----------------------------------------------------------------------------------------------

    def _search(self, state: ConicState, x: np.ndarray, y: np.ndarray, multiplier: np.ndarray) -> bool:
        """Try the solution of the programme, then points on the way to it; returns whether the measure improved."""
        if self._try(state, x, y, multiplier):
            return True
        before = state.x.copy(), state.y.copy()
        length = 0.1
        while length >= self.config.shortest:
            trial = [old + length * (new - old) for old, new in zip(before, (x, y), strict=True)]
            if self._try(state, trial[0], trial[1], multiplier):
                return True
            length *= 0.1
        return False

    def _try(self, state: ConicState, x: np.ndarray, y: np.ndarray, multiplier: np.ndarray) -> bool:
        """Measure a point, and return whether the measure improved."""
        d = self.problem.n_features
        if self.folded:
            x = y[-d:]
        elif self.constrained is not None:
            x = self.constrained.moved(x, y, self.weight)
        state.point.clock[1] += self.problem.n_samples
        return self.measure(state, Candidate.at(x.copy(), y, multiplier, self.problem.backend.evaluate(x)))

    def _sizes(self, squares: np.ndarray) -> list[np.ndarray]:
        """The sizes of the features' columns, in the ways that are tried one after the other.

        First by what a coefficient is worth: the inverse of the change that makes the loss or the penalty as large as
        the loss at zero. A column of tiny entries under a penalty then has the unit of the penalty; in units of the
        columns alone the entries of A would be as different as the scales of the columns. Those follow, then the units
        of x itself."""
        curved = np.sqrt(squares + self.ridge)
        worth, columns = curved / np.sqrt(self.scale), np.sqrt(self.weight)
        if self.problem.constraint.B is None:
            slopes = np.abs(penalty_slopes(self.problem, np.ones(self.problem.n_split)))
            worth = np.maximum(worth, abs(self.problem.constraint.A).T @ slopes / self.scale)
        return [np.where(worth > 0.0, worth, columns), columns, np.ones(squares.size)]

    def _solution(self, state: ConicState) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """x, y and the multiplier that solve the programme of this step."""
        problem, config, programme = self.problem, self.config, Programme()
        units = self.units[state.idle % len(self.units)]
        u, y = programme.variables(problem.n_features), programme.variables(problem.n_split)
        equal = self._add_constraint(programme, u, y, units)
        self._add_samples(programme, u, state, units)
        if np.any(self.ridge):
            programme.add_quadratic(u, units.x**2 * self.ridge)
        add_regularizer(problem.psi, programme, y, units.y)
        found = programme.solve(
            self.scale, tol_gap_abs=config.tolerance, tol_gap_rel=config.tolerance, tol_feas=config.tolerance,
            max_iter=config.max_iterations,
        )  # fmt: skip
        return units.x * found.values[u], *self._exact(units.y * found.values[y], units.rows * found.multipliers[equal])

    def _add_constraint(self, programme: Programme, u: np.ndarray, y: np.ndarray, units: Units) -> slice:
        """Add A x + B y = c, and return its rows."""
        constraint, rows = self.problem.constraint, sp.diags_array(units.rows)
        if not self.problem.n_constraints:
            return slice(0, 0)
        B = -sp.eye_array(y.size) if constraint.B is None else constraint.B
        terms = [(u, rows @ constraint.A @ sp.diags_array(units.x)), (y, units.y * (rows @ B))]
        return programme.add_rows("zero", units.rows * constraint.c, terms)

    def _add_samples(self, programme: Programme, u: np.ndarray, state: ConicState, units: Units) -> None:
        """The mean loss, as it is in the first step, or where it joins several margins, and expanded around the best
        point in the later ones."""
        problem, n = self.problem, self.problem.n_samples
        weights = (problem.sample_weight if problem.sample_weight.size else np.ones(n)) / n
        used = np.flatnonzero(weights)
        z = programme.variables(used.size)
        X = self.X[used] @ sp.diags_array(units.x)
        loss, target, offset = split_offset(problem.loss, problem.target)
        offset = np.zeros(n) if offset is None else offset
        programme.add_rows("zero", -offset[used], [(u, X), (z, -sp.eye_array(used.size))])
        exact = problem.is_coupled or not state.steps
        if exact and add_loss(loss, programme, z, target[used].astype(float), weights[used]):
            return
        margins, slopes, curvatures = self.X @ state.x, np.empty(n), np.empty(n)
        expand(problem.samples(), np.arange(n), margins, slopes, curvatures)
        # Slopes and curvatures have the weights of their samples in them.
        at = Expansion(margins[used] + offset[used], slopes[used], curvatures[used])
        add_expansion(programme, z, np.full(used.size, 1.0 / n), at)

    def _exact(self, split: np.ndarray, multiplier: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """y with exact zeros and within its bounds, and the multiplier."""
        if not split.size:
            return split, multiplier
        pull = self.problem.constraint.Bt(multiplier)
        sizes = float(np.linalg.norm(split)), float(np.linalg.norm(pull))
        step = sizes[0] / sizes[1] if min(sizes) > 0.0 and np.isfinite(sizes).all() else 1.0
        return self.problem.prox_psi(split - step * pull, step), multiplier

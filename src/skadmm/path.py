"""Regularisation paths: the strength at which the penalised part vanishes, and solutions from there down."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg

from skadmm import _checks
from skadmm._path_engine import PathEngine, Solution, can_follow
from skadmm.algorithms._point_engine import ridge_of
from skadmm.kernels.expansion import expand, sum_rows
from skadmm.kernels.rows import DenseRows
from skadmm.problem import Problem
from skadmm.result import Result, Status
from skadmm.run import solve
from skadmm.structure import degrees_of_freedom, null_space

if TYPE_CHECKING:
    import pandas as pd

LARGEST_PROGRAM = 20_000
"""Up to this many entries of A the linear program of alpha_max is solved; beyond it is bounded."""
NEWTON_STEPS = 60


@dataclass
class Path:
    """Solutions for decreasing strengths; row k of every array belongs to ``alphas[k]``."""

    alphas: np.ndarray
    x: np.ndarray
    """Shape (number of strengths, d)."""
    losses: np.ndarray
    """(1/n) Σ ℓ at each solution."""
    dof: np.ndarray
    """Degrees of freedom: for a graph, the fused groups that are not zero; free features count one each."""
    gaps: np.ndarray
    """What each solve reached: the relative duality gap, or the relative KKT residual without a certificate."""
    statuses: list[str]
    n_samples: int
    squared: bool

    @property
    def deviance(self) -> np.ndarray:
        """n log(mean squared residual) for the losses of regression, 2n times the mean loss for the others."""
        tiny = np.finfo(float).tiny
        if self.squared:
            return self.n_samples * np.log(np.maximum(2.0 * self.losses, tiny))
        return 2.0 * self.n_samples * self.losses

    @property
    def aic(self) -> np.ndarray:
        """Akaike's criterion, deviance + 2 dof."""
        return self.deviance + 2.0 * self.dof

    @property
    def bic(self) -> np.ndarray:
        """Schwarz's criterion, deviance + log(n) dof."""
        return self.deviance + np.log(self.n_samples) * self.dof

    def best(self, criterion: str = "bic") -> int:
        """The row with the least AIC or BIC."""
        if criterion not in ("aic", "bic"):
            raise ValueError(f"criterion={criterion!r}: it takes 'aic' or 'bic'")
        return int(np.argmin(getattr(self, criterion)))

    def to_frame(self) -> pd.DataFrame:
        """One row a strength: alpha, loss, dof, aic, bic, gap, status."""
        import pandas as pd

        columns = {"alpha": self.alphas, "loss": self.losses, "dof": self.dof, "aic": self.aic, "bic": self.bic}
        return pd.DataFrame(columns | {"gap": self.gaps, "status": self.statuses})

    def plot(self, **options: Any) -> Any:
        """The coefficients against alpha; see :func:`skadmm.plotting.coefficient_path`."""
        from skadmm.plotting import coefficient_path

        return coefficient_path(self.alphas, self.x, **options)


def alpha_max(problem: Problem) -> float:
    """The least strength of ψ at which Ax = 0 at the solution.

    With x₀ the minimiser on the null space of A and g the gradient there, it is the least ‖w‖ (dual norm of ψ) with
    Aᵀw = −g. For ℓ1 that is a linear program, solved exactly (and in closed form where AᵀA determines w); for
    disjoint groups w is unique. Where neither applies (overlapping groups, A beyond LARGEST_PROGRAM entries) a
    feasible w gives an upper bound.
    """
    A = problem.constraint.A
    if problem.n_split == 0:
        raise ValueError("alpha_max needs a problem with a psi")
    if problem.constraint.B is not None or problem.constraint.c.any():
        raise ValueError("alpha_max takes problems with B = −I and c = 0")
    gradient = _gradient_on_null_space(problem)
    return _least_dual_norm(A, gradient, problem.psi)


def path(
    problem: Problem,
    alphas: Any = None,
    *,
    n_alphas: int = 50,
    eps: float = 1e-3,
    tol: float = 1e-6,
    passes: float = 100,
    method: str = "auto",
    certify: bool = True,
    callback: Callable[[int, Solution], None] | None = None,
    **options: Any,
) -> Path:
    """Solve for decreasing strengths of ψ, each started from the one before.

    Parameters
    ----------
    problem : Problem
        Its ψ must have a strength; whatever that is, it is replaced.
    alphas : array-like or None
        The strengths; solved in decreasing order. None: `n_alphas` from alpha_max down to eps · alpha_max, in equal
        ratios.
    n_alphas, eps : int, float
        The default grid.
    tol, passes, method
        For each strength, see :func:`skadmm.solve`.
    certify : bool
        False: a strength is done when the model promises less than tol, without a proof by the duality gap; quicker,
        and good enough for cross-validation.
    callback : function of (k, Solution), optional
        Called after each strength.
    **options
        Further options of :func:`skadmm.solve`; with any of them every strength is a solve() of its own.

    Returns
    -------
    Path
    """
    if not hasattr(problem.psi, "strength"):
        raise TypeError(f"psi={type(problem.psi).__name__} has no strength to make a path of")
    grid = alpha_grid(alpha_max(problem), n_alphas, eps) if alphas is None else checked_alphas(alphas)
    tol, passes = _checks.number(tol, "tol", above=0), _checks.number(passes, "passes", above=0)
    if method in ("auto", "san-admm") and not options and can_follow(problem):
        step: Any = PathEngine(problem, tol, passes, certify=certify)
    else:
        step = _Separately(problem, {"method": method, "tol": tol, "passes": passes, "record_every": 0} | options)
    solutions = []
    for k, alpha in enumerate(grid):
        solution = step(float(alpha))
        if certify and solution.status is not Status.SOLVED and isinstance(step, PathEngine):
            other, _ = with_fixed_rho(with_strength(problem, alpha), tol, passes - solution.passes)
            if other is not None:
                loss = other.objective - with_strength(problem, alpha).penalty(other.x)
                solution = Solution(other.x, loss, reached(other), other.status)
        solutions.append(solution)
        if callback is not None:
            callback(k, solutions[-1])
    A, psi = problem.constraint.A, problem.psi
    return Path(
        alphas=grid,
        x=np.array([solution.x for solution in solutions]),
        losses=np.array([solution.loss for solution in solutions]),
        dof=np.array([degrees_of_freedom(A, solution.x, psi) for solution in solutions]),
        gaps=np.array([solution.reached for solution in solutions]),
        statuses=[str(solution.status) for solution in solutions],
        n_samples=problem.n_samples,
        squared=not problem.loss.labels,
    )


class _Separately:
    """A solve() for each strength, started from the result before."""

    def __init__(self, problem: Problem, options: dict[str, Any]) -> None:
        self.problem, self.options = problem, options
        self.last: Result | None = None

    def __call__(self, alpha: float) -> Solution:
        problem = with_strength(self.problem, alpha)
        result = solve(problem, warm_start=self.last, **self.options)
        self.last = None if result.status is Status.DIVERGED else result
        return Solution(result.x, result.objective - problem.penalty(result.x), reached(result), result.status)


def alpha_grid(top: float, n_alphas: int = 50, eps: float = 1e-3) -> np.ndarray:
    """From `top` down to eps · top in equal ratios."""
    n_alphas = _checks.count(n_alphas, "n_alphas")
    eps = _checks.number(eps, "eps", above=0)
    if eps >= 1:
        raise ValueError(f"eps={eps!r}: it takes a number in (0, 1)")
    if not top > 0:  # nothing to penalise away: the loss alone is at its minimum there
        top = 1.0
    return np.geomspace(top, eps * top, n_alphas) if n_alphas > 1 else np.array([top])


def with_fixed_rho(problem: Problem, tol: float, passes: float, **options: Any) -> tuple[Result | None, float]:
    """A second attempt, for a problem that the second-order method left unsolved: ρ is not adapted but fixed, at a few
    values around the one that gives loss and penalty the same curvature. They share `passes`.

    Returns the result, or None where none of them solves the problem, and the passes all of them took.
    """
    A = problem.constraint.A
    spent = 0.0
    if problem.n_split == 0 or A.nnz == 0 or problem.constraint.B is not None:
        return None, spent
    natural = problem.L_mean / float(A.power(2).sum())
    factors = (1.0, 10.0, 0.1)
    for k, factor in enumerate(factors):
        share = (passes - spent) / (len(factors) - k)
        if share <= 0.0:
            break
        result = solve(problem, "san-admm", rho=factor * natural, tol=tol, passes=share, **options)
        spent += result.passes
        if result.status is Status.SOLVED:
            return result, spent
    return None, spent


def with_strength(problem: Problem, alpha: float) -> Problem:
    """`problem` with ψ of another strength."""
    other = problem._on(problem.rows, problem.target, problem.sample_weight if problem.sample_weight.size else None)
    other.psi = problem.psi._replace(strength=float(alpha))
    return other


def reached(result: Result) -> float:
    """The relative gap a result ended with, or the relative KKT residual where there is none."""
    return float(result.kkt.relative if np.isnan(result.gap) else result.gap)


def checked_alphas(alphas: Any) -> np.ndarray:
    """`alphas` as decreasing numbers > 0."""
    grid = np.asarray(alphas, dtype=np.float64) if np.ndim(alphas) == 1 else np.empty(0)
    if grid.size == 0 or not np.all(np.isfinite(grid)) or np.any(grid <= 0):
        raise ValueError(f"alphas={alphas!r}: it takes a sequence of numbers > 0")
    return np.sort(grid)[::-1]


def _gradient_on_null_space(problem: Problem) -> np.ndarray:
    """∇f at the minimiser over {x : Ax = 0}, by Newton's method on the few coordinates of that space."""
    n = problem.n_samples
    basis = null_space(problem.constraint.A)
    if basis is None:
        raise ValueError(
            f"alpha_max: A is too large for its null space ({problem.n_features} features): give the alphas"
        )
    rows = problem.rows
    X = rows.values if isinstance(rows, DenseRows) else sp.csr_array((rows.data, rows.indices, rows.indptr), rows.shape)
    columns = np.asarray(X @ basis, dtype=np.float64)
    held = np.full(problem.n_features, ridge_of(problem))
    ridge = basis.T @ (held[:, None] * basis)
    index, samples = np.arange(n), problem.samples()
    z, slope, bend = np.zeros(n), np.empty(n), np.empty(n)
    u = np.zeros(basis.shape[1])
    value = expand(samples, index, z, slope, bend) / n
    for _ in range(NEWTON_STEPS if u.size else 0):
        g = columns.T @ slope / n + ridge @ u
        hessian = columns.T @ (bend[:, None] * columns) / n + ridge
        step = np.linalg.lstsq(hessian, g, rcond=1e-13)[0]
        decrease = float(g @ step)
        if decrease <= 1e-15 * max(abs(value), 1e-300):
            break
        length = 1.0
        while length > 1e-8:
            new = u - length * step
            z = columns @ new
            trial = expand(samples, index, z, slope, bend) / n + 0.5 * float(new @ ridge @ new)
            if trial <= value - 1e-4 * length * decrease:
                break
            length *= 0.5
        u, value = new, trial
    x = basis @ u
    return sum_rows(rows, index, slope, problem.nnz) / n + held * x


def _least_dual_norm(A: sp.csr_array, gradient: np.ndarray, psi: Any) -> float:
    """min dual norm of w over Aᵀw = −g; exact where it can be, else that of a feasible w."""
    if not np.any(gradient):
        return 0.0
    w = _least_squares_multiplier(A, gradient)
    bound = _dual_norm(psi, w)
    if not psi.separable or A.nnz > LARGEST_PROGRAM:
        return min(bound, _node_bound(A, gradient, psi))
    if A.shape[0] <= A.shape[1] and np.linalg.matrix_rank(A.toarray()) == A.shape[0]:  # w is unique
        return bound
    return min(bound, _linear_program(A, gradient, bound))


def _least_squares_multiplier(A: sp.csr_array, gradient: np.ndarray) -> np.ndarray:
    tight = {"atol": 1e-14, "btol": 1e-14, "iter_lim": 20 * max(A.shape)}
    return -np.asarray(scipy.sparse.linalg.lsqr(sp.csr_array(A.T), gradient, **tight)[0])


def _node_bound(A: sp.csr_array, gradient: np.ndarray, psi: Any) -> float:
    """With w on the rows that hold a single feature; infinite where one has none."""
    if not psi.separable:
        return np.inf
    single = np.flatnonzero(np.diff(A.indptr) == 1)
    entry = np.zeros(A.shape[1])
    np.maximum.at(entry, A.indices[A.indptr[single]], np.abs(A.data[A.indptr[single]]))
    reached_by_A = np.bincount(A.indices, minlength=A.shape[1]) > 0
    if np.any(entry[reached_by_A] == 0):
        return np.inf
    return float(np.max(np.abs(gradient[reached_by_A]) / entry[reached_by_A], initial=0.0))


def _dual_norm(psi: Any, w: np.ndarray) -> float:
    """The least strength of ψ whose conjugate is finite at w."""
    weights = np.asarray(psi.weights)
    if psi.separable:
        return float(np.max(np.abs(w) / weights if weights.size else np.abs(w), initial=0.0))
    members, starts = psi.groups
    norms = [np.linalg.norm(w[members[a:b]]) for a, b in itertools.pairwise(starts)]
    return float(np.max(np.array(norms) / weights, initial=0.0))


def _linear_program(A: sp.csr_array, gradient: np.ndarray, bound: float) -> float:
    """min t over Aᵀw = −g, |w| ≤ t, by HiGHS; infinite where it found nothing."""
    from scipy.optimize import linprog

    m = A.shape[0]
    reached_by_A = np.flatnonzero(np.bincount(A.indices, minlength=A.shape[1]))
    unit = bound  # the scale of w
    equal = sp.hstack([A.T[reached_by_A], sp.csr_array((reached_by_A.size, 1))], format="csr")
    sides = sp.vstack(
        [sp.hstack([sign * sp.eye_array(m), -sp.csr_array(np.ones((m, 1)))], format="csr") for sign in (1.0, -1.0)],
        format="csr",
    )
    cost = np.zeros(m + 1)
    cost[-1] = 1.0
    answer = linprog(
        cost, A_ub=sides, b_ub=np.zeros(2 * m), A_eq=equal, b_eq=-gradient[reached_by_A] / unit,
        bounds=[(None, None)] * m + [(0, None)], method="highs",
    )  # fmt: skip
    return float(answer.x[-1] * unit) if answer.status == 0 else np.inf


__all__ = ["Path", "alpha_grid", "alpha_max", "path"]

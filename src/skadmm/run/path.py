"""Regularisation paths: the strength at which the penalised part vanishes, and solutions from there down."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from skadmm import _checks
from skadmm.losses import deviance
from skadmm.problem.alpha_max import alpha_max
from skadmm.problem.problem import Problem
from skadmm.problem.structure import degrees_of_freedom
from skadmm.regularizers import SquaredL2
from skadmm.regularizers import with_strength as rescaled
from skadmm.run import memory
from skadmm.run.path_engine import FIRST_RHO, PathEngine, Solution, can_follow
from skadmm.run.result import Result, Status
from skadmm.run.solve import solve
from skadmm.solvers import ALGORITHMS, dual_update
from skadmm.solvers.base import Setup
from skadmm.solvers.second_order.base import SolverEngine
from skadmm.solvers.second_order.interior_point import InteriorPoint
from skadmm.solvers.select import prefers_interior_point

if TYPE_CHECKING:
    import pandas as pd

MAX_STEPS = 10_000
"""Of one solver at one strength; it ends by itself long before."""


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
    deviance: np.ndarray
    """−2 log likelihood up to a constant: n log(RSS/n) for the squared loss, whose variance is estimated; 2n times the
    mean loss for all others. See :func:`skadmm.losses.deviance`."""

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
    rescaled(problem.psi, 1.0)
    grid = alpha_grid(alpha_max(problem), n_alphas, eps) if alphas is None else checked_alphas(alphas)
    tol, passes = _checks.number(tol, "tol", above=0), _checks.number(passes, "passes", above=0)
    step: Any
    if method in ("auto", "san-admm", InteriorPoint.name) and not options and prefers_interior_point(problem):
        step = _Following(problem, tol, passes)
    elif method in ("auto", "san-admm") and not options and can_follow(problem):
        step = PathEngine(problem, tol, passes, certify=certify)
    else:
        step = _Separately(problem, {"method": method, "tol": tol, "passes": passes, "record_every": 0} | options)
    solutions = []
    for k, alpha in enumerate(grid):
        solution = step(float(alpha))
        left = passes - solution.passes
        if certify and left > 0.0 and solution.status is not Status.SOLVED and isinstance(step, PathEngine):
            other = _Separately(problem, {"tol": tol, "passes": left, "record_every": 0})(float(alpha))
            solution = other if other.status is Status.SOLVED else solution
        solutions.append(solution)
        if callback is not None:
            callback(k, solutions[-1])
    A, psi = problem.constraint.A, problem.psi
    return Path(
        alphas=grid,
        x=np.array([solution.x for solution in solutions]),
        losses=np.array([solution.loss for solution in solutions]),
        dof=np.array([degrees_of_freedom(A, solution.x, psi, solution.y) for solution in solutions]),
        gaps=np.array([solution.reached for solution in solutions]),
        statuses=[str(solution.status) for solution in solutions],
        n_samples=problem.n_samples,
        deviance=np.array([deviance(problem.loss, solution.loss, problem.n_samples) for solution in solutions]),
    )


class _Following:
    """One interior point solver from strength to strength: the samples are summed up, and the systems built, once."""

    def __init__(self, problem: Problem, tol: float, passes: float) -> None:
        self.problem, self.tol, self.limit = problem, tol, passes * problem.n_samples
        mode = "system" if isinstance(problem.omega, SquaredL2) else "none"
        self.setup = Setup(problem, FIRST_RHO, 1.0, 1, mode, rho_given=False, tol=tol)
        memory.check(self.setup, ALGORITHMS["san-admm"], None)
        start = dual_update.start(problem, np.zeros(problem.n_features), None, None)
        self.engine = SolverEngine(InteriorPoint(self.setup), start)

    def __call__(self, alpha: float) -> Solution:
        engine, problem = self.engine, with_strength(self.problem, alpha)
        engine.follow(problem)
        point, touched = engine.point, int(engine.point.clock[1])
        engine.advance(np.zeros(MAX_STEPS, np.int64), touched + self.limit)
        engine.finish()
        reached = float(engine.optimality()[1])
        status = Status.SOLVED if reached <= self.tol else Status.STALLED if engine.finished else Status.PASS_LIMIT
        assessment = engine.assessed(point.x, point.y)
        loss = problem.loss_value(point.x) if assessment is None else assessment.loss
        passes = (int(point.clock[1]) - touched) / problem.n_samples
        return Solution(point.x.copy(), loss, reached, status, point.y.copy(), passes)


class _Separately:
    """A solve() for each strength, started from the result before."""

    def __init__(self, problem: Problem, options: dict[str, Any]) -> None:
        self.problem, self.options = problem, options
        self.last: Result | None = None

    def __call__(self, alpha: float) -> Solution:
        problem = with_strength(self.problem, alpha)
        result = solve(problem, warm_start=self.last, **self.options)
        self.last = None if result.status is Status.DIVERGED else result
        loss = result.objective - problem.penalty(result.x)
        return Solution(result.x, loss, reached(result), result.status, result.y)


def alpha_grid(top: float, n_alphas: int = 50, eps: float = 1e-3) -> np.ndarray:
    """From `top` down to eps · top in equal ratios."""
    n_alphas = _checks.count(n_alphas, "n_alphas")
    eps = _checks.number(eps, "eps", above=0)
    if eps >= 1:
        raise ValueError(f"eps={eps!r}: it takes a number in (0, 1)")
    if not top > 0:  # nothing to penalise away: the loss alone is at its minimum there
        top = 1.0
    return np.geomspace(top, eps * top, n_alphas) if n_alphas > 1 else np.array([top])


def with_strength(problem: Problem, alpha: float) -> Problem:
    """`problem` with ψ of another strength."""
    return problem.replace(psi=rescaled(problem.psi, alpha))


def reached(result: Result) -> float:
    """The relative gap a result ended with, or the relative KKT residual where there is none."""
    return float(result.kkt.relative if np.isnan(result.gap) else result.gap)


def checked_alphas(alphas: Any) -> np.ndarray:
    """`alphas` as decreasing numbers > 0."""
    grid = np.asarray(alphas, dtype=np.float64) if np.ndim(alphas) == 1 else np.empty(0)
    if grid.size == 0 or not np.all(np.isfinite(grid)) or np.any(grid <= 0):
        raise ValueError(f"alphas={alphas!r}: it takes a sequence of numbers > 0")
    return np.sort(grid)[::-1]


__all__ = ["Path", "alpha_grid", "alpha_max", "path"]

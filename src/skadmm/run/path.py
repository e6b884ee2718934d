"""Regularisation paths: the strength at which the penalised part vanishes, and solutions from there down."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from skadmm import _checks, _summary
from skadmm._plots import plot
from skadmm.kernels.threads import one_thread
from skadmm.losses import deviance
from skadmm.problem.alpha_max import alpha_max
from skadmm.problem.problem import Problem
from skadmm.problem.structure import degrees_of_freedom
from skadmm.regularizers import with_strength
from skadmm.run.follow import Certified, Following, Goal, Separately, Solution, can_follow
from skadmm.solvers import SOLVERS

if TYPE_CHECKING:
    import pandas as pd


@dataclass(repr=False)
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

    def _facts(self) -> dict[str, Any]:
        """The essentials, in words."""
        return {
            "strengths": f"{self.alphas.size} from {self.alphas[0]:.4g} to {self.alphas[-1]:.4g}"
            if self.alphas.size
            else 0,
            "features": self.x.shape[1],
            "samples": self.n_samples,
            "solved": f"{sum(status == 'solved' for status in self.statuses)} of {len(self.statuses)}",
            "largest_gap": f"{np.nanmax(self.gaps):.1e}" if np.isfinite(self.gaps).any() else None,
        }

    def __repr__(self) -> str:
        return _summary.line("Path", self._facts())

    def _repr_html_(self) -> str:
        return _summary.table("Path", self._facts())

    def plot(self, **options: Any) -> Any:
        """The coefficients against alpha; see :func:`skadmm.plotting.coefficient_path`."""
        return plot("coefficient_path")(self.alphas, self.x, **options)


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
    dof: bool = True,
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
        False: a strength is done when the predicted relative decrease is below tol, without a proof by the duality gap;
        faster, and accurate enough for cross-validation.
    callback : function of (k, Solution), optional
        Called after each strength.
    dof : bool
        False: degrees of freedom, and with them AIC and BIC, are left out (NaN), which saves time.
    **options
        Further options of :func:`skadmm.solve`; with any of them every strength is a solve() of its own.

    Returns
    -------
    Path
    """
    with_strength(problem.psi, 1.0)  # an error where there is no strength
    grid = alpha_grid(alpha_max(problem), n_alphas, eps) if alphas is None else checked_alphas(alphas)
    tol, passes = _checks.number(tol, "tol", above=0), _checks.number(passes, "passes", above=0)
    solve_at: Callable[[float], Solution]
    if options or not can_follow(problem, method):
        solve_at = Separately(problem, {"method": method, "tol": tol, "passes": passes, "record_every": 0} | options)
    else:
        following = Following(problem, Goal(tol, passes, certify), method)
        solve_at = Certified(following) if certify and method not in SOLVERS else following
    solutions = []
    with one_thread():
        for k, alpha in enumerate(grid):
            solutions.append(solve_at(float(alpha)))
            if callback is not None:
                callback(k, solutions[-1])
    A, psi = problem.constraint.A, problem.psi
    return Path(
        alphas=grid,
        x=np.array([solution.x for solution in solutions]),
        losses=np.array([solution.loss for solution in solutions]),
        dof=np.array([degrees_of_freedom(A, s.x, psi, s.y) if dof else np.nan for s in solutions]),
        gaps=np.array([solution.reached for solution in solutions]),
        statuses=[str(solution.status) for solution in solutions],
        n_samples=problem.n_samples,
        deviance=np.array([deviance(problem.loss, solution.loss, problem.n_samples) for solution in solutions]),
    )


def alpha_grid(top: float, n_alphas: int = 50, eps: float = 1e-3) -> np.ndarray:
    """From `top` down to eps · top in equal ratios."""
    n_alphas = _checks.count(n_alphas, "n_alphas")
    eps = _checks.number(eps, "eps", above=0)
    if eps >= 1:
        raise ValueError(f"eps={eps!r}: it takes a number in (0, 1)")
    if not top > 0:  # nothing to penalise away: the loss alone is at its minimum there
        top = 1.0
    return np.geomspace(top, eps * top, n_alphas) if n_alphas > 1 else np.array([top])


def checked_alphas(alphas: Any) -> np.ndarray:
    """`alphas` as decreasing numbers > 0."""
    grid = np.asarray(alphas, dtype=np.float64) if np.ndim(alphas) == 1 else np.empty(0)
    if grid.size == 0 or not np.all(np.isfinite(grid)) or np.any(grid <= 0):
        raise ValueError(f"alphas={alphas!r}: it takes a sequence of numbers > 0")
    return np.sort(grid)[::-1]


__all__ = ["Path", "alpha_grid", "alpha_max", "path"]

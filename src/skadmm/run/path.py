"""Regularisation paths: the strength at which the penalised part vanishes, and solutions from there down."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from skadmm import _checks, _summary
from skadmm._plots import plot
from skadmm.io import codec
from skadmm.kernels.threads import one_thread
from skadmm.losses import deviance
from skadmm.problem.alpha_max import alpha_max
from skadmm.problem.problem import Problem
from skadmm.problem.structure import degrees_of_freedom, fused
from skadmm.regularizers import with_strength
from skadmm.run.checkpoint import Checkpoint, Keeper, fingerprint
from skadmm.run.follow import Certified, Follower, Following, Goal, Separately, Solution, can_follow, check_memory
from skadmm.run.path_record import PathRecord
from skadmm.solvers import SOLVERS

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

MIN_STRENGTHS = 5
"""A path does not stop early before it has this many strengths."""
MIN_EXPLAINED = 1e-5
"""A path stops early when a strength decreases the loss by less than this share of what is explained so far."""

NEARLY_NULL = 1e-3
"""A solution may be the null model where the largest entry of Ax is below this share of the largest on the path."""


@dataclass(repr=False)
class Path:
    """Solutions for decreasing strengths; row k of every array belongs to ``alphas[k]``.

    Parameters
    ----------
    alphas : ndarray of shape (k,)
        The strengths of ψ, decreasing.
    x : ndarray of shape (k, d)
        The solutions. In ``path_`` of an estimator they are on the scale of the solver, and the intercept is the last
        coefficient.
    losses : ndarray of shape (k,)
        The mean loss (1/n) Σ ℓ at each solution.
    dof : ndarray of shape (k,)
        Degrees of freedom: for a graph, the clusters that are not zero; features that are not penalised count one
        each, also the intercept in ``path_`` of an estimator, which its ``dof_`` does not count.
    gaps : ndarray of shape (k,)
        What each solve reached: the relative duality gap, or the relative KKT residual without a certificate.
    statuses : list of str
        How each solve ended.
    n_samples : int
        The number of samples.
    deviance : ndarray of shape (k,)
        Minus twice the log likelihood up to a constant, see :func:`skadmm.losses.deviance`.
    stopped_early : bool
        True where the path ended before the last strength of its grid because the loss no longer changed.

    See Also
    --------
    skadmm.path : Computes it.
    skadmm.plotting.coefficient_path : Draws it.

    Examples
    --------
    >>> import numpy as np
    >>> from skadmm import Problem, path
    >>> from skadmm.regularizers import L1
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((50, 4))
    >>> y = X[:, 0] + 0.1 * rng.standard_normal(50)
    >>> problem = Problem(X, y, loss="squared", psi=L1(0.1))
    >>> found = path(problem, [0.5, 0.1])
    >>> found.x.shape, found.statuses
    ((2, 4), ['solved', 'solved'])
    >>> print(found.alphas[found.best("bic")])
    0.1
    """

    alphas: np.ndarray
    x: np.ndarray
    losses: np.ndarray
    dof: np.ndarray
    gaps: np.ndarray
    statuses: list[str]
    n_samples: int
    deviance: np.ndarray
    stopped_early: bool = False

    @property
    def aic(self) -> np.ndarray:
        """Akaike's criterion, deviance + 2 dof."""
        return self.deviance + 2.0 * self.dof

    @property
    def bic(self) -> np.ndarray:
        """Schwarz's criterion, deviance + log(n) dof."""
        return self.deviance + np.log(self.n_samples) * self.dof

    def best(self, criterion: str = "bic") -> int:
        """The row with the minimum AIC or BIC."""
        if criterion not in ("aic", "bic"):
            raise ValueError(f"criterion={criterion!r}: it takes 'aic' or 'bic'")
        return int(np.argmin(getattr(self, criterion)))

    def to_frame(self) -> pd.DataFrame:
        """One row per strength: alpha, loss, dof, aic, bic, gap, status."""
        import pandas as pd

        columns = {"alpha": self.alphas, "loss": self.losses, "dof": self.dof, "aic": self.aic, "bic": self.bic}
        return pd.DataFrame(columns | {"gap": self.gaps, "status": self.statuses})

    def _facts(self) -> dict[str, Any]:
        """The essentials, in words."""
        return {
            "strengths": f"{self.alphas.size} from {self.alphas[0]:.4g} to {self.alphas[-1]:.4g}"
            if self.alphas.size
            else 0,
            "coefficients": self.x.shape[1],
            "samples": self.n_samples,
            "solved": f"{sum(status == 'solved' for status in self.statuses)} of {len(self.statuses)}",
            "largest_gap": f"{np.nanmax(self.gaps):.1e}" if np.isfinite(self.gaps).any() else None,
        }

    def __repr__(self) -> str:
        return _summary.line("Path", self._facts())

    def _repr_html_(self) -> str:
        return _summary.table("Path", self._facts())

    def plot(self, **options: Any) -> Axes:
        """The coefficients against alpha; see :func:`skadmm.plotting.coefficient_path`."""
        return plot("coefficient_path")(self.alphas, self.x, **options)


def path(
    problem: Problem,
    alphas: ArrayLike | None = None,
    *,
    n_alphas: int = 50,
    eps: float = 1e-3,
    tol: float = 1e-6,
    passes: float = 100,
    method: str = "auto",
    certify: bool = True,
    early_stop: bool = True,
    callback: Callable[[int, Solution], None] | None = None,
    dof: bool | Callable[[Solution], float] = True,
    memory_limit: float | None = None,
    checkpoint: str | os.PathLike[str] | Keeper | None = None,
    checkpoint_every: float = 60.0,
    x0: ArrayLike | None = None,
    **options: Any,
) -> Path:
    """Solve for decreasing strengths of ψ, each started from the one before.

    Parameters
    ----------
    problem : Problem
        Its ψ must have a strength, whose value is replaced. Any backend is accepted.
    alphas : array-like or None
        The strengths, which are solved in decreasing order. None takes `n_alphas` strengths from alpha_max down to
        eps · alpha_max, in equal ratios.
    n_alphas : int
        The number of strengths of the default grid.
    eps : float
        The ratio of the last strength of the default grid to the first.
    tol : float
        The tolerance for each strength, see :func:`skadmm.solve`.
    passes : float
        The limit of passes for each strength.
    method : str
        The method for each strength.
    certify : bool
        False solves each strength to a lower accuracy, which is faster and is enough for cross-validation. The gap
        may be 1000 · tol of the objective (at most 1e-3 unless tol is larger), and is kept between 30 · tol and
        100 · tol of the loss at x = 0, or at the best constant margin where the loss at x = 0 is more than a thousand
        times larger. A strength also ends when steps hardly improve the objective.
    early_stop : bool
        On the default grid, end the path when a further strength decreases the loss by less than 1e-5 of what the path
        has explained so far; ``Path.stopped_early`` says so. Strengths that are given are all solved.
    callback : function of (k, Solution), optional
        Called after each strength.
    dof : bool or function of a Solution
        False leaves out the degrees of freedom, and with them AIC and BIC (they are NaN), which saves time. A function
        counts them instead.
    memory_limit : float or None
        Bytes that the path may take in addition to the data. None takes what is available now.
    checkpoint : path or None
        Store the path in this file after a strength. Where the file exists already, the path continues with the next
        strength, and the solutions are bit for bit those of a path that was never stopped; the callback sees the
        strengths solved from there on. A checkpoint of another problem, setting or version is refused.
    checkpoint_every : float
        Seconds between two checkpoints; 0 writes one after every strength.
    x0 : array or None
        Where the first strength starts, and the search for alpha_max; zero by default.
    **options
        Further options of :func:`skadmm.solve`; with any of them every strength is a solve() of its own.

    Returns
    -------
    Path
        The solutions and what they reached.

    Raises
    ------
    MemoryError
        Where the path would take more memory than it may, before it is taken.

    See Also
    --------
    skadmm.alpha_max : The first strength of the default grid.
    skadmm.FusedLassoRegressorCV : Chooses a strength by cross-validation.

    Examples
    --------
    >>> import numpy as np
    >>> from skadmm import Problem, path
    >>> from skadmm.regularizers import L1
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((50, 4))
    >>> y = X[:, 0] + 0.1 * rng.standard_normal(50)
    >>> problem = Problem(X, y, loss="squared", psi=L1(0.1))
    >>> found = path(problem, n_alphas=5, eps=0.01)
    >>> found.to_frame()[["dof", "status"]]
       dof  status
    0    0  solved
    1    1  solved
    2    1  solved
    3    1  solved
    4    2  solved
    """
    with_strength(problem.psi, 1.0)  # raises where ψ has no strength
    tol, passes = _checks.number(tol, "tol", above=0), _checks.number(passes, "passes", above=0)
    grid = alpha_grid(alpha_max(problem, x0=x0), n_alphas, eps) if alphas is None else checked_alphas(alphas)
    start = None if x0 is None else _checks.vector(x0, "x0", problem.n_features, of="the number of columns of X")
    goal = Goal(tol, passes, certify)
    check_memory(problem, goal, grid.size, memory_limit)
    follower: Follower
    if options or not can_follow(problem, method):
        settings = {"method": method, "tol": goal.at(1.0, 1.0), "passes": passes, "record_every": 0}
        follower = Separately(problem, settings | {"memory_limit": memory_limit} | options, start)
    else:
        following = Following(problem, goal, method, start)
        follower = Certified(following) if certify and method not in SOLVERS else following
    if isinstance(checkpoint, (str, os.PathLike)):
        every = _checks.number(checkpoint_every, "checkpoint_every", least=0)
        asked: dict[str, Any] = {"alphas": (n_alphas, eps, early_stop) if alphas is None else grid, "tol": tol}
        asked |= {"x0": start} if start is not None else {}
        asked |= {"passes": passes, "method": method, "certify": certify, "dof": bool(dof), "options": options}
        unit = problem.replace(psi=with_strength(problem.psi, 1.0))
        checkpoint = Checkpoint(checkpoint, every, fingerprint(unit, **asked))
    record = PathRecord(grid, checkpoint)
    count = dof if callable(dof) else _freedom_of(problem) if dof else _not_counted
    with one_thread():
        _follow(record, follower, count, callback, early_stop=alphas is None and early_stop)
    losses = np.array(record.losses)
    if dof is True:
        _recount_null_models(problem, record)
    return Path(
        alphas=record.grid[: losses.size],
        x=np.array(record.x),
        losses=losses,
        dof=np.array(record.dof),
        gaps=np.array(record.reached),
        statuses=record.statuses,
        n_samples=problem.n_rows,
        deviance=np.array([deviance(problem.loss, loss, problem.n_rows, problem.n_outputs) for loss in losses]),
        stopped_early=losses.size < grid.size,
    )


def _follow(
    record: PathRecord,
    follower: Follower,
    dof: Callable[[Solution], float],
    callback: Callable[[int, Solution], None] | None,
    *,
    early_stop: bool,
) -> None:
    """Solve for the strengths that `record` does not have."""
    record.resume(follower)
    if record.ended:
        return
    for solution in follower.along(record.grid[len(record) :]):
        if callback is not None:
            callback(len(record), solution)
        record.add(solution, dof(solution))
        record.ended = len(record) == record.grid.size or (early_stop and no_longer_moves(record.losses))
        record.keep(follower)
        if record.ended:
            return


def _freedom_of(problem: Problem) -> Callable[[Solution], float]:
    """Counts the degrees of freedom of solutions."""
    A, psi = problem.constraint.A, problem.psi
    return lambda solution: degrees_of_freedom(A, solution.x, psi, solution.y)


def _recount_null_models(problem: Problem, record: PathRecord) -> None:
    """At the strength where Ax becomes zero the null model and points near it are equally good, and the pattern of the
    one that was found is random; what is counted is the null model."""
    A = problem.constraint.A
    sizes = np.array([np.abs(A @ x).max(initial=0.0) for x in record.x])
    small = np.flatnonzero(sizes <= NEARLY_NULL * sizes.max(initial=0.0))
    if small.size == 0 or A.shape[0] == 0:
        return
    try:
        top = alpha_max(problem)
    except ValueError:  # no strength makes Ax zero
        return
    for k in small[record.grid[small] >= (1.0 - 1e-9) * top]:
        labels = fused(A, record.x[k], tied=np.ones(A.shape[0], bool))
        record.dof[k] = degrees_of_freedom(A, record.x[k], problem.psi, np.zeros(A.shape[0]), labels)


def _not_counted(solution: Solution) -> float:
    return np.nan


def no_longer_moves(losses: list[float]) -> bool:
    """Return whether the last strength hardly decreased the loss; `losses` begin with that of the null model."""
    explained = losses[0] - losses[-1]
    if len(losses) < MIN_STRENGTHS or explained <= 0.0:
        return False
    return losses[-2] - losses[-1] < MIN_EXPLAINED * explained


def alpha_grid(top: float, n_alphas: int = 50, eps: float = 1e-3) -> np.ndarray:
    """Strengths from `top` down to eps · top in equal ratios."""
    n_alphas = _checks.count(n_alphas, "n_alphas")
    eps = _checks.number(eps, "eps", above=0)
    if eps >= 1:
        raise ValueError(f"eps={eps!r}: it takes a number in (0, 1)")
    if not top > 0:  # the null model minimises the loss, so every strength has the same solution
        top = 1.0
    return np.geomspace(top, eps * top, n_alphas) if n_alphas > 1 else np.array([top])


def checked_alphas(alphas: Any) -> np.ndarray:
    """`alphas` as decreasing numbers > 0."""
    grid = np.asarray(alphas, dtype=np.float64) if np.ndim(alphas) == 1 else np.empty(0)
    if grid.size == 0 or not np.all(np.isfinite(grid)) or np.any(grid <= 0):
        raise ValueError(f"alphas={alphas!r}: it takes a sequence of numbers > 0")
    return np.sort(grid)[::-1]


codec.register(
    "path",
    Path,
    lambda held, encode: {field.name: encode(getattr(held, field.name)) for field in fields(Path)},
    lambda stored, decode: Path(**{field.name: decode(stored[field.name]) for field in fields(Path)}),
)

__all__ = ["Path", "alpha_grid", "alpha_max", "path"]

"""Paths, cross-validation and groups: skadmm against scikit-learn, and against adelie, celer and skglm where installed.

    python benchmarks/paths.py                 every job
    python benchmarks/paths.py --only group    jobs whose name holds a word
    python benchmarks/paths.py --repeats 5     best of more repeats

One process, one thread, jobs of all packages in turns, best of the repeats after one run that compiles. Paths of skadmm
are certified at every strength (relative duality gap 1e-6); in cross-validation the folds are solved to 1e-6 of the
objective at zero. scikit-learn stops at its default, a gap of 1e-4 times the squared norm of the target. The last
column compares the objectives of single fits (ours less theirs, relative), so that nobody wins by stopping early.
"""

import os

os.environ |= {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "NUMBA")}

import argparse
import importlib.util
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from sklearn.linear_model import LassoCV, lasso_path
from sklearn.model_selection import GridSearchCV

from skadmm import FusedLassoClassifier, FusedLassoClassifierCV, FusedLassoRegressorCV, Problem, alpha_max, path, solve
from skadmm.regularizers import L1, GroupL2

Run = Callable[[], Any]


class Job(NamedTuple):
    """One task, done by several packages."""

    name: str
    runs: dict[str, Run]
    objective: Callable[[Any], float] | None = None
    """Of what a run returns, where it is a single vector of coefficients."""


def planted(n: int, d: int, seed: int = 0, correlation: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Twenty features count."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    if correlation:
        X = np.sqrt(1 - correlation) * X + np.sqrt(correlation) * rng.standard_normal((n, 1))
    x = np.zeros(d)
    x[:20] = rng.standard_normal(20)
    return X, X @ x + rng.standard_normal(n)


def lasso_jobs(seed: int) -> Iterator[Job]:
    """The plain lasso, where scikit-learn is at home."""
    for n, d in ((1000, 200), (500, 2000)):
        X, y = planted(n, d, seed)
        yield Job(
            f"lasso CV {n} x {d}, 5 folds, 100 alphas",
            {
                "skadmm": lambda X=X, y=y: FusedLassoRegressorCV(l1_ratio=1, alphas=100).fit(X, y),
                "scikit-learn": lambda X=X, y=y: LassoCV().fit(X, y),
            },
        )
    X, y = planted(500, 2000, seed)
    problem = Problem(X, y, loss="squared", psi=L1(1.0))
    grid = np.geomspace(1.0, 1e-3, 100) * alpha_max(problem)
    columns = np.asfortranarray(X)
    yield Job(
        "lasso path 500 x 2000, 100 alphas",
        {
            "skadmm": lambda: path(problem, grid, dof=False),
            "scikit-learn": lambda: lasso_path(columns, y, alphas=grid),
        },
    )


def group_jobs(seed: int) -> Iterator[Job]:
    """The group lasso at 0.3 alpha_max, weights one."""
    for n, d, size, correlation in ((1000, 2000, 5, 0.0), (500, 10000, 10, 0.0), (400, 4000, 5, 0.5)):
        X, y = planted(n, d, seed, correlation)
        groups = np.repeat(np.arange(d // size), size)
        problem = Problem(X, y, loss="squared", psi=GroupL2(1.0, groups))
        strength = 0.3 * alpha_max(problem)
        problem = problem.replace(psi=GroupL2(strength, groups))
        runs: dict[str, Run] = {"skadmm": lambda p=problem: solve(p, tol=1e-6, record_every=0).x}
        if importlib.util.find_spec("adelie") is not None:
            runs["adelie"] = adelie_group(X, y, size, strength)
        if importlib.util.find_spec("skglm") is not None:
            runs["skglm"] = skglm_group(X, y, size, strength)
        yield Job(f"group lasso {n} x {d}, groups of {size}, rho {correlation}", runs, problem.objective)


def adelie_group(X: np.ndarray, y: np.ndarray, size: int, strength: float) -> Run:
    """adelie's solver at one strength."""
    import adelie

    columns = np.asfortranarray(X)
    starts = np.arange(0, X.shape[1], size)

    def run() -> np.ndarray:
        state = adelie.grpnet(
            columns, adelie.glm.gaussian(y), groups=starts, penalty=np.ones(starts.size),
            lmda_path=np.array([strength]), intercept=False, progress_bar=False, early_exit=False, tol=1e-10,
        )  # fmt: skip
        return state.betas[-1].toarray().ravel()

    return run


def skglm_group(X: np.ndarray, y: np.ndarray, size: int, strength: float) -> Run:
    """skglm's solver at one strength."""
    from skglm import GroupLasso

    return lambda: GroupLasso(groups=size, alpha=strength, fit_intercept=False, tol=1e-6).fit(X, y).coef_


def graph_jobs(seed: int) -> Iterator[Job]:
    """Graph-guided classification, where no other package has a path: against a grid search over our own estimator."""
    rng = np.random.default_rng(seed)
    n, d = 150, 1000
    X = rng.standard_normal((n, d))
    y = X[:, :40].sum(axis=1) + rng.standard_normal(n) > 0
    edges = np.column_stack([rng.integers(0, d, 3 * d), rng.integers(0, d, 3 * d)])
    edges = np.unique(np.sort(edges[edges[:, 0] != edges[:, 1]], axis=1), axis=0)
    cv = FusedLassoClassifierCV(graph=edges, l1_ratio=0.5, alphas=10, cv=3)
    alphas = cv.fit(X, y).alphas_
    search = GridSearchCV(FusedLassoClassifier(graph=edges, l1_ratio=0.5), {"alpha": alphas}, cv=3)
    yield Job(
        f"graph CV {n} x {d}, 3 folds, 10 alphas",
        {"skadmm": lambda: cv.fit(X, y), "grid search": lambda: search.fit(X, y)},
    )


def main() -> None:
    """Run the jobs and print a line for each package."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="a word that the name of a job must hold")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    for jobs in (lasso_jobs, group_jobs, graph_jobs):
        for job in jobs(arguments.seed):
            if arguments.only not in job.name:
                continue
            answers = {name: run() for name, run in job.runs.items()}  # compiles
            best = dict.fromkeys(job.runs, np.inf)
            for _ in range(arguments.repeats):
                for name, run in job.runs.items():
                    start = time.perf_counter()
                    answers[name] = run()
                    best[name] = min(best[name], time.perf_counter() - start)
            values = {name: job.objective(answers[name]) for name in job.runs} if job.objective else {}
            for name, seconds in best.items():
                ratio = best["skadmm"] / seconds
                worse = f"{values['skadmm'] / values[name] - 1:+.1e}" if values else ""
                print(f"{job.name:<48}{name:<14}{seconds:>9.3f} s   ours / theirs {ratio:>8.2f}   {worse}", flush=True)


if __name__ == "__main__":
    main()

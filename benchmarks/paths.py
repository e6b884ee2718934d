"""Paths, cross-validation and groups: skadmm against scikit-learn, celer, skglm and adelie where they are installed.

    python benchmarks/paths.py                        the whole table
    python benchmarks/paths.py --rows group,text      rows whose name holds one of these words
    python benchmarks/paths.py --seeds 1 --repeats 1  a first look
    python benchmarks/paths.py --write                also into paths.json, docs/benchmarks.md and README.md; rows that
                                                      were not run stay as they are

One process, one thread; seconds are of processor time, which other programs disturb less than wall time. All packages
of a row run in turns; the table has the best of the repeats, and of that the median over the seeds. Everything is
compiled before the first run that counts.

Every package solves to the same relative duality gap, 1e-6 at every strength unless its row says otherwise. The gap is
computed here, from the coefficients that the package returns. Its own tolerance is tightened in powers of ten, on the
first seed, until the largest gap is small enough. A package that takes longer than the limit (``--limit``) before it
gets there is reported with the gap it has reached, and left out after ten times the limit. In cross-validation
skadmm has its default (folds are solved to a gap of 1e-3 of the objective, between 3e-5 and 1e-4 of the loss at zero),
scikit-learn has its default (2e-4 of the loss at zero, which is looser) and adelie a tolerance with gaps of about that
size. Graphs have no path elsewhere: the other side is a grid search over our own estimator, on one seed. Sparse and
overlapping groups are compared with our own general solvers.
"""

import os

os.environ |= {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "NUMBA")}

import argparse
import importlib.util
import lzma
import signal
import statistics
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file
from sklearn.linear_model import LassoCV
from sklearn.model_selection import GridSearchCV

from _common import data_folder
from _path_peers import Task, peers_for
from _path_tables import Measured, keep
from skadmm import (
    FusedLassoClassifier,
    FusedLassoClassifierCV,
    FusedLassoRegressor,
    FusedLassoRegressorCV,
    Problem,
    alpha_max,
    path,
    solve,
)
from skadmm.operators import grid, overlapping_groups
from skadmm.problem.certificate import Certifier
from skadmm.regularizers import L1, GroupL2
from skadmm.solvers.second_order.blocks import block_penalty

GAP = 1e-6
SLOW = 1.0
"""Runs of more seconds than this are not repeated."""
PATIENCE = 10.0
"""A run is ended after so many times the limit …"""
COMPILATION = 40.0
"""… and the first one, which may compile, so many seconds later."""

Run = Callable[[], Any]


class Row(NamedTuple):
    """The lines of one task: the runs of all packages."""

    runs: dict[str, Run]
    gap: Callable[[Any], float] | None = None
    """The largest relative gap of what a run returns."""
    tunable: tuple[str, ...] = ()
    """Packages whose run takes a tolerance of their own, which is tightened until the gap is met."""


# -- data ----------------------------------------------------------------------------------------------------------


def planted(n: int, d: int, seed: int = 0, correlation: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Twenty features count."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    if correlation:
        X = np.sqrt(1 - correlation) * X + np.sqrt(correlation) * rng.standard_normal((n, 1))
    x = np.zeros(d)
    x[:20] = rng.standard_normal(20)
    return X, X @ x + rng.standard_normal(n)


def two_classes(n: int, d: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The sign of the planted target."""
    X, target = planted(n, d, seed)
    return X, np.sign(target)


def planted_sparse(n: int, d: int, seed: int) -> tuple[sp.csr_array, np.ndarray]:
    """One entry in a hundred; twenty features count."""
    rng = np.random.default_rng(seed)
    X = sp.random_array((n, d), density=0.01, rng=rng, format="csr")
    x = np.zeros(d)
    x[:20] = 5.0 * rng.standard_normal(20)
    return X, X @ x + rng.standard_normal(n)


def text(seed: int) -> tuple[sp.csr_array, np.ndarray]:
    """20ng-ltc; a random nine tenths of its rows for each seed."""
    with lzma.open(data_folder() / "20ng-ltc.svm.xz") as file:
        X, target = load_svmlight_file(file)
    kept = np.sort(np.random.default_rng(seed).permutation(X.shape[0])[: 9 * X.shape[0] // 10])
    return sp.csr_array(X[kept]), target[kept]


# -- rows ----------------------------------------------------------------------------------------------------------


def relative_gap(problem: Problem, x: np.ndarray) -> float:
    """The relative duality gap at x, by the multiplier that its own gradient gives."""
    penalty, shares = block_penalty(problem)
    evaluation = problem.backend.evaluate(np.ascontiguousarray(x, dtype=np.float64))
    multiplier = shares.of(-evaluation.gradient, x, penalty.l1)
    objective = evaluation.loss + problem.penalty(x)
    return Certifier(problem).certify(objective, evaluation.slopes, evaluation.gradient, multiplier).relative


def path_row(X: Any, target: np.ndarray, loss: str, group_size: int, shares: np.ndarray) -> Row:
    """A path over `shares` of alpha_max; a single share is a call of solve()."""
    labels = np.repeat(np.arange(X.shape[1] // group_size), group_size)
    psi = L1(1.0) if group_size == 1 else GroupL2(1.0, labels)
    problem = Problem(X, target, loss=loss, psi=psi)
    strengths = shares * alpha_max(problem)
    problems = [problem.replace(psi=problem.psi._replace(strength=strength)) for strength in strengths]

    def ours() -> np.ndarray:
        if len(problems) == 1:
            return solve(problems[0], tol=GAP, record_every=0).x[None]
        return path(problem, strengths, tol=GAP, dof=False).x

    peers = peers_for(Task(X, target, loss, group_size, strengths))
    return Row({"skadmm": ours} | peers, lambda found: max(map(relative_gap, problems, found)), tuple(peers))


def many(count: int = 100, eps: float = 1e-3) -> np.ndarray:
    """Shares of alpha_max in equal ratios."""
    return np.geomspace(1.0, eps, count)


def cv_row(X: Any, target: np.ndarray, loss: str, alphas: int, eps: float) -> Row:
    """Five folds, with an intercept."""
    kind = FusedLassoRegressorCV if loss == "squared" else FusedLassoClassifierCV
    model = kind(l1_ratio=1, alphas=alphas, eps=eps)
    runs: dict[str, Run] = {"skadmm": lambda: model.fit(X, target)}
    if loss == "squared":
        runs["scikit-learn"] = lambda: LassoCV(alphas=alphas, eps=eps).fit(X, target)
    if importlib.util.find_spec("adelie") is not None:
        runs["adelie"] = adelie_cv(X, target, loss, alphas, eps)
    return Row(runs)


def adelie_cv(X: Any, target: np.ndarray, loss: str, alphas: int, eps: float) -> Run:
    """adelie's cross-validation over as many strengths; its folds are random. With this tolerance a path of 500 × 2000
    has gaps of 2e-4 of the objective at zero, with its default ten times that."""
    import adelie

    matrix = adelie.matrix.sparse(sp.csc_matrix(X)) if sp.issparse(X) else np.asfortranarray(X)
    model = adelie.glm.gaussian(target) if loss == "squared" else adelie.glm.binomial(1.0 * (target > 0))
    settings = {"lmda_path_size": alphas, "min_ratio": eps, "early_exit": False, "progress_bar": False, "tol": 1e-10}
    return lambda: adelie.cv_grpnet(matrix, model, n_folds=5, **settings)


def general_row(problem: Problem, share: float, other: str) -> Row:
    """One strength by default, and by a general solver of ours named `other`."""
    problem = problem.replace(psi=problem.psi._replace(strength=share * alpha_max(problem)))
    results = {
        "skadmm": lambda: solve(problem, tol=GAP, record_every=0),
        f"our {other}": lambda: solve(problem, other, tol=GAP, passes=2000, record_every=0),
    }
    return Row(results, lambda result: result.gap)


def groups_of(size: int, step: int, d: int) -> list[np.ndarray]:
    """Groups of consecutive features that begin every `step`."""
    return [np.arange(start, min(start + size, d)) for start in range(0, d - size + 1, step)]


def sparse_groups(n: int, d: int, seed: int) -> Row:
    """Groups of five and every feature by itself."""
    X, target = planted(n, d, seed)
    A, groups = overlapping_groups([*groups_of(5, 5, d), *np.arange(d)[:, None]], d)
    return general_row(Problem(X, target, loss="squared", psi=GroupL2(1.0, groups), A=A), 0.3, "newton-admm")


def overlapping(n: int, d: int, seed: int) -> Row:
    """Groups of six that share two features with the next."""
    X, target = planted(n, d, seed)
    A, groups = overlapping_groups(groups_of(6, 4, d), d)
    return general_row(Problem(X, target, loss="squared", psi=GroupL2(1.0, groups), A=A), 0.3, "newton-admm")


def graph_row(n: int, d: int, edges: Any, seed: int, *, alphas: int = 10, folds: int = 3, classes: bool = True) -> Row:
    """Cross-validation over a graph of features against a grid search over the same estimator."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    signal = X[:, :40].sum(axis=1) + rng.standard_normal(n)
    target = signal > 0 if classes else signal
    several, single = (
        (FusedLassoClassifierCV, FusedLassoClassifier) if classes else (FusedLassoRegressorCV, FusedLassoRegressor)
    )
    cv = several(graph=edges, l1_ratio=0.5, alphas=alphas, cv=folds)
    found = cv.fit(X, target).alphas_
    search = GridSearchCV(single(graph=edges, l1_ratio=0.5), {"alpha": found}, cv=folds)
    return Row({"skadmm": lambda: cv.fit(X, target), "grid search": lambda: search.fit(X, target)})


def random_edges(d: int, count: int, seed: int) -> np.ndarray:
    """Distinct edges between random features."""
    rng = np.random.default_rng(seed)
    edges = np.column_stack([rng.integers(0, d, count), rng.integers(0, d, count)])
    return np.unique(np.sort(edges[edges[:, 0] != edges[:, 1]], axis=1), axis=0)


def pixel_edges() -> np.ndarray:
    """The edges between neighbours of 32 × 32 pixels."""
    A = grid((32, 32))
    return A.indices.reshape(-1, 2)


def group(n: int, d: int, size: int, correlation: float, seed: int) -> Row:
    """The group lasso at 0.3 alpha_max."""
    return path_row(*planted(n, d, seed, correlation), "squared", size, np.array([0.3]))


def logistic(n: int, d: int, size: int, seed: int) -> Row:
    """A logistic path."""
    return path_row(*two_classes(n, d, seed), "logistic", size, many())


ROWS: dict[str, Callable[[int], Row]] = {
    "lasso CV 1000 x 200, 100 alphas": lambda seed: cv_row(*planted(1000, 200, seed), "squared", 100, 1e-3),
    "lasso CV 500 x 2000, 100 alphas": lambda seed: cv_row(*planted(500, 2000, seed), "squared", 100, 1e-3),
    "lasso path 500 x 2000": lambda seed: path_row(*planted(500, 2000, seed), "squared", 1, many()),
    "lasso path, sparse 50000 x 1000": lambda seed: path_row(*planted_sparse(50000, 1000, seed), "squared", 1, many()),
    "group lasso 1000 x 2000, groups of 5": lambda seed: group(1000, 2000, 5, 0.0, seed),
    "group lasso 500 x 10000, groups of 10": lambda seed: group(500, 10000, 10, 0.0, seed),
    "group lasso 400 x 4000, rho 0.5": lambda seed: group(400, 4000, 5, 0.5, seed),
    "group lasso 1000 x 20000, groups of 10": lambda seed: group(1000, 20000, 10, 0.0, seed),
    "group path 400 x 4000, 20 strengths": lambda seed: path_row(
        *planted(400, 4000, seed), "squared", 5, many(20, 1e-2)
    ),
    "group path 3000 x 500": lambda seed: path_row(*planted(3000, 500, seed), "squared", 5, many()),
    "logistic group path 3000 x 500": lambda seed: logistic(3000, 500, 5, seed),
    "logistic path 5000 x 500": lambda seed: logistic(5000, 500, 1, seed),
    "logistic CV 5000 x 500, 50 alphas": lambda seed: cv_row(*two_classes(5000, 500, seed), "logistic", 50, 1e-2),
    "logistic path, text (20ng-ltc)": lambda seed: path_row(*text(seed), "logistic", 1, many(30, 3e-2)),
    "logistic CV, text (20ng-ltc), 30 alphas": lambda seed: cv_row(*text(seed), "logistic", 30, 3e-2),
    "sparse groups 1000 x 2000": lambda seed: sparse_groups(1000, 2000, seed),
    "overlapping groups 500 x 600": lambda seed: overlapping(500, 600, seed),
    "graph CV 150 x 1000": lambda seed: graph_row(150, 1000, random_edges(1000, 3000, seed), seed),
    "graph CV 10000 x 200": lambda seed: graph_row(10000, 200, random_edges(200, 600, seed), seed),
    "pixels CV 300 x 1024": lambda seed: graph_row(300, 1024, pixel_edges(), seed, classes=False),
    "graph CV 150 x 20000, 3 alphas, 2 folds": lambda seed: graph_row(
        150, 20000, random_edges(20000, 60000, seed), seed, alphas=3, folds=2
    ),
}

ONE_SEED = [name for name in ROWS if "graph" in name or "pixels" in name]


# -- timing --------------------------------------------------------------------------------------------------------


def timed(run: Run, limit: float = 0.0) -> tuple[float, Any]:
    """Seconds, and what the run returns; infinity and None where it took longer than a limit."""

    stopped = []

    def stop(*_: Any) -> None:
        stopped.append(True)
        raise TimeoutError

    signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, limit)
    start = time.process_time()
    try:
        found = run()
    except (TimeoutError, SystemError):  # the latter where compiled code was running
        if not stopped:
            raise
        return np.inf, None
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
    return time.process_time() - start, found


def tuned(solve_to: Callable[[float], Any], gap: Callable[[Any], float], limit: float) -> float:
    """The loosest tolerance, a power of ten, with which the gap is met, or the last one within the limit of time; NaN
    where not even a rough solution is."""
    if timed(lambda: solve_to(1e-2), COMPILATION + PATIENCE * limit)[1] is None:
        return np.nan
    best = np.nan
    for power in range(4, 15):
        seconds, found = timed(lambda: solve_to(10.0**-power), PATIENCE * limit)  # noqa: B023
        if found is None:
            break
        best = 10.0**-power
        if seconds > limit or gap(found) <= GAP:
            break
    return best


def measured(
    row: Row, tolerances: dict[str, float], repeats: int, limit: float
) -> tuple[dict[str, float], dict[str, float]]:
    """The best seconds and the largest gap of every package; `tolerances` is filled where it lacks one."""
    for name in row.tunable:
        if name not in tolerances and row.gap is not None:
            tolerances[name] = tuned(row.runs[name], row.gap, limit)
    runs = {
        name: (lambda run=run, tol=tolerances[name]: run(tol)) if name in row.tunable else run
        for name, run in row.runs.items()
        if not np.isnan(tolerances.get(name, 0.0))
    }
    best, gaps = dict.fromkeys(runs, np.inf), dict.fromkeys(runs, np.nan)
    for repeat in range(repeats + 1):  # the first one compiles
        for name, run in runs.items():
            if (repeat > 1 and best[name] > SLOW) or (repeat == 0 and name != "skadmm"):
                continue
            seconds, found = timed(run)
            best[name] = min(best[name], seconds) if repeat else np.inf
            if row.gap is not None and repeat == 1:
                gaps[name] = row.gap(found)
    return best, gaps


def lines(name: str, seconds: dict[str, list[float]], gaps: dict[str, list[float]]) -> Iterator[str]:
    """The lines of one row: medians over the seeds."""
    ours = statistics.median(seconds["skadmm"])
    for package, values in seconds.items():
        median, gap = statistics.median(values), max(gaps[package])
        reached = "" if np.isnan(gap) else f"{gap:.0e}{'' if gap <= 1.01 * GAP else ' (short)'}"
        yield f"{name:<42}{package:<18}{median:>9.4f}{ours / median:>9.2f}   {reached}"


def summary(seconds: dict[str, list[float]], gaps: dict[str, list[float]], late: list[str]) -> Measured:
    """What is kept of a row: medians over the seeds, and the largest gap; nothing of packages that took too long."""
    found: Measured = {}
    for package, values in seconds.items():
        gap = max(gaps[package])
        known = not np.isnan(gap)
        met = not known or gap <= 1.01 * GAP
        found[package] = {"seconds": statistics.median(values), "gap": gap if known else None, "met": bool(met)}
    return found | {package: {"seconds": None, "gap": None, "met": False} for package in late}


def main() -> None:
    """Print a line per row and package."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", default="", help="words, separated by commas, of which a row's name holds one")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--limit", type=float, default=2.0, help="seconds after which a tolerance is not tightened")
    parser.add_argument("--write", action="store_true", help="keep the rows, and fill the tables of the documentation")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    words = arguments.rows.split(",")
    print(f"{'':<42}{'package':<18}{'seconds':>9}{'ours/it':>9}   largest gap")
    for name, make in ROWS.items():
        if not any(word in name for word in words):
            continue
        if "text" in name and not (data_folder() / "20ng-ltc.svm.xz").exists():
            print(f"{name:<42}left out: 20ng-ltc.svm.xz is not in {data_folder()}")
            continue
        tolerances: dict[str, float] = {}
        seconds: dict[str, list[float]] = {}
        gaps: dict[str, list[float]] = {}
        for seed in range(1 if name in ONE_SEED else arguments.seeds):
            best, reached = measured(make(seed), tolerances, arguments.repeats, arguments.limit)
            for package in best:
                seconds.setdefault(package, []).append(best[package])
                gaps.setdefault(package, []).append(reached[package])
        for package, tol in tolerances.items():
            if np.isnan(tol):
                print(f"{name:<42}{package:<18}  took longer than {PATIENCE * arguments.limit:.0f} s")
        print(*lines(name, seconds, gaps), sep="\n", flush=True)
        if arguments.write:
            late = [package for package, tol in tolerances.items() if np.isnan(tol)]
            keep({name: summary(seconds, gaps, late)}, list(ROWS))
    print(f"{time.process_time() / 60:.1f} minutes of processor time")


if __name__ == "__main__":
    main()

"""The rows of ``paths.py``: data, and what each package is asked to solve."""

import importlib.util
import lzma
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file
from sklearn.linear_model import LassoCV
from sklearn.model_selection import GridSearchCV

from _common import data_folder
from _path_peers import Task, peers_for
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
from skadmm.operators import chain, grid, overlapping_groups, stack
from skadmm.problem.certificate import Certifier
from skadmm.regularizers import L1, GroupL2
from skadmm.solvers.second_order.blocks import block_penalty

GAP = 1e-6

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


def path_row(
    X: Any, target: np.ndarray, loss: str, group_size: int, shares: np.ndarray, without: tuple[str, ...] = ()
) -> Row:
    """A path over `shares` of alpha_max; a single share is a call of solve(). Packages in `without` are left out."""
    labels = np.repeat(np.arange(X.shape[1] // group_size), group_size)
    psi = L1(1.0) if group_size == 1 else GroupL2(1.0, labels)
    problem = Problem(X, target, loss=loss, psi=psi)
    strengths = shares * alpha_max(problem)
    problems = [problem.replace(psi=problem.psi._replace(strength=strength)) for strength in strengths]

    def ours() -> np.ndarray:
        if len(problems) == 1:
            return solve(problems[0], tol=GAP, record_every=0).x[None]
        return path(problem, strengths, tol=GAP, dof=False).x

    known = peers_for(Task(X, target, loss, group_size, strengths))
    peers = {name: run for name, run in known.items() if name not in without}
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


def cold_row(n: int, d: int, seed: int) -> Row:
    """A path of five strengths, with a chain and ℓ1 terms, against a cold solve() of each."""
    X, target = planted(n, d, seed)
    A = stack(chain(d), "identity", weights=[0.5, 0.5])
    problem = Problem(X, target, loss="squared", psi=L1(1.0), A=A)
    strengths = many(5, 1e-2) * alpha_max(problem)
    problems = [problem.replace(psi=L1(strength)) for strength in strengths]
    return Row(
        {
            "skadmm": lambda: path(problem, strengths, tol=GAP, dof=False).gaps,
            "5 cold solves": lambda: [solve(one, tol=GAP, record_every=0).gap for one in problems],
        },
        max,
    )


def graph_row(
    n: int, d: int, edges: Any, seed: int, *, alphas: int = 10, folds: int = 3, classes: bool = True, ratio: float = 0.5
) -> Row:
    """Cross-validation over a graph of features against a grid search over the same estimator."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    signal = X[:, :40].sum(axis=1) + rng.standard_normal(n)
    target = signal > 0 if classes else signal
    several, single = (
        (FusedLassoClassifierCV, FusedLassoClassifier) if classes else (FusedLassoRegressorCV, FusedLassoRegressor)
    )
    cv = several(graph=edges, l1_ratio=ratio, alphas=alphas, cv=folds)
    found = cv.fit(X, target).alphas_
    search = GridSearchCV(single(graph=edges, l1_ratio=ratio), {"alpha": found}, cv=folds)
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


SLOW_ON_TEXT = ("celer",)
"""A path of celer on the text takes minutes, in compiled code that cannot be interrupted."""

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
    "group path 400 x 4000, rho 0.5, 20 strengths": lambda seed: path_row(
        *planted(400, 4000, seed, 0.5), "squared", 5, many(20, 1e-2)
    ),
    "group path 1000 x 20000, 20 strengths": lambda seed: path_row(
        *planted(1000, 20000, seed), "squared", 10, many(20, 1e-1)
    ),
    "group path 3000 x 500": lambda seed: path_row(*planted(3000, 500, seed), "squared", 5, many()),
    "logistic group path 3000 x 500": lambda seed: logistic(3000, 500, 5, seed),
    "logistic path 5000 x 500": lambda seed: logistic(5000, 500, 1, seed),
    "logistic CV 5000 x 500, 50 alphas": lambda seed: cv_row(*two_classes(5000, 500, seed), "logistic", 50, 1e-2),
    "logistic path, text (20ng-ltc)": lambda seed: path_row(*text(seed), "logistic", 1, many(30, 3e-2), SLOW_ON_TEXT),
    "logistic CV, text (20ng-ltc), 30 alphas": lambda seed: cv_row(*text(seed), "logistic", 30, 3e-2),
    "path of 5 strengths 200 x 4000": lambda seed: cold_row(200, 4000, seed),
    "sparse groups 1000 x 2000": lambda seed: sparse_groups(1000, 2000, seed),
    "overlapping groups 500 x 600": lambda seed: overlapping(500, 600, seed),
    "fused CV 300 x 2000, 20 alphas": lambda seed: graph_row(300, 2000, None, seed, alphas=20, classes=False),
    "fused CV 300 x 2000, l1_ratio 0": lambda seed: graph_row(
        300, 2000, None, seed, alphas=20, classes=False, ratio=0.0
    ),
    "graph CV 150 x 1000": lambda seed: graph_row(150, 1000, random_edges(1000, 3000, seed), seed),
    "graph CV 10000 x 200": lambda seed: graph_row(10000, 200, random_edges(200, 600, seed), seed),
    "pixels CV 300 x 1024": lambda seed: graph_row(300, 1024, pixel_edges(), seed, classes=False),
    "graph CV 150 x 20000": lambda seed: graph_row(150, 20000, random_edges(20000, 60000, seed), seed),
    "graph CV 150 x 20000, 3 alphas, 2 folds": lambda seed: graph_row(
        150, 20000, random_edges(20000, 60000, seed), seed, alphas=3, folds=2
    ),
}

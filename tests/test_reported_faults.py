"""Faults that were reported of 0.1.0, each as the problem that showed it."""

import warnings

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp

from skadmm import FusedLassoClassifier, FusedLassoRegressor, Problem, Status, TrendFilter, solve
from skadmm.losses import Huber
from skadmm.operators import chain, grid, incidence, stack, trend
from skadmm.regularizers import L1, GroupL2

# -- 1. connected sets of more than 300 features stayed at zero --------------------------------------------------------

TABLES = {
    "uniform": lambda rng, n, d: rng.random((n, d)),
    "binary": lambda rng, n, d: (rng.random((n, d)) < 0.3).astype(float),
    "absolute": lambda rng, n, d: np.abs(rng.standard_normal((n, d))),
    "shifted": lambda rng, n, d: rng.standard_normal((n, d)) + 3.0,
    "correlated": lambda rng, n, d: rng.standard_normal((n, 1)) + 0.5 * rng.standard_normal((n, d)),
    "sparse": lambda rng, n, d: sp.random_array((n, d), density=0.05, rng=rng, format="csr"),
}
GRAPHS = {
    "chain": lambda: chain(1000),
    "grid": lambda: grid((25, 40)),
    "tree": lambda: incidence([((j - 1) // 2, j) for j in range(1, 1000)], n_features=1000),
}


@pytest.mark.parametrize("share", [0.3, 0.01])
@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("table", TABLES)
def test_large_connected_sets_leave_zero_together(table, graph, share):
    rng = np.random.default_rng(0)
    X = TABLES[table](rng, 600, 1000)
    y = np.asarray(X[:, 200:300].sum(axis=1)).ravel()
    strength = share * np.abs(X.T @ y).max() / 600
    result = solve(Problem(X, y, "squared", psi=L1(strength), A=stack(GRAPHS[graph](), "identity")), tol=1e-4)
    assert result.status is Status.SOLVED
    assert result.gap <= 1e-4


def test_estimators_with_large_connected_sets():
    rng = np.random.default_rng(1)
    X = rng.random((600, 1000))
    model = FusedLassoRegressor(alpha=1.0, fit_intercept=False).fit(X, X[:, 200:300].sum(axis=1))
    assert np.count_nonzero(model.coef_) > 0
    X = rng.random((500, 64 * 64))
    y = X[:, 1000:1200].sum(axis=1) > 100
    assert FusedLassoClassifier(alpha=1e-3, graph=(64, 64)).fit(X, y).result_.status is Status.SOLVED


# -- 2. Huber's loss where every residual starts beyond δ --------------------------------------------------------------


def huber(residual, delta=1.0):
    size = np.abs(residual)
    return np.where(size <= delta, 0.5 * size**2, delta * (size - 0.5 * delta)).mean()


def test_huber_trend_whose_residuals_all_start_beyond_delta():
    rng = np.random.default_rng(0)
    t = np.arange(200.0)
    y = 3 + abs(t - 100) / 50 + 0.1 * rng.standard_normal(200)
    model = TrendFilter(alpha=0.1, order=2, loss="huber").fit(t[:, None], y)
    other = TrendFilter(alpha=0.1, order=2).fit(t[:, None], y)
    D = trend(200, 2)
    ours, theirs = (huber(m.coef_ - y) + 0.1 * np.abs(D @ m.coef_).sum() for m in (model, other))
    assert model.result_.status is Status.SOLVED
    assert ours <= theirs * (1 + 1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_huber_with_groups_of_trends_and_few_samples(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((20, 60)), 50.0 * rng.standard_normal(20)
    D, groups = trend(60, 3), np.arange(56) // 4
    result = solve(Problem(X, y, Huber(1.0), psi=GroupL2(0.1, groups), A=D), tol=1e-6, passes=500)
    x = cp.Variable(60)
    norms = sum(cp.norm(D[groups == g] @ x) for g in range(14))
    expected = cp.Problem(cp.Minimize(0.5 * cp.sum(cp.huber(X @ x - y)) / 20 + 0.1 * norms)).solve("CLARABEL")
    assert result.status is Status.SOLVED
    assert result.objective <= expected * (1 + 1e-5)

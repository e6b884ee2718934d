"""The same objective as other people's software, to 1e-5, and as itself in another dress, to rounding."""

import cvxpy as cp
import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.linear_model import ElasticNet, Lasso, LogisticRegression

from skadmm import (
    FusedLassoClassifier,
    FusedLassoRegressor,
    GeneralizedLassoClassifier,
    GeneralizedLassoRegressor,
    GroupLassoRegressor,
    Problem,
    TrendFilter,
    solve,
)
from skadmm.operators import chain, trend
from skadmm.regularizers import L1

rng = np.random.default_rng(0)
N, D = 120, 10
X = rng.standard_normal((N, D)) @ (np.eye(D) + 0.3)
Y = X @ np.repeat([1.0, 0, -0.5, 0, 0.7], 2) + 0.5 * rng.standard_normal(N) + 2.0
LABELS = (2 * Y - 4 + rng.standard_normal(N) > 0).astype(int)
THREE = np.digitize(Y, [1.0, 3.0])
EXACT = {"tol": 1e-10}


def regression_objective(coef, intercept, penalty):
    return 0.5 * np.mean((Y - X @ coef - intercept) ** 2) + penalty(coef)


def logistic_objective(coef, intercept, penalty):
    signs = 2 * LABELS - 1
    return np.mean(np.logaddexp(0, -signs * (X @ coef + intercept))) + penalty(coef)


# -- other people's software ---------------------------------------------------------------------------------


@pytest.mark.parametrize("intercept", [True, False])
def test_lasso_is_scikit_learns(intercept):
    theirs = Lasso(alpha=0.05, fit_intercept=intercept, tol=1e-12, max_iter=100_000).fit(X, Y)
    ours = GeneralizedLassoRegressor(alpha=0.05, fit_intercept=intercept, **EXACT).fit(X, Y)

    def penalty(w):
        return 0.05 * np.abs(w).sum()

    assert regression_objective(ours.coef_, ours.intercept_, penalty) <= regression_objective(
        theirs.coef_, theirs.intercept_, penalty
    ) * (1 + 1e-5)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)
    assert ours.intercept_ == pytest.approx(theirs.intercept_, abs=1e-5)


def test_elastic_net_is_scikit_learns():
    theirs = ElasticNet(alpha=0.1, l1_ratio=0.4, tol=1e-12, max_iter=100_000).fit(X, Y)
    ours = GeneralizedLassoRegressor(alpha=0.04, ridge=0.06, **EXACT).fit(X, Y)

    def penalty(w):
        return 0.04 * np.abs(w).sum() + 0.03 * (w @ w)

    mine = regression_objective(ours.coef_, ours.intercept_, penalty)
    assert mine == pytest.approx(regression_objective(theirs.coef_, theirs.intercept_, penalty), rel=1e-5)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)


def test_sparse_logistic_regression_is_scikit_learns():
    theirs = LogisticRegression(
        C=1 / (N * 0.02), l1_ratio=1.0, solver="saga", tol=1e-10, max_iter=100_000, random_state=0
    ).fit(X, LABELS)
    ours = GeneralizedLassoClassifier(alpha=0.02, **EXACT).fit(X, LABELS)

    def penalty(w):
        return 0.02 * np.abs(w).sum()

    mine = logistic_objective(ours.coef_[0], ours.intercept_[0], penalty)
    assert mine == pytest.approx(logistic_objective(theirs.coef_[0], theirs.intercept_[0], penalty), rel=1e-5)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-4)


def cvxpy_value(loss, penalty, variables):
    return cp.Problem(cp.Minimize(loss + penalty)).solve(solver="CLARABEL")


def test_fused_lasso_is_cvxpys():
    edges = [(0, 1), (1, 2), (2, 3), (0, 5), (5, 6), (8, 9)]
    graph = FusedLassoRegressor(alpha=0.1, l1_ratio=0.3, graph=edges, **EXACT).fit(X, Y)
    w, b = cp.Variable(D), cp.Variable()
    differences = sum(cp.abs(w[i] - w[j]) for i, j in edges)
    penalty = 0.1 * (0.7 * differences + 0.3 * cp.norm1(w))
    best = cvxpy_value(cp.sum_squares(Y - X @ w - b) / (2 * N), penalty, (w, b))
    w.value, b.value = graph.coef_, graph.intercept_
    mine = regression_objective(graph.coef_, graph.intercept_, lambda _: float(penalty.value))
    assert mine == pytest.approx(best, rel=1e-5)

    chain = FusedLassoClassifier(alpha=0.03, **EXACT).fit(X, LABELS)
    w, b = cp.Variable(D), cp.Variable()
    signs = 2 * LABELS - 1
    penalty = 0.03 * (0.5 * cp.norm1(cp.diff(w)) + 0.5 * cp.norm1(w))
    best = cvxpy_value(cp.sum(cp.logistic(-cp.multiply(signs, X @ w + b))) / N, penalty, (w, b))
    w.value, b.value = chain.coef_[0], chain.intercept_[0]
    mine = logistic_objective(chain.coef_[0], chain.intercept_[0], lambda _: float(penalty.value))
    assert mine == pytest.approx(best, rel=1e-5)


@pytest.mark.parametrize("order", [0, 1, 2])
def test_trend_filter_is_cvxpys(order):
    signal = np.sin(np.linspace(0, 6, N)) + 0.2 * rng.standard_normal(N)
    model = TrendFilter(alpha=0.05, order=order)
    fitted = model.smooth(signal)
    x = cp.Variable(N)
    best = cvxpy_value(cp.sum_squares(signal - x) / (2 * N), 0.05 * cp.norm1(cp.diff(x, order + 1)), x)
    mine = 0.5 * np.mean((signal - fitted) ** 2) + 0.05 * np.abs(np.diff(fitted, order + 1)).sum()
    assert mine == pytest.approx(best, rel=1e-5)
    assert model.result_.gap <= 1e-6


def test_trend_of_coefficients_is_cvxpys():
    model = TrendFilter(alpha=0.05, order=1, tol=1e-7).fit(X, Y)
    w, b = cp.Variable(D), cp.Variable()
    best = cvxpy_value(cp.sum_squares(Y - X @ w - b) / (2 * N), 0.05 * cp.norm1(trend(D, 1) @ w), (w, b))
    mine = regression_objective(model.coef_, model.intercept_, lambda v: 0.05 * np.abs(np.diff(v, 2)).sum())
    assert mine == pytest.approx(best, rel=1e-5)


def test_overlapping_groups_are_cvxpys():
    groups = [[0, 1, 2], [2, 3, 4, 5], [5, 6, 7], [7, 8, 9]]
    model = GroupLassoRegressor(alpha=0.1, groups=groups, l1_ratio=0.2, **EXACT).fit(X, Y)
    w, b = cp.Variable(D), cp.Variable()
    norms = sum(np.sqrt(len(group)) * cp.norm2(w[group]) for group in groups)
    penalty = 0.1 * (0.8 * norms + 0.2 * cp.norm1(w))
    best = cvxpy_value(cp.sum_squares(Y - X @ w - b) / (2 * N), penalty, (w, b))
    w.value, b.value = model.coef_, model.intercept_
    assert regression_objective(model.coef_, model.intercept_, lambda _: float(penalty.value)) == pytest.approx(
        best, rel=1e-5
    )


def test_lasso_is_celers_and_skglms():
    ours = GeneralizedLassoRegressor(alpha=0.05, **EXACT).fit(X, Y)
    for name in ("celer", "skglm"):
        peer = pytest.importorskip(name)
        theirs = peer.Lasso(alpha=0.05, tol=1e-10).fit(X, Y)
        np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)


def test_a_chain_is_copts():
    copt = pytest.importorskip("copt")
    problem = Problem(X, Y, loss="squared", psi=L1(0.05), A=chain(X.shape[1]))

    def loss(w):
        residual = X @ w - Y
        return 0.5 * residual @ residual / N, X.T @ residual / N

    fused = pytest.importorskip("copt.penalty").FusedLasso(0.05)
    theirs = copt.minimize_proximal_gradient(
        loss, np.zeros(X.shape[1]), prox=fused.prox, jac=True, tol=1e-12, max_iter=20_000
    )
    assert solve(problem, tol=1e-10).objective == pytest.approx(problem.objective(theirs.x), rel=1e-7)


# -- itself in another dress ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "y"),
    [(FusedLassoRegressor(alpha=0.05, **EXACT), Y), (FusedLassoClassifier(alpha=0.02, **EXACT), LABELS)],
    ids=["regressor", "classifier"],
)
def test_a_weight_is_a_repetition(model, y):
    weight = np.arange(N) % 4
    repeated = model.fit(np.repeat(X, weight, axis=0), np.repeat(y, weight)).coef_
    np.testing.assert_allclose(model.fit(X, y, sample_weight=weight).coef_, repeated, atol=1e-7)
    np.testing.assert_allclose(model.fit(sp.csr_array(X), y, sample_weight=2.5 * weight).coef_, repeated, atol=1e-7)


def test_class_weight_is_sample_weight():
    weights = {0: 1.0, 1: 3.0}
    by_class = FusedLassoClassifier(alpha=0.02, class_weight=weights, **EXACT).fit(X, LABELS)
    by_sample = FusedLassoClassifier(alpha=0.02, **EXACT).fit(X, LABELS, [weights[label] for label in LABELS])
    np.testing.assert_array_equal(by_class.coef_, by_sample.coef_)
    counts = np.bincount(LABELS)
    balanced = FusedLassoClassifier(alpha=0.02, class_weight="balanced", **EXACT).fit(X, LABELS)
    by_sample.fit(X, LABELS, (N / (2 * counts))[LABELS])
    np.testing.assert_array_equal(balanced.coef_, by_sample.coef_)


@pytest.mark.parametrize("as_sparse", [False, True])
def test_standardize_is_a_change_of_units(as_sparse):
    table = np.where(np.abs(X) > 0.7, X, 0) * np.logspace(-2, 2, D)
    scale = table.std(axis=0)
    given = sp.csr_array(table) if as_sparse else table
    inside = FusedLassoRegressor(alpha=0.05, standardize=True, **EXACT).fit(given, Y)
    outside = FusedLassoRegressor(alpha=0.05, **EXACT).fit(table / scale, Y)
    np.testing.assert_allclose(inside.coef_ * scale, outside.coef_, rtol=1e-7, atol=1e-9)
    np.testing.assert_array_equal(inside.clusters_, outside.clusters_)
    np.testing.assert_allclose(inside.predict(given), outside.predict(table / scale), rtol=1e-7)


def test_permuting_features_with_the_graph_permutes_coefficients():
    names = [f"gene{j}" for j in range(D)]
    graph = nx.Graph([(names[j], names[(3 * j + 1) % D]) for j in range(D) if (3 * j + 1) % D != j])
    frame = pd.DataFrame(X, columns=names)
    straight = FusedLassoRegressor(alpha=0.1, graph=graph, **EXACT).fit(frame, Y)
    order = np.random.default_rng(5).permutation(D)
    shuffled = FusedLassoRegressor(alpha=0.1, graph=graph, **EXACT).fit(frame.iloc[:, order], Y)
    np.testing.assert_allclose(shuffled.coef_, straight.coef_[order], atol=1e-7)
    assert shuffled.graph_.names.tolist() == [names[j] for j in order]


@pytest.mark.parametrize("y", [LABELS, THREE], ids=["two", "three"])
def test_dense_and_sparse_agree(y):
    thin = np.where(np.abs(X) > 0.8, X, 0)
    dense = FusedLassoClassifier(alpha=0.02, **EXACT).fit(thin, y)
    sparse = FusedLassoClassifier(alpha=0.02, **EXACT).fit(sp.csr_matrix(thin), y)
    # The columns of a dense table are centred, those of a sparse one are not: equal to the tolerance, not to the bit.
    np.testing.assert_allclose(sparse.decision_function(thin), dense.decision_function(thin), atol=1e-8, rtol=1e-8)
    np.testing.assert_allclose(dense.decision_function(sp.csr_array(thin)), dense.decision_function(thin), atol=1e-10)


def test_warm_start_gives_the_same_answer():
    model = FusedLassoRegressor(alpha=0.5, warm_start=True, **EXACT).fit(X, Y)
    model.set_params(alpha=0.05).fit(X, Y)
    cold = FusedLassoRegressor(alpha=0.05, **EXACT).fit(X, Y)
    np.testing.assert_allclose(model.coef_, cold.coef_, atol=1e-7)


def test_the_intercept_is_not_penalised():
    for ridge in (0.0, 0.1):
        low = FusedLassoRegressor(alpha=0.05, ridge=ridge, **EXACT).fit(X, Y)
        high = FusedLassoRegressor(alpha=0.05, ridge=ridge, **EXACT).fit(X, Y + 1000.0)
        assert high.intercept_ - low.intercept_ == pytest.approx(1000.0, abs=1e-6)
        np.testing.assert_allclose(high.coef_, low.coef_, atol=1e-7)

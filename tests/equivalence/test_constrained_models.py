"""Bounds, orders, factors and relaxed fits of the estimators: CVXPY, scikit-learn and NumPy find the same."""

import cvxpy as cp
import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import Lasso, LinearRegression

import skadmm
from skadmm import FusedLassoRegressor, GeneralizedLassoRegressor, GroupLassoRegressor, Problem, TrendFilter, solve
from skadmm.operators import trend
from skadmm.regularizers import L1, Box, GroupL2, Stacked
from skadmm.run.result import Status
from skadmm.solvers.second_order.polish import ConstrainedRows

pytestmark = pytest.mark.filterwarnings("ignore:Solution may be inaccurate")

N, D, ALPHA = 60, 9, 0.05
GROUPS = [[0, 1, 2], [3, 4, 5], [6, 7, 8]]
OVERLAPPING = [[0, 1, 2, 3], [3, 4, 5], [5, 6, 7, 8]]


def table(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, D)) + 0.5
    X[:, 3] *= 4.0
    y = X @ np.repeat(rng.standard_normal(3), 3) + rng.standard_normal(N) + 2.0
    return X, y


def fused(ratio):
    return lambda x: (1 - ratio) * cp.norm1(cp.diff(x)) + ratio * cp.norm1(x)


def grouped(groups, ratio):
    return lambda x: (1 - ratio) * sum(np.sqrt(len(g)) * cp.norm2(x[g]) for g in groups) + ratio * cp.norm1(x)


MODELS = {
    "fused": ("FusedLasso", {"l1_ratio": 0.5}, fused(0.5)),
    "fused without l1": ("FusedLasso", {"l1_ratio": 0.0}, fused(0.0)),
    "lasso": ("GeneralizedLasso", {}, cp.norm1),
    "group": ("GroupLasso", {"groups": GROUPS, "l1_ratio": 0.0}, grouped(GROUPS, 0.0)),
    "sparse group": ("GroupLasso", {"groups": GROUPS, "l1_ratio": 0.3}, grouped(GROUPS, 0.3)),
    "overlapping": ("GroupLasso", {"groups": OVERLAPPING, "l1_ratio": 0.0}, grouped(OVERLAPPING, 0.0)),
}
LIMITS = {
    "positive": ({"positive": True}, lambda c: [c >= 0]),
    "box": ({"bounds": (-0.3, 0.4)}, lambda c: [c >= -0.3, c <= 0.4]),
    "half open": ({"bounds": (-0.3, None)}, lambda c: [c >= -0.3]),
    "without zero": ({"bounds": (0.2, 0.7)}, lambda c: [c >= 0.2, c <= 0.7]),
    "increasing": ({"monotone": "increasing"}, lambda c: [cp.diff(c) >= 0]),
    "decreasing, positive": ({"monotone": "decreasing", "positive": True}, lambda c: [cp.diff(c) <= 0, c >= 0]),
}
CASES = [(m, k) for m in MODELS for k in LIMITS if MODELS[m][0] == "FusedLasso" or "creasing" not in k]


def optimum(X, y, penalty, constraints, loss, scale):
    coef, intercept = cp.Variable(D), cp.Variable()
    margins = X @ coef + intercept
    fit = cp.sum_squares(margins - y) / 2 if loss == "squared" else cp.sum(cp.logistic(-cp.multiply(y, margins)))
    problem = cp.Problem(cp.Minimize(fit / N + ALPHA * penalty(cp.multiply(scale, coef))), constraints(coef))
    problem.solve(solver="CLARABEL", tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    return problem.value


def objective(X, y, model, penalty, loss, scale):
    coef = np.ravel(model.coef_)
    margins = X @ coef + np.ravel(model.intercept_)[0]
    fit = np.mean((margins - y) ** 2) / 2 if loss == "squared" else np.logaddexp(0.0, -y * margins).mean()
    return fit + ALPHA * penalty(cp.Constant(scale * coef)).value


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize(("name", "limit"), CASES)
def test_bounds_and_orders_are_exact_and_optimal(name, limit, loss):
    family, options, penalty = MODELS[name]
    X, y = table()
    standardize = loss == "squared"
    y = y if loss == "squared" else np.where(y > np.median(y), 1.0, -1.0)
    scale = X.std(axis=0) if standardize else np.ones(D)
    given, constraints = LIMITS[limit]
    estimator = getattr(skadmm, family + ("Regressor" if loss == "squared" else "Classifier"))
    model = estimator(alpha=ALPHA, standardize=standardize, tol=1e-8, **options, **given).fit(X, y)
    best = optimum(X, y, penalty, constraints, loss, scale)
    assert model.result_.status is Status.SOLVED
    assert objective(X, y, model, penalty, loss, scale) == pytest.approx(best, rel=1e-7, abs=1e-9)
    for constraint in constraints(cp.Constant(np.ravel(model.coef_))):
        assert np.max(constraint.violation()) <= 1e-15


WIDE = ["positive", "box", "increasing", "decreasing, positive"]


def wide_table(seed, n=25, d=120):
    """Many more features than samples, most entries zero."""
    rng = np.random.default_rng(seed)
    X = sp.random_array((n, d), density=0.1, format="csr", rng=rng, data_sampler=rng.standard_normal)
    return X, X @ np.repeat([1.0, 0.0, -1.0], d // 3) + 0.5 * rng.standard_normal(n)


@pytest.mark.parametrize("alpha", [0.01, 0.1])
@pytest.mark.parametrize("limit", WIDE)
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_few_samples_and_many_features_within_constraints(loss, limit, alpha):
    given, constraints = LIMITS[limit]
    X, y = wide_table(1)
    y = y if loss == "squared" else np.where(y > np.median(y), 1.0, -1.0)
    estimator = FusedLassoRegressor if loss == "squared" else skadmm.FusedLassoClassifier
    model = estimator(alpha=alpha, **given).fit(X, y)
    coef, intercept = cp.Variable(X.shape[1]), cp.Variable()
    margins = X @ coef + intercept
    losses = cp.square(margins - y) / 2 if loss == "squared" else cp.logistic(-cp.multiply(y, margins))
    best = cp.Problem(cp.Minimize(cp.sum(losses) / y.size + alpha * fused(0.5)(coef)), constraints(coef))
    best.solve(solver="CLARABEL", tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    assert model.result_.status is Status.SOLVED
    assert model.result_.objective == pytest.approx(best.value, rel=1e-6)
    for constraint in constraints(cp.Constant(np.ravel(model.coef_))):
        assert np.max(constraint.violation()) <= 1e-15


@pytest.mark.parametrize("seed", range(10))
def test_a_point_is_moved_into_bounds_and_orders(seed):
    """Pairs are tied until none is missed, whatever the point; a point within its constraints stays."""
    rng = np.random.default_rng(seed)
    d = 12
    order = sp.csr_array(np.diff(np.diag(rng.uniform(0.5, 2.0, d)), axis=0))
    A = sp.csr_array(sp.vstack([sp.eye_array(d), order, sp.eye_array(d)]))
    box = Box(np.concatenate([np.zeros(d - 1), np.zeros(d)]), np.full(2 * d - 1, np.inf))
    problem = Problem(np.eye(d), np.ones(d), loss="squared", psi=Stacked(L1(0.1), box, d), A=A)
    rows = ConstrainedRows.of(problem)
    x = rng.standard_normal(d) * rng.choice([1e-9, 1.0], d)
    weight = rng.uniform(0.1, 10.0, d)
    moved = rows.moved(x, A @ x, weight)
    assert np.isfinite(problem.objective(moved))
    np.testing.assert_allclose(rows.moved(moved, problem.y_of_x(moved), weight), moved, rtol=1e-12)


@pytest.mark.parametrize(("name", "limit"), [(m, k) for m, k in CASES if m != "fused without l1"])
def test_the_gap_exists_wherever_another_row_takes_the_residual(name, limit):
    family, options, _ = MODELS[name]
    X, y = table(1)
    model = getattr(skadmm, family + "Regressor")(alpha=ALPHA, tol=1e-6, **options, **LIMITS[limit][0]).fit(X, y)
    assert model.result_.gap <= 1e-6


@pytest.mark.parametrize("seed", range(40))
def test_certificates_of_constrained_problems_never_lie(seed):
    """The bound from any point of a run, with any multiplier, is below the optimum."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(5, 40)), int(rng.integers(2, 12))
    X, y = rng.standard_normal((n, d)), rng.standard_normal(n)
    lower = np.where(rng.random(d) < 0.3, -np.inf, -rng.random(d) * rng.integers(0, 2, d))
    upper = np.where(rng.random(d) < 0.5, np.inf, rng.random(d) + 0.1)
    if rng.random() < 0.5:
        groups = [list(part) for part in np.array_split(np.arange(d), max(1, d // 3))]
        penalty, rows = GroupL2(0.1, groups), sp.eye_array(d)
    else:
        penalty, rows = L1(0.1), sp.vstack([sp.csr_array(np.diff(np.eye(d), axis=0)), 0.5 * sp.eye_array(d)])
    A = sp.csr_array(sp.vstack([rows, sp.eye_array(d)]))
    problem = Problem(X, y, loss="squared", psi=Stacked(penalty, Box(lower, upper), rows.shape[0]), A=A)
    best = solve(problem, tol=1e-9, passes=2000)
    certifier = skadmm.problem.certificate.Certifier(problem)
    assert best.status is Status.SOLVED
    for _ in range(5):
        x = np.clip(best.x + 0.3 * rng.standard_normal(d), lower, upper)
        evaluation = problem.backend.evaluate(x)
        multiplier = rng.standard_normal(A.shape[0])
        bounds = certifier.certify(problem.objective(x), evaluation.slopes, evaluation.gradient, multiplier)
        assert bounds.dual <= best.objective + 1e-8 * abs(best.objective)
        assert bounds.primal >= bounds.dual


def test_an_identity_design_is_isotonic_regression():
    rng = np.random.default_rng(3)
    y = np.linspace(0.0, 2.0, 50) + rng.standard_normal(50)
    expected = IsotonicRegression().fit_transform(np.arange(50), y)
    model = FusedLassoRegressor(alpha=0.0, monotone="increasing", fit_intercept=False, tol=1e-9).fit(np.eye(50), y)
    np.testing.assert_allclose(model.coef_, expected, atol=1e-7)
    assert model.n_clusters_ == np.unique(expected.round(10)).size
    signal = TrendFilter(alpha=1e-12, order=0, monotone="decreasing", tol=1e-9).fit(np.arange(50.0)[:, None], -y)
    np.testing.assert_allclose(signal.coef_, -expected, atol=1e-6)


def test_the_order_follows_the_arcs_of_a_directed_graph():
    rng = np.random.default_rng(4)
    X, y = rng.standard_normal((80, 5)), rng.standard_normal(80)
    arcs = [(3, 0), (0, 1), (4, 1), (2, 3)]
    coef = cp.Variable(5)
    rows = [cp.abs(coef[i] - coef[j]) for i, j in arcs]
    loss = cp.sum_squares(X @ coef - y) / 160 + 0.01 * sum(rows)
    problem = cp.Problem(cp.Minimize(loss), [coef[i] <= coef[j] for i, j in arcs])
    problem.solve(solver="CLARABEL", tol_gap_abs=1e-12, tol_gap_rel=1e-12)
    options = {"alpha": 0.01, "l1_ratio": 0.0, "monotone": "increasing", "fit_intercept": False, "tol": 1e-9}
    for graph in (nx.DiGraph(arcs), arcs):
        model = FusedLassoRegressor(graph=graph, **options).fit(X, y)
        np.testing.assert_allclose(model.coef_, coef.value, atol=1e-6)
    by_edge = FusedLassoRegressor(graph=[(j, i) for i, j in arcs], **options | {"monotone": [-1] * 4}).fit(X, y)
    np.testing.assert_allclose(by_edge.coef_, coef.value, atol=1e-6)


def test_a_positive_lasso_is_that_of_scikit_learn():
    X, y = table(5)
    expected = Lasso(alpha=0.1, positive=True, tol=1e-12, max_iter=100_000).fit(X, y)
    for rows in (X, sp.csr_array(X)):
        model = GeneralizedLassoRegressor(alpha=0.1, positive=True, tol=1e-11).fit(rows, y)
        np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-7)
        assert model.intercept_ == pytest.approx(expected.intercept_)
        assert model.result_.solver == "block-descent"


def test_factors_are_weights():
    X, y = table(6)
    features, edges = np.array([0, 1, 2, 0.5, 1, 1, 0, 3, 1.0]), np.array([0, 1, 2, 1, 1, 0.3, 1, 1.0])
    coef, intercept = cp.Variable(D), cp.Variable()
    loss = cp.sum_squares(X @ coef + intercept - y) / (2 * N)
    fusing, plain = cp.norm1(cp.multiply(edges, cp.diff(coef))), cp.norm1(cp.multiply(features, coef))
    groups = sum(np.sqrt(3) * cp.norm2(cp.multiply(features[g], coef[g])) for g in GROUPS)
    models = {
        FusedLassoRegressor(0.1, penalty_factor=(features, edges), tol=1e-9): 0.05 * (fusing + plain),
        GeneralizedLassoRegressor(0.1, penalty_factor=features, tol=1e-9): 0.1 * plain,
        GroupLassoRegressor(0.1, groups=GROUPS, l1_ratio=0.5, penalty_factor=features, tol=1e-9): 0.05
        * (groups + plain),
    }
    for model, penalty in models.items():
        problem = cp.Problem(cp.Minimize(loss + penalty))
        problem.solve(solver="CLARABEL", tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12)
        np.testing.assert_allclose(model.fit(X, y).coef_, coef.value, atol=1e-5)


def errors_of(clusters, covariance):
    """Standard errors of the features from the covariance of their clusters; NaN for features in none."""
    errors = np.sqrt(np.diag(clusters @ covariance @ clusters.T))
    return np.where(clusters.any(axis=1), errors, np.nan)


@pytest.mark.parametrize("weighted", [False, True])
def test_a_relaxed_fit_is_least_squares_on_the_clusters(weighted):
    X, y = table(7)
    weight = np.random.default_rng(0).integers(1, 4, N).astype(float) if weighted else None
    model = FusedLassoRegressor(0.3, relax=True, tol=1e-9).fit(X, y, sample_weight=weight)
    clusters = np.array([model.clusters_ == k for k in range(model.n_clusters_)]).T.astype(float)
    expected = LinearRegression().fit(X @ clusters, y, sample_weight=weight)
    np.testing.assert_allclose(model.coef_, clusters @ expected.coef_, atol=1e-7)
    assert 0 < model.n_clusters_ < D
    assert not np.allclose(model.penalized_coef_, model.coef_)
    copies = np.ones(N, int) if weight is None else weight.astype(int)
    Z, t = (np.repeat(part, copies, axis=0) for part in (np.column_stack([X @ clusters, np.ones(N)]), y))
    residual = t - Z @ np.append(expected.coef_, expected.intercept_)
    covariance = np.linalg.inv(Z.T @ Z) * (residual @ residual) / (len(t) - Z.shape[1])
    np.testing.assert_allclose(model.standard_errors_, errors_of(clusters, covariance[:-1, :-1]), rtol=1e-6)
    assert np.isnan(model.standard_errors_[model.coef_ == 0.0]).all()


def test_a_relaxed_trend_is_least_squares_on_its_pieces():
    rng = np.random.default_rng(8)
    t = np.arange(40.0)
    y = np.where(t < 20, t, 40 - t) / 5 + 0.3 * rng.standard_normal(40)
    model = TrendFilter(alpha=0.5, order=1, relax=True, tol=1e-9).fit(t[:, None], y)
    hinges = np.column_stack([np.ones(40), t, *(np.maximum(t - t[k], 0.0) for k in model.changepoints_)])
    expected = hinges @ np.linalg.lstsq(hinges, y, rcond=None)[0]
    np.testing.assert_allclose(model.coef_, expected, atol=1e-5)


def test_standard_errors_of_a_logistic_fit_come_from_the_information():
    X, y = table(9)
    label = y > np.median(y)
    model = skadmm.FusedLassoClassifier(0.02, relax=True, tol=1e-9).fit(X, label)
    clusters = np.array([model.clusters_ == k for k in range(model.n_clusters_)]).T.astype(float)
    Z = np.column_stack([X @ clusters, np.ones(N)])
    p = model.predict_proba(X)[:, 1]
    covariance = np.linalg.inv(Z.T @ ((p * (1 - p))[:, None] * Z))
    np.testing.assert_allclose(model.standard_errors_[0], errors_of(clusters, covariance[:-1, :-1]), rtol=1e-4)


def test_coefficients_that_a_structure_keeps_at_zero_have_no_standard_errors():
    X, y = table(9)
    model = skadmm.GroupLassoRegressor(0.8, groups=[[j] for j in range(D)], relax=True).fit(X, y)
    assert 0 < np.count_nonzero(model.coef_) < D
    np.testing.assert_array_equal(np.isnan(model.standard_errors_), model.coef_ == 0.0)


@pytest.mark.parametrize("standardize", [False, True])
def test_relaxing_a_model_without_coefficients_keeps_its_intercept(standardize):
    X, y = table(9)
    model = FusedLassoRegressor(1e3, relax=True, standardize=standardize).fit(X, y)  # without a ConvergenceWarning
    assert not model.coef_.any()
    assert model.intercept_ == pytest.approx(y.mean())
    assert np.isnan(model.standard_errors_).all()
    through_zero = FusedLassoRegressor(1e3, relax=True, fit_intercept=False).fit(X, y)
    assert (through_zero.coef_.any(), through_zero.intercept_) == (False, 0.0)
    label = y > np.quantile(y, 0.3)
    classifier = skadmm.FusedLassoClassifier(1e3, relax=True, standardize=standardize).fit(X, label)
    np.testing.assert_allclose(classifier.predict_proba(X)[:, 1], label.mean(), atol=1e-5)


def test_a_loss_with_kinks_has_no_standard_errors():
    X, y = table(9)
    model = FusedLassoRegressor(0.05, loss="absolute", relax=True).fit(X, y)
    assert np.isnan(model.standard_errors_).all()


def test_counts_keep_their_limits_and_have_standard_errors():
    X, _ = table(10)
    y = np.random.default_rng(0).poisson(np.exp(0.2 * X[:, :3].sum(axis=1))).astype(float)
    model = FusedLassoRegressor(0.02, loss="poisson", positive=True).fit(X, y)
    assert model.result_.status is Status.SOLVED
    assert model.coef_.min() >= 0.0
    relaxed = FusedLassoRegressor(0.05, loss="poisson", relax=True, tol=1e-9).fit(X, y)
    clusters = np.array([relaxed.clusters_ == k for k in range(relaxed.n_clusters_)]).T.astype(float)
    Z = np.column_stack([X @ clusters, np.ones(N)])
    covariance = np.linalg.inv(Z.T @ (relaxed.predict(X)[:, None] * Z))
    expected = errors_of(clusters, covariance[:-1, :-1])
    np.testing.assert_allclose(relaxed.standard_errors_, expected, rtol=1e-4)


def test_coefficients_that_the_samples_do_not_determine_have_no_standard_errors():
    """The second fit has neither the penalty nor the ridge, so that nothing but the samples determines it."""
    rng = np.random.default_rng(0)
    cell = np.arange(60) % 3
    indicators, x = np.eye(3)[cell], rng.normal(size=60)
    y = cell + 0.1 * rng.normal(size=60)

    def errors(X, A=None, **options):
        model = skadmm.GeneralizedLassoRegressor(A=A, alpha=1e-6, relax=True, **options).fit(X, y)
        return model.standard_errors_

    assert np.isnan(errors(indicators, np.diff(np.eye(3), axis=0))).all()  # they sum to the intercept's column
    assert np.isnan(errors(np.column_stack([x, x]), ridge=0.1)).all()
    constant = errors(np.column_stack([np.full(60, 0.1), x]), A=np.zeros((1, 2)))
    np.testing.assert_array_equal(np.isnan(constant), [True, False])

    redundant = np.column_stack([x, x, 1e-8 * rng.normal(size=60), indicators])
    full = np.column_stack([x, redundant[:, 2], indicators])
    residual = y - full @ np.linalg.lstsq(full, y, rcond=None)[0]
    units = np.linalg.norm(full, axis=0)
    covariance = np.linalg.inv((full / units).T @ (full / units)) * (residual @ residual) / (60 - 5)
    found = errors(redundant, A=np.zeros((1, 6)), fit_intercept=False)
    np.testing.assert_array_equal(np.isnan(found), [True, True, False, False, False, False])
    np.testing.assert_allclose(found[2:], (np.sqrt(np.diag(covariance)) / units)[1:], rtol=1e-6)


@pytest.mark.parametrize("seed", [2, 5])
@pytest.mark.parametrize("limit", [{"positive": True}, {"bounds": (-1.0, 1.0)}])
def test_trends_of_columns_of_very_different_scales_within_constraints(limit, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(30, 40)) * 10.0 ** rng.uniform(-4, 4, 40)
    y = rng.normal(size=30) + X @ (rng.normal(size=40) / X.std(axis=0)) * 0.2
    A, alpha = trend(40, 2), 100.0
    x = cp.Variable(40)
    constraints = [x >= 0.0] if "positive" in limit else [x >= -1.0, x <= 1.0]
    problem = cp.Problem(cp.Minimize(cp.sum_squares(X @ x - y) / 60 + alpha * cp.norm1(A @ x)), constraints)
    problem.solve(solver="CLARABEL", tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    model = GeneralizedLassoRegressor(alpha=alpha, A=A, fit_intercept=False, tol=1e-8, **limit).fit(X, y)
    coef = model.coef_
    reached = np.sum((X @ coef - y) ** 2) / 60 + alpha * np.abs(A @ coef).sum()
    assert model.result_.status is Status.SOLVED, model.result_.message
    assert reached <= problem.value * (1.0 + 1e-8)

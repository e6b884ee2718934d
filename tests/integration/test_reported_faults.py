"""Faults that were reported of 0.1.0, each as the problem that showed it."""

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp

from skadmm import FusedLassoClassifier, FusedLassoRegressor, Problem, Status, TrendFilter, solve
from skadmm.losses import Huber
from skadmm.operators import chain, grid, incidence, stack, trend
from skadmm.regularizers import L1, GroupL2

# -- 1. connected sets of more than 300 features stayed at zero -------------------------------------------------------

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
    rng = np.random.default_rng(0)
    X = rng.random((600, 1000))
    y = X[:, 200:300].sum(axis=1)
    model = FusedLassoRegressor(alpha=0.6 * np.abs(X.T @ y).max() / 600, fit_intercept=False, tol=1e-4).fit(X, y)
    assert model.result_.status is Status.SOLVED
    assert np.count_nonzero(model.coef_) > 0


def test_classifier_on_a_grid_of_pixels():
    rng = np.random.default_rng(1)
    X = rng.random((500, 64 * 64))
    X[:250, 1000:1400] += 0.3
    y = np.arange(500) < 250
    model = FusedLassoClassifier(alpha=0.02, graph=(64, 64), fit_intercept=False, tol=1e-4).fit(X, y)
    assert model.result_.status is Status.SOLVED
    assert np.count_nonzero(model.coef_) > 0


@pytest.mark.parametrize("with_identity", [True, False])
def test_an_image_is_denoised(with_identity):
    rng = np.random.default_rng(2)
    image = np.zeros((120, 120))
    image[30:60, 40:] = 1.0
    noisy = image + 0.3 * rng.standard_normal((120, 120))
    A = stack(grid((120, 120)), "identity") if with_identity else grid((120, 120))
    result = solve(Problem(sp.eye_array(14_400, format="csr"), noisy.ravel(), "squared", psi=L1(2e-5), A=A), tol=1e-4)
    assert result.status is Status.SOLVED
    assert np.abs(result.x.reshape(120, 120) - image).mean() < np.abs(noisy - image).mean()


# -- 2. Huber's loss where every residual starts beyond δ -------------------------------------------------------------


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


# -- 3. crashes -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [6, 30, 200])
@pytest.mark.parametrize("with_identity", [False, True])
def test_edges_without_weight(size, with_identity):
    """A row of zeros in A is no penalty at all."""
    rng = np.random.default_rng(2)
    X = rng.standard_normal((60, size))
    y = X[:, 0] - X[:, 1] + 0.1 * rng.standard_normal(60)
    edges = [(j, j + 1) for j in range(size - 1)]
    weights = np.ones(size - 1)
    weights[2:4] = 0.0
    answers = []
    for chosen, weight in ((edges, weights), ([edge for edge, w in zip(edges, weights, strict=True) if w], None)):
        A = incidence(chosen, n_features=size, weights=weight)
        A = stack(A, "identity") if with_identity else A
        answers.append(solve(Problem(X, y, "squared", psi=L1(1e-4), A=A), tol=1e-8))
    assert {answer.status for answer in answers} == {Status.SOLVED}
    assert answers[0].objective == pytest.approx(answers[1].objective, rel=1e-7)


@pytest.mark.parametrize("method", ["auto", "sa-iu-admm", "batch-admm"])
@pytest.mark.parametrize(
    ("X", "target", "model"),
    [
        pytest.param(np.eye(4), np.zeros(4), {"x0": np.ones(4)}, id="zero target, started elsewhere"),
        pytest.param(np.eye(4), np.zeros(4), {"c": np.ones(3)}, id="zero target and c"),
        pytest.param(np.zeros((4, 4)), np.ones(4), {"c": np.ones(3)}, id="zero X and c"),
        pytest.param(np.eye(4), np.ones(4), {"A": sp.csr_array((3, 4))}, id="zero A"),
        pytest.param(np.zeros((4, 4)), np.ones(4), {"A": sp.csr_array((3, 4)), "c": np.ones(3)}, id="all zero but c"),
    ],
)
def test_problems_without_a_gradient_at_zero(X, target, model, method):
    options = {name: model[name] for name in model if name == "x0"}
    constraint = {"A": chain(4)} | {name: model[name] for name in model if name != "x0"}
    result = solve(Problem(X, target, "squared", psi=L1(0.1), **constraint), method, tol=1e-6, step="theory", **options)
    assert np.isfinite(result.x).all()
    if method != "auto":
        return  # that they do not fail is all that is asked of them here
    x = cp.Variable(4)
    y = constraint["A"] @ x - constraint.get("c", np.zeros(3))
    expected = cp.Problem(cp.Minimize(0.125 * cp.sum_squares(X @ x - target) + 0.1 * cp.norm1(y))).solve("CLARABEL")
    assert result.objective == pytest.approx(expected, abs=1e-5)
    assert result.status is Status.SOLVED


# -- 6. the right x with the wrong status -----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("size", [20, 300])
def test_strengths_just_above_the_one_that_zeroes_all(seed, size):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((50, size)) + (seed % 2)
    y = rng.standard_normal(50)
    edges = {(int(i), int(j)) for i, j in np.sort(rng.integers(0, size, (2 * size, 2)), axis=1) if i != j}
    A = stack(incidence(sorted(edges), n_features=size), "identity")
    # By duality the bound is the optimum of a linear programme.
    w, t = cp.Variable(A.shape[0]), cp.Variable()
    top = cp.Problem(cp.Minimize(t), [A.T @ w == X.T @ y / 50, cp.abs(w) <= t]).solve("CLARABEL")
    result = solve(Problem(X, y, "squared", psi=L1(1.001 * top), A=A), tol=1e-6)
    assert result.status is Status.SOLVED
    assert not result.x.any()
    assert result.kkt.relative <= 1e-3


def test_a_solution_that_is_zero_has_a_small_residual():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((40, 10))
    problem = Problem(X, rng.standard_normal(40), "squared", psi=GroupL2(5.0), A=trend(10, 1), omega=L1(5.0))
    result = solve(problem, tol=1e-6)
    assert result.status is Status.SOLVED
    assert np.abs(result.x).max() <= 1e-9


@pytest.mark.parametrize("seed", range(9, 13))
def test_status_is_that_of_the_answer(seed):
    """The last look at the samples certifies more than the steps before it."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(10, 60))
    X = rng.standard_normal((80, d)) + 3.0 * rng.integers(0, 2)
    y = X[:, :5].sum(axis=1) + rng.standard_normal(80)
    edges = {(int(i), int(j)) for i, j in np.sort(rng.integers(0, d, (2 * d, 2)), axis=1) if i != j}
    A = stack(incidence(sorted(edges), n_features=d), "identity")
    for strength in (1e-3, 0.05, 1.0):
        problem = Problem(X, y, "squared", psi=L1(strength), A=A)
        for passes in (1, 2, 3, 5):
            result = solve(problem, tol=1e-4, passes=passes)
            assert (result.status is Status.SOLVED) == (result.gap <= 1e-4)
            if result.gap <= 1e-6:
                assert result.kkt.relative <= 1e-2


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("method", ["sa-admm", "saga-admm", "svrg-admm"])
@pytest.mark.parametrize("tol", [3e-2, 1e-2, 1e-3])
def test_a_solved_run_has_a_gap_within_the_tolerance(method, tol):
    """The answer may be another point than the last, whose gap met the tolerance."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((80, 6))
        labels = np.where(X[:, 0] + X[:, 1] + rng.standard_normal(80) > 0, 1.0, -1.0)
        problem = Problem(X, labels, "logistic", psi=L1(0.05), A=stack(chain(6), "identity"))
        result = solve(problem, method, tol=tol, passes=100, record_every=0.5, random_state=seed)
        optimum = solve(problem, tol=1e-13).objective
        assert result.gap >= (result.objective - optimum) / result.objective - 1e-12
        assert result.status is not Status.SOLVED or result.gap <= tol


@pytest.mark.parametrize("size", [1e160, 1e200, 1e307])
@pytest.mark.parametrize("columns", [None, 6])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_start_whose_residuals_overflow_is_not_called_solved(size, columns):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 4)), rng.standard_normal(30)
    B = None if columns is None else sp.csr_array(rng.standard_normal((3, columns)))
    problem = Problem(X, y, "squared", psi=L1(0.1), A=chain(4), B=B)
    result = solve(problem, "san-admm", tol=1e-6, x0=np.full(4, size), time_limit=5)
    assert result.status is not Status.SOLVED or result.objective < 10.0


def test_advice_for_a_method_without_a_step():
    X = np.full((4, 2), 1e200)
    with np.errstate(all="ignore"):
        result = solve(Problem(X, np.array([1e200, -1e200, 1e200, 1e180]), "squared", psi=L1(1.0)), tol=1e-6)
    assert "smaller step" not in result.message


# -- 7. results worse than what was seen on the way -------------------------------------------------------------------


@pytest.mark.parametrize("method", ["auto", "sa-iu-admm", "opg-admm", "stoc-admm"])
def test_the_answer_is_the_best_point_of_the_trace(method):
    rng = np.random.default_rng(5)
    X = rng.standard_normal((60, 12)) * np.geomspace(1e-2, 1e2, 12)
    labels = np.where(X @ rng.standard_normal(12) + 10 * rng.standard_normal(60) > 0, 1.0, -1.0)
    problem = Problem(X, labels, "logistic", psi=L1(1e-3), A=chain(12))
    result = solve(problem, method, tol=1e-9, passes=12, step="auto" if method == "auto" else 0.3)
    assert result.objective <= result.trace["objective"].min() * (1 + 1e-9)
    assert result.objective == pytest.approx(problem.objective(result.x), rel=1e-12)


# -- 8. a certificate costs less than the solve -----------------------------------------------------------------------


def test_corrections_on_a_graph_that_expands_are_not_factorised():
    from skadmm.operators.row_correction import correction, is_cheap

    rng = np.random.default_rng(6)
    for edges, cheap in (([(j, j + 1) for j in range(19_999)], True), (None, False)):
        if edges is None:
            drawn = np.sort(rng.integers(0, 20_000, (40_000, 2)), axis=1)
            edges = [(int(i), int(j)) for i, j in np.unique(drawn, axis=0) if i != j]
        A = incidence(edges, n_features=20_000)
        assert is_cheap(A.T @ A) == cheap
        residual = A.T @ rng.standard_normal(A.shape[0])
        left = residual + A.T @ correction(A, residual)
        assert np.linalg.norm(left) <= 1e-6 * np.linalg.norm(residual)


@pytest.mark.parametrize("kind", ["wavelet", "dense", "both"])
def test_corrections_on_long_rows_are_least_squares_and_form_no_large_gram_matrix(kind, monkeypatch):
    from skadmm.operators import row_correction, wavelet

    rng = np.random.default_rng(9)
    A = {
        "wavelet": lambda: wavelet(1024, "db2")[::2],
        "dense": lambda: sp.csr_array(rng.standard_normal((120, 400))),
        "both": lambda: stack(sp.csr_array(rng.standard_normal((40, 800))), "identity")[:700],
    }[kind]()
    residual = rng.standard_normal(A.shape[1])
    dense = A.toarray()
    expected = residual - dense.T @ np.linalg.lstsq(dense.T, residual, rcond=None)[0]
    monkeypatch.setattr(row_correction, "SMALL_WORK", 1e5)
    if kind != "dense":
        monkeypatch.setattr(row_correction, "MAX_SPARSE_WORK", 1e5)  # what rows of this kind exceed at full size
        assert row_correction.gram_of(A) is None
    left = residual + A.T @ row_correction.correction(A, residual)
    assert np.linalg.norm(left - expected) <= 1e-8 * np.linalg.norm(residual)


def test_the_time_limit_is_kept_on_a_random_graph():
    rng = np.random.default_rng(7)
    d = 16_000
    drawn = np.sort(rng.integers(0, d, (2 * d, 2)), axis=1)
    A = incidence([(int(i), int(j)) for i, j in np.unique(drawn, axis=0) if i != j], n_features=d)
    X = rng.standard_normal((300, d))
    y = X @ np.repeat(rng.standard_normal(d // 100), 100) + rng.standard_normal(300)
    result = solve(Problem(X, y, "squared", psi=L1(1.0), A=A), tol=1e-4, time_limit=20)
    assert result.seconds <= 25
    assert result.status in (Status.SOLVED, Status.TIME_LIMIT)


# -- 13. the default limit of passes is a safety net ------------------------------------------------------------------


def test_default_passes_are_enough_for_graphs():
    rng = np.random.default_rng(8)
    statuses = []
    for k in range(12):
        d = int(rng.integers(160, 400))
        edges = {(int(i), int(j)) for i, j in np.sort(rng.integers(0, d, (2 * d, 2)), axis=1) if i != j}
        X = rng.standard_normal((d // 2, d)) + 2.0 * rng.integers(0, 2)
        y = X @ np.where(np.arange(d) < d // 5, 1.0, 0.0) + rng.standard_normal(d // 2)
        A = incidence(sorted(edges), n_features=d)
        A = A if k % 2 else stack(A, "identity")
        statuses.append(solve(Problem(X, y, "squared", psi=L1([1e-3, 1e-4][k % 2]), A=A), tol=1e-6).status)
    assert set(statuses) == {Status.SOLVED}


# -- 11. problems without a minimiser, beyond graphs ------------------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [
        pytest.param({"psi": L1(0.1), "A": trend(8, 2)}, id="a trend"),
        pytest.param({"psi": L1(0.1, np.array([0.0] * 4 + [1.0] * 4))}, id="weights of zero"),
        pytest.param({"psi": GroupL2(0.1, [[4, 5], [6, 7]])}, id="features in no group"),
        pytest.param({"psi": L1(0.0), "A": chain(8)}, id="no strength"),
    ],
)
def test_separable_labels_and_directions_without_penalty(model):
    rng = np.random.default_rng(9)
    X = rng.standard_normal((20, 8))
    X[:, 0] = np.abs(X[:, 0]) + 0.1
    line = np.arange(8.0) if "A" in model else np.eye(8)[0]
    labels = np.where(X @ line > 0, 1.0, -1.0)
    labels[0] = -labels[1] if np.unique(labels).size == 1 else labels[0]
    X[np.sign(X @ line) != labels] *= -1.0
    assert solve(Problem(X, labels, **model), tol=1e-6).status is Status.NO_MINIMISER
    mixed = labels * np.where(np.arange(20) % 3 == 0, -1.0, 1.0)  # not separable by the free directions alone
    assert solve(Problem(np.vstack([X, X]), np.concatenate([labels, mixed]), **model), tol=1e-6).status is Status.SOLVED

"""Newton steps on clusters: the subgradient of minimum norm, the model, the contraction and the solver."""

import itertools

import cvxpy as cp
import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp
from problems import make

from skadmm import Problem, Status, solve
from skadmm.kernels.contraction import columns_of, contracted, sum_cross
from skadmm.operators import chain, grid, incidence, stack
from skadmm.operators.clusters import clusters
from skadmm.regularizers import L1, SquaredL2
from skadmm.solvers import dual_update, situation
from skadmm.solvers.base import Setup
from skadmm.solvers.second_order import chains
from skadmm.solvers.second_order.l1_rows import ShortRows, has_short_rows
from skadmm.solvers.second_order.min_norm_subgradient import scratch_of, sweep_multipliers
from skadmm.solvers.second_order.newton_admm import MAX_FEATURES, NewtonADMM
from skadmm.solvers.second_order.opening import Opening
from skadmm.solvers.second_order.reduced_model import ReducedModel
from skadmm.solvers.second_order.reduced_newton import ReducedNewton, ReducedNewtonConfig


def random_graph(rng, d, edges):
    pairs = list(itertools.combinations(range(d), 2))
    chosen = [pairs[k] for k in rng.choice(len(pairs), min(edges, len(pairs)), replace=False)]
    rows = np.repeat(np.arange(len(chosen)), 2)
    return sp.csr_array((np.tile([1.0, -1.0], len(chosen)), (rows, np.ravel(chosen))), shape=(len(chosen), d))


@pytest.fixture(autouse=True)
def no_proximal_steps(monkeypatch):
    """Newton steps from the first step on: what comes before them has its own tests."""
    monkeypatch.setattr(chains, "penalty_along_chains", lambda problem: None)


@pytest.fixture
def always_clusters(monkeypatch):
    monkeypatch.setattr(situation, "CONFIG", situation.SelectionConfig(many_features=1))


# -- the parts ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_sweeps_find_the_subgradient_of_minimum_norm(seed):
    """Against bounded least squares by SciPy."""
    rng = np.random.default_rng(seed)
    A = sp.csr_array(sp.vstack([random_graph(rng, 9, 12), sp.eye_array(9)]))
    strength = rng.uniform(0.2, 1.0, A.shape[0])
    g = 3 * rng.standard_normal(9)
    beta, r = np.zeros(A.shape[0]), g.copy()
    rows = np.arange(A.shape[0])
    sweep_multipliers(
        A.indptr, A.indices, A.data, rows, strength, beta, r, 1.5, 100_000, 0.0, *scratch_of(r.size, rows.size)
    )
    exact = scipy.optimize.lsq_linear(A.toarray().T, -g, (-strength, strength), tol=1e-14)
    assert np.all(np.abs(beta) <= strength)
    assert np.allclose(r, g + A.T @ beta, atol=1e-12)
    assert np.allclose(r, g + A.T @ exact.x, atol=1e-6)


def test_rows_that_are_not_tied_keep_their_multiplier():
    A = sp.csr_array(stack(chain(4), "identity"))
    beta, r = np.full(A.shape[0], 0.5), np.array([3.0, -2.0, 1.0, 5.0])
    rows, strength = np.array([0, 4]), np.ones(A.shape[0])
    sweep_multipliers(
        A.indptr, A.indices, A.data, rows, strength, beta, r, 1.5, 50, 1e-12, *scratch_of(r.size, rows.size)
    )
    assert np.all(beta[[1, 2, 3, 5, 6]] == 0.5)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("edges", [0, 15])
def test_descent_minimises_the_model(seed, edges):
    """Without pairs the minimiser, as CVXPY finds it; with them a point that no single cluster, and no move that keeps
    the pattern, can improve. Which pattern is right is for the subgradient to say."""
    rng = np.random.default_rng(seed)
    k = 12
    root = rng.standard_normal((2 * k, k))
    H = root.T @ root / k
    gradient, start = 4 * rng.standard_normal(k), rng.standard_normal(k)
    pairs = random_graph(rng, k, edges)
    strength, zero = rng.uniform(0.1, 1.0, pairs.shape[0]), rng.uniform(0.1, 1.0, k)
    u = ReducedModel(H, gradient, start, pairs, strength, zero).minimise(50, 200)

    def value(v):
        w = v - start
        return gradient @ w + 0.5 * w @ H @ w + zero @ np.abs(v) + strength @ np.abs(pairs @ v)

    if edges == 0:
        v = cp.Variable(k)
        model = gradient @ (v - start) + 0.5 * cp.quad_form(v - start, cp.psd_wrap(H)) + zero @ cp.abs(v)
        best = cp.Problem(cp.Minimize(model)).solve(solver=cp.CLARABEL)
        assert value(u) <= best + 1e-6 * abs(best)
    labels, factors = clusters(sp.csr_array(sp.vstack([pairs, sp.eye_array(k)])), np.concatenate([pairs @ u, u]) == 0)
    moves = [np.eye(k)[c] for c in range(k)]
    moves += [np.where(labels == label, factors, 0.0) for label in range(labels.max() + 1)]
    for move, step in itertools.product(moves, (1e-2, 1e-5, -1e-2, -1e-5)):
        assert value(u) <= value(u + step * move) + 1e-12


@pytest.mark.parametrize("sparse", [False, True])
def test_contraction_is_a_product(sparse):
    rng = np.random.default_rng(0)
    X, target = make(rng, 40, 10, "squared", sparse=sparse)
    rows = Problem(X, target, loss="squared", psi=L1(0.1), A="identity").rows
    label = np.array([2, -1, 0, 2, 1, 0, -1, 3, 1, 0])
    factor = rng.uniform(0.5, 2.0, 10)
    join = np.zeros((10, 4))
    join[label >= 0, label[label >= 0]] = factor[label >= 0]
    dense = X.toarray() if sparse else X
    small = contracted(columns_of(rows), label, factor, 4)
    if sparse:
        product = sp.csr_array((small.data, small.indices, small.indptr), shape=small.shape)
        assert product.has_sorted_indices
        product = product.toarray()
    else:
        product = small.values
    assert np.allclose(product, dense @ join, atol=1e-14)
    scale = rng.standard_normal(40)
    index = np.arange(0, 40, 3)
    whole = product[index].T @ (scale[index, None] * product[index])
    assert np.allclose(sum_cross(small, np.array([1, 3]), index, scale, 1.0), whole[[1, 3]], atol=1e-12)


# -- the method --------------------------------------------------------------------------------------------------------

LOSSES = ("logistic", "squared", "squared-hinge", "huber")


def operator(kind, d, rng):
    if kind == "chain":
        return chain(d)
    if kind == "identity":
        return "identity"
    if kind == "grid":
        return stack(grid((3, d // 3)), "identity")
    return stack(random_graph(rng, d, d), "identity")


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", ["chain", "identity", "grid", "graph"])
@pytest.mark.parametrize("ridge", [0.0, 0.05])
def test_agrees_with_admm(always_clusters, loss, kind, ridge):
    """The same objective as the sweeps of ADMM, for every loss, with and without a ridge."""
    rng = np.random.default_rng(3)
    X, target = make(rng, 120, 12, loss, sparse=kind == "graph")
    omega = SquaredL2(ridge) if ridge else None
    problem = Problem(X, target, loss=loss, omega=omega, psi=L1(0.03), A=operator(kind, 12, rng))
    result = solve(problem, "san-admm", tol=1e-9, passes=200)
    assert result.status is Status.SOLVED
    setup = Setup(problem, 0.1, 1.0, 1, "system" if ridge else "none", tol=1e-9)
    other = NewtonADMM.engine(setup, dual_update.start(problem, np.zeros(12), None, None))
    other.advance(np.zeros(60, np.int64))
    other.finish()
    assert result.objective <= other.current.objective * (1 + 1e-8)
    assert np.allclose(result.x, other.point.x, atol=1e-4 * np.abs(other.point.x).max())


@pytest.mark.parametrize("seed", range(6))
def test_certificates_hold_on_random_graphs(always_clusters, seed):
    rng = np.random.default_rng(seed)
    X, target = make(rng, 60, 16, "logistic", sparse=bool(seed % 2))
    A = stack(random_graph(rng, 16, 20), "identity")
    weights = rng.uniform(0.5, 2.0, A.shape[0])
    problem = Problem(X, target, psi=L1(0.02, weights), A=A)
    result = solve(problem, "san-admm", tol=1e-8, passes=200)
    x = cp.Variable(16)
    dense = X.toarray() if sp.issparse(X) else X
    loss = cp.sum(cp.logistic(cp.multiply(-target, dense @ x))) / 60
    best = cp.Problem(cp.Minimize(loss + 0.02 * weights @ cp.abs(A @ x))).solve(solver=cp.CLARABEL)
    assert result.status is Status.SOLVED
    assert result.gap <= 1e-8
    assert result.objective - best <= (result.gap + 1e-7) * result.objective


def test_columns_twelve_decades_apart(always_clusters):
    rng = np.random.default_rng(1)
    X, target = make(rng, 200, 15, "logistic")
    problem = Problem(X * 10.0 ** rng.uniform(-6, 6, 15), target, psi=L1(1e-3), A=stack(chain(15), "identity"))
    result = solve(problem, "san-admm", tol=1e-8, passes=60)
    assert result.status is Status.SOLVED


def test_an_intercept_is_a_cluster_of_its_own(always_clusters):
    rng = np.random.default_rng(2)
    X, target = make(rng, 100, 8, "logistic")
    with_one = np.hstack([X, np.ones((100, 1))])
    A = sp.csr_array(sp.hstack([stack(chain(8), "identity"), sp.csr_array((15, 1))]))
    result = solve(Problem(with_one, target, psi=L1(0.02), A=A), "san-admm", tol=1e-8, passes=100)
    assert result.status is Status.SOLVED
    margins = with_one @ result.x
    slopes = -target / (1 + np.exp(target * margins))
    assert abs(slopes.mean()) < 1e-6


def test_clusters_are_equal_to_the_last_bit(always_clusters):
    rng = np.random.default_rng(5)
    X, target = make(rng, 300, 40, "squared")
    problem = Problem(X, target, loss="squared", psi=L1(0.2), A=stack(chain(40), "identity"))
    result = solve(problem, "san-admm", tol=1e-9, passes=100)
    labels, _ = clusters(problem.constraint.A, result.y == 0)
    for label in range(labels.max() + 1):
        assert np.unique(result.x[labels == label]).size == 1
    assert np.all(result.x[labels < 0] == 0.0)
    assert (labels < 0).any()


def test_many_features_without_an_l1_of_their_own():
    """A bare incidence matrix: more features than a dense Hessian could hold, one cluster at the start."""
    rng = np.random.default_rng(0)
    d = MAX_FEATURES + 1000
    truth = np.repeat([0.0, 1.0, -0.5], d // 3)
    X = sp.random_array((300, d), density=0.01, rng=rng, format="csr")
    target = X @ truth + 0.1 * rng.standard_normal(300)
    result = solve(Problem(X, target, loss="squared", psi=L1(0.05), A=chain(d)), "san-admm", tol=1e-6, passes=100)
    assert result.status is Status.SOLVED
    assert np.unique(result.x).size < 50


def test_a_warm_start_goes_on_from_where_it_was(always_clusters):
    rng = np.random.default_rng(7)
    X, target = make(rng, 200, 30, "logistic", sparse=True)
    A = stack(incidence([(i, i + 1) for i in range(29)], n_features=30), "identity")
    first = solve(Problem(X, target, psi=L1(0.02), A=A), "san-admm", tol=1e-8, passes=100)
    again = solve(Problem(X, target, psi=L1(0.019), A=A), "san-admm", tol=1e-8, passes=100, warm_start=first)
    cold = solve(Problem(X, target, psi=L1(0.019), A=A), "san-admm", tol=1e-8, passes=100)
    assert again.status is Status.SOLVED
    assert again.passes - first.passes < cold.passes
    assert again.objective == pytest.approx(cold.objective, rel=1e-8)


def engine_of(problem, config=None, tol=1e-9):
    setup = Setup(problem, 0.1, 1.0, 1, "none", tol=tol)
    return ReducedNewton.engine(setup, dual_update.start(problem, np.zeros(problem.n_features), None, None), config)


@pytest.mark.parametrize("sparse", [False, True])
def test_it_follows_a_path_of_strengths(sparse):
    """Each solution from the one before: the columns are shared, the objective is that of a solve from zero."""
    rng = np.random.default_rng(8)
    X, target = make(rng, 150, 40, "logistic", sparse=sparse)
    A = stack(chain(40), "identity")
    engine = engine_of(Problem(X, target, psi=L1(0.05), A=A))
    columns = engine.current.oracle.columns
    for strength in (0.05, 0.03, 0.02, 0.005):
        problem = Problem(X, target, psi=L1(strength), A=A)
        if strength < 0.05:
            engine.follow(problem)
        engine.advance(np.zeros(100, np.int64))
        engine.finish()
        assert engine.optimality()[1] <= 1e-9
        assert engine.current.oracle.columns is columns
        cold = solve(problem, "reduced-newton", tol=1e-9, passes=100)
        assert engine.current.objective == pytest.approx(cold.objective, rel=1e-8)


@pytest.mark.parametrize(
    "config",
    [
        ReducedNewtonConfig(first_opened=1, opened_share=0.0),
        ReducedNewtonConfig(settled_improvement=np.inf, sweeps_per_solve=1),
        ReducedNewtonConfig(model_rounds=1, model_sweeps=1),
        ReducedNewtonConfig(idle_factor=0.0, min_idle=0.0),
    ],
)
def test_the_settings_change_the_way_and_not_the_answer(config):
    rng = np.random.default_rng(9)
    X, target = make(rng, 120, 24, "logistic")
    problem = Problem(X, target, psi=L1(0.02), A=stack(grid((4, 6)), "identity"))
    usual, other = engine_of(problem), engine_of(problem, config)
    ways = []
    for engine in (usual, other):
        points = []
        while not engine.finished and len(points) < 400:
            engine.advance(np.zeros(1, np.int64))
            points.append(engine.point.x.copy())
        engine.finish()
        assert engine.optimality()[1] <= 1e-9
        ways.append(np.sum(points, axis=0))
    assert other.current.objective == pytest.approx(usual.current.objective, rel=1e-8)
    assert not np.array_equal(*ways)


@pytest.mark.parametrize(("most", "left"), [(100, 48), (10, 11)])
def test_few_features_leave_their_clusters_at_once(most, left):
    """One cluster, all of whose rows would open: those next to the features with the largest residual do."""
    rng = np.random.default_rng(12)
    X, target = make(rng, 60, 48, "squared")
    problem = Problem(X, target, "squared", psi=L1(0.1), A=grid((6, 8)))
    residual = np.where(np.arange(48) % 9 == 0, 2.0, 1.0) * rng.standard_normal(48)
    multiplier = -0.1 * np.sign(problem.constraint.A @ residual)
    config = ReducedNewtonConfig(max_clusters=most, cluster_growth=3.0)
    tied = np.ones(problem.n_constraints, bool)
    found = Opening(ShortRows(problem), np.ones(48), tied, multiplier, residual, config).by_feature()
    assert found.size <= left
    assert (found.size == 48) == (most == 100)
    apart = np.argsort(-np.abs(residual))[:most]
    assert np.unique(found.labels[apart]).size == apart.size
    assert np.unique(np.delete(found.labels, apart)).size <= max(0, 48 - most)


def test_it_applies_to_weighted_l1_of_narrow_rows_only():
    rng = np.random.default_rng(0)
    X, target = make(rng, 30, 6, "squared")

    def applies(**parts):
        return has_short_rows(Problem(X, target, loss="squared", **parts))

    assert applies(psi=L1(0.1), A=chain(6))
    assert applies(psi=L1(0.1), A=chain(6), omega=SquaredL2(1.0))
    assert not applies(psi=L1(0.1), A=chain(6), omega=L1(1.0))
    assert not applies(psi=SquaredL2(0.1), A=chain(6))
    assert not applies(psi=L1(0.1), A=np.array([[1.0, -2.0, 1.0, 0, 0, 0]]))
    assert not applies(psi=L1(0.1), A=chain(6), c=np.ones(5))

"""Exact proximal steps along paths, the engine that takes them, and how it gives way to Newton's."""

import functools

import numpy as np
import pytest
import reference
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import cvxpy_objective, make, watched_clusters
from runs import assert_same, killed_after

from skadmm import Problem, Status, solve
from skadmm.operators import chain, incidence, stack
from skadmm.regularizers import L1, SquaredL2, Stacked
from skadmm.solvers import dual_update, situation
from skadmm.solvers.base import Setup
from skadmm.solvers.second_order import chains, l1_rows
from skadmm.solvers.second_order.prox_gradient import ProxGradient, ProxGradientConfig


@pytest.fixture(autouse=True)
def no_coordinate_descent(monkeypatch):
    """Proximal steps wherever they apply: what comes instead of them has its own tests."""
    monkeypatch.setattr(situation, "CONFIG", situation.SelectionConfig(few_leaving=-1.0))


def penalised(A, strength):
    """A problem with this penalty; its data do not matter."""
    d = A.shape[1]
    return Problem(np.eye(d), np.ones(d), loss="squared", psi=strength, A=sp.csr_array(A))


def broken_paths(rng, d):
    """Differences along a few paths through the features in any order, each row of any size, its sign too."""
    order = rng.permutation(d)
    pairs = [(order[i], order[i + 1]) for i in range(d - 1) if rng.random() < 0.8]
    A = np.zeros((len(pairs), d))
    for e, (i, j) in enumerate(pairs):
        size = rng.uniform(0.3, 2.0) * rng.choice([-1, 1])
        A[e, i], A[e, j] = size, -size
    return A


# -- the proximal map ------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=150)
@given(
    seed=st.integers(0, 10**6), d=st.integers(1, 12), single=st.booleans(), t=st.sampled_from([1e-3, 0.3, 1.0, 20.0])
)
def test_the_step_is_the_minimiser_and_its_multipliers_prove_it(seed, d, single, t):
    rng = np.random.default_rng(seed)
    A = broken_paths(rng, d)
    strengths = rng.uniform(0.1, 1.0, A.shape[0])
    if single or not A.shape[0]:
        A, strengths = np.vstack([A, -0.5 * np.eye(d), 2 * np.eye(d)]), np.append(strengths, np.full(2 * d, 0.3))
    shuffled = rng.permutation(A.shape[0])
    A, strengths = A[shuffled], strengths[shuffled]
    paths = chains.penalty_along_chains(penalised(A, L1(1.0, weights=strengths)))
    v = rng.standard_normal(d) * rng.choice([0.1, 1.0, 10.0])
    v[rng.random(d) < 0.2] = 0.0
    x, beta = paths.prox(v, t)
    scale = np.abs(v).max(initial=1.0)
    assert np.allclose(v - x, t * (A.T @ beta), atol=1e-12 * scale)
    assert np.all(np.abs(beta) <= strengths * (1 + 1e-9) + 1e-12 * scale / t)
    y = paths.values(x)
    assert np.allclose(y, A @ x, rtol=1e-12, atol=1e-12 * scale)
    assert np.allclose(beta[y != 0], (strengths * np.sign(y))[y != 0], atol=1e-9 * max(1.0, scale / t))


@pytest.mark.parametrize("seed", range(5))
def test_the_step_is_that_of_the_dual_least_squares(seed):
    rng = np.random.default_rng(seed)
    A = np.vstack([broken_paths(rng, 9), np.eye(9)])
    strengths = rng.uniform(0.1, 1.0, A.shape[0])
    strengths[-9:] = 0.2
    v = 2 * rng.standard_normal(9)
    x, _ = chains.penalty_along_chains(penalised(A, L1(1.0, weights=strengths))).prox(v, 0.7)
    assert np.allclose(x, reference.penalty_prox(A, strengths)(v, 0.7), atol=1e-8)


def test_what_is_fused_or_zero_is_exactly_so():
    rng = np.random.default_rng(0)
    paths = chains.penalty_along_chains(penalised(stack(chain(200), "identity"), L1(1.0)))
    x, _ = paths.prox(np.repeat([0.0, 5.0, -3.0, 5.0], 50) + 0.3 * rng.standard_normal(200), 1.0)
    steps, sizes = np.abs(np.diff(x)), np.abs(x)
    assert 3 <= np.count_nonzero(steps) < 50
    assert 100 < np.count_nonzero(sizes) < 200
    assert np.all((steps == 0) | (steps > 1e-6))
    assert np.all((sizes == 0) | (sizes > 1e-6))


@pytest.mark.parametrize(
    "A",
    [
        incidence([(0, 1), (1, 2), (2, 0)], n_features=3),  # a cycle
        incidence([(0, 1), (0, 2), (0, 3)], n_features=4),  # three at one feature
        np.array([[1.0, -2.0, 0.0], [0.0, 1.0, -1.0]]),  # no difference
        np.array([[1.0, 1.0, 0.0], [0.0, 1.0, -1.0]]),  # a sum
        np.array([[1.0, -1.0, 0.0], [2.0, -2.0, 0.0], [0.0, 1.0, -1.0]]),  # two rows between the same features
        np.array([[1.0, -1.0, 0.0], [0.0, 1.0, -1.0], [0.0, 2.0, 0.0]]),  # an ℓ1 in the middle of a path only
    ],
)
def test_other_penalties_are_left_to_others(A):
    assert chains.penalty_along_chains(penalised(sp.csr_array(A), L1(0.1))) is None


# -- the engine ------------------------------------------------------------------------------------------------


def engine_of(problem, tol=1e-10):
    setup = Setup(problem, 1.0, 1.0, 1, tol=tol, omega_mode="system", rho_given=False)
    return ProxGradient.engine(setup, dual_update.start(problem, np.zeros(problem.n_features), None, None))


def configured(monkeypatch, **settings):
    """Proximal steps with these settings, also where selection starts them."""
    monkeypatch.setattr(ProxGradient, "Config", functools.partial(ProxGradientConfig, **settings))


@pytest.mark.parametrize("loss", ["squared", "logistic", "huber"])
@pytest.mark.parametrize("kind", ["identity", "chain", "both"])
@pytest.mark.parametrize(("sparse", "ridge"), [(False, 0.0), (True, 0.05)])
def test_it_takes_the_steps_of_its_twin(loss, kind, sparse, ridge):
    rng = np.random.default_rng(7)
    X, b = make(rng, 60, 8, loss, sparse=sparse)
    X = X * np.geomspace(0.5, 2.0, 8)
    weight = rng.uniform(0.5, 2.0, 60)
    A = {"identity": sp.eye_array(8), "chain": chain(8), "both": stack(chain(8), "identity")}[kind].toarray()
    omega = SquaredL2(ridge) if ridge else None
    problem = Problem(X, b, loss=loss, psi=L1(0.03), A=sp.csr_array(A), omega=omega, sample_weight=weight)
    engine = engine_of(problem)
    dense = X.toarray() if sparse else X
    model = reference.Model(dense, b, reference.LOSSES[loss], A, None, 1.0, 1.0, weight=weight, ridge=ridge)
    twin = reference.proximal_steps(model, np.full(A.shape[0], 0.03), 0.25 if loss == "logistic" else 1.0, np.zeros(8))
    for _ in range(12):
        engine.advance(np.zeros(1, np.int64))
        engine.current.stalled = engine.current.finished = False
        assert np.allclose(engine.point.x, next(twin), rtol=1e-5, atol=1e-7)


def watched_looks(problem, monkeypatch):
    """The points at which all samples are looked at, as they come."""
    points = []
    usual = type(problem.backend).evaluate
    monkeypatch.setattr(
        type(problem.backend), "evaluate", lambda backend, x: points.append(x.copy()) or usual(backend, x)
    )
    return points


def test_every_look_is_counted(monkeypatch):
    """Two at the beginning, one for each step and for each time a step was halved."""
    rng = np.random.default_rng(0)
    X, b = make(rng, 50, 6, "squared")
    problem = Problem(X, b, loss="squared", psi=L1(0.01), A="identity")
    oracle = watched_looks(problem, monkeypatch)
    engine = engine_of(problem)
    engine.current.length = 1.0
    engine.advance(np.zeros(4, np.int64))
    assert engine.point.clock[1] == 50 * (len(oracle) + 1)
    assert len(oracle) >= 5


def test_where_it_has_looked_nobody_looks_again(monkeypatch):
    """The first look is the record's, the last one the result's."""
    rng = np.random.default_rng(3)
    X, b = make(rng, 900, 160, "logistic")
    problem = Problem(X, b, psi=L1(0.02), A="identity")
    oracle = watched_looks(problem, monkeypatch)
    result = solve(problem, "san-admm", tol=1e-4, record_every=0)
    glance = 1.0  # a thousand samples at most, to choose units by
    assert result.passes == glance + len(oracle) + 1  # and half a look for the first length
    assert np.array_equal(oracle[-1], result.x)
    assert result.objective == pytest.approx(problem.objective(result.x), rel=1e-14)


CASES = {
    "lasso": {"A": "identity", "psi": L1(0.05)},
    "chain": {"A": chain(160), "psi": L1(0.05)},
    "weighted": {"A": "identity", "psi": L1(0.05, weights=np.linspace(0.5, 2.0, 160))},
    "fused": {"A": stack(chain(160), "identity"), "psi": Stacked(L1(0.05), L1(0.08), 159)},
    "ridge": {"A": chain(160), "psi": L1(0.05), "omega": SquaredL2(0.1)},
}


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("case", list(CASES))
def test_whole_runs_end_at_the_optimum(case, loss, monkeypatch):
    rng = np.random.default_rng(3)
    X, b = make(rng, 900, 160, loss)
    problem = Problem(X, b, loss=loss, **CASES[case])
    starts = watched_clusters(monkeypatch)
    result = solve(problem, "san-admm", tol=1e-7, passes=200)
    assert not starts, "proximal steps should have been enough"
    assert result.status is Status.SOLVED
    strengths = l1_rows.row_strengths(problem.psi, problem.n_split)
    rows = strengths[:, None] * problem.constraint.A.toarray()
    exact = cvxpy_objective(X, b, loss, rows, 0.1 if case == "ridge" else 0.0)
    assert abs(result.objective - exact) <= 1e-6 * abs(exact)
    assert result.feasibility == 0.0


def test_an_intercept_is_certified_too():
    rng = np.random.default_rng(5)
    X, b = make(rng, 1200, 160, "logistic")
    X = np.column_stack([X, np.ones(1200)])
    problem = Problem(X, b, psi=L1(0.02), A=sp.csr_array(sp.eye_array(161))[:160])
    result = solve(problem, "san-admm", tol=1e-6, passes=400)
    assert result.status is Status.SOLVED
    assert result.gap <= 1e-6
    exact = cvxpy_objective(X, b, "logistic", 0.02 * np.eye(161)[:160])
    assert abs(result.objective - exact) <= 1e-6 * exact


def test_one_step_denoises_a_signal():
    """X = I: f is a sphere, so the first step is the last."""
    rng = np.random.default_rng(0)
    signal = np.repeat([0.0, 3.0, -1.0, 2.0], 250) + 0.2 * rng.standard_normal(1000)
    problem = Problem(sp.eye_array(1000), signal, loss="squared", psi=L1(1e-3), A=chain(1000))
    result = solve(problem, "san-admm", tol=1e-8, passes=10)
    assert result.status is Status.SOLVED
    assert result.passes <= 4
    assert np.allclose(result.x, reference.penalty_prox(chain(1000).toarray(), np.ones(999))(signal, 1.0), atol=1e-6)


# -- giving way ------------------------------------------------------------------------------------------------


def ill_conditioned():
    rng = np.random.default_rng(1)
    X, b = make(rng, 600, 160, "squared")
    return Problem(X * np.geomspace(1e-3, 30.0, 160), b, loss="squared", psi=L1(0.05), A=chain(160))


def test_where_steps_are_slow_units_go_on(monkeypatch):
    starts = watched_clusters(monkeypatch)
    result = solve(ill_conditioned(), "san-admm", tol=1e-9, passes=100)
    assert len(starts) == 1
    assert result.status is Status.SOLVED
    assert result.passes < 40


def test_a_run_that_gives_way_resumes_to_the_same_bits(tmp_path, monkeypatch):
    run = {"problem": ill_conditioned(), "method": "san-admm", "tol": 1e-9, "passes": 100}
    whole = solve(**run)
    for stop in (1, 1, 2, 1):
        killed_after(monkeypatch, tmp_path / "run", stop, **run)
    assert_same(solve(checkpoint=tmp_path / "run", **run), whole)


def test_many_features_off_zero_are_not_handed_on(monkeypatch):
    """Units begin where the proximal steps began, when these have left too many features to be units."""
    configured(monkeypatch, max_nonzero=3)
    starts = watched_clusters(monkeypatch)
    problem = ill_conditioned()
    result = solve(problem, "san-admm", tol=1e-9, passes=100)
    assert len(starts) == 1
    assert not starts[0].any()
    assert result.status is Status.SOLVED


def test_a_warm_start_is_where_they_began():
    """… and where units go on from, not from zero, should the steps be slow."""
    problem = ill_conditioned()
    engine = engine_of(problem)
    before = solve(problem, "san-admm", tol=1e-3, passes=100)
    engine.restore(before.tables)
    assert engine.current.origin.any()
    assert np.array_equal(engine.current.origin, before.x)


def test_with_fewer_samples_than_features_units_begin(monkeypatch):
    starts = watched_clusters(monkeypatch)
    rng = np.random.default_rng(1)
    X, b = make(rng, 100, 160, "squared")
    assert solve(Problem(X, b, loss="squared", psi=L1(0.05), A=chain(160)), tol=1e-6).status is Status.SOLVED
    assert len(starts) == 1


def test_an_objective_that_cannot_fall_gives_way(monkeypatch):
    """Halving ends, the step is counted, and the run goes on."""
    rng = np.random.default_rng(1)
    X, b = make(rng, 900, 160, "logistic")
    problem = Problem(X, b, psi=L1(0.005), A="identity")
    configured(monkeypatch, sufficient_decrease=1e30)
    starts = watched_clusters(monkeypatch)
    result = solve(problem, "san-admm", tol=1e-8, passes=200)
    assert len(starts) == 1
    assert result.status is Status.SOLVED
    assert result.passes >= ProxGradientConfig().max_halvings


def test_alone_it_goes_on_where_it_would_give_way():
    rng = np.random.default_rng(1)
    X, b = make(rng, 300, 30, "squared")
    problem = Problem(X * np.geomspace(0.1, 3.0, 30), b, loss="squared", psi=L1(0.05), A="identity")
    engine = engine_of(problem, tol=1e-8)
    engine.advance(np.zeros(500, np.int64))
    assert engine.slow, "it should give way here, or the test shows nothing"
    result = solve(problem, "proximal-gradient", tol=1e-8, passes=5000)
    assert result.status is Status.SOLVED
    assert result.gap <= 1e-8
    exact = solve(problem, "proximal-gradient", passes=20_000)
    assert exact.status is Status.STALLED
    assert exact.gap <= 1e-11


def test_newton_still_chooses_by_size():
    assert situation.CONFIG.some_features <= 160, "the problems above are meant to be large enough for units"

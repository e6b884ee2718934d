"""Stretches of a path in compiled code: the same solutions as separate solves, and bounds that hold."""

import numpy as np
import pytest
import scipy.sparse as sp

from skadmm import Problem, alpha_max, path, solve
from skadmm.problem.certificate import Certifier
from skadmm.regularizers import L1, ElasticNet, GroupL2, GroupLInf, NonNegative, SquaredL2
from skadmm.run import follow
from skadmm.solvers.second_order.base import SolverEngine
from skadmm.solvers.second_order.block_descent import BlockDescent
from skadmm.solvers.second_order.block_sweeps import products_of_steps, shortest_combination
from skadmm.solvers.second_order.blocks import block_penalty

GROUPS = np.repeat(np.arange(8), 5)
PENALTIES = {
    "l1": lambda: L1(1.0),
    "weighted": lambda: L1(1.0, np.linspace(0.5, 2.0, 40)),
    "groups": lambda: GroupL2(1.0, GROUPS),
    "linf": lambda: GroupLInf(1.0, GROUPS),
}


def table(n, *, sparse=False, offset=0.0, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 40)) + offset
    if sparse:
        X = sp.csr_array(X * (rng.random((n, 40)) < 0.3))
    return X, np.asarray(X @ np.r_[np.ones(6), np.zeros(34)]).ravel() + rng.standard_normal(n)


def with_intercept(X, target, psi, **options):
    ones = np.ones((X.shape[0], 1))
    wide = sp.csr_array(sp.hstack([X, ones])) if sp.issparse(X) else np.hstack([X, ones])
    A = sp.csr_array(np.eye(40, 41))
    return Problem(wide, target, loss="squared", psi=psi, A=A, **options)


def stretches_of(monkeypatch):
    """How many strengths each call of follow_many has solved."""
    solved, original = [], SolverEngine.follow_many

    def counted(self, strengths, accuracy):
        stretch = original(self, strengths, accuracy)
        solved.append(0 if stretch is None else stretch.losses.size)
        return stretch

    monkeypatch.setattr(SolverEngine, "follow_many", counted)
    return solved


def at(problem, strength):
    return problem.replace(psi=problem.psi._replace(strength=strength))


def checked_gap(problem, x):
    """The relative gap at x by the general certificate, which knows nothing of Gram matrices."""
    penalty, shares = block_penalty(problem)
    certifier = Certifier(problem)
    evaluation = problem.backend.evaluate(np.ascontiguousarray(x))
    slopes, gradient = evaluation.slopes, evaluation.gradient
    if certifier.free.size:
        slopes, gradient, _ = certifier.orthogonal_slopes(slopes, evaluation.margins)
    multiplier = shares.of(-gradient, x, penalty.l1)
    return certifier.certify(evaluation.loss + problem.penalty(x), slopes, gradient, multiplier).relative


@pytest.mark.parametrize("n", [25, 120], ids=["wide", "tall"])
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("intercept", [False, True], ids=["plain", "intercept"])
@pytest.mark.parametrize("penalty", PENALTIES)
def test_every_strength_is_certified_and_equal_to_a_solve_of_its_own(monkeypatch, penalty, intercept, sparse, n):
    solved = stretches_of(monkeypatch)
    X, target = table(n, sparse=sparse)
    weight = np.random.default_rng(1).uniform(0.5, 2.0, n)
    make = (
        with_intercept
        if intercept
        else lambda *data, **options: Problem(*data[:2], loss="squared", psi=data[2], **options)
    )
    problem = make(X, target, PENALTIES[penalty](), sample_weight=weight)
    found = path(problem, n_alphas=12, eps=0.02, tol=1e-8, early_stop=False)
    assert sum(solved) == 12  # none of them needed the general way
    for strength, x, gap, loss in zip(found.alphas, found.x, found.gaps, found.losses, strict=True):
        one = at(problem, strength)
        assert checked_gap(one, x) <= 1.01e-8
        assert gap <= 1e-8
        assert loss == pytest.approx(one.loss_value(x), rel=1e-9)
        best = solve(one, tol=1e-10, record_every=0)
        assert loss + one.penalty(x) <= best.objective * (1 + 1.1e-8)


@pytest.mark.parametrize("n", [25, 120], ids=["wide", "tall"])
def test_squared_terms_and_columns_far_from_zero(monkeypatch, n):
    solved = stretches_of(monkeypatch)
    X, target = table(n, offset=1e3)
    omega = SquaredL2(0.1, np.append(np.ones(40), 0.0))
    problem = with_intercept(X, target, L1(1.0), omega=omega)
    found = path(problem, n_alphas=8, eps=0.05, tol=1e-7, early_stop=False)
    assert sum(solved) == 8
    for strength, x in zip(found.alphas, found.x, strict=True):
        best = solve(at(problem, strength), tol=1e-9, record_every=0)
        assert at(problem, strength).objective(x) <= best.objective * (1 + 1.1e-7)


@pytest.mark.parametrize("n", [25, 120], ids=["wide", "tall"])
def test_rough_paths_state_the_gap_they_have(monkeypatch, n):
    solved = stretches_of(monkeypatch)
    X, target = table(n)
    problem = with_intercept(X, target, L1(1.0))
    found = path(problem, n_alphas=15, eps=0.01, tol=1e-6, certify=False, early_stop=False)
    assert sum(solved) == 15
    null = problem.loss_at_zero
    for strength, x, gap in zip(found.alphas, found.x, found.gaps, strict=True):
        one = at(problem, strength)
        true = checked_gap(one, x)
        assert true <= gap * 1.001 + 1e-9
        of_null = null / one.objective(x)
        assert gap <= max(min(1e-3, 1e-4 * of_null), 3e-5 * of_null) * (1 + 1e-9)


@pytest.mark.parametrize("psi", [ElasticNet(1.0, 0.5), NonNegative()], ids=["elastic net", "bounds"])
def test_other_penalties_are_left_to_the_general_way(psi):
    X, target = table(50)
    problem = Problem(X, target, loss="squared", psi=psi)
    engine = BlockDescent.engine(follow._setup(problem, 1e-6), start(problem))
    assert engine.follow_many(np.array([0.5, 0.25]), follow.Goal(1e-6, 100).accuracy(problem)) is None


def test_other_losses_are_left_to_the_general_way():
    X, target = table(50)
    problem = Problem(X, np.sign(target), loss="logistic", psi=L1(1.0))
    engine = BlockDescent.engine(follow._setup(problem, 1e-6), start(problem))
    assert engine.follow_many(np.array([0.5, 0.25]), follow.Goal(1e-6, 100).accuracy(problem)) is None


def start(problem):
    from skadmm.solvers import dual_update

    return dual_update.start(problem, np.zeros(problem.n_features), None, None)


def test_zero_blocks_leave_the_working_set():
    X, target = table(30, seed=3)
    problem = Problem(X, target, loss="squared", psi=L1(1.0))
    top = alpha_max(problem)
    engine = BlockDescent.engine(follow._setup(problem, 1e-6), start(at(problem, 0.1 * top)))
    solver, state = engine.solver, engine.current
    state.working.grow(solver, np.arange(40))
    before = state.working.G[:40, :40].copy()
    kept = np.arange(40) % 3 == 0
    state.working.keep(solver, kept)
    np.testing.assert_array_equal(state.working.features, np.arange(0, 40, 3))
    size = state.working.size
    np.testing.assert_array_equal(state.working.G[:size, :size], before[np.ix_(kept, kept)])
    np.testing.assert_array_equal(state.working.columns(solver), X[:, kept])
    state.working.grow(solver, np.array([1, 2]))
    order = state.working.features
    np.testing.assert_allclose(state.working.G[: size + 2, : size + 2], before[np.ix_(order, order)], rtol=1e-12)


def test_extrapolation_is_the_least_squares_combination():
    points = np.random.default_rng(0).standard_normal((5, 9))
    weights, system = np.empty(4), np.empty((4, 4))
    products_of_steps(points, system)
    assert shortest_combination(system, weights)
    steps = np.diff(points, axis=0)
    inverse = np.linalg.solve(steps @ steps.T, np.ones(4))
    np.testing.assert_allclose(weights, inverse / inverse.sum(), rtol=1e-6)
    products_of_steps(np.zeros((5, 9)), system)
    assert not shortest_combination(system, weights)

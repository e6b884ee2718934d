"""Newton ADMM on growing sets of features: the same optimum, certified for all features."""

import cvxpy as cp
import numpy as np
import pytest
from problems import make
from runs import assert_same, killed_after

from skadmm import Problem, Status, solve
from skadmm.operators import chain, stack, trend
from skadmm.regularizers import L1, SquaredL2
from skadmm.solvers import dual_update
from skadmm.solvers.base import Setup
from skadmm.solvers.second_order.working_set import WorkingSet, WorkingSetConfig

D = 40
OPTIONS = {"first_set": 4}
"""Sets that are small enough for the problems here."""
SMALL = WorkingSetConfig(**OPTIONS)


def problem_of(loss="squared", strength=0.05, *, n=60, sparse=False, order=1):
    X, target = make(np.random.default_rng(4), n, D, loss, sparse=sparse)
    return Problem(X, target, loss=loss, psi=L1(strength), A=stack(trend(D, order), "identity"))


def engine_of(problem, config=SMALL, tol=1e-6):
    setup = Setup(problem, 0.1, 1.0, 1, "none", tol=tol, rho_given=False)
    return WorkingSet.engine(setup, dual_update.start(problem, np.zeros(D), None, None), config)


def optimum(problem):
    X, target = np.asarray(problem.subset(np.arange(problem.n_samples)).rows.values), problem.local.target
    x = cp.Variable(D)
    margin = X @ x
    losses = {"squared": 0.5 * cp.square(margin - target), "logistic": cp.logistic(-cp.multiply(target, margin))}
    value = cp.sum(losses["squared" if problem.loss.curvature_bound == 1.0 else "logistic"]) / problem.n_samples
    value += problem.psi.strength * cp.norm1(problem.constraint.A @ x)
    return cp.Problem(cp.Minimize(value)).solve(
        solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10
    )


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("strength", [0.1, 0.03])
@pytest.mark.parametrize("order", [1, 2])
def test_the_certified_point_is_the_optimum(loss, strength, order):
    """As CVXPY finds it; the bounds enclose it."""
    problem = problem_of(loss, strength, order=order)
    engine = engine_of(problem)
    engine.advance(np.zeros(200, np.int64))
    engine.finish()
    best = optimum(problem)
    assert engine.optimality()[1] <= 1e-6
    assert engine.current.lower_bound <= best + 1e-8 * abs(best)
    assert problem.objective(engine.point.x) - best <= 1e-6 * abs(best)
    assert engine.certificate.primal == pytest.approx(problem.objective(engine.point.x), rel=1e-12)


@pytest.mark.parametrize("sparse", [False, True])
def test_small_sets_and_one_large_set_agree(sparse):
    problem = problem_of("logistic", sparse=sparse)
    small, large = engine_of(problem), engine_of(problem, WorkingSetConfig())
    for engine in (small, large):
        engine.advance(np.zeros(100, np.int64))
        engine.finish()
        assert engine.optimality()[1] <= 1e-6
    assert small.current.objective == pytest.approx(large.current.objective, rel=2e-6)
    assert 0 < small.current.features.size < D


def test_a_warm_start_begins_on_the_support():
    problem = problem_of()
    first = solve(problem, "working-set", tol=1e-8, passes=300, options=OPTIONS)
    assert first.status is Status.SOLVED
    again = solve(problem, "working-set", tol=1e-8, passes=300, options=OPTIONS, warm_start=first)
    assert again.status is Status.SOLVED
    assert again.passes - first.passes < first.passes
    assert again.objective == pytest.approx(first.objective, rel=1e-8)


def test_it_follows_a_path_of_strengths():
    engine = engine_of(problem_of(strength=0.2))
    columns = engine.solver.data
    for strength in (0.2, 0.1, 0.05):
        problem = problem_of(strength=strength)
        if strength < 0.2:
            engine.follow(problem)
        engine.advance(np.zeros(100, np.int64))
        engine.finish()
        assert engine.optimality()[1] <= 1e-6
        assert engine.solver.data is columns
        cold = solve(problem, "newton-admm", tol=1e-8)
        assert engine.current.objective == pytest.approx(cold.objective, rel=2e-6)


def test_a_killed_run_resumes_to_the_same_bits(tmp_path, monkeypatch):
    run = {"problem": problem_of("logistic"), "method": "working-set", "tol": 1e-8, "passes": 300, "options": OPTIONS}
    whole = solve(**run)
    for stop in (1, 1, 2):
        killed_after(monkeypatch, tmp_path / "run", stop, **run)
    assert_same(solve(checkpoint=tmp_path / "run", **run), whole)


def test_it_applies_where_every_feature_has_an_l1_term():
    X, target = make(np.random.default_rng(0), 30, 6, "squared")

    def reason(**parts):
        return WorkingSet.applies(Problem(X, target, loss="squared", **parts))

    both = stack(trend(6, 1), "identity")
    assert reason(psi=L1(0.1), A=both) is None
    for parts in (
        {"psi": L1(0.1), "A": chain(6)},
        {"psi": L1(0.1), "A": both, "omega": SquaredL2(1.0)},
        {"psi": SquaredL2(0.1), "A": both},
        {"psi": L1(0.1), "A": both, "c": np.ones(10)},
    ):
        assert "row of A for every feature" in reason(**parts)

"""Coordinate descent where no features are tied: its steps, whole runs, what it counts, and how it gives way."""

import functools

import numpy as np
import pytest
import reference
import scipy.sparse as sp
from problems import cvxpy_objective, make, watched_clusters
from reference_coordinates import coordinate_steps
from runs import assert_same, killed_after

from skadmm import Problem, Status, solve
from skadmm.operators import chain
from skadmm.regularizers import L1, SquaredL2
from skadmm.solvers import dual_update, last_resorts, select, situation
from skadmm.solvers.base import Setup
from skadmm.solvers.second_order import coordinate_descent, l1_rows
from skadmm.solvers.second_order.base import Entry, SolverEngine
from skadmm.solvers.second_order.coordinate_descent import CoordinateDescent, CoordinateDescentConfig
from skadmm.solvers.second_order.multipliers import Multipliers, MultipliersConfig


def engine_of(problem, tol=1e-10, **settings):
    setup = Setup(problem, 1.0, 1.0, 1, tol=tol, omega_mode="system", rho_given=False)
    point = dual_update.start(problem, np.zeros(problem.n_features), None, None)
    return CoordinateDescent.engine(setup, point, CoordinateDescentConfig(**settings))


def configured(monkeypatch, **settings):
    """Coordinate descent with these settings, also where selection starts it."""
    monkeypatch.setattr(CoordinateDescent, "Config", functools.partial(CoordinateDescentConfig, **settings))


PATIENT = {"max_sweeps": 10_000, "max_passes": 10_000.0}
"""Sweeps as long as they make progress."""


def wide(rng, loss, *, sparse=False):
    X, b = make(rng, 40, 60, loss, sparse=sparse)
    return X * np.geomspace(0.5, 2.0, 60), b


STEEPEST = {"squared": 1.0, "logistic": 0.25, "huber": 1.0, "squared-hinge": 1.0}


@pytest.mark.parametrize("loss", list(STEEPEST))
@pytest.mark.parametrize(("sparse", "ridge"), [(False, 0.0), (True, 0.05)])
def test_it_takes_the_steps_of_its_twin(loss, sparse, ridge):
    rng = np.random.default_rng(7)
    X, b = wide(rng, loss, sparse=sparse)
    if sparse:
        X = sp.csr_array(X)
    weight = rng.uniform(0.5, 2.0, 40)
    strengths = rng.uniform(0.02, 0.05, 60)
    scale = rng.uniform(0.5, 2.0, 60) * rng.choice([-1, 1], 60)
    omega = SquaredL2(ridge) if ridge else None
    A = sp.csr_array(sp.diags_array(scale))
    problem = Problem(X, b, loss=loss, psi=L1(1.0, weights=strengths), A=A, omega=omega, sample_weight=weight)
    engine = engine_of(problem, tol=None, first_selected=6, **PATIENT)
    model = reference.Model(
        X.toarray() if sparse else X, b, reference.LOSSES[loss], A.toarray(), None, 1.0, 1.0, weight=weight, ridge=ridge
    )
    twin = coordinate_steps(model, strengths * np.abs(scale), STEEPEST[loss], np.zeros(60), few=6)
    sizes = []
    for _ in range(7):
        engine.advance(np.zeros(1, np.int64))
        expected = next(twin)
        assert np.allclose(engine.point.x, expected, rtol=1e-8, atol=1e-10)
        assert np.array_equal(engine.point.x == 0, expected == 0)
        sizes.append(np.count_nonzero(expected))
        assert not engine.slow
    assert sizes[0] <= 6 < sizes[-1] < 60, "the chosen features should have grown in number"


CASES = {
    "lasso": {"psi": L1(0.05), "A": "identity"},
    "weighted": {"psi": L1(0.05, weights=np.linspace(0.5, 2.0, 200)), "A": "identity"},
    "ridge": {"psi": L1(0.05), "A": "identity", "omega": SquaredL2(0.1)},
    "twice": {"psi": L1(0.03), "A": sp.csr_array(sp.vstack([sp.eye_array(200), -0.5 * sp.eye_array(200)]))},
    "intercept": {"psi": L1(0.05), "A": sp.csr_array(sp.eye_array(200))[:199]},
}


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("case", list(CASES))
def test_whole_runs_end_at_the_optimum(case, loss, sparse, monkeypatch):
    configured(monkeypatch, **PATIENT)
    rng = np.random.default_rng(3)
    X, b = make(rng, 120, 200, loss)
    X[:, 7] = 0.0
    X[:, -1] = 1.0
    starts = watched_clusters(monkeypatch)
    problem = Problem(sp.csr_array(X) if sparse else X, b, loss=loss, **CASES[case])
    result = solve(problem, "san-admm", tol=1e-7, passes=4000)
    assert not starts, "coordinate descent should have been enough"
    assert result.status is Status.SOLVED
    assert result.gap <= 1e-7
    strengths = l1_rows.row_strengths(problem.psi, problem.n_split)
    rows = strengths[:, None] * problem.constraint.A.toarray()
    exact = cvxpy_objective(X, b, loss, rows, 0.1 if case == "ridge" else 0.0)
    assert abs(result.objective - exact) <= 1e-6 * abs(exact)
    assert result.feasibility == 0.0
    assert result.objective == pytest.approx(problem.objective(result.x), rel=1e-13)
    assert result.x[7] == 0.0


def test_a_start_that_no_sample_holds_goes_to_zero():
    """A feature of zeros only has no curvature of its own, but an ℓ1 that pulls."""
    rng = np.random.default_rng(0)
    X, b = make(rng, 100, 160, "squared")
    X[:, 3] = 0.0
    problem = Problem(X, b, loss="squared", psi=L1(0.05), A="identity")
    x0 = np.zeros(160)
    x0[3] = 5.0
    result = solve(problem, "san-admm", tol=1e-8, x0=x0)
    assert result.status is Status.SOLVED
    assert result.x[3] == 0.0


def test_a_warm_start_needs_few_passes():
    rng = np.random.default_rng(0)
    X, b = make(rng, 100, 160, "logistic")
    first = solve(Problem(X, b, psi=L1(0.021), A="identity"), "san-admm", tol=1e-8)
    problem = Problem(X, b, psi=L1(0.02), A="identity")
    cold = solve(problem, "san-admm", tol=1e-8)
    warm = solve(problem, "san-admm", tol=1e-8, warm_start=first)
    assert warm.status is cold.status is Status.SOLVED
    assert warm.objective == pytest.approx(cold.objective, rel=1e-8)
    assert warm.passes - first.passes < cold.passes


def test_every_entry_read_is_counted(monkeypatch):
    """One look at the beginning and one a step; of each model the sweeps, the curvatures, the move and the gradient."""
    rng = np.random.default_rng(0)
    X, b = make(rng, 50, 80, "logistic", sparse=True)
    engine = engine_of(Problem(X, b, psi=L1(0.02), A="identity"))
    read, usual = [], coordinate_descent.descend

    def watched(columns, *rest):
        sweeps, arrived = usual(columns, *rest)
        read.append(round(50 * (sweeps + 3.0) * columns.data.size / X.nnz))
        return sweeps, arrived

    monkeypatch.setattr(coordinate_descent, "descend", watched)
    engine.advance(np.zeros(2, np.int64))
    assert len(read) >= 2
    assert engine.point.clock[1] == 3 * 50 + sum(read)


def test_a_long_descent_can_be_stopped(monkeypatch):
    """Between some sweeps and the next; what it had before is what the run returns."""
    rng = np.random.default_rng(0)
    X, b = make(rng, 100, 160, "squared")
    problem = Problem(X, b, loss="squared", psi=L1(0.01), A="identity")
    configured(monkeypatch, entries_per_chunk=1)
    usual, calls = coordinate_descent.descend, []

    def watched(*arguments):
        calls.append(arguments[-1])
        if len(calls) == 3:
            raise KeyboardInterrupt
        return usual(*arguments)

    monkeypatch.setattr(coordinate_descent, "descend", watched)
    result = solve(problem, "san-admm", tol=1e-8)
    assert calls == [1.0] * 3, "one sweep at a time"
    assert result.status is Status.INTERRUPTED
    assert np.isfinite(result.objective)
    assert result.feasibility == 0.0


def test_each_kind_of_problem_gets_its_method(monkeypatch):
    monkeypatch.setattr(situation, "CONFIG", situation.SelectionConfig(many_features=1))
    rng = np.random.default_rng(1)

    def first(n, d, strength, A="identity", *, sparse=False):
        X, b = make(rng, n, d, "squared", sparse=sparse)
        problem = Problem(X, b, loss="squared", psi=L1(strength), A=chain(d) if A == "chain" else A)
        setup = Setup(problem, 1.0, 1.0, 1, tol=1e-6, omega_mode="system", rho_given=False)
        solvers, _ = select.solvers_for(setup, dual_update.start(problem, np.zeros(d), None, None))
        rescuers = ["newton-admm", "multipliers", "tied-set", "conic", "multipliers"]
        assert [solver.name for solver in last_resorts.rescuers(setup, solvers)] == rescuers
        assert solvers[-1].name == "reduced-newton"
        return [solver.name for solver in solvers][:-1]

    assert first(50, 80, 0.01) == ["coordinate-descent"]
    assert first(50, 80, 0.01, sparse=True) == ["coordinate-descent"]
    assert first(300, 80, 0.001, sparse=True) == ["coordinate-descent"]
    assert first(300, 80, 2.0) == ["block-descent"], "few features leave zero"
    assert first(300, 80, 0.001) == ["proximal-gradient"]
    assert first(300, 80, 2.0, "chain") == ["proximal-gradient"]
    assert first(50, 80, 2.0, "chain") == []


def sweeps_first(monkeypatch):
    """Coordinate descent comes first under the squared loss too, whatever the strength."""
    monkeypatch.setattr(situation, "CONFIG", situation.SelectionConfig(sparse_share=np.inf, weak_share=0.0))


# -- giving way ------------------------------------------------------------------------------------------------


def much_alike():
    """Columns that hardly differ: a sweep gets nowhere."""
    rng = np.random.default_rng(1)
    X = np.cumsum(rng.standard_normal((150, 200)), axis=1) + 20.0 * rng.standard_normal((150, 1))
    b = X @ np.repeat([0.0, 1.0, 0.0, -1.0], 50) + rng.standard_normal(150)
    return Problem(X, b, loss="squared", psi=L1(0.01), A="identity")


def test_where_sweeps_are_many_units_go_on(monkeypatch):
    starts = watched_clusters(monkeypatch)
    sweeps_first(monkeypatch)
    result = solve(much_alike(), "san-admm", tol=1e-8, passes=300)
    assert len(starts) == 1
    assert starts[0].any(), "units go on from where coordinate descent has come to"
    assert result.status is Status.SOLVED


def test_a_run_that_gives_way_resumes_to_the_same_bits(tmp_path, monkeypatch):
    configured(monkeypatch, max_sweeps=12, max_passes=1000.0)
    rng = np.random.default_rng(3)
    X, b = make(rng, 120, 200, "logistic")
    problem = Problem(X, b, psi=L1(0.01), A="identity")
    starts = watched_clusters(monkeypatch)
    run = {"problem": problem, "method": "san-admm", "tol": 1e-9, "passes": 400}
    whole = solve(**run)
    assert len(starts) == 1
    for stop in (1, 1, 2, 1):
        with pytest.MonkeyPatch.context() as other:  # which is undone
            killed_after(other, tmp_path / "run", stop, **run)
    assert_same(solve(checkpoint=tmp_path / "run", **run), whole)


def test_many_features_may_take_many_sweeps(monkeypatch):
    """An exact solve would take longer still."""
    sweeps_first(monkeypatch)
    rng = np.random.default_rng(5)
    X, b = make(rng, 200, 300, "squared", sparse=True)
    problem = Problem(X, b, loss="squared", psi=L1(0.05), A="identity")
    configured(monkeypatch, max_sweeps=2)
    starts = watched_clusters(monkeypatch)
    solve(problem, "san-admm", tol=1e-6, passes=2000)
    assert starts
    starts.clear()
    configured(monkeypatch, max_sweeps=2, solve_cost=1e-3)
    assert solve(problem, "san-admm", tol=1e-6, passes=2000).status is Status.SOLVED
    assert not starts


@pytest.mark.parametrize("sweeps", [False, True], ids=["block descent", "coordinate descent"])
def test_without_a_tolerance_it_ends_where_rounding_does(sweeps, monkeypatch):
    if sweeps:
        sweeps_first(monkeypatch)
    rng = np.random.default_rng(5)
    X, b = make(rng, 100, 160, "squared")
    problem = Problem(X, b, loss="squared", psi=L1(0.05 if sweeps else 2.0), A="identity")
    result = solve(problem, "san-admm", passes=500)
    assert result.solver.startswith("coordinate-descent" if sweeps else "block-descent")
    assert result.gap <= 1e-11
    assert result.passes < 400


def test_an_objective_that_cannot_fall_gives_way(monkeypatch):
    sweeps_first(monkeypatch)
    rng = np.random.default_rng(1)
    X, b = make(rng, 100, 160, "squared")
    problem = Problem(X, b, loss="squared", psi=L1(0.05), A="identity")
    monkeypatch.setattr(coordinate_descent, "shorten", lambda merit, start, expected: 0.0)
    starts = watched_clusters(monkeypatch)
    result = solve(problem, "san-admm", tol=1e-8, passes=200)
    assert len(starts) == 1
    assert not starts[0].any()
    assert result.status is Status.SOLVED


def test_where_nothing_pulls_the_start_is_the_answer():
    rng = np.random.default_rng(1)
    X, b = make(rng, 100, 160, "squared")
    for tol in (None, 1e-9):
        result = solve(Problem(X, b, loss="squared", psi=L1(1e3), A="identity"), "san-admm", tol=tol, passes=50)
        assert not result.x.any()
        assert result.gap <= 1e-12
        assert result.passes < 20


# -- alone and along a path ------------------------------------------------------------------------------------


def test_alone_it_goes_on_where_it_would_give_way():
    rng = np.random.default_rng(0)
    X, b = make(rng, 240, 24, "logistic")
    problem = Problem(X, b, psi=L1(0.02), A="identity")
    engine = engine_of(problem, tol=1e-8)
    engine.advance(np.zeros(100, np.int64))
    assert engine.slow, "it should give way here, or the test shows nothing"
    assert engine.optimality()[1] > 1e-8
    result = solve(problem, "coordinate-descent", tol=1e-8)
    assert result.status is Status.SOLVED
    assert result.solver == "coordinate-descent"
    assert result.gap <= 1e-8


def test_alone_it_ends_where_rounding_does():
    rng = np.random.default_rng(5)
    X, b = make(rng, 100, 40, "squared")
    result = solve(Problem(X, b, loss="squared", psi=L1(0.05), A="identity"), "coordinate-descent", passes=5000)
    assert result.status is Status.STALLED
    assert "no step improves the objective any more, at a relative duality gap of" in result.message
    assert result.gap <= 1e-13


@pytest.mark.parametrize("number", range(2, 6))
def test_a_step_that_was_cut_short_is_not_taken_for_an_evaluation(number, monkeypatch):
    """Margins and slopes have moved on by then; x is that of the last whole step."""
    rng = np.random.default_rng(0)
    X, b = make(rng, 100, 160, "logistic")
    problem = Problem(X, b, psi=L1(0.005), A="identity")
    usual, calls = coordinate_descent.descend, []

    def watched(*arguments):
        calls.append(arguments[-1])
        if len(calls) == number:
            raise KeyboardInterrupt
        return usual(*arguments)

    monkeypatch.setattr(coordinate_descent, "descend", watched)
    result = solve(problem, "coordinate-descent", tol=1e-12, record_every=0)
    assert result.status is Status.INTERRUPTED
    assert result.objective == pytest.approx(problem.objective(result.x), rel=1e-13)


@pytest.mark.parametrize("sparse", [False, True])
def test_it_follows_the_strength_without_a_new_evaluation(sparse):
    rng = np.random.default_rng(0)
    X, b = make(rng, 100, 160, "logistic", sparse=sparse)
    engine = engine_of(Problem(X, b, psi=L1(0.03), A="identity"), tol=1e-9, gives_way=False)
    for strength in (0.03, 0.025, 0.02):
        problem = Problem(X, b, psi=L1(strength), A="identity")
        touched = int(engine.point.clock[1])
        if strength < 0.03:
            engine.follow(problem)
            engine.advance(np.zeros(0, np.int64))
            assert engine.point.clock[1] == touched
            assert engine.evaluated_at(engine.point.x) is not None
        while not engine.finished:
            engine.advance(np.zeros(1, np.int64))
        engine.finish()
        cold = solve(problem, "coordinate-descent", tol=1e-9)
        assert engine.optimality()[1] <= 1e-9
        assert engine.current.objective == pytest.approx(cold.objective, rel=1e-8)
        if strength < 0.03:
            assert int(engine.point.clock[1]) - touched < cold.passes * 100


def test_one_solver_after_another_follows_the_strength():
    """The path goes on with the first solver, whichever is running."""
    X, b = make(np.random.default_rng(0), 240, 24, "logistic")
    problem = Problem(X, b, psi=L1(0.02), A="identity")
    setup = Setup(problem, 1.0, 1.0, 1, tol=1e-8, omega_mode="none", rho_given=False)
    point = dual_update.start(problem, np.zeros(24), None, None)
    then = [Entry(Multipliers, MultipliersConfig(max_idle=50))]
    solver = CoordinateDescent(setup)
    engine = SolverEngine(solver, solver.init(point, setup.rho), then)
    for strength in (0.02, 0.015):
        other = problem.replace(psi=L1(strength))
        if strength < 0.02:
            engine.follow(other)
        while not engine.finished:
            engine.advance(np.zeros(1, np.int64))
        engine.finish()
        assert engine.solver_name == "coordinate-descent, then multipliers"
        expected = solve(other, "coordinate-descent", tol=1e-10)
        assert other.objective(engine.point.x) == pytest.approx(expected.objective, rel=1e-7)

"""SAN-ADMM: what it reduces to, what it promises, and that it never runs away."""

import copy
import itertools
import lzma
import os
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
from sklearn.datasets import load_svmlight_file, load_wine

from skadmm import Problem, Status, solve
from skadmm.losses.logistic import SATURATED
from skadmm.operators import chain, incidence, precision_graph, stack
from skadmm.oracle import LARGE_SHIFT_SHARE, batches
from skadmm.oracle.large_shifts import large_shift_samples
from skadmm.oracle.local import LocalOracle
from skadmm.problem import existence
from skadmm.regularizers import L1, Box, ElasticNet, GroupL2, NonNegative, SquaredL2
from skadmm.solvers import ALGORITHMS, dual_update
from skadmm.solvers.base import Setup
from skadmm.solvers.second_order.line_search import shorten
from skadmm.solvers.second_order.newton_admm import NewtonADMM, NewtonADMMConfig

LOSSES = ["logistic", "squared", "huber", "squared-hinge"]


def data(loss, n=120, d=8, seed=0, scale=1.0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * scale
    margin = X @ np.repeat([1.0, -0.5], d // 2) + 0.5 * rng.standard_normal(n)
    return X, np.sign(margin) if loss in ("logistic", "squared-hinge") else margin


def fused(loss="logistic", strength=0.02, ridge=None, **kwargs):
    X, target = data(loss, **kwargs)
    d = X.shape[1]
    omega = None if ridge is None else SquaredL2(ridge)
    return Problem(X, target, loss=loss, omega=omega, psi=L1(strength), A=stack(chain(d), "identity"))


def engine_of(problem, config=None, **options):
    options = {"rho_given": True, "warm": True} | options
    setup = Setup(problem, 0.1, 1.0, 1, "none", **options)
    start = dual_update.start(problem, np.zeros(problem.n_features), None, None)
    return NewtonADMM.engine(setup, start, config)


# -- what it reduces to ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", LOSSES)
def test_without_psi_a_step_is_newtons(loss):
    X, target = data(loss)
    problem = Problem(X, target, loss=loss)
    engine = engine_of(problem, NewtonADMMConfig(revisit_large_shifts=False))
    x = np.zeros(8)
    for _ in range(3):
        engine.advance(np.zeros(1, int))
        state = engine.current
        x_before, kept = state.anchor, state.oracle.scalars
        z = X @ x_before
        np.testing.assert_allclose(kept.z, z, atol=1e-12)
        gradient = problem.gradient(x_before)
        hessian = X.T @ (kept.used_curvatures[:, None] * X) / len(X)
        damping = np.diag(state.tau * problem.loss.curvature_bound * np.mean(X**2, axis=0))
        x = x_before - np.linalg.solve(hessian + damping, gradient)
        np.testing.assert_allclose(engine.point.x, x, atol=1e-9)


def test_with_an_isotropic_surrogate_it_is_sa_admm():
    problem = fused(n=30)
    L, rho, n, d = 4.0, 0.1, 30, 8
    sa = ALGORITHMS["sa-admm"].start(
        Setup(problem, rho, 1 / L, 5, "none"), dual_update.start(problem, np.zeros(d), None, None)
    )
    engine = engine_of(problem, NewtonADMMConfig(relaxation=1.0))
    points, gradients = np.zeros((n, d)), None
    X, b = problem.rows.values, problem.target

    def slopes(x):
        return (-b / (1 + np.exp(b * (X @ x))))[:, None] * X

    gradients = slopes(np.zeros(d))
    order = np.random.default_rng(0).integers(6, size=60)
    for k in order:
        rows = np.arange(5 * k, 5 * k + 5)
        x = engine.point.x.copy()
        points[rows], gradients[rows] = x, slopes(x)[rows]
        H, q = L * np.eye(d), L * points.mean(0) - gradients.mean(0)
        engine.solver.model.sweeps.minimise(engine.current.model, engine.point, H, q, x, np.zeros(d), 1, 0.0)
        sa.advance(np.array([k]))
        np.testing.assert_allclose(engine.point.x, sa.point.x, atol=1e-10)
        np.testing.assert_allclose(engine.point.y, sa.point.y, atol=1e-10)
        np.testing.assert_allclose(engine.point.dual, sa.point.dual, atol=1e-10)


@pytest.mark.parametrize("run", [1, 3])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_the_growing_pass_equals_its_twin(kind, run):
    """The first pass, batch by batch, against plain NumPy: margins, line search, averages, sweeps."""
    config = NewtonADMMConfig(large_table=1, run_entries=6 * run)
    X, target = data("logistic", n=100, d=6)
    A = stack(chain(6), "identity")
    problem = Problem(scipy.sparse.csr_array(X) if kind == "sparse" else X, target, psi=L1(0.02), A=A)
    engine = engine_of(problem, config, warm=False)
    rho, dense_A, n = 0.1, A.toarray(), 100
    x, candidate = np.zeros(6), np.zeros(6)
    y, dual = np.zeros(11), np.zeros(11)
    H, q, squares, seen = np.zeros((6, 6)), np.zeros(6), np.zeros(6), 0
    plan = [batch.rows(n) for batch in batches.plan(n, 6, problem.nnz, config)]
    schedule = [plan[0]] * 3 + plan[1:]
    for evaluation, rows in enumerate(schedule):

        def merit(t, rows=rows, x=x, candidate=candidate):
            point = x + t * (candidate - x)
            return np.mean(np.logaddexp(0, -target[rows] * (X[rows] @ point))) + 0.02 * np.abs(dense_A @ point).sum()

        length = 1.0
        while np.any(candidate != x) and merit(length) > merit(0.0) * (1 + 1e-14):
            length /= 2
        x = x + length * (candidate - x)
        z = X[rows] @ x
        p = 1 / (1 + np.exp(target[rows] * z))
        slope, curvatures = -target[rows] * p, p * (1 - p)
        if evaluation in (1, 2):
            H, q = np.zeros((6, 6)), np.zeros(6)
        else:
            seen += rows.size
            squares = squares + np.sum(X[rows] ** 2, axis=0)
        H = H + X[rows].T @ (curvatures[:, None] * X[rows])
        q = q + X[rows].T @ (curvatures * z - slope)
        damping = 1.0 / seen * 0.25 * squares / seen
        matrix = H / seen + np.diag(damping) + rho * dense_A.T @ dense_A
        for _ in range(10):
            candidate = np.linalg.solve(matrix, q / seen + damping * x + rho * dense_A.T @ (y - dual))
            relaxed = 1.6 * dense_A @ candidate - 0.6 * y
            v = relaxed + dual
            y_new = np.sign(v) * np.maximum(np.abs(v) - 0.02 / rho, 0)
            moves = np.linalg.norm(v - y_new - dual), np.linalg.norm(y_new - y)
            y, dual = y_new, v - y_new
            if moves[0] <= 1e-4 * np.linalg.norm(y) and moves[1] <= 1e-4 * np.linalg.norm(dual):
                break
        engine.advance(np.zeros(1, int))
        np.testing.assert_allclose(engine.current.anchor, x, atol=1e-10)
        np.testing.assert_allclose(engine.point.x, candidate, atol=1e-10)
        np.testing.assert_allclose(engine.point.dual, dual, atol=1e-10)
    assert engine.current.seen == n
    assert engine.point.clock[1] == n + 2 * plan[0].size


# -- its parts -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 5, 64, 100, 1000, 12345])
@pytest.mark.parametrize("d", [1, 30])
def test_batches_cover_every_row_once_and_double(n, d):
    plan = [batch.rows(n) for batch in batches.plan(n, d, n * d)]
    assert np.array_equal(np.sort(np.concatenate(plan)), np.arange(n))
    sizes = np.cumsum([rows.size for rows in plan])
    assert all(later <= 2 * earlier + 1 for earlier, later in itertools.pairwise(sizes))


def _counts(n, d, rare=False):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((n, d))
    if rare:
        X[:, 0] = 0.0
        X[np.arange(7, n, n // 12), 0] = 5.0
    return X, rng.poisson(np.exp(0.3 * X @ rng.standard_normal(d) / np.sqrt(d))).astype(float)


@pytest.mark.parametrize("psi", [None, L1(0.01)])
@pytest.mark.parametrize("rare", [False, True])
def test_the_hessian_of_a_part_of_the_samples_leads_to_the_same_optimum(rare, psi):
    X, y = _counts(4000, 6, rare)
    problem = Problem(X, y, "poisson", psi=psi, omega=SquaredL2(1e-3))
    few = {"samples_per_feature": 100, "wide_row": 2}
    part = solve(problem, "newton-admm", tol=1e-9, options=few)
    whole = solve(problem, "newton-admm", tol=1e-9, options={"wide_row": 7})
    assert part.status is whole.status is Status.SOLVED
    assert part.gap <= 1e-9
    assert part.objective == pytest.approx(whole.objective, rel=2e-9)
    solver = NewtonADMM(Setup(problem, 1.0, 1.0, 1, "system", rho_given=False), NewtonADMMConfig(**few))
    sizes = [batch.size(4000) for batch in dict.fromkeys(solver.batches)]
    assert 600 <= sum(sizes) < 2000


def test_a_start_that_is_an_intercept_alone_does_not_skip_the_first_pass(monkeypatch):
    X, y = _counts(4000, 6)
    problem = Problem(X, y, "poisson", omega=SquaredL2(1e-3))
    taken = []
    growing = NewtonADMM._growing_step
    monkeypatch.setattr(NewtonADMM, "_growing_step", lambda self, state: taken.append(1) or growing(self, state))
    for entries, batches_taken in ((1, True), (2, False)):
        taken.clear()
        start = np.zeros(6)
        start[:entries] = 0.1
        assert solve(problem, x0=start, tol=1e-6).status is Status.SOLVED
        assert bool(taken) is batches_taken


def test_large_shift_samples_are_the_ones_that_moved_most():
    moved = np.linspace(0, 1, 1000)
    assert np.array_equal(large_shift_samples(moved), np.arange(1000 - int(LARGE_SHIFT_SHARE * 1000), 1000))
    assert large_shift_samples(np.full(1000, 0.4)).size == 0


def test_shorten_takes_the_first_length_that_helps():
    assert shorten(lambda t: (t - 0.2) ** 2, 0.04) == 0.25
    assert shorten(lambda t: t, 0.0) == 0.0


def test_the_objective_never_rises_from_evaluation_to_evaluation():
    X, target = data("logistic", n=400, d=8, scale=30.0)
    problem = Problem(X, target, psi=L1(1e-4), A=stack(chain(8), "identity"))
    engine = engine_of(problem, rho_given=False)
    values = []
    for _ in range(15):
        engine.advance(np.zeros(1, int))
        values.append(problem.objective(engine.current.anchor))
    assert all(later <= earlier * (1 + 1e-13) for earlier, later in itertools.pairwise(values))


# -- one strength after another ----------------------------------------------------------------------------------


@pytest.mark.parametrize("certify", [True, False], ids=["gap", "model"])
@pytest.mark.parametrize("ridge", [None, 0.05])
def test_the_next_strength_goes_on_from_the_model(certify, ridge):
    """The first candidate for a new strength touches no sample, and far fewer evaluations follow than from nothing."""
    problem = fused(n=2000, strength=0.05, ridge=ridge)
    setup = Setup(problem, 0.01, 1.0, 1, "none" if ridge is None else "system", rho_given=False, tol=1e-8)
    config = NewtonADMMConfig(polish_answer=False, stop_on_model=not certify)
    engine = NewtonADMM.engine(setup, dual_update.start(problem, np.zeros(8), None, None), config)
    for strength in (0.05, 0.045, 0.04):
        following = strength < 0.05
        if following:
            problem, oracle, touched = problem.replace(psi=L1(strength)), engine.current.oracle, engine.point.clock[1]
            engine.follow(problem)
            assert engine.current.oracle is oracle
            assert engine.point.clock[1] == touched
            assert not engine.finished
        touched = int(engine.point.clock[1])
        engine.advance(np.zeros(30, int))
        engine.finish()
        assert engine.finished
        assert engine.optimality()[0] == ("gap" if certify else "decrease")
        assert engine.optimality()[1] <= 1e-8
        if following:
            assert engine.point.clock[1] - touched < 3.5 * 2000
        alone = solve(problem, "newton-admm", tol=1e-10, passes=100)
        assert problem.objective(engine.point.x) <= alone.objective * (1 + 1e-7)


def test_a_state_that_has_seen_nothing_follows_from_its_point():
    problem = fused(strength=0.05)
    engine = engine_of(problem, rho_given=False)
    engine.follow(problem.replace(psi=L1(0.02)))
    engine.advance(np.zeros(20, int))
    engine.finish()
    alone = solve(fused(strength=0.02), "newton-admm", tol=1e-9, passes=100)
    assert engine.current.objective == pytest.approx(alone.objective, rel=1e-6)


def test_a_state_is_stored_field_by_field():
    """Into another engine and on: the same bits."""
    problem = fused(n=1000, scale=30.0)
    first, second = (engine_of(problem, rho_given=False, warm=False) for _ in range(2))
    first.advance(np.zeros(7, int))
    second.resume(copy.deepcopy(first.state()))
    for engine in (first, second):
        engine.advance(np.zeros(5, int))
    np.testing.assert_array_equal(first.point.x, second.point.x)
    assert first.current.objective == second.current.objective
    kept = first.state()["solver"]["oracle"]
    assert set(kept) == {"z", "slope", "curvatures", "used_curvatures", "shift", "placed_before"}


# -- what it promises ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("omega", [None, SquaredL2(0.1), L1(0.01), NonNegative()], ids=lambda reg: type(reg).__name__)
def test_meets_the_tolerance(loss, omega):
    X, target = data(loss)
    problem = Problem(X, target, loss=loss, omega=omega, psi=L1(0.02), A=stack(chain(8), "identity"))
    result = solve(problem, tol=1e-9, passes=100)
    assert result.status is Status.SOLVED
    assert result.stopped_on == "gap"
    assert 0 <= result.gap <= 1e-9
    if isinstance(omega, NonNegative):
        assert result.x.min() >= 0


@pytest.mark.parametrize(
    "omega", [ElasticNet(0.05), GroupL2(0.05, [[0, 1], [2, 3]]), Box(-0.3, 0.3)], ids=lambda r: r.name
)
def test_takes_every_omega_by_folding(omega):
    X, target = data("squared")
    problem = Problem(X, target, loss="squared", omega=omega, psi=L1(0.02), A=chain(8))
    result = solve(problem, "san-admm", tol=1e-7, passes=200)
    other = solve(problem, "batch-iu-admm", passes=20_000, step="theory", rho=0.5, record_every=0)
    assert result.status is Status.SOLVED
    assert result.objective <= problem.objective(other.x if omega.name != "box" else np.clip(other.x, -0.3, 0.3)) + 1e-6


def test_the_answer_is_exactly_fused_and_sparse():
    result = solve(fused(strength=0.05), tol=1e-10, passes=100)
    assert np.unique(result.x).size < 8
    tied = result.y[:7] == 0
    assert np.array_equal(result.x[:-1][tied], result.x[1:][tied])
    assert np.all(result.x[result.y[7:] == 0] == 0)


@pytest.mark.parametrize("ridge", [None, 0.05])
@pytest.mark.parametrize("limit", [{"tol": 1e-8}, {"passes": 2.0}, {"passes": 3.0}])
def test_the_record_takes_the_last_evaluation_as_it_is(limit, ridge, monkeypatch):
    """It evaluates the start by itself, and a candidate that the method has not reached; never again the answer, which
    the method evaluates once more where it has refined it."""
    problem = fused(n=3000, ridge=ridge)
    points, usual = [], type(problem.backend).evaluate
    monkeypatch.setattr(
        type(problem.backend), "evaluate", lambda backend, x: points.append(x.copy()) or usual(backend, x)
    )
    result = solve(problem, "san-admm", record_every=0, **limit)
    assert sum(np.array_equal(x, result.x) for x in points) <= 1
    assert len(points) <= 3
    monkeypatch.undo()
    assert result.objective == pytest.approx(problem.objective(result.x), rel=1e-13)
    kkt = problem.kkt(result.x, result.y, result.tables["rho"][0] * result.dual)
    assert result.kkt.relative == pytest.approx(kkt.relative, rel=1e-6, abs=1e-12)
    average = problem.objective(result.x_average)
    assert result.trace["objective_average"].iloc[-1] == pytest.approx(average, rel=1e-13)


def test_a_warm_start_skips_the_first_pass():
    problem = fused(n=2000)
    first = solve(problem, tol=1e-8, passes=50)
    again = solve(problem, tol=1e-8, passes=50, warm_start=first)
    assert again.status is Status.SOLVED
    assert again.passes - first.passes <= 2.01
    assert again.objective <= first.objective * (1 + 1e-8)


def test_no_run_is_worse_than_where_it_started():
    for seed in range(5):
        problem = fused(seed=seed, scale=10.0 ** (seed - 2))
        x0 = np.random.default_rng(seed).standard_normal(8)
        result = solve(problem, "san-admm", passes=1, x0=x0)
        assert result.objective <= problem.objective(x0)


@pytest.mark.parametrize("label", [0, 1, 2])
@pytest.mark.parametrize("strength", [1e-3, 1e-6])
def test_nearly_separable_classes_take_few_passes(label, strength):
    """The margins have to grow to log(1/λ), by a unit per plain Newton step; see benchmarks/held_out.py."""
    X, classes = load_wine(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    problem = Problem(X, np.where(classes == label, 1.0, -1.0), psi=L1(strength), A=chain(X.shape[1]))
    trace = solve(problem, tol=1e-9, record_every=1e-9).trace
    below = trace["objective"] <= (1 + 1e-6) * trace["objective"].min()
    assert trace["passes"][below].min() <= 10


def test_a_small_ill_conditioned_table_gets_a_dense_model():
    rng = np.random.default_rng(3)
    trend = np.linspace(-1, 1, 16)[:, None]
    X = trend + 0.02 * rng.standard_normal((16, 6))
    problem = Problem(X, trend[:, 0] + 0.1 * rng.standard_normal(16), "squared", psi=L1(1e-4), A=chain(6))
    result = solve(problem, tol=1e-6)
    assert result.status == Status.SOLVED
    assert result.solver == "newton-admm"
    assert result.passes <= 10


def test_saturated_samples_have_the_majorisers_curvature():
    X = np.linspace(-30.0, 30.0, 41)[:, None]
    target = np.where(np.arange(41) % 2 == 0, 1.0, -1.0)
    weight = np.linspace(0.5, 1.5, 41)
    problem = Problem(X, target, sample_weight=weight)
    oracle = LocalOracle(problem.samples())
    oracle.begin(None, np.ones(1))
    oracle.along(None, 0.0)
    z, scale = X[:, 0], problem.sample_weight
    far = target * z < -SATURATED
    assert 5 < far.sum() < 36
    curvatures = oracle.scalars.curvatures / scale
    np.testing.assert_allclose(curvatures[~far], 1.0 / (2.0 + 2.0 * np.cosh(z[~far])), rtol=1e-12)
    # ℓ(z) + ℓ'(z)(s − z) + ½h(s − z)² touches the loss at z and lies above it everywhere.
    s = np.linspace(-40.0, 40.0, 801)
    for i in np.flatnonzero(far):
        loss, slope = np.logaddexp(0.0, -target[i] * z[i]), oracle.scalars.slope[i] / scale[i]
        parabola = loss + slope * (s - z[i]) + 0.5 * curvatures[i] * (s - z[i]) ** 2
        assert np.all(parabola >= np.logaddexp(0.0, -target[i] * s) - 1e-9)


# -- it never runs away ----------------------------------------------------------------------------------------


def test_no_divergence_over_hard_problems():
    """Absent features, duplicated columns, separable data, wild scales, one-class blocks: 500 problems.

    All but the wildly scaled (columns up to twelve decades apart, where one ρ cannot serve all rows) are also solved.
    """
    graph = stack(chain(6), "identity")
    solved = []
    for seed in range(500):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(20, 120))
        X = rng.standard_normal((n, 6))
        kind = seed % 6
        if kind == 0:
            X[:, 2] = 0.0  # absent
            X[1:, 3] = 0.0  # present in one row only
        elif kind == 1:
            X[:, 1] = X[:, 0]
        elif kind == 3:
            X *= 10.0 ** rng.uniform(-6, 6, size=6)
        elif kind == 5:
            X = (X > 1.0).astype(float)
        target = np.sign(X @ rng.standard_normal(6) + (0.0 if kind == 2 else 1.0) * rng.standard_normal(n))
        target[target == 0] = 1.0
        target[:2] = 1.0, -1.0
        if kind == 4:
            order = np.argsort(target)
            X, target = X[order], target[order]
        problem = Problem(X, target, psi=L1(10.0 ** rng.uniform(-5, -1)), A=graph)
        x0 = rng.standard_normal(6) * rng.choice([0.0, 1.0, 10.0])
        result = solve(problem, "san-admm", passes=15 if kind == 3 else 60, tol=1e-6, x0=x0, record_every=0)
        assert np.isfinite(result.x).all()
        assert result.objective <= problem.objective(x0) * (1 + 1e-12)
        assert result.status in (Status.SOLVED, Status.PASS_LIMIT, Status.STALLED)
        if kind != 3:
            solved.append(result.status is Status.SOLVED)
    assert np.mean(solved) >= 0.99, f"{sum(solved)} of {len(solved)} reached a certified gap of 1e-6 within 60 passes"


# -- no minimiser ----------------------------------------------------------------------------------------------


def test_a_feature_with_one_label_and_no_penalty_is_named():
    import pandas as pd

    X, target = data("logistic")
    X[:, 5] = 0.0
    X[target > 0, 5] = 1.0
    frame = pd.DataFrame(X, columns=[f"f{j}" for j in range(8)])
    problem = Problem(frame, target, psi=L1(0.01), A=incidence([[0, 1], [1, 2], [3, 4], [6, 7]], n_features=8))
    result = solve(problem, passes=5)
    assert result.status is Status.NO_MINIMISER
    assert "f5" in result.message
    assert "one label only" in result.message
    assert "f4" not in result.message


def test_a_component_no_penalty_holds_is_named():
    X, target = data("logistic")
    X[:, 4] = np.where(target > 0, np.abs(X[:, 4]), -np.abs(X[:, 4])) - X[:, 3]
    problem = Problem(X, target, psi=L1(0.01), A=chain(8)[[0, 1, 3, 5, 6]])
    found = existence.find(problem)
    assert found is not None
    assert {"3", "4"} <= set(found.names)
    assert "move together" in str(found)
    assert "one label" not in str(found)


@pytest.mark.parametrize("sparse", [False, True])
def test_many_directions_are_asked_for_at_once(sparse, monkeypatch):
    """Each direction by itself, as the definition has it; rows come in several parts, and one sample does not count."""
    monkeypatch.setattr(Problem, "rows_per_chunk", 7)
    rng = np.random.default_rng(3)
    X = rng.standard_normal((60, 40)) * (rng.random((60, 40)) < 0.1)
    target = np.sign(rng.standard_normal(60))
    weight = np.ones(60)
    weight[5] = 0.0
    problem = Problem(
        scipy.sparse.csr_array(X) if sparse else X, target, sample_weight=weight, psi=L1(0.1),
        A=incidence([[2 * k, 2 * k + 1] for k in range(8)], n_features=40),
    )  # fmt: skip
    directions = existence.flat_directions(problem).vectors
    guilty = []
    for features, entries in directions:
        agreement = (target * (X[:, features] @ entries))[weight > 0]
        if agreement.any() and (agreement.min() >= 0 or agreement.max() <= 0):
            guilty.extend(features)
    assert len(directions) == 32
    assert guilty
    np.testing.assert_array_equal(existence.find(problem).features, np.sort(guilty))


@pytest.fixture(scope="module")
def a9a():
    """Half of the rows of a9a."""
    path = Path(os.environ.get("SKADMM_DATA", Path(__file__).parents[3] / "shared" / "data")) / "a9a.svm.xz"
    if not path.exists():
        pytest.skip("a9a.svm.xz is not there")
    with lzma.open(path) as file:
        X, target = load_svmlight_file(file, n_features=123)
    half = np.random.default_rng(0).permutation(X.shape[0])[: X.shape[0] // 2]
    return X[half], target[half]


def test_an_x_that_has_arrived_is_certified_although_sweeps_still_move_y(a9a):
    """Without an ℓ1 term there is no gap, and the residual needs a y; that of x itself is exact on its pattern."""
    result = solve(Problem(*a9a, psi=L1(1e-4), A=chain(123)), tol=1e-6)
    assert result.status is Status.SOLVED
    assert result.solver == "newton-admm"
    assert result.passes <= 12
    assert result.kkt.relative <= 1e-6


def test_a9a_with_a_bare_graph_names_its_features(a9a):
    X, target = a9a
    graph = incidence(precision_graph(X))
    result = solve(Problem(X, target, psi=L1(1e-5), A=graph), passes=5)
    alone = np.flatnonzero(np.bincount(graph.indices, minlength=123) == 0)
    one_sided = [j for j in alone if np.unique(target[X[:, [j]].toarray().ravel() != 0]).size == 1]
    assert len(one_sided) > 5
    assert result.status is Status.NO_MINIMISER
    assert f"{len(one_sided)} feature" in result.message
    assert f"({', '.join(map(str, one_sided[:20]))}" in result.message


@pytest.mark.parametrize("loss", ["squared", "huber", "squared-hinge"])
def test_losses_that_attain_their_infimum_are_never_accused(loss):
    X, target = data(loss)
    assert existence.find(Problem(np.abs(X), target, loss=loss)) is None


def test_separable_data_without_any_penalty_have_no_minimiser():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 3))
    target = np.sign(X @ np.array([1.0, 2.0, -1.0]))
    assert existence.find(Problem(X, target)) is not None
    target[0] = -target[0]
    X[1] = X[0]
    target[1] = -target[0]
    assert existence.find(Problem(X, target, psi=L1(0.1))) is None


@pytest.mark.parametrize("seed", range(8))
def test_columns_that_are_equal_but_for_rounding_are_no_direction(seed):
    """A linear programme solves such a problem within its tolerances, and the solution improves nothing."""
    rng = np.random.default_rng(seed)
    X = np.outer(rng.standard_normal(43), rng.standard_normal(2)).astype(np.float32)
    assert existence.find(Problem(X, rng.choice([-1.0, 1.0], 43))) is None


@pytest.mark.parametrize("omega", [NonNegative(), Box(np.array([0.0, -np.inf, 0.0]), np.array([np.inf, np.inf, 1.0]))])
def test_a_set_that_is_open_on_one_side_may_have_no_minimiser(omega):
    rng = np.random.default_rng(0)
    X = np.abs(rng.standard_normal((30, 3)))
    target = np.ones(30)
    target[:3] = -1.0
    X[:3, :2] = 0.0
    found = existence.find(Problem(X, target, omega=omega))
    assert found is not None
    assert set(found.features) <= {0, 1}
    assert existence.find(Problem(-X, target, omega=NonNegative())) is None
    assert solve(Problem(X, target, omega=omega), passes=5).status is Status.NO_MINIMISER


def test_a_penalty_of_no_strength_behind_B_holds_nothing():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((10, 4))
    target = np.sign(X @ np.ones(4))
    assert existence.find(Problem(X, target, psi=L1(0.0), A=chain(4), B=2.0)) is not None
    assert existence.find(Problem(X, target, psi=L1(0.1), A="identity", B=2.0)) is None


def test_a_minimum_of_zero_is_certified():
    """The gap is measured against the loss at zero where the objective is smaller than a share of it."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((6, 30))
    problem = Problem(
        X, np.sign(rng.standard_normal(6)), loss="squared-hinge", psi=SquaredL2(0.3), A=stack(chain(30), "identity")
    )
    problem = problem.replace(psi=SquaredL2(1e-30))
    result = solve(problem, tol=1e-6)
    assert result.status is Status.SOLVED
    assert result.objective <= 1e-11

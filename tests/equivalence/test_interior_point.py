"""The interior point solver: exact on signals of every kind, with a gap that holds, and refusals with a reason."""

import contextlib
import signal as signals

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp

from skadmm import Problem, Status, TrendFilter, alpha_max, path, solve
from skadmm.operators import chain, grid, incidence, stack, trend
from skadmm.operators.line import Line, as_line, as_uneven_line, line_at
from skadmm.problem.constraint import Constraint
from skadmm.regularizers import L1, GroupL2, NonNegative, SquaredL2
from skadmm.run import driver
from skadmm.solvers.base import Setup
from skadmm.solvers.second_order import signal_systems
from skadmm.solvers.second_order.interior_point import InteriorPoint, InteriorPointConfig

N = 60
RNG = np.random.default_rng(0)
POSITIONS = np.sort(RNG.uniform(0.0, 5.0, N))
NOISY = np.sin(np.arange(N) / 9.0) + 0.2 * RNG.standard_normal(N)
IDENTITY = sp.eye_array(N, format="csr")
ROW_SCALE = np.random.default_rng(1).uniform(-2.0, 2.0, N - 2)
SIGNED = incidence([(i, i + 1, 1.0 if i % 3 else -1.0) for i in range(N - 1)], n_features=N)


def repeated():
    """Every coefficient is seen several times, with entries that are not one; some rows see nothing."""
    rng = np.random.default_rng(2)
    feature = np.concatenate([np.arange(N), rng.integers(0, N, 2 * N)])
    X = sp.csr_array((rng.uniform(0.5, 2.0, 3 * N), (np.arange(3 * N), feature)), shape=(3 * N + 4, N))
    return X, np.concatenate([X[: 3 * N] @ NOISY + 0.1 * rng.standard_normal(3 * N), rng.standard_normal(4)])


def spaced(order):
    return Constraint(trend(N, order, POSITIONS), None, None, N, line=line_at(POSITIONS, order))


WEIGHTS = np.random.default_rng(3).uniform(0.2, 2.0, N - 2)
CASES = {
    "chain": {"A": chain(N)},
    "chain, weights": {"A": chain(N), "sample_weight": np.arange(1.0, N + 1)},
    "linear": {"A": trend(N, 1)},
    "quadratic": {"A": trend(N, 2), "alpha": 0.1},
    "cubic": {"A": trend(N, 3), "alpha": 0.5},
    "linear, uneven": {"A": trend(N, 1, POSITIONS)},
    "linear, uneven, known line": {"A": spaced(1)},
    "quadratic, uneven, known line": {"A": spaced(2)},
    "linear, sample weights": {"A": trend(N, 1), "sample_weight": RNG.integers(1, 5, N).astype(float)},
    "linear, row weights": {"A": trend(N, 1), "weights": WEIGHTS},
    "chain, row weights": {"A": chain(N), "weights": np.append(WEIGHTS, 1.0)},
    "linear, scaled rows": {"A": sp.diags_array(ROW_SCALE) @ trend(N, 1)},
    "linear, scaled rows and weights": {"A": sp.diags_array(ROW_SCALE) @ trend(N, 1), "weights": WEIGHTS},
    "ridge": {"A": trend(N, 1), "omega": SquaredL2(0.3)},
    "grid": {"A": grid((6, 10))},
    "grid, row weights": {"A": grid((6, 10)), "weights": np.linspace(0.5, 1.5, grid((6, 10)).shape[0])},
    "graph with signs": {"A": SIGNED},
    "trend and lasso": {"A": stack(trend(N, 1), "identity")},
    "lasso": {"A": "identity"},
    "dense identity": {"A": trend(N, 1), "X": IDENTITY.toarray()},
    "repeated": {"A": trend(N, 1), "data": repeated()},
    "unseen features, ridge": {"A": trend(N, 1), "X": IDENTITY[:-5], "omega": SquaredL2(0.1)},
}


def build(case):
    case = {"alpha": 0.01, "weights": None, "X": IDENTITY} | CASES[case]
    X, b = case.get("data", (case["X"], NOISY[: case["X"].shape[0]]))
    psi = L1(case["alpha"], case["weights"])
    parts = {name: case[name] for name in ("A", "omega", "sample_weight") if name in case}
    return Problem(X, b, "squared", psi=psi, **parts)


def best(problem, X, b):
    """The optimum by CVXPY."""
    x = cp.Variable(problem.n_features)
    weight = problem.sample_weight if problem.sample_weight.size else np.ones(b.size)
    loss = cp.sum(cp.multiply(weight, cp.square(X @ x - b))) / (2 * b.size)
    bound = problem.psi.strength * (problem.psi.weights if problem.psi.weights.size else np.ones(problem.n_split))
    ridge = problem.omega.strength if isinstance(problem.omega, SquaredL2) else 0.0
    objective = loss + cp.sum(cp.multiply(bound, cp.abs(problem.constraint.A @ x))) + ridge / 2 * cp.sum_squares(x)
    settings = {"tol_gap_rel": 1e-11, "tol_gap_abs": 1e-11, "tol_feas": 1e-11}
    return cp.Problem(cp.Minimize(objective)).solve(solver="CLARABEL", **settings), x.value


@pytest.mark.parametrize("case", CASES)
def test_it_agrees_with_cvxpy(case):
    problem = build(case)
    X = CASES[case].get("data", (CASES[case].get("X", IDENTITY), None))[0]
    value, x = best(problem, X, problem.target)
    result = solve(problem, "interior-point", tol=1e-9)
    assert result.status is Status.SOLVED
    assert (result.solver, result.stopped_on) == ("interior-point", "gap")
    assert abs(result.objective - value) <= 1e-8 * value
    assert result.objective == pytest.approx(problem.objective(result.x), rel=1e-9)
    assert result.objective - value <= result.gap * value + 1e-9 * value, "the gap bounds the suboptimality"
    np.testing.assert_allclose(result.x, x, atol=1e-4)
    np.testing.assert_allclose(result.y, problem.constraint.A @ result.x, atol=1e-9)
    multiplier = result.settings["rho"] * result.dual
    assert problem.kkt(result.x, result.y, multiplier).relative <= 1e-4


def test_zeros_are_exact():
    result = solve(build("linear"), "interior-point", tol=1e-6)
    knots = np.flatnonzero(result.y)
    assert 0 < knots.size < 20
    levels = solve(build("chain, weights"), "interior-point", tol=1e-6).x
    assert np.unique(levels).size < 20


@pytest.mark.parametrize("order", [0, 1, 2, 3])
def test_polynomials_need_no_step(order):
    problem = Problem(IDENTITY, NOISY, "squared", psi=L1(1.0), A=trend(N, order))
    for share, flat in ((1.0, True), (1.5, True), (0.9, False)):
        strength = share * alpha_max(problem)
        result = solve(problem.replace(psi=L1(strength)), "interior-point", tol=1e-8)
        assert result.status is Status.SOLVED
        assert bool(np.all(result.y == 0)) == flat
        # Along a chain the dynamic programme finds the constant as well, in its one pass.
        assert (result.passes == 0) == (flat and order > 0)
    fit = np.polynomial.Polynomial.fit(np.arange(N), NOISY, order)(np.arange(N))
    np.testing.assert_allclose(solve(problem.replace(psi=L1(1e9)), "interior-point", tol=1e-8).x, fit, atol=1e-9)


def test_a_perfect_fit_is_solved():
    straight = 3.0 * np.arange(N) - 1.0
    result = solve(Problem(IDENTITY, straight, "squared", psi=L1(0.1), A=trend(N, 1)), tol=1e-6)
    assert result.status is Status.SOLVED
    np.testing.assert_allclose(result.x, straight, atol=1e-9)


X2 = RNG.standard_normal((N, N))
REFUSED = {
    "loss": (Problem(IDENTITY, NOISY, "huber", psi=L1(0.1), A=trend(N, 1)), "the loss must be squared"),
    "psi": (Problem(IDENTITY, NOISY, "squared", psi=GroupL2(0.1, np.arange(N) // 4)), "psi must be an ℓ1 norm"),
    "B": (Problem(IDENTITY, NOISY, "squared", psi=L1(0.1), A=chain(N), B=2.0), "B = −I and c = 0"),
    "c": (Problem(IDENTITY, NOISY, "squared", psi=L1(0.1), A=chain(N), c=np.ones(N - 1)), "B = −I and c = 0"),
    "strength": (Problem(IDENTITY, NOISY, "squared", psi=L1(0.0), A=chain(N)), "must be positive"),
    "weight": (
        Problem(IDENTITY, NOISY, "squared", psi=L1(0.1, np.append(np.ones(N - 2), 0.0)), A=chain(N)),
        "must be positive",
    ),
    "omega": (Problem(IDENTITY, NOISY, "squared", psi=L1(0.1), A=chain(N), omega=NonNegative()), "omega must be"),
    "dense rows": (Problem(X2, NOISY, "squared", psi=L1(0.1), A=chain(N)), "more than one nonzero entry"),
    "sparse rows": (Problem(sp.csr_array(X2), NOISY, "squared", psi=L1(0.1), A=chain(N)), "more than one nonzero"),
    "last row": (
        Problem(sp.vstack([IDENTITY] * 30 + [X2[:1]], format="csr"), np.append(np.tile(NOISY, 30), 0.0), "squared",
                psi=L1(0.1), A=chain(N)),
        "more than one nonzero entry",
    ),
    "unseen": (Problem(IDENTITY[1:], NOISY[1:], "squared", psi=L1(0.1), A=chain(N)), "feature 0 is zero in every"),
    "weightless": (
        Problem(IDENTITY, NOISY, "squared", psi=L1(0.1), A=chain(N), sample_weight=np.arange(float(N))),
        "feature 0 is zero in every",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_it_refuses_with_a_reason(case):
    problem, reason = REFUSED[case]
    assert reason in InteriorPoint.applies(problem)
    if case != "omega":  # which is folded into psi
        with pytest.raises(ValueError, match="method='interior-point' cannot take this problem"):
            solve(problem, "interior-point")


def test_a_large_dense_table_is_not_searched(monkeypatch):
    monkeypatch.setattr("skadmm.backends.single_entries.MAX_DENSE_ENTRIES", 3000)
    assert "give it as a sparse matrix" in InteriorPoint.applies(build("dense identity"))
    assert InteriorPoint.applies(build("linear")) is None


# -- selection ---------------------------------------------------------------------------------------------------


def test_long_signals_get_it_by_default():
    n = 20_000
    noisy = np.sin(np.arange(n) / 2000.0) + 0.3 * np.random.default_rng(0).standard_normal(n)
    result = solve(Problem(sp.eye_array(n, format="csr"), noisy, "squared", psi=L1(1.0), A=trend(n, 1)), tol=1e-8)
    assert result.status is Status.SOLVED
    assert (result.method, result.solver) == ("san-admm", "interior-point")
    assert np.count_nonzero(result.y) < 100


@pytest.mark.parametrize("case", ["chain", "linear", "trend and lasso", "repeated", "dense identity"])
def test_signals_get_it_by_default(case):
    assert solve(build(case), tol=1e-6).solver == "interior-point"


def test_one_proximal_step_is_preferred_where_it_is_exact():
    problem = Problem(IDENTITY, NOISY, "squared", psi=L1(0.01), A=stack(chain(N), "identity"))
    result = solve(problem, tol=1e-9)
    assert result.solver == "proximal-gradient"
    assert result.objective == pytest.approx(solve(problem, "interior-point", tol=1e-9).objective, rel=1e-8)


def test_expanding_graphs_are_left_to_others():
    rng = np.random.default_rng(0)
    edges = np.unique(np.sort(rng.integers(0, 5000, (9000, 2)), axis=1), axis=0)
    A = stack(incidence(edges[edges[:, 0] != edges[:, 1]], n_features=5000), "identity")
    problem = Problem(sp.eye_array(5000, format="csr"), rng.standard_normal(5000), "squared", psi=L1(1e-4), A=A)
    assert InteriorPoint.applies(problem) is None
    assert solve(problem, tol=1e-2).solver == "chain-descent"


def test_estimators_reach_it():
    model = TrendFilter(alpha=0.01, order=2).fit(POSITIONS[:, None], NOISY)
    assert model.result_.solver == "interior-point"
    assert model.result_.gap <= 1e-6
    again = TrendFilter(alpha=0.01, order=2, warm_start=True).fit(POSITIONS[:, None], NOISY)
    first = again.coef_.copy()
    again.set_params(alpha=1e6).fit(POSITIONS[:, None], NOISY)
    assert again.dof_ == 3
    np.testing.assert_array_equal(again.set_params(alpha=0.01).fit(POSITIONS[:, None], NOISY).coef_, first)


# -- runs --------------------------------------------------------------------------------------------------------


class Killed(BaseException):
    """Nothing catches it, as nothing catches SIGKILL."""


@pytest.mark.parametrize("case", ["linear", "grid", "chain", "quadratic, uneven, known line"])
def test_a_killed_run_resumes_to_the_same_bits(case, tmp_path, monkeypatch):
    problem = build(case)
    whole = solve(problem, "interior-point", tol=1e-8)
    usual = driver.Run._slice
    for slices in (1, 3, 2):
        left = iter(range(slices))

        def fragile(self, goal, pace, left=left):
            if next(left, None) is None:
                raise Killed
            return usual(self, goal, 1.0)

        monkeypatch.setattr(driver.Run, "_slice", fragile)
        with contextlib.suppress(Killed):
            solve(problem, "interior-point", tol=1e-8, checkpoint=tmp_path / "run", checkpoint_every=0)
    monkeypatch.setattr(driver.Run, "_slice", usual)
    resumed = solve(problem, "interior-point", tol=1e-8, checkpoint=tmp_path / "run")
    for name in ("x", "y", "dual", "x_average", "y_average"):
        np.testing.assert_array_equal(getattr(resumed, name), getattr(whole, name))
    assert (resumed.status, resumed.passes, resumed.gap) == (whole.status, whole.passes, whole.gap)
    assert [row["objective"] for row in resumed.records] == [row["objective"] for row in whole.records]


def test_limits_and_interrupts_leave_a_sound_point():
    n = 20_000
    noisy = np.sin(np.arange(n) / 2000.0) + 0.3 * np.random.default_rng(0).standard_normal(n)
    problem = Problem(sp.eye_array(n, format="csr"), noisy, "squared", psi=L1(1.0), A=trend(n, 2))
    limited = solve(problem, tol=1e-8, time_limit=1e-3)  # less than a step takes
    stopped = solve(problem, tol=1e-8, callback=lambda s: s.passes >= 2 and signals.raise_signal(signals.SIGINT))
    few = solve(problem, tol=1e-8, passes=3)
    assert limited.status is Status.TIME_LIMIT
    assert stopped.status is Status.INTERRUPTED
    assert few.passes == 3
    for result in (limited, stopped, few):
        assert np.all(np.isfinite(result.x))
        assert result.objective <= problem.loss_at_zero * 1.01 or np.isnan(result.gap)


def test_a_path_builds_its_systems_once(monkeypatch):
    built = []
    usual = signal_systems.LineSystem.__init__
    monkeypatch.setattr(signal_systems.LineSystem, "__init__", lambda self, *a: built.append(1) or usual(self, *a))
    problem = build("linear")
    answer = path(problem, n_alphas=8, tol=1e-8)
    assert len(built) == 1
    assert set(answer.statuses) == {"solved"}
    assert answer.dof[0] == 2
    for alpha, x, loss in zip(answer.alphas, answer.x, answer.losses, strict=True):
        alone = solve(problem.replace(psi=L1(alpha)), "interior-point", tol=1e-8)
        np.testing.assert_array_equal(alone.x, x)
        assert loss == pytest.approx(problem.loss_value(x), rel=1e-10)


def test_records_and_settings():
    result = solve(build("linear"), "interior-point", tol=1e-8)
    assert len(result.records) == result.passes + 1 or len(result.records) == result.passes + 2
    gaps = [row["gap"] for row in result.records[1:]]
    assert gaps[-1] <= 1e-8 < gaps[0]
    problem = build("linear")
    setup = Setup(problem, 0.01, 1.0, 1, "none", tol=1e-8)
    solver = InteriorPoint(setup, InteriorPointConfig(max_steps=2))
    from skadmm.solvers import dual_update

    state = solver.init(dual_update.start(problem, np.zeros(N), None, None), 0.01)
    for _ in range(2):
        solver.step(state)
        state.steps += 1
    assert state.stalled
    solver.finish(state)
    assert np.isfinite(solver.optimality(state)[1])


# -- differences at uneven positions -------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [0, 1, 2, 3])
def test_differences_at_positions_vanish_on_polynomials(order):
    D = trend(N, order, POSITIONS)
    assert D.shape == (N - 1 - order, N)
    assert np.abs(D @ np.polynomial.polynomial.polyval(POSITIONS, np.ones(order + 1))).max() < 1e-7 * abs(D).max()
    np.testing.assert_allclose(trend(N, order, 3.0 * np.arange(N)).toarray(), trend(N, order).toarray(), atol=1e-12)


@pytest.mark.parametrize(
    "positions", [np.arange(5.0), np.zeros(N), POSITIONS[::-1], np.full(N, np.nan), "here", POSITIONS[:, None]]
)
def test_bad_positions_are_refused(positions):
    with pytest.raises(ValueError, match="positions must"):
        trend(N, 1, positions)


def test_uneven_differences_of_order_one_are_recognised():
    line = build("linear, uneven").constraint.line
    assert line.order == 1
    known = line_at(POSITIONS, 1)
    np.testing.assert_allclose(line.t, known.t - known.t[0], rtol=1e-12, atol=1e-12)
    w = np.random.default_rng(5).standard_normal(N - 2)
    np.testing.assert_allclose(line.multiplier(trend(N, 1, POSITIONS).T @ w), w, atol=1e-9)
    assert as_uneven_line(trend(N, 2, POSITIONS)) is None
    assert as_uneven_line(sp.csr_array(sp.diags_array(ROW_SCALE) @ trend(N, 1, POSITIONS))) is None


def test_a_constraint_knows_its_line():
    assert isinstance(build("linear").constraint.line, Line)
    assert build("grid").constraint.line is None
    known = spaced(2)
    assert known.line.order == 2
    assert known.stacked_on_identity().line is None
    assert as_line(trend(N, 2)).order == 2

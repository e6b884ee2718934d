"""The method of multipliers with Newton steps: derivatives of proximal steps, optimality, hand-over, checkpoints."""

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp

from skadmm import Problem, Status, solve
from skadmm.losses import Huber
from skadmm.operators import chain, incidence, trend
from skadmm.regularizers import L1, L2, Box, ElasticNet, GroupL2, GroupLInf, LInf, NonNegative, SquaredL2, Stacked, Zero
from skadmm.regularizers._envelope import envelope_curvature, parts_of, prox_with_steps
from skadmm.solvers import dual_update
from skadmm.solvers.base import Setup
from skadmm.solvers.second_order.multipliers import MAX_VARIABLES, Multipliers

M = 12
GROUPS = [[0, 3, 5], [1, 2], [4, 6, 7, 8]]  # 9, 10 and 11 are in none
PENALTIES = {
    "l1": L1(0.7),
    "weighted": L1(0.7, np.linspace(0.0, 2.0, M)),
    "elastic net": ElasticNet(0.7, 0.4),
    "l2": L2(0.9),
    "linf": LInf(1.3),
    "squared l2": SquaredL2(0.8),
    "groups": GroupL2(0.6, GROUPS, np.array([1.0, 2.0, 0.5])),
    "largest of groups": GroupLInf(0.6, GROUPS, np.array([1.0, 2.0, 0.5])),
    "non-negative": NonNegative(),
    "box": Box(-0.5, 0.8),
    "zero": Zero(),
    "stacked": Stacked(L1(0.7), GroupL2(0.5), 5),
}


@pytest.mark.parametrize("name", PENALTIES)
@pytest.mark.parametrize("seed", range(4))
def test_envelope_curvature_is_the_derivative_of_the_prox(name, seed):
    rng = np.random.default_rng(seed)
    whole = PENALTIES[name].prepared(M, "psi")
    v = 1.5 * rng.standard_normal(M)
    for part in parts_of(whole, M):
        size = part.stop - part.start
        steps = rng.uniform(0.5, 2.0, size) if part.reg.separable else np.full(size, 0.7)
        curvature = envelope_curvature(part.reg, v[part.where], steps).toarray()
        numerical = np.empty((size, size))
        for j in range(size):
            moved = np.zeros(size)
            moved[j] = 1e-6
            above = prox_with_steps(part.reg, v[part.where] + moved, steps)
            below = prox_with_steps(part.reg, v[part.where] - moved, steps)
            numerical[:, j] = (above - below) / 2e-6
        np.testing.assert_allclose(curvature, np.eye(size) - numerical, atol=1e-5)
        np.testing.assert_allclose(curvature, curvature.T, atol=1e-12)
        assert np.linalg.eigvalsh(curvature).min() >= -1e-9


# -- optimality --------------------------------------------------------------------------------------------------------


def alone(problem, tol=1e-8, passes=400):
    """The engine on its own, without the loop."""
    mode = "none" if isinstance(problem.omega, Zero) else "system" if isinstance(problem.omega, SquaredL2) else "fold"
    working = problem.fold() if mode == "fold" else problem
    setup = Setup(working, 0.01, 1.0, 1, mode, tol=tol)
    point = dual_update.start(working, np.zeros(problem.n_features), None, None)
    engine = Multipliers.engine(setup, point)
    for _ in range(passes):
        engine.advance(np.zeros(1, np.int64))
    engine.finish()
    return engine.current


def atoms(x, name):
    """The penalty in CVXPY's terms."""
    reg = PENALTIES[name]
    return {
        "l1": lambda: 0.7 * cp.norm1(x),
        "weighted": lambda: 0.7 * cp.norm1(cp.multiply(reg.weights, x)),
        "elastic net": lambda: 0.7 * (0.4 * cp.norm1(x) + 0.3 * cp.sum_squares(x)),
        "l2": lambda: 0.9 * cp.norm(x),
        "linf": lambda: 1.3 * cp.norm_inf(x),
        "squared l2": lambda: 0.4 * cp.sum_squares(x),
        "groups": lambda: 0.6 * sum(w * cp.norm(x[g]) for w, g in zip([1.0, 2.0, 0.5], GROUPS, strict=True)),
        "largest of groups": lambda: 0.6 * sum(
            w * cp.norm_inf(x[g]) for w, g in zip([1.0, 2.0, 0.5], GROUPS, strict=True)
        ),
    }[name]()  # fmt: skip


def data(seed=0, n=40, d=14):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) + 0.5
    return X, X @ np.repeat([1.0, -1.0], d // 2) + rng.standard_normal(n)


@pytest.mark.parametrize("name", ["l1", "weighted", "elastic net", "l2", "linf", "squared l2", "groups",
                                  "largest of groups"])  # fmt: skip
@pytest.mark.parametrize("loss", ["squared", "huber", "logistic", "squared-hinge"])
def test_optimal_for_every_loss_and_penalty(loss, name):
    X, y = data()
    labels = np.where(y > 0, 1.0, -1.0)
    A = trend(14, 1)
    target = y if loss in ("squared", "huber") else labels
    engine = alone(Problem(X, target, loss, psi=PENALTIES[name], A=A))
    x = cp.Variable(14)
    z = X @ x
    value = {
        "squared": lambda: 0.5 * cp.sum_squares(z - y),
        "huber": lambda: 0.5 * cp.sum(cp.huber(z - y)),
        "logistic": lambda: cp.sum(cp.logistic(-cp.multiply(labels, z))),
        "squared-hinge": lambda: 0.5 * cp.sum_squares(cp.pos(1 - cp.multiply(labels, z))),
    }[loss]()  # fmt: skip
    expected = cp.Problem(cp.Minimize(value / 40 + atoms(A @ x, name))).solve("CLARABEL")
    assert engine.reached <= 1e-6
    assert engine.objective == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("omega", [NonNegative(), Box(-0.2, 0.5), L1(0.05), SquaredL2(0.1)])
def test_optimal_with_a_constraint_or_penalty_on_x(omega):
    X, y = data(1)
    engine = alone(Problem(X, y, "squared", omega=omega, psi=L1(0.1), A=chain(14)))
    x = cp.Variable(14)
    objective = 0.5 * cp.sum_squares(X @ x - y) / 40 + 0.1 * cp.norm1(cp.diff(x))
    constraints = []
    if isinstance(omega, NonNegative):
        constraints = [x >= 0]
    elif isinstance(omega, Box):
        constraints = [x >= -0.2, x <= 0.5]
    elif isinstance(omega, L1):
        objective += 0.05 * cp.norm1(x)
    else:
        objective += 0.05 * cp.sum_squares(x)
    expected = cp.Problem(cp.Minimize(objective), constraints).solve("CLARABEL")
    assert engine.objective == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("kind", ["scalar", "square", "wide", "tall", "singular"])
def test_general_b_and_c(kind):
    rng = np.random.default_rng(3)
    X, y = data(2)
    A = chain(14)
    B = {
        "scalar": lambda: 2.0,
        "square": lambda: rng.standard_normal((13, 13)) + 4 * np.eye(13),
        "wide": lambda: rng.standard_normal((13, 20)),
        "tall": lambda: rng.standard_normal((13, 6)),
        "singular": lambda: np.linalg.multi_dot([root := rng.standard_normal((13, 8)), np.eye(8), root.T]),
    }[kind]()
    c = 0.1 * rng.standard_normal(13)
    result = solve(Problem(X, y, "squared", psi=L1(0.1), A=A, B=B, c=c), tol=1e-8)
    matrix = B * np.eye(13) if kind == "scalar" else B
    x, z = cp.Variable(14), cp.Variable(matrix.shape[1])
    objective = 0.5 * cp.sum_squares(X @ x - y) / 40 + 0.1 * cp.norm1(z)
    expected = cp.Problem(cp.Minimize(objective), [A @ x + matrix @ z == c]).solve("CLARABEL")
    assert result.method == "san-admm"
    assert result.status is Status.SOLVED
    assert result.objective == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("storage", [np.ascontiguousarray, np.asfortranarray, sp.csr_array, np.float32])
def test_storages_agree(storage):
    X, y = data(4)
    answers = [alone(Problem(table, y, Huber(0.3), psi=LInf(0.2), A=chain(14))).objective for table in (X, storage(X))]
    assert answers[0] == pytest.approx(answers[1], rel=1e-5)


def test_sample_weights_are_copies():
    X, y = data(5, n=20)
    weight = np.array([1.0, 2.0] * 10)
    copies = np.repeat(np.arange(20), weight.astype(int))
    one = alone(Problem(X, y, "squared", psi=L1(0.1), A=chain(14), sample_weight=weight))
    other = alone(Problem(X[copies], y[copies], "squared", psi=L1(0.1), A=chain(14)))
    assert one.objective == pytest.approx(other.objective, rel=1e-8)


# -- in a run ----------------------------------------------------------------------------------------------------------


def stubborn(seed=6):
    """A problem that sweeps on a model do not finish: the hand-over takes place."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((16, 55)) + 1.0
    labels = np.where(rng.standard_normal(16) > 0.8, 1.0, -1.0)
    tree = incidence([((j - 1) // 2, j) for j in range(1, 55)], n_features=55)
    return Problem(X, labels, "squared-hinge", psi=L1(1e-6), A=tree)


def test_it_takes_over_where_sweeps_are_slow(monkeypatch):
    problem = stubborn()
    taken = []
    usual = Multipliers.init
    monkeypatch.setattr(Multipliers, "init", lambda self, *arguments: taken.append(self) or usual(self, *arguments))
    result = solve(problem, tol=1e-8, rho=1e3)  # a ρ at which sweeps hardly move
    assert taken
    assert result.status is Status.SOLVED


def test_a_checkpoint_after_the_hand_over_goes_on_to_the_same_bits(tmp_path):
    problem = stubborn()
    settings = {"tol": 1e-8, "rho": 1e3, "record_every": 1.0}
    whole = solve(problem, passes=60, **settings)
    path = tmp_path / "run.skadmm"
    for passes in (28, 31, 34, 60):
        resumed = solve(problem, passes=passes, checkpoint=path, checkpoint_every=0, **settings)
    np.testing.assert_array_equal(resumed.x, whole.x)
    assert resumed.passes == whole.passes


def test_what_it_refuses():
    X = np.ones((3, MAX_VARIABLES + 1))
    assert "variables" in Multipliers.applies(Problem(X, np.ones(3), "squared", psi=L1(1.0)))

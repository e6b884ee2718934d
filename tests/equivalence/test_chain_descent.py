"""Chain descent: exact on signals over graphs of every kind, with a gap that holds, and ties to the last bit."""

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp

from skadmm import Problem, Status, TrendFilter, TrendFilterCV, path, solve
from skadmm.operators import grid, incidence, stack, trend
from skadmm.regularizers import L1, SquaredL2
from skadmm.solvers.second_order import chain_layers
from skadmm.solvers.second_order.chain_descent import ChainDescent
from skadmm.solvers.second_order.chain_layers import layer_numbers, layers_of

N = 60
RNG = np.random.default_rng(0)
NOISY = np.repeat([0.0, 1.0, -0.5], 20) + 0.3 * RNG.standard_normal(N)
IDENTITY = sp.eye_array(N, format="csr")
EDGES = [(i, j, float(RNG.uniform(0.5, 2.0))) for i in range(N) for j in range(i + 1, N) if RNG.random() < 0.08]
SIGNS = [(i, j, weight if (i + j) % 3 else -weight) for i, j, weight in EDGES]
CASES = {
    "grid": {"A": grid((6, 10))},
    "grid, sample weights": {"A": grid((6, 10)), "sample_weight": RNG.uniform(0.2, 3.0, N)},
    "grid, row weights": {"A": grid((6, 10)), "weights": RNG.uniform(0.5, 1.5, 104)},
    "grid, ridge": {"A": grid((6, 10)), "omega": SquaredL2(0.3)},
    "volume": {"A": grid((3, 4, 5))},
    "graph": {"A": incidence(EDGES, n_features=N)},
    "graph with signs": {"A": incidence(SIGNS, n_features=N)},
    "graph and lasso": {"A": stack(incidence(EDGES, n_features=N), "identity", weights=[0.7, 0.3])},
    "lasso": {"A": "identity"},
    "unseen features, ridge": {"A": grid((6, 10)), "X": IDENTITY[:-5], "omega": SquaredL2(0.1)},
}


def build(case, alpha=0.005):
    case = {"X": IDENTITY, "weights": None} | CASES[case]
    parts = {name: case[name] for name in ("A", "omega", "sample_weight") if name in case}
    return Problem(case["X"], NOISY[: case["X"].shape[0]], "squared", psi=L1(alpha, case["weights"]), **parts)


def best(problem, X):
    """The optimum by CVXPY."""
    x = cp.Variable(N)
    weight = problem.sample_weight if problem.sample_weight.size else np.ones(X.shape[0])
    loss = cp.sum(cp.multiply(weight, cp.square(X @ x - problem.target))) / (2 * X.shape[0])
    bound = problem.psi.strength * (problem.psi.weights if problem.psi.weights.size else np.ones(problem.n_split))
    ridge = problem.omega.strength if isinstance(problem.omega, SquaredL2) else 0.0
    objective = loss + bound @ cp.abs(problem.constraint.A @ x) + ridge / 2 * cp.sum_squares(x)
    settings = {"tol_gap_rel": 1e-11, "tol_gap_abs": 1e-11, "tol_feas": 1e-11}
    return cp.Problem(cp.Minimize(objective)).solve(solver="CLARABEL", **settings), x.value


@pytest.mark.parametrize("case", CASES)
def test_it_agrees_with_cvxpy(case):
    problem = build(case)
    value, x = best(problem, CASES[case].get("X", IDENTITY))
    result = solve(problem, "chain-descent", tol=1e-9)
    assert result.status is Status.SOLVED
    assert (result.solver, result.stopped_on) == ("chain-descent", "gap")
    assert result.objective == pytest.approx(value, rel=1e-8)
    assert result.objective == pytest.approx(problem.objective(result.x), rel=1e-12)
    assert result.objective - value <= result.gap * value + 1e-9 * value, "the gap bounds the suboptimality"
    np.testing.assert_allclose(result.x, x, atol=1e-4)
    assert problem.kkt(result.x, result.y, result.settings["rho"] * result.dual).relative <= 1e-3


@pytest.mark.parametrize("case", ["grid", "graph"])
def test_ties_are_exact(case):
    problem = build(case, alpha=0.01)
    result = solve(problem, "chain-descent", tol=1e-8)
    _, x = best(problem, IDENTITY)
    assert np.unique(result.x).size == np.unique(x.round(5)).size < N / 2


def test_each_edge_is_in_one_layer_of_paths():
    A = CASES["graph with signs"]["A"]
    layers = layers_of(A)
    assert np.array_equal(np.sort(np.concatenate([layer.row for layer in layers])), np.arange(A.shape[0]))
    x = RNG.standard_normal(N)
    for layer in layers:
        assert np.unique(layer.order).size == layer.order.size
        along = layer.sign * x[layer.order]
        np.testing.assert_allclose(layer.entry * (along[layer.inner] - along[layer.inner + 1]), (A @ x)[layer.row])
    assert len(layers_of(grid((20, 30)))) <= 3
    star = incidence([(0, j) for j in range(1, N)], n_features=N)
    assert layer_numbers(star) is None


def test_refusals_say_why(monkeypatch):
    assert "one entry or two" in ChainDescent.applies(Problem(IDENTITY, NOISY, "squared", psi=L1(0.1), A=trend(N, 1)))
    A = sp.csr_array(np.array([[1.0, -2.0] + [0.0] * (N - 2)]))
    assert "same size" in ChainDescent.applies(Problem(IDENTITY, NOISY, "squared", psi=L1(0.1), A=A))
    assert "loss must be squared" in ChainDescent.applies(
        Problem(IDENTITY, NOISY, "huber", psi=L1(0.1), A=grid((6, 10)))
    )
    monkeypatch.setattr(chain_layers, "MAX_LAYERS", 2)
    assert "layers of chains" in ChainDescent.applies(build("graph"))


def test_graphs_get_it_by_default_and_paths_follow_it():
    problem = build("grid")
    assert solve(problem, tol=1e-6).solver == "chain-descent"
    answer = path(problem, n_alphas=8, tol=1e-8)
    assert set(answer.statuses) == {"solved"}
    assert answer.dof[0] == 1
    for alpha, loss in zip(answer.alphas, answer.losses, strict=True):
        alone = solve(problem.replace(psi=L1(alpha)), "interior-point", tol=1e-9)
        assert loss == pytest.approx(problem.loss_value(alone.x), abs=1e-5)


def test_images_and_volumes_are_certified():
    rng = np.random.default_rng(1)
    for shape in ((60, 70), (14, 15, 16)):
        image = np.zeros(shape)
        image[tuple(slice(length // 4, length // 2) for length in shape)] = 1.0
        noisy = (image + 0.3 * rng.standard_normal(shape)).ravel()
        model = TrendFilter(alpha=0.3 / noisy.size, order=0, graph=shape).fit(np.arange(noisy.size)[:, None], noisy)
        assert model.result_.status is Status.SOLVED
        assert model.result_.gap <= 1e-6
        assert model.dof_ == np.unique(model.coef_).size
        assert np.linalg.norm(model.coef_ - image.ravel()) < 0.5 * np.linalg.norm(noisy - image.ravel())


def test_cross_validation_over_a_grid_leaves_nodes_out():
    rng = np.random.default_rng(2)
    image = np.full((12, 12), 50.0)
    image[3:8, 4:9] = 52.0
    noisy = (image + 0.3 * rng.standard_normal((12, 12))).ravel()
    model = TrendFilterCV(order=0, graph=(12, 12), alphas=15).fit(np.arange(144)[:, None], noisy)
    assert model.alphas_[-1] < model.alpha_ < model.alphas_[0]
    assert np.linalg.norm(model.coef_ - image.ravel()) < 0.6 * np.linalg.norm(noisy - image.ravel())
    assert model.cv_mean_.min() < 0.5 * 0.3

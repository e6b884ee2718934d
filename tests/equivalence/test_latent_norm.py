"""overlap="latent": the model that CVXPY finds with a vector of coefficients for every group, and its certificate."""

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp

from skadmm import GroupLassoClassifier, GroupLassoRegressor

pytestmark = pytest.mark.filterwarnings("ignore:Solution may be inaccurate", "ignore:groups. .* in no group")

N, D = 80, 12
GROUPS = [[0, 1, 2, 3], [2, 3, 4, 5], [5, 6, 7], [8, 9, 0], [9, 10]]
"""Feature 11 is in no group."""
WEIGHTS = np.sqrt([len(group) for group in GROUPS])
FACTORS = np.array([1.0, 1.0, 0.0, 2.0, 0.5, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0])
OPTIONS = {
    "plain": {},
    "l1": {"l1_ratio": 0.3},
    "ridge": {"ridge": 0.1},
    "positive": {"positive": True},
    "bounds": {"bounds": (-0.3, 0.4)},
    "factors": {"penalty_factor": FACTORS},
    "scaled": {"standardize": True},
}


def table(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, D)) * np.linspace(0.5, 2.0, D)
    X[rng.random(X.shape) < 0.4] = 0.0
    coef = np.zeros(D)
    coef[[2, 3, 4, 5, 9, 10]] = [1.0, -1.0, 0.5, 1.0, 0.7, -0.7]
    return X, X @ coef + 0.3 * rng.standard_normal(N)


def placed(members):
    """The matrix that puts numbers for some features among those of all."""
    return sp.csr_array((np.ones(len(members)), (members, np.arange(len(members)))), shape=(D, len(members)))


class Latent:
    """The penalty of the parts v_g of x, formulated in them."""

    def __init__(self, alpha, scale=1.0, l1_ratio=0.0, ridge=0.0, penalty_factor=None, **_):
        f = np.ones(D) if penalty_factor is None else penalty_factor
        held = [[j for j in group if f[j] > 0.0] for group in GROUPS]
        free = [j for j in range(D) if not any(j in group for group in held)]
        parts = [cp.Variable(len(group)) for group in held]
        rest = cp.Variable(len(free))
        self.x = sum(placed(group) @ v for group, v in zip(held, parts, strict=True)) + placed(free) @ rest
        self.value = 0.0
        for weight, group, v in zip(WEIGHTS, held, parts, strict=True):
            u = cp.multiply(f[group], v)
            self.value += alpha * ((1.0 - l1_ratio) * weight * cp.norm(u) + l1_ratio * cp.norm1(u))
        self.value += alpha * l1_ratio * cp.norm1(cp.multiply(f[free], rest))
        self.value += ridge / 2 * (sum(cp.sum_squares(v) for v in parts) + cp.sum_squares(rest))
        self.coef = cp.multiply(1.0 / scale, self.x)


def optimum(X, y, loss, alpha, options):
    scale = X.std(axis=0) if options.get("standardize") else np.ones(D)
    penalty, intercept = Latent(alpha, scale, **options), cp.Variable()
    z = X @ penalty.coef + intercept
    losses = cp.sum_squares(z - y) / 2 if loss == "squared" else cp.sum(cp.logistic(cp.multiply(-y, z)))
    low, high = options.get("bounds", (0.0 if options.get("positive") else -10.0, 10.0))
    problem = cp.Problem(cp.Minimize(losses / N + penalty.value), [penalty.coef >= low, penalty.coef <= high])
    problem.solve(solver=cp.CLARABEL)
    return problem.value, penalty.coef.value


def objective(X, y, loss, alpha, options, model):
    """The objective at the coefficients of a model, with the smallest penalty of parts that add up to them."""
    coef = np.ravel(model.coef_)
    scale = X.std(axis=0) if options.get("standardize") else np.ones(D)
    penalty = Latent(alpha, scale, **options)
    smallest = cp.Problem(cp.Minimize(penalty.value), [penalty.coef == coef])
    smallest.solve(solver=cp.CLARABEL)
    z = X @ coef + np.ravel(model.intercept_)[0]
    losses = 0.5 * (z - y) ** 2 if loss == "squared" else np.logaddexp(0.0, -y * z)
    return losses.mean() + smallest.value


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("name", list(OPTIONS))
def test_the_model_is_that_of_cvxpy(name, loss, storage):
    X, y = table()
    y = y if loss == "squared" else np.where(y > 0, 1.0, -1.0)
    options, alpha = OPTIONS[name], 0.05
    cls = GroupLassoRegressor if loss == "squared" else GroupLassoClassifier
    model = cls(alpha, groups=GROUPS, overlap="latent", tol=1e-9, **options).fit(storage(X), y)
    value, coef = optimum(X, y, loss, alpha, options)
    assert model.result_.objective == pytest.approx(value, abs=1e-6)
    assert objective(X, y, loss, alpha, options, model) == pytest.approx(value, abs=1e-6)
    np.testing.assert_allclose(np.ravel(model.coef_), coef, atol=1e-3)


def test_the_l1_norm_of_the_parts_is_that_of_the_coefficients():
    """Parts of one sign have the smallest norms, so the mixture is the latent norm and ‖x‖₁."""
    X, y = table(2)
    alpha, ratio = 0.05, 0.4
    penalty, intercept = Latent((1.0 - ratio) * alpha), cp.Variable()
    losses = cp.sum_squares(X @ penalty.coef + intercept - y) / 2 / N
    problem = cp.Problem(cp.Minimize(losses + penalty.value + alpha * ratio * cp.norm1(penalty.coef)))
    problem.solve(solver=cp.CLARABEL)
    model = GroupLassoRegressor(alpha, groups=GROUPS, overlap="latent", l1_ratio=ratio, tol=1e-9).fit(X, y)
    assert model.result_.objective == pytest.approx(problem.value, abs=1e-6)
    np.testing.assert_allclose(model.coef_, penalty.coef.value, atol=1e-3)


@pytest.mark.parametrize("tol", [1e-2, 1e-5])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_the_gap_bounds_the_distance_to_the_optimum(loss, tol):
    """Also where the fit ends early: the objective in the parts is at least that of the coefficients."""
    X, y = table(3)
    y = y if loss == "squared" else np.where(y > 0, 1.0, -1.0)
    cls = GroupLassoRegressor if loss == "squared" else GroupLassoClassifier
    model = cls(0.03, groups=GROUPS, overlap="latent", tol=tol).fit(X, y)
    value, _ = optimum(X, y, loss, 0.03, {})
    reached = objective(X, y, loss, 0.03, {}, model)
    assert model.result_.gap <= tol
    assert value - 1e-7 <= reached <= model.result_.objective + 1e-7
    assert reached - value <= model.result_.gap * max(1.0, abs(reached)) + 1e-7


def test_several_outputs_share_the_parts_of_a_group():
    """A norm across outputs is that of the parts, and a graph over outputs joins the coefficients."""
    X, y = table()
    Y = np.column_stack([y, np.roll(y, 1)])
    alpha, edge = 0.05, [(0, 1)]
    parts = [cp.Variable((len(group), 2)) for group in GROUPS]
    rest, intercept = cp.Variable((1, 2)), cp.Variable((1, 2))
    W = sum(placed(group) @ v for group, v in zip(GROUPS, parts, strict=True)) + placed([11]) @ rest
    losses = cp.sum_squares(X @ W + np.ones((N, 1)) @ intercept - Y) / 2 / N
    across = alpha * sum(weight * cp.norm(v, "fro") for weight, v in zip(WEIGHTS, parts, strict=True))
    for options, more in (({}, 0.0), ({"task_graph": edge}, alpha * cp.norm1(W[:, 0] - W[:, 1]))):
        problem = cp.Problem(cp.Minimize(losses + across + more))
        problem.solve(solver=cp.CLARABEL)
        model = GroupLassoRegressor(
            alpha, groups=GROUPS, overlap="latent", output_penalty="rows", tol=1e-9, **options
        ).fit(X, Y)
        assert model.result_.objective == pytest.approx(problem.value, abs=1e-6)
        np.testing.assert_allclose(model.coef_, W.value.T, atol=1e-3)


@pytest.mark.parametrize("cls", [GroupLassoRegressor, GroupLassoClassifier])
@pytest.mark.parametrize("ratio", [0.0, 0.4])
def test_without_overlap_both_penalties_are_one(cls, ratio):
    X, y = table(1)
    y = y if cls is GroupLassoRegressor else y > 0
    groups = [[0, 3, 6, 9], [1, 2], [11, 10, 4], [5, 7, 8]]
    both = [
        cls(0.04, groups=groups, l1_ratio=ratio, overlap=overlap, ridge=0.01, tol=1e-11).fit(X, y)
        for overlap in ("shared", "latent")
    ]
    np.testing.assert_allclose(both[0].coef_, both[1].coef_, atol=1e-6)
    np.testing.assert_array_equal(both[0].active_groups_, both[1].active_groups_)
    np.testing.assert_array_equal(both[0].dof_, both[1].dof_)
    for group, part in zip(groups, both[1].latent_coef_, strict=True):
        np.testing.assert_array_equal(part, both[1].coef_[..., group])

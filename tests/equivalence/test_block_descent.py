"""Block descent: proximal steps and sweeps against slow twins, answers against CVXPY, paths against separate solves."""

import itertools

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from runs import assert_same, killed_after
from sklearn.linear_model import LassoCV

from skadmm import FusedLassoRegressorCV, GroupLassoRegressor, GroupLassoRegressorCV, Problem, Status, path, solve
from skadmm.operators import chain, overlapping_groups
from skadmm.regularizers import L1, Box, ElasticNet, GroupL2, GroupLInf, NonNegative, SquaredL2, Stacked
from skadmm.solvers.second_order.block_descent import BlockDescent
from skadmm.solvers.second_order.block_model import BlockModel
from skadmm.solvers.second_order.block_set import BlockSet, add_cross_products
from skadmm.solvers.second_order.block_sweeps import add_rows_of, block_prox, support_system, sweeps, workspace
from skadmm.solvers.second_order.blocks import block_penalty
from skadmm.solvers.second_order.free_features import FreeFeatures

N, D = 60, 12
GROUPS = np.repeat(np.arange(4), 3)
LOSSES = ("squared", "logistic", "huber", "squared-hinge")


def data(loss, seed=0, n=N, d=D, sparse=False):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    if sparse:
        X *= rng.random((n, d)) < 0.4
    target = X[:, :4] @ [1.0, -2.0, 1.5, 0.5] + 0.5 * rng.standard_normal(n)
    if loss in ("logistic", "squared-hinge"):
        target = np.where(target > 0, 1.0, -1.0)
    return (sp.csr_array(X) if sparse else X), target


def mean_loss(loss, X, target, x):
    z = (X.toarray() if sp.issparse(X) else X) @ x
    losses = {
        "squared": lambda: 0.5 * cp.sum_squares(z - target),
        "logistic": lambda: cp.sum(cp.logistic(-cp.multiply(target, z))),
        "huber": lambda: 0.5 * cp.sum(cp.huber(z - target, 1.0)),
        "squared-hinge": lambda: 0.5 * cp.sum_squares(cp.pos(1 - cp.multiply(target, z))),
    }
    return losses[loss]() / X.shape[0]


def group_norms(x, p):
    return sum(cp.norm(x[g == GROUPS], p) for g in range(4))


SPARSE_GROUPS = overlapping_groups(
    [np.flatnonzero(g == GROUPS) for g in range(4)] + [[j] for j in range(D)], D, weights=[0.05] * 4 + [0.02] * D
)
PENALTIES = {
    "l1": ({"psi": L1(0.05)}, lambda x: 0.05 * cp.norm1(x)),
    "weighted l1": (
        {"psi": L1(0.05, weights=np.linspace(0, 2, D)), "A": 2.0 * sp.eye_array(D, format="csr")},
        lambda x: 0.1 * cp.sum(cp.multiply(np.linspace(0, 2, D), cp.abs(x))),
    ),
    "elastic net": (
        {"psi": ElasticNet(0.1, 0.5)},
        lambda x: 0.05 * cp.norm1(x) + 0.025 * cp.sum_squares(x),
    ),
    "groups": ({"psi": GroupL2(0.1, GROUPS)}, lambda x: 0.1 * group_norms(x, 2)),
    "groups and ridge": (
        {"psi": GroupL2(0.1, GROUPS), "omega": SquaredL2(0.05)},
        lambda x: 0.1 * group_norms(x, 2) + 0.025 * cp.sum_squares(x),
    ),
    "largest entries of groups": ({"psi": GroupLInf(0.1, GROUPS)}, lambda x: 0.1 * group_norms(x, "inf")),
    "sparse groups": (
        {"psi": GroupL2(1.0, SPARSE_GROUPS[1]), "A": SPARSE_GROUPS[0]},
        lambda x: 0.05 * group_norms(x, 2) + 0.02 * cp.norm1(x),
    ),
    "non-negative": ({"psi": L1(0.05), "omega": NonNegative()}, lambda x: 0.05 * cp.norm1(x), [0.0, np.inf]),
    "box": ({"psi": L1(0.05), "omega": Box(-0.3, 0.7)}, lambda x: 0.05 * cp.norm1(x), [-0.3, 0.7]),
}


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
@pytest.mark.parametrize("storage", ["dense", "sparse"])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("name", list(PENALTIES))
def test_the_minimiser_is_that_of_cvxpy(name, loss, storage):
    parts, penalty, *bounds = PENALTIES[name]
    X, target = data(loss, sparse=storage == "sparse")
    problem = Problem(X, target, loss=loss, **parts)
    result = solve(problem, "block-descent", tol=1e-8, passes=2000)
    x = cp.Variable(D)
    limits = [x >= bounds[0][0]] if bounds else []
    limits += [x <= bounds[0][1]] if bounds and np.isfinite(bounds[0][1]) else []
    reference = cp.Problem(cp.Minimize(mean_loss(loss, X, target, x) + penalty(x)), limits)
    reference.solve(solver="CLARABEL")
    assert result.solver == "block-descent"
    assert result.status is Status.SOLVED
    assert result.objective <= reference.value * (1 + 1e-6) + 1e-9
    assert result.objective >= reference.value * (1 - 1e-5)  # CVXPY's own accuracy where it warns
    if not np.isnan(result.gap):
        assert result.objective * (1 - result.gap) <= reference.value * (1 + 1e-7)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_an_unpenalised_intercept(loss):
    X, target = data(loss)
    table = np.column_stack([X + 3.0, np.ones(N)])
    A = sp.csr_array(sp.hstack([sp.eye_array(D), sp.csr_array((D, 1))]))
    problem = Problem(table, target, loss=loss, psi=GroupL2(0.1, GROUPS), A=A)
    result = solve(problem, "block-descent", tol=1e-8, passes=1000)
    other = solve(problem, "newton-admm", tol=1e-8, passes=1000)
    assert result.status is Status.SOLVED
    assert result.objective == pytest.approx(other.objective, rel=1e-7)


def with_intercept(X):
    column = np.ones((X.shape[0], 1))
    return sp.csr_array(sp.hstack([X, sp.csr_array(column)])) if sp.issparse(X) else np.hstack([X, column])


@pytest.mark.parametrize("storage", ["dense", "sparse"])
@pytest.mark.parametrize("loss", LOSSES)
def test_an_offset_of_the_columns_changes_the_intercept_alone(loss, storage):
    X, target = data(loss, sparse=storage == "sparse")
    A = sp.csr_array(sp.hstack([sp.eye_array(D), sp.csr_array((D, 1))]))
    moved = X + 1e4 if storage == "dense" else sp.csr_array(X.toarray() + 10.0)
    results = [
        solve(Problem(with_intercept(table), target, loss=loss, psi=GroupL2(0.1, GROUPS), A=A), tol=1e-7)
        for table in (X, moved)
    ]
    assert [result.status for result in results] == [Status.SOLVED] * 2
    assert results[1].solver == "block-descent"
    assert results[1].passes <= 30
    assert results[0].objective == pytest.approx(results[1].objective, rel=1e-6)
    np.testing.assert_allclose(results[0].x[:D], results[1].x[:D], atol=1e-3)


# -- twins -------------------------------------------------------------------------------------------------------


def slow_prox(v, step, l1, lower, upper, norm, group):
    """By CVXPY, from the definition."""
    u = cp.Variable(v.size)
    value = 0.5 * cp.sum_squares(u - v) + step * (l1 @ cp.abs(u))
    value += step * group * (cp.norm(u, 2) if norm == 1 else cp.norm(u, "inf")) if norm else 0.0
    limits = [u >= np.maximum(lower, -1e6), u <= np.minimum(upper, 1e6)]
    cp.Problem(cp.Minimize(value), limits).solve(solver="CLARABEL")
    return u.value


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("norm", [0, 1, 2])
def test_the_proximal_step_of_a_block(norm, seed):
    rng = np.random.default_rng(seed)
    size = 1 if norm == 0 else 4
    v, l1, group, step = 2 * rng.standard_normal(size), rng.random(size), float(rng.random()), 0.7
    lower, upper = np.full(size, -np.inf), np.full(size, np.inf)
    if norm == 0:
        lower, upper = np.array([-0.5]), np.array([0.8])
    out = np.empty(size)
    block_prox(v, 0, size, step, l1, lower, upper, norm, group, out)
    np.testing.assert_allclose(out, slow_prox(v, step, l1, lower, upper, norm, group), atol=1e-5)


def random_model(seed, *, groups):
    rng = np.random.default_rng(seed)
    table = rng.standard_normal((30, 9))
    G = table.T @ table / 30
    starts = np.array([0, 3, 6, 9]) if groups else np.arange(10)
    count = starts.size - 1
    bound = np.array([np.linalg.eigvalsh(G[a:b, a:b])[-1] for a, b in itertools.pairwise(starts)])
    free = np.full(9, np.inf)
    model = BlockModel(
        G, bound, starts, rng.random(9) * 0.1, -free, free, np.full(count, int(groups)), rng.random(count) * groups
    )
    return model, rng.standard_normal(9), rng.standard_normal(9)


def slow_sweep(model, x, q):
    """One sweep from the equations: x_b ← prox of the block at x_b − q_b / L_b, q ← q + G Δx."""
    for b in range(model.starts.size - 1):
        part = slice(model.starts[b], model.starts[b + 1])
        v = x[part] - q[part] / model.bound[b]
        u = np.sign(v) * np.maximum(np.abs(v) - model.l1[part] / model.bound[b], 0.0)
        if model.norm[b] == 1:
            size = np.linalg.norm(u)
            u *= max(0.0, 1.0 - model.group[b] / model.bound[b] / size) if size > 0 else 0.0
        change = np.zeros_like(x)
        change[part] = u - x[part]
        x, q = x + change, q + model.G @ change
    return x, q


@pytest.mark.parametrize("groups", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_sweeps_are_those_of_the_slow_twin(groups, seed):
    model, x, q = random_model(seed, groups=groups)
    for count in range(1, 6):
        fast_x, fast_q = x.copy(), q.copy()
        sweeps(model, workspace(x.size, model.norm.size), fast_x, fast_q, 0.0, count, 0)
        slow_x, slow_q = x.copy(), q.copy()
        for _ in range(count):
            slow_x, slow_q = slow_sweep(model, slow_x, slow_q)
        np.testing.assert_allclose(fast_x, slow_x, atol=1e-12)
        np.testing.assert_allclose(fast_q, slow_q, atol=1e-12)


@pytest.mark.parametrize("groups", [False, True])
def test_the_system_on_a_support_has_the_derivatives_of_the_model(groups):
    model, x, q = random_model(4, groups=groups)
    support = np.array([0, 2, 3, 4, 5, 8])
    block = np.searchsorted(model.starts, support, side="right") - 1
    here = x[support]
    norms = np.sqrt(np.bincount(block, here**2, minlength=model.group.size))
    hessian, gradient = np.zeros((6, 6), order="F"), np.empty(6)
    support_system(model.G, support, block, here, q, model.l1, model.group, norms, hessian, gradient)

    def slope(values):
        norms = np.sqrt(np.bincount(block, values**2, minlength=model.group.size))
        smooth = q[support] + model.G[np.ix_(support, support)] @ (values - here)
        return smooth + model.l1[support] * np.sign(values) + model.group[block] * values / norms[block]

    np.testing.assert_allclose(gradient, slope(here), atol=1e-13)
    shifts = 1e-6 * np.eye(6)
    numeric = np.array([(slope(here + h) - slope(here - h)) / 2e-6 for h in shifts])
    np.testing.assert_allclose(np.tril(hessian), np.tril(numeric), atol=1e-8)
    out = np.ones(7)
    add_rows_of(model.G, support, here, out)
    np.testing.assert_allclose(out, 1.0 + here @ model.G[support, :7], atol=1e-13)


@pytest.mark.parametrize("groups", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_a_newton_step_on_the_support_changes_nothing_but_the_speed(groups, seed):
    model, x, q = random_model(seed, groups=groups)
    slow_x, slow_q = x.copy(), q.copy()
    for _ in range(3000):
        slow_x, slow_q = slow_sweep(model, slow_x, slow_q)
    assert model.minimise(x, q, 1e-13, 100, 3, 5)
    np.testing.assert_allclose(x, slow_x, atol=1e-9)


class Source:
    """What a working set is drawn from, with free features."""

    def __init__(self, seed, *, sparse, weights):
        rng = np.random.default_rng(seed)
        X, target = data("squared", seed, n=40, sparse=sparse)
        self.problem = Problem(X, target, loss="squared", psi=GroupL2(0.1, GROUPS))
        self.penalty, _ = block_penalty(self.problem)
        self.columns = X.tocsc() if sparse else X + 5.0
        F = np.column_stack([np.ones(40), rng.standard_normal(40)])
        self.free = FreeFeatures(F, np.arange(2), np.empty(0))
        self.quadratic, self.damping, self.weights = not weights, 0.0, rng.random(40) if weights else np.empty(0)

    def slow_gram(self, features):
        """ZᵀDZ/n less what the free columns explain of it, from the definition by least squares."""
        root = np.sqrt(self.weights if self.weights.size else np.ones(40))[:, None]
        table = self.columns.toarray() if sp.issparse(self.columns) else self.columns
        Z, F = root * table[:, features], root * self.free.columns
        rest = Z - F @ np.linalg.lstsq(F, Z, rcond=None)[0]
        return rest.T @ rest / 40


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_the_gram_matrix_of_a_growing_set_is_that_of_least_squares(sparse, weights):
    source = Source(1, sparse=sparse, weights=weights)
    working = BlockSet(weights=source.weights, centre=np.zeros((2, 0)), shift=np.zeros((2, 0)))
    for blocks in ([2], [0, 3], [1]):
        working.grow(source, np.array(blocks))
        expected = source.slow_gram(working.features)
        np.testing.assert_allclose(working.G[: working.size, : working.size], expected, atol=1e-12)
    source.weights = np.linspace(0.5, 1.5, 40) if weights else source.weights
    working.reweigh(source, source.weights)
    np.testing.assert_allclose(working.G[:D, :D], source.slow_gram(working.features), atol=1e-12)


@pytest.mark.parametrize("first", [0, 3])
def test_cross_products_of_sparse_columns(first):
    rng = np.random.default_rng(2)
    X, weights = sp.csr_array(rng.standard_normal((20, 7)) * (rng.random((20, 7)) < 0.5)), rng.random(20)
    out = np.zeros((7 - first, 7))
    add_cross_products(X.indptr, X.indices, X.data, weights, first, out)
    slow = np.zeros((7, 7))
    for i, row in enumerate(X.toarray()):
        slow += weights[i] * np.outer(row, row)
    np.testing.assert_allclose(out, np.tril(slow)[first:], atol=1e-13)


def test_free_coefficients_are_settled_at_their_optimum():
    X, target = data("logistic")
    free = FreeFeatures(np.column_stack([np.ones(N), X[:, :2]]), np.arange(3), np.empty(0))
    margins, slopes, curvatures = 0.3 * X[:, 3], np.empty(N), np.empty(N)
    start = margins.copy()

    def expand():
        slopes[:] = -target / (1 + np.exp(target * margins))
        curvatures[:] = slopes * (-target - slopes)
        return float(np.log1p(np.exp(-target * margins)).mean())

    change, loss = free.settle(margins, slopes, curvatures, expand, expand())
    assert free.orthogonal(slopes)
    np.testing.assert_allclose(margins, start + free.columns @ change)
    w = cp.Variable(3)
    best = cp.Problem(cp.Minimize(cp.sum(cp.logistic(-cp.multiply(target, start + free.columns @ w))) / N))
    best.solve(solver="CLARABEL")
    assert loss == pytest.approx(best.value, rel=1e-7)


# -- what it takes -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ({"psi": L1(0.1), "A": chain(D)}, "every row of A must hold one feature"),
        ({"psi": L1(0.1), "A": sp.eye_array(D, format="csr"), "c": np.ones(D)}, "c = 0"),
        ({"psi": Stacked(GroupL2(0.1, GROUPS), GroupL2(0.1, GROUPS), D),
          "A": sp.vstack([sp.eye_array(D), sp.eye_array(D)], format="csr")}, "groups share features"),
        ({"psi": GroupL2(0.1, GROUPS), "A": sp.diags_array(np.arange(1.0, D + 1)).tocsr()}, "different sizes"),
    ],
)  # fmt: skip
def test_what_it_refuses_it_names(parts, reason):
    X, target = data("squared")
    problem = Problem(X, target, loss="squared", **parts)
    assert reason in BlockDescent.applies(problem)
    with pytest.raises(ValueError, match="cannot take this problem"):
        solve(problem, "block-descent")


def test_groups_get_it_by_default_and_in_any_number():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 6000))
    target = X[:, :10] @ rng.standard_normal(10) + 0.1 * rng.standard_normal(80)
    model = GroupLassoRegressor(alpha=0.3, groups=np.repeat(np.arange(1200), 5)).fit(X, target)
    assert model.result_.solver == "block-descent"
    assert model.result_.status is Status.SOLVED
    assert model.result_.gap <= 1e-6


# -- paths -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("name", ["l1", "weighted l1", "elastic net", "groups", "groups and ridge", "sparse groups"])
def test_a_path_has_the_gaps_it_says(name, loss):
    parts, _ = PENALTIES[name][:2]
    X, target = data(loss)
    problem = Problem(X, target, loss=loss, **parts)
    strengths = problem.psi.strength * np.geomspace(4.0, 0.2, 8)
    found = path(problem, strengths, tol=1e-7, passes=500, method="block-descent")  # nobody helps out
    assert set(found.statuses) == {"solved"}
    for k, strength in enumerate(strengths):
        alone = problem.replace(psi=problem.psi._replace(strength=strength))
        best = solve(alone, "newton-admm", tol=1e-9, passes=2000).objective
        value = alone.objective(found.x[k])
        assert value <= best * (1 + 2e-7) + 1e-12
        assert value * (1 - found.gaps[k]) <= best * (1 + 1e-8)


def test_cross_validation_chooses_as_scikit_learn_does():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((200, 300))
    target = X[:, :8] @ rng.standard_normal(8) + rng.standard_normal(200)
    ours = FusedLassoRegressorCV(l1_ratio=1, alphas=30).fit(X, target)
    theirs = LassoCV(alphas=30).fit(X, target)
    np.testing.assert_allclose(ours.alphas_, theirs.alphas_, rtol=1e-8)
    assert ours.alpha_ == pytest.approx(theirs.alpha_)
    np.testing.assert_allclose(ours.cv_mean_, 0.5 * theirs.mse_path_.mean(axis=1), rtol=2e-2)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=2e-3)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_killed_and_resumed_it_gives_the_same_bits(loss, tmp_path, monkeypatch):
    X, target = data(loss, n=100, d=D)
    problem = Problem(X, target, loss=loss, psi=GroupL2(0.02, GROUPS))
    run = {"problem": problem, "method": "block-descent", "tol": 1e-12, "passes": 60, "options": {"first_set": 3}}
    whole = solve(**run)
    for writes in (1, 2, 3):
        killed_after(monkeypatch, tmp_path / f"{writes}", writes, **run)
        assert_same(solve(checkpoint=tmp_path / f"{writes}", checkpoint_every=0, **run), whole)


def test_columns_without_a_penalty_do_not_bring_all_features_into_the_set(monkeypatch):
    """With more columns that nothing penalises than are eliminated, a path with few samples nearly interpolates, and
    the strong rule keeps most blocks: their Gram matrix would have d² entries."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3000))
    y = X[:, :3] @ [2.0, -1.0, 1.0] + rng.standard_normal(60)
    sizes, grow = [], BlockSet.grow

    def recorded(self, source, blocks):
        grow(self, source, blocks)
        sizes.append(self.size)

    monkeypatch.setattr(BlockSet, "grow", recorded)
    model = GroupLassoRegressorCV(groups=np.arange(2985).reshape(-1, 5).tolist(), alphas=20, cv=3)
    with pytest.warns(UserWarning, match="in no group"):
        model.fit(X, y)
    assert model.result_.status == Status.SOLVED
    assert 0 < max(sizes) < 1500

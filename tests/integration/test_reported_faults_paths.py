"""Faults that users reported in paths, alpha_max, trend filters and information criteria, each with its test."""

import math
import tracemalloc
from fractions import Fraction
from itertools import accumulate
from typing import NamedTuple

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import norm, poisson

from skadmm import FusedLassoRegressorCV, Problem, TrendFilter, TrendFilterCV, alpha_max, losses, path, solve
from skadmm.estimators._trends import GraphTrend, graph_trend
from skadmm.kernels.compile import facts
from skadmm.losses import Huber
from skadmm.operators import chain, grid, incidence, overlapping_groups, stack, trend
from skadmm.operators.discrete_spline import interpolation
from skadmm.operators.line import as_line, line_at
from skadmm.operators.trend import spaced_trend
from skadmm.problem import existence
from skadmm.problem.structure import degrees_of_freedom, rank
from skadmm.regularizers import L1, L2, Box, ElasticNet, GroupL2, GroupLInf, LInf, NonNegative, SquaredL2, Stacked
from skadmm.regularizers._base import checked_strength, define, define_separable, dual_norm, shrunk
from skadmm.run import memory
from skadmm.run.follow import with_new_strength as with_strength
from skadmm.run.result import Status

# -- trend filters -------------------------------------------------------------------------------------------


def exact_multiplier(t, order, r):
    """The w with Dᵀw = r less its polynomial part, in rational numbers."""
    t, r = [Fraction(v) for v in t], [Fraction(v) for v in r]
    powers = [[v**m for v in t] for m in range(order + 1)]
    system = [[sum(map(Fraction.__mul__, p, other)) for other in (*powers, r)] for p in powers]
    for i in range(order + 1):
        for j in range(order + 1):
            if j != i:
                factor = system[j][i] / system[i][i]
                system[j] = [a - factor * b for a, b in zip(system[j], system[i], strict=True)]
    coefficients = [system[i][-1] / system[i][i] for i in range(order + 1)]
    v = [a - sum(c * p[i] for c, p in zip(coefficients, powers, strict=True)) for i, a in enumerate(r)]
    for j in range(order + 1):
        sums = list(accumulate(v))
        assert sums[-1] == 0
        v = [-a for a in sums[:-1]]
        if j < order:
            v = [a * (t[i + j + 1] - t[i]) / (j + 1) for i, a in enumerate(v)]
    return np.array([float(a) for a in v])


@pytest.mark.parametrize("order", [0, 1, 2, 3])
@pytest.mark.parametrize("even", [True, False])
def test_the_multiplier_along_a_line_is_exact(order, even):
    rng = np.random.default_rng(order)
    n = 1500
    t = np.arange(float(n)) if even else np.unique(rng.integers(0, 20 * n, n)).astype(float)
    for r in (rng.standard_normal(t.size), (-1.0) ** np.arange(t.size), 50.0 + rng.standard_normal(t.size)):
        line = as_line(trend(n, order)) if even else line_at(t, order)
        expected = exact_multiplier(line.t, order, r)
        np.testing.assert_allclose(line.multiplier(r), expected, rtol=0, atol=1e-11 * np.abs(expected).max())


@pytest.mark.parametrize("order", [0, 1, 2, 3])
def test_the_multiplier_belongs_to_the_matrix(order):
    rng = np.random.default_rng(0)
    t = np.sort(rng.uniform(0, 3, 25))
    line, D = line_at(t, order), spaced_trend(t, order)
    w = rng.standard_normal(D.shape[0])
    np.testing.assert_allclose(line.multiplier(D.T @ w), w, atol=1e-9 * np.abs(w).max())
    np.testing.assert_allclose(D @ line.null_space(), 0.0, atol=1e-9 * abs(D).max())
    scaled = sp.csr_array(sp.diags_array(rng.uniform(1, 2, 25 - 1 - order)) @ trend(25, order))
    np.testing.assert_allclose(as_line(scaled).multiplier(scaled.T @ w), w, atol=1e-9)
    assert as_line(stack(chain(25), "identity")) is None
    assert as_line(sp.csr_array(D)) is None or order == 0


@pytest.mark.parametrize("order", [1, 2, 3])
def test_alpha_max_of_a_long_signal(order):
    """w by repeated sums in rational numbers; floating point through AAᵀ had lost everything at this length."""
    n = 4000
    rng = np.random.default_rng(order)
    noisy = 1.0 + 2.0 * np.arange(n) / n + 0.3 * rng.standard_normal(n)
    model = TrendFilterCV(order=order, alphas=2, cv=2)
    t = np.arange(float(n))[:, None]
    X, y, weight = model._read(t, noisy, None)
    prepared = model._prepare(X, weight)
    exact = np.abs(exact_multiplier(range(n), order, noisy)).max() / n
    assert model._alpha_max(prepared, y) == pytest.approx(exact, rel=1e-10)


@pytest.mark.parametrize(("order", "n"), [(1, 1000), (2, 1000), (3, 500)])
def test_a_noisy_line_has_few_degrees_of_freedom(order, n):
    rng = np.random.default_rng(0)
    noisy = 1.0 + 2.0 * np.arange(n) / n + 0.3 * rng.standard_normal(n)
    model = TrendFilterCV(order=order, alphas=6, cv=3).fit(np.arange(float(n))[:, None], noisy)
    assert model.result_.status is Status.SOLVED
    assert model.dof_ <= order + 4
    assert np.abs(model.coef_ - 1.0 - 2.0 * np.arange(n) / n).max() < 0.2


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("share", [1.001, 0.9, 0.01])
def test_long_signals_are_solved_exactly(order, share):
    """The optimality conditions: Hx + Aᵀu = q by repeated sums, |u| ≤ alpha, and u = ±alpha at every knot."""
    n = 5000
    rng = np.random.default_rng(1)
    t = np.arange(float(n))
    target = np.sin(6 * t / n) + 0.3 * rng.standard_normal(n)
    A, line = spaced_trend(t, order), line_at(t, order)
    X = sp.eye_array(n, format="csr")
    alpha = share * alpha_max(Problem(X, target, loss="squared", psi=L1(1.0), A=A), line)
    result = solve(Problem(X, target, loss="squared", psi=L1(alpha), A=A), "interior-point", tol=1e-6)
    assert result.status is Status.SOLVED
    u = line.multiplier((target - result.x) / n)  # unique
    assert np.abs(u).max() <= alpha * (1 + 1e-7)
    knots = np.flatnonzero(result.y)
    assert (knots.size == 0) == (share > 1)
    np.testing.assert_allclose(u[knots], alpha * np.sign(result.y[knots]), rtol=1e-7)
    # y is Ax: what repeated sums of it leave of x is a polynomial.
    particular = result.y
    for _ in range(order + 1):
        particular = np.concatenate([[0.0], np.cumsum(particular)])
    rest = result.x - particular
    basis = line.null_space()
    np.testing.assert_allclose(basis @ (basis.T @ rest), rest, atol=1e-9 * np.abs(particular).max() + 1e-12)


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("n", [50, 10_000])
def test_a_polynomial_has_order_plus_one_degrees_of_freedom(order, n):
    t = np.linspace(-1, 1, n)
    x = np.polynomial.polynomial.polyval(t, np.arange(1.0, order + 2))
    assert degrees_of_freedom(trend(n, order), x) == order + 1


@pytest.mark.parametrize("order", [1, 2])
def test_degrees_of_freedom_of_a_table_are_knots_plus_order_plus_one(order):
    rng = np.random.default_rng(0)
    truth = np.interp(np.arange(40), [0, 15, 39], [0.0, 1.0, -0.5])
    X = rng.standard_normal((300, 40))
    model = TrendFilter(alpha=0.02, order=order).fit(X, X @ truth + 0.3 * rng.standard_normal(300))
    knots = np.count_nonzero(np.abs(np.diff(model.coef_, order + 1)) > 1e-7)
    assert model.dof_ == knots + order + 1


def test_rank_of_sparse_matrices():
    rng = np.random.default_rng(0)
    for _ in range(30):
        m, d = rng.integers(1, 12, 2)
        A = np.round(rng.standard_normal((m, d)) * (rng.random((m, d)) < 0.3), 1)
        A[rng.integers(m)] = A[0]
        assert rank(sp.csr_array(A)) == np.linalg.matrix_rank(A)


@pytest.mark.parametrize("order", [0, 1, 2, 3])
def test_degrees_of_freedom_over_a_graph(order):
    rng = np.random.default_rng(order)
    edges = [(0, 1), (1, 2), (2, 3), (3, 0), (4, 5), (5, 6), (6, 4), (6, 7)]
    G = incidence(edges, n_features=9)
    D = graph_trend(G, order)
    for _ in range(30):
        y = (rng.random(D.shape[0]) < 0.5).astype(float)
        expected = 9 - np.linalg.matrix_rank(D.toarray()[y == 0]) if np.any(y == 0) else 9
        assert GraphTrend(G, order).dof(y) == expected


@pytest.mark.parametrize("order", [0, 1, 2, 3])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_degrees_of_freedom_of_a_signal_over_a_graph(order, sign):
    rng = np.random.default_rng(3)
    ends = [(i, i + 1) for i in range(29)] + [(0, 2), (5, 9), (12, 20)]
    edges = [(i, j, sign if (i, j) == (5, 9) else 1.0) for i, j in ends]
    t = np.arange(30.0)
    signal = np.sin(t / 2) + 0.1 * rng.standard_normal(30)
    model = TrendFilter(alpha=0.05, order=order, graph=edges, tol=1e-9).fit(t[:, None], signal)
    D = graph_trend(incidence(edges, n_features=30), order).toarray()
    assert model.dof_ == 30 - np.linalg.matrix_rank(D[np.abs(D @ model.coef_) < 1e-9])


@pytest.mark.parametrize("order", [0, 1, 2, 3])
@pytest.mark.parametrize("negative", [[(0, 2)], [(2, 3), (7, 8)]], ids=["unbalanced", "balanced"])
def test_largest_alpha_over_a_graph_with_signs(order, negative):
    rng = np.random.default_rng(5)
    ends = [(i, i + 1) for i in range(11)] + [(0, 2), (4, 6)]
    edges = [(i, j, -1.0 if (i, j) in negative else 1.0) for i, j in ends]
    t = np.repeat(np.arange(12.0), 3)
    signal = np.cos(t) + 0.1 * rng.standard_normal(t.size)
    top = TrendFilterCV(order=order, graph=edges, alphas=3, cv=3).fit(t[:, None], signal).alphas_[0]
    D = graph_trend(incidence(edges, n_features=12), order)

    def rest(alpha):
        x = cp.Variable(12)
        objective = cp.sum_squares(x[t.astype(int)] - signal) / (2 * t.size) + alpha * cp.norm1(D @ x)
        cp.Problem(cp.Minimize(objective)).solve(solver="CLARABEL", tol_gap_rel=1e-12, tol_gap_abs=1e-12)
        return np.abs(D @ x.value).max()

    assert rest(1.001 * top) < 1e-6 * rest(0.5 * top)
    assert rest(0.98 * top) > 1e-3 * rest(0.5 * top)


# -- alpha_max -----------------------------------------------------------------------------------------------

RNG = np.random.default_rng(3)
X = RNG.standard_normal((60, 8))
Y = X @ np.array([1.0, 1, 1, 0, 0, -1, -1, 0]) + 0.5 * RNG.standard_normal(60)
RING = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 6), (6, 7), (7, 0), (0, 4)]
WEIGHTS = np.array([1.0, 2.0, 0.3, 1.5, 0.7, 1.0, 0.5, 3.0, 1.0, 0.1, 2.0, 1.0, 0.5, 1.0, 1.0])
HALVES = [[0, 1, 2], [3, 4], [5, 6, 7]]


def largest(A, psi, omega, alpha, rows=slice(None)):
    """The largest |Ax| on the rows at CVXPY's solution."""
    x = cp.Variable(8)
    value, constraints = omega(x)
    objective = cp.sum_squares(X @ x - Y) / 120 + alpha * psi(A @ x) + value
    tight = {"tol_gap_rel": 1e-10, "tol_gap_abs": 1e-10}
    cp.Problem(cp.Minimize(objective), constraints).solve(solver="CLARABEL", **tight)
    return np.abs((A @ x.value)[rows]).max()


NOTHING = (None, lambda x: (0.0, []))
PENALTIES = {
    "l1": (L1(1.0), cp.norm1),
    "elastic net": (ElasticNet(1.0, 0.3), lambda y: 0.3 * cp.norm1(y) + 0.35 * cp.sum_squares(y)),
    "l2": (L2(1.0), cp.norm2),
    "linf": (LInf(1.0), cp.norm_inf),
    "group l2": (GroupL2(1.0, HALVES), lambda y: sum(cp.norm2(y[g]) for g in HALVES)),
    "group linf": (GroupLInf(1.0, HALVES), lambda y: sum(cp.norm_inf(y[g]) for g in HALVES)),
}
OMEGAS = {
    "none": NOTHING,
    "ridge": (SquaredL2(0.3), lambda x: (0.15 * cp.sum_squares(x), [])),
    "l1": (L1(0.1), lambda x: (0.1 * cp.norm1(x), [])),
    "elastic net": (ElasticNet(0.2, 0.4), lambda x: (0.08 * cp.norm1(x) + 0.06 * cp.sum_squares(x), [])),
    "non-negative": (NonNegative(), lambda x: (0.0, [x >= 0])),
    "box": (Box(-0.05, 0.2), lambda x: (0.0, [x >= -0.05, x <= 0.2])),
}
MATRICES = {
    "identity": sp.eye_array(8, format="csr"),
    "chain": chain(8),
    "chain and identity": stack(chain(8), "identity", weights=[0.7, 0.3]),
    "ring": incidence(RING, n_features=8),
    "two parts": incidence([(0, 1), (1, 2), (4, 5), (5, 6), (6, 4)], n_features=8),
    "trend": trend(8, 1),
    "trend and identity": stack(trend(8, 1), "identity", weights=[0.7, 0.3]),
}


def is_the_threshold(problem, A, psi, omega, rows=slice(None)):
    top = alpha_max(problem)
    if top == 0.0:
        assert largest(A, psi, omega, 0.0, rows) < 1e-5
        return
    assert largest(A, psi, omega, 1.002 * top, rows) < 1e-5
    assert largest(A, psi, omega, 0.98 * top, rows) > 1e-4


@pytest.mark.parametrize("name", PENALTIES)
def test_alpha_max_of_each_penalty(name):
    reg, psi = PENALTIES[name]
    is_the_threshold(Problem(X, Y, loss="squared", psi=reg), MATRICES["identity"], psi, NOTHING[1])


def test_alpha_max_of_each_penalty_with_the_logistic_loss():
    """The dual norm of the gradient at zero."""
    g = X.T @ -np.sign(Y) / 120
    expected = {
        "l1": np.abs(g).max(),
        "elastic net": np.abs(g).max() / 0.3,
        "l2": np.linalg.norm(g),
        "linf": np.abs(g).sum(),
        "group l2": max(np.linalg.norm(g[group]) for group in HALVES),
        "group linf": max(np.abs(g[group]).sum() for group in HALVES),
    }
    for name, (reg, _) in PENALTIES.items():
        assert alpha_max(Problem(X, np.sign(Y), psi=reg)) == pytest.approx(expected[name], rel=1e-12)


@pytest.mark.parametrize("omega", OMEGAS)
@pytest.mark.parametrize("matrix", MATRICES)
def test_alpha_max_beside_another_penalty(omega, matrix):
    reg, expression = OMEGAS[omega]
    A = MATRICES[matrix]
    is_the_threshold(Problem(X, Y, loss="squared", psi=L1(1.0), A=A, omega=reg), A, cp.norm1, expression)


@pytest.mark.parametrize("omega", ["l1", "non-negative"])
def test_alpha_max_beside_another_penalty_for_a_norm_that_is_not_separable(omega):
    reg, expression = OMEGAS[omega]
    for name in ("l2", "linf", "group l2", "group linf"):
        own, psi = PENALTIES[name]
        problem = Problem(X, Y, loss="squared", psi=own, omega=reg)
        is_the_threshold(problem, MATRICES["identity"], psi, expression)


@pytest.mark.parametrize("matrix", ["chain and identity", "ring", "chain", "trend"])
@pytest.mark.parametrize("zeros", [[], [1], [0, 3]])
def test_alpha_max_with_weights(matrix, zeros):
    """A row of weight zero is no row: what only it reaches is free."""
    A = MATRICES[matrix]
    weights = WEIGHTS[: A.shape[0]].copy()
    weights[zeros] = 0.0
    problem = Problem(X, Y, loss="squared", psi=L1(1.0, weights), A=A)
    is_the_threshold(problem, A, lambda y: cp.norm1(cp.multiply(weights, y)), NOTHING[1], weights > 0)
    answer = path(problem, n_alphas=3)
    assert np.all(np.isfinite(answer.alphas))


def test_features_of_weight_zero_are_free():
    weights = np.array([0.0, 1, 1, 1, 1, 1, 1, 0])
    problem = Problem(X, Y, loss="squared", psi=L1(1.0, weights))
    free = X[:, [0, 7]]
    residual = Y - free @ np.linalg.lstsq(free, Y, rcond=None)[0]
    assert alpha_max(problem) == pytest.approx(np.abs(X.T @ residual / 60).max(), rel=1e-9)
    groups = GroupL2(1.0, [[0, 1], [2, 3], [6, 7]], weights=[0.0, 1.0, 2.0])  # 4 and 5 are in no group
    free = X[:, [0, 1, 4, 5]]
    slopes = X.T @ (Y - free @ np.linalg.lstsq(free, Y, rcond=None)[0]) / 60
    expected = max(np.linalg.norm(slopes[[2, 3]]), np.linalg.norm(slopes[[6, 7]]) / 2)
    assert alpha_max(Problem(X, Y, loss="squared", psi=groups)) == pytest.approx(expected, rel=1e-9)


def test_alpha_max_does_not_depend_on_the_strength():
    for strength in (0.0, 0.5, 7.0):
        for reg in (L1(strength), ElasticNet(strength, 0.3), GroupLInf(strength, HALVES), L2(strength)):
            expected = alpha_max(Problem(X, Y, loss="squared", psi=reg._replace(strength=1.0)))
            assert alpha_max(Problem(X, Y, loss="squared", psi=reg)) == pytest.approx(expected)


@pytest.mark.parametrize("reg", [SquaredL2(1.0), ElasticNet(1.0, 0.0), ElasticNet(1.0, 0.5, [0.0] + 7 * [1.0])])
def test_a_penalty_without_a_kink_has_no_alpha_max(reg):
    with pytest.raises(ValueError, match="never becomes exactly zero"):
        alpha_max(Problem(X, Y, loss="squared", psi=reg))


@pytest.mark.parametrize("reg", [NonNegative(), Stacked(L1(1.0), L2(1.0), 4)])
def test_a_penalty_without_a_strength_is_named(reg):
    problem = Problem(X, Y, loss="squared", psi=reg)
    for function in (alpha_max, path):
        with pytest.raises(TypeError, match=f"psi={type(reg).__name__}"):
            function(problem)


def test_alpha_max_of_an_optimum_is_zero():
    assert alpha_max(Problem(X, np.zeros(60), loss="squared", psi=L1(1.0))) == 0.0
    ones = np.column_stack([X, np.ones(60)])
    A = sp.csr_array(np.eye(8, 9))
    assert alpha_max(Problem(ones, np.full(60, 3.3), loss="squared", psi=L1(1.0), A=A)) == 0.0


def test_alpha_max_of_a_large_graph():
    """On a small grid it is that of the linear programme; on a large one, no rectangle has a larger ratio of |Σ g| over
    its nodes to the edges that leave it."""
    rng = np.random.default_rng(0)
    for shape, n in (((6, 7), 50), ((100, 100), 5)):
        A = grid(shape)
        d = A.shape[1]
        data, target = rng.standard_normal((n, d)), rng.standard_normal(n)
        top = alpha_max(Problem(data, target, loss="squared", psi=L1(1.0), A=A))
        sums = data.sum(axis=1)
        gradient = data.T @ (sums * (sums @ target) / (sums @ sums) - target) / n
        if d < 100:
            w = cp.Variable(A.shape[0])
            best = cp.Problem(cp.Minimize(cp.norm_inf(w)), [A.T @ w == -gradient]).solve(solver="CLARABEL")
            assert top == pytest.approx(best, rel=1e-6)
            continue
        field = gradient.reshape(shape)
        for rows in (10, 37, 50, 80):
            for columns in (20, 50, 100):
                sides = (rows if columns < 100 else 0) + columns
                assert abs(field[:rows, :columns].sum()) / sides <= top * (1 + 1e-9)


def test_alpha_max_of_a_trend_over_a_graph():
    rng = np.random.default_rng(0)
    n = 12
    target = rng.standard_normal(n)
    edges = [(0, 1), (1, 2), (2, 3), (3, 0), (3, 4), (4, 5), (6, 7), (7, 8), (8, 6), (8, 9), (9, 10)]
    for order in (0, 1, 2, 3):
        graph = sp.coo_array((np.ones(len(edges)), np.array(edges).T), shape=(n, n))
        model = TrendFilterCV(order=order, graph=graph + graph.T, alphas=3, cv=2)
        X_, y_, weight = model._read(np.arange(float(n))[:, None], target, None)
        prepared = model._prepare(X_, weight)
        G = incidence(edges, n_features=n)
        part = [list(range(6)), list(range(6, 11)), [11]]
        start = np.concatenate([np.full(len(p), target[p].mean()) for p in part])
        D = graph_trend(G, order)
        w = cp.Variable(D.shape[0])
        best = cp.Problem(cp.Minimize(cp.norm_inf(w)), [D.T @ w == (target - start) / n]).solve(solver="CLARABEL")
        assert model._alpha_max(prepared, y_) == pytest.approx(best, rel=1e-6)


def test_alpha_max_of_a_trend_of_coefficients():
    """With an intercept that nothing penalises, and weights."""
    rng = np.random.default_rng(0)
    data = np.column_stack([rng.standard_normal((80, 30)), np.ones(80)])
    target = data @ rng.standard_normal(31)
    for order in (0, 1, 2):
        D = trend(30, order)
        A = sp.csr_array((D.data, D.indices, D.indptr), shape=(D.shape[0], 31))
        weights = rng.uniform(0.5, 2.0, D.shape[0])
        free = np.column_stack([*(data[:, :30] @ np.arange(30.0) ** k for k in range(order + 1)), np.ones(80)])
        gradient = data.T @ (free @ np.linalg.lstsq(free, target, rcond=None)[0] - target) / 80
        w = np.linalg.lstsq(D.toarray().T, -gradient[:30], rcond=None)[0]
        top = alpha_max(Problem(data, target, loss="squared", psi=L1(1.0, weights), A=A))
        assert top == pytest.approx(np.abs(w / weights).max(), rel=1e-7)


@facts(name="own-l1", separable=True, smooth=False, subdifferentiable=True)
class OwnL1(NamedTuple):
    """A user's ℓ1 norm, that says nothing of dual norms."""

    strength: float = 1.0

    def prepared(self, size, role):
        return self._replace(strength=checked_strength(self, role))

    strong_convexity = property(lambda self: 0.0)

    def lipschitz(self, size):
        return self.strength * math.sqrt(size)


define_separable(
    OwnL1,
    value_at=lambda reg, j, v: reg.strength * abs(v),
    prox_at=lambda reg, j, v, step: v - min(max(v, -step * reg.strength), step * reg.strength),
    subgradient_at=lambda reg, j, v: reg.strength * np.sign(v),
    conjugate_at=lambda reg, j, w: 0.0 if abs(w) <= reg.strength else math.inf,
    dual_scale_at=lambda reg, j, w: 1.0 if abs(w) <= reg.strength else shrunk(reg.strength / abs(w), 1),
)


@facts(name="own-l2", separable=False, smooth=False, subdifferentiable=True)
class OwnL2(NamedTuple):
    """A user's ℓ2 norm, that says nothing of dual norms."""

    strength: float = 1.0

    prepared = OwnL1.prepared
    strong_convexity = property(lambda self: 0.0)

    def lipschitz(self, size):
        return self.strength


def _prox_l2(reg, v, step, out):
    norm = math.sqrt((v * v).sum())
    out[:] = v * max(0.0, 1.0 - step * reg.strength / norm) if norm > 0.0 else v


define(
    OwnL2,
    value=lambda reg, v: reg.strength * math.sqrt((v * v).sum()),
    prox=_prox_l2,
    conjugate=lambda reg, w: 0.0 if math.sqrt((w * w).sum()) <= reg.strength else math.inf,
    dual_scale=lambda reg, w: min(1.0, reg.strength / max(math.sqrt((w * w).sum()), 1e-300)),
)


@pytest.mark.parametrize(("own", "ours"), [(OwnL1, L1), (OwnL2, L2)])
def test_a_users_penalty_has_an_alpha_max(own, ours):
    expected = alpha_max(Problem(X, Y, loss="squared", psi=ours(1.0)))
    assert alpha_max(Problem(X, Y, loss="squared", psi=own(0.5))) == pytest.approx(expected, rel=1e-12)
    if own is OwnL1:
        assert path(Problem(X, Y, loss="squared", psi=own(0.5)), n_alphas=3).dof[0] == 0


@pytest.mark.parametrize("name", PENALTIES)
def test_dual_norms_by_bisection(name):
    """The definition: the smallest s with w in s ∂reg(0), that is with reg*(w / s) = 0."""
    from skadmm.regularizers._base import _dual_norm_by_conjugate

    reg = PENALTIES[name][0]._replace(strength=0.7).prepared(8, "psi")
    for w in np.random.default_rng(0).standard_normal((5, 8)):
        assert dual_norm(reg, w) == pytest.approx(_dual_norm_by_conjugate(reg, w), rel=1e-12)
        assert dual_norm(reg, np.zeros(8)) == 0.0


def test_alpha_max_and_path_on_dask():
    distributed = pytest.importorskip("distributed")
    da = pytest.importorskip("dask.array")
    target = np.sign(Y + 0.3)
    table = np.column_stack([X, np.ones(60)])
    A = incidence([(0, 1), (1, 2), (2, 3), (5, 6)], n_features=9)
    local = Problem(table, target, psi=L1(1.0), A=A)
    quiet = {"processes": False, "n_workers": 1, "threads_per_worker": 1, "dashboard_address": ":0"}
    with distributed.Client(**quiet):
        remote = Problem(da.from_array(table, chunks=(20, 9)), da.from_array(target, chunks=20), psi=L1(1.0), A=A)
        assert alpha_max(remote) == pytest.approx(alpha_max(local), rel=1e-7)
        there = path(remote, n_alphas=2, eps=0.3, tol=1e-8)
    here = path(local, n_alphas=2, eps=0.3, tol=1e-8)
    np.testing.assert_allclose(there.x, here.x, atol=1e-5)


# -- memory --------------------------------------------------------------------------------------------------


def peak_of(function):
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_path_over_many_features_takes_no_square_of_them():
    rng = np.random.default_rng(0)
    d = 2000
    table = rng.standard_normal((20, d))
    target = table[:, :5].sum(axis=1) + rng.standard_normal(20)
    problem = Problem(table, target, loss="squared", psi=L1(1.0))
    small = path(Problem(table[:, :50], target, loss="squared", psi=L1(1.0)), n_alphas=2)  # compiles
    assert small.x.shape == (2, 50)
    assert peak_of(lambda: path(problem, n_alphas=3, eps=0.1)) < 8 * d * d / 2
    answer = path(problem, n_alphas=3, eps=0.1)
    for alpha, x in zip(answer.alphas, answer.x, strict=True):
        np.testing.assert_allclose(x, solve(with_strength(problem, alpha), tol=1e-8).x, atol=1e-3)
    model = FusedLassoRegressorCV(alphas=3, eps=0.1, cv=2)
    assert peak_of(lambda: model.fit(table, target)) < 8 * d * d / 2


def test_a_path_that_does_not_fit_is_refused_with_numbers(monkeypatch):
    rng = np.random.default_rng(0)
    A, rows = overlapping_groups([range(k, k + 10) for k in range(0, 591, 5)], 600)
    problem = Problem(
        rng.standard_normal((30, 600)), rng.standard_normal(30), loss="squared", psi=GroupL2(1.0, rows), A=A
    )
    monkeypatch.setattr(memory, "available", lambda: 1e6)
    with pytest.raises(MemoryError, match="second-order steps"):
        path(problem, [0.1])


def test_the_folds_of_a_signal_take_no_square_of_its_length():
    n = 2500
    t = np.arange(float(n))[:, None]
    steps = np.repeat([0.0, 1.0], n // 2) + 0.1 * np.random.default_rng(0).standard_normal(n)
    model = TrendFilterCV(order=0, alphas=2, cv=2)
    model.fit(t[:50], steps[:50])
    assert peak_of(lambda: model.fit(t, steps)) < 8 * n * n / 4


@pytest.mark.parametrize("order", [0, 1, 2, 3])
def test_the_matrix_between_positions(order):
    rng = np.random.default_rng(0)
    t = np.sort(rng.uniform(0, 1, 12))
    values = rng.standard_normal(12)
    at = np.concatenate([rng.uniform(-0.2, 1.2, 30), t])
    matrix = interpolation(t, at, order)
    assert np.diff(matrix.indptr).max() == order + 1
    np.testing.assert_array_equal((matrix @ values)[30:], values)
    polynomial = np.polynomial.Polynomial(rng.standard_normal(order + 1))
    np.testing.assert_allclose(matrix @ polynomial(t), polynomial(at), atol=1e-10)
    if order == 0:
        expected = values[np.clip(np.searchsorted(t, at, side="right") - 1, 0, 11)]
        np.testing.assert_array_equal(matrix @ values, expected)
    if order == 1:
        inside = (at >= t[0]) & (at <= t[-1])
        np.testing.assert_allclose((matrix @ values)[inside], np.interp(at, t, values)[inside], atol=1e-12)


# -- information criteria, and losses of one's own -----------------------------------------------------------


@facts(name="poisson", labels=False, attained=False)
class Poisson(NamedTuple):
    """ℓ(z, b) = exp(z) − b z, as a user would write it."""

    curvature_bound = property(lambda self: 50.0)


losses.define(
    Poisson,
    value=lambda loss, z, b: math.exp(z) - b * z,
    derivative=lambda loss, z, b: math.exp(z) - b,
    curvature=lambda loss, z, b: math.exp(z),
    conjugate=lambda loss, theta, b: (
        (theta + b) * (math.log(theta + b) - 1.0) if theta + b > 0.0 else (0.0 if theta + b == 0.0 else math.inf)
    ),
)


def counts():
    rng = np.random.default_rng(0)
    table = np.column_stack([0.3 * rng.standard_normal((200, 3)), np.ones(200)])
    return table, rng.poisson(np.exp(table @ [0.5, -0.5, 0.0, 0.3])).astype(float)


def test_the_criteria_of_the_squared_loss_are_those_of_a_normal_likelihood():
    """−2 log likelihood at the estimated variance, by the density; a constant is common to all strengths."""
    answer = path(Problem(X, Y, loss="squared", psi=L1(1.0)), n_alphas=5, eps=0.01)
    residuals = Y - answer.x @ X.T
    scale = np.sqrt(np.mean(residuals**2, axis=1))
    minus_two = -2 * np.array([norm.logpdf(r, scale=s).sum() for r, s in zip(residuals, scale, strict=True)])
    for criterion, price in ((answer.aic, 2.0), (answer.bic, np.log(60))):
        np.testing.assert_allclose(np.diff(criterion), np.diff(minus_two + price * answer.dof), rtol=1e-8)


@pytest.mark.parametrize("name", ["logistic", "huber", "poisson"])
def test_the_criteria_of_other_losses_are_twice_the_loss(name):
    """Huber's and users' losses were taken for squared residuals."""
    if name == "poisson":
        table, target = counts()
        problem = Problem(table, target, loss=Poisson(), psi=L1(1.0), A=sp.csr_array(np.eye(3, 4)))
    else:
        loss = Huber(0.7) if name == "huber" else "logistic"
        problem = Problem(X, Y if name == "huber" else np.sign(Y), loss=loss, psi=L1(1.0))
    answer = path(problem, n_alphas=3, eps=0.1)
    n = problem.n_samples
    mean_losses = np.array([problem.loss_value(x) for x in answer.x])
    np.testing.assert_allclose(answer.aic, 2 * n * mean_losses + 2 * answer.dof, rtol=1e-8)
    np.testing.assert_allclose(answer.bic, 2 * n * mean_losses + np.log(n) * answer.dof, rtol=1e-8)
    if name == "poisson":
        minus_two = [-2 * poisson.logpmf(target, np.exp(table @ x)).sum() for x in answer.x]
        np.testing.assert_allclose(np.diff(answer.deviance), np.diff(minus_two), rtol=1e-8)


def test_a_poisson_loss_with_an_intercept_is_solved():
    table, target = counts()
    problem = Problem(table, target, loss=Poisson(), psi=L1(0.02), A=sp.csr_array(np.eye(3, 4)))
    result = solve(problem, tol=1e-8, passes=500)
    assert result.status is Status.SOLVED
    x = cp.Variable(4)
    data = cp.sum(cp.exp(table @ x) - cp.multiply(target, table @ x)) / 200
    best = cp.Problem(cp.Minimize(data + 0.02 * cp.norm1(x[:3]))).solve(solver="CLARABEL")
    assert problem.objective(result.x) <= best + 1e-7


def test_poisson_counts_that_are_all_zero_have_no_minimiser():
    table, target = counts()
    problem = Problem(table, np.zeros(200), loss=Poisson(), psi=L1(0.02), A=sp.csr_array(np.eye(3, 4)))
    assert existence.find(problem).features.tolist() == [3]
    assert "no sample's loss increases" in str(existence.find(problem))
    weight = np.ones(200)
    weight[target > 0] = 0.0
    some = Problem(table, target, loss=Poisson(), psi=L1(0.02), A=sp.csr_array(np.eye(3, 4)), sample_weight=weight)
    assert existence.find(some) is not None
    one = np.zeros(200)
    one[7] = 1.0  # a single count holds the intercept
    held = Problem(table, one, loss=Poisson(), psi=L1(0.02), A=sp.csr_array(np.eye(3, 4)))
    assert existence.find(held) is None


def test_alpha_max_can_be_stopped_between_flows(monkeypatch):
    """Ctrl-C and a time limit are noticed between two searches for paths, not only at the end."""
    calls = []

    def stop():
        calls.append(1)
        if len(calls) > 5:
            raise KeyboardInterrupt

    rng = np.random.default_rng(0)
    problem = Problem(
        rng.standard_normal((5, 900)), rng.standard_normal(5), loss="squared", psi=L1(1.0), A=grid((30, 30))
    )
    monkeypatch.setattr("skadmm.problem.cuts._cancel.check_cancelled", stop)
    with pytest.raises(KeyboardInterrupt):
        alpha_max(problem)

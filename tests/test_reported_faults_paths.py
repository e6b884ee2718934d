"""Faults that users reported in paths, alpha_max, trend filters and information criteria, each with its test."""

from fractions import Fraction
from itertools import accumulate

import numpy as np
import pytest
import scipy.sparse as sp

from skadmm import Problem, TrendFilter, TrendFilterCV
from skadmm._line import as_line, line_at
from skadmm.estimators._signal import Signal
from skadmm.estimators._trends import GraphTrend, graph_trend, spaced_trend
from skadmm.operators import chain, incidence, stack, trend
from skadmm.regularizers import L1
from skadmm.result import Status
from skadmm.structure import degrees_of_freedom, rank

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
    signal = Signal(Problem(sp.eye_array(n, format="csr"), target, loss="squared", psi=L1(1.0), A=A), line)
    alpha = share * signal.alpha_max
    result = signal.solve(alpha, 1e-6)
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

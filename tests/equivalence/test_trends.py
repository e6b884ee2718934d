"""Trends along a line: every order, spacing and strength, against dense algebra, rational numbers and CVXPY."""

import itertools
import re
import warnings
from fractions import Fraction

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.interpolate import make_interp_spline, make_smoothing_spline
from sklearn.exceptions import ConvergenceWarning

from skadmm import Problem, Status, TrendFilter, TrendFilterCV, alpha_max, denoise_line, exact_trend_gap, solve
from skadmm.estimators._cv import Table
from skadmm.estimators._search import Split
from skadmm.operators import chain, trend
from skadmm.operators.line import line_at
from skadmm.problem.constraint import Constraint
from skadmm.regularizers import L1
from skadmm.solvers.second_order.line_smoother import Smoother
from skadmm.solvers.second_order.signal_systems import LineSystem

ORDERS = [0, 1, 2, 3]
SPACINGS = ["even", "uniform", "clustered"]


def positions_of(kind, n):
    rng = np.random.default_rng(0)
    if kind == "even":
        return np.linspace(0.0, 1.0, n)
    if kind == "uniform":
        return np.sort(rng.uniform(0.0, 1.0, n))
    return np.sort(rng.choice([0.05, 0.3, 0.35, 0.6, 0.95], n) + 0.01 * rng.standard_normal(n))


def noisy_at(t):
    return (
        np.sin(8 * t) + 2 * np.abs(t - 0.4) + 0.7 * (t > 0.7) + 0.2 * np.random.default_rng(1).standard_normal(t.size)
    )


def problem_at(t, b, order, alpha=1.0, weight=None):
    A = Constraint(trend(t.size, order, t), None, None, t.size, line=line_at(t, order))
    return Problem(sp.eye_array(t.size, format="csr"), b, "squared", psi=L1(alpha), A=A, sample_weight=weight)


def dense_smoother(system, q, e, b, free=None, u=None):
    """H x + Dᵀu = q, D x − E u = b, with u given where v is free."""
    d, m = system.h.size, e.size
    D = np.eye(d)
    for j in range(1, system.line.order + 2):
        D = np.diff(D, axis=0)
        if j <= system.line.order:
            D = D / system.steps[j - 1, : d - j, None]
    free = np.zeros(m, bool) if free is None else free
    last = np.hstack([np.where(free[:, None], 0.0, D), np.diag(np.where(free, 1.0, -e))])
    right = np.concatenate([q, np.where(free, 0.0 if u is None else u, b)])
    answer = np.linalg.solve(np.vstack([np.hstack([np.diag(system.h), D.T]), last]), right)
    return answer[:d], D @ answer[:d], answer[d:]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("kind", ["even", "uniform"])
def test_the_smoother_is_dense_algebra(order, kind):
    n = 14
    rng = np.random.default_rng(order)
    system = LineSystem(line_at(positions_of(kind, n), order), rng.uniform(0.5, 2.0, n))
    q, m = rng.standard_normal(n), n - 1 - order
    e, b = 10.0 ** rng.uniform(-6, 6, m), rng.standard_normal(m)
    for mine, other in zip(
        Smoother(system.steps, system.h, e).solve(q, b), dense_smoother(system, q, e, b), strict=True
    ):
        np.testing.assert_allclose(mine, other, atol=1e-6 * np.abs(other).max())
    free, u, none = rng.random(m) < 0.4, rng.standard_normal(m), np.zeros(m)
    x, v, _ = Smoother(system.steps, system.h, none, free).solve(q, none, u)
    other_x, other_v, _ = dense_smoother(system, q, none, none, free, u)
    np.testing.assert_allclose(x, other_x, atol=1e-7 * np.abs(other_x).max())
    np.testing.assert_allclose(v, np.where(free, other_v, 0.0), atol=1e-7 * np.abs(other_v).max())


def exact_bound(t, b, order, alpha, u):
    """The dual objective of u in rational numbers."""
    n = t.size
    unit = (Fraction(t[-1]) - Fraction(t[0])) / (n - 1)
    places = [Fraction(p) / unit for p in t]
    m = [Fraction(p) for p in np.clip(u, -alpha, alpha)]
    for k in range(order, -1, -1):
        m = [-m[0], *(m[i] - m[i + 1] for i in range(len(m) - 1)), m[-1]]
        if k > 0:
            m = [k * m[i] / (places[i + k] - places[i]) for i in range(len(m))]
    return float(sum(Fraction(p) * w for p, w in zip(b, m, strict=True)) - n * sum(w * w for w in m) / 2)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("kind", SPACINGS)
def test_every_strength_is_solved(order, kind):
    """The gap holds in rational numbers, and at 2 alpha_max the fit is the polynomial."""
    t = positions_of(kind, 50)
    b = noisy_at(t)
    problem = problem_at(t, b, order)
    top = alpha_max(problem, line_at(t, order))
    for share in (1e-6, 1e-4, 1e-2, 0.5, 2.0):
        result = solve(problem.replace(psi=L1(share * top)), tol=1e-6, record_every=0)
        assert result.status is Status.SOLVED
        bound = exact_bound(t, b, order, share * top, result.settings["rho"] * result.dual)
        assert result.objective - bound <= 1e-6 * result.objective
    flat = np.polynomial.Legendre.fit(t, b, order)(t)
    np.testing.assert_allclose(result.x, flat, atol=1e-9)


@pytest.mark.parametrize("kind", SPACINGS)
def test_the_differences_prove_the_gap_where_doubles_cannot(kind):
    """At order three neither x nor the multiplier in doubles say how good the curve is; its differences do."""
    t = positions_of(kind, 1000)
    b = noisy_at(t)
    problem = problem_at(t, b, 3)
    top = alpha_max(problem, line_at(t, 3))
    for share in (1e-6, 1e-2, 0.5, 2.0):
        result = solve(problem.replace(psi=L1(share * top)), tol=1e-6, record_every=0)
        assert result.status is Status.SOLVED
        assert exact_trend_gap(t, b, 3, share * top, result.y) <= 1e-6
        if share < 1.0:
            assert exact_trend_gap(t, b, 3, share * top, 1.01 * result.y) > 1e-6


def test_the_exact_gap_knows_ties_and_weights():
    rng = np.random.default_rng(2)
    t = np.repeat(np.sort(rng.uniform(size=40)), 2)
    b, weight = noisy_at(t), rng.uniform(0.2, 2.0, t.size)
    model = TrendFilter(alpha=0.01, order=2).fit(t[:, None], b, sample_weight=weight)
    assert exact_trend_gap(t, b, 2, 0.01, model.result_.y, sample_weight=weight) <= 1e-9
    assert exact_trend_gap(t, b, 2, 0.01, model.result_.y) > 1e-6
    with pytest.raises(ValueError, match="y has length 3: it takes 37 differences of order 3"):
        exact_trend_gap(t, b, 2, 0.01, np.zeros(3))
    with pytest.raises(ValueError, match="target has length 3: it takes one observation for each of 80 positions"):
        exact_trend_gap(t, b[:3], 2, 0.01, np.zeros(3))


@pytest.mark.parametrize("order", [1, 2, 3])
def test_a_long_uneven_signal_is_cvxpys(order):
    t = positions_of("clustered", 400)
    b = noisy_at(t)
    problem = problem_at(t, b, order)
    alpha = 1e-2 * alpha_max(problem, line_at(t, order))
    x = cp.Variable(400)
    z, steps = x, []
    for k in range(1, order + 1):
        slope = cp.Variable(400 - k)
        steps.append(cp.multiply((t[k:] - t[:-k]) / k, slope) == cp.diff(z))
        z = slope
    strength = 400 * alpha * ((t[-1] - t[0]) / 399) ** order
    program = cp.Problem(cp.Minimize(cp.sum_squares(x - b) / 2 + strength * cp.norm1(cp.diff(z))), steps)
    best = program.solve(solver="CLARABEL", tol_gap_rel=1e-9, tol_feas=1e-10) / 400
    result = solve(problem.replace(psi=L1(alpha)), tol=1e-6)
    assert result.objective == pytest.approx(best, rel=1e-5)


def test_weighted_chains_are_cvxpys():
    rng = np.random.default_rng(4)
    weight, edge, b = rng.uniform(0.1, 3.0, 80), rng.uniform(0.2, 2.0, 79), np.cumsum(rng.standard_normal(80))
    problem = Problem(
        sp.eye_array(80, format="csr"), b, "squared", psi=L1(0.02, edge), A=chain(80), sample_weight=weight
    )
    x = cp.Variable(80)
    scaled = weight / weight.mean()
    loss = cp.sum(cp.multiply(scaled, cp.square(x - b))) / 160
    best = cp.Problem(cp.Minimize(loss + 0.02 * edge @ cp.abs(cp.diff(x)))).solve(solver="CLARABEL")
    result = solve(problem, "interior-point", tol=1e-9)
    assert result.passes == 1
    assert result.objective == pytest.approx(best, rel=1e-7)
    assert np.unique(result.x).size == np.count_nonzero(result.y) + 1


# -- the estimator -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ORDERS)
def test_degrees_of_freedom_are_free_parameters(order):
    """As many as the curves with these knots have dimensions: the rank of the basis of truncated powers."""
    for seed in range(8):
        rng = np.random.default_rng(seed)
        t = np.sort(rng.uniform(0, 1, 40))
        b = np.sin(6 * t) + 0.3 * rng.standard_normal(40)
        model = TrendFilter(alpha=10.0 ** rng.uniform(-4, 0), order=order).fit(t[:, None], b)
        assert model.result_.status is Status.SOLVED
        assert model.dof_ == model.knots_.size + order + 1
        D = trend(40, order, t).toarray()
        tied = np.delete(D, model.changepoints_ - 1, axis=0)
        tied = tied / np.abs(tied).max(axis=1, initial=0.0)[:, None] if tied.size else tied
        assert model.dof_ == 40 - (np.linalg.matrix_rank(tied, tol=1e-9) if tied.size else 0)
        np.testing.assert_array_equal(model.knots_, model.positions_[model.changepoints_])


def test_change_points_begin_pieces():
    steps = np.repeat([0.0, 3.0, 1.0], [20, 15, 25])
    model = TrendFilter(alpha=0.02, order=0).fit(np.arange(60.0)[:, None], steps)
    assert model.changepoints_.tolist() == [20, 35]
    assert model.knots_.tolist() == [20.0, 35.0]
    assert model.predict([[19.5], [20.0], [99.0]]).tolist() == [model.coef_[19], model.coef_[20], model.coef_[59]]
    table = TrendFilter(alpha=0.02, order=0).fit(np.random.default_rng(0).standard_normal((30, 4)), np.arange(30.0))
    assert table.knots_ is None
    assert table.positions_ is None


@pytest.mark.parametrize("order", [1, 2, 3])
def test_between_positions_the_curve_has_pieces_of_its_order(order):
    t = positions_of("uniform", 120)
    model = TrendFilter(alpha=0.05, order=order).fit(t[:, None], noisy_at(t))
    ends = np.concatenate([[t[0] - 0.2], model.knots_, [t[-1] + 0.2]])
    for left, right in itertools.pairwise(ends):
        at = np.linspace(left, right, 12)[:-1]
        values = model.predict(at[:, None])
        fit = np.polynomial.Polynomial.fit(at, values, order)(at)
        np.testing.assert_allclose(values, fit, atol=1e-7 * max(1.0, np.abs(values).max()))


@pytest.mark.parametrize(("order", "n", "largest"), [(3, 3, 1), (1, 2, 0), (3, 4, 2)])
def test_orders_without_sense_are_refused(order, n, largest):
    with pytest.raises(ValueError, match="order=200: for a signal along a line it takes 0 to 3"):
        TrendFilter(order=200).fit(np.arange(100.0)[:, None], np.arange(100.0))
    with pytest.raises(ValueError, match=f"order={order}: {n} distinct positions allow at most {largest}"):
        TrendFilter(order=order).fit(np.arange(float(n))[:, None], np.arange(float(n)))
    with pytest.raises(ValueError, match="order=4: 4 columns allow at most 3"):
        TrendFilter(order=4).fit(np.random.default_rng(0).standard_normal((9, 4)), np.arange(9.0))


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", ["jumps", "calm, then busy"])
def test_cross_validation_beats_a_smoothing_spline_on_a_curve_of_changing_smoothness(order, name):
    """On the curve of the guide, and on one with pieces of the order itself."""
    rng = np.random.default_rng(0)
    t = np.sort(rng.uniform(0, 10, 300))
    at, values = np.array([0, 3, 6, 7, 7.5, 8, 8.5, 9, 10]), np.array([0, 1, 0.5, 2, 0, 2, 0, 1.5, 1])
    if name == "jumps":
        truth = np.where(t < 4, 0.5 * t, np.where(t < 7, 3.0, 0.5 + 0.3 * (t - 7)))
    else:
        truth = make_interp_spline(at, values, k=order)(t) if order else values[np.searchsorted(at, t, "right") - 1]
    noisy = truth + 0.2 * rng.standard_normal(300)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = TrendFilterCV(order=order, alphas=25).fit(t[:, None], noisy)
    X, y, weight = model._read(t[:, None], noisy, None)
    assert model.alphas_[0] == pytest.approx(model._alpha_max(model._prepare(X, weight), y), rel=1e-9)
    assert model.alphas_[-1] < model.alpha_ < model.alphas_[0]
    spline = make_smoothing_spline(t, noisy)(t)
    assert np.linalg.norm(model.coef_ - truth) < np.linalg.norm(spline - truth)


def test_the_advice_of_a_short_fit_works():
    """A stall names the tolerance that accepts the fit; a limit of passes is to be raised. No advice is on columns."""
    X, b = np.arange(80.0)[:, None], noisy_at(positions_of("uniform", 80))
    stalled = {"alpha": 3e-3, "order": 1, "graph": (8, 10), "loss": "huber"}
    with pytest.warns(ConvergenceWarning, match="stalled") as said:
        TrendFilter(tol=1e-17, **stalled).fit(X, b)
    message = str(said[0].message)
    assert "standardize" not in message
    accepted = float(re.search(r"tol=(\S+) accepts this fit", message)[1])
    limited = {"alpha": 3e-3, "order": 0, "graph": (8, 10), "tol": 1e-8}
    with pytest.warns(ConvergenceWarning, match=r"Raise max_passes or tol, or raise alpha\."):
        TrendFilter(max_passes=2, **limited).fit(X, b)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        TrendFilter(tol=accepted, **stalled).fit(X, b)
        TrendFilter(max_passes=500, **limited).fit(X, b)


def test_a_fold_measures_derivatives_in_the_unit_of_all_the_data():
    t = np.arange(100.0)
    model = TrendFilterCV(order=2, alphas=3, cv=2)
    X, _, weight = model._read(t[:, None], np.sin(t), None)
    split = Split(np.arange(0, 100, 2), np.arange(1, 100, 2), None)
    fold = model._fold(model._prepare(X, weight), X[split.train], None)
    held = model._held_rows(fold, Table(X, np.sin(t), [], None), split)
    np.testing.assert_allclose(fold.penalty.A.toarray(), trend(50, 2).toarray() / 4)
    np.testing.assert_allclose(held @ t[::2] ** 2, t[1::2] ** 2)


@pytest.mark.parametrize("weighted", [False, True])
def test_denoise_line_is_the_trend_filter_of_order_zero(weighted):
    rng = np.random.default_rng(0)
    values, weight = rng.standard_normal(80).cumsum(), rng.uniform(0.5, 2.0, 80)
    strength = 1.3
    found = denoise_line(values, strength, sample_weight=weight if weighted else None)
    total = weight.sum() if weighted else 80.0
    model = TrendFilter(alpha=strength / total, order=0, fit_intercept=False)
    model.fit(np.arange(80.0)[:, None], values, sample_weight=weight if weighted else None)
    assert np.allclose(found, model.coef_, atol=1e-12)
    assert np.unique(found).size == model.dof_


def test_denoise_line_takes_a_strength_for_each_difference():
    rng = np.random.default_rng(0)
    values, strength = rng.standard_normal(30), rng.uniform(0.0, 1.0, 29)
    strength[11] = 0.0  # separates its two sides
    found = denoise_line(values, strength)
    parts = denoise_line(values[:12], strength[:11]), denoise_line(values[12:], strength[12:])
    assert np.allclose(found, np.concatenate(parts), rtol=0, atol=1e-14)
    # Optimality: sums of the residual are within the strengths, and on them where neighbours differ.
    u = -np.cumsum(values - found)[:-1]
    assert np.all(np.abs(u) <= strength + 1e-12)
    jumps = np.diff(found)
    apart = np.abs(jumps) > 1e-12
    assert np.allclose(u[apart], strength[apart] * np.sign(jumps[apart]), atol=1e-12)
    assert denoise_line([2.5], 1.0) == [2.5]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([[1.0, 2.0]], 1.0), "values has shape"),
        (([1.0, np.nan], 1.0), "values holds NaN"),
        (([1.0, 2.0], -1.0), "strength holds a negative"),
        (([1.0, 2.0], [1.0, 2.0]), "strength has shape .*: it takes a number, or a vector of length 1"),
    ],
)
def test_denoise_line_refuses(arguments, words):
    with pytest.raises(ValueError, match=words):
        denoise_line(*arguments)


def test_denoise_line_refuses_weights_that_are_not_positive():
    with pytest.raises(ValueError, match="sample_weight holds a number that is not positive"):
        denoise_line([1.0, 2.0], 1.0, sample_weight=[1.0, 0.0])


@pytest.mark.parametrize("order", range(4))
def test_a_binomial_trend_predicts_probabilities(order):
    rng = np.random.default_rng(order)
    t = np.sort(rng.uniform(0, 10, 120))
    happened = rng.random(120) < 1 / (1 + np.exp(-np.interp(t, [0, 4, 10], [-2, 2, -1])))
    model = TrendFilter(alpha=0.03, order=order, loss="binomial").fit(t[:, None], happened)
    assert model.result_.status is Status.SOLVED
    chance = model.predict(t[:, None])
    assert 0.0 <= chance.min() <= chance.max() <= 1.0
    assert np.isclose(chance.mean(), happened.mean(), atol=1e-3)  # a constant is not penalised
    with pytest.raises(ValueError, match="the binomial loss takes numbers from 0 to 1"):
        model.fit(t[:, None], 2.0 * happened)


@pytest.mark.parametrize("loss", ["squared", "huber", "absolute", "smoothed-quantile"])
@pytest.mark.parametrize("order", [0, 1, 2])
def test_rows_of_weight_zero_are_as_good_as_left_out(order, loss):
    rng = np.random.default_rng(order)
    where = np.sort(rng.uniform(0, 10, 300))[:, None]
    target = np.abs(where[:, 0] - 5.0) + 0.2 * rng.standard_normal(300)
    weight = rng.uniform(0.5, 2.0, 300) * (rng.random(300) > 0.2)
    kept = weight > 0
    found = TrendFilter(0.02, order=order, loss=loss).fit(where, target, weight)
    wanted = TrendFilter(0.02, order=order, loss=loss).fit(where[kept], target[kept], weight[kept])
    assert found.result_.status is Status.SOLVED
    np.testing.assert_array_equal(found.positions_, wanted.positions_)
    np.testing.assert_allclose(found.predict(where), wanted.predict(where), atol=1e-4)

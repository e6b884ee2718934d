"""Interior point steps on signals under the quantile loss and the absolute error: optima of CVXPY, gaps that hold."""

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp

from skadmm import Problem, Status, TrendFilter, TrendFilterCV, losses, path, solve
from skadmm.kernels.rows import as_matrix
from skadmm.losses import Absolute, Hinge, Quantile, Squared
from skadmm.operators import chain, grid, trend
from skadmm.operators.line import line_at
from skadmm.problem.constraint import Constraint
from skadmm.regularizers import L1, GroupL2, SquaredL2
from skadmm.solvers.second_order.signal_interior_point import SignalInteriorPoint
from skadmm.solvers.second_order.signal_samples import EliminatedSystem, PiecewiseSamples

ORDERS = (0, 1, 2, 3)


def line_problem(t, X, b, order, loss, alpha, weight=None, row_weights=(), ridge=0.0):
    A = Constraint(trend(t.size, order, t), None, None, t.size, line=line_at(t, order))
    psi = L1(alpha, np.asarray(row_weights, dtype=float)) if len(row_weights) else L1(alpha)
    omega = SquaredL2(ridge) if ridge else None
    return Problem(X, b, loss, psi=psi, A=A, omega=omega, sample_weight=weight)


def random_problem(seed, order):
    """Positions, entries, repeated observations, weights and a ridge as the seed has it."""
    rng = np.random.default_rng([seed, order])
    n = int(rng.integers(20, 120))
    t = np.arange(float(n)) if seed % 2 else np.cumsum(rng.uniform(0.2, 2.0, n))
    index = np.arange(n) if seed % 3 else np.concatenate([np.arange(n), rng.integers(0, n, n // 2)])
    value = np.ones(index.size) if seed % 4 else rng.uniform(0.5, 2.0, index.size) * rng.choice([-1.0, 1.0], index.size)
    X = sp.csr_array((value, (np.arange(index.size), index)), shape=(index.size, n))
    b = X @ np.sin(6 * t / t[-1]) + 0.3 * rng.standard_t(2, index.size)
    loss = Quantile(float(rng.uniform(0.1, 0.9))) if seed % 5 else Absolute()
    return line_problem(
        t, X, b, order, loss, float(10.0 ** rng.uniform(-3, order)),
        weight=rng.uniform(0.1, 3.0, b.size) if seed % 2 else None,
        row_weights=rng.uniform(0.5, 2.0, n - 1 - order) if seed % 7 == 3 else (),
        ridge=0.01 if seed % 6 == 5 else 0.0,
    )  # fmt: skip


def optimum(problem):
    """The optimum of CVXPY, from the definition of the problem."""
    X, A, b = as_matrix(problem.rows), problem.constraint.A, problem.target
    low, high = (-problem.loss.q, 1.0 - problem.loss.q) if problem.loss.name == "quantile" else (-1.0, 1.0)
    weight = problem.sample_weight if problem.sample_weight.size else np.ones(b.size)
    rows = problem.psi.weights if problem.psi.weights.size else np.ones(A.shape[0])
    x = cp.Variable(X.shape[1])
    residual = X @ x - b
    loss = cp.sum(cp.multiply(weight, cp.maximum(low * residual, high * residual))) / b.size
    objective = loss + problem.psi.strength * cp.norm1(cp.multiply(rows, A @ x))
    if isinstance(problem.omega, SquaredL2):
        objective += 0.5 * problem.omega.strength * cp.sum_squares(x)
    return cp.Problem(cp.Minimize(objective)).solve(solver=cp.CLARABEL)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("seed", range(12))
def test_it_agrees_with_cvxpy(seed, order):
    problem = random_problem(seed, order)
    result = solve(problem, tol=1e-7)
    assert result.status is Status.SOLVED
    assert result.solver == "signal-interior-point"
    best = optimum(problem)
    assert result.objective == pytest.approx(best, rel=1e-6)
    assert result.objective - best <= (result.gap + 1e-8) * abs(best), "the gap bounds the suboptimality"
    assert result.objective == pytest.approx(problem.objective(result.x), rel=1e-8)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("near", [False, True])
def test_a_newton_system_is_dense_algebra(order, near):
    """R x + Sᵀθ + Dᵀu = q and (S x − k, D x) − E (θ, u) = b, without k for a change."""
    problem = random_problem(4, order)
    rng, samples, line = np.random.default_rng(order), PiecewiseSamples.of(problem), problem.constraint.line
    n, d, m = samples.kink.size, problem.n_features, problem.n_constraints
    e, ridge = 10.0 ** rng.uniform(-2, 2, n + m), rng.uniform(0.0, 1.0, d)
    q, b = rng.standard_normal(d), rng.standard_normal(n + m)
    found = EliminatedSystem(samples, line, ridge, e).solve(q, b, near=near)
    S = sp.csr_array((samples.value, (np.arange(n), samples.feature)), shape=(n, d)).toarray()
    both = np.vstack([S, problem.constraint.A.toarray()])
    kinks = np.concatenate([np.zeros(n) if near else samples.kink, np.zeros(m)])
    system = np.block([[np.diag(ridge), both.T], [both, -np.diag(e)]])
    other = np.linalg.solve(system, np.concatenate([q, b + kinks]))
    for mine, dense in zip(found, (other[:d], both @ other[:d] - kinks, other[d:]), strict=True):
        np.testing.assert_allclose(mine, dense, atol=1e-7 * np.abs(dense).max())


@pytest.mark.parametrize("loss", [Quantile(0.9), Quantile(0.5)])
@pytest.mark.parametrize("alpha", [1e-6, 1e-3, 1.0, 1e6])
@pytest.mark.parametrize("order", ORDERS)
def test_gaps_are_small_at_every_strength(order, alpha, loss):
    """From interpolation, where multipliers are much smaller than slopes, to polynomials, where they are larger."""
    rng = np.random.default_rng(order)
    t = np.sort(rng.uniform(0.0, 1.0, 200))
    b = np.sin(8 * t) + 0.3 * rng.standard_normal(t.size)
    result = solve(line_problem(t, sp.eye_array(t.size, format="csr"), b, order, loss, alpha), tol=1e-6)
    assert result.status is Status.SOLVED
    assert result.gap <= 1e-6
    if alpha == 1e6:
        assert not result.y.any(), "a polynomial"


@pytest.mark.parametrize("order", ORDERS[1:])
def test_knots_are_exact(order):
    """A trend has few knots, and A x vanishes up to rounding between them."""
    rng = np.random.default_rng(7)
    t = np.linspace(0.0, 1.0, 150)
    b = np.abs(t - 0.4) + 0.05 * rng.standard_normal(t.size)
    model = TrendFilter(order=order, alpha=0.03 * 10.0**order, loss="quantile").fit(t[:, None], b)
    assert model.result_.solver == "signal-interior-point"
    assert 0 < model.knots_.size < 20
    A, x = trend(t.size, order, t), model.coef_
    zero = model.result_.y == 0.0
    assert np.all(np.abs((A @ x)[zero]) <= 1e-9 * (abs(A) @ np.abs(x)).max())


def test_order_zero_has_pieces_equal_to_the_last_bit():
    rng = np.random.default_rng(2)
    b = np.repeat([0.0, 2.0, 1.0], 50) + 0.2 * rng.standard_normal(150)
    model = TrendFilter(order=0, alpha=0.1, loss="absolute").fit(np.arange(150.0)[:, None], b)
    assert np.unique(model.coef_).size == model.knots_.size + 1 < 20


def test_the_residual_is_that_of_the_multiplier_that_proves_the_gap():
    problem = random_problem(8, 1)
    result = solve(problem, tol=1e-8)
    multiplier = result.tables["rho"][0] * result.dual
    assert np.all(np.abs(multiplier) <= problem.psi.strength * (1.0 + 1e-12))
    split = result.y - problem.prox_psi(result.y + multiplier)
    assert result.kkt.split == pytest.approx(float(np.linalg.norm(split)), abs=1e-15)
    assert result.kkt.relative <= 1e-5


def test_cross_validation_follows_the_path():
    """Every strength of a path agrees with its own fit, which cross-validation chooses from."""
    rng = np.random.default_rng(5)
    t = np.linspace(0.0, 1.0, 150)
    b = np.sin(6 * t) + (t > 0.5) + 0.3 * rng.standard_normal(t.size)
    search = TrendFilterCV(order=1, alphas=6, loss="quantile").fit(t[:, None], b)
    assert search.result_.solver == "signal-interior-point"
    alone = TrendFilter(order=1, alpha=search.alpha_, loss="quantile").fit(t[:, None], b)
    assert search.result_.objective == pytest.approx(alone.result_.objective, rel=1e-6)
    problem = line_problem(t, sp.eye_array(t.size, format="csr"), b, 1, Quantile(0.5), 1.0)
    answer = path(problem, n_alphas=6, tol=1e-7)
    assert set(answer.statuses) == {"solved"}
    for alpha, loss, x in zip(answer.alphas, answer.losses, answer.x, strict=True):
        single = solve(line_problem(t, sp.eye_array(t.size, format="csr"), b, 1, Quantile(0.5), float(alpha)), tol=1e-7)
        penalty = alpha * np.abs(problem.constraint.A @ x).sum()
        assert loss + penalty == pytest.approx(single.objective, rel=1e-6)


def test_samples_without_weight_or_entry_count_as_no_samples():
    rng = np.random.default_rng(3)
    n = 40
    b, t = rng.standard_normal(n), np.arange(float(n))
    plain = line_problem(t, sp.eye_array(n, format="csr"), b, 1, Quantile(0.7), 0.5)
    X = sp.csr_array(sp.vstack([sp.eye_array(n), sp.eye_array(n), sp.csr_array((5, n))]))
    targets = np.concatenate([b, 100.0 * rng.standard_normal(n), np.full(5, 2.0)])
    weight = np.concatenate([np.ones(n), np.zeros(n), np.ones(5)])
    padded = line_problem(t, X, targets, 1, Quantile(0.7), 0.5 * n / (n + 5), weight=weight)
    first, second = solve(plain, tol=1e-8), solve(padded, tol=1e-8)
    assert second.solver == "signal-interior-point"
    assert second.objective * (n + 5) == pytest.approx(first.objective * n + 5 * 0.7 * 2.0, rel=1e-6)


def test_refusals_say_why():
    n = 30
    b, identity = np.linspace(-1.0, 1.0, n), sp.eye_array(n, format="csr")
    labels = np.where(b > 0.0, 1.0, -1.0)

    def reason(X=identity, target=b, loss="quantile", psi=None, A=None):
        return SignalInteriorPoint.applies(Problem(X, target, loss, psi=psi or L1(0.1), A=chain(n) if A is None else A))

    assert reason() is None
    assert "more than one nonzero entry" in reason(X=np.random.default_rng(0).standard_normal((n, n)))
    assert "two straight pieces" in reason(loss="squared")
    assert "constant on one side" in reason(target=labels, loss="hinge")
    assert "differences along a line" in reason(A=grid((5, 6)))
    assert "psi must be an ℓ1 norm" in reason(psi=GroupL2(0.1, np.arange(n - 1) // 4))


def test_pieces_are_those_of_the_loss():
    targets = np.array([-1.0, 1.0])
    for loss in (Quantile(0.3), Absolute(), Hinge()):
        pieces = loss.pieces(targets)
        for kink, lower, upper, b in zip(*pieces, targets, strict=True):
            assert losses.value(loss, kink - 2.0, b) == pytest.approx(-2.0 * lower)
            assert losses.value(loss, kink + 2.0, b) == pytest.approx(2.0 * upper)
    assert Squared().pieces is None

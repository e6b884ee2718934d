"""Newton steps on signals: every smooth loss, along lines and over graphs, with a gap that holds."""

import math
from typing import NamedTuple

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp

from skadmm import Problem, Status, TrendFilter, alpha_max, losses, path, solve
from skadmm.kernels.compile import facts
from skadmm.losses import Huber
from skadmm.operators import chain, grid, trend
from skadmm.operators.line import line_at
from skadmm.problem.constraint import Constraint
from skadmm.regularizers import L1, GroupL2, SquaredL2
from skadmm.solvers.second_order.signal_newton import SignalNewton

N = 80
RNG = np.random.default_rng(0)
T = np.sort(RNG.uniform(0, 1, N))
CURVE = 2 * np.sin(8 * T)
OUTLYING = CURVE + 0.2 * RNG.standard_normal(N) + np.where(np.arange(N) % 9 == 0, 5 * RNG.standard_normal(N), 0.0)
LABELS = np.where(RNG.random(N) < 1 / (1 + np.exp(-2 * CURVE)), 1.0, -1.0)
IDENTITY = sp.eye_array(N, format="csr")
WEIGHT = RNG.uniform(0.2, 3.0, N)
WEIGHT /= WEIGHT.mean()


@facts(name="counts", labels=False, attained=False)
class Counts(NamedTuple):
    """ℓ(z, b) = exp(z) − b z, Poisson's, whose curvature has no bound."""

    curvature_bound = property(lambda self: math.inf)


losses.define(
    Counts,
    value=lambda loss, z, b: math.exp(z) - b * z,
    derivative=lambda loss, z, b: math.exp(z) - b,
    curvature=lambda loss, z, b: math.exp(z),
    conjugate=lambda loss, theta, b: (
        (theta + b) * (math.log(theta + b) - 1.0) if theta + b > 0.0 else (0.0 if theta + b == 0.0 else math.inf)
    ),
)


@facts(name="smooth-quantile", labels=False)
class SmoothQuantile(NamedTuple):
    """The quantile loss of b − z at level 0.8, a parabola within 0.05 of its corner."""

    curvature_bound = property(lambda self: 10.0)


losses.define(
    SmoothQuantile,
    value=lambda loss, z, b: 0.3 * (b - z) + (5.0 * (b - z) ** 2 if abs(b - z) <= 0.05 else 0.5 * abs(b - z) - 0.0125),
    derivative=lambda loss, z, b: -0.3 - min(max(10.0 * (b - z), -0.5), 0.5),
    curvature=lambda loss, z, b: 10.0 if abs(b - z) <= 0.05 else 0.0,
    conjugate=lambda loss, theta, b: theta * b + 0.05 * (-theta - 0.3) ** 2 if -0.8 <= theta <= 0.2 else math.inf,
)
COUNTS = RNG.poisson(np.exp(4 * np.abs(np.sin(5 * T)))).astype(float)
LOSSES = {
    "huber": (Huber(0.5), OUTLYING, lambda z: cp.huber(z - OUTLYING, 0.5) / 2),
    "logistic": ("logistic", LABELS, lambda z: cp.logistic(-cp.multiply(LABELS, z))),
    "binomial": ("binomial", (LABELS + 1) / 2, lambda z: cp.logistic(-cp.multiply(LABELS, z))),
    "poisson": (Counts(), COUNTS, lambda z: cp.exp(z) - cp.multiply(COUNTS, z)),
    "quantile": (
        SmoothQuantile(),
        OUTLYING,
        lambda z: 0.3 * (OUTLYING - z) + 0.0125 * cp.huber((OUTLYING - z) / 0.05, 1.0),
    ),
    "squared-hinge": ("squared-hinge", LABELS, lambda z: cp.square(cp.pos(1 - cp.multiply(LABELS, z))) / 2),
}
PENALTIES = {
    "chain": chain(N),
    "linear": trend(N, 1),
    "quadratic": trend(N, 2),
    "linear, uneven": trend(N, 1, T),
    "quadratic, uneven": Constraint(trend(N, 2, T), None, None, N, line=line_at(T, 2)),
    "grid": grid((8, 10)),
}


def optimum(problem, terms, ridge=0.0):
    x = cp.Variable(N)
    weight = problem.sample_weight if problem.sample_weight.size else np.ones(N)
    loss = cp.sum(cp.multiply(weight, terms(x))) / N + ridge / 2 * cp.sum_squares(x)
    penalty = problem.psi.strength * cp.norm1(problem.constraint.A @ x)
    settings = {"tol_gap_rel": 1e-10, "tol_gap_abs": 1e-10, "tol_feas": 1e-10}
    return cp.Problem(cp.Minimize(loss + penalty)).solve(solver="CLARABEL", **settings)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("penalty", PENALTIES)
def test_it_agrees_with_cvxpy(loss, penalty):
    name, target, terms = LOSSES[loss]
    problem = Problem(IDENTITY, target, name, psi=L1(0.01), A=PENALTIES[penalty])
    result = solve(problem, tol=1e-7)
    assert result.status is Status.SOLVED
    assert result.solver == "signal-newton"
    value = optimum(problem, terms)
    assert result.objective == pytest.approx(value, rel=2e-7)
    assert result.objective - value <= result.gap * abs(value) + 1e-8, "the gap bounds the suboptimality"
    assert result.objective == pytest.approx(problem.objective(result.x), rel=1e-6)


def test_weights_and_ridge():
    name, target, terms = LOSSES["huber"]
    problem = Problem(IDENTITY, target, name, psi=L1(0.01), A=trend(N, 1), omega=SquaredL2(0.1), sample_weight=WEIGHT)
    result = solve(problem, tol=1e-8)
    assert result.solver == "signal-newton"
    assert result.objective == pytest.approx(optimum(problem, terms, 0.1), rel=1e-7)


def test_several_samples_of_one_coefficient():
    rng = np.random.default_rng(3)
    feature = np.concatenate([np.arange(N), rng.integers(0, N, N)])
    X = sp.csr_array((rng.uniform(0.5, 2.0, 2 * N), (np.arange(2 * N), feature)), shape=(2 * N, N))
    target = X @ CURVE + np.where(rng.random(2 * N) < 0.1, 4.0, 0.1) * rng.standard_normal(2 * N)
    problem = Problem(X, target, Huber(0.5), psi=L1(0.01), A=trend(N, 1))
    result = solve(problem, tol=1e-8)
    x = cp.Variable(N)
    loss = cp.sum(cp.huber(X @ x - target, 0.5)) / (4 * N)
    best = cp.Problem(cp.Minimize(loss + 0.01 * cp.norm1(trend(N, 1) @ x))).solve(solver="CLARABEL")
    assert result.solver == "signal-newton"
    assert result.objective == pytest.approx(best, rel=1e-6)


def test_a_path_begins_at_a_polynomial():
    problem = Problem(IDENTITY, OUTLYING, Huber(0.5), psi=L1(1.0), A=trend(N, 1))
    answer = path(problem, n_alphas=6, tol=1e-7)
    assert set(answer.statuses) == {"solved"}
    assert answer.alphas[0] == pytest.approx(alpha_max(problem))
    assert answer.dof[0] == 2
    assert answer.dof[-1] > 4


def test_estimators_reach_it_and_resist_outliers():
    robust = TrendFilter(alpha=0.05, order=1, loss=Huber(0.5)).fit(T[:, None], OUTLYING)
    assert robust.result_.solver == "signal-newton"
    assert robust.dof_ == robust.knots_.size + 2
    plain = TrendFilter(alpha=0.05, order=1).fit(T[:, None], OUTLYING)
    assert np.linalg.norm(robust.coef_ - CURVE) < 0.7 * np.linalg.norm(plain.coef_ - CURVE)


def test_refusals_say_why():
    dense = Problem(RNG.standard_normal((N, N)), OUTLYING, "huber", psi=L1(0.1), A=chain(N))
    assert "more than one nonzero entry" in SignalNewton.applies(dense)
    groups = Problem(IDENTITY, OUTLYING, "huber", psi=GroupL2(0.1, np.arange(N) // 4))
    assert "psi must be an ℓ1 norm" in SignalNewton.applies(groups)


def test_a_long_signal_needs_no_square_of_its_length():
    n = 20_000
    rng = np.random.default_rng(1)
    noisy = np.sin(np.arange(n) / 2000) + 0.2 * rng.standard_normal(n)
    problem = Problem(sp.eye_array(n, format="csr"), noisy, Huber(0.3), psi=L1(1.0), A=trend(n, 1))
    result = solve(problem, tol=1e-6, memory_limit=1e9, record_every=0)
    assert result.status is Status.SOLVED
    assert result.solver == "signal-newton"

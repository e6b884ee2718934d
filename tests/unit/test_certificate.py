"""Certificates never lie: the gap bounds the true suboptimality, found by CVXPY, every time."""

import cvxpy as cp
import numpy as np
import pytest

from skadmm import Problem, Status, solve
from skadmm.kernels.expansion import expand
from skadmm.operators import chain, incidence, stack, trend
from skadmm.problem.certificate import Certifier
from skadmm.regularizers import L1, L2, Box, SquaredL2

D = 5
OPERATORS = {
    "identity": np.eye(D),
    "fused": stack(chain(D), "identity").toarray(),
    "graph": stack(incidence([[0, 1], [1, 2], [3, 4], [0, 4]], n_features=D), "identity", weights=[0.5, 1.0]).toarray(),
    "trend": stack(trend(D, 1), "identity", weights=[1.0, 0.3]).toarray(),
    "invertible": np.eye(D) + 0.3 * np.eye(D, k=1),
    "bare chain": chain(D).toarray(),
}


def losses(name, margin, target):
    if name == "logistic":
        return cp.logistic(-cp.multiply(target, margin))
    if name == "squared":
        return 0.5 * cp.square(margin - target)
    if name == "huber":
        return 0.5 * cp.huber(margin - target, 1.0)
    return 0.5 * cp.square(cp.pos(1 - cp.multiply(target, margin)))


def optimum(problem, A, ridge, strength):
    x = cp.Variable(problem.n_features)
    loss = cp.sum(losses(problem.loss.name, problem.rows.values @ x, problem.target)) / problem.n_samples
    penalty = strength * cp.norm1(A @ x) + 0.5 * ridge * cp.sum_squares(x)
    return cp.Problem(cp.Minimize(loss + penalty)).solve(solver=cp.CLARABEL)


def draw(seed):
    """One of the family: loss × operator × ridge or not × intercept or not."""
    rng = np.random.default_rng(seed)
    loss = ["logistic", "squared", "huber", "squared-hinge"][seed % 4]
    name = list(OPERATORS)[(seed // 4) % len(OPERATORS)]
    ridge = 0.1 if (seed // 24) % 2 else 0.0
    intercept = bool((seed // 48) % 2)
    n = int(rng.integers(15, 40))
    X = rng.standard_normal((n, D))
    margin = X @ rng.standard_normal(D) + rng.standard_normal(n) + 0.5
    A = OPERATORS[name]
    if intercept:
        X, A = np.column_stack([X, np.ones(n)]), np.column_stack([A, np.zeros(A.shape[0])])
    if loss in ("logistic", "squared-hinge"):
        margin = np.sign(margin)
        margin[:2] = 1.0, -1.0
    strength = 10.0 ** rng.uniform(-3, -0.5)
    omega = SquaredL2(ridge) if ridge else None
    problem = Problem(np.ascontiguousarray(X), margin, loss=loss, omega=omega, psi=L1(strength), A=A)
    return problem, A, ridge, strength, rng


@pytest.mark.parametrize("part", range(4))
def test_the_gap_bounds_the_suboptimality(part):
    checked = 0
    for seed in range(50 * part, 50 * part + 50):
        problem, A, ridge, strength, rng = draw(seed)
        best = optimum(problem, A, ridge, strength)
        slack = 2e-8 * max(1.0, abs(best))
        certifier = Certifier(problem)
        # At points that have nothing to do with the solution the bound holds as well.
        for _ in range(3):
            x, multiplier = (
                rng.standard_normal(problem.n_features),
                rng.standard_normal(problem.n_constraints) * strength,
            )
            margins = problem.rows.values @ x
            slopes = np.empty(problem.n_samples)
            expand(problem.samples(), np.arange(problem.n_samples), margins, slopes, np.empty(problem.n_samples))
            gradient = problem.gradient(x)
            if certifier.free.size:
                straight = certifier.orthogonal_slopes(slopes, margins)
                if straight is None:
                    continue
                slopes, gradient, _ = straight
            bounds = certifier.certify(problem.objective(x), slopes, gradient, multiplier)
            assert bounds.dual <= best + slack, f"seed {seed}: lower bound {bounds.dual} above the optimum {best}"
        result = solve(problem, tol=1e-8, passes=200, record_every=0)
        if result.status is Status.NO_MINIMISER:
            continue
        assert result.status is Status.SOLVED, f"seed {seed}: {result}"
        if result.stopped_on == "gap":
            assert result.gap <= 1e-8
            assert result.objective - best <= result.gap * result.objective + slack
            checked += 1
        assert result.objective - best <= 1e-6 * max(1.0, abs(best)), f"seed {seed}: {result} against {best}"
    assert checked >= 30


def test_kinds_say_what_a_bound_rests_on():
    X, target = np.random.default_rng(0).standard_normal((20, D)), np.arange(20.0)

    def kind(**model):
        return Certifier(Problem(X, target, loss="squared", **model)).kind

    assert kind(psi=L1(0.1)) == "l1"
    assert kind(psi=L1(0.1), A=OPERATORS["invertible"]) == "full-rank"
    assert kind(psi=L1(0.1), A=chain(D)) == "none"
    assert kind(psi=L1(0.1), A=chain(D), omega=SquaredL2(0.1)) == "omega"
    assert kind(psi=L2(0.1)) == "l1"
    assert kind() == "none"
    assert kind(psi=L1(0.1), omega=Box(-1.0, np.inf)) == "none"


def test_first_order_methods_stop_on_the_gap_too():
    problem, *_ = draw(5)
    result = solve(problem, "batch-admm", tol=1e-4, passes=20_000, step="theory", rho=0.1, record_every=50)
    assert result.status is Status.SOLVED
    assert result.stopped_on == "gap"
    assert result.gap <= 1e-4


def test_first_order_methods_certify_with_an_intercept():
    """θ is made orthogonal to the column that no penalty reaches, so the gap is there, and it is sound."""
    rng = np.random.default_rng(0)
    X = np.hstack([rng.standard_normal((80, 5)), np.ones((80, 1))])
    target = np.where(X @ [1.0, 1.0, 0, 0, -1.0, 0.5] + rng.standard_normal(80) > 0, 1.0, -1.0)
    A = np.hstack([np.eye(5), np.zeros((5, 1))])
    problem = Problem(X, target, psi=L1(0.05), A=A)
    best = solve(problem, "san-admm", tol=1e-10, passes=100).objective
    result = solve(problem, "batch-admm", tol=1e-3, passes=2000, step="theory", rho=0.1)
    assert result.stopped_on == "gap"
    assert 0 <= result.objective - best <= result.gap * result.objective + 1e-12

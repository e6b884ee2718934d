"""Entries of Ax that are too small to matter are zero in the solution: at the first strength of a path nothing is
left of what is about to leave zero."""

from functools import partial

import numpy as np
import pytest

from skadmm import (
    FusedLassoClassifier,
    FusedLassoClassifierCV,
    FusedLassoRegressor,
    FusedLassoRegressorCV,
    Problem,
    alpha_max,
    solve,
)
from skadmm.operators import chain, stack
from skadmm.regularizers import L1
from skadmm.solvers.second_order.polish import diagonal_on_clusters, without_traces

LOSSES = ["squared", "huber", "poisson", "gamma", "logistic"]


def noise(loss, seed, n, d):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    targets = {
        "poisson": lambda: rng.poisson(1.5, n).astype(float),
        "gamma": lambda: rng.gamma(2.0, 1.0, n),
        "logistic": lambda: np.where(rng.random(n) < 0.5, 1.0, -1.0),
    }
    return X, targets.get(loss, lambda: rng.standard_normal(n))()


@pytest.mark.parametrize("excess", [0.0, 1e-12, 1e-8, 1e-5])
@pytest.mark.parametrize("l1_ratio", [0.1, 0.5, 1.0])
@pytest.mark.parametrize("loss", LOSSES)
def test_nothing_is_left_at_the_first_strength(loss, l1_ratio, excess):
    for seed, (n, d) in enumerate([(300, 12), (100, 20), (100, 20), (60, 80)]):
        X, y = noise(loss, seed, n, d)
        psi = L1(1.0, weights=np.append(np.full(d - 1, 1.0 - l1_ratio + 0.1), np.full(d, l1_ratio)))
        problem = Problem(X, y, loss=loss, psi=psi, A=stack(chain(d), "identity"))
        top = alpha_max(problem)
        result = solve(problem.replace(psi=psi._replace(strength=top * (1.0 + excess))), tol=1e-6)
        assert result.status == "solved"
        assert result.gap <= 1e-6
        np.testing.assert_array_equal(result.x, np.zeros(d))
        np.testing.assert_array_equal(result.y, np.zeros(2 * d - 1))


@pytest.mark.parametrize("d", [20, 1000])  # newton-admm, reduced-newton
@pytest.mark.parametrize("loss", LOSSES)
def test_models_of_noise_are_empty(loss, d):
    search, single, options = FusedLassoRegressorCV, FusedLassoRegressor, {"loss": loss}
    if loss == "logistic":
        search, single, options = FusedLassoClassifierCV, FusedLassoClassifier, {}
    for seed in range(3):
        X, y = noise(loss, seed, 120, d)
        alpha = search(alphas=2, eps=0.5, cv=2, **options).fit(X, y).alphas_[0]
        model = single(alpha, relax=True, **options).fit(X, y)
        assert not model.coef_.any()
        assert model.n_clusters_ == 0
        assert np.isnan(model.standard_errors_).all()


@pytest.mark.parametrize("seed", range(20))
def test_the_solution_meets_the_tolerance_that_was_asked_for(seed):
    """At strengths just below those at which rows leave zero, where traces are removed."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(20, 200)), int(rng.integers(3, 40))
    X = rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-1, 1, d)
    y = X @ np.repeat(rng.standard_normal((d + 4) // 5), 5)[:d] + rng.standard_normal(n)
    psi, A = L1(1.0), stack(chain(d), "identity")
    problem = Problem(X, y, loss="huber" if seed % 2 else "squared", psi=psi, A=A)
    top = alpha_max(problem)
    for share in (0.9999, 0.999, 0.99, 0.5, 0.01):
        at = problem.replace(psi=L1(share * top))
        rough, exact = solve(at, tol=1e-6), solve(at, tol=1e-12)
        assert rough.gap <= 1e-6
        assert at.objective(rough.x) - at.objective(exact.x) <= 1e-6 * at.objective(exact.x)
        np.testing.assert_array_equal((A @ rough.x)[rough.y == 0.0], 0.0)


def test_traces_are_the_rows_whose_removal_costs_little():
    rng = np.random.default_rng(0)
    for _ in range(50):
        d = 8
        A = stack(chain(d), "identity")
        values = rng.choice([0.0, 1e-5, 3e-5, 1.0], 4) * rng.choice([-1.0, 1.0], 4)
        x = np.repeat(values, 2)
        M = rng.standard_normal((20, d))
        H = M.T @ M / 20
        problem = Problem(M, rng.standard_normal(20), loss="squared", psi=L1(0.1), A=A)
        y, slack = A @ x, 1e-9
        found = next(without_traces(problem, y, partial(diagonal_on_clusters, H), slack), y)
        pieces = np.split(np.arange(d), np.flatnonzero(np.diff(x)) + 1)
        curvature = {j: float(H[np.ix_(piece, piece)].sum()) for piece in pieces for j in piece}
        for e in np.flatnonzero(y):
            features = np.flatnonzero(A.toarray()[e])
            cost = min(0.5 * curvature[j] * y[e] ** 2 if x[j] else np.inf for j in features)
            assert (found[e] == 0.0) == (cost <= slack)

"""Sweeps of ADMM on one quadratic model."""

import numpy as np

from skadmm import Problem, alpha_max
from skadmm.operators import chain, stack
from skadmm.regularizers import L1
from skadmm.solvers.dual_update import start
from skadmm.solvers.second_order.quadratic_model import ModelConfig, ModelSolver, ModelState


def test_where_the_solution_is_zero_rho_stays():
    """At the strength where x becomes zero, x is rounding error; residuals relative to it moved ρ by many decades."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((60, 6))
        target = X @ np.array([1.0, 1.0, 0.0, 0.0, -1.0, 0.0]) + 0.1 * rng.standard_normal(60)
        H, q = X.T @ X / 60, X.T @ target / 60
        problem = Problem(X, target, "squared", psi=L1(1.0), A=stack(chain(6), "identity"))
        problem = problem.replace(psi=L1(alpha_max(problem)))
        model = ModelSolver(problem, ModelConfig(), 1.0, adaptive=True)
        point, state = start(problem, np.zeros(6), None, None), ModelState(1.0, False, 1.0)
        for _ in range(100):
            model.minimise(state, point, H, q, np.zeros(6), np.zeros(6), 100, 1e-10)
        assert 1e-6 <= state.rho / state.even_rho <= 1e6
        assert np.abs(point.x).max() <= 1e-9

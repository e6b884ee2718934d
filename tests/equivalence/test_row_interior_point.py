"""The interior point method for general rows: its systems against dense ones, its answers against other solvers."""

import numpy as np
import pytest
import scipy.sparse as sp

from skadmm import SOLVERS, Problem, Status, solve
from skadmm.losses import Huber
from skadmm.operators import stack, trend, wavelet
from skadmm.regularizers import L1, GroupL2, SquaredL2
from skadmm.solvers.second_order.row_systems import NormalSystem, SynthesisSystem, reason_against, system_for

N, D = 15, 32
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, D))
B = X @ np.repeat([1.0, 0.0, -1.0, 0.5], D // 4) + RNG.standard_normal(N)
DENSE = np.vstack([RNG.standard_normal((5, D)), np.eye(D)])
OPERATORS = {
    "trend 1": trend(D, 1),
    "trend 2": trend(D, 2),
    "uneven": trend(D, 1, positions=np.cumsum(RNG.uniform(0.5, 2.0, D))),
    "wavelet": wavelet(D, "haar"),
    "trend and identity": stack(trend(D, 1), "identity"),
    "dense": DENSE,
    "low rank": RNG.standard_normal((8, 4)) @ RNG.standard_normal((4, D)),
}


def problem_of(name, loss="squared", strength=0.05, **parts):
    target = B if loss == "squared" or isinstance(loss, Huber) else np.sign(B)
    return Problem(X, target, loss=loss, psi=L1(strength), A=OPERATORS[name], **parts)


@pytest.mark.parametrize("name", [name for name in OPERATORS if name != "low rank"])
@pytest.mark.parametrize("ridge", [0.0, 0.3])
def test_a_step_solves_the_newton_equations(name, ridge):
    """The dense matrices of the equations, written out, in the coordinates z of x."""
    problem, rng = problem_of(name, c=RNG.standard_normal(np.shape(OPERATORS[name])[0])), np.random.default_rng(1)
    system, m = system_for(problem, ridge), problem.n_constraints
    assert isinstance(system, SynthesisSystem) == (ridge == 0.0 and name in ("trend 1", "trend 2", "uneven", "wavelet"))
    zero = np.zeros(system.size)
    columns = np.eye(system.size)
    M = np.column_stack([system.margins(e) - system.margins(zero) for e in columns])
    R = np.column_stack([system.rows(e) - system.rows(zero) for e in columns])
    curvatures, theta = rng.uniform(0.0, 1.0, N), 10.0 ** rng.uniform(-2, 2, m)
    curvatures[:3] = 0.0
    system.factorise(curvatures, 1.0 / theta)
    dual, margin, w = rng.standard_normal(system.size), rng.standard_normal(N), rng.standard_normal(m)
    move = system.solve(dual, margin, w)
    scale = np.abs(move.z).max() + np.abs(move.u).max() + 1.0
    np.testing.assert_allclose(move.m, M @ move.z + margin, atol=1e-8 * scale)
    np.testing.assert_allclose(move.u, theta * (R @ move.z + w), atol=1e-6 * scale)
    left = M.T @ (curvatures * move.m) + ridge * move.z + R.T @ move.u + dual
    np.testing.assert_allclose(left, 0.0, atol=1e-6 * scale)


@pytest.mark.parametrize("name", list(OPERATORS))
def test_coordinates_mean_x(name):
    problem = problem_of(name, c=np.linspace(0.0, 1.0, np.shape(OPERATORS[name])[0]))
    system = system_for(problem, 0.0)
    z = np.random.default_rng(2).standard_normal(system.size)
    x = system.x_of(z)
    np.testing.assert_allclose(system.margins(z), X @ x, atol=1e-9 * (1 + np.abs(x).max()))
    np.testing.assert_allclose(system.rows(z), problem.y_of_x(x), atol=1e-9 * (1 + np.abs(x).max()))


@pytest.mark.parametrize("name", list(OPERATORS))
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_it_finds_the_minimum_that_other_solvers_find(name, loss):
    problem = problem_of(name, loss)
    if name == "low rank" and loss == "logistic":
        return  # the labels can be separated along directions that no row sees
    found, expected = solve(problem, "row-interior-point", tol=1e-6), solve(problem, "multipliers", tol=1e-8)
    assert found.status is Status.SOLVED, found.message
    assert found.objective <= expected.objective * (1 + 1e-5) + 1e-9


def test_a_ridge_and_weights_take_part():
    problem = problem_of("trend 1", omega=SquaredL2(0.2)).replace(psi=L1(0.1, np.linspace(0.5, 2.0, D - 2)))
    found, expected = solve(problem, "row-interior-point", tol=1e-8), solve(problem, tol=1e-9)
    assert found.status is Status.SOLVED
    assert found.objective == pytest.approx(expected.objective, rel=1e-7)


def test_zeros_of_a_trend_are_exact():
    found = solve(problem_of("trend 1", strength=0.5), "row-interior-point", tol=1e-8)
    assert 0 < np.count_nonzero(found.y) < N


@pytest.mark.parametrize("operator", [trend(900, 2), wavelet(1024, "db2"), stack(trend(900, 1), "identity")])
def test_many_features_and_few_samples_get_it(operator):
    d, rng = operator.shape[1], np.random.default_rng(3)
    table = rng.standard_normal((30, d))
    target = table @ np.repeat([1.0, 0.0], [d // 2, d - d // 2]) + rng.standard_normal(30)
    result = solve(Problem(table, target, loss="squared", psi=L1(5.0), A=operator), tol=1e-6)
    assert result.status is Status.SOLVED
    assert result.solver == "row-interior-point"
    assert "A is not a graph" in result.message


def test_it_refuses_with_a_reason():
    applies = SOLVERS["row-interior-point"].applies
    assert "ℓ1" in applies(problem_of("trend 1").replace(psi=GroupL2(0.1, np.arange(D - 2) // 3)))
    assert "no curvature" in applies(problem_of("trend 1", Huber(0.5)))
    assert "positive" in applies(problem_of("trend 1").replace(psi=L1(0.1, np.arange(D - 2.0))))
    tall = Problem(np.ones((5000, 3)), np.ones(5000), loss="squared", psi=L1(0.1), A=sp.csr_array(np.ones((2, 3))))
    assert "5000 samples" in reason_against(tall, 0.0)
    assert isinstance(system_for(problem_of("dense"), 0.0), NormalSystem)

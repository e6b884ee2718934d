"""Trends of order one and two over graphs: against CVXPY, dense algebra and the interior point solver."""

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp

from skadmm import SOLVERS, Problem, Status, TrendFilter, solve
from skadmm.operators import grid, incidence, trend
from skadmm.operators.canonical import canonical
from skadmm.operators.graph_trend import as_graph_trend
from skadmm.operators.line import GraphTrend
from skadmm.problem.constraint import Constraint
from skadmm.regularizers import L1
from skadmm.solvers.second_order.laplacian_systems import FactoredSystem, GridSystem, grid_of


def differences(G, order):
    L = G.T @ G
    return canonical(L if order == 1 else G @ L)


def tree_and_cycles(d=40):
    rng = np.random.default_rng(3)
    edges = [(int(rng.integers(j)), j) for j in range(1, d)] + [(0, d - 1), (3, d - 2), (5, 20)]
    return incidence(sorted(set(edges)), n_features=d)


GRAPHS = {"grid": grid((6, 8)), "volume": grid((3, 4, 5)), "graph": tree_and_cycles()}


def noisy(d):
    return np.sin(np.arange(d) / 5.0) + 0.3 * np.random.default_rng(0).standard_normal(d)


def problem_over(G, order, strength, weight=None):
    d = G.shape[1]
    constraint = Constraint(differences(G, order), None, None, d, graph=GraphTrend(G, order))
    return Problem(
        sp.eye_array(d, format="csr"), noisy(d), "squared", psi=L1(strength / d), A=constraint, sample_weight=weight
    )


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_optimum_is_cvxpys(order, graph, weighted):
    G = GRAPHS[graph]
    d = G.shape[1]
    weight = np.random.default_rng(1).uniform(0.05, 2.0, d) if weighted else np.ones(d)
    for strength in (0.05, 1.0):
        x = cp.Variable(d)
        loss = cp.sum(cp.multiply(weight / weight.mean(), cp.square(x - noisy(d)))) / (2 * d)
        penalty = cp.norm1(differences(G, order) @ x)
        best = cp.Problem(cp.Minimize(loss + strength / d * penalty)).solve(solver="CLARABEL", tol_gap_rel=1e-10)
        result = solve(problem_over(G, order, strength, weight if weighted else None), "graph-trend", tol=1e-7)
        assert result.status is Status.SOLVED
        assert result.gap <= 1e-7
        assert result.objective == pytest.approx(best, rel=2e-7)


@pytest.mark.parametrize("order", [1, 2])
def test_the_stored_multiplier_proves_the_gap(order):
    G = grid((9, 7))
    problem = problem_over(G, order, 0.3)
    result = solve(problem, "graph-trend", tol=1e-7)
    u, D, d = result.settings["rho"] * result.dual, differences(G, order), 63
    assert np.abs(u).max() <= 0.3 / d * (1 + 1e-12)
    bound = 0.5 / d * (noisy(d) @ noisy(d)) - 0.5 / d * np.sum((noisy(d) - d * (D.T @ u)) ** 2)
    assert result.objective - bound <= 1e-7 * result.objective * 1.01


@pytest.mark.parametrize("order", [1, 2])
def test_zeros_are_those_of_the_interior_point_solver(order):
    problem = problem_over(grid((12, 12)), order, 0.3)
    exact, mine = (solve(problem, name, tol=1e-9) for name in ("interior-point", "graph-trend"))
    np.testing.assert_allclose(mine.x, exact.x, atol=1e-4)
    scale = np.abs(exact.y).max()
    assert np.all(np.abs(exact.y[mine.y == 0.0]) < 1e-3 * scale)
    assert np.count_nonzero(mine.y == 0.0) > 40


@pytest.mark.parametrize("order", [1, 2])
def test_graphs_are_recognised(order):
    G = GRAPHS["graph"]
    found = as_graph_trend(differences(G, order))
    assert found.order == order
    np.testing.assert_allclose(differences(found.G, order).toarray(), differences(G, order).toarray(), atol=1e-12)
    weighted = sp.csr_array(sp.diags_array(np.linspace(1.0, 2.0, G.shape[0])) @ G)
    assert (as_graph_trend(differences(weighted, order)) is not None) == (order == 1)
    for other in (trend(30, 1), trend(30, 2), sp.eye_array(30, format="csr"), grid((5, 6))):
        assert as_graph_trend(sp.csr_array(other)) is None


@pytest.mark.parametrize("shape", [(7,), (3, 5), (4, 2, 6)])
def test_systems_are_dense_algebra(shape):
    G = grid(shape, weights=tuple(1.0 + k for k in range(len(shape))))
    L = sp.csr_array(G.T @ G)
    system = grid_of(L)
    assert isinstance(system, GridSystem)
    assert system.shape == shape
    r = np.random.default_rng(0).standard_normal(L.shape[0])
    for shift, scale in ((1.0, 0.01), (0.3, 1e4)):
        wanted = np.linalg.solve(shift * np.eye(r.size) + scale * (L @ L).toarray(), r)
        for solver in (system, FactoredSystem(L)):
            np.testing.assert_allclose(solver.solve(r, shift, scale), wanted, atol=1e-10 * np.abs(wanted).max())
    assert grid_of(sp.csr_array(GRAPHS["graph"].T @ GRAPHS["graph"])) is None


def test_other_matrices_are_refused():
    refused = Problem(sp.eye_array(30, format="csr"), noisy(30), "squared", psi=L1(0.1), A=trend(30, 1))
    assert "GᵀG" in SOLVERS["graph-trend"].applies(refused)


@pytest.mark.parametrize("order", [1, 2])
def test_large_grids_get_it_by_default(order):
    d = 50 * 50
    model = TrendFilter(alpha=0.3 / d, order=order, graph=(50, 50), tol=1e-4).fit(np.arange(d)[:, None], noisy(d))
    assert model.result_.solver == "graph-trend"
    assert model.result_.status is Status.SOLVED
    assert model.dof_ < d

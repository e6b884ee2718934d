"""The learnt graph is the graphical lasso's, whatever form the data has and however badly it is conditioned."""

import lzma
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.covariance import graphical_lasso
from sklearn.datasets import load_svmlight_file

from skadmm.operators import incidence, precision_graph
from skadmm.operators.glasso import _by_admm, _by_coordinate_descent

DATA = Path(__file__).parents[3] / "shared" / "data"


def correlated(n=400, d=12, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    for j in range(1, d):
        X[:, j] += (0.6 if j % 4 else 0.0) * X[:, j - 1] * (-1) ** j
    return X


def signs_of(theta):
    signs = -np.sign(theta)
    np.fill_diagonal(signs, 0)
    return signs


@pytest.mark.parametrize("alpha", [0.05, 0.15, 0.3])
@pytest.mark.parametrize("standardize", [True, False])
def test_equals_the_graphical_lasso_of_the_whole_matrix(alpha, standardize):
    X = correlated()
    S = np.corrcoef(X.T) if standardize else np.cov(X.T, bias=True)
    _, theta = graphical_lasso(S, alpha, tol=1e-8, enet_tol=1e-10)
    graph = precision_graph(X, alpha=alpha, standardize=standardize)
    np.testing.assert_array_equal(graph.adjacency.toarray(), signs_of(theta))
    np.testing.assert_allclose(graph.precision.toarray(), theta, atol=1e-4)
    assert graph.alpha == alpha
    assert graph.cut == 0


def optimality_violation(S, theta, alpha):
    """0 ∈ S − Θ⁻¹ + alpha ∂‖Θ‖_{1,off}: equality with the sign on edges, at most alpha elsewhere."""
    R = np.linalg.inv(theta) - S
    edges = (theta != 0) & ~np.eye(len(S), dtype=bool)
    on_edges = np.abs(R - alpha * np.sign(theta))[edges].max(initial=0)
    return max(on_edges, np.abs(R).max() - alpha, np.abs(np.diag(R)).max())


@pytest.mark.parametrize("solver", ["coordinate descent", "admm"])
def test_both_solvers_meet_the_optimality_conditions(solver):
    S = np.corrcoef(correlated(d=8).T)
    theta = _by_coordinate_descent(S, 0.1) if solver == "coordinate descent" else _by_admm(S, 0.1)[0]
    assert optimality_violation(S, theta, 0.1) < 1e-4


def test_admm_solves_a_singular_block():
    X = correlated(d=6)
    S = np.corrcoef(np.hstack([X, X]).T)
    theta, converged = _by_admm(S, 0.05)
    assert converged
    assert optimality_violation(S, theta, 0.05) < 1e-3


def test_blocks_are_the_components_of_the_thresholded_correlation():
    graph = precision_graph(correlated(), alpha=0.3)
    np.testing.assert_array_equal(graph.components, np.repeat([0, 1, 2], 4))


@pytest.mark.parametrize("density", [0.02, 0.3])
def test_sparse_and_dense_input_agree(density):
    rng = np.random.default_rng(2)
    X = sp.random_array((500, 30), density=density, rng=rng, format="csr")
    X = sp.csr_array(sp.hstack([X, X[:, :10] + 0.3 * X[:, 10:20]]))
    dense = precision_graph(X.toarray(), alpha=0.1, min_support=0)
    assert dense.adjacency.nnz > 0
    for form in (sp.csr_matrix(X), sp.csc_array(X), sp.coo_array(X)):
        graph = precision_graph(form, alpha=0.1, min_support=0)
        np.testing.assert_array_equal(graph.adjacency.toarray(), dense.adjacency.toarray())
        np.testing.assert_allclose(graph.precision.toarray(), dense.precision.toarray(), atol=1e-8)


def test_incidence_takes_the_graph_and_its_signs():
    graph = precision_graph(correlated(), alpha=0.2)
    m = graph.adjacency.nnz // 2
    assert incidence(graph).shape == (m, 12)
    assert {-1.0, 1.0} == set(graph.adjacency.data)
    signed = incidence(graph, signs="adjacency")
    np.testing.assert_array_equal(signed.toarray(), incidence(graph.adjacency, signs="adjacency").toarray())
    negative = np.count_nonzero(graph.adjacency.data < 0) // 2
    assert np.count_nonzero(signed.sum(axis=1) == 2) == negative
    assert np.count_nonzero(signed.sum(axis=1) == 0) == m - negative


def test_constant_rare_and_duplicated_columns():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, 8))
    X[:, 0] = 7.3
    X[:, 1] = 0.0
    X[:, 2] = X[:, 3]
    X[:, 4:6] = 0.0
    X[17, 4:6] = 1.0
    graph = precision_graph(X)
    degree = abs(graph.adjacency).sum(axis=0)
    np.testing.assert_array_equal(degree, [0, 0, 1, 1, 0, 0, 0, 0])
    np.testing.assert_array_equal(graph.precision.diagonal()[:2], 0)
    assert precision_graph(X, min_support=0).adjacency[4, 5] == 1


def test_one_hot_blocks_do_not_break_it():
    codes = np.random.default_rng(4).integers(0, 4, size=(1000, 5))
    X = np.hstack([np.eye(4)[codes[:, k]] for k in range(5)])
    graph = precision_graph(X, alpha=0.05)
    assert graph.converged
    assert optimality_violation(np.corrcoef(X.T), graph.precision.toarray(), 0.05) < 1e-3
    graph = precision_graph(X, alpha=0.15)
    np.testing.assert_array_equal(graph.adjacency.toarray() != 0, np.kron(np.eye(5), np.ones((4, 4)) - np.eye(4)))


def test_independent_features_get_no_edges():
    assert precision_graph(np.random.default_rng(5).normal(size=(500, 40))).adjacency.nnz == 0


def test_auto_alpha_leaves_about_as_many_pairs_as_asked():
    X = np.random.default_rng(6).normal(size=(2000, 40)) + np.random.default_rng(7).normal(size=(2000, 1))
    for degree in (1.0, 3.0):
        alpha = precision_graph(X, degree=degree).alpha
        assert np.count_nonzero(np.triu(np.abs(np.corrcoef(X.T)), 1) > alpha + 1e-9) == degree * 20


def test_more_identical_features_than_the_degree_allows_are_still_joined():
    x = np.random.default_rng(8).normal(size=(200, 1))
    graph = precision_graph(np.tile(x, 10))
    assert graph.adjacency.nnz == 90
    assert graph.alpha == 0.95


def test_threshold_drops_weak_edges():
    X = correlated()
    full, strong = precision_graph(X, alpha=0.05), precision_graph(X, alpha=0.05, threshold=0.2)
    theta = full.precision.toarray()
    partial = np.abs(theta) / np.sqrt(np.outer(np.diag(theta), np.diag(theta)))
    np.testing.assert_array_equal(strong.adjacency.toarray(), np.where(partial > 0.2, full.adjacency.toarray(), 0))


def test_a_component_too_large_is_cut_and_said_so():
    X = correlated(d=12)
    with pytest.warns(UserWarning, match="max_component=3"):
        graph = precision_graph(X, alpha=0.2, max_component=3)
    assert np.bincount(graph.components).max() <= 3
    assert graph.cut > 0
    S, theta = np.corrcoef(X.T), graph.precision.toarray()
    same = graph.components[:, None] == graph.components
    # The blocks solve the problem whose penalty across blocks is max(alpha, |S_ij|).
    penalty = np.where(same, 0.2, np.maximum(0.2, np.abs(S)))
    R = np.linalg.inv(theta) - S
    assert np.all(np.abs(R) <= penalty + 1e-4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": 0}, "alpha must be 'auto' or a finite number > 0, got 0"),
        ({"alpha": "cv"}, "alpha must be"),
        ({"alpha": np.nan}, "alpha must be"),
        ({"degree": 0}, "degree must be"),
        ({"threshold": -1}, "threshold must be a finite number ≥ 0"),
        ({"max_component": 1}, "max_component must be an integer ≥ 2"),
        ({"min_support": -1}, "min_support must be"),
    ],
)
def test_refuses_options(options, message):
    with pytest.raises(ValueError, match=message):
        precision_graph(correlated(n=30), **options)


@pytest.mark.parametrize("X", [np.ones(3), np.full((3, 2), np.nan), np.ones((1, 3))])
def test_refuses_data(X):
    with pytest.raises(ValueError, match=r"X|array|sample"):
        precision_graph(X)


@pytest.mark.skipif(not (DATA / "a9a.svm.xz").exists(), reason="the data is not here")
def test_a9a():
    with lzma.open(DATA / "a9a.svm.xz") as file:
        X, _ = load_svmlight_file(file, n_features=123)
    graph = precision_graph(X)
    assert graph.converged
    assert 50 < incidence(graph).shape[0] < 150

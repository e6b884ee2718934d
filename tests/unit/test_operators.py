"""Operators are what they say: against NumPy, networkx, Kronecker products and PyWavelets."""

import builtins
import doctest

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import pywt
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from skadmm.operators import (
    OPERATORS,
    as_operator,
    chain,
    grid,
    identity,
    incidence,
    overlapping_groups,
    stack,
    trend,
    wavelet,
)


def assert_canonical(A):
    assert isinstance(A, sp.csr_array)
    assert A.dtype == np.float64
    assert A.indices.dtype == np.int32
    assert A.indptr.dtype == np.int32
    again = A.copy()
    again.has_canonical_format = False
    again.sum_duplicates()
    again.eliminate_zeros()
    np.testing.assert_array_equal(again.indices, A.indices)
    np.testing.assert_array_equal(again.data, A.data)


@pytest.mark.parametrize(
    "A",
    [
        chain(5),
        chain(1),
        grid((3, 4)),
        trend(9, 2),
        identity(4),
        wavelet(16),
        stack(chain(4), "identity"),
        overlapping_groups([[2, 0], [1, 2]], 4)[0],
        incidence(nx.cycle_graph(5)),
        incidence(np.zeros((3, 3))),
        as_operator(np.eye(3), 3),
    ],
)
def test_every_builder_returns_the_canonical_form(A):
    assert_canonical(A)


HAVE_TESTS_HERE = ("incidence", "chain", "grid", "trend", "wavelet", "overlapping-groups", "identity", "stack",
                   "precision-graph")  # fmt: skip


@pytest.mark.parametrize("name", [name for name in OPERATORS if name not in HAVE_TESTS_HERE])
def test_an_operator_is_what_its_examples_say(name):
    """An operator without tests of its own has examples in its docstring, which are run; all return matrices A."""
    builder = OPERATORS[name]
    names = {"np": np, builder.__name__: builder}
    (test,) = doctest.DocTestFinder(recurse=False).find(builder, builder.__name__, globs=names)
    assert test.examples, f"{builder.__name__} has no examples in its docstring"
    report: list[str] = []
    doctest.DocTestRunner().run(test, out=report.append)
    assert not report, "".join(report)


def test_the_registry_knows_the_builders():
    assert OPERATORS["trend"] is trend
    with pytest.raises(ValueError, match="Did you mean 'chain'"):
        OPERATORS["chian"]


# Graphs


def up_to_row_sign(A):
    A = A.toarray()
    first = A[np.arange(len(A)), (A != 0).argmax(axis=1)]
    return A * np.sign(first)[:, None]


@given(st.integers(2, 15), st.integers(0, 10_000))
@settings(deadline=None, max_examples=30)
def test_incidence_is_networkx_oriented_incidence_up_to_row_sign(d, seed):
    graph = nx.gnp_random_graph(d, 0.4, seed=seed)
    expected = nx.incidence_matrix(graph, oriented=True).T.toarray()
    np.testing.assert_array_equal(
        up_to_row_sign(incidence(graph)), up_to_row_sign(sp.csr_array(expected)) if len(expected) else expected
    )


def test_all_forms_of_one_graph_agree():
    graph = nx.Graph()
    graph.add_nodes_from(range(5))
    graph.add_edges_from([(0, 1), (0, 3), (2, 4)])
    adjacency = nx.to_numpy_array(graph)
    expected = incidence(graph).toarray()
    names = list("abcde")
    forms = [
        incidence(adjacency),
        incidence(adjacency.tolist()),
        incidence(adjacency.astype(bool)),
        incidence(sp.coo_matrix(adjacency)),
        incidence(pd.DataFrame(adjacency)),
        incidence([(0, 1), (0, 3), (2, 4)], n_features=5),
        incidence(np.array([(0, 1), (0, 3), (2, 4)]), n_features=5),
        incidence([("a", "b"), ("a", "d"), ("c", "e")], nodes=names),
        incidence(nx.relabel_nodes(graph, dict(enumerate(names))), nodes=names),
    ]
    for form in forms:
        np.testing.assert_array_equal(form.toarray(), expected)


def test_a_row_is_the_weighted_signed_difference():
    A = incidence([(0, 2), (1, 0)], n_features=3, weights=[2.0, 3.0], signs=[1, -1])
    np.testing.assert_array_equal(A.toarray(), [[2, 0, -2], [3, 3, 0]])


def test_the_order_of_nodes_is_the_graphs_the_users_or_by_number():
    graph = nx.Graph([(2, 0), (0, 1)])
    np.testing.assert_array_equal(incidence(graph).toarray(), [[1, -1, 0], [0, 1, -1]])
    np.testing.assert_array_equal(incidence(graph, nodes=[1, 2, 0]).toarray()[0], [0, 1, -1])
    np.testing.assert_array_equal(abs(incidence(graph, n_features=4)).toarray(), [[1, 0, 1, 0], [1, 1, 0, 0]])


def test_weights_and_signs_are_the_graphs_unless_ignored():
    graph = nx.Graph()
    graph.add_edge("u", "v", weight=-2.0, length=5.0)
    np.testing.assert_array_equal(incidence(graph).toarray(), [[2, 2]])
    np.testing.assert_array_equal(incidence(graph, weights=False, signs=False).toarray(), [[1, -1]])
    np.testing.assert_array_equal(incidence(graph, weights=False).toarray(), [[1, 1]])
    np.testing.assert_array_equal(incidence(graph, signs=False).toarray(), [[2, -2]])
    np.testing.assert_array_equal(incidence(graph, weights=[3.0]).toarray(), [[3, 3]])
    np.testing.assert_array_equal(incidence(graph, weights="length").toarray(), [[5, -5]])
    np.testing.assert_array_equal(incidence(graph, weights=True, signs="adjacency").toarray(), [[2, 2]])
    np.testing.assert_array_equal(incidence(np.array([[0, 3.0], [3, 0]]), weights="weight").toarray(), [[3, -3]])


@pytest.mark.parametrize("graph", [nx.empty_graph(4), np.zeros((4, 4)), sp.csr_matrix((4, 4))])
def test_no_edges_no_rows(graph):
    assert incidence(graph).shape == (0, 4)
    assert incidence([], n_features=4).shape == (0, 4)


@pytest.mark.parametrize(
    ("graph", "options", "message"),
    [
        ([(0, 1), (1, 0)], {"n_features": 3}, r"each edge once, got \(1, 0\)"),
        (nx.MultiGraph([(0, 1), (0, 1)]), {}, "each edge once"),
        ([(0, 3)], {"n_features": 3}, "columns in 0 … 2, got 3"),
        ([(0, 1)], {}, "n_features or nodes"),
        ([("a", "b")], {"n_features": 2}, "integer columns"),
        ([("a", "x")], {"nodes": ["a", "b", "c"]}, "'x', which is not among nodes"),
        ([(0, 1, 2), (0, 1)], {"n_features": 4}, "pairs"),
        (np.array([[0, 1.0], [2, 0]]), {}, "symmetric"),
        (np.array([[0, np.nan], [np.nan, 0]]), {}, "finite"),
        (np.zeros((3, 3)), {"n_features": 4}, "4 × 4"),
        ("path", {}, "networkx graph"),
        ([(0, 1)], {"n_features": 3, "weights": [-1.0]}, "weights must be finite and ≥ 0, got -1"),
        ([(0, 1)], {"n_features": 3, "weights": [np.nan]}, "weights must be finite"),
        ([(0, 1)], {"n_features": 3, "weights": [1.0, 1.0]}, "length 1"),
        ([(0, 1)], {"n_features": 3, "weights": True}, "needs a graph with values"),
        (nx.path_graph(3), {"weights": True}, r"'weight' on every edge; \(0, 1\)"),
        ([(0, 1, 2.0), (1, 2)], {"n_features": 4}, "pairs, or triples"),
        ([(0, 1, "far")], {"n_features": 4}, "numbers, got 'far'"),
        ([(0, 1, np.nan)], {"n_features": 4}, "finite values"),
        (np.array([[0, 1.5, 1.0]]), {"n_features": 4}, "integer columns"),
        (nx.Graph([(0, 1, {"weight": 2.0}), (1, 2)]), {}, r"on every edge; \(1, 2\) has none"),
        ([(0, 1)], {"n_features": 3, "signs": [2]}, "−1 or \\+1, got 2"),
        ([(0, 1)], {"n_features": 3, "signs": [1, 1]}, "signs must have length 1"),
        ([(0, 1)], {"n_features": 3, "signs": "both"}, "signs must be None"),
        ([(0, 1)], {"nodes": ["a", "a"]}, "nodes must name each feature once"),
        ([(0, 1)], {"nodes": ["a", "b"], "n_features": 3}, "nodes must have length"),
        (nx.Graph([("a", "b")]), {"n_features": 3}, "n_features=3 nodes"),
    ],
)
def test_incidence_refuses(graph, options, message):
    with pytest.raises(ValueError, match=message):
        incidence(graph, **options)


# Lines and grids


@given(st.integers(1, 25), st.integers(0, 6))
@settings(deadline=None)
def test_trend_is_numpy_diff_and_kills_polynomials(d, order):
    if order > d - 1:
        with pytest.raises(ValueError, match="order must be at most"):
            trend(d, order)
        return
    A = trend(d, order)
    assert A.shape == (d - 1 - order, d)
    x = np.random.default_rng(d).normal(size=d)
    np.testing.assert_allclose(A @ x, np.diff(x, order + 1), atol=1e-12)
    t = np.linspace(-1, 1, d)
    np.testing.assert_allclose(A @ np.polyval(np.arange(1.0, order + 2), t), 0, atol=1e-10)


def test_chain_is_trend_of_order_zero_and_the_path_graph():
    np.testing.assert_array_equal(chain(6).toarray(), trend(6, 0).toarray())
    np.testing.assert_array_equal(chain(6).toarray(), -incidence(nx.path_graph(6)).toarray())


@pytest.mark.parametrize("shape", [(5,), (3, 4), (2, 3, 4), (2, 1, 3, 2)])
def test_grid_is_the_kronecker_construction(shape):
    weights = np.arange(1.0, len(shape) + 1)
    parts = []
    for axis, length in enumerate(shape):
        factors = [chain(length) if k == axis else identity(other) for k, other in enumerate(shape)]
        product = factors[0]
        for factor in factors[1:]:
            product = sp.kron(product, factor)
        parts.append(weights[axis] * product)
    np.testing.assert_array_equal(grid(shape, weights=weights).toarray(), sp.vstack(parts).toarray())


def test_grid_differences_an_image():
    image = np.random.default_rng(0).normal(size=(4, 5))
    expected = np.concatenate([np.diff(image, axis=0).ravel(), np.diff(image, axis=1).ravel()])
    np.testing.assert_allclose(grid((4, 5)) @ image.ravel(), expected)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: chain(0), "d must be an integer ≥ 1, got 0"),
        (lambda: chain(2.5), "d must be an integer"),
        (lambda: chain(True), "d must be an integer"),
        (lambda: trend(5, -1), "order must be an integer ≥ 0"),
        (lambda: grid(()), "shape must name"),
        (lambda: grid((3, 0)), "shape must be an integer ≥ 1, got 0"),
        (lambda: grid((3, 3), weights=[1.0]), "length 2, one per axis"),
        (lambda: identity(-1), "d must be"),
    ],
)
def test_lines_and_grids_refuse(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# Wavelets


@pytest.mark.parametrize("mode", pywt.Modes.modes)
@pytest.mark.parametrize("name", ["haar", "db2", "sym5", "bior2.4"])
@pytest.mark.parametrize("d", [3, 16, 37, 130, 301])
def test_wavelet_gives_the_coefficients_of_pywavelets(d, name, mode):
    x = np.random.default_rng(d).normal(size=d)
    expected = np.concatenate(pywt.wavedec(x, name, mode=mode))
    np.testing.assert_allclose(wavelet(d, name, mode=mode) @ x, expected, atol=1e-10)


@pytest.mark.parametrize("shape", [(16, 16), (9, 14), (8, 6, 5)])
def test_wavelet_of_an_array_gives_the_coefficients_of_pywavelets(shape):
    x = np.random.default_rng(1).normal(size=shape)
    coefficients = pywt.wavedecn(x, "haar", mode="periodization")
    np.testing.assert_allclose(wavelet(shape, "haar") @ x.ravel(), pywt.ravel_coeffs(coefficients)[0], atol=1e-12)


@pytest.mark.parametrize("d", [8, 64, 4096])
def test_wavelet_is_orthogonal_and_sparse_for_powers_of_two(d):
    W = wavelet(d)
    assert W.shape == (d, d)
    difference = W.T @ W - identity(d)
    assert abs(difference).max() < 1e-10
    assert W.nnz < 60 * d


@pytest.mark.parametrize("d", [1, 7, 45])
def test_wavelet_keeps_full_column_rank_for_any_length(d):
    assert np.linalg.matrix_rank(wavelet(d, "haar").toarray()) == d


def test_level_zero_is_the_identity():
    np.testing.assert_array_equal(wavelet(8, level=0).toarray(), np.eye(8))


@pytest.mark.parametrize(
    ("options", "message"),
    [({"name": "db99"}, "name must be"), ({"mode": "wrap"}, "mode must be"), ({"level": 9}, "level must be at most 4")],
)
def test_wavelet_refuses(options, message):
    with pytest.raises(ValueError, match=message):
        wavelet(64, **options)


def test_wavelet_names_its_extra_when_pywavelets_is_missing(monkeypatch):
    real = builtins.__import__

    def without_pywt(name, *arguments, **options):
        if name == "pywt":
            raise ImportError(name)
        return real(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", without_pywt)
    with pytest.raises(ImportError, match=r"skadmm\[wavelet\]"):
        wavelet(8)


# Groups and stacks


def test_overlapping_groups_copy_their_features():
    groups = [[3, 0], [0, 1, 2], [4]]
    x = np.arange(10.0, 15.0)
    A, rows = overlapping_groups(groups, 5, weights=[1.0, 2.0, 3.0])
    assert A.shape == (6, 5)
    for group, row, weight in zip(groups, rows, [1.0, 2.0, 3.0], strict=True):
        np.testing.assert_array_equal((A @ x)[row], weight * x[group])
    np.testing.assert_array_equal(np.concatenate(rows), np.arange(6))


def test_no_groups_no_rows():
    A, rows = overlapping_groups([], 3)
    assert A.shape == (0, 3)
    assert rows == []


@pytest.mark.parametrize(
    ("groups", "options", "message"),
    [
        ([[0], []], {}, r"groups\[1\] must be a sequence"),
        ([[0, 5]], {}, r"groups\[0\] must hold features in 0 … 4, got 5"),
        ([[0, 0]], {}, "twice"),
        ([[0.5]], {}, "integers"),
        ([[True, False]], {}, "integers"),
        ([[0]], {"weights": [1, 2]}, "one per group"),
    ],
)
def test_overlapping_groups_refuse(groups, options, message):
    with pytest.raises(ValueError, match=message):
        overlapping_groups(groups, 5, **options)


def test_stack_is_vertical_and_scaled():
    D, M = chain(4), np.arange(8.0).reshape(2, 4)
    A = stack(D, "identity", M, weights=[2.0, 0.5, 1.0])
    np.testing.assert_array_equal(A.toarray(), np.vstack([2 * D.toarray(), 0.5 * np.eye(4), M]))


@pytest.mark.parametrize(
    ("parts", "options", "message"),
    [
        ((), {}, "at least one"),
        (("identity",), {}, "identity"),
        ((chain(4), np.eye(3)), {}, r"parts\[1\] must have 4 columns, as parts\[0\] has; got 3"),
        (("identity", chain(4), "eye"), {}, r"parts\[2\] must be a matrix or 'identity', got 'eye': skadmm"),
        ((chain(4),), {"weights": [1, 2]}, "one per part"),
    ],
)
def test_stack_refuses(parts, options, message):
    with pytest.raises(ValueError, match=message):
        stack(*parts, **options)


# as_operator


@pytest.mark.parametrize(
    "convert", [np.asarray, sp.coo_matrix, sp.csc_array, sp.lil_matrix, sp.dok_array, pd.DataFrame, np.ndarray.tolist]
)
def test_as_operator_takes_any_matrix(convert):
    matrix = np.array([[1, 0, 2], [0, -3, 0]])
    A = as_operator(convert(matrix), 3)
    assert_canonical(A)
    np.testing.assert_array_equal(A.toarray(), matrix)


@pytest.mark.parametrize("given", ["identity", None])
def test_as_operator_identity(given):
    np.testing.assert_array_equal(as_operator(given, 3).toarray(), np.eye(3))


def test_as_operator_sums_duplicates_sorts_and_downcasts():
    wide = sp.csr_array((np.ones(3), np.array([2, 0, 2], np.int64), np.array([0, 3], np.int64)), shape=(1, 3))
    A = as_operator(wide, 3)
    assert_canonical(A)
    np.testing.assert_array_equal(A.toarray(), [[1, 0, 2]])
    assert wide.nnz == 3


@pytest.mark.parametrize(
    ("A", "error", "message"),
    [
        (np.ones(3), ValueError, "penalty must have two dimensions"),
        (np.ones((2, 4)), ValueError, r"penalty must have one column per feature, 3; got shape \(2, 4\)"),
        (np.full((1, 3), np.inf), ValueError, "penalty must be finite"),
        (sp.csr_array([[np.nan, 0, 1]]), ValueError, "penalty must be finite"),
        (np.ones((1, 3), dtype=complex), ValueError, "penalty must hold real numbers"),
        (np.array([["a", 1, 2]], dtype=object), ValueError, "dtype object"),
        ([[1, 2], [3]], ValueError, "rows of one length"),
        ("eye", ValueError, "penalty must be a matrix"),
        (sp.linalg.aslinearoperator(np.eye(3)), TypeError, "LinearOperator"),
    ],
)
def test_as_operator_refuses(A, error, message):
    with pytest.raises(error, match=message):
        as_operator(A, 3, role="penalty")


@pytest.mark.parametrize(
    ("graph", "options"),
    [
        ([(0, 1), (1, 1), (1, 2)], {"n_features": 3}),
        (np.array([[2.0, 1, 0], [1, 0, 1], [0, 1, 5.0]]), {}),
    ],
)
def test_self_loops_are_dropped_with_a_warning(graph, options):
    with pytest.warns(UserWarning, match="self-loop"):
        rows = incidence(graph, **options)
    np.testing.assert_array_equal(rows.toarray(), incidence([(0, 1), (1, 2)], n_features=3).toarray())


def test_arcs_of_a_directed_graph_are_edges():
    nx = pytest.importorskip("networkx")
    graph = nx.DiGraph()
    graph.add_weighted_edges_from([(0, 1, 2.0), (1, 0, 2.0), (2, 1, -1.0)])
    expected = incidence([(0, 1, 2.0), (2, 1, -1.0)], n_features=3)
    np.testing.assert_array_equal(incidence(graph, n_features=3).toarray(), expected.toarray())
    graph[1][0]["weight"] = 3.0
    with pytest.raises(ValueError, match=r"carries 2.0 from 0 to 1 and 3.0 back"):
        incidence(graph, n_features=3)
    assert incidence(graph, n_features=3, weights=False, signs=False).shape == (2, 3)

"""The incidence matrix of a graph on the features, whatever the graph comes as."""

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from skadmm.operators.canonical import canonical, checked_count, checked_matrix, checked_weights
from skadmm.operators.precision_result import PrecisionGraph


class Edges(NamedTuple):
    """A graph as arrays: edge e joins tail[e] and head[e] and carries value[e], None where the graph has no values."""

    tail: np.ndarray
    head: np.ndarray
    value: np.ndarray | None
    d: int


def incidence(
    graph: Any,
    *,
    nodes: Sequence[Hashable] | None = None,
    weights: Any = None,
    signs: Any = None,
    n_features: int | None = None,
) -> sp.csr_array:
    """One row per edge (i, j): (A x)_e = w_ij (x_i − s_ij x_j), so that ‖A x‖₁ pulls neighbours together.

    Parameters
    ----------
    graph : networkx graph, adjacency matrix, edge list or PrecisionGraph
        An adjacency matrix is sparse or dense, d × d and symmetric; its upper triangle is read. An edge list is a
        sequence of pairs: of column numbers together with `n_features`, or of names together with `nodes`.
    nodes : sequence, optional
        The name of each feature, in column order. For a networkx graph the default is the graph's own order of nodes,
        except that with `n_features` given integer labels are column numbers.
    weights : None, True, str or array-like
        None: 1 everywhere. True or "weight": the adjacency's entries, or the edge attribute "weight" of a networkx
        graph; another string names another attribute. An array: one number ≥ 0 per edge.
    signs : None, "adjacency" or array-like
        None: +1 everywhere. "adjacency": the sign of the adjacency's entry or of the edge attribute; the weights are
        then its absolute values. An array: one of −1, +1 per edge.
    n_features : int, optional
        Number of features, where the graph does not say.

    Returns
    -------
    csr_array of shape (number of edges, d)
        Rows in the order of the edges given; of an adjacency matrix, row by row of its upper triangle.
    """
    if n_features is not None:
        n_features = checked_count(n_features, "n_features")
    if nodes is not None:
        nodes = list(nodes)
        if len(set(nodes)) != len(nodes):
            raise ValueError("nodes must name each feature once; a name occurs twice")
        if n_features not in (None, len(nodes)):
            raise ValueError(f"nodes must have length n_features={n_features}, got {len(nodes)}")
        n_features = len(nodes)

    attribute = weights if isinstance(weights, str) else "weight"
    needs_values = weights is True or isinstance(weights, str) or isinstance(signs, str)
    edges = _read(graph, nodes, n_features, attribute if needs_values else None)
    _check_simple(edges)
    m = edges.tail.size

    if weights is True or isinstance(weights, str):
        values = _values(edges, "weights", weights)
        w = checked_weights(np.abs(values) if isinstance(signs, str) else values, m, "weights", "edge")
    else:
        w = checked_weights(weights, m, "weights", "edge")
    s = _signs(signs, edges)

    rows = np.arange(m)
    entries = np.concatenate([w, -w * s])
    positions = (np.concatenate([rows, rows]), np.concatenate([edges.tail, edges.head]))
    return canonical(sp.coo_array((entries, positions), shape=(m, edges.d)))


def _read(graph: Any, nodes: Any, d: int | None, attribute: str | None) -> Edges:
    if isinstance(graph, PrecisionGraph):
        return _from_adjacency(graph.adjacency, d)
    if hasattr(graph, "nodes") and hasattr(graph, "edges"):
        return _from_networkx(graph, nodes, d, attribute)
    if sp.issparse(graph):
        return _from_adjacency(graph, d)
    if isinstance(graph, (str, bytes)) or not np.iterable(graph):
        raise ValueError(f"graph must be a networkx graph, an adjacency matrix or a list of edges, got {graph!r}")
    shape = getattr(graph, "shape", None)
    pairs: Any = graph if shape is not None else list(graph)
    if shape is None and any(not np.iterable(pair) or isinstance(pair, str) for pair in pairs):
        raise ValueError("graph must hold pairs when it is a list of edges")
    if shape is None:
        shape = (len(pairs), len(pairs[0]) if pairs else 2)
    # Two edges on two nodes would repeat an edge, so a 2 × 2 array on two features is an adjacency matrix.
    if len(shape) == 2 and shape[0] == shape[1] and d in (None, shape[0]):
        return _from_adjacency(pairs, d)
    if len(shape) == 2 and shape[1] == 2:
        return _from_pairs(np.asarray(pairs) if hasattr(pairs, "shape") else pairs, nodes, d)
    wanted = "d × d" if d is None else f"{d} × {d}"
    raise ValueError(f"graph must be an adjacency matrix ({wanted}) or a list of pairs, got shape {tuple(shape)}")


def _from_adjacency(adjacency: Any, d: int | None) -> Edges:
    matrix = canonical(checked_matrix(adjacency, "graph"))
    if matrix.shape[0] != matrix.shape[1] or d not in (None, matrix.shape[0]):
        wanted = "square" if d is None else f"{d} × {d}"
        raise ValueError(f"graph must be {wanted} when it is an adjacency matrix, got shape {matrix.shape}")
    if (matrix != matrix.T).nnz:
        raise ValueError("graph must be symmetric when it is an adjacency matrix; take (G + G.T) / 2 or G.maximum(G.T)")
    if matrix.diagonal().any():
        node = int(np.flatnonzero(matrix.diagonal())[0])
        raise ValueError(f"graph must have no self-loops, got one at node {node}")
    upper = sp.csr_array(sp.triu(matrix, k=1, format="csr")).tocoo()
    return Edges(upper.coords[0], upper.coords[1], upper.data, matrix.shape[0])


def _from_networkx(graph: Any, nodes: Any, d: int | None, attribute: str | None) -> Edges:
    labels = list(graph.nodes)
    numbered = all(isinstance(label, (int, np.integer)) for label in labels)
    pairs = [(u, v) for u, v in graph.edges()]
    if nodes is None and d is not None and numbered:
        edges = _from_pairs(pairs, None, d)
    else:
        names = labels if nodes is None else nodes
        if d is not None and len(names) != d:
            raise ValueError(f"graph must have n_features={d} nodes when nodes is not given, got {len(names)}")
        edges = _from_pairs(pairs, names, len(names))
    if attribute is None:
        return edges
    found = [value for _, _, value in graph.edges(data=attribute)]
    if any(value is None for value in found):
        u, v = pairs[found.index(None)]
        raise ValueError(f"graph must carry the attribute {attribute!r} on every edge; ({u!r}, {v!r}) has none")
    return edges._replace(value=np.asarray(found, dtype=np.float64))


def _from_pairs(pairs: Any, nodes: Any, d: int | None) -> Edges:
    if d is None:
        raise ValueError("n_features or nodes must be given when graph is a list of edges")
    if any(len(pair) != 2 for pair in pairs):
        raise ValueError("graph must hold pairs when it is a list of edges")
    if nodes is not None:
        column = {name: k for k, name in enumerate(nodes)}
        unknown = next((name for pair in pairs for name in pair if name not in column), None)
        if unknown is not None:
            raise ValueError(f"graph has an edge at {unknown!r}, which is not among nodes")
        pairs = [(column[u], column[v]) for u, v in pairs]
    ends = np.asarray(pairs).reshape(-1, 2)
    if ends.size and ends.dtype.kind not in "iu":
        raise ValueError("graph must hold integer columns when it is a list of edges; for names, give nodes")
    ends = ends.astype(np.int64)
    outside = ends[(ends < 0) | (ends >= d)]
    if outside.size:
        raise ValueError(f"graph must hold columns in 0 … {d - 1}, got {outside[0]}")
    return Edges(ends[:, 0], ends[:, 1], None, d)


def _check_simple(edges: Edges) -> None:
    loops = np.flatnonzero(edges.tail == edges.head)
    if loops.size:
        raise ValueError(f"graph must have no self-loops, got one at node {edges.tail[loops[0]]}")
    keys = np.minimum(edges.tail, edges.head).astype(np.int64) * edges.d + np.maximum(edges.tail, edges.head)
    _, first = np.unique(keys, return_index=True)
    if first.size != keys.size:
        e = int(np.setdiff1d(np.arange(keys.size), first)[0])
        raise ValueError(f"graph must hold each edge once, got ({edges.tail[e]}, {edges.head[e]}) twice")


def _signs(signs: Any, edges: Edges) -> np.ndarray:
    m = edges.tail.size
    if signs is None:
        return np.ones(m)
    if isinstance(signs, str):
        if signs != "adjacency":
            raise ValueError(f"signs must be None, 'adjacency' or an array of −1 and +1, got {signs!r}")
        values = _values(edges, "signs", signs)
        return np.where(values < 0, -1.0, 1.0)
    try:
        values = np.asarray(signs, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"signs must be an array of −1 and +1, got {signs!r}") from error
    if values.shape != (m,):
        raise ValueError(f"signs must have length {m}, one per edge; got shape {values.shape}")
    if not np.all(np.abs(values) == 1):
        raise ValueError(f"signs must be −1 or +1, got {values[np.abs(values) != 1][0]}")
    return values


def _values(edges: Edges, role: str, asked: Any) -> np.ndarray:
    if edges.value is None:
        raise ValueError(f"{role}={asked!r} needs a graph with values; a list of edges has none, give an array")
    if not np.all(np.isfinite(edges.value)):
        raise ValueError(f"{role}={asked!r}: the graph's values must be finite, got NaN or infinity")
    return edges.value

"""The incidence matrix of a graph on the features, whatever the graph comes as."""

import warnings
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from skadmm._types import Graph
from skadmm.operators.canonical import canonical, checked_count, checked_matrix, checked_weights
from skadmm.operators.precision_result import PrecisionGraph


class Edges(NamedTuple):
    """A graph as arrays: edge e joins tail[e] and head[e] and carries value[e], None where the graph has no values."""

    tail: np.ndarray
    head: np.ndarray
    value: np.ndarray | None
    d: int


class Carried(NamedTuple):
    """Which values of a graph are requested."""

    attribute: str
    read: bool
    needed: bool
    """Is it an error if there are none?"""


def incidence(
    graph: Graph | PrecisionGraph | None,
    *,
    nodes: Sequence[Hashable] | None = None,
    weights: ArrayLike | None = None,
    signs: ArrayLike | None = None,
    n_features: int | None = None,
) -> sp.csr_array:
    """Build the differences over the edges of a graph.

    Edge (i, j) is the row (A x)_e = w_ij (x_i − s_ij x_j), so that ‖A x‖₁ penalises differences between neighbours.

    Weights and signs are those the graph carries: of an adjacency matrix the absolute values and the signs of its
    entries; of a networkx graph those of the edge attribute "weight"; of an edge list those of the third entry of each
    edge. A graph that carries none has weights of 1 and signs of +1. The arcs of a directed networkx graph are edges;
    two opposite arcs are one edge, and must carry the same value. Self-loops are dropped, with a warning.

    Parameters
    ----------
    graph : networkx graph, adjacency matrix, edge list or PrecisionGraph
        An adjacency matrix is sparse or dense, d × d and symmetric; its upper triangle is read. An edge list is a
        sequence of pairs, or of triples (i, j, value): of column numbers together with `n_features`, or of names
        together with `nodes`.
    nodes : sequence, optional
        The name of each feature, in column order. For a networkx graph the default is the graph's own order of nodes,
        except that with `n_features` given integer labels are column numbers.
    weights : None, False, True, str or array-like
        None: the absolute values that the graph carries, else 1. False: 1 everywhere. True: as None, but an error where
        the graph carries none. A string: the absolute values of another edge attribute of a networkx graph. An array:
        one number ≥ 0 per edge.
    signs : None, False, "adjacency" or array-like
        None: the signs of the values that the graph carries, else +1. False: +1 everywhere. "adjacency": as None, but
        an error where the graph carries none. An array: one of −1, +1 per edge.
    n_features : int, optional
        Number of features, where the graph does not say.

    Returns
    -------
    csr_array of shape (number of edges, d)
        Rows in the order of the edges given; of an adjacency matrix, row by row of its upper triangle.

    See Also
    --------
    skadmm.operators.chain : Neighbours in an order.
    skadmm.operators.grid : Neighbours in an image.
    skadmm.operators.precision_graph : A graph learnt from data.

    Examples
    --------
    >>> import networkx
    >>> from skadmm.operators import incidence
    >>> graph = networkx.Graph()
    >>> graph.add_edge("a", "b", weight=2.0)
    >>> graph.add_edge("b", "c", weight=-1.0)
    >>> incidence(graph, nodes=["a", "b", "c"]).toarray()
    array([[ 2., -2.,  0.],
           [ 0.,  1.,  1.]])
    >>> incidence([(0, 2)], n_features=3).toarray()
    array([[ 1.,  0., -1.]])
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
    if isinstance(signs, str) and signs != "adjacency":
        raise ValueError(f"signs must be None, False, 'adjacency' or an array of −1 and +1, got {signs!r}")

    carried = Carried(
        attribute=weights if isinstance(weights, str) else "weight",
        read=weights is None or weights is True or signs is None or isinstance(weights, str) or isinstance(signs, str),
        needed=weights is True or isinstance(weights, str) or isinstance(signs, str),
    )
    edges = _simple(_read(graph, nodes, n_features, carried), nodes)
    m = edges.tail.size
    if carried.needed and edges.value is None:
        role = f"signs={signs!r}" if isinstance(signs, str) else f"weights={weights!r}"
        raise ValueError(f"{role} needs a graph with values; this one has none: give triples or an array")
    if edges.value is not None and not np.all(np.isfinite(edges.value)):
        raise ValueError("graph must carry finite values, got NaN or infinity")

    values = np.ones(m) if edges.value is None else edges.value
    if weights is None or weights is True or isinstance(weights, str):
        w = np.abs(values)
    else:
        w = np.ones(m) if weights is False else checked_weights(weights, m, "weights", "edge")
    if signs is None or isinstance(signs, str):
        s = np.where(values < 0, -1.0, 1.0)
    else:
        s = np.ones(m) if signs is False else _checked_signs(signs, m)

    rows = np.arange(m)
    entries = np.concatenate([w, -w * s])
    positions = (np.concatenate([rows, rows]), np.concatenate([edges.tail, edges.head]))
    return canonical(sp.coo_array((entries, positions), shape=(m, edges.d)))


def _read(graph: Any, nodes: Any, d: int | None, carried: Carried) -> Edges:
    if isinstance(graph, PrecisionGraph):
        return _from_adjacency(graph.adjacency, d)
    if hasattr(graph, "nodes") and hasattr(graph, "edges"):
        return _from_networkx(graph, nodes, d, carried)
    if sp.issparse(graph):
        return _from_adjacency(graph, d)
    if isinstance(graph, (str, bytes, Mapping)) or not np.iterable(graph):
        raise ValueError(f"graph must be a networkx graph, an adjacency matrix or a list of edges, got {graph!r}")
    shape = getattr(graph, "shape", None)
    edges: Any = list(graph) if shape is None else np.asarray(graph)
    if shape is None and any(not np.iterable(edge) or isinstance(edge, str) for edge in edges):
        raise ValueError("graph must hold pairs when it is a list of edges")
    if shape is None:
        shape = (len(edges), len(edges[0]) if edges else 2)
    square = len(shape) == 2 and shape[0] == shape[1]
    if square and (d in (None, shape[0]) or shape[0] == 3) and not _are_triples(edges, range(d or 3), nodes):
        return _from_adjacency(edges, d)
    if len(shape) == 2 and shape[1] in (2, 3):
        return _from_edges(edges, nodes, d, carried)
    wanted = "d × d" if d is None else f"{d} × {d}"
    raise ValueError(
        f"graph must be an adjacency matrix ({wanted}) or a list of pairs or triples, got shape {tuple(shape)}"
    )


def _are_triples(edges: Any, columns: range, nodes: Any) -> bool:
    """Are the rows of a square array edges with values? Only three triples can be.

    The first two entries of each are then different nodes, which holds for no symmetric matrix with a zero diagonal
    unless an edge is repeated. (Two pairs on two nodes would repeat an edge, so a 2 × 2 array is an adjacency matrix.)
    """
    if len(edges) != 3 or any(len(edge) != 3 for edge in edges):
        return False
    known = set(columns) if nodes is None else set(nodes)
    pairs = [frozenset(edge[:2]) for edge in edges]
    return len(set(pairs)) == 3 and all(len(pair) == 2 and pair <= known for pair in pairs)


def _from_adjacency(adjacency: Any, d: int | None) -> Edges:
    matrix = canonical(checked_matrix(adjacency, "graph"))
    if matrix.shape[0] != matrix.shape[1] or d not in (None, matrix.shape[0]):
        wanted = "square" if d is None else f"{d} × {d}"
        raise ValueError(f"graph must be {wanted} when it is an adjacency matrix, got shape {matrix.shape}")
    if (matrix != matrix.T).nnz:
        raise ValueError("graph must be symmetric when it is an adjacency matrix; take (G + G.T) / 2 or G.maximum(G.T)")
    upper = sp.csr_array(sp.triu(matrix, format="csr")).tocoo()
    return Edges(upper.coords[0], upper.coords[1], upper.data, matrix.shape[0])


def _from_networkx(graph: Any, nodes: Any, d: int | None, carried: Carried) -> Edges:
    labels = list(graph.nodes)
    numbered = all(isinstance(label, (int, np.integer)) for label in labels)
    found = [(u, v, value) for u, v, value in graph.edges(data=carried.attribute)]
    if graph.is_directed():
        found = _undirected(found, carried.read)
    pairs = [(u, v) for u, v, _ in found]
    if nodes is None and d is not None and numbered:
        edges = _from_pairs(pairs, None, d)
    else:
        names = labels if nodes is None else nodes
        if d is not None and len(names) != d:
            raise ValueError(f"graph must have n_features={d} nodes when nodes is not given, got {len(names)}")
        edges = _from_pairs(pairs, names, len(names))
    if not carried.read:
        return edges
    return edges._replace(value=_as_values([value for _, _, value in found], pairs, carried))


def _undirected(arcs: list[Any], valued: bool) -> list[Any]:
    """Arcs as edges: of two opposite arcs the first; an error where they carry different values that are used."""
    kept: dict[Any, Any] = {}
    for u, v, value in arcs:
        if (v, u) not in kept or u == v:
            kept[u, v] = value
        elif valued and kept[v, u] != value:
            raise ValueError(
                f"graph carries {kept[v, u]!r} from {v!r} to {u!r} and {value!r} back: an edge has one value; "
                "make the graph undirected, or ignore the values with False for the weights and the signs"
            )
    return [(u, v, value) for (u, v), value in kept.items()]


def _from_edges(edges: Any, nodes: Any, d: int | None, carried: Carried) -> Edges:
    """From pairs, or from triples whose third entry is a value or, as in networkx, a dict of attributes."""
    if isinstance(edges, np.ndarray) and edges.dtype.kind in "iuf" and nodes is None:
        ends, values = edges[:, :2], edges[:, 2:]
        whole = ends.astype(np.int64) if np.all(ends == np.floor(ends)) else ends
        found = _from_pairs(whole, None, d)
        return found._replace(value=values[:, 0].astype(np.float64)) if carried.read and values.size else found
    edges = edges.tolist() if isinstance(edges, np.ndarray) else edges
    if len({len(edge) for edge in edges}) > 1 or any(len(edge) not in (2, 3) for edge in edges):
        raise ValueError("graph must hold pairs, or triples, when it is a list of edges")
    pairs = [tuple(edge[:2]) for edge in edges]
    found = _from_pairs(pairs, nodes, d)
    if not carried.read or not edges or len(edges[0]) == 2:
        return found
    third = [edge[2].get(carried.attribute) if isinstance(edge[2], dict) else edge[2] for edge in edges]
    return found._replace(value=_as_values(third, pairs, carried))


def _as_values(found: list[Any], pairs: list[Any], carried: Carried) -> np.ndarray | None:
    """The values of the edges as numbers; None where no edge has one."""
    if not carried.needed and all(value is None for value in found):
        return None
    found = [
        0.0 if value is None and pair[0] == pair[1] else value for pair, value in zip(pairs, found, strict=True)
    ]  # self-loops are dropped, with a value or without
    for pair, value in zip(pairs, found, strict=True):
        if value is None:
            raise ValueError(
                f"graph must carry the attribute {carried.attribute!r} on every edge; {tuple(pair)!r} has none. "
                "Set it on all of them, or ignore it: edge_weights=False and edge_signs=False of an estimator, "
                "weights=False and signs=False of incidence"
            )
        if isinstance(value, str) or not np.isscalar(value):
            raise ValueError(f"graph must carry numbers, got {value!r} on the edge {tuple(pair)!r}")
    return np.asarray(found, dtype=np.float64)


def _from_pairs(pairs: Any, nodes: Any, d: int | None) -> Edges:
    if d is None:
        raise ValueError("n_features or nodes must be given when graph is a list of edges")
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


def _simple(edges: Edges, nodes: Sequence[Hashable] | None = None) -> Edges:
    """Without self-loops, which say nothing about two features; an error where an edge occurs twice."""

    def name(node: Any) -> str:
        return str(node) if nodes is None else repr(nodes[node])

    loops = edges.tail == edges.head
    if loops.any():
        count = int(np.count_nonzero(loops))
        what = "a self-loop" if count == 1 else f"{count} self-loops, the first"
        where = name(edges.tail[loops][0])
        warnings.warn(f"graph has {what} at node {where}: an edge from a node to itself is dropped", stacklevel=4)
        value = None if edges.value is None else edges.value[~loops]
        edges = Edges(edges.tail[~loops], edges.head[~loops], value, edges.d)
    keys = np.minimum(edges.tail, edges.head).astype(np.int64) * edges.d + np.maximum(edges.tail, edges.head)
    _, first = np.unique(keys, return_index=True)
    if first.size != keys.size:
        e = int(np.setdiff1d(np.arange(keys.size), first)[0])
        raise ValueError(f"graph must hold each edge once, got ({name(edges.tail[e])}, {name(edges.head[e])}) twice")
    return edges


def _checked_signs(signs: Any, m: int) -> np.ndarray:
    try:
        values = np.asarray(signs, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"signs must be an array of −1 and +1, got {signs!r}") from error
    if values.shape != (m,):
        raise ValueError(f"signs must have length {m}, one per edge; got shape {values.shape}")
    if not np.all(np.abs(values) == 1):
        raise ValueError(f"signs must be −1 or +1, got {values[np.abs(values) != 1][0]}")
    return values

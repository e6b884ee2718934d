"""graph=: the neighbourhood of the features in any of its forms, as a penalty matrix and a graph with names."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from skadmm import _summary
from skadmm._names import argument_names, no_column
from skadmm.backends.frames import from_arrow, is_polars
from skadmm.estimators._columns import (
    are_integers,
    check_mode,
    is_integer,
    refuse_unknown,
    refuse_unmatched,
    warn_unknown,
)
from skadmm.estimators._large import LargeTable, large_covariance
from skadmm.io import codec
from skadmm.operators import grid, incidence, precision_graph


class FeatureGraph(NamedTuple):
    """The graph that a model used: edge e joins the features ``edges[e]``, with a weight and a sign.

    Parameters
    ----------
    edges : ndarray of shape (m, 2)
        Pairs of column numbers, in the direction of the edges where they have one.
    weights : ndarray of shape (m,)
        The weight of each edge.
    signs : ndarray of shape (m,)
        +1 where the difference of the two coefficients is penalised, −1 where their sum is.
    names : ndarray of str
        A name for each feature.
    shape : tuple of int
        The shape of a grid; empty for any other graph.

    See Also
    --------
    skadmm.plotting.coefficients_on_graph : Draws it.

    Examples
    --------
    >>> import numpy as np
    >>> from skadmm import FusedLassoRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((50, 6))
    >>> y = X @ [1.0, 1.0, 1.0, 0.0, 0.0, 0.0] + rng.standard_normal(50)
    >>> model = FusedLassoRegressor(alpha=0.1, graph=[(0, 1), (1, 2)]).fit(X, y)
    >>> model.graph_.edges.tolist(), model.graph_.names.tolist()
    ([[0, 1], [1, 2]], ['x0', 'x1', 'x2', 'x3', 'x4', 'x5'])
    """

    edges: np.ndarray
    weights: np.ndarray
    signs: np.ndarray
    names: np.ndarray
    shape: tuple[int, ...] = ()

    @property
    def n_features(self) -> int:
        """The number of nodes."""
        return len(self.names)

    def _facts(self) -> dict[str, Any]:
        """The essentials, in words."""
        weights = self.weights
        alike = bool(weights.size == 0 or np.all(weights == weights[0]))
        negative = int(np.count_nonzero(self.signs < 0))
        return {
            "features": self.n_features,
            "edges": len(self.edges),
            "shape": " × ".join(map(str, self.shape)) or None,
            "weights": None if alike else f"{weights.min():.4g} to {weights.max():.4g}",
            "negative_edges": negative or None,
        }

    def __repr__(self) -> str:
        return _summary.line("FeatureGraph", self._facts())

    def _repr_html_(self) -> str:
        return _summary.table("FeatureGraph", self._facts())

    def matrix(self) -> sp.csr_array:
        """One row w (x_i − s x_j) per edge."""
        m = len(self.edges)
        entries = np.concatenate([self.weights, -self.weights * self.signs])
        positions = (np.tile(np.arange(m), 2), self.edges.T.ravel())
        return sp.csr_array(sp.coo_array((entries, positions), shape=(m, self.n_features)))

    def to_networkx(self) -> Any:
        """Return the graph as a networkx graph with the features' names as nodes."""
        import networkx as nx

        graph = nx.Graph()
        graph.add_nodes_from(self.names.tolist())
        for (i, j), weight, sign in zip(self.edges, self.weights, self.signs, strict=True):
            graph.add_edge(self.names[i], self.names[j], weight=float(weight * sign))
        return graph


def feature_graph(
    graph: Any,
    X: Any,
    names: Sequence[Any] | None,
    *,
    weights: Any = None,
    signs: Any = None,
    unknown: str = "raise",
) -> FeatureGraph:
    """`graph` on the columns of `X`.

    None or "chain" is a chain in column order; a tuple of integers is the shape of a grid; "precision" learns a graph
    on the rows of `X`; anything else is given to :func:`skadmm.operators.incidence`, with the names of the columns as
    nodes.
    Weights and signs are those the graph carries, unless `weights` and `signs` say otherwise. With ``unknown="ignore"``
    edges at nodes that are not among the columns are left out, with a warning; an error where no edge is left.
    """
    d, ignore = X.shape[1], unknown != "raise" and check_mode(unknown)
    shape: tuple[int, ...] = ()
    if graph is None or isinstance(graph, str) or _is_shape(graph):
        for given, name in ((weights, "edge_weights"), (signs, "edge_signs")):
            if given is not None and given is not False and graph != "precision":
                raise ValueError(f"{name}={given!r}: it takes None or False for a chain or a grid")
        if graph is None or graph == "chain":
            return chain_graph(d, names)
        if isinstance(graph, str):
            if graph != "precision":
                raise ValueError(
                    f"graph={graph!r}: it takes None or 'chain', 'precision', the shape of a grid, a networkx graph, "
                    "an adjacency matrix or a list of edges"
                )
            learnt_from = large_covariance(X) if isinstance(X, LargeTable) else X
            found = precision_graph(learnt_from) if X.shape[0] > 1 else sp.csr_array((d, d))
            rows = incidence(found, weights=weights, signs=signs, n_features=d)
        else:
            shape = tuple(int(length) for length in graph)
            if any(length < 1 for length in shape) or int(np.prod(shape)) != d:
                raise ValueError(f"graph={graph!r} is a grid of {int(np.prod(shape))} nodes: X has {d} features")
            rows = grid(shape)
    else:
        graph = unframed(graph, names, ignore, weights if isinstance(weights, str) else None)
        nodes, missing = _nodes_of(graph, names, ignore)
        if missing:
            graph, kept = _without(graph, missing, nodes or ())
            weights, signs = (
                value[kept] if _per_edge(value, kept) else value for value in map(_array, (weights, signs))
            )
        with argument_names(weights="edge_weights", signs="edge_signs"):
            rows = incidence(graph, nodes=nodes, weights=weights, signs=signs, n_features=d)
    return from_matrix(rows, names, shape, directed=_has_directions(graph))


def chain_graph(d: int, names: Sequence[Any] | None) -> FeatureGraph:
    """The features in their order, each joined to the next."""
    edges = np.arange(d - 1)[:, None] + np.arange(2)
    return FeatureGraph(edges, np.ones(d - 1), np.ones(d - 1), as_names(names, d))


def _has_directions(graph: Any) -> bool:
    """Return whether edges have a direction, as in a directed networkx graph or a list of edges."""
    if _is_networkx(graph):
        return bool(graph.is_directed())
    return isinstance(graph, (list, tuple)) and not _is_shape(graph)


def from_matrix(
    rows: sp.csr_array, names: Sequence[Any] | None, shape: tuple[int, ...] = (), *, directed: bool = False
) -> FeatureGraph:
    """The graph of an incidence matrix. Edges go from the lower to the higher column number, or where they are
    `directed` from the positive to the other entry of their row."""
    d = rows.shape[1]
    rows = rows[np.diff(rows.indptr) == 2]
    edges = rows.indices.reshape(-1, 2).astype(np.int64)
    entries = rows.data.reshape(-1, 2)
    if directed:
        backward = (entries[:, 0] < 0) & (entries[:, 1] > 0)
        edges[backward] = edges[backward, ::-1]
    signs = np.where(entries[:, 0] * entries[:, 1] < 0, 1.0, -1.0)
    return FeatureGraph(edges, np.abs(entries[:, 0]), signs, as_names(names, d), shape)


def joined(first: FeatureGraph, second: FeatureGraph) -> FeatureGraph:
    """The edges of both graphs on the same features; an edge that is in both is taken from the first."""
    known = {frozenset(edge) for edge in first.edges.tolist()}
    new = np.array([frozenset(edge) not in known for edge in second.edges.tolist()], dtype=bool)
    edges, weights, signs = (
        np.concatenate([a, b[new]]) for a, b in zip(first[:3], second[:3], strict=True)
    )  # fmt: skip
    return FeatureGraph(edges, weights, signs, first.names)


def as_names(names: Sequence[Any] | None, d: int) -> np.ndarray:
    """The features' names, or x0, x1, … as scikit-learn has it."""
    return np.array([f"x{j}" for j in range(d)] if names is None else [str(name) for name in names], dtype=str)


def _is_shape(graph: Any) -> bool:
    return (
        isinstance(graph, (tuple, list))
        and len(graph) > 0
        and all(isinstance(length, (int, np.integer)) and not isinstance(length, bool) for length in graph)
    )


EDGE_COLUMNS = ("source", "target", "weight")
"""The columns of a DataFrame of edges, as in networkx; without these names, its first two or three."""


def unframed(graph: Any, names: Sequence[Any] | None, ignore: bool = False, value: str | None = None) -> Any:
    """A DataFrame of pandas, polars or pyarrow as an adjacency matrix in the order of X's columns, or as a list of
    edges, each with its entry in the column `value` where that is given; other values unchanged."""
    graph = from_arrow(graph)
    if is_polars(graph):
        names_read = [graph.columns[k] for k in _edge_columns(list(graph.columns), value)]
        return list(zip(*(graph.get_column(name).to_list() for name in names_read), strict=True))
    if not (hasattr(graph, "columns") and hasattr(graph, "index") and hasattr(graph, "loc")):
        return graph
    rows, columns = list(graph.index), list(graph.columns)
    if set(rows) != set(columns):
        return list(graph.iloc[:, _edge_columns(columns, value)].itertuples(index=False, name=None))
    if all(map(is_integer, columns)) and not are_integers(names):
        return graph.sort_index(axis=0).sort_index(axis=1).to_numpy()
    if names is None:
        raise ValueError(f"graph has the node {columns[0]!r}: to match names, X must be a DataFrame with such columns")
    for nodes, where in ((rows, "graph"), (columns, "graph"), (list(names), "X")):
        if len(set(nodes)) < len(nodes):
            odd = next(node for node in nodes if nodes.count(node) > 1)
            raise ValueError(f"graph: {where} has the name {odd!r} twice; names of columns are nodes of the graph")
    known = set(names)
    unknown = [name for name in columns if name not in known]
    if unknown and not ignore:
        refuse_unknown("graph", unknown, len(columns))
    if all(kind.kind == "b" for kind in graph.dtypes):  # with numbers in the missing places they would be objects
        graph = graph.astype(np.float64)
    left = graph.reindex(index=list(names), columns=list(names), fill_value=0.0).to_numpy()
    if unknown and not np.any(np.triu(left, 1)):
        refuse_unmatched(columns, list(names))
    if unknown:
        warn_unknown("graph", len(unknown), len(columns), "with their edges")
    return left


def _edge_columns(columns: list[Any], value: str | None) -> list[int]:
    """The numbers of the columns of a DataFrame of edges that are read: both ends, and the value where there is one."""
    named = set(EDGE_COLUMNS[:2]) <= set(columns)
    if value is not None:
        if value not in columns:
            raise ValueError(f"edge_weights={value!r}: in the graph {no_column(value, list(map(str, columns)))}")
        ends = [columns.index(name) for name in EDGE_COLUMNS[:2]] if named else [0, 1]
        return [*ends, columns.index(value)]
    return [columns.index(name) for name in EDGE_COLUMNS if name in columns] if named else list(range(len(columns)))


def _nodes_of(graph: Any, names: Sequence[Any] | None, ignore: bool) -> tuple[list[Any] | None, set[Any]]:
    """The columns' names, where the graph's nodes are names (None where they are numbers or it has none), and the nodes
    to leave out."""
    if hasattr(graph, "nodes") and hasattr(graph, "edges"):
        labels = list(graph.nodes)
    elif isinstance(graph, (list, tuple)) and all(isinstance(edge, (list, tuple)) for edge in graph):
        labels = [node for edge in graph for node in edge[:2]]
    elif isinstance(graph, np.ndarray) and graph.ndim == 2 and graph.dtype.kind in "OUS":
        labels = graph[:, :2].ravel().tolist()
    else:
        shape: tuple[int, ...] = getattr(graph, "shape", ())  # three rows of three numbers may be edges with values
        matrix = sp.issparse(graph) or (len(shape) == 2 and shape[0] == shape[1] > 3)
        return (list(names) if matrix and names is not None else None), set()
    if all(isinstance(label, Real) for label in labels) and not are_integers(names):
        return None, set()
    if names is None:
        odd = next(label for label in labels if not isinstance(label, Real))
        raise ValueError(
            f"graph has the node {odd!r}: to match names, X must be a DataFrame with columns of these names"
        )
    known, stated = set(names), dict.fromkeys(labels)
    unknown = [label for label in stated if label not in known]
    if unknown and not ignore:
        refuse_unknown("graph", unknown, len(stated))
    return list(names), set(unknown)


def _without(graph: Any, missing: set[Any], names: Sequence[Any]) -> tuple[Any, np.ndarray]:
    """The graph without some nodes and their edges, and for each of its edges whether it was kept; `names` are those of
    the columns."""
    if hasattr(graph, "nodes") and hasattr(graph, "edges"):
        found = list(graph.edges(data=True))
        left: Any = type(graph)()
        left.add_nodes_from(node for node in graph.nodes if node not in missing)
        left.add_edges_from(edge for edge in found if missing.isdisjoint(edge[:2]))
        nodes = list(graph.nodes)
    else:
        found = graph.tolist() if isinstance(graph, np.ndarray) else list(graph)
        left = [tuple(edge) for edge in found if missing.isdisjoint(edge[:2])]
        nodes = list(dict.fromkeys(node for edge in found for node in edge[:2]))
    kept = np.array([missing.isdisjoint(edge[:2]) for edge in found], dtype=bool)
    if not kept.any():
        refuse_unmatched(nodes, names)
    dropped = int(np.count_nonzero(~kept))
    warn_unknown("graph", len(missing), len(nodes), f"with {dropped} of {kept.size} edges")
    return left, kept


def _array(value: Any) -> Any:
    """A sequence of numbers as an array, so that some can be selected; other values unchanged."""
    return value if value is None or isinstance(value, (bool, str)) or not np.iterable(value) else np.asarray(value)


def _per_edge(value: Any, kept: np.ndarray) -> bool:
    """Return whether `value` holds one number for each edge."""
    return isinstance(value, np.ndarray) and value.shape == kept.shape


def _is_networkx(value: Any) -> bool:
    networkx = sys.modules.get("networkx")  # a caller with such a graph has imported it
    return networkx is not None and isinstance(value, networkx.Graph)


def _encode_networkx(graph: Any, encode: codec.Encode) -> dict[str, Any]:
    edges = [[encode(u), encode(v), encode(dict(data))] for u, v, data in graph.edges(data=True)]
    directed = {"directed": True} if graph.is_directed() else {}
    return {"nodes": [encode(node) for node in graph.nodes], "edges": edges} | directed


def _decode_networkx(stored: dict[str, Any], decode: codec.Decode) -> Any:
    import networkx as nx

    graph = nx.DiGraph() if stored.get("directed") else nx.Graph()
    graph.add_nodes_from(decode(node) for node in stored["nodes"])
    graph.add_edges_from((decode(u), decode(v), decode(data)) for u, v, data in stored["edges"])
    return graph


codec.register_fields("graph", FeatureGraph)
codec.register("networkx", _is_networkx, _encode_networkx, _decode_networkx)

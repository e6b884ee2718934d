"""The coefficients of a model on its graph."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from skadmm.plotting.models import INK, check_coefficients, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from sklearn.base import BaseEstimator

MOST_LABELS = 60
"""Beyond this many names, they would cover the picture."""
MOST_SPREAD = 150
"""Up to this many nodes, a layout that spreads dense parts of the graph is affordable."""
MOST_TICKS, TICK_CHARACTERS = 16, 60
"""The maximum number of names along a chain, and of their characters where they are not slanted."""
NAME_CHARACTERS = 20
"""Longer names are shortened."""
MOST_LARGE, MOST_VECTORS = 100, 2000
"""Up to this many features a chain has large nodes, and a picture keeps its nodes and edges as vectors."""
NODE_RADIUS, LABEL_SIZE = 5.5, 8.0
"""Points that a node takes around its centre, and the size of the names."""
BESIDE = (
    ((0, 6.5), "center", "bottom"), ((0, -6.5), "center", "top"), ((7, 0), "left", "center"),
    ((-7, 0), "right", "center"), ((6, 6), "left", "bottom"), ((-6, 6), "right", "bottom"), ((6, -6), "left", "top"),
    ((-6, -6), "right", "top"),
)  # fmt: skip
"""Where a name may be, relative to its node."""
COLORS = "RdBu_r"
"""Red positive, blue negative, nearly white at zero; distinguishable for colour-blind readers."""


def coefficients_on_graph(
    model: BaseEstimator,
    *,
    problem: int = 0,
    positions: Mapping[str, ArrayLike] | None = None,
    labels: bool | None = None,
    limit: float | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the graph of a fused lasso, every node in the colour of its coefficient.

    Colour is the value; a dark edge joins two features with equal coefficients. Edges with a negative sign are dashed,
    and a dark one joins two features with opposite coefficients. A chain is drawn from left to right at the height of
    its coefficients. With ``standardize=True`` the coefficients are those of the standardised columns, which are what
    the penalty fuses.

    Parameters
    ----------
    model : estimator
        A fitted fused lasso.
    problem : int
        Which row of ``coef_``, for more than two classes or several outputs.
    positions : {name: (x, y)}, optional
        Where the nodes are drawn; by default a chain on a line, a grid as a grid, and any other graph by networkx'
        layouts.
    labels : bool, optional
        Write the features' names; by default where at most 60 are to be written: all of them, or else those whose
        coefficient is not zero. By default a name for which there is no room beside its node is left out, those of
        small coefficients first; True writes every name.
    limit : float, optional
        The coefficient of the darkest colours, the largest by default; give the same to pictures side by side.
    ax : Axes or None
        The axes to draw into; None makes a new figure.

    Returns
    -------
    Axes
        The axes drawn into.

    See Also
    --------
    skadmm.plotting.coefficient_image : For grids.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from skadmm import FusedLassoRegressor
    >>> from skadmm.plotting import coefficients_on_graph
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((50, 6))
    >>> y = X @ [1.0, 1.0, 1.0, 0.0, 0.0, 0.0] + rng.standard_normal(50)
    >>> model = FusedLassoRegressor(alpha=0.1).fit(X, y)
    >>> axes = coefficients_on_graph(model)
    """
    check_coefficients(model)
    graph = getattr(model, "graph_", None)
    if graph is None:
        raise ValueError(f"model={type(model).__name__}: coefficients_on_graph takes a fitted model with a graph_")
    own = ax is None
    ax = new_axes(ax, (6.6, 5.0))
    scale = getattr(model, "scale_", np.ones(graph.n_features))  # files of 0.1.0 have none
    scaled = not np.all(scale == 1.0)
    coef = np.atleast_2d(model.coef_)[problem] * scale
    clusters = np.atleast_2d(model.clusters_)[problem]
    chain = chain_order(graph) if positions is None else None
    places = _places(graph, positions) if chain is None else np.column_stack([np.argsort(chain), coef]).astype(float)
    rasterized = graph.n_features > MOST_VECTORS
    _draw_edges(ax, graph, places, clusters, rasterized)
    limit = float(np.abs(coef).max()) or 1.0 if limit is None else limit
    size = 90 if chain is None else 30 if coef.size <= MOST_LARGE else 10
    nodes = ax.scatter(
        places[:, 0], places[:, 1], s=size, c=coef, cmap=COLORS, vmin=-limit, vmax=limit,
        edgecolors=INK, linewidths=0.6, zorder=2, rasterized=rasterized,
    )  # fmt: skip
    name = "coefficient of the standardised column" if scaled else "coefficient"
    if own and chain is None:  # the axis of a chain has the values
        ax.figure.colorbar(nodes, ax=ax, shrink=0.8, label=name)
    ax.margins(0.1 if chain is None else 0.05)
    _write_names(ax, graph.names, places, coef, labels if chain is None else labels or False)
    if chain is None:
        ax.set_axis_off()
    else:
        named = any(str(text) not in (str(k), f"x{k}") for k, text in enumerate(graph.names))
        ax.set(xlabel="feature" if named else "position along the chain", ylabel=name)
        if named:
            _name_ticks(ax, graph.names, chain)
        ax.spines[["top", "right"]].set_visible(False)
    return ax


def _draw_edges(ax: Any, graph: Any, places: np.ndarray, clusters: np.ndarray, rasterized: bool) -> None:
    """Draw dark edges between features of one cluster and light ones between others, dashed where the sign is -1."""
    fused = clusters[graph.edges[:, 0]] == clusters[graph.edges[:, 1]]
    ends = np.full((len(graph.edges), 3, 2), np.nan)  # a gap after each edge, so that one line draws all of a kind
    ends[:, :2] = places[graph.edges]
    for dark, positive in itertools.product((False, True), repeat=2):
        line: dict[str, Any] = {"color": INK if dark else "#BBBBBB", "linewidth": 1.6 if dark else 0.7}
        kind = (fused == dark) & ((graph.signs > 0) == positive)
        if kind.any():
            x, y = ends[kind].reshape(-1, 2).T
            ax.plot(x, y, linestyle="-" if positive else "--", zorder=1, rasterized=rasterized, **line)


def shortened(name: Any) -> str:
    """Shorten a name in its middle, because long names often differ at their ends only."""
    text, half = str(name), NAME_CHARACTERS // 2
    return text if len(text) <= NAME_CHARACTERS else f"{text[:half].rstrip()}…{text[1 - half :].lstrip()}"


def _write_names(ax: Any, names: np.ndarray, places: np.ndarray, coef: np.ndarray, labels: bool | None) -> None:
    """Write names beside their nodes: above them, else at another side, where no other name or node is."""
    from matplotlib.patheffects import withStroke
    from matplotlib.transforms import Bbox

    used = np.flatnonzero(coef)
    shown = np.arange(names.size) if labels or names.size <= MOST_LABELS else used
    if labels is False or (labels is None and shown.size > MOST_LABELS):
        return
    ax.figure.draw_without_rendering()  # the layout moves the axes, and with them what the names would cover
    halo = [withStroke(linewidth=2.0, foreground="white")]

    def written(k: int, offset: tuple[float, float], ha: str, va: str) -> Any:
        text = ax.annotate(
            shortened(names[k]), places[k], xytext=offset, textcoords="offset points", ha=ha, va=va,
            fontsize=LABEL_SIZE, color=INK, path_effects=halo,
        )  # fmt: skip
        text.set_in_layout(False)  # else the layout would move the axes again
        return text

    radius, page = NODE_RADIUS * ax.figure.dpi / 72.0, ax.figure.bbox
    taken = [Bbox.from_extents(*(at - radius), *(at + radius)) for at in ax.transData.transform(places)]
    for k in sorted(shown.tolist(), key=lambda k: -abs(coef[k])):
        for place in BESIDE:
            text = written(k, *place)
            box = text.get_window_extent()
            if page.x0 <= box.x0 and box.x1 <= page.x1 and not any(box.overlaps(other) for other in taken):
                taken.append(box)
                break
            text.remove()
        else:
            if labels:
                taken.append(written(k, *BESIDE[0]).get_window_extent())


def _name_ticks(ax: Any, names: np.ndarray, chain: np.ndarray) -> None:
    """The names of features along a chain as ticks: all of them, or some at equal distances."""
    ticks = np.arange(0, chain.size, -(-chain.size // MOST_TICKS))
    texts = [shortened(names[chain[k]]) for k in ticks]
    slanted = sum(map(len, texts)) > TICK_CHARACTERS
    ax.set_xticks(ticks, texts, rotation=45 if slanted else 0, ha="right" if slanted else "center",
                  rotation_mode="anchor" if slanted else "default")  # fmt: skip


def chain_order(graph: Any) -> np.ndarray | None:
    """The features in their order along the graph, where it is one chain; None elsewhere, and for images."""
    d = graph.n_features
    if len(graph.shape) == 2 or len(graph.edges) != d - 1 or d < 2:
        return None
    neighbours: list[list[int]] = [[] for _ in range(d)]
    for i, j in graph.edges.tolist():
        neighbours[i].append(j)
        neighbours[j].append(i)
    ends = [k for k, near in enumerate(neighbours) if len(near) == 1]
    if len(ends) != 2 or any(len(near) > 2 for near in neighbours):
        return None
    order, last = [min(ends)], -1
    while len(order) < d:
        ahead = [k for k in neighbours[order[-1]] if k != last]
        if not ahead:  # a ring beside a chain
            return None
        last = order[-1]
        order.append(ahead[0])
    return np.array(order)


def _places(graph: Any, positions: Mapping[str, ArrayLike] | None) -> np.ndarray:
    if positions is not None:
        missing = [name for name in graph.names if name not in positions]
        if missing:
            raise ValueError(f"positions has no {missing[0]!r}: it takes a place for every feature")
        return np.array([positions[name] for name in graph.names], dtype=float)
    if len(graph.shape) == 2:
        rows, columns = np.unravel_index(np.arange(graph.n_features), graph.shape)
        return np.column_stack([columns, -rows]).astype(float)
    try:
        import networkx as nx
    except ImportError as error:
        raise ImportError("the layout of a graph needs networkx: pip install 'skadmm[graph]'") from error
    # On numbers, not names: a layout should not depend on how the features are called.
    plain = nx.Graph()
    plain.add_nodes_from(range(graph.n_features))
    plain.add_edges_from(graph.edges.tolist())
    spots = nx.spring_layout(plain, seed=0, k=1.6 / np.sqrt(graph.n_features), iterations=100)
    if graph.n_features <= MOST_SPREAD and nx.is_connected(plain):  # spreads dense parts, at a cubic cost
        spots = nx.kamada_kawai_layout(plain, pos=spots)
    return np.array([spots[j] for j in range(graph.n_features)])


__all__ = ["coefficients_on_graph"]

"""positive=, bounds= and monotone=: constraints on the coefficients in the units of X, as rows of the problem.

Lower and upper bounds are rows with one entry, orders along the edges of a graph are rows x_head − x_tail ≥ 0. They are
stacked below the penalty's own rows, with a box as their regulariser, so that every solver which takes a constraint on
Ax takes them, and the certificate covers them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from skadmm.estimators._by_name import per_feature, positions
from skadmm.estimators._graphs import FeatureGraph
from skadmm.regularizers import Box

DIRECTIONS = {"increasing": 1.0, "decreasing": -1.0}


class Limits(NamedTuple):
    """lower ≤ coef ≤ upper, and coef[head] ≥ coef[tail] for each ordered pair."""

    lower: np.ndarray
    upper: np.ndarray
    tail: np.ndarray
    head: np.ndarray

    def rows(self, scale: np.ndarray) -> sp.csr_array:
        """One row for each bounded feature, then one for each ordered pair, for coefficients times `scale`."""
        d, bounded = self.lower.size, self.bounded
        alone = sp.csr_array((np.ones(bounded.size), (np.arange(bounded.size), bounded)), shape=(bounded.size, d))
        m = self.tail.size
        entries = np.concatenate([1.0 / scale[self.head], -1.0 / scale[self.tail]])
        places = (np.tile(np.arange(m), 2), np.concatenate([self.head, self.tail]))
        pairs = sp.csr_array((entries, places), shape=(m, d))
        return sp.csr_array(sp.vstack([alone, pairs], format="csr"))

    def box(self, scale: np.ndarray) -> Box:
        """The bounds of these rows."""
        j, m = self.bounded, self.tail.size
        lower = np.concatenate([self.lower[j] * scale[j], np.zeros(m)])
        upper = np.concatenate([self.upper[j] * scale[j], np.full(m, np.inf)])
        return Box(lower, upper)

    @property
    def bounded(self) -> np.ndarray:
        """Features with a finite bound."""
        return np.flatnonzero(np.isfinite(self.lower) | np.isfinite(self.upper))

    def along(self, kept: np.ndarray) -> Limits:
        """The limits at some positions of a line; an order of the coefficients has one direction along the line."""
        first, second = np.arange(kept.size - 1), np.arange(1, kept.size)
        if self.tail.size == 0:
            first = second = self.tail
        elif self.head[0] < self.tail[0]:
            first, second = second, first
        return Limits(self.lower[kept], self.upper[kept], first, second)

    def exact(self, coef: np.ndarray) -> np.ndarray:
        """Coefficients that miss the constraints by rounding, moved onto them."""
        coef = np.clip(coef, self.lower, self.upper)
        for _ in range(coef.size):
            raised = coef.copy()
            np.maximum.at(raised, self.head, coef[self.tail])
            if np.array_equal(raised, coef):
                break
            coef = raised
        return np.clip(coef, self.lower, self.upper)


def limits_of(model: Any, d: int, names: Sequence[Any] | None, graph: FeatureGraph | None) -> Limits | None:
    """The constraints that `positive`, `bounds` and `monotone` of an estimator stand for; None where there are none."""
    lower, upper = checked_bounds(model.positive, model.bounds, d, names)
    monotone = model.monotone
    tail, head = (np.empty(0, np.int64),) * 2 if monotone is None else ordered_pairs(monotone, d, names, graph)
    if tail.size == 0 and not (np.isfinite(lower).any() or np.isfinite(upper).any()):
        return None
    return Limits(lower, upper, tail, head)


def checked_bounds(positive: Any, bounds: Any, d: int, names: Sequence[Any] | None) -> tuple[np.ndarray, np.ndarray]:
    """The lower and the upper bound of each coefficient."""
    if not isinstance(positive, (bool, np.bool_)):
        raise ValueError(f"positive={positive!r}: it takes True or False")
    lower, upper = np.full(d, -np.inf), np.full(d, np.inf)
    if isinstance(bounds, Mapping):
        for key, pair in bounds.items():
            low, high = _pair(pair, f"bounds[{key!r}]")
            index = positions(key, d, names, "bounds")
            lower[index] = -np.inf if low is None else per_feature(low, len(index), None, "bounds", -np.inf)
            upper[index] = np.inf if high is None else per_feature(high, len(index), None, "bounds", np.inf)
    elif bounds is not None:
        low, high = _pair(bounds, "bounds")
        lower = per_feature(low, d, names, "bounds[0]", -np.inf)
        upper = per_feature(high, d, names, "bounds[1]", np.inf)
    if positive:
        lower = np.maximum(lower, 0.0)
    empty = np.flatnonzero(~(lower <= upper) | (lower == np.inf) | (upper == -np.inf))
    if empty.size:
        j = int(empty[0])
        what = f"feature {j}" if names is None else repr(names[j])
        also = " with positive=True" if positive else ""
        raise ValueError(f"bounds{also}: no number lies between {lower[j]:g} and {upper[j]:g}, the bounds of {what}")
    return lower, upper


def _pair(bounds: Any, role: str) -> tuple[Any, Any]:
    """(low, high); either may be None."""
    if isinstance(bounds, str) or not isinstance(bounds, (tuple, list, np.ndarray)) or len(bounds) != 2:
        raise ValueError(f"{role}={bounds!r}: it takes a pair (low, high); None leaves a side open")
    return bounds[0], bounds[1]


def ordered_pairs(
    monotone: Any, d: int, names: Sequence[Any] | None, graph: FeatureGraph | None
) -> tuple[np.ndarray, np.ndarray]:
    """The pairs (tail, head) with coef[tail] ≤ coef[head]; without a graph, along the chain of the columns."""
    edges = np.column_stack([np.arange(d - 1), np.arange(1, d)]) if graph is None else graph.edges
    direction = _directions(monotone, edges, names)
    if graph is not None and np.any((graph.signs < 0) & (direction != 0)):
        raise ValueError(
            "monotone: the graph has edges of sign −1, along which no order is defined: give edge_signs=False"
        )
    kept = direction != 0
    edges, direction = edges[kept], direction[kept]
    forward = direction > 0
    return np.where(forward, edges[:, 0], edges[:, 1]), np.where(forward, edges[:, 1], edges[:, 0])


def _directions(monotone: Any, edges: np.ndarray, names: Sequence[Any] | None) -> np.ndarray:
    """+1 where coefficients grow from the first to the second node of an edge, −1 where they fall, 0 for neither."""
    if isinstance(monotone, str):
        if monotone not in DIRECTIONS:
            raise ValueError(f"monotone={monotone!r}: it takes 'increasing', 'decreasing', or −1, 0, +1 for each edge")
        return np.full(len(edges), DIRECTIONS[monotone])
    if isinstance(monotone, Mapping):
        return _by_column(monotone, edges, names)
    try:
        values = np.asarray(monotone, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.empty((0, 0))
    if values.shape != (len(edges),) or not np.isin(values, (-1.0, 0.0, 1.0)).all():
        raise ValueError(
            f"monotone={monotone!r}: it takes 'increasing', 'decreasing', or −1, 0, +1 for each of {len(edges)} edges"
        )
    return values


def _by_column(monotone: Mapping[Any, Any], edges: np.ndarray, names: Sequence[Any] | None) -> np.ndarray:
    """A direction for the levels of a categorical column, by the column's name."""
    direction = np.zeros(len(edges))
    for key, value in monotone.items():
        if value not in DIRECTIONS:
            raise ValueError(f"monotone[{key!r}]={value!r}: it takes 'increasing' or 'decreasing'")
        inside = [] if names is None else [j for j, name in enumerate(names) if str(name).startswith(f"{key}=")]
        if not inside:
            raise ValueError(f"monotone has the key {key!r}: it takes the names of categorical columns")
        direction[np.isin(edges, inside).all(axis=1)] = DIRECTIONS[value]
    return direction

"""penalty_factor=: how much more, or less, each feature or edge is penalised."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from skadmm.estimators._by_name import per_feature, positions


class Factors(NamedTuple):
    """Numbers ≥ 0 that multiply the terms of a penalty; None where all are 1."""

    features: np.ndarray | None = None
    rows: np.ndarray | None = None
    """The factor of each edge of a graph, or of each row of a penalty matrix."""


NO_FACTORS = Factors()


def checked_factors(
    given: Any, d: int, names: Sequence[Any] | None, edges: np.ndarray | None = None, n_rows: int | None = None
) -> Factors:
    """`penalty_factor` as numbers for features and for edges, or for rows of a matrix.

    Parameters
    ----------
    given : None, array-like, dict, Series or a pair
        One number per feature; a dict by name, whose keys may also be pairs of names, the ends of an edge; or a pair
        (features, edges), each of which may be None.
    d : int
    names : sequence or None
        The names of the features, where they have any.
    edges : array of shape (m, 2), optional
        The edges, where the penalty has a graph.
    n_rows : int, optional
        The number of rows, where it has a matrix.
    """
    if given is None:
        return Factors()
    of_features, of_rows = given, None
    if isinstance(given, tuple) and len(given) == 2 and not all(np.isscalar(part) for part in given):
        of_features, of_rows = given
    elif isinstance(given, Mapping):
        of_features = {key: value for key, value in given.items() if not _is_pair(key, names)}
        of_rows = {key: value for key, value in given.items() if _is_pair(key, names)} or None
    elif np.ndim(given) == 0:
        raise ValueError(f"penalty_factor={given!r}: it takes one number ≥ 0 per feature; alpha scales them all")
    features = None if of_features is None else per_feature(of_features, d, names, "penalty_factor", 1.0)
    rows = None if of_rows is None else _of_rows(of_rows, d, names, edges, n_rows)
    for part in (features, rows):
        if part is not None and not (np.isfinite(part).all() and (part >= 0).all()):
            raise ValueError("penalty_factor holds negative or infinite numbers: it takes finite numbers ≥ 0")
    return Factors(features, rows)


def _is_pair(key: Any, names: Sequence[Any] | None) -> bool:
    return isinstance(key, tuple) and len(key) == 2 and (names is None or key not in list(names))


def _of_rows(
    given: Any, d: int, names: Sequence[Any] | None, edges: np.ndarray | None, n_rows: int | None
) -> np.ndarray:
    count = n_rows if edges is None else len(edges)
    if count is None:
        raise ValueError("penalty_factor: this penalty has no edges; it takes one number per feature")
    what = "rows of A" if edges is None else "edges"
    if not isinstance(given, Mapping):
        values = np.asarray(given, dtype=np.float64)
        if values.shape != (count,):
            raise ValueError(f"penalty_factor has shape {values.shape} for the {what}: it takes {count} numbers")
        return values
    if edges is None:
        raise ValueError("penalty_factor has pairs of features as keys: only a model with a graph takes those")
    number = {frozenset(edge): e for e, edge in enumerate(edges.tolist())}
    values = np.ones(count)
    for key, value in given.items():
        ends = frozenset(j for end in key for j in positions(end, d, names, "penalty_factor"))
        if ends not in number:
            raise ValueError(f"penalty_factor has the key {key!r}, which is not an edge of the graph")
        values[number[ends]] = float(value)
    return values

"""Which matrices are differences of order two or three over a graph: GᵀG and GGᵀG, G the incidence matrix."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from skadmm.operators.canonical import canonical
from skadmm.operators.line import GraphTrend

ROUNDING = 1e-12
"""Entries that differ by no more than this share are the same."""


def as_graph_trend(A: sp.csr_array) -> GraphTrend | None:
    """`A`, in canonical form, as the Laplacian of a weighted graph, or as the differences of the Laplacian along the
    edges of a graph whose edges all have one weight; None where it is something else."""
    m, d = A.shape
    if m == 0 or A.nnz == 0 or (m != d and np.diff(A.indptr).max() <= 2):
        return None
    return _as_laplacian(A) if m == d else _as_differences(A)


def _as_laplacian(A: sp.csr_array) -> GraphTrend | None:
    size = float(np.abs(A.data).max())
    skew = abs(sp.csr_array(A - A.T))
    if skew.nnz and skew.max() > ROUNDING * size:
        return None
    if np.abs(A.sum(axis=1)).max() > ROUNDING * size * np.sqrt(A.shape[0]):
        return None
    upper = sp.coo_array(sp.triu(A, 1))
    if upper.nnz == 0 or np.any(upper.data > 0):
        return None
    return GraphTrend(_incidence(upper.row, upper.col, np.sqrt(-upper.data), A.shape[1]), 1)


def _as_differences(A: sp.csr_array) -> GraphTrend | None:
    """Row e is (L_i − L_j) for the edge between i and j: it is largest at i and smallest at j."""
    if np.diff(A.indptr).min() < 2:
        return None
    row = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
    ends = []
    for extreme in (np.maximum, np.minimum):
        value = extreme.reduceat(A.data, A.indptr[:-1])
        place = np.flatnonzero(A.data == value[row])
        first = np.unique(row[place], return_index=True)[1]
        ends.append(A.indices[place[first]].astype(np.int64))
    G = _incidence(ends[0], ends[1], np.ones(A.shape[0]), A.shape[1])
    D = canonical(G @ (G.T @ G))
    if D.nnz != A.nnz or not (np.array_equal(D.indptr, A.indptr) and np.array_equal(D.indices, A.indices)):
        return None
    scale = float(A.data[0] / D.data[0])
    if not scale > 0 or np.any(np.abs(A.data - scale * D.data) > ROUNDING * np.abs(A.data)):
        return None
    return GraphTrend(G * scale ** (1 / 3), 2)


def _incidence(one: np.ndarray, two: np.ndarray, weight: np.ndarray, d: int) -> sp.csr_array:
    """Rows with `weight` at `one` and its opposite at `two`."""
    m = one.size
    entries = np.column_stack([weight, -weight]).ravel()
    columns = np.column_stack([one, two]).ravel()
    return canonical(sp.csr_array((entries, columns, 2 * np.arange(m + 1)), shape=(m, d)))

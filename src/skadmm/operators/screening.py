"""Covariances one block at a time: which pairs of features are strong, and how they fall into blocks."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from skadmm.kernels.compile import kernel
from skadmm.operators.moments import Moments

BLOCK_ENTRIES = 8_000_000
PAIR_LIMIT = 20_000_000
DENSE_FROM = 0.05


class Columns(NamedTuple):
    """The usable columns of X, scaled so that S = ZᵀZ − m mᵀ; `source` are their numbers in X."""

    Z: Any
    mean: np.ndarray
    variance: np.ndarray
    source: np.ndarray

    def covariance(self, columns: np.ndarray) -> np.ndarray:
        """S of the given columns, dense and exactly symmetric."""
        Z = self.Z[:, columns]
        S = Z.T @ Z
        S = S.toarray() if sp.issparse(S) else S
        S -= np.outer(self.mean[columns], self.mean[columns])
        S = (S + S.T) / 2
        np.fill_diagonal(S, self.variance[columns])
        return S

    def sizes(self) -> Iterator[tuple[int, np.ndarray]]:
        """|S| in blocks of columns that begin at `start`, down to the diagonal."""
        Z, m = self.Z, self.mean
        d = m.size
        width = max(1, BLOCK_ENTRIES // max(d, 1))
        transposed = Z.T.tocsr() if sp.issparse(Z) else Z.T
        for start in range(0, d, width):
            stop = min(start + width, d)
            S = transposed[:stop] @ Z[:, start:stop]
            S = S.toarray() if sp.issparse(S) else S
            S -= np.outer(m[:stop], m[start:stop])
            yield start, np.abs(S, out=S)


class KnownCovariance(NamedTuple):
    """The usable columns of a table of which only S is in memory; the fields are those of :class:`Columns`."""

    S: np.ndarray
    variance: np.ndarray
    source: np.ndarray

    def covariance(self, columns: np.ndarray) -> np.ndarray:
        """S of the given columns, dense and exactly symmetric."""
        S = self.S[np.ix_(columns, columns)]
        S = (S + S.T) / 2
        np.fill_diagonal(S, self.variance[columns])
        return S

    def sizes(self) -> Iterator[tuple[int, np.ndarray]]:
        """|S| in blocks of columns that begin at `start`, down to the diagonal."""
        d = self.source.size
        width = max(1, BLOCK_ENTRIES // max(d, 1))
        for start in range(0, d, width):
            stop = min(start + width, d)
            yield start, np.abs(self.S[:stop, start:stop])


class Pairs(NamedTuple):
    """Pairs i < j of columns with the sizes of their covariances."""

    i: np.ndarray
    j: np.ndarray
    strength: np.ndarray

    def above(self, alpha: float) -> "Pairs":
        """The pairs stronger than `alpha`."""
        keep = self.strength > alpha
        return Pairs(self.i[keep], self.j[keep], self.strength[keep])


def usable_columns(X: Any, min_support: float, standardize: bool) -> tuple[Columns, np.ndarray]:
    """The columns that vary on enough rows, and the variances of all columns (0 for a constant one).

    A column rests on n/κ rows, κ = E z⁴ the kurtosis of its standardised entries: an indicator of r ≪ n rows on r.
    """
    n, d = X.shape
    if sp.issparse(X):
        X = sp.csc_array(X)
        X.sum_duplicates()
        stored = np.diff(X.indptr)
        mean = np.asarray(X.mean(axis=0)).ravel()
        column = np.repeat(np.arange(d), stored)
        centred = X.data - mean[column]
        second = np.bincount(column, centred**2, d) + (n - stored) * mean**2
        fourth = np.bincount(column, centred**4, d) + (n - stored) * mean**4
    else:
        mean = X.mean(axis=0)
        squares = (X - mean) ** 2
        second = squares.sum(axis=0)
        fourth = np.einsum("ij,ij->j", squares, squares)
    variance, index, scale = _usable(n, mean, second, fourth, min_support, standardize)
    if sp.issparse(X):
        Z, m = X[:, index] @ sp.diags_array(1 / scale), np.sqrt(n) * mean[index] / scale
        Z = Z.toarray() if Z.nnz > DENSE_FROM * n * max(index.size, 1) else sp.csc_array(Z)
    else:
        Z, m = (X[:, index] - mean[index]) / scale, np.zeros(index.size)
    kept = np.ones(index.size) if standardize else variance[index]
    return Columns(Z, m, kept, index), variance


def known_covariance(moments: Moments, min_support: float, standardize: bool) -> tuple[KnownCovariance, np.ndarray]:
    """What :func:`usable_columns` finds, from the moments of a table. The products of the moments are used up."""
    second = np.diagonal(moments.products).copy()
    variance, index, scale = _usable(moments.rows, moments.mean, second, moments.fourth, min_support, standardize)
    S = moments.products if index.size == second.size else moments.products[np.ix_(index, index)]
    S /= scale[:, None]
    S /= scale
    return KnownCovariance(S, np.ones(index.size) if standardize else variance[index], index), variance


def _usable(
    n: int, mean: np.ndarray, second: np.ndarray, fourth: np.ndarray, min_support: float, standardize: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The variances, the usable columns, and what each of them is divided by; from sums over rows of powers of the
    centred columns."""
    variance = second / n
    variance[variance <= (1e-10 * np.abs(mean)) ** 2] = 0.0
    support = np.divide(second**2, fourth, out=np.zeros(mean.size), where=(variance > 0) & (fourth > 0))
    index = np.flatnonzero((variance > 0) & (support >= min_support))
    return variance, index, np.sqrt(n) * (np.sqrt(variance[index]) if standardize else np.ones(index.size))


def strong_pairs(
    columns: Columns | KnownCovariance, floor: float, most: int | None, ceiling: float
) -> tuple[Pairs, float]:
    """The pairs with |S_ij| > alpha, and alpha.

    alpha is `floor`, or with `most` the smallest number ≥ floor that leaves at most that many pairs, but not above
    `ceiling`.
    """
    kept = Pairs(np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0))
    alpha = floor
    for start, sizes in columns.sizes():
        i, j = np.nonzero(sizes > alpha)
        upper = i < j + start
        i, j = i[upper], j[upper]
        pairs = Pairs(i.astype(np.int32), (j + start).astype(np.int32), sizes[i, j])
        kept = Pairs(*(np.concatenate(parts) for parts in zip(kept, pairs, strict=True)))
        if most is not None and kept.strength.size > most:
            next_strongest = np.partition(kept.strength, -most - 1)[-most - 1]
            alpha = max(alpha, min(float(next_strongest), ceiling))
            kept = kept.above(alpha)
        if kept.strength.size > PAIR_LIMIT:
            raise ValueError(
                f"alpha={alpha:g} leaves more than {PAIR_LIMIT:,} pairs of features above it; give a larger alpha"
            )
    return kept, alpha


def blocks_of(pairs: Pairs, d: int, max_component: int) -> tuple[np.ndarray, int]:
    """The block of each feature and how many pairs were cut.

    Blocks are the connected components of the pairs. Where one exceeds `max_component`, pairs join features from
    the strongest down and those that would make a block too large are cut.
    """
    graph = sp.coo_array((np.ones(pairs.i.size, np.int8), (pairs.i, pairs.j)), shape=(d, d))
    _, labels = connected_components(graph, directed=False)
    if np.bincount(labels, minlength=1).max() <= max_component:
        return labels, 0
    order = np.argsort(-pairs.strength, kind="stable")
    parent = _joined(pairs.i[order], pairs.j[order], d, max_component)
    labels = np.unique(parent, return_inverse=True)[1]
    return labels, int(np.count_nonzero(labels[pairs.i] != labels[pairs.j]))


@kernel(allocates=True)
def _joined(i, j, d, max_size):
    parent = np.arange(d)
    size = np.ones(d, np.int64)
    for e in range(i.size):
        u, v = i[e], j[e]
        while parent[u] != u:
            parent[u] = parent[parent[u]]
            u = parent[u]
        while parent[v] != v:
            parent[v] = parent[parent[v]]
            v = parent[v]
        if u != v and size[u] + size[v] <= max_size:
            if size[u] < size[v]:
                u, v = v, u
            parent[v] = u
            size[u] += size[v]
    for k in range(d):
        root = k
        while parent[root] != root:
            root = parent[root]
        parent[k] = root
    return parent

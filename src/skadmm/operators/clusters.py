"""Clusters: which features the rows of A with one or two entries join to each other or to zero."""

from typing import Any

import numpy as np
import scipy.sparse

from skadmm.kernels.compile import kernel


@kernel
def _find(parent, factor, j):
    """The root of j, and the f with x_j = f · x_root; paths are not compressed, unions go by size."""
    f = 1.0
    while parent[j] != j:
        f *= factor[j]
        j = parent[j]
    return j, f


@kernel
def _tie(first, second, first_value, second_value, parent, factor, size, zero, number, labels, factors):
    """Join the features of rows a_i x_i + a_j x_j = 0; a contradiction makes the cluster zero. Then number
    the clusters in the order in which they first occur, those that are zero with −1, as `number` has it at first."""
    for e in range(first.size):
        i, j = first[e], second[e]
        ri, fi = _find(parent, factor, i)
        if i == j:
            zero[ri] = True
            continue
        rj, fj = _find(parent, factor, j)
        ratio = -first_value[e] / second_value[e]  # x_j = ratio · x_i
        if ri == rj:
            if abs(fj - ratio * fi) > 1e-12 * abs(fj):
                zero[ri] = True
            continue
        if size[ri] < size[rj]:
            # x_root_i = (x_j / ratio) / f_i
            parent[ri], factor[ri] = rj, fj / (ratio * fi)
            size[rj] += size[ri]
            zero[rj] = zero[rj] or zero[ri]
        else:
            parent[rj], factor[rj] = ri, ratio * fi / fj
            size[ri] += size[rj]
            zero[ri] = zero[ri] or zero[rj]
    count = 0
    for j in range(parent.size):
        root, factors[j] = _find(parent, factor, j)
        if number[root] < 0 and not zero[root]:
            number[root] = count
            count += 1
        labels[j] = number[root]


def clusters(A: Any, tied: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which features the rows in `tied` (a mask) join: a label for each, in the order in which they first occur, −1 for
    zero; and its factor in its cluster."""
    d = A.shape[1]
    counts = np.diff(A.indptr)
    rows = np.flatnonzero(tied & (counts >= 1) & (counts <= 2))
    first = A.indptr[rows]
    last = first + counts[rows] - 1
    parent, factor = np.arange(d), np.ones(d)
    size, zero = np.ones(d, np.int64), np.zeros(d, bool)
    labels, factors = np.empty(d, np.int64), np.empty(d)
    _tie(
        A.indices[first].astype(np.int64), A.indices[last].astype(np.int64), A.data[first], A.data[last],
        parent, factor, size, zero, np.full(d, -1), labels, factors,
    )  # fmt: skip
    return labels, factors


def contract_matrix(H: np.ndarray, labels: np.ndarray, factors: np.ndarray, size: int) -> np.ndarray:
    """PᵀHP of a symmetric matrix, for x = P u: feature j is ``factors[j]`` times the coordinate ``labels[j]`` of u, or
    zero where that is −1."""
    held = np.flatnonzero(labels >= 0)
    order = held[np.argsort(labels[held], kind="stable")]
    if size == order.size and np.all(factors[order] == 1.0):
        return H[np.ix_(order, order)]
    starts = np.searchsorted(labels[order], np.arange(size + 1))
    transposed = scipy.sparse.csr_array((factors[order], order, starts), (size, labels.size))
    return transposed @ np.ascontiguousarray((transposed @ H).T)


def contract_vector(values: np.ndarray, labels: np.ndarray, factors: np.ndarray, size: int) -> np.ndarray:
    """Pᵀ times a vector, P as for :func:`contract_matrix`."""
    held = np.flatnonzero(labels >= 0)
    return np.bincount(labels[held], factors[held] * values[held], size)


def expand_vector(u: np.ndarray, labels: np.ndarray, factors: np.ndarray) -> np.ndarray:
    """P u, P as for :func:`contract_matrix`. Features with equal factors are equal to the last bit."""
    held = np.flatnonzero(labels >= 0)
    x = np.zeros(labels.size)
    x[held] = factors[held] * u[labels[held]]
    return x

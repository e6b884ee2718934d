"""Clusters: which features the rows of A with one or two entries join to each other or to zero."""

from typing import Any

import numpy as np

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
def _tie(first, second, first_value, second_value, parent, factor, size, zero, labels, factors):
    """Join the features of rows a_i x_i + a_j x_j = 0; a contradiction makes the cluster zero. Then number
    the clusters in the order in which they first occur, those that are zero with −1."""
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
    number = np.full(parent.size, -1)
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
        parent, factor, size, zero, labels, factors,
    )  # fmt: skip
    return labels, factors

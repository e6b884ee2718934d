"""A graph as layers of chains: each edge in one layer, each layer made of paths that share no node.

An ℓ1 penalty on the differences along one layer is minimised exactly by dynamic programming, in linear time. On a grid
there is about one layer per axis; on any graph about half as many as the largest degree.

References
----------
Barbero, Á. and Sra, S. (2018). Modular proximal optimization for multidimensional total-variation regularization.
JMLR 19.
Tansey, W. and Scott, J. G. (2015). A fast and flexible algorithm for the graph-fused lasso. arXiv:1505.06475.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from skadmm.kernels.compile import kernel
from skadmm.solvers.second_order import chains

MAX_LAYERS = 24
"""The maximum number of layers; with more, sweeps would take too long and be too many."""


@kernel
def _root(parent, node):
    while parent[node] != node:
        parent[node] = parent[parent[node]]
        node = parent[node]
    return node


@kernel(allocates=True)
def _take_paths(one, two, taken, d, number):
    """Number the edges, among those not yet taken, that lie on paths when added one after the other."""
    degree, parent = np.zeros(d, np.int64), np.arange(d)
    left = 0
    for e in range(one.size):
        if taken[e] >= 0:
            continue
        i, j = one[e], two[e]
        if degree[i] < 2 and degree[j] < 2:
            a, b = _root(parent, i), _root(parent, j)
            if a != b:
                parent[a] = b
                degree[i] += 1
                degree[j] += 1
                taken[e] = number
                continue
        left += 1
    return left


class Layer(NamedTuple):
    """Paths without common nodes. Along them the penalty is Σ weight_i |z_i − z_{i+1}| with z = sign · x[order]."""

    order: np.ndarray
    """Nodes, path by path."""
    sign: np.ndarray
    """−1 where the rows of A along the path tie the coefficient to the negative of the first node's, else +1."""
    inner: np.ndarray
    """The places in `order` that a row joins to the next place."""
    row: np.ndarray
    """The rows of A at those places."""
    entry: np.ndarray
    """The entries of those rows for the first of their two nodes, with its sign."""
    weight: np.ndarray
    """At every place the absolute value of the entry; 0 at the end of a path."""

    def project(self, h: np.ndarray, p: np.ndarray, bound: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The x that minimises ½ x·Hx − p·x plus this layer's penalty, and s = p − Hx, on the nodes in `order`."""
        weight = self.weight.copy()
        weight[self.inner] *= bound[self.row]
        own, along = h[self.order], self.sign * p[self.order]
        z = np.empty_like(along)
        chains.denoise(own, along, weight, z)
        return self.sign * z, self.sign * (along - own * z)

    def multipliers(self, s: np.ndarray) -> np.ndarray:
        """The multipliers of the rows that add up to s on the nodes in `order`."""
        return np.cumsum(self.sign * s)[self.inner] / self.entry


def rows_of_two(A: sp.csr_array) -> str | None:
    """Why a row of A is not a difference or a sum of two features or a single feature; None where every row is."""
    counts = np.diff(A.indptr)
    if counts.size == 0 or counts.max() > 2 or counts.min() < 1:
        return "the rows of A must have one entry or two"
    first = A.indptr[:-1][counts == 2]
    if not np.array_equal(np.abs(A.data[first]), np.abs(A.data[first + 1])) or np.any(A.data == 0.0):
        return "the two entries of a row of A must have the same size"
    return None


def layer_numbers(A: sp.csr_array) -> np.ndarray | None:
    """The layer of each row of A with two entries; None where that takes more than MAX_LAYERS."""
    double = np.flatnonzero(np.diff(A.indptr) == 2)
    at = A.indptr[double]
    one, two = A.indices[at].astype(np.int64), A.indices[at + 1].astype(np.int64)
    taken = np.full(double.size, -1)
    number = 0
    while double.size and number < MAX_LAYERS and _take_paths(one, two, taken, A.shape[1], number):
        number += 1
    return None if np.any(taken < 0) else taken


def layers_of(A: sp.csr_array) -> list[Layer]:
    """The rows of A with two entries as layers, where :func:`layer_numbers` finds them."""
    taken = layer_numbers(A)
    assert taken is not None, "see layer_numbers()"
    double = np.flatnonzero(np.diff(A.indptr) == 2)
    return [_layer(A, double[taken == c]) for c in range(int(taken.max(initial=-1)) + 1)]


def _layer(A: sp.csr_array, rows: np.ndarray) -> Layer:
    """The layer of these rows."""
    d, at = A.shape[1], A.indptr[rows]
    one, two = A.indices[at].astype(np.int64), A.indices[at + 1].astype(np.int64)
    order, row = np.arange(d), np.full(d, -1)
    chains.lie_along_chains(one, two, rows, order, row)
    joined = row >= 0
    joined[1:] |= row[:-1] >= 0
    order, row = order[joined], row[joined]
    inner = np.flatnonzero(row >= 0)
    number = np.full(A.shape[0], -1)
    number[rows] = np.arange(rows.size)
    place = number[row[inner]]
    start = A.indptr[rows[place]]
    forward = one[place] == order[inner]
    entry = np.where(forward, A.data[start], A.data[start + 1])
    flips = np.ones(order.size)
    flips[inner + 1] = -np.sign(A.data[start] * A.data[start + 1])
    sign = np.cumprod(flips)
    weight = np.zeros(order.size)
    weight[inner] = np.abs(entry)
    return Layer(order, sign, inner, row[inner], entry * sign[inner], weight)

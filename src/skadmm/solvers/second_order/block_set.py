"""The working set of block descent: its columns, their Gram matrix, and bounds of the curvature of its blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from skadmm.io.state import resizable, transient
from skadmm.kernels.compile import kernel
from skadmm.problem.problem import Problem
from skadmm.solvers.second_order.blocks import BlockPenalty
from skadmm.solvers.second_order.free_features import FreeFeatures


@kernel
def add_cross_products(indptr, indices, data, weights, first, out):
    """out[k − first, j] ← out[k − first, j] + Σ_i weights_i a_ij a_ik for columns k ≥ first and j ≤ k.

    The rows a_i are those of a CSR matrix with sorted column numbers; weights are empty where all are one.
    """
    for i in range(indptr.size - 1):
        weight = weights[i] if weights.size else 1.0
        for p in range(indptr[i + 1] - 1, indptr[i] - 1, -1):
            k = indices[p]
            if k < first:
                break
            line, v = out[k - first], weight * data[p]
            for q in range(indptr[i], p + 1):
                line[indices[q]] += v * data[q]


class Columns(Protocol):
    """The columns from which the working set is selected."""

    problem: Problem
    penalty: BlockPenalty
    columns: Any
    """X as a matrix whose columns can be selected fast."""
    free: FreeFeatures
    """Features that are never part of the set, but eliminated."""
    quadratic: bool
    """True where all models have the samples' weights, so that centred columns are orthogonal to the free ones."""
    damping: float
    """The diagonal of the Gram matrix is increased by this share."""


@dataclass(kw_only=True)
class BlockSet:
    """The features of the working set, their Gram matrix, and the curvature bounds of its blocks.

    Arrays grow by doubling: ``X[:, :size]`` and ``G[:size, :size]`` are in use.
    """

    weights: np.ndarray = resizable()
    """The curvatures of the samples that are part of G; empty where all are one."""
    blocks: np.ndarray = resizable(default_factory=lambda: np.empty(0, np.int64))
    """The blocks, in the order in which they joined."""
    features: np.ndarray = resizable(default_factory=lambda: np.empty(0, np.int64))
    """The features, block by block."""
    starts: np.ndarray = resizable(default_factory=lambda: np.zeros(1, np.int64))
    """Where each block begins among the features, and where the last one ends."""
    G: np.ndarray = resizable(default_factory=lambda: np.empty((0, 0)))
    """XᵀDX/n on the features, the free ones eliminated; the diagonal holds the squared terms of the penalty and a
    little damping too."""
    bounds: np.ndarray = resizable(default_factory=lambda: np.empty(0))
    """The largest eigenvalue of G on each block."""
    centre: np.ndarray = resizable(default_factory=lambda: np.empty((0, 0)))
    """B of shape (f, size): its product with the free columns has been subtracted from the columns of the set."""
    shift: np.ndarray = resizable(default_factory=lambda: np.empty((0, 0)))
    """Sᵀ of shape (f, size): how much the free coefficients decrease when a coefficient of the set increases by 1."""
    X: Any = transient(default=None)
    """The columns of the features, centred; built again where they are missing."""
    by_rows: Any = transient(default=None)
    """The same by rows, where they are sparse."""

    @property
    def size(self) -> int:
        """The number of features."""
        return self.features.size

    def columns(self, source: Columns) -> Any:
        """The columns of X, one per feature."""
        if self.X is None:
            self._add_columns(source, self.features, 0)
        return self.X[:, : self.size]

    def grow(self, source: Columns, blocks: np.ndarray) -> None:
        """Add blocks to the set and to its Gram matrix."""
        if blocks.size == 0:
            return
        penalty, before = source.penalty, self.size
        sizes = penalty.starts[blocks + 1] - penalty.starts[blocks]
        ends = np.cumsum(sizes)
        new = penalty.features[np.repeat(penalty.starts[blocks] - ends + sizes, sizes) + np.arange(ends[-1])]
        if before:
            self.columns(source)
        self.blocks = np.concatenate([self.blocks, blocks])
        self.features = np.concatenate([self.features, new])
        self.starts = np.concatenate([self.starts, self.starts[-1] + ends])
        centre = source.free.centre(source.columns[:, new]) if len(source.free) else np.zeros((0, new.size))
        self.centre = np.concatenate([self.centre, centre], axis=1) if before else centre
        self._add_columns(source, new, before)
        if self.G.shape[0] < self.size:
            grown = np.zeros((self._capacity, self._capacity))
            grown[:before, :before] = self.G[:before, :before]
            self.G = grown
        self._extend(source, before)

    def keep(self, source: Columns, kept: np.ndarray) -> None:
        """Drop all blocks but those that `kept` marks."""
        columns = self.columns(source)
        sizes = np.diff(self.starts)
        features = np.flatnonzero(np.repeat(kept, sizes))
        G = self.G[np.ix_(features, features)]
        self.X = columns[:, features]
        if self.by_rows is not None:
            self.by_rows = self.X.tocsr()
        self.blocks, self.features, self.bounds = self.blocks[kept], self.features[features], self.bounds[kept]
        self.starts = np.concatenate([[0], np.cumsum(sizes[kept])])
        self.centre, self.shift = self.centre[:, features], self.shift[:, features]
        self.G = np.zeros((self._capacity, self._capacity))
        self.G[: self.size, : self.size] = G

    @property
    def _capacity(self) -> int:
        return max(64, 1 << (self.size - 1).bit_length())

    def _add_columns(self, source: Columns, features: np.ndarray, before: int) -> None:
        columns = source.columns[:, features]
        if source.problem.is_sparse:
            self.X = columns if self.X is None else sp.hstack([self.X, columns], format="csc")
            self.by_rows = self.X.tocsr()  # with sorted columns
            return
        if len(source.free):
            columns = columns - source.free.columns @ self.centre[:, before:]
        if self.X is None or self.X.shape[1] < self.size:
            grown = np.empty((columns.shape[0], self._capacity), columns.dtype, order="F")
            if self.X is not None:
                grown[:, :before] = self.X[:, :before]
            self.X = grown
        self.X[:, before : self.size] = columns

    def _extend(self, source: Columns, before: int) -> None:
        """The Gram matrix with the columns that have just joined."""
        size, columns = self.size, self.columns(source)
        new = self.X[:, before:size]
        cross = self._cross(columns, before)
        if len(source.free) and not (source.quadratic and not source.problem.is_sparse):
            added, curvature = self._shift_of(source, new)
            self.shift = np.concatenate([self.shift, added], axis=1) if before else added
            cross -= self.shift.T @ curvature @ added
        else:
            self.shift = np.zeros((len(source.free), size))
        self.G[:size, before:size] = cross
        self.G[before:size, :before] = cross[:before].T
        self._damp(source, before)
        self.bounds = np.concatenate([self.bounds, curvature_bounds(self.G, self.starts[self.bounds.size :])])

    def reweigh(self, source: Columns, curvatures: np.ndarray) -> None:
        """The Gram matrix for other curvatures of the samples."""
        self.weights = curvatures
        if self.size == 0:
            return
        columns = self.columns(source)
        square = self._cross(columns, 0)
        if len(source.free):
            self.shift, curvature = self._shift_of(source, columns)
            square -= self.shift.T @ curvature @ self.shift
        self.G[: self.size, : self.size] = square
        self._damp(source, 0)
        self.bounds = curvature_bounds(self.G, self.starts)

    def _cross(self, columns: Any, first: int) -> np.ndarray:
        """Products of all columns with those from number `first` on, weighted by the curvatures of the samples."""
        n, weights = columns.shape[0], self.weights
        if self.by_rows is not None:
            rows, out = self.by_rows, np.zeros((self.size - first, self.size))
            add_cross_products(rows.indptr, rows.indices, rows.data, weights, first, out)
            square = out[:, first:]
            square += np.tril(square, -1).T
            return out.T / n
        if first == 0 and weights.size:  # BLAS forms half of a product of a matrix with its own transpose
            columns = np.sqrt(weights)[:, None] * columns
            return np.asarray(columns.T @ columns, dtype=np.float64) / n
        new = columns[:, first:]
        return np.asarray(columns.T @ (weights[:, None] * new if weights.size else new), dtype=np.float64) / n

    def _shift_of(self, source: Columns, columns: Any) -> tuple[np.ndarray, np.ndarray]:
        """M⁻¹FᵀDZ/n for columns Z, and M."""
        free, weights = source.free.columns, self.weights
        scaled = weights[:, None] * free if weights.size else free
        curvature = scaled.T @ free / free.shape[0]
        product = np.asarray(columns.T @ scaled).T / free.shape[0]
        return np.linalg.pinv(curvature, hermitian=True) @ product, curvature

    def _damp(self, source: Columns, before: int) -> None:
        """Squared terms and damping, on the diagonal from feature number `before` on."""
        diagonal = np.einsum("ii->i", self.G)[before : self.size]
        diagonal += source.penalty.ridge[self.features[before:]] + source.damping * np.abs(diagonal)


def curvature_bounds(G: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """The largest eigenvalue of each diagonal block [starts_b, starts_{b+1}) of a Gram matrix."""
    sizes, starts = np.diff(starts), starts[:-1]
    bounds = np.einsum("ii->i", G)[starts]
    for size in np.unique(sizes[sizes > 1]):
        which = np.flatnonzero(sizes == size)
        index = starts[which][:, None] + np.arange(size)
        parts = G[index[:, :, None], index[:, None, :]]
        bounds[which] = np.linalg.eigvalsh(parts)[:, -1] if size <= 200 else np.trace(parts, axis1=1, axis2=2)
    bounds[bounds <= 0.0] = 1.0
    return bounds

"""The working set of block descent: its columns, their Gram matrix, and bounds of the curvature of its blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from skadmm.io.state import resizable, transient
from skadmm.problem.problem import Problem
from skadmm.solvers.second_order.blocks import BlockPenalty


class Columns(Protocol):
    """What the working set is drawn from."""

    problem: Problem
    penalty: BlockPenalty
    columns: Any
    """X as a matrix whose columns can be selected fast."""
    damping: float
    """Added to the diagonal of the Gram matrix."""


@dataclass(kw_only=True)
class BlockSet:
    """The features of the working set, their Gram matrix, and the curvature bounds of its blocks.

    Arrays grow by doubling: ``X[:, :size]`` and ``G[:size, :size]`` are in use.
    """

    weights: np.ndarray = resizable()
    """The curvatures of the samples that are part of G; empty where all are one."""
    blocks: np.ndarray = resizable(default_factory=lambda: np.empty(0, np.int64))
    """In the order in which they joined."""
    features: np.ndarray = resizable(default_factory=lambda: np.empty(0, np.int64))
    """Block by block."""
    starts: np.ndarray = resizable(default_factory=lambda: np.zeros(1, np.int64))
    """Where each block begins among the features, and where the last one ends."""
    G: np.ndarray = resizable(default_factory=lambda: np.empty((0, 0)))
    """XᵀDX/n on the features; its diagonal holds the squared terms of the penalty and a little damping too."""
    bounds: np.ndarray = resizable(default_factory=lambda: np.empty(0))
    """The largest eigenvalue of G on each block."""
    X: Any = transient(default=None)
    """The columns of the features; built anew where they are missing."""

    @property
    def size(self) -> int:
        """The number of features."""
        return self.features.size

    def columns(self, source: Columns) -> Any:
        """The columns of X, one per feature."""
        if self.X is None:
            self._add_columns(source, source.columns[:, self.features], 0)
        return self.X[:, : self.size]

    def grow(self, source: Columns, blocks: np.ndarray) -> None:
        """Add blocks, to the Gram matrix too."""
        if blocks.size == 0:
            return
        penalty, before = source.penalty, self.size
        lists = [penalty.features[penalty.starts[b] : penalty.starts[b + 1]] for b in blocks]
        new = np.concatenate(lists)
        if before:
            self.columns(source)
        self.blocks = np.concatenate([self.blocks, blocks])
        self.features = np.concatenate([self.features, new])
        self.starts = np.concatenate([self.starts, self.starts[-1] + np.cumsum([part.size for part in lists])])
        self._add_columns(source, source.columns[:, new], before)
        if self.G.shape[0] < self.size:
            grown = np.zeros((self._capacity, self._capacity))
            grown[:before, :before] = self.G[:before, :before]
            self.G = grown
        self._extend(source, before)

    @property
    def _capacity(self) -> int:
        return max(64, 1 << (self.size - 1).bit_length())

    def _add_columns(self, source: Columns, columns: Any, before: int) -> None:
        if source.problem.is_sparse:
            self.X = columns if self.X is None else sp.hstack([self.X, columns], format="csc")
            return
        if self.X is None or self.X.shape[1] < self.size:
            grown = np.empty((columns.shape[0], self._capacity), columns.dtype, order="F")
            if self.X is not None:
                grown[:, :before] = self.X[:, :before]
            self.X = grown
        self.X[:, before : self.size] = columns

    def _extend(self, source: Columns, before: int) -> None:
        """The Gram matrix with the columns that have just joined."""
        size = self.size
        cross = self._gram(self.columns(source), self.X[:, before:size], self.weights)
        self.G[:size, before:size] = cross
        self.G[before:size, :before] = cross[:before].T
        self._shift(source, before)
        self.bounds = np.concatenate([self.bounds, self._curvature_bounds(self.bounds.size)])

    def reweigh(self, source: Columns, curvatures: np.ndarray) -> None:
        """The Gram matrix for other curvatures of the samples."""
        self.weights = curvatures
        if self.size == 0:
            return
        columns = self.columns(source)
        self.G[: self.size, : self.size] = self._gram(columns, columns, curvatures)
        self._shift(source, 0)
        self.bounds = self._curvature_bounds(0)

    def _shift(self, source: Columns, before: int) -> None:
        """Squared terms and damping, on the diagonal from feature number `before` on."""
        diagonal = np.einsum("ii->i", self.G)[before : self.size]
        diagonal += source.penalty.ridge[self.features[before:]] + source.damping

    def _gram(self, left: Any, right: Any, weights: np.ndarray) -> np.ndarray:
        """leftᵀ diag(weights) right / n."""
        n = left.shape[0]
        if weights.size:
            right = sp.diags_array(weights) @ right if sp.issparse(right) else weights[:, None] * right
        product = left.T @ right
        return np.asarray(product.toarray() if sp.issparse(product) else product, dtype=np.float64) / n

    def _curvature_bounds(self, first: int) -> np.ndarray:
        """The largest eigenvalue of each diagonal block, from block number `first` on."""
        bounds = np.empty(self.blocks.size - first)
        sizes = np.diff(self.starts)[first:]
        starts = self.starts[first:-1]
        for size in np.unique(sizes):
            which = np.flatnonzero(sizes == size)
            index = starts[which][:, None] + np.arange(size)
            if size == 1:
                bounds[which] = self.G[index[:, 0], index[:, 0]]
            else:
                parts = self.G[index[:, :, None], index[:, None, :]]
                bounds[which] = np.linalg.eigvalsh(parts)[:, -1] if size <= 200 else np.trace(parts, axis1=1, axis2=2)
        bounds[bounds <= 0.0] = 1.0
        return bounds

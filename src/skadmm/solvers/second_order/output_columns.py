"""The columns of X for several outputs: column c·d + j is feature j in the rows of output c.

Dense columns are stored once for all outputs. Sparse ones become columns of n·k rows, of those features only that are
selected.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from skadmm.io.state import transient
from skadmm.kernels.rows import StackedRows, as_matrix
from skadmm.kernels.samples import Samples, curvature_product
from skadmm.problem.problem import Problem
from skadmm.solvers.second_order.block_set import BlockSet, Columns, add_cross_products
from skadmm.solvers.second_order.free_features import FreeFeatures

ROWS_AT_ONCE = 4096
"""Samples whose weighted columns are formed at a time."""
SINGULAR = 1e-11
"""Eigenvalues below this share of the largest are zero: margins of one sample may all shift by the same number."""


class OutputColumns:
    """All columns of X for all outputs."""

    def __init__(self, rows: StackedRows) -> None:
        self.outputs, self.width = rows.outputs, rows.width
        matrix = as_matrix(rows.rows)
        self.sparse = sp.issparse(matrix)
        self.matrix = matrix.tocsc() if self.sparse else np.asfortranarray(matrix)
        self.shape = rows.shape

    def __getitem__(self, key: tuple[slice, np.ndarray]) -> Any:
        """The columns of some pairs of a feature and an output: a CSC array, or :class:`PairColumns`."""
        features = np.asarray(key[1])
        feature, output = features % self.width, features // self.width
        if self.sparse:
            return _stacked_columns(self.matrix, feature, output, self.outputs)
        return self.pairs(features)

    def pairs(self, features: np.ndarray) -> PairColumns:
        """The columns of some pairs, stored once for all outputs."""
        distinct, position = np.unique(features % self.width, return_inverse=True)
        base = self.matrix if distinct.size == self.width else self.matrix[:, distinct]
        return PairColumns(base, position, features // self.width, self.outputs)

    @property
    def T(self) -> TransposedOutputs:
        """Xᵀ, for products with a vector over all rows."""
        return TransposedOutputs(self.matrix, self.outputs)


@dataclass(frozen=True)
class TransposedOutputs:
    """The transpose of the columns of all outputs."""

    matrix: Any
    outputs: int

    def __matmul__(self, v: np.ndarray) -> np.ndarray:
        """Its product with a vector over all rows."""
        return np.asarray(self.matrix.T @ v.reshape(-1, self.outputs), dtype=np.float64).T.ravel()


@dataclass(frozen=True)
class PairColumns:
    """Columns of X for pairs of a feature and an output."""

    base: Any
    """The columns of the distinct features."""
    position: np.ndarray
    """The column in `base` of each pair."""
    output: np.ndarray
    """The output of each pair."""
    outputs: int

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.base.shape[0] * self.outputs, self.position.size

    def __getitem__(self, key: tuple[slice, slice]) -> PairColumns:
        """Some consecutive pairs."""
        return PairColumns(self.base, self.position[key[1]], self.output[key[1]], self.outputs)

    def __matmul__(self, values: np.ndarray) -> np.ndarray:
        """The product with a value for each pair, over all rows."""
        table = np.zeros((self.base.shape[1], self.outputs))
        table[self.position, self.output] = values
        return np.asarray(self.base @ table).ravel()

    @property
    def T(self) -> TransposedPairs:
        """The transpose, for products with vectors over all rows."""
        return TransposedPairs(self)

    def toarray(self) -> np.ndarray:
        """As an array of n·k rows."""
        out = np.zeros((self.base.shape[0], self.outputs, self.position.size))
        part = self.base[:, self.position]
        out[:, self.output, np.arange(self.position.size)] = part.toarray() if sp.issparse(part) else part
        return out.reshape(self.shape)


@dataclass(frozen=True)
class TransposedPairs:
    """The transpose of the columns of pairs."""

    pairs: PairColumns

    def __matmul__(self, v: np.ndarray) -> np.ndarray:
        """Its product with one vector over all rows, or with several."""
        pairs = self.pairs
        if v.ndim == 2:
            return np.column_stack([self @ np.ascontiguousarray(column) for column in v.T])
        return np.asarray(pairs.base.T @ v.reshape(-1, pairs.outputs))[pairs.position, pairs.output]


def _stacked_columns(matrix: Any, feature: np.ndarray, output: np.ndarray, outputs: int) -> Any:
    """The columns of sparse features, each in the rows of its output."""
    part = matrix[:, feature]
    counts = np.diff(part.indptr)
    rows = part.indices.astype(np.int64) * outputs + np.repeat(output, counts)
    return sp.csc_array((part.data, rows, part.indptr), shape=(matrix.shape[0] * outputs, feature.size))


class OutputFreeFeatures(FreeFeatures):
    """Free features of several outputs; where the loss joins them, so does their Hessian."""

    def __init__(self, columns: Any, index: np.ndarray, weights: np.ndarray, samples: Samples) -> None:
        self.index, self.n, self.samples = index, columns.shape[0], samples
        self.columns = np.asarray(columns[:, index].toarray(), dtype=np.float64)
        self.sizes = np.abs(self.columns)
        self.weighted = weights[:, None] * self.columns
        self.inverse = pseudoinverse(self.weighted.T @ self.columns / self.n)

    def centre(self, columns: Any) -> np.ndarray:
        """Zero, because columns are not centred."""
        return np.zeros((len(self), columns.shape[1]))

    def inverse_curvature(self, curvatures: np.ndarray) -> np.ndarray:
        """M⁻¹ for the curvatures of the samples."""
        return pseudoinverse(self.columns.T @ curvature_product(self.samples, curvatures, self.columns) / self.n)


def pseudoinverse(matrix: np.ndarray) -> np.ndarray:
    """The pseudoinverse of a symmetric matrix, which is singular where margins may shift together."""
    return np.linalg.pinv(matrix, rcond=SINGULAR, hermitian=True) if matrix.size else matrix


@dataclass(kw_only=True)
class OutputBlockSet(BlockSet):
    """A working set of pairs of a feature and an output."""

    problem: Problem = transient()
    """The samples, whose loss determines whether outputs are joined."""
    samples: Samples = transient()

    def _add_columns(self, source: Columns, features: np.ndarray, before: int) -> None:
        self.X = source.columns[:, self.features]
        if sp.issparse(self.X):
            self.by_rows = self.X.tocsr()

    def _cross(self, columns: Any, first: int) -> np.ndarray:
        """Products of all columns with those from number `first` on, weighted by the curvatures of the samples."""
        problem = self.problem
        if self.by_rows is not None:
            cross = super()._cross(columns, first)
            return cross - self._sparse_coupling(problem, first) if problem.is_coupled else cross
        h = self.weights.reshape(-1, columns.outputs)
        if not problem.is_coupled and np.all(h == h[:, :1]):
            whole = np.asarray(columns.base.T @ (h[:, :1] * columns.base), dtype=np.float64)
            same = columns.output[:, None] == columns.output[first:]
            return whole[columns.position[:, None], columns.position[first:]] * same / columns.shape[0]
        return _dense_cross(columns, h, first, problem.is_coupled) / columns.shape[0]

    def _sparse_coupling(self, problem: Problem, first: int) -> np.ndarray:
        """Σ_i (h a)ᵢ (h a)ᵢᵀ / Σ hᵢ over pairs, for sparse columns."""
        k = problem.n_outputs
        part, h = self.X[:, : self.size], self.weights
        scaled = (part.data * h[part.indices], part.indices // k, part.indptr)
        rows = sp.csc_array(scaled, shape=(h.size // k, self.size)).tocsr()
        rows.sort_indices()
        total = h.reshape(-1, k).sum(axis=1)
        out = np.zeros((self.size - first, self.size))
        inverse = np.divide(1.0, total, out=np.zeros_like(total), where=total > 0.0)
        add_cross_products(rows.indptr, rows.indices, rows.data, inverse, first, out)
        square = out[:, first:]
        square += np.tril(square, -1).T
        return out.T / h.size

    def _shift_of(self, source: Columns, columns: Any) -> tuple[np.ndarray, np.ndarray]:
        """M⁻¹FᵀDZ/n for columns Z, and M."""
        free = source.free.columns
        scaled = curvature_product(self.samples, self.weights, free)
        curvature = scaled.T @ free / free.shape[0]
        product = np.asarray(columns.T @ scaled).T / free.shape[0]
        return pseudoinverse(curvature) @ product, curvature


def _dense_cross(columns: PairColumns, h: np.ndarray, first: int, coupled: bool) -> np.ndarray:
    """Σ_i over samples of the entries of (diag(hᵢ) − hᵢhᵢᵀ/Σhᵢ) ⊗ aᵢaᵢᵀ for all pairs and those from `first` on."""
    base, position, output = columns.base, columns.position, columns.output
    out = np.zeros((position.size, position.size - first))
    total = h.sum(axis=1)
    root = np.sqrt(np.divide(1.0, total, out=np.zeros_like(total), where=total > 0.0))
    members = [np.flatnonzero(output == c) for c in range(columns.outputs)]
    for start in range(0, base.shape[0], ROWS_AT_ONCE):
        part = slice(start, start + ROWS_AT_ONCE)
        rows, weights = base[part], h[part]
        for c, pairs in enumerate(members):
            new = pairs[pairs >= first]
            if new.size:
                values = rows[:, position[pairs]]
                weighted = weights[:, c, None] * (values if new.size == pairs.size else rows[:, position[new]])
                out[np.ix_(pairs, new - first)] += values.T @ weighted
        if coupled:
            shared = rows[:, position] * (weights * root[part, None])[:, output]
            out -= shared.T @ (shared if first == 0 else shared[:, first:])
    return out

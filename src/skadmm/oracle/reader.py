"""Reads of rows and sums over them, a chunk at a time."""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any

import numpy as np

from skadmm import _cancel
from skadmm.backends.slicing import take_rows
from skadmm.kernels.expansion import add_squares, in_parts, sum_expansions, sum_outer, sum_rows
from skadmm.kernels.rows import is_dense, stored_entries

Index = np.ndarray | range
"""Numbers of rows."""
DENSE_PRODUCT = 0.1
"""What a product of two entries of a dense row costs, relative to reading one."""


class RowReader:
    """The rows of one block. `between` is called before each chunk of at most `rows_per_chunk` rows."""

    def __init__(
        self, rows: Any, rows_per_chunk: int = 1 << 20, between: Callable[[], None] = _cancel.check_cancelled
    ) -> None:
        self.rows, self.rows_per_chunk, self.between = rows, rows_per_chunk, between
        self.size, self.d = rows.shape
        self.entries_per_row = stored_entries(rows) / self.size

    def copied(self, index: np.ndarray) -> Any:
        """Copies of some rows, at least two: whether a single row is stored by columns cannot be determined."""
        return take_rows(self.rows, index if index.size > 1 else np.append(index, [0, 0]))

    def read(self, work: Callable[[np.ndarray], None], index: Index) -> None:
        """Call `work` on all rows in `index`, one part at a time."""
        parts = in_parts(work, index, self.entries(index), self.chunk_size(index), self.between)
        collections.deque(parts, maxlen=0)

    def sum_squares(self) -> np.ndarray:
        """Σ a²."""
        out = np.zeros(self.d)
        for start in range(0, self.size, self.rows_per_chunk):
            self.between()
            add_squares(self.rows, np.arange(start, min(start + self.rows_per_chunk, self.size)), out)
        return out

    def sum_rows(self, index: Index, scale: np.ndarray) -> np.ndarray:
        """Σ scale_i a_i."""
        return sum_rows(self.rows, index, scale, self.entries(index), self.chunk_size(index), self.between)

    def sum_outer(self, index: Index, scale: np.ndarray) -> np.ndarray:
        """Σ scale_i a_i a_iᵀ."""
        return sum_outer(self.rows, index, scale, self.products(index), self.chunk_size(index), self.between)

    def sum_expansions(
        self, index: Index, curvatures: np.ndarray, scale: np.ndarray, new: bool
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Σ curvatures_i a_i a_iᵀ, Σ scale_i a_i and, for `new` samples, Σ a_i²."""
        return sum_expansions(
            self.rows, index, curvatures, scale, new, self.products(index), self.chunk_size(index), self.between
        )

    def chunk_size(self, index: Index) -> int:
        """The number of these rows to read at once. Rows that are far apart read as much of a file as all between."""
        span = int(index[-1] - index[0]) + 1 if len(index) > 0 else 1
        return max(256, int(self.rows_per_chunk * len(index) / span))

    def entries(self, index: Index) -> float:
        """About how many stored entries these rows have."""
        return len(index) * self.entries_per_row

    def products(self, index: Index) -> float:
        """The approximate cost of the outer products, in entries read; BLAS forms dense ones at a tenth of it."""
        return self.entries(index) * self.entries_per_row * (DENSE_PRODUCT if is_dense(self.rows) else 1.0)

"""Slopes that are orthogonal to the columns of features which nothing penalises.

Newton's method on the coefficients of those features alone, in the margins: the loss is smooth in them, and at their
optimum the slopes are orthogonal to their columns.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np

from skadmm import _cancel
from skadmm.backends.tasks import Max
from skadmm.kernels.expansion import all_margins, expand, sum_rows
from skadmm.kernels.rows import stored_entries
from skadmm.kernels.samples import Samples, curvature_product

ROWS_AT_ONCE = 1 << 17
"""Rows of which products are formed at a time."""
ORTHOGONAL = 1e-14
"""Slopes are orthogonal to a column where their product is this share of the sum of its terms' sizes: rounding."""
TINY = float(np.finfo(float).tiny)
"""The smallest normal number."""


class ColumnSums(NamedTuple):
    """Sums over samples, a_j the free columns and θ the slopes."""

    products: np.ndarray
    """Σ θ a_j."""
    hessian: np.ndarray
    """Σ h a_j a_kᵀ."""


class FreeColumns(Protocol):
    """What Newton's method on the free coefficients asks of the samples."""

    def begin(self, free: np.ndarray) -> np.ndarray:
        """Start from the slopes θ of the last evaluation, for these features; Σ |a_j| |θ|."""

    def sums(self) -> ColumnSums:
        """At the margins now."""

    def reach(self, step: np.ndarray) -> float:
        """The largest move of a margin when the coefficients move by `step`."""

    def move(self, step: np.ndarray) -> None:
        """Subtract `step` from the coefficients."""

    def correct(self, step: np.ndarray) -> np.ndarray:
        """Change the slopes themselves, as the move would but for the rounding of margins; Σ θ a_j."""

    def end(self, found: bool) -> np.ndarray:
        """Σ θ a over all features where orthogonal slopes were `found`; else zeros, and the slopes are dropped."""


def orthogonal(columns: FreeColumns, free: np.ndarray) -> np.ndarray | None:
    """Find slopes θ that are orthogonal to the columns of the free features; Σ θ a, or None where none are found.

    Newton's method on the free coefficients alone, in the margins: the loss is smooth in them, and at their
    optimum θ is orthogonal.
    """
    scale = columns.begin(free) + TINY
    found = False
    for _ in range(20):
        off, hessian = columns.sums()
        found = bool(np.all(np.abs(off) <= ORTHOGONAL * scale))
        if found:
            break
        step = _least_squares(hessian, off)
        largest = float(columns.reach(step))
        columns.move(step * min(1.0, 4.0 / largest) if largest > 0 else step)
    if not found:
        off, hessian = columns.sums()
    for _ in range(0 if found else 3):
        # Slopes that are small differences of large margins carry the margins' rounding.
        off = columns.correct(_least_squares(hessian, off))
        found = bool(np.all(np.abs(off) <= ORTHOGONAL * scale))
        if found:
            break
    gradient = columns.end(found)
    return gradient if found else None


def _least_squares(hessian: np.ndarray, off: np.ndarray) -> np.ndarray:
    """The step of minimum norm; for one column, which is the rule (an intercept), without the overhead of LAPACK."""
    if off.size == 1:
        return off / hessian[0] if hessian[0, 0] > 0.0 else np.zeros(1)
    return np.linalg.lstsq(hessian, off, rcond=1e-12)[0]


class LocalFreeColumns:
    """Free columns of samples in this process; :meth:`place` gives the margins and slopes to start from."""

    def __init__(
        self,
        samples: Samples,
        rows_per_chunk: int = 1 << 20,
        between: Callable[[], None] = _cancel.check_cancelled,
    ) -> None:
        self._samples, self._rows_per_chunk, self._between = samples, max(256, rows_per_chunk), between
        self._n, self._d = samples.rows.shape
        self._entries = self._n * (stored_entries(samples.rows) / self._n)
        self._columns = np.empty((self._n, 0))
        self._margins = self.slopes = self._curvatures = np.empty(0)

    def place(self, margins: np.ndarray, slopes: np.ndarray) -> None:
        """Start from these; they are copied."""
        self._margins, self.slopes = margins.copy(), slopes.copy()

    def begin(self, free: np.ndarray) -> np.ndarray:
        """Read the columns, once; Σ |a_j| |θ|."""
        if self._columns.shape[1] != free.size:
            self._columns = np.empty((self._n, free.size))
            for k, feature in enumerate(free):
                unit = np.zeros(self._d)
                unit[feature] = 1.0
                rows, every, out = self._samples.rows, range(self._n), self._columns[:, k]
                all_margins(rows, every, unit, out, self._entries, self._rows_per_chunk, self._between)
            if free.size == 1 and np.all(self._columns == 1.0):  # an intercept, the rule: one number for all rows
                self._columns = np.broadcast_to(np.ones((1, 1)), (self._n, 1))
        self._curvatures = np.empty(self._n)
        return self._added(lambda part: np.abs(self._columns[part]).T @ np.abs(self.slopes[part]))

    def _parts(self) -> Iterator[slice]:
        """Consecutive rows, so few at a time that what is computed from them takes little memory."""
        size = self._n if self._samples.loss.coupled else ROWS_AT_ONCE
        for start in range(0, self._n, size):
            yield slice(start, min(start + size, self._n))

    def _added(self, term: Callable[[slice], Any]) -> Any:
        """The sum of a function of each part."""
        return functools.reduce(operator.add, map(term, self._parts()))

    def sums(self) -> ColumnSums:
        """Expand the losses at the margins now."""
        products, hessian = np.zeros(self._columns.shape[1]), np.zeros(2 * self._columns.shape[1:])
        for part in self._parts():
            columns = self._columns[part]
            expand(self._samples, np.arange(part.start, part.stop), self._margins, self.slopes, self._curvatures)
            products += columns.T @ self.slopes[part]
            hessian += columns.T @ self._curved(part, columns)
        return ColumnSums(products, hessian)

    def _curved(self, part: slice, columns: np.ndarray) -> np.ndarray:
        """The Hessian of the losses in their margins times columns of some rows."""
        return curvature_product(self._samples, self._curvatures[part], columns)

    def reach(self, step: np.ndarray) -> float:
        """The largest move of a margin."""
        return Max(max(np.abs(self._columns[part] @ step).max() for part in self._parts()))

    def move(self, step: np.ndarray) -> None:
        """Move the margins."""
        for part in self._parts():
            self._margins[part] -= self._columns[part] @ step

    def correct(self, step: np.ndarray) -> np.ndarray:
        """Change the slopes by curvature times the margins' move."""
        for part in self._parts():
            self.slopes[part] -= self._curved(part, (self._columns[part] @ step)[:, None])[:, 0]
        return self._added(lambda part: self._columns[part].T @ self.slopes[part])

    def taken(self) -> np.ndarray:
        """The slopes, which are not kept here any longer."""
        slopes, self.slopes = self.slopes, np.empty(0)
        return slopes

    def end(self, found: bool) -> np.ndarray:
        """Σ θ a over all features; zeros where no orthogonal slopes were found."""
        self._margins = self._curvatures = np.empty(0)
        if not found:
            self.slopes = np.empty(0)
            return np.zeros(self._d)
        return sum_rows(
            self._samples.rows, range(self._n), self.slopes, self._entries, self._rows_per_chunk, self._between
        )

"""The oracle over rows in the memory of this process, and how it reads them, a chunk at a time.

On a cluster every block of rows has such an oracle of its own, on its worker (``remote.py``).
"""

from __future__ import annotations

import collections
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from skadmm import _cancel
from skadmm.backends.slicing import take_rows
from skadmm.backends.tasks import Max
from skadmm.io import state as stored
from skadmm.kernels.expansion import (
    SCALAR_WORK,
    add_squares,
    expand_along,
    in_parts,
    margins,
    sum_expansions,
    sum_outer,
    sum_rows,
)
from skadmm.kernels.rows import is_dense, stored_entries
from skadmm.kernels.samples import Samples, mean_conjugate
from skadmm.oracle.base import BatchSums, CurvatureChange, Ends, FullSums, MarginsAndSlopes
from skadmm.oracle.batches import GrowingBatch, rows_of
from skadmm.oracle.large_shifts import LocalLargeShifts, ShiftedSamples
from skadmm.problem.free_columns import LocalFreeColumns

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


@dataclass
class SampleScalars:
    """What is kept for each sample between two steps."""

    z: np.ndarray
    """The margin of each sample where it was last evaluated."""
    slope: np.ndarray
    """The slope w ℓ' at that margin."""
    curvatures: np.ndarray
    """The curvature w ℓ'' at that margin, or more where the loss defines a larger one for models."""
    used_curvatures: np.ndarray
    """The curvature with which the sample is part of H."""
    shift: np.ndarray
    """How far the last step shifted each margin; during a step, the margin before it."""
    placed_before: bool = False
    """True once a step has been completed, so that shifts are defined."""

    @classmethod
    def zeros(cls, size: int) -> SampleScalars:
        """Zeros for `size` samples, as before the first evaluation."""
        return cls(np.zeros(size), np.zeros(size), np.zeros(size), np.zeros(size), np.zeros(size))

    def clear(self) -> None:
        """Reset everything to the state before the first evaluation."""
        for numbers in (self.z, self.slope, self.curvatures, self.used_curvatures, self.shift):
            numbers[:] = 0.0
        self.placed_before = False


@dataclass
class Temporary:
    """What is kept between two requests of one step, until the margins move; no checkpoint needs it."""

    shifted: ShiftedSamples | None = None
    """Copies of the large-shift samples."""
    orthogonal: np.ndarray | None = None
    """Slopes that are orthogonal to the free columns, which the certificate uses in place of the samples' own."""

    def drop(self) -> None:
        """Drop both."""
        self.shifted = self.orthogonal = None


def move_margins(
    rows: Any, index: np.ndarray, x: np.ndarray | None, step: np.ndarray | None, z: np.ndarray, move: np.ndarray
) -> None:
    """Compute the margins z of some rows at `x`, and how far `step` moves them, where these are given."""
    if step is not None:
        margins(rows, index, step, move)
    if x is not None:
        margins(rows, index, x, z)


K = TypeVar("K")


class BlockOracle(Generic[K]):
    """One block of rows, and what is kept of its samples; `first` is the number of its first sample among all."""

    scalars: K
    """What is kept between two steps, and in a checkpoint."""

    def __init__(self, samples: Samples, first: int) -> None:
        self.samples, self.first = samples, first
        self.size, self.d = samples.rows.shape
        self.temporary = Temporary()

    def state(self) -> dict[str, Any]:
        """What is kept of each sample."""
        return stored.capture(self.scalars)

    def resume(self, state: dict[str, Any]) -> bool:
        """Restore it. Always succeeds here."""
        stored.restore(self.scalars, state)
        return True

    def close(self) -> None:
        """Do nothing: everything is in this process."""


class LocalOracle(BlockOracle[SampleScalars]):
    """The samples of one block of rows, for steps on all features.

    `between` is called before each chunk of at most `rows_per_chunk` rows.
    """

    def __init__(
        self,
        samples: Samples,
        first: int = 0,
        rows_per_chunk: int = 1 << 20,
        between: Callable[[], None] = _cancel.check_cancelled,
    ) -> None:
        super().__init__(samples, first)
        self.scalars = SampleScalars.zeros(self.size)
        self.reader = self._make_reader(rows_per_chunk, between)
        self._move = np.zeros(self.size)
        """By how much the step moves each margin."""
        self._start: np.ndarray | None = None
        """The point at which margins are still to be computed, when the step is known."""
        self._old = np.empty(0)
        """The contribution of the batch to Σ (h z − slope) a before the step."""
        self._batch: GrowingBatch | None = None

    @cached_property
    def large_shifts(self) -> LocalLargeShifts:
        """The samples whose margins the last step shifted most."""
        return LocalLargeShifts(self.samples, self.reader, self.scalars, self.temporary)

    @cached_property
    def free_columns(self) -> OracleFreeColumns:
        """The columns of features that nothing penalises."""
        reader = self.reader
        return OracleFreeColumns(self.samples, reader.rows_per_chunk, reader.between, self.scalars, self.temporary)

    def _make_reader(self, rows_per_chunk: int, between: Callable[[], None]) -> RowReader:
        return RowReader(self.samples.rows, rows_per_chunk, between)

    @property
    def _slices(self) -> list[slice]:
        """The rows of the batch. The numbers of their samples are changed in place: new arrays would cost more than
        the sums where freed memory is returned to the system at once, as on Dask's workers."""
        return [slice(0, self.size, 1)] if self._batch is None else self._batch.slices(self.first, self.size)

    @property
    def _index(self) -> Index:
        """The row numbers of the batch."""
        slices = self._slices
        return range(self.size)[slices[0]] if len(slices) == 1 else rows_of(slices)

    def restart(self) -> None:
        """Forget all samples."""
        self.scalars.clear()
        self.temporary.drop()

    # -- a step --------------------------------------------------------------------------------------------------

    def begin(
        self, batch: GrowingBatch | None, x: np.ndarray | None, new: bool = False, stale: float | None = None
    ) -> None:
        """Choose the samples, and where their margins start; `new` and `stale` are not needed here."""
        self.temporary.shifted = None
        scalars, self._batch = self.scalars, batch
        if batch is None:
            self._old = np.empty(0)
        elif self._old.size != self.size:
            self._old = np.empty(self.size)
        for at in self._slices:
            scalars.shift[at] = scalars.z[at]
            if batch is not None:
                old = np.multiply(scalars.used_curvatures[at], scalars.z[at], out=self._old[at])
                old -= scalars.slope[at]
        self._start = x

    def along(self, step: np.ndarray | None, t: float) -> float:
        """Σ of the losses at the margins moved by t times those of `step`; slopes and curvatures there."""
        index, x, self._start = self._index, self._start, None
        if step is None:
            self._set(self._move, 0.0)
        if step is not None or x is not None:
            rows, z = self.samples.rows, self.scalars.z
            self.reader.read(lambda part: move_margins(rows, part, x, step, z, self._move), index)
        if x is not None and not self.scalars.placed_before:
            self._set(self.scalars.shift, self.scalars.z)
        return self.losses(t)

    def ends(self, step: np.ndarray) -> Ends:
        """The same at t = 0 and at t = 1; slopes and curvatures are those at 1."""
        return Ends(self.along(step, 0.0), self.losses(1.0))

    def losses(self, t: float) -> float:
        """The same at another t."""
        scalars = self.scalars

        def part(some: np.ndarray) -> float:
            return float(expand_along(self.samples, some, scalars.z, self._move, t, scalars.slope, scalars.curvatures))

        index = self._index
        return float(sum(in_parts(part, index, SCALAR_WORK * len(index))))

    def join(self, length: float, new: bool) -> BatchSums:
        """Take the step of a batch, and return the changes of the sums of the model."""
        self._go(length)
        scalars = self.scalars
        change = self._move  # no longer needed, so its memory is used again
        for at in self._slices:
            added = np.multiply(scalars.curvatures[at], scalars.z[at], out=change[at])
            added -= scalars.slope[at]
            np.subtract(added, self._old[at], out=self._old[at])
            np.subtract(scalars.curvatures[at], scalars.used_curvatures[at], out=change[at])
        sums = self.reader.sum_expansions(self._index, change, self._old, new)
        self._set(scalars.used_curvatures, scalars.curvatures)
        self._measure()
        return BatchSums(*sums, self._max_curvature())

    def settle(self, length: float) -> FullSums:
        """Take the step of all samples, and return the gradient after it."""
        self._go(length)
        self._measure()
        return FullSums(self.reader.sum_rows(self._index, self.scalars.slope), self._max_curvature())

    def renew(self, stale: float, afresh: bool) -> CurvatureChange:
        """The change of Σ h a aᵀ over samples whose curvature changed by more than `stale`."""
        scalars = self.scalars
        squares: Any = 0.0
        if afresh:
            scalars.used_curvatures[:] = 0.0
            squares = self.reader.sum_squares()
        change = np.subtract(scalars.curvatures, scalars.used_curvatures, out=self._move)
        rows = np.flatnonzero((change > stale) | (change < -stale))
        if rows.size == 0:
            return CurvatureChange(0.0, squares)
        H = self.reader.sum_outer(rows, change)
        scalars.used_curvatures[rows] = scalars.curvatures[rows]
        return CurvatureChange(H, squares)

    # -- the certificate -----------------------------------------------------------------------------------------

    def conjugate(self, scale: float) -> float:
        """Σ w ℓ*(scale θ / w), where θ are the slopes that the certificate uses."""
        orthogonal = self.temporary.orthogonal
        theta = self.scalars.slope if orthogonal is None else orthogonal
        return self.size * float(mean_conjugate(self.samples, np.multiply(theta, scale, out=self._move)))

    def margins_and_slopes(self) -> MarginsAndSlopes:
        """The margin and the slope of every sample, where all of them were last evaluated."""
        return MarginsAndSlopes(self.scalars.z, self.scalars.slope)

    # -- parts of a step -----------------------------------------------------------------------------------------

    def _set(self, numbers: np.ndarray, value: Any) -> None:
        """Set the entries of the batch's rows to those of another array, or to one number."""
        for at in self._slices:
            numbers[at] = value[at] if isinstance(value, np.ndarray) else value

    def _go(self, length: float) -> None:
        """Move the margins."""
        self.temporary.drop()
        if length != 0.0:
            for at in self._slices:
                move = self._move[at]
                move *= length
                self.scalars.z[at] += move

    def _measure(self) -> None:
        """Compute how far the step shifted each margin."""
        for at in self._slices:
            shift = self.scalars.shift[at]
            np.abs(np.subtract(self.scalars.z[at], shift, out=shift), out=shift)
        self.scalars.placed_before = True

    def _max_curvature(self) -> float:
        """The largest curvature in the batch."""
        return Max(max((self.scalars.curvatures[at].max(initial=0.0) for at in self._slices), default=0.0))


class Placed(Protocol):
    """Samples at the point where they were last evaluated."""

    z: np.ndarray
    """Their margins."""
    slope: np.ndarray
    """Their slopes."""


class OracleFreeColumns(LocalFreeColumns):
    """Free columns that start from the margins and slopes of an oracle, and leave it the slopes they find."""

    def __init__(
        self,
        samples: Samples,
        rows_per_chunk: int,
        between: Callable[[], None],
        scalars: Placed,
        temporary: Temporary,
    ) -> None:
        super().__init__(samples, rows_per_chunk, between)
        self._scalars, self._temporary = scalars, temporary

    def begin(self, free: np.ndarray) -> np.ndarray:
        """Start where all samples were last evaluated; returns Σ |a_j| |θ|."""
        self._temporary.drop()
        self.place(self._scalars.z, self._scalars.slope)
        return super().begin(free)

    def end(self, found: bool) -> np.ndarray:
        """Return Σ θ a over all features; where slopes were found, the certificate uses them from now on."""
        gradient = super().end(found)
        self._temporary.orthogonal = self.taken() if found else None
        return gradient

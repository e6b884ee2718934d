"""An oracle that reads every row once per step.

A step needs the margins first, sums over the rows once its length is known, and a Hessian when the run continues. In
memory that costs little. Where rows come from a disk, or every request is sent to a cluster, everything is computed at
once, as if the step were taken whole, which it nearly always is (``speculative.py``): a few thousand rows are read, and
their margins, slopes, sums and outer products are formed while they are in the cache.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from skadmm import _cancel
from skadmm.backends.local import LocalBackend
from skadmm.backends.slicing import part_of, stack_rows, take_rows
from skadmm.backends.tasks import Max
from skadmm.kernels.expansion import (
    PARTS,
    SCALAR_WORK,
    add_outer,
    add_rows,
    add_squares,
    expand_along,
    expand_and_add,
    in_parts,
    loss_along,
    mirror,
    workspace_for,
)
from skadmm.kernels.rows import is_dense
from skadmm.kernels.samples import Samples
from skadmm.kernels.threads import one_thread
from skadmm.oracle.base import LARGE_SHIFT, LARGE_SHIFT_SHARE, Ahead, BatchSums, Ends, FullSums
from skadmm.oracle.local import LocalOracle, RowReader, move_margins

ENTRIES_PER_CHUNK = 1 << 20
"""The number of entries in a chunk of rows, which is read once for all sums."""


class Chunk(NamedTuple):
    """Some rows, and views of the numbers kept for them."""

    place: slice
    samples: Samples
    at: slice
    """Which of those samples."""

    @property
    def numbers(self) -> np.ndarray:
        """The numbers of these rows among those samples."""
        return np.arange(self.at.start, self.at.stop, self.at.step)

    def of(self, array: np.ndarray) -> np.ndarray:
        """The part of an array over all samples that belongs to this chunk."""
        return array[self.place]


class Sums:
    """The sums over the rows of a step, of which at most `chunk_size` are added at a time."""

    def __init__(self, d: int, chunk_size: int) -> None:
        self._chunk_size = chunk_size
        self.start = self.end = 0.0
        """Σ of the losses at the start and at the end of the step."""
        self.rows, self.squares = np.zeros(d), np.zeros(d)
        self.outer: np.ndarray | None = None
        """Lower triangle of the sum of outer products; None where none were formed."""
        self._workspace: Any = None
        self.max_curvature, self.large_shifts = 0.0, 0
        """The largest curvature, and the number of margins that move by more than LARGE_SHIFT."""

    def add_outer(self, rows: Any, index: np.ndarray, scale: np.ndarray) -> None:
        """Add Σ scale_i a_i a_iᵀ over the rows in `index`."""
        if index.size == 0:
            return
        if self.outer is None:
            self.outer = np.zeros((self.rows.size, self.rows.size))
            self._workspace = workspace_for(rows, self._chunk_size)
        add_outer(rows, index, scale, self.outer, self._workspace)

    def add(self, other: Sums) -> None:
        """Add the sums of other rows."""
        self.start += other.start
        self.end += other.end
        self.rows += other.rows
        self.squares += other.squares
        if self.outer is None:
            self.outer = other.outer
        elif other.outer is not None:
            self.outer += other.outer
        self.max_curvature = max(self.max_curvature, other.max_curvature)
        self.large_shifts += other.large_shifts

    @property
    def H(self) -> Any:
        """The sum of outer products, both triangles; 0.0 where none were formed."""
        if self.outer is None:
            return 0.0
        mirror(self.outer)
        return self.outer


class SinglePassOracle(LocalOracle):
    """A local oracle that can compute all of a step at once."""

    def __init__(
        self,
        samples: Samples,
        first: int = 0,
        rows_per_chunk: int = 1 << 20,
        between: Callable[[], None] = _cancel.check_cancelled,
        entries_per_chunk: int = ENTRIES_PER_CHUNK,
    ) -> None:
        super().__init__(samples, first, rows_per_chunk, between)
        self._entries_per_chunk = entries_per_chunk

    def batch_ahead(self, step: np.ndarray | None, new: bool) -> tuple[Ends, BatchSums]:
        """Σ of the losses at both ends of a step, and what ``join`` returns after the whole of it."""
        x, self._start = self._start, None
        known = self.scalars

        def evaluate(chunk: Chunk, sums: Sums) -> None:
            z, move = self._margins_of(chunk, x, step)
            used_curvatures, slope, curvatures, old = (
                chunk.of(array) for array in (known.used_curvatures, known.slope, known.curvatures, self._old)
            )
            samples, index, at = chunk.samples, chunk.numbers, chunk.at
            sums.start += loss_along(samples, index, z, move, 0.0)
            sums.end += expand_along(samples, index, z, move, 1.0, slope, curvatures)
            scale = np.empty(z.size)
            scale[at] = curvatures[at] * (z[at] + move[at]) - slope[at] - old[at]
            add_rows(samples.rows, index, scale, sums.rows)
            if new:
                add_squares(samples.rows, index, sums.squares)
            scale[at] = curvatures[at] - used_curvatures[at]
            sums.add_outer(samples.rows, index, scale)
            sums.max_curvature = max(sums.max_curvature, float(curvatures[at].max(initial=0.0)))

        sums = self._summed(evaluate)
        return Ends(sums.start, sums.end), BatchSums(sums.H, sums.rows, sums.squares, Max(sums.max_curvature))

    def batch_taken(self) -> None:
        """Take the whole step of the batch."""
        self._go(1.0)
        self._set(self.scalars.used_curvatures, self.scalars.curvatures)
        self._measure()

    def evaluate_ahead(self, step: np.ndarray | None, both: bool, stale: float | None) -> Ahead:
        """Σ of the losses at both ends of a step or only at its end, and what ``settle`` and ``renew`` return after the
        whole of it."""
        x, self._start = self._start, None
        known = self.scalars

        def evaluate(chunk: Chunk, sums: Sums) -> None:
            samples, index, at = chunk.samples, chunk.numbers, chunk.at
            used_curvatures, slope, curvatures = (
                chunk.of(array) for array in (known.used_curvatures, known.slope, known.curvatures)
            )
            if x is None and step is not None and not both:
                z, move = chunk.of(known.z), chunk.of(self._move)
                sums.end += expand_and_add(samples, index, step, z, move, slope, curvatures, sums.rows)
            else:
                z, move = self._margins_of(chunk, x, step)
                if both:
                    sums.start += loss_along(samples, index, z, move, 0.0)
                sums.end += expand_along(samples, index, z, move, 1.0, slope, curvatures)
                add_rows(samples.rows, index, slope, sums.rows)
            if stale is not None:
                change = np.empty(z.size)
                change[at] = curvatures[at] - used_curvatures[at]
                sums.add_outer(samples.rows, index[np.abs(change[at]) > stale], change)
            sums.max_curvature = max(sums.max_curvature, float(curvatures[at].max(initial=0.0)))
            far = index[np.abs(z[at] + move[at] - chunk.of(known.shift)[at]) > LARGE_SHIFT]
            sums.large_shifts += far.size
            self._keep(chunk, far)

        sums = self._summed(evaluate)
        after = FullSums(sums.rows, Max(sums.max_curvature))
        return Ahead(Ends(sums.start, sums.end), after, sums.H, sums.large_shifts)

    def evaluation_taken(self) -> None:
        """Take the whole step of all samples."""
        self._go(1.0)
        self._measure()

    def renewed(self, stale: float) -> None:
        """Record that H has been brought up to date."""
        known = self.scalars
        change = np.subtract(known.curvatures, known.used_curvatures, out=self._move)
        rows = np.abs(change, out=change) > stale
        known.used_curvatures[rows] = known.curvatures[rows]

    # -- chunks ----------------------------------------------------------------------------------------------------

    def _margins_of(self, chunk: Chunk, x: np.ndarray | None, step: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """The margins where the step begins, and how far it moves them."""
        z, move = chunk.of(self.scalars.z), chunk.of(self._move)
        rows, index, at = chunk.samples.rows, chunk.numbers, chunk.at
        if step is None:
            move[at] = 0.0
        move_margins(rows, index, x, step, z, move)
        if x is not None and not self.scalars.placed_before:
            chunk.of(self.scalars.shift)[at] = z[at]
        return z, move

    def _keep(self, chunk: Chunk, far: np.ndarray) -> None:
        """Keep copies of the rows that the step shifts far, because they may be needed again."""

    def _summed(self, evaluate: Callable[[Chunk, Sums], None]) -> Sums:
        """Evaluate all chunks, several at the same time; the sums do not depend on how many."""
        slices = self.chunk_slices()
        size = max((len(range(at.start, at.stop, at.step)) for at in slices), default=0)
        total = Sums(self.d, size)

        def part(numbers: np.ndarray) -> Sums:
            sums = Sums(self.d, size)
            for k in numbers:
                evaluate(self._chunk(slices[k]), sums)
            return sums

        with one_thread():
            for group in self.groups(slices, size):
                work = len(group) * (self.reader.products(range(size)) + SCALAR_WORK * size)
                for sums in in_parts(part, group, work, between=self.reader.between):
                    total.add(sums)
        return total

    def groups(self, slices: list[slice], size: int) -> Iterator[range]:
        """Groups of slices that are read between two checks of whether the run was cancelled; `size` is the number of
        rows in the largest slice."""
        count = max(1, self.reader.rows_per_chunk // (size * slices[0].step)) if slices else 1
        for first in range(0, len(slices), count):
            last = first + count
            self._expect(slices[0 if first == 0 else last : last + count])
            yield range(len(slices))[first:last]

    def chunk_slices(self) -> list[slice]:
        """The slices of the chunks: a limited number of rows each, and at least PARTS chunks where rows suffice."""
        places = self._slices
        size = self._entries_per_chunk / max(self.reader.entries_per_row, 1.0)
        if len(places) == 1:
            rows = len(range(self.size)[places[0]])
            size = min(size, self.reader.rows_per_chunk / (PARTS * places[0].step), -(-rows // PARTS))
        size = max(256, int(size))
        return [
            slice(start, min(start + size * at.step, at.stop), at.step)
            for at in places
            for start in range(at.start, at.stop, size * at.step)
        ]

    def _chunk(self, at: slice) -> Chunk:
        rows = self.samples.rows
        whole = is_dense(rows) and not rows.values.flags.c_contiguous
        place = slice(0, self.size) if whole else slice(at.start, at.stop)  # an F-ordered slice needs other kernels
        samples = part_of(self.samples, place.start, place.stop)
        inside = slice(at.start - place.start, at.stop - place.start, at.step)
        return Chunk(place, samples, inside)

    def _expect(self, slices: list[slice]) -> None:
        """Announce that these slices will be read next."""


class KeptCopies(NamedTuple):
    """Copies of some rows, and their numbers."""

    numbers: np.ndarray
    rows: Any


class FileReader(RowReader):
    """Rows in files; large-shift samples were copied when they were last read, where they are few."""

    kept: KeptCopies | None = None
    """Copies of the rows that the last step shifted far; None where there were too many."""

    def copied(self, index: np.ndarray) -> Any:
        """Copies of some rows: those kept, or read again, a chunk at a time."""
        if self.kept is not None and np.array_equal(self.kept.numbers, index):
            return self.kept.rows
        size, parts = self.chunk_size(index), []
        for start in range(0, index.size, size):
            self.between()
            parts.append(take_rows(self.rows, index[start : start + size]))
        return stack_rows(parts) if parts else super().copied(index)


class FileOracle(SinglePassOracle):
    """Rows in files: fetched before they are read, released after it, and copied where they will be needed again."""

    reader: FileReader

    def __init__(
        self,
        backend: LocalBackend,
        rows_per_chunk: int | None = None,
        between: Callable[[], None] | None = None,
        entries_per_chunk: int = ENTRIES_PER_CHUNK,
    ) -> None:
        super().__init__(
            backend.samples(),
            rows_per_chunk=backend.rows_per_chunk if rows_per_chunk is None else rows_per_chunk,
            between=backend.between_chunks if between is None else between,
            entries_per_chunk=entries_per_chunk,
        )
        self._backend = backend
        self._far: dict[int, KeptCopies] = {}
        """Copies of rows that the step shifts far, by where their chunk begins."""
        self._left, self._lock = 0, threading.Lock()
        """The number of further rows that may be kept."""

    def _make_reader(self, rows_per_chunk: int, between: Callable[[], None]) -> RowReader:
        return FileReader(self.samples.rows, rows_per_chunk, between)

    def _summed(self, evaluate: Callable[[Chunk, Sums], None]) -> Sums:
        self._left, self._far, self.reader.kept = int(LARGE_SHIFT_SHARE * self.size), {}, None
        sums = super()._summed(evaluate)
        if self._left >= 0 and self._far:
            numbers, rows = zip(*(self._far[start] for start in sorted(self._far)), strict=True)
            self.reader.kept = KeptCopies(np.concatenate(numbers), stack_rows(list(rows)))
        self._far = {}
        return sums

    def _keep(self, chunk: Chunk, far: np.ndarray) -> None:
        if far.size == 0:
            return
        with self._lock:
            self._left -= far.size
            if self._left < 0:
                self._far = {}
                return
        copies = KeptCopies(chunk.place.start + far, take_rows(chunk.samples.rows, far))
        with self._lock:
            if self._left >= 0:
                self._far[chunk.place.start] = copies

    def _expect(self, slices: list[slice]) -> None:
        if self._batch is None:
            return  # rows in sequence: the read-ahead of the operating system is faster
        for at in slices:
            self._backend.fetch(at.start, at.stop)

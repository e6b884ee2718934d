"""Looks that read every row once in a step.

A step asks for margins first, for sums over the rows once its length is known, and for a Hessian when the run goes on.
In memory that costs little. Where rows come from a disk, or every question goes to a cluster, all of it is asked at
once, as if the step were taken whole, which it nearly always is (``_ahead.py``): a few thousand rows are read, and
their margins, slopes, sums and outer products are formed while they are near.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from skadmm import _cancel
from skadmm.backends.files import FileBlocks
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
from skadmm.oracle.local import LARGE_SHIFT, LARGE_SHIFT_SHARE, LocalOracle, move_margins

ENTRIES_PER_CHUNK = 1 << 20
"""Entries of the rows that are dealt with one after the other."""


class Chunk(NamedTuple):
    """Some rows, and views of all that is known of them."""

    place: slice
    samples: Samples
    at: slice
    """Which of those samples."""

    @property
    def numbers(self) -> np.ndarray:
        """The numbers of these, among those samples."""
        return np.arange(self.at.start, self.at.stop, self.at.step)

    def of(self, array: np.ndarray) -> np.ndarray:
        """Its part of an array over all samples."""
        return array[self.place]


class Sums:
    """What the rows of a step add up to; `few` of them at a time."""

    def __init__(self, d: int, few: int) -> None:
        self._few = few
        self.start = self.end = 0.0
        """Σ of the losses where the step begins, and where it ends."""
        self.rows, self.squares = np.zeros(d), np.zeros(d)
        self.outer: np.ndarray | None = None
        """Lower triangle of the sum of outer products; None where none were formed."""
        self._room: Any = None
        self.max_curvature, self.far = 0.0, 0
        """The largest curvature; how many margins moved far."""

    def add_outer(self, rows: Any, index: np.ndarray, scale: np.ndarray) -> None:
        """And scale_i a_i a_iᵀ for the rows in `index`."""
        if index.size == 0:
            return
        if self.outer is None:
            self.outer, self._room = np.zeros((self.rows.size, self.rows.size)), workspace_for(rows, self._few)
        add_outer(rows, index, scale, self.outer, self._room)

    def add(self, other: Sums) -> None:
        """And those of other rows."""
        self.start += other.start
        self.end += other.end
        self.rows += other.rows
        self.squares += other.squares
        if self.outer is None:
            self.outer = other.outer
        elif other.outer is not None:
            self.outer += other.outer
        self.max_curvature = max(self.max_curvature, other.max_curvature)
        self.far += other.far

    @property
    def H(self) -> Any:
        """The sum of outer products, both triangles."""
        if self.outer is None:
            return 0.0
        mirror(self.outer)
        return self.outer


class SinglePassOracle(LocalOracle):
    """Looks that can be asked for all of a step at once."""

    def batch_ahead(
        self, step: np.ndarray | None, new: bool
    ) -> tuple[float, float, Any, np.ndarray, np.ndarray, float]:
        """Σ of the losses at both ends of a step, and what ``join`` says after the whole of it."""
        x, self._from = self._from, None

        def evaluate(chunk: Chunk, sums: Sums) -> None:
            z, move = self._margins_of(chunk, x, step)
            used_curvatures, slope, curvatures, old = (
                chunk.of(array) for array in (self.used_curvatures, self.slope, self.curvatures, self._old)
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
        return sums.start, sums.end, sums.H, sums.rows, sums.squares, Max(sums.max_curvature)

    def batch_taken(self) -> None:
        """The whole step has been taken."""
        self._go(1.0)
        self._set(self.used_curvatures, self.curvatures)
        self._measure()

    def evaluate_ahead(
        self, step: np.ndarray | None, both: bool, stale: float | None
    ) -> tuple[float, float, np.ndarray, float, Any, int]:
        """Σ of the losses at both ends of a step or only at its end, and after the whole of it Σ slope a, the largest
        curvature, what ``renew`` says, and how many margins moved far."""
        x, self._from = self._from, None

        def evaluate(chunk: Chunk, sums: Sums) -> None:
            samples, index, at = chunk.samples, chunk.numbers, chunk.at
            used_curvatures, slope, curvatures = (
                chunk.of(array) for array in (self.used_curvatures, self.slope, self.curvatures)
            )
            if x is None and step is not None and not both:
                z, move = chunk.of(self.z), chunk.of(self._move)
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
            far = index[np.abs(z[at] + move[at] - chunk.of(self.moved)[at]) > LARGE_SHIFT]
            sums.far += far.size
            self._keep(chunk, far)

        sums = self._summed(evaluate)
        return sums.start, sums.end, sums.rows, Max(sums.max_curvature), sums.H, sums.far

    def evaluation_taken(self) -> None:
        """The whole step has been taken."""
        self._go(1.0)
        self._measure()

    def renewed(self, stale: float) -> None:
        """H has been brought up to date."""
        change = np.subtract(self.curvatures, self.used_curvatures, out=self._move)
        rows = np.abs(change, out=change) > stale
        self.used_curvatures[rows] = self.curvatures[rows]

    # -- pieces ----------------------------------------------------------------------------------------------------

    def _margins_of(self, chunk: Chunk, x: np.ndarray | None, step: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """Margins where the step begins, and by how much it moves them."""
        z, move = chunk.of(self.z), chunk.of(self._move)
        rows, index, at = chunk.samples.rows, chunk.numbers, chunk.at
        if step is None:
            move[at] = 0.0
        move_margins(rows, index, x, step, z, move)
        if x is not None and not self.known:
            chunk.of(self.moved)[at] = z[at]
        return z, move

    def _keep(self, chunk: Chunk, far: np.ndarray) -> None:
        """These rows moved far, and may be asked for again."""

    def _summed(self, evaluate: Callable[[Chunk, Sums], None]) -> Sums:
        """Look at all pieces, several at once; what they add up to does not depend on how many."""
        slices = self._slices()
        few = max((len(range(at.start, at.stop, at.step)) for at in slices), default=0)
        total = Sums(self.d, few)

        def part(numbers: np.ndarray) -> Sums:
            sums = Sums(self.d, few)
            for k in numbers:
                evaluate(self._chunk(slices[k]), sums)
            return sums

        with one_thread():
            for group in self._groups(slices, few):
                work = len(group) * (self._products(range(few)) + SCALAR_WORK * few)
                for sums in in_parts(part, group, work):
                    total.add(sums)
        return total

    def _groups(self, slices: list[slice], few: int) -> Iterator[range]:
        """The numbers of as many slices as may be read between two moments at which a run can be stopped."""
        rows_per_chunk = max(1, self._rows_per_chunk // (few * slices[0].step)) if slices else 1
        for first in range(0, len(slices), rows_per_chunk):
            last = first + rows_per_chunk
            self._expect(slices[0 if first == 0 else last : last + rows_per_chunk])
            yield range(len(slices))[first:last]

    def _slices(self) -> list[slice]:
        """Where pieces are: not too many rows in one, and as many pieces as parts of the work where there can be."""
        places = self._at
        few = ENTRIES_PER_CHUNK / max(self._per_row, 1.0)
        if len(places) == 1:
            rows = len(range(self.size)[places[0]])
            few = min(few, self._rows_per_chunk / (PARTS * places[0].step), -(-rows // PARTS))
        few = max(256, int(few))
        return [
            slice(start, min(start + few * at.step, at.stop), at.step)
            for at in places
            for start in range(at.start, at.stop, few * at.step)
        ]

    def _chunk(self, at: slice) -> Chunk:
        rows = self._samples.rows
        whole = is_dense(rows) and not rows.values.flags.c_contiguous
        place = slice(0, self.size) if whole else slice(at.start, at.stop)  # some rows of columns are another array
        samples = part_of(self._samples, place.start, place.stop)
        inside = slice(at.start - place.start, at.stop - place.start, at.step)
        return Chunk(place, samples, inside)

    def _expect(self, slices: list[slice]) -> None:
        """These will be read next."""


class FileOracle(SinglePassOracle):
    """Of rows in files: fetched before they are read, and copied where they are few and will be asked for again."""

    FIXED: tuple[str, ...] = (*LocalOracle.FIXED, "_room", "_copies")

    def __init__(self, samples: Samples, folder: FileBlocks, rows_per_chunk: int) -> None:
        super().__init__(samples, 0, rows_per_chunk)
        self._folder = folder
        self._far: dict[int, tuple[np.ndarray, Any]] = {}
        """The numbers of rows that moved far, and their copies, by where their piece begins."""
        self._room, self._lock = 0, threading.Lock()
        """For so many more of them."""
        self._copies: tuple[np.ndarray, Any] | None = None
        """All of them after the last look; None where they were many."""

    def _summed(self, evaluate: Callable[[Chunk, Sums], None]) -> Sums:
        self._room, self._far, self._copies = int(LARGE_SHIFT_SHARE * self.size), {}, None
        sums = super()._summed(evaluate)
        if self._room >= 0 and self._far:
            numbers, rows = zip(*(self._far[start] for start in sorted(self._far)), strict=True)
            self._copies = np.concatenate(numbers), stack_rows(list(rows))
        self._far = {}
        return sums

    def _keep(self, chunk: Chunk, far: np.ndarray) -> None:
        if far.size == 0:
            return
        with self._lock:
            self._room -= far.size
            if self._room < 0:
                self._far = {}
                return
        copies = chunk.place.start + far, take_rows(chunk.samples.rows, far)
        with self._lock:
            if self._room >= 0:
                self._far[chunk.place.start] = copies

    def _copied(self, index: np.ndarray) -> Any:
        if self._copies is not None and np.array_equal(self._copies[0], index):
            return self._copies[1]
        few, parts = self._few(index), []
        for start in range(0, index.size, few):
            _cancel.check_cancelled()
            parts.append(take_rows(self._samples.rows, index[start : start + few]))
        return stack_rows(parts) if parts else super()._copied(index)

    def _expect(self, slices: list[slice]) -> None:
        if self._batch is None:
            return  # one row after the other: what the system reads ahead by itself is quicker
        for at in slices:
            self._folder.fetch(at.start, at.stop)

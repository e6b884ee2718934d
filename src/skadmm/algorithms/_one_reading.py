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

from skadmm import _watch
from skadmm.algorithms._looks import HARD_MOVE, HARD_SHARE, Looks, move_margins
from skadmm.blocks.cuts import part_of, stack_rows, take_rows
from skadmm.blocks.files import FileBlocks
from skadmm.blocks.tasks import Largest
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
    room_for,
)
from skadmm.kernels.rows import DenseRows
from skadmm.kernels.samples import Samples
from skadmm.kernels.threads import one_thread

PIECE = 1 << 20
"""Entries of the rows that are dealt with one after the other."""


class Piece(NamedTuple):
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
        self.steepest, self.far = 0.0, 0
        """The largest curvature; how many margins moved far."""

    def add_outer(self, rows: Any, index: np.ndarray, scale: np.ndarray) -> None:
        """And scale_i a_i a_iᵀ for the rows in `index`."""
        if index.size == 0:
            return
        if self.outer is None:
            self.outer, self._room = np.zeros((self.rows.size, self.rows.size)), room_for(rows, self._few)
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
        self.steepest = max(self.steepest, other.steepest)
        self.far += other.far

    @property
    def H(self) -> Any:
        """The sum of outer products, both triangles."""
        if self.outer is None:
            return 0.0
        mirror(self.outer)
        return self.outer


class EagerLooks(Looks):
    """Looks that can be asked for all of a step at once."""

    def stage_ahead(
        self, step: np.ndarray | None, new: bool
    ) -> tuple[float, float, Any, np.ndarray, np.ndarray, float]:
        """Σ of the losses at both ends of a step, and what ``join`` says after the whole of it."""
        x, self._from = self._from, None

        def look(piece: Piece, sums: Sums) -> None:
            z, move = self._margins_of(piece, x, step)
            held, slope, bend, old = (piece.of(array) for array in (self.held, self.slope, self.bend, self._old))
            samples, index, at = piece.samples, piece.numbers, piece.at
            sums.start += loss_along(samples, index, z, move, 0.0)
            sums.end += expand_along(samples, index, z, move, 1.0, slope, bend)
            scale = np.empty(z.size)
            scale[at] = bend[at] * (z[at] + move[at]) - slope[at] - old[at]
            add_rows(samples.rows, index, scale, sums.rows)
            if new:
                add_squares(samples.rows, index, sums.squares)
            scale[at] = bend[at] - held[at]
            sums.add_outer(samples.rows, index, scale)
            sums.steepest = max(sums.steepest, float(bend[at].max(initial=0.0)))

        sums = self._summed(look)
        return sums.start, sums.end, sums.H, sums.rows, sums.squares, Largest(sums.steepest)

    def stage_taken(self) -> None:
        """The whole step has been taken."""
        self._go(1.0)
        self._set(self.held, self.bend)
        self._measure()

    def look_ahead(
        self, step: np.ndarray | None, both: bool, stale: float | None
    ) -> tuple[float, float, np.ndarray, float, Any, int]:
        """Σ of the losses at both ends of a step or only at its end, and after the whole of it Σ slope a, the largest
        curvature, what ``renew`` says, and how many margins moved far."""
        x, self._from = self._from, None

        def look(piece: Piece, sums: Sums) -> None:
            samples, index, at = piece.samples, piece.numbers, piece.at
            held, slope, bend = (piece.of(array) for array in (self.held, self.slope, self.bend))
            if x is None and step is not None and not both:
                z, move = piece.of(self.z), piece.of(self._move)
                sums.end += expand_and_add(samples, index, step, z, move, slope, bend, sums.rows)
            else:
                z, move = self._margins_of(piece, x, step)
                if both:
                    sums.start += loss_along(samples, index, z, move, 0.0)
                sums.end += expand_along(samples, index, z, move, 1.0, slope, bend)
                add_rows(samples.rows, index, slope, sums.rows)
            if stale is not None:
                change = np.empty(z.size)
                change[at] = bend[at] - held[at]
                sums.add_outer(samples.rows, index[np.abs(change[at]) > stale], change)
            sums.steepest = max(sums.steepest, float(bend[at].max(initial=0.0)))
            far = index[np.abs(z[at] + move[at] - piece.of(self.moved)[at]) > HARD_MOVE]
            sums.far += far.size
            self._keep(piece, far)

        sums = self._summed(look)
        return sums.start, sums.end, sums.rows, Largest(sums.steepest), sums.H, sums.far

    def look_taken(self) -> None:
        """The whole step has been taken."""
        self._go(1.0)
        self._measure()

    def renewed(self, stale: float) -> None:
        """H has been brought up to date."""
        change = np.subtract(self.bend, self.held, out=self._move)
        rows = np.abs(change, out=change) > stale
        self.held[rows] = self.bend[rows]

    # -- pieces ----------------------------------------------------------------------------------------------------

    def _margins_of(self, piece: Piece, x: np.ndarray | None, step: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """Margins where the step begins, and by how much it moves them."""
        z, move = piece.of(self.z), piece.of(self._move)
        rows, index, at = piece.samples.rows, piece.numbers, piece.at
        if step is None:
            move[at] = 0.0
        move_margins(rows, index, x, step, z, move)
        if x is not None and not self.known:
            piece.of(self.moved)[at] = z[at]
        return z, move

    def _keep(self, piece: Piece, far: np.ndarray) -> None:
        """These rows moved far, and may be asked for again."""

    def _summed(self, look: Callable[[Piece, Sums], None]) -> Sums:
        """Look at all pieces, several at once; what they add up to does not depend on how many."""
        slices = self._slices()
        few = max((len(range(at.start, at.stop, at.step)) for at in slices), default=0)
        total = Sums(self.d, few)

        def part(numbers: np.ndarray) -> Sums:
            sums = Sums(self.d, few)
            for k in numbers:
                look(self._piece(slices[k]), sums)
            return sums

        with one_thread():
            for group in self._groups(slices, few):
                work = len(group) * (self._products(range(few)) + SCALAR_WORK * few)
                for sums in in_parts(part, group, work):
                    total.add(sums)
        return total

    def _groups(self, slices: list[slice], few: int) -> Iterator[range]:
        """The numbers of as many slices as may be read between two moments at which a run can be stopped."""
        at_once = max(1, self._at_once // (few * slices[0].step)) if slices else 1
        for first in range(0, len(slices), at_once):
            last = first + at_once
            self._expect(slices[0 if first == 0 else last : last + at_once])
            yield range(len(slices))[first:last]

    def _slices(self) -> list[slice]:
        """Where pieces are: not too many rows in one, and as many pieces as parts of the work where there can be."""
        places = self._at
        few = PIECE / max(self._per_row, 1.0)
        if len(places) == 1:
            rows = len(range(self.size)[places[0]])
            few = min(few, self._at_once / (PARTS * places[0].step), -(-rows // PARTS))
        few = max(256, int(few))
        return [
            slice(start, min(start + few * at.step, at.stop), at.step)
            for at in places
            for start in range(at.start, at.stop, few * at.step)
        ]

    def _piece(self, at: slice) -> Piece:
        rows = self._samples.rows
        whole = isinstance(rows, DenseRows) and not rows.values.flags.c_contiguous
        place = slice(0, self.size) if whole else slice(at.start, at.stop)  # some rows of columns are another array
        samples = part_of(self._samples, place.start, place.stop)
        inside = slice(at.start - place.start, at.stop - place.start, at.step)
        return Piece(place, samples, inside)

    def _expect(self, slices: list[slice]) -> None:
        """These will be read next."""


class FileLooks(EagerLooks):
    """Of rows in files: fetched before they are read, and copied where they are few and will be asked for again."""

    FIXED: tuple[str, ...] = (*Looks.FIXED, "_room", "_copies")

    def __init__(self, samples: Samples, folder: FileBlocks, at_once: int) -> None:
        super().__init__(samples, 0, at_once)
        self._folder = folder
        self._far: dict[int, tuple[np.ndarray, Any]] = {}
        """The numbers of rows that moved far, and their copies, by where their piece begins."""
        self._room, self._lock = 0, threading.Lock()
        """For so many more of them."""
        self._copies: tuple[np.ndarray, Any] | None = None
        """All of them after the last look; None where they were many."""

    def _summed(self, look: Callable[[Piece, Sums], None]) -> Sums:
        self._room, self._far, self._copies = int(HARD_SHARE * self.size), {}, None
        sums = super()._summed(look)
        if self._room >= 0 and self._far:
            numbers, rows = zip(*(self._far[start] for start in sorted(self._far)), strict=True)
            self._copies = np.concatenate(numbers), stack_rows(list(rows))
        self._far = {}
        return sums

    def _keep(self, piece: Piece, far: np.ndarray) -> None:
        if far.size == 0:
            return
        with self._lock:
            self._room -= far.size
            if self._room < 0:
                self._far = {}
                return
        copies = piece.place.start + far, take_rows(piece.samples.rows, far)
        with self._lock:
            if self._room >= 0:
                self._far[piece.place.start] = copies

    def _copied(self, index: np.ndarray) -> Any:
        if self._copies is not None and np.array_equal(self._copies[0], index):
            return self._copies[1]
        few, parts = self._few(index), []
        for start in range(0, index.size, few):
            _watch.pulse()
            parts.append(take_rows(self._samples.rows, index[start : start + few]))
        return stack_rows(parts) if parts else super()._copied(index)

    def _expect(self, slices: list[slice]) -> None:
        if self._stage is None:
            return  # one row after the other: what the system reads ahead by itself is quicker
        for at in slices:
            self._folder.fetch(at.start, at.stop)

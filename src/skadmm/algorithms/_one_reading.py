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

from skadmm.algorithms._looks import HARD_MOVE, HARD_SHARE, Looks
from skadmm.blocks.tasks import Largest
from skadmm.blocks.worker import part_of
from skadmm.kernels.expansion import (
    SCALAR_WORK,
    add_outer,
    add_rows,
    add_squares,
    expand_along,
    expand_and_add,
    in_parts,
    loss_along,
    margins,
    margins_of_two,
    mirror,
    room_for,
)
from skadmm.kernels.rows import DenseRows
from skadmm.kernels.samples import Samples
from skadmm.kernels.threads import one_thread
from skadmm.problem import Problem, stack_rows, take_rows

PIECE = 1 << 20
"""Entries of the rows that are dealt with one after the other."""


class Piece(NamedTuple):
    """Some rows, and views of all that is known of them."""

    place: slice
    samples: Samples
    numbers: np.ndarray
    """Which of those samples."""
    at: slice
    """The same."""

    def of(self, array: np.ndarray) -> np.ndarray:
        """Its part of an array over all samples."""
        return array[self.place]


class Sums:
    """What the rows of a step add up to."""

    def __init__(self, d: int) -> None:
        self.start = self.end = 0.0
        """Σ of the losses where the step begins, and where it ends."""
        self.rows, self.squares, self.outer = np.zeros(d), np.zeros(d), np.zeros((d, d))
        self.steepest, self.far = 0.0, 0
        """The largest curvature; how many margins moved far."""
        self.copies: list[tuple[np.ndarray, Any]] = []
        """Their numbers and rows, a piece at a time, where they are kept."""

    def add(self, other: Sums) -> None:
        """And those of other rows."""
        self.start += other.start
        self.end += other.end
        for name in ("rows", "squares", "outer"):
            total = getattr(self, name)
            total += getattr(other, name)
        self.steepest = max(self.steepest, other.steepest)
        self.far += other.far
        self.copies += other.copies


class EagerLooks(Looks):
    """Looks that can be asked for all of a step at once."""

    def stage_ahead(
        self, step: np.ndarray | None, new: bool
    ) -> tuple[float, float, np.ndarray, np.ndarray, np.ndarray, float]:
        """Σ of the losses at both ends of a step, and what ``join`` says after the whole of it."""
        x, self._from = self._from, None

        def look(piece: Piece, sums: Sums, room: Any) -> None:
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
            add_outer(samples.rows, index, scale, sums.outer, room)
            sums.steepest = max(sums.steepest, float(bend[at].max(initial=0.0)))

        sums = self._summed(look)
        return sums.start, sums.end, sums.outer, sums.rows, sums.squares, Largest(sums.steepest)

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

        def look(piece: Piece, sums: Sums, room: Any) -> None:
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
                add_outer(samples.rows, index[np.abs(change[at]) > stale], change, sums.outer, room)
            sums.steepest = max(sums.steepest, float(bend[at].max(initial=0.0)))
            far = index[np.abs(z[at] + move[at] - piece.of(self.moved)[at]) > HARD_MOVE]
            sums.far += far.size
            self._keep(piece, far, sums)

        sums = self._summed(look)
        H = 0.0 if stale is None else sums.outer
        return sums.start, sums.end, sums.rows, Largest(sums.steepest), H, sums.far

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
        if step is not None and x is not None:
            margins_of_two(rows, index, x, step, z, move)
        elif step is not None:
            margins(rows, index, step, move)
        elif x is not None:
            margins(rows, index, x, z)
        if x is not None and not self.known:
            piece.of(self.moved)[at] = z[at]
        return z, move

    def _keep(self, piece: Piece, far: np.ndarray, sums: Sums) -> None:
        """These rows moved far, and may be asked for again."""

    def _summed(self, look: Callable[[Piece, Sums, Any], None]) -> Sums:
        """Look at all pieces, several at once; what they add up to does not depend on how many."""
        slices, total = self._slices(), Sums(self.d)
        few = max((len(range(at.start, at.stop, at.step)) for at in slices), default=0)

        def part(numbers: np.ndarray) -> Sums:
            sums, room = Sums(self.d), room_for(self._samples.rows, few)
            for k in numbers:
                look(self._piece(slices[k]), sums, room)
            return sums

        with one_thread():
            for group in self._groups(slices, few):
                work = len(group) * (self._products(range(few)) + SCALAR_WORK * few)
                for sums in in_parts(part, group, work):
                    total.add(sums)
        mirror(total.outer)
        return total

    def _groups(self, slices: list[slice], few: int) -> Iterator[range]:
        """The numbers of as many slices as may be read between two moments at which a run can be stopped."""
        at_once = max(1, self._at_once // (few * slices[0].step)) if slices else 1
        for first in range(0, len(slices), at_once):
            last = first + at_once
            self._expect(slices[0 if first == 0 else last : last + at_once])
            yield range(len(slices))[first:last]

    def _slices(self) -> list[slice]:
        """Where pieces are."""
        few = max(256, int(PIECE / max(self._per_row, 1.0)))
        return [
            slice(start, min(start + few * at.step, at.stop), at.step)
            for at in self._at
            for start in range(at.start, at.stop, few * at.step)
        ]

    def _piece(self, at: slice) -> Piece:
        rows = self._samples.rows
        whole = isinstance(rows, DenseRows) and not rows.values.flags.c_contiguous
        place = slice(0, self.size) if whole else slice(at.start, at.stop)  # some rows of columns are another array
        samples = part_of(self._samples, place.start, place.stop)
        inside = slice(at.start - place.start, at.stop - place.start, at.step)
        return Piece(place, samples, np.arange(inside.start, inside.stop, inside.step), inside)

    def _expect(self, slices: list[slice]) -> None:
        """These will be read next."""


class FileLooks(EagerLooks):
    """Of rows in files: fetched before they are read, and copied where they are few and will be asked for again."""

    FIXED: tuple[str, ...] = (*Looks.FIXED, "_room")

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.samples(), problem.n_samples, 0, problem.rows_at_once)
        self._folder = problem.folder
        self._room, self._lock = 0, threading.Lock()
        """For so many more rows that moved far."""
        self._copies: tuple[np.ndarray, Any] | None = None
        """Of rows that moved far in the last look, with their numbers; None where they were many."""

    def _summed(self, look: Callable[[Piece, Sums, Any], None]) -> Sums:
        self._room, self._copies = int(HARD_SHARE * self.size), None
        sums = super()._summed(look)
        if self._room >= 0 and sums.copies:
            self._copies = (
                np.concatenate([one for one, _ in sums.copies]),
                stack_rows([rows for _, rows in sums.copies]),
            )
        return sums

    def _keep(self, piece: Piece, far: np.ndarray, sums: Sums) -> None:
        with self._lock:
            self._room -= far.size
        if self._room < 0:
            sums.copies.clear()
        elif far.size > 0:
            sums.copies.append((piece.place.start + far, take_rows(piece.samples.rows, far)))

    def _copied(self, index: np.ndarray) -> Any:
        if self._copies is not None and np.array_equal(self._copies[0], index):
            return self._copies[1]
        return super()._copied(index)

    def _expect(self, slices: list[slice]) -> None:
        if self._folder is not None:
            for at in slices:
                self._folder.fetch(at.start, at.stop)

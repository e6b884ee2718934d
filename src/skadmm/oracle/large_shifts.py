"""Steps on the few samples whose margins the last step shifted most.

A sample with a rare feature moves along the tail of its loss by only one unit of margin per step. There are few such
samples, so they are copied and take several steps of their own, while all others keep their second-order expansions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from skadmm.backends.tasks import Max
from skadmm.kernels.expansion import all_margins, expand, loss_along, sum_outer, sum_rows
from skadmm.kernels.samples import Samples
from skadmm.oracle.base import (
    CURVED,
    LARGE_SHIFT,
    LARGE_SHIFT_SHARE,
    MOST_SHIFTED,
    LargeShifts,
    ModelSums,
    ShiftAlong,
    ShiftSums,
)


def large_shift_samples(shift: np.ndarray) -> np.ndarray:
    """The rows whose margins shifted most: by more than LARGE_SHIFT, and at most LARGE_SHIFT_SHARE of all."""
    limit = int(LARGE_SHIFT_SHARE * shift.size)
    threshold = LARGE_SHIFT
    if np.count_nonzero(shift > LARGE_SHIFT) > limit:
        threshold = float(np.partition(shift, shift.size - limit - 1)[shift.size - limit - 1])
    return np.flatnonzero(shift > threshold)


class ShiftedSamples(NamedTuple):
    """Copies of the large-shift samples."""

    numbers: np.ndarray
    """The numbers of the samples among all."""
    every: np.ndarray
    """The numbers of the copies, 0, 1, 2 and so on."""
    samples: Samples
    move: np.ndarray
    """By how much the step moves each margin."""
    z: np.ndarray
    slope: np.ndarray
    curvatures: np.ndarray


class Scalars(Protocol):
    """What the oracle keeps for each sample; see ``local.py``."""

    z: np.ndarray
    slope: np.ndarray
    curvatures: np.ndarray
    used_curvatures: np.ndarray
    shift: np.ndarray


class Copies(Protocol):
    """Where the oracle keeps the copies, and drops them when margins move."""

    shifted: ShiftedSamples | None

    def drop(self) -> None:
        """Drop the copies."""


class Reader(Protocol):
    """How the oracle reads rows; see ``local.py``."""

    def copied(self, index: np.ndarray) -> Any:
        """Copies of some rows."""

    def chunk_size(self, index: np.ndarray) -> int:
        """The number of these rows to read at once."""

    def entries(self, index: np.ndarray) -> float:
        """About how many stored entries these rows have."""

    def products(self, index: np.ndarray) -> float:
        """The approximate cost of their outer products, in entries read."""


class LocalLargeShifts:
    """The large-shift samples of one oracle."""

    def __init__(self, samples: Samples, reader: Reader, scalars: Scalars, temporary: Copies) -> None:
        self._samples, self._reader, self._scalars, self._temporary = samples, reader, scalars, temporary

    def count(self, edges: np.ndarray) -> np.ndarray:
        """How many margins shifted by more than each of `edges`, all of which are at least LARGE_SHIFT."""
        shift = self._scalars.shift
        ordered = np.sort(shift[shift > LARGE_SHIFT])
        return ordered.size - np.searchsorted(ordered, edges, side="right")

    def largest(self) -> float:
        """The largest shift."""
        return Max(self._scalars.shift.max())

    def threshold(self) -> float:
        """The shift above which a sample is a large-shift sample; ∞ where there are none."""
        shift = self._scalars.shift
        rows = large_shift_samples(shift)
        return float(np.nextafter(shift[rows].min(), -np.inf)) if rows.size else np.inf

    def curved(self, limit: float) -> float:
        """The curvature above which the samples with large shifts are few; 0 where there is no such curvature."""
        many = self.count(np.array([LARGE_SHIFT]))[0] > MOST_SHIFTED * self._scalars.shift.size
        level = CURVED * self.max_curvature()
        return level if many and level > 0.0 and 0 < self.count_curved(level) <= limit else 0.0

    def max_curvature(self) -> float:
        """The largest curvature."""
        return Max(self._scalars.curvatures.max(initial=0.0))

    def count_curved(self, level: float) -> int:
        """The number of samples with a curvature above `level` that shifted by more than LARGE_SHIFT."""
        return int(np.count_nonzero((self._scalars.curvatures > level) & (self._scalars.shift > LARGE_SHIFT)))

    def begin(self, threshold: float, count: int | None = None, curvature: float = -1.0) -> int:
        """Copy samples that shifted by more than `threshold` and have more than `curvature`; return their number."""
        self._temporary.drop()
        whole, scalars = self._samples, self._scalars
        index = np.flatnonzero((scalars.shift > threshold) & (scalars.curvatures > curvature))
        weight = whole.weight[index] if whole.weight.size else whole.weight
        self._temporary.shifted = ShiftedSamples(
            numbers=index,
            every=np.arange(index.size),
            samples=whole._replace(rows=self._reader.copied(index), target=whole.target[index], weight=weight),
            move=np.empty(index.size),
            z=scalars.z[index],
            slope=scalars.slope[index],
            curvatures=scalars.curvatures[index],
        )
        return int(index.size)

    @property
    def copies(self) -> ShiftedSamples:
        """The copied samples, which exist between ``begin`` and ``end``."""
        if self._temporary.shifted is None:
            raise ValueError("there are no copies of large-shift samples: call begin() first")
        return self._temporary.shifted

    def along(self, step: np.ndarray) -> ShiftAlong:
        """Sums of the losses of the copied samples along a step."""
        copies, reader = self.copies, self._reader
        rows, every, move = copies.samples.rows, copies.every, copies.move
        all_margins(rows, every, step, move, reader.entries(every), reader.chunk_size(every))
        used = self._scalars.used_curvatures[copies.numbers]
        return ShiftAlong(
            slope=float(copies.slope @ move),
            curvature=float(used @ move**2),
            start=self.losses(0.0),
            end=self.losses(1.0),
            longest=Max(np.abs(move).max(initial=0.0)),
        )

    def losses(self, t: float) -> float:
        """Σ of the losses of the copied samples at t times the step."""
        copies = self.copies
        return float(loss_along(copies.samples, copies.every, copies.z, copies.move, t))

    def move(self, length: float) -> ShiftSums:
        """Take `length` times the step, and return the changes of the sums of the model."""
        index, every, samples, move, z, slope, curvatures = self.copies
        used = self._scalars.used_curvatures[index]
        old = used * z - slope
        z += length * move
        expand(samples, every, z, slope, curvatures)
        entries, size = self._reader.entries(every), self._reader.chunk_size(every)
        q = sum_rows(samples.rows, every, curvatures * z - slope - old, entries, size)
        H = sum_outer(samples.rows, every, curvatures - used, self._reader.products(every), size)
        self._scalars.used_curvatures[index] = curvatures
        return ShiftSums(H, q)

    def end(self) -> None:
        """Drop the copies."""
        self._temporary.shifted = None


# -- steps of a solver -------------------------------------------------------------------------------------------


class Copied(NamedTuple):
    """The samples that were copied for steps of their own."""

    number: int
    curved: bool
    """True where most samples have large shifts, and these are those of them with curvature."""


def copy_large_shifts(shifts: LargeShifts, limit: float) -> Copied | None:
    """Copy the samples whose margins moved most; where most moved far, those of them with curvature, at most `limit`.

    Returns None where no sample moved far, and nothing was begun.
    """
    curvature = shifts.curved(limit)
    if curvature > 0.0:
        return Copied(shifts.begin(LARGE_SHIFT, curvature=curvature), curved=True)
    threshold = shifts.threshold()
    return None if threshold == np.inf else Copied(shifts.begin(threshold), curved=False)


class LargeShiftMerit:
    """Along a step from x: the whole model, with the true losses of the copied samples for their quadratics."""

    def __init__(
        self,
        shifts: LargeShifts,
        sums: ModelSums,
        x: np.ndarray,
        step: np.ndarray,
        penalty: Callable[[np.ndarray], float],
    ) -> None:
        slope, curvature = float(step @ (sums.H @ x - sums.q)), float(step @ (sums.H @ step))
        along = shifts.along(step)
        self.longest = float(along.longest)
        """The largest move of a margin."""
        self._slope, self._curvature = slope - along.slope, curvature - along.curvature
        """Those of the model of the other samples."""
        self._start, self._known = along.start, {0.0: along.start, 1.0: along.end}
        self._shifts, self._seen, self._penalty, self._x, self._step = shifts, sums.seen, penalty, x, step

    def __call__(self, t: float) -> float:
        """The merit at length t, less that of the losses at 0."""
        others = self._slope * t + 0.5 * self._curvature * t * t
        true = (self._known[t] if t in self._known else self._shifts.losses(t)) - self._start
        return (others + true) / self._seen + self._penalty(self._x + t * self._step)

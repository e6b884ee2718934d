"""What second-order steps ask of the samples: margins, expansions, and sums of rows and of their outer products.

:class:`Looks` keeps the scalars of each sample (margin, slope, curvature) next to its rows. On a cluster every block
has one of its own on its worker, and ``RemoteLooks`` asks all of them and adds up; the engine sees no difference.
"""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any

import numpy as np

from skadmm import _cancel
from skadmm.backends.slicing import take_rows
from skadmm.backends.tasks import Max
from skadmm.io import state as _state
from skadmm.kernels.expansion import (
    SCALAR_WORK,
    add_squares,
    expand,
    expand_along,
    in_parts,
    loss_along,
    margins,
    margins_of_two,
    sum_expansions,
    sum_outer,
    sum_rows,
)
from skadmm.kernels.rows import CSRRows, DenseRows
from skadmm.kernels.samples import Samples, mean_conjugate
from skadmm.oracle.batches import GrowingBatch, rows_of

Index = np.ndarray | range
"""Numbers of rows."""
LARGE_SHIFT, LARGE_SHIFT_SHARE = 0.5, 0.02
"""A margin that moved by more than this is hard; at most this share of the samples."""
DENSE_PRODUCT = 0.1
"""What a product of two entries of a dense row costs next to reading one."""
EDGES = 256
"""Of a threshold sought among values on several workers, in one round."""


def large_shift_samples(moved: np.ndarray) -> np.ndarray:
    """The rows whose margins moved most: more than HARD_MOVE, and at most a share of all."""
    most = int(LARGE_SHIFT_SHARE * moved.size)
    threshold = LARGE_SHIFT
    if np.count_nonzero(moved > LARGE_SHIFT) > most:
        threshold = float(np.partition(moved, moved.size - most - 1)[moved.size - most - 1])
    return np.flatnonzero(moved > threshold)


def move_margins(
    rows: Any, index: np.ndarray, x: np.ndarray | None, step: np.ndarray | None, z: np.ndarray, move: np.ndarray
) -> None:
    """Margins z of some rows at `x`, if that is given, and by how much a step moves them, if there is one."""
    if step is not None and x is not None:
        margins_of_two(rows, index, x, step, z, move)
    elif step is not None:
        margins(rows, index, step, move)
    elif x is not None:
        margins(rows, index, x, z)


class LocalOracle:
    """The samples of one home; `first` is the number of its first sample among all."""

    here = True
    """Are the scalars in this process?"""
    FIXED: tuple[str, ...] = ("size", "d", "first", "_rows_per_chunk", "_per_row", "_batch")
    """What the samples say, and no checkpoint; and what is of no use between two steps."""

    def __init__(self, samples: Samples, first: int = 0, rows_per_chunk: int = 1 << 20) -> None:
        self._samples, self._rows_per_chunk = samples, rows_per_chunk
        self.first = first
        self.size, self.d = samples.rows.shape
        stored = samples.rows.data.size if isinstance(samples.rows, CSRRows) else samples.rows.values.size
        self._per_row = stored / self.size
        self.z, self.slope, self.curvatures = np.zeros(self.size), np.zeros(self.size), np.zeros(self.size)
        """Margin, slope and curvature of each sample where it was last looked at."""
        self.used_curvatures = np.zeros(self.size)
        """The curvature of each sample that is part of H."""
        self.moved = np.zeros(self.size)
        """How far each margin went between its last two looks; while it looks, where it was before."""
        self.known = False
        """Has a look been completed, so that a margin can be said to have moved?"""
        self._move = np.zeros(self.size)
        self._from: np.ndarray | None = None
        """Where the margins are to be taken at first, when the look goes on."""
        self._old = np.empty(0)
        """In a stage, what its samples had added to Σ (h z − slope) a."""
        self._batch: GrowingBatch | None = None
        self._subset: dict[str, Any] = {}
        self._columns = np.empty((self.size, 0))
        """Of the features that no penalty reaches, once they are asked for."""

    @property
    def _at(self) -> list[slice]:
        """The rows looked at now. What is done to them is done in place: new arrays would cost more than the sums where
        freed memory goes back to the system at once, as it does on Dask's workers."""
        return [slice(0, self.size, 1)] if self._batch is None else self._batch.slices(self.first, self.size)

    @property
    def _index(self) -> Index:
        """Their numbers."""
        at = self._at
        return range(self.size)[at[0]] if len(at) == 1 else rows_of(at)

    def state(self) -> dict[str, Any]:
        """All that it knows."""
        return _state.capture(self)

    def resume(self, state: dict[str, Any]) -> bool:
        """Know it again; yes, it does."""
        _state.restore(self, state)
        return True

    # -- a look ------------------------------------------------------------------------------------------------

    def tell(self, name: str, *arguments: Any) -> None:
        """Ask what has no answer."""
        getattr(self, name)(*arguments)

    def begin(
        self, batch: GrowingBatch | None, x: np.ndarray | None, new: bool = False, stale: float | None = None
    ) -> None:
        """Turn to the samples of a stage, or to all; their margins at `x`, or where they were. What ``join`` and
        ``renew`` will be asked (`new`, `stale`) is for those that see ahead."""
        self.large_shift_end()
        self._batch = batch
        if batch is None:
            self._old = np.empty(0)
        elif self._old.size != self.size:
            self._old = np.empty(self.size)
        for at in self._at:
            self.moved[at] = self.z[at]
            if batch is not None:
                old = np.multiply(self.used_curvatures[at], self.z[at], out=self._old[at])
                old -= self.slope[at]
        self._from = x

    def along(self, step: np.ndarray | None, t: float) -> float:
        """Σ of the losses at the margins moved by t times those of `step`; slopes and curvatures there."""
        index, x, self._from = self._index, self._from, None
        if step is None:
            self._set(self._move, 0.0)
        if step is not None or x is not None:
            rows = self._samples.rows
            self._read(lambda part: move_margins(rows, part, x, step, self.z, self._move), index)
        if x is not None and not self.known:
            self._set(self.moved, self.z)
        return self.losses(t)

    def ends(self, step: np.ndarray) -> tuple[float, float]:
        """The same at t = 0 and at t = 1, in one question; slopes and curvatures are those at 1."""
        return self.along(step, 0.0), self.losses(1.0)

    def losses(self, t: float) -> float:
        """The same at another t."""

        def part(some: np.ndarray) -> float:
            return float(expand_along(self._samples, some, self.z, self._move, t, self.slope, self.curvatures))

        index = self._index
        return float(sum(in_parts(part, index, SCALAR_WORK * len(index))))

    def join(self, length: float, new: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
        """Move the margins by `length`; the changes of Σ h a aᵀ and Σ (h z − slope) a, Σ a² of new samples, and the
        largest curvature."""
        self._go(length)
        change = self._move  # of no use any more
        for at in self._at:
            added = np.multiply(self.curvatures[at], self.z[at], out=change[at])
            added -= self.slope[at]
            np.subtract(added, self._old[at], out=self._old[at])
            np.subtract(self.curvatures[at], self.used_curvatures[at], out=change[at])
        index = self._index
        work, few = self._products(index), self._few(index)
        sums = sum_expansions(self._samples.rows, index, change, self._old, new, work, few)
        self._set(self.used_curvatures, self.curvatures)
        self._measure()
        return *sums, self._max_curvature()

    def settle(self, length: float) -> tuple[np.ndarray, float]:
        """Move the margins by `length`; Σ slope a, and the largest curvature."""
        self._go(length)
        self._measure()
        return self._rows(self._index, self.slope), self._max_curvature()

    def renew(self, stale: float, afresh: bool) -> tuple[Any, Any]:
        """The change of Σ h a aᵀ over samples whose curvature changed by more than `stale`; afresh, also Σ a²."""
        squares: Any = 0.0
        if afresh:
            self.used_curvatures[:] = 0.0
            squares = self._squares()
        change = np.subtract(self.curvatures, self.used_curvatures, out=self._move)
        rows = np.flatnonzero((change > stale) | (change < -stale))
        if rows.size == 0:
            return 0.0, squares
        H = self._outer(rows, change)
        self.used_curvatures[rows] = self.curvatures[rows]
        return H, squares

    # -- hard rows -----------------------------------------------------------------------------------------------

    def large_shift_count(self, edges: np.ndarray) -> np.ndarray:
        """How many margins moved by more than each of `edges`, and by how much at most."""
        ordered = np.sort(self.moved[self.moved > LARGE_SHIFT])
        return ordered.size - np.searchsorted(ordered, edges, side="right")

    def largest_shift(self) -> float:
        """The longest move."""
        return Max(self.moved.max())

    def large_shift_threshold(self) -> float:
        """What the margins of hard rows moved by more than."""
        rows = large_shift_samples(self.moved)
        return float(np.nextafter(self.moved[rows].min(), -np.inf)) if rows.size else np.inf

    def large_shift_begin(self, threshold: float) -> int:
        """Turn to copies of the samples whose margins moved by more, until ``hard_end``; how many there are."""
        index = np.flatnonzero(self.moved > threshold)
        rows, weight = self._copied(index), self._samples.weight
        some = self._samples._replace(
            rows=rows, target=self._samples.target[index], weight=weight[index] if weight.size else weight
        )
        self._subset = {"index": index, "samples": some, "all": np.arange(index.size), "move": np.empty(index.size)}
        self._subset |= {"z": self.z[index], "slope": self.slope[index], "curvatures": self.curvatures[index]}
        return int(index.size)

    def _copied(self, index: np.ndarray) -> Any:
        """Copies of some rows; two at least, for of one nobody can tell whether it is stored by columns."""
        return take_rows(self._samples.rows, index if index.size > 1 else np.append(index, [0, 0]))

    def large_shift_along(self, step: np.ndarray) -> tuple[float, float, float, float, float]:
        """Along a step: Σ slope·move, Σ h move², Σ of the losses at its start and at its end, and the longest move."""
        hard, move = self._subset, self._subset["move"]
        rows, every = hard["samples"].rows, hard["all"]
        self._read(lambda part: margins(rows, part, step, move), every)
        tilt, curvatures = hard["slope"] @ move, self.used_curvatures[hard["index"]] @ move**2
        reach = Max(np.abs(move).max(initial=0.0))
        return float(tilt), float(curvatures), self.large_shift_losses(0.0), self.large_shift_losses(1.0), reach

    def large_shift_losses(self, t: float) -> float:
        """Σ of the losses at t times the step."""
        hard = self._subset
        return float(loss_along(hard["samples"], hard["all"], hard["z"], hard["move"], t))

    def large_shift_move(self, length: float) -> tuple[np.ndarray, np.ndarray]:
        """Take the step; the changes of Σ h a aᵀ and Σ (h z − slope) a."""
        hard, used_curvatures = self._subset, self.used_curvatures[self._subset["index"]]
        samples, every, z, slope, curvatures = (hard[name] for name in ("samples", "all", "z", "slope", "curvatures"))
        old = used_curvatures * z - slope
        z += length * hard["move"]
        expand(samples, every, z, slope, curvatures)
        entries, few = self._entries(every), self._few(every)
        q = sum_rows(samples.rows, every, curvatures * z - slope - old, entries, few)
        H = sum_outer(samples.rows, every, curvatures - used_curvatures, self._products(every), few)
        self.used_curvatures[hard["index"]] = curvatures
        return H, q

    def large_shift_end(self) -> None:
        """Back to all samples, where their last common look left them; H keeps what it has learnt."""
        if "index" in self._subset:
            self._subset = {}

    # -- the certificate -----------------------------------------------------------------------------------------

    def conjugate(self, scale: float) -> float:
        """Σ w ℓ*(scale θ / w) of the slopes θ of the last look."""
        return self.size * float(mean_conjugate(self._samples, np.multiply(self.theta, scale, out=self._move)))

    @property
    def theta(self) -> np.ndarray:
        """The slopes that certify."""
        self.large_shift_end()  # an interrupt may have come before it
        return self._subset.get("theta", self.slope)

    def free_begin(self, free: np.ndarray) -> np.ndarray:
        """Turn to the columns of some features: Σ |a_j| |θ|."""
        if self._columns.shape[1] != free.size:
            self._columns = np.empty((self.size, free.size))
            for k, feature in enumerate(free):
                unit = np.zeros(self.d)
                unit[feature] = 1.0
                self._margins(range(self.size), unit, self._columns[:, k])
        columns = self._columns
        self._subset = {
            "columns": columns,
            "z": self.z.copy(),
            "curvatures": np.empty(self.size),
            "theta": self.slope.copy(),
        }
        return np.abs(columns).T @ np.abs(self.slope)

    def free_sums(self) -> tuple[np.ndarray, np.ndarray]:
        """Σ θ a_j, and Σ h a_j a_kᵀ, of those columns."""
        free = self._subset
        columns = free["columns"]
        expand(self._samples, np.arange(self.size), free["z"], free["theta"], free["curvatures"])
        return columns.T @ free["theta"], columns.T @ (free["curvatures"][:, None] * columns)

    def free_reach(self, step: np.ndarray) -> float:
        """The longest move of a margin when those coefficients move."""
        return Max(np.abs(self._subset["columns"] @ step).max())

    def free_go(self, step: np.ndarray) -> None:
        """Move them."""
        self._subset["z"] -= self._subset["columns"] @ step

    def free_correct(self, step: np.ndarray) -> np.ndarray:
        """Change the slopes themselves, as moving those coefficients would but for the rounding of margins; Σ θ a_j."""
        free = self._subset
        free["theta"] -= free["curvatures"] * (free["columns"] @ step)
        return free["columns"].T @ free["theta"]

    def free_end(self, found: bool) -> np.ndarray:
        """Σ θ a at the slopes found; without them, those of the last look stand."""
        gradient = self._rows(range(self.size), self._subset["theta"]) if found else np.zeros(self.d)
        self._subset = {"theta": self._subset["theta"]} if found else {}
        return gradient

    # -- reading rows --------------------------------------------------------------------------------------------

    def _set(self, numbers: np.ndarray, value: Any) -> None:
        """Give the rows looked at now the numbers of another array, or one for all."""
        for at in self._at:
            numbers[at] = value[at] if isinstance(value, np.ndarray) else value

    def _go(self, length: float) -> None:
        """Move the margins."""
        self._subset = {}
        if length != 0.0:
            for at in self._at:
                move = self._move[at]
                move *= length
                self.z[at] += move

    def _measure(self) -> None:
        """How far the margins went."""
        for at in self._at:
            moved = self.moved[at]
            np.abs(np.subtract(self.z[at], moved, out=moved), out=moved)
        self.known = True

    def _max_curvature(self) -> float:
        """The largest curvature of the rows looked at now."""
        return Max(max((self.curvatures[at].max(initial=0.0) for at in self._at), default=0.0))

    def _margins(self, index: Index, x: np.ndarray, out: np.ndarray) -> None:
        rows = self._samples.rows
        self._read(lambda part: margins(rows, part, x, out), index)

    def _read(self, work: Callable[[np.ndarray], None], index: Index) -> None:
        """All of the rows in `index`, a part at a time."""
        collections.deque(in_parts(work, index, self._entries(index), self._few(index)), maxlen=0)

    def _squares(self) -> np.ndarray:
        out = np.zeros(self.d)
        for start in range(0, self.size, self._rows_per_chunk):
            _cancel.check_cancelled()
            add_squares(self._samples.rows, np.arange(start, min(start + self._rows_per_chunk, self.size)), out)
        return out

    def _rows(self, index: Index, scale: np.ndarray) -> np.ndarray:
        return sum_rows(self._samples.rows, index, scale, self._entries(index), self._few(index))

    def _outer(self, index: Index, scale: np.ndarray) -> np.ndarray:
        return sum_outer(self._samples.rows, index, scale, self._products(index), self._few(index))

    def _few(self, index: Index) -> int:
        """How many of these rows may be read at once: rows far apart touch as much of a file as all between them."""
        span = int(index[-1] - index[0]) + 1 if len(index) > 0 else 1
        return max(256, int(self._rows_per_chunk * len(index) / span))

    def _entries(self, index: Index) -> float:
        """About how many stored entries these rows have."""
        return len(index) * self._per_row

    def _products(self, index: Index) -> float:
        """About what their outer products cost, in entries read; BLAS makes light of dense ones."""
        dense = isinstance(self._samples.rows, DenseRows)
        return self._entries(index) * self._per_row * (DENSE_PRODUCT if dense else 1.0)

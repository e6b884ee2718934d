"""Which samples each stage of the first pass looks at: each as many as all before it, spread over the data.

Where a table is large, a stage is made of runs of rows next to each other instead of single ones: a disk brings whole
stretches of a file, however few of their rows are wanted.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

FIRST_BATCH = 32
"""The first stage holds one in so many samples …"""
ROWS_PER_FEATURE = 8
"""… but at least this many per feature."""
LARGE, RUN = 1 << 27, 1 << 17
"""From so many stored entries on a table is large, and so many make a run of rows: a thousand runs at least."""


class GrowingBatch(NamedTuple):
    """Of every `stride` runs of `width` rows, the one numbered `start`."""

    start: int
    stride: int
    width: int = 1

    def size(self, n: int) -> int:
        """How many of n samples."""
        return sum(len(range(some.start, some.stop, some.step)) for some in self.slices(0, n))

    def rows(self, n: int) -> np.ndarray:
        """Their numbers."""
        return rows_of(self.slices(0, n))

    def slices(self, first: int, size: int) -> list[slice]:
        """Where they are among `size` consecutive samples, the first of which is number `first` of all."""
        if self.width == 1:
            return [slice((self.start - first) % self.stride, size, self.stride)]
        period, begin = self.stride * self.width, self.start * self.width
        earliest = begin + (first - begin) // period * period
        runs = ((at - first, at - first + self.width) for at in range(earliest, first + size, period))
        return [slice(max(one, 0), min(other, size), 1) for one, other in runs if other > 0]


def rows_of(slices: list[slice]) -> np.ndarray:
    """All numbers in some slices."""
    return np.concatenate([np.arange(some.start, some.stop, some.step) for some in slices] or [np.empty(0, np.int64)])


def plan(n: int, d: int, stored: int) -> list[GrowingBatch]:
    """The stages of the first pass over n rows of d features, in order; `stored` entries in all."""
    first = max(n // FIRST_BATCH, min(n, ROWS_PER_FEATURE * d), 1)
    stride = 1 << int(np.log2(n / first))
    width = max(1, int(RUN * n / stored)) if stored >= LARGE else 1
    answer = [GrowingBatch(0, stride, width)]
    while stride > 1:
        answer.append(GrowingBatch(stride // 2, stride, width))
        stride //= 2
    return answer

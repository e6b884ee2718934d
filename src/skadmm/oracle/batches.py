"""The growing batches of the first pass: each has as many samples as all before it, spread over the data.

Where a table is large, a batch is made of runs of neighbouring rows instead of single rows, because a disk reads whole
ranges of a file, however few of their rows are needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np


@dataclass(frozen=True)
class BatchConfig:
    """Settings of the growing batches."""

    first_batch: int = 32
    """The first batch holds one sample in this many."""
    rows_per_feature: int = 8
    """The minimum number of samples per feature in the first batch."""
    large_table: int = 1 << 27
    """The number of stored entries from which batches are made of runs of neighbouring rows."""
    run_entries: int = 1 << 17
    """The approximate number of stored entries in a run of neighbouring rows."""
    first_evaluations: int = 3
    """How many times the first batch is evaluated, because its first expansion is far from the solution."""
    only_evaluations: int = 1
    """How many times the first batch is evaluated where it holds all samples and costs as much as a full step."""
    wide_row: int = 32
    """The number of entries per row from which outer products cost more than evaluations, so that batches need not grow
    to all samples."""
    samples_per_feature: int = 2000
    """The number of samples per feature at which batches need not grow further."""


class GrowingBatch(NamedTuple):
    """A batch that takes, from every `stride` runs of `width` rows, the run numbered `start`."""

    start: int
    stride: int
    width: int = 1

    def size(self, n: int) -> int:
        """The number of samples in the batch, out of n."""
        return sum(len(range(at.start, at.stop, at.step)) for at in self.slices(0, n))

    def rows(self, n: int) -> np.ndarray:
        """The row numbers of the batch, out of n."""
        return rows_of(self.slices(0, n))

    def slices(self, first: int, size: int) -> list[slice]:
        """The rows of the batch among `size` consecutive samples, the first of which has the number `first`."""
        if self.width == 1:
            return [slice((self.start - first) % self.stride, size, self.stride)]
        period, begin = self.stride * self.width, self.start * self.width
        earliest = begin + (first - begin) // period * period
        runs = ((at - first, at - first + self.width) for at in range(earliest, first + size, period))
        return [slice(max(one, 0), min(other, size), 1) for one, other in runs if other > 0]


def enough(batches: list[GrowingBatch], n: int, samples: int) -> list[GrowingBatch]:
    """The first batches that together have at least `samples` of n samples; all where that is nearly all."""
    seen = 0
    for count, batch in enumerate(batches, start=1):
        seen += batch.size(n)
        if seen >= samples and 2 * seen < n:
            return batches[:count]
    return batches


def first_pass(n: int, d: int, stored: int, config: BatchConfig) -> list[GrowingBatch]:
    """The batches over n rows of d features with `stored` entries, in the order in which they are evaluated: the first
    one more than once, and where rows are wide, no more than are enough."""
    planned = plan(n, d, stored, config)
    if stored / n >= config.wide_row:
        planned = enough(planned, n, config.samples_per_feature * d)
    repeats = config.first_evaluations if len(planned) > 1 else config.only_evaluations
    return planned[:1] * (repeats - 1) + planned


def rows_of(slices: list[slice]) -> np.ndarray:
    """All numbers in some slices."""
    return np.concatenate([np.arange(at.start, at.stop, at.step) for at in slices] or [np.empty(0, np.int64)])


def plan(n: int, d: int, stored: int, config: BatchConfig | None = None) -> list[GrowingBatch]:
    """The batches of the first pass over n rows of d features, in order; `stored` entries in all."""
    config = BatchConfig() if config is None else config
    first = max(n // config.first_batch, min(n, config.rows_per_feature * d), 1)
    stride = 1 << int(np.log2(n / first))
    width = max(1, int(config.run_entries * n / stored)) if stored >= config.large_table else 1
    planned = [GrowingBatch(0, stride, width)]
    while stride > 1:
        planned.append(GrowingBatch(stride // 2, stride, width))
        stride //= 2
    return planned

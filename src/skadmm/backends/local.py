"""Rows within reach of compiled code, in memory or mapped from files, read some at a time."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from skadmm import _cancel
from skadmm.backends import tasks
from skadmm.backends.slicing import part_of
from skadmm.kernels.expansion import several
from skadmm.kernels.rows import DenseRows
from skadmm.kernels.samples import Samples, mean_conjugate

CHUNKS_AT_ONCE = 2
"""Chunks; each takes memory while it is read."""


class Evaluation(NamedTuple):
    """All samples at one point: the mean loss, its gradient, and the slope of each sample, wherever it is kept."""

    loss: float
    gradient: np.ndarray
    slopes: Any
    margins: np.ndarray | None
    """None where they are kept elsewhere."""


class LocalBackend:
    """Samples here. Between two chunks of `at_once` rows a run can be stopped, and files give their pages back."""

    remote = False

    def __init__(self, samples: Samples, rows_per_chunk: int) -> None:
        self.samples, self.rows_per_chunk = samples, rows_per_chunk
        self.n, self.d = samples.rows.shape

    def chunks(self) -> Iterator[tuple[slice, Samples]]:
        """Consecutive samples, and where they are among all."""
        whole = self.samples
        rows_per_chunk = self.rows_per_chunk
        if self.n > rows_per_chunk and isinstance(whole.rows, DenseRows) and not whole.rows.values.flags.c_contiguous:
            rows_per_chunk = self.n  # a slice of columns would be another kind of array
        for start in range(0, self.n, rows_per_chunk):
            _cancel.check_cancelled()
            stop = min(start + rows_per_chunk, self.n)
            if (start, stop) == (0, self.n):
                yield slice(0, self.n), whole
                return
            yield slice(start, stop), part_of(whole, start, stop)

    def _answers(self, work: Callable[[slice, Samples], Any]) -> Iterator[tuple[slice, Any]]:
        """`work` on all chunks, a few at a time; the answers in their order, the same on any number of threads."""
        chunks = self.chunks()
        while few := list(itertools.islice(chunks, CHUNKS_AT_ONCE)):
            each = several() if len(few) > 1 else map
            yield from zip((place for place, _ in few), each(lambda chunk: work(*chunk), few), strict=True)

    def each(self, task: Callable[..., Any], *arguments: Any) -> list[Any]:
        """A task's answers, one for each chunk."""
        return [answer for _, answer in self._answers(lambda _, samples: task(samples, *arguments))]

    def mean(self, task: Callable[..., Any], *arguments: Any) -> Any:
        """A task's mean over all samples."""
        total = None
        for place, answer in self._answers(lambda _, samples: task(samples, *arguments)):
            share = tasks.scaled(answer, (place.stop - place.start) / self.n)
            total = share if total is None else tasks.added([total, share])
        return total

    def evaluate(self, x: np.ndarray) -> Evaluation:
        """All samples at `x`."""
        slopes, margins = np.empty(self.n), np.empty(self.n)
        gradient = np.zeros(self.d)
        loss = 0.0
        sums = self._answers(lambda place, samples: tasks.evaluate(samples, x, self.n, slopes[place], margins[place]))
        for _, (part, slope) in sums:
            loss += part
            gradient += slope
        return Evaluation(loss, gradient, slopes, margins)

    def mean_conjugate(self, slopes: Any, scale: float) -> float:
        """(1/n) Σ w_i ℓ*(scale θ_i / w_i, b_i); θ the slopes of a look."""
        return float(mean_conjugate(self.samples, scale * slopes))

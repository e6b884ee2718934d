"""Samples in blocks on workers, whatever brings the calls there (``Executor``): a Dask cluster, or local processes.

The driver holds x, y, the dual and sums over samples. Rows, targets and everything that has one entry per sample stay
on the workers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from skadmm import _cancel
from skadmm.backends import worker
from skadmm.backends.base import Evaluation, StoredSamples
from skadmm.backends.local import LocalBackend, normalised
from skadmm.backends.slicing import stack_rows
from skadmm.backends.tables import class_count_error
from skadmm.kernels.samples import Samples
from skadmm.losses import Loss


class RemoteSamples(StoredSamples, ABC):
    """What backends on workers share. A subclass opens the table, and is an ``Executor``."""

    name: str
    local_rows = False
    block_memory = True
    slow_reads = True
    sparse = False
    n: int
    d: int
    nnz: int
    weighted: bool
    loss: Loss
    classes: np.ndarray | None
    feature_names: list[str] | None
    sizes: np.ndarray

    # -- what the executor does ------------------------------------------------------------------------------------

    @abstractmethod
    def number(self) -> int:
        """A number that was not returned before."""

    @abstractmethod
    def call_on_each(self, name: str, function: Callable[..., Any], arguments: dict[int, tuple[Any, ...]]) -> list[Any]:
        """The responses of some blocks, which are the keys of `arguments`, in their order."""

    @abstractmethod
    def map_reduce(
        self, kind: str, function: Callable[..., Any], arguments: list[tuple[Any, ...]], *, retry: bool = True
    ) -> Any:
        """Call a function on every block and add up the responses; `arguments` has a tuple per block."""

    # -- functions of all samples ----------------------------------------------------------------------------------

    def each(self, task: Callable[..., Any], *arguments: Any) -> list[Any]:
        """The results of a task, one per block."""
        given = (1.0, task, arguments)
        return self.call_on_each(task.__name__, worker.run_task, dict.fromkeys(range(self.sizes.size), given))

    def mean(self, task: Callable[..., Any], *arguments: Any) -> Any:
        """The mean of a task's results over all samples."""
        given: list[tuple[Any, ...]] = [(size / self.n, task, arguments) for size in self.sizes]
        return self.map_reduce(task.__name__, worker.run_task, given)

    def evaluate(self, x: np.ndarray) -> Evaluation:
        """All samples at `x`. The slopes stay on the workers; the handle for them is x under a number."""
        point: worker.SentPoint = (self.number(), worker.packed(x))
        given: list[tuple[Any, ...]] = [(worker.evaluate, (self.n, point))] * self.sizes.size
        loss, gradient = self.map_reduce("evaluate", worker.run_stateful, given)
        return Evaluation(float(loss), np.array(gradient), point, None)

    def mean_conjugate(self, slopes: Any, scale: float) -> float:
        """(1/n) Σ w_i ℓ*(scale θ_i / w_i, b_i), θ the slopes of an evaluation."""
        given: list[tuple[Any, ...]] = [(worker.conjugate, (size / self.n, slopes, scale)) for size in self.sizes]
        return float(self.map_reduce("conjugate", worker.run_stateful, given))

    @property
    def fingerprint(self) -> tuple[str, ...]:
        """The checksum of every block."""
        return tuple(self.call_on_each("digest", worker.digest, dict.fromkeys(range(self.sizes.size), ())))

    # -- batches ---------------------------------------------------------------------------------------------------

    def bounds(self, batch_size: int) -> list[tuple[int, int, int]]:
        """Each batch as (block, first row, row after the last); no batch spans two blocks."""
        return [
            (k, start, min(start + batch_size, int(size)))
            for k, size in enumerate(self.sizes)
            for start in range(0, int(size), batch_size)
        ]

    @property
    def natural_batch(self) -> int:
        """The size of the largest block, so that every batch is a whole block."""
        return int(self.sizes.max())

    def block_sizes(self, batch_size: int) -> np.ndarray:
        """The number of samples in each batch; no batch spans two blocks."""
        return np.array([float(stop - start) for _, start, stop in self.bounds(batch_size)])

    # -- rows in this process --------------------------------------------------------------------------------------

    def samples(self, batch_size: int = 1) -> Samples:
        """Always an error: compiled code in this process cannot read rows on workers."""
        raise ValueError(f"the {self.name} backend keeps X on workers: this works on rows in memory or in files only")

    def prefetch(self, order: np.ndarray, batch_size: int) -> None:
        """Do nothing: blocks are in the memory of their workers."""

    def between_chunks(self) -> None:
        """Raise where the run was cancelled."""
        _cancel.check_cancelled()

    def take(self, indices: np.ndarray) -> LocalBackend:
        """Some samples, copied into the memory of this process."""
        edges = np.cumsum((0, *self.sizes))
        block = np.searchsorted(edges, indices, side="right") - 1
        given = {int(k): (np.asarray(indices)[block == k] - edges[k],) for k in np.unique(block)}
        parts = self.call_on_each("take", worker.take, given)
        weight = normalised(np.concatenate([part.weight for part in parts])) if self.weighted else np.empty(0)
        rows, target = stack_rows([part.rows for part in parts]), np.concatenate([part.target for part in parts])
        return LocalBackend(rows, target, weight, self.loss, classes=self.classes, feature_names=self.feature_names)


def check_shapes(facts: list[worker.Facts]) -> None:
    """Refuse blocks without rows, and blocks of different widths."""
    empty = [number for number, fact in enumerate(facts) if fact.size == 0]
    if empty:
        raise ValueError(f"X has an empty block, number {empty[0]}: it takes blocks with rows")
    widths = sorted({fact.width for fact in facts})
    if len(widths) > 1:
        raise ValueError(f"X has blocks of {widths[0]} and of {widths[1]} columns: they must agree")


def two_classes(found: list[np.ndarray], loss: Loss, classes: np.ndarray | None) -> np.ndarray:
    """The classes of all blocks in sorted order; an error where there are not two, or others than `classes`."""
    union = np.unique(np.concatenate(found))
    if classes is not None:
        if not np.isin(union, classes).all():
            raise ValueError(f"target holds classes other than {np.asarray(classes).tolist()}")
        return np.asarray(classes)
    if union.size != 2:
        raise class_count_error(union, loss)
    return union

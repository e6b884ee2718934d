"""What runs on workers (of a cluster, or processes of this machine): blocks are prepared, and tasks called on them.

Every result is a pure function of the rows and of what the driver sends. The memory of a block only saves work: a task
that finds it empty, or of another point, computes its content again from the point that the driver sent along.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from skadmm.backends import tasks
from skadmm.backends.base import NumberedPoint
from skadmm.backends.slicing import Rows, part_of, take_rows
from skadmm.backends.tables import as_rows, check_range
from skadmm.backends.writer import with_ones
from skadmm.kernels.rows import as_matrix, stored_entries
from skadmm.kernels.samples import Samples, mean_conjugate, refresh_samples, slopes_at
from skadmm.kernels.threads import one_thread
from skadmm.losses import Loss


class Held:
    """The samples of a block on a worker, with a memory that lives as long as they do and is never sent anywhere."""

    def __init__(self, samples: Samples) -> None:
        self.samples = samples
        self.memory: dict[str, Any] = {}

    def __reduce__(self) -> Any:
        return Held, (self.samples,)

    def __sizeof__(self) -> int:
        arrays = (*self.samples.rows, self.samples.target, self.samples.weight)
        return sum(array.nbytes for array in arrays if isinstance(array, np.ndarray))


class SparseVector(NamedTuple):
    """A vector of which most entries are zero, as it is sent."""

    where: np.ndarray
    values: np.ndarray
    size: int


SentPoint = tuple[int, "np.ndarray | SparseVector"]
"""A point x under a number that no other point has; packed where most of its entries are zero."""


def packed(x: np.ndarray) -> np.ndarray | SparseVector:
    """A copy of a vector for a message: the entries that are not zero, where they are few."""
    where = np.flatnonzero(x).astype(np.int32)
    return x.copy() if 2 * where.size > x.size else SparseVector(where, x[where], x.size)


def unpacked(sent: np.ndarray | SparseVector) -> np.ndarray:
    """The vector that was sent."""
    if not isinstance(sent, SparseVector):
        return sent
    x = np.zeros(sent.size)
    x[sent.where] = sent.values
    return x


class Part(NamedTuple):
    """A block before the loss is known: rows as compiled code reads them, targets and weights as given."""

    rows: Rows
    target: np.ndarray
    weight: np.ndarray | None


class Facts(NamedTuple):
    """What the driver needs to know of a block."""

    size: int
    """The number of samples."""
    width: int
    """The number of features."""
    stored: int
    """Stored entries of its rows."""
    classes: np.ndarray
    """Classes found, in sorted order; at most three, which is enough to see that there are too many."""
    weight: float
    """The sum of the sample weights."""
    names: list[str] | None
    """Column names."""


def make_part(X: Any, target: Any, weight: Any, ones: bool) -> Part | None:
    """A block of the user's table, checked, in the form that compiled code reads; `ones` adds a column of ones. None
    for a block without rows."""
    target = np.asarray(target).ravel()
    if np.shape(X)[:1] == (0,) and target.size == 0:
        return None
    rows, _ = as_rows(X)
    if ones:
        rows, _ = as_rows(with_ones(as_matrix(rows)))
    if target.size != rows.shape[0]:
        raise ValueError(f"target has a block of {target.size} entries for {rows.shape[0]} rows of X")
    if weight is not None:
        weight = np.asarray(weight, dtype=float).ravel()
        if weight.size != target.size or not np.isfinite(weight).all() or (weight < 0).any():
            raise ValueError("sample_weight takes finite numbers ≥ 0, in blocks like those of X")
    return Part(rows, target, weight)


def facts_of(part: Part | None, X: Any, loss: Loss) -> Facts:
    """What the driver needs to know of a part of X, and whether its targets are those of the loss."""
    import pandas as pd

    if part is None:
        return Facts(0, 0, 0, np.empty(0), 0.0, None)
    rows, labels = part.rows, loss.labels
    missing = int(pd.isna(part.target).sum())
    if missing:
        raise ValueError(f"target has {missing} missing values in a block of {part.target.size} rows: leave them out")
    classes = np.unique(part.target)[:3] if labels else np.empty(0)
    if not labels and not (part.target.dtype.kind in "fiub" and np.isfinite(part.target.astype(float)).all()):
        raise ValueError("target takes finite numbers")
    if not labels:
        check_range(part.target.astype(float), loss, "target of a block")
    names = [str(column) for column in X.columns] if hasattr(X, "columns") else None
    weight = float(part.target.size if part.weight is None else part.weight.sum())
    return Facts(part.target.size, rows.shape[1], stored_entries(rows), classes, weight, names)


def make_samples(part: Part, loss: Loss, classes: np.ndarray | None, scale: float) -> Held:
    """The block under a loss: classes coded as −1 and +1, weights times `scale`, so that their mean over all blocks is
    one."""
    target = part.target.astype(float) if classes is None else np.where(part.target == classes[1], 1.0, -1.0)
    weight = np.empty(0) if part.weight is None else part.weight * scale
    return Held(Samples(part.rows, np.ascontiguousarray(target), weight, loss, target.size))


def run_task(held: Held, share: float, task: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """The result of a task, times the block's share of all samples."""
    return tasks.scaled(task(held.samples, *arguments), share)


def run_stateful(held: Held, task: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """The result of a task that also takes the block's memory."""
    return task(held.samples, held.memory, *arguments)


def run_and_concat(held: Held, task: Callable[..., Any], arguments: tuple[Any, ...]) -> tasks.Concat:
    """The result of a task that takes the block's memory, in a list that is concatenated with those of other blocks."""
    return tasks.Concat([run_stateful(held, task, arguments)])


def run_on_blocks(
    blocks: list[Held], function: Callable[..., Any], arguments: list[tuple[Any, ...]], threads: int = 1
) -> Any:
    """Call ``run_task`` or ``run_stateful`` on each block; the sum of the results, in the order of the blocks."""

    def one(held: Held, given: tuple[Any, ...]) -> Any:
        return function(held, *given)

    each = map if min(threads, len(blocks)) == 1 else pool("blocks", threads).map
    with one_thread():
        return functools.reduce(lambda total, result: tasks.added([total, result]), each(one, blocks, arguments))


def run_on_one(blocks: list[Held], function: Callable[..., Any], arguments: tuple[Any, ...], threads: int = 1) -> Any:
    """Call a function once, with all of the blocks and their memories."""
    with one_thread():
        return function(blocks, *arguments)


@functools.cache
def pool(purpose: str, threads: int) -> ThreadPoolExecutor:
    """Threads of this process, kept from one call to the next."""
    return ThreadPoolExecutor(threads, thread_name_prefix=f"skadmm-{purpose}")


def refresh(
    samples: Samples, memory: dict[str, Any], bounds: tuple[int, int], old: NumberedPoint | None, new: NumberedPoint
) -> np.ndarray:
    """Σ over the samples within `bounds` of the gradients at the new point, minus those at the old one, if any.

    Slopes that the memory holds under the number of the old point are not computed again.
    """
    batch = part_of(samples, *bounds)
    kept = memory.pop(f"slopes{bounds}", None)  # a task that is interrupted or repeated must not find them
    size = bounds[1] - bounds[0]
    if old is None:
        slopes = np.zeros(size)
    elif kept is not None and kept[0] == old[0]:
        slopes = kept[1]
    else:
        slopes = np.empty(size)
        slopes_at(batch, old[1], slopes)
    change = np.zeros(new[1].size)
    refresh_samples(batch, new[1], slopes, change)
    memory[f"slopes{bounds}"] = (new[0], slopes)
    return change


def first_refresh(
    samples: Samples, memory: dict[str, Any], batches: list[tuple[tuple[int, int], int]], x: np.ndarray
) -> np.ndarray:
    """Σ of the gradients of all batches of a block at the first point, which has a number of its own for each batch."""
    return np.sum([refresh(samples, memory, bounds, None, (number, x)) for bounds, number in batches], axis=0)


def evaluate(samples: Samples, memory: dict[str, Any], n: int, x: SentPoint) -> tuple[float, np.ndarray]:
    """The block's part of the mean loss over n samples and of its gradient. The slopes stay in the memory."""
    size = samples.target.size
    slopes = np.empty(size)
    loss, gradient = tasks.evaluate(samples, unpacked(x[1]), n, slopes, np.empty(size))
    memory["evaluate"] = (x[0], slopes)
    return loss, gradient


def conjugate(samples: Samples, memory: dict[str, Any], share: float, x: SentPoint, scale: float) -> float:
    """The block's share of the mean conjugate at `scale` times the slopes at x."""
    kept = memory.get("evaluate")
    slopes = kept[1] if kept is not None and kept[0] == x[0] else _slopes(samples, unpacked(x[1]))
    return share * float(mean_conjugate(samples, scale * slopes))


def _slopes(samples: Samples, x: np.ndarray) -> np.ndarray:
    slopes = np.empty(samples.target.size)
    slopes_at(samples, x, slopes)
    return slopes


def take(held: Held, indices: np.ndarray) -> Part:
    """A small subset of the samples, to be sent to the driver."""
    samples = held.samples
    weight = samples.weight[indices] if samples.weight.size else None
    return Part(take_rows(samples.rows, indices), samples.target[indices], weight)


def digest(held: Held) -> str:
    """A checksum of the block."""
    samples = held.samples
    summary = hashlib.sha256()
    for array in (*samples.rows, samples.target, samples.weight):
        summary.update(np.ascontiguousarray(array).tobytes() if isinstance(array, np.ndarray) else repr(array).encode())
    return summary.hexdigest()

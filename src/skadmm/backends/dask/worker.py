"""What runs on the workers of a cluster: rows made ready, tasks on them, and a memory of scalars that may be lost.

Everything here is a pure function of the rows and of what the driver sends; the memory only spares work. A task that
finds its memory gone, or of another moment, computes it again from the point the driver sent along.
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from skadmm.backends import tasks
from skadmm.backends.slicing import part_of, take_rows
from skadmm.backends.tables import as_rows
from skadmm.backends.writer import with_ones
from skadmm.kernels.rows import CSRRows
from skadmm.kernels.samples import Samples, mean_conjugate, refresh_block, slopes_at
from skadmm.kernels.threads import one_thread


class Held:
    """Samples on a worker, and next to them a memory that lives as long as they do and never travels."""

    def __init__(self, samples: Samples) -> None:
        self.samples = samples
        self.memory: dict[str, Any] = {}

    def __reduce__(self) -> Any:
        return Held, (self.samples,)

    def __sizeof__(self) -> int:
        arrays = (*self.samples.rows, self.samples.target, self.samples.weight)
        return sum(array.nbytes for array in arrays if isinstance(array, np.ndarray))


class Part(NamedTuple):
    """A block as it came: compiled rows, targets as given, weights."""

    rows: Any
    target: np.ndarray
    weight: np.ndarray | None


class Facts(NamedTuple):
    """What the driver needs to know of a block."""

    size: int
    width: int
    stored: int
    classes: np.ndarray
    weight: float
    names: list[str] | None


def make_part(X: Any, target: Any, weight: Any, ones: bool) -> Part:
    """A block of the user's table, checked and in the form compiled code reads."""
    rows, _ = as_rows(X)
    if ones:
        rows, _ = as_rows(with_ones(matrix_of(rows)))
    target = np.asarray(target).ravel()
    if target.size != rows.shape[0]:
        raise ValueError(f"target has a block of {target.size} entries for {rows.shape[0]} rows of X")
    if weight is not None:
        weight = np.asarray(weight, dtype=float).ravel()
        if weight.size != target.size or not np.isfinite(weight).all() or (weight < 0).any():
            raise ValueError("sample_weight takes finite numbers ≥ 0, in blocks like those of X")
    return Part(rows, target, weight)


def matrix_of(rows: Any) -> Any:
    """Compiled rows as an array or a sparse matrix."""
    if isinstance(rows, CSRRows):
        return scipy.sparse.csr_array((rows.data, rows.indices, rows.indptr), shape=rows.shape)
    return rows.values


def facts_of(part: Part, X: Any, labels: bool) -> Facts:
    """What the driver needs to know; of the classes three are enough to see that there are too many."""
    rows = part.rows
    stored = rows.data.size if isinstance(rows, CSRRows) else rows.values.size
    classes = np.unique(part.target)[:3] if labels else np.empty(0)
    if not labels and not (part.target.dtype.kind in "fiub" and np.isfinite(part.target.astype(float)).all()):
        raise ValueError("target takes finite numbers")
    names = [str(column) for column in X.columns] if hasattr(X, "columns") else None
    weight = float(part.target.size if part.weight is None else part.weight.sum())
    return Facts(part.target.size, rows.shape[1], int(stored), classes, weight, names)


def make_samples(part: Part, loss: Any, classes: np.ndarray | None, scale: float) -> Held:
    """The block under a loss: classes coded −1 and +1, weights that average to one over all blocks."""
    target = part.target.astype(float) if classes is None else np.where(part.target == classes[1], 1.0, -1.0)
    weight = np.empty(0) if part.weight is None else part.weight * scale
    return Held(Samples(part.rows, np.ascontiguousarray(target), weight, loss, target.size))


def nothing() -> None:
    """The task that keeps a bar of progress on Dask's dashboard."""


def run_task(held: Held, share: float, task: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """A task's answer, by the block's share among all samples."""
    return tasks.scaled(task(held.samples, *arguments), share)


def run_stateful(held: Held, task: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """A task that also sees the block's memory."""
    return task(held.samples, held.memory, *arguments)


def run_and_concat(held: Held, task: Callable[..., Any], arguments: tuple[Any, ...]) -> tasks.Concat:
    """The same, its answer to stand by itself."""
    return tasks.Concat([run_stateful(held, task, arguments)])


def run_on_blocks(
    several: list[Held], function: Callable[..., Any], arguments: list[tuple[Any, ...]], threads: int = 1
) -> Any:
    """``run_task`` or ``run_stateful`` on several blocks; the sum of the answers, in the same order for any threads."""

    def one(held: Held, given: tuple[Any, ...]) -> Any:
        return function(held, *given)

    each = map if min(threads, len(several)) == 1 else _pool("blocks", threads).map
    with one_thread():
        return functools.reduce(lambda total, answer: tasks.added([total, answer]), each(one, several, arguments))


def run_on_one(several: list[Held], function: Callable[..., Any], arguments: tuple[Any, ...], threads: int = 1) -> Any:
    """A function that sees several blocks at once, with their memories."""
    with one_thread():
        return function(several, *arguments)


@functools.cache
def _pool(purpose: str, threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix=f"skadmm-{purpose}")


class NotHere:
    """The answer of a worker that does not hold what it is asked for."""


async def answer(
    keys: list[str], way: Callable[..., Any], function: Callable[..., Any], arguments: Any, threads: int,
    dask_worker: Any,
) -> Any:  # fmt: skip
    """What the task `way` on the blocks of these keys would give: called by :mod:`skadmm.backends.dask.transport`."""
    try:
        several = [dask_worker.data[key] for key in keys]
    except KeyError:
        return NotHere()
    run = functools.partial(way, several, function, arguments, threads)
    return await asyncio.get_running_loop().run_in_executor(_pool("lines", threads), run)


def refresh(
    samples: Samples, memory: dict[str, Any], bounds: tuple[int, int], old: Any, new: tuple[int, np.ndarray]
) -> np.ndarray:
    """Σ of the gradients of some samples at the new point, less those at the old one (None: nothing yet).

    Points come with a number; slopes kept under the old number need not be computed again.
    """
    some = part_of(samples, *bounds)
    kept = memory.pop(f"slopes{bounds}", None)  # should this be cut short or run twice, they are of no use
    size = bounds[1] - bounds[0]
    if old is None:
        slopes = np.zeros(size)
    elif kept is not None and kept[0] == old[0]:
        slopes = kept[1]
    else:
        slopes = np.empty(size)
        slopes_at(some, old[1], slopes)
    change = np.zeros(new[1].size)
    refresh_block(some, 0, new[1], slopes, 1.0, change)
    memory[f"slopes{bounds}"] = (new[0], slopes)
    return change


def first_refresh(
    samples: Samples, memory: dict[str, Any], pieces: list[tuple[tuple[int, int], int]], x: np.ndarray
) -> np.ndarray:
    """Σ of the gradients of all pieces of a block at the first point, under a number for each piece."""
    return np.sum([refresh(samples, memory, bounds, None, (number, x)) for bounds, number in pieces], axis=0)


def evaluate(samples: Samples, memory: dict[str, Any], n: int, x: tuple[int, np.ndarray]) -> tuple[float, np.ndarray]:
    """The block's part of the mean loss over n samples, and of its gradient; the slopes stay in the memory."""
    size = samples.target.size
    slopes = np.empty(size)
    answer = tasks.evaluate(samples, x[1], n, slopes, np.empty(size))
    memory["evaluate"] = (x[0], slopes)
    return answer


def conjugate(samples: Samples, memory: dict[str, Any], share: float, x: tuple[int, np.ndarray], scale: float) -> float:
    """The mean conjugate at the slopes of the look at x."""
    kept = memory.get("evaluate")
    slopes = kept[1] if kept is not None and kept[0] == x[0] else _slopes(samples, x[1])
    return share * float(mean_conjugate(samples, scale * slopes))


def _slopes(samples: Samples, x: np.ndarray) -> np.ndarray:
    slopes = np.empty(samples.target.size)
    slopes_at(samples, x, slopes)
    return slopes


def take(held: Held, indices: np.ndarray) -> Part:
    """Some samples, to be sent to the driver: a small subset."""
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

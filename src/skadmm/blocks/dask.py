"""Rows on the workers of a Dask cluster: dask.array, dask.dataframe, or a list of delayed blocks.

The driver holds x, y, the dual and sums over samples; rows, targets and all that there is one of for each sample stay
on the workers. A block that is lost with its worker is computed again from its source, by Dask itself.
"""

from __future__ import annotations

import asyncio
import itertools
import uuid
from collections.abc import Callable
from typing import Any

import numpy as np

from skadmm import _watch
from skadmm.blocks import tasks, worker
from skadmm.blocks._kinds import is_dask
from skadmm.blocks.local import Look

FAN_IN = 8
"""Answers are added up on the workers, so many at a time, before the driver sees one."""
PATIENCE = 0.2
"""Seconds between two looks at the clock while workers work."""


def _client() -> Any:
    try:
        from distributed import get_client
    except ImportError as error:
        raise ImportError("Dask data need dask and distributed: pip install 'skadmm[dask]'") from error
    try:
        return get_client()
    except ValueError:
        raise ValueError("X lives on Dask, and there is no client: from distributed import Client; Client()") from None


def _blocks(table: Any, name: str) -> list[Any]:
    """The blocks of whole rows, delayed."""
    if isinstance(table, (list, tuple)):
        return list(table)
    if hasattr(table, "rechunk"):
        if table.ndim not in (1, 2):
            raise ValueError(f"{name} has {table.ndim} dimension(s): it takes blocks of rows")
        if table.ndim == 2:
            table = table.rechunk({1: -1})
        return list(table.to_delayed().ravel())
    if hasattr(table, "to_delayed"):
        return list(table.to_delayed())
    raise TypeError(
        f"{name}={type(table).__name__}: it takes a dask.array, a dask.dataframe or a list of delayed blocks"
    )


def _vector_blocks(vector: Any, X: Any, count: int, name: str) -> list[Any]:
    """A vector in blocks like those of X."""
    if vector is None:
        return [None] * count
    if is_dask(vector):
        chunks = getattr(X, "chunks", None)
        if chunks is not None and hasattr(vector, "rechunk") and not np.isnan(np.sum(chunks[0])):
            vector = vector.rechunk((chunks[0],))
        blocks = _blocks(vector, name)
        if len(blocks) != count:
            raise ValueError(f"{name} has {len(blocks)} blocks: it takes {count}, as X has")
        return blocks
    chunks = getattr(X, "chunks", None)
    if chunks is None or np.isnan(np.sum(chunks[0])):
        raise TypeError(f"{name}={type(vector).__name__}: next to blocks of unknown length it takes Dask blocks too")
    vector = np.asarray(vector)
    edges = np.cumsum((0, *chunks[0]))
    if vector.shape != (edges[-1],):
        raise ValueError(f"{name} has shape {vector.shape}: it takes a vector of length {edges[-1]}")
    return [vector[start:stop] for start, stop in itertools.pairwise(edges)]


class WorkerGone(Exception):  # noqa: N818
    """A worker that only could answer is no longer there."""


class DaskHome:
    """Samples on workers.

    Parameters
    ----------
    X, target, weight : Dask collections, or lists of delayed blocks
    loss : loss
    ones : bool
        Add a column of ones, for an intercept.
    """

    remote = True

    def __init__(self, X: Any, target: Any, weight: Any, loss: Any, ones: bool = False, classes: Any = None) -> None:
        import dask

        self.client = _client()
        self.id = uuid.uuid4().hex
        self.loss = loss
        rows = _blocks(X, "X")
        if target is None:
            raise ValueError("target=None: it takes a vector with an entry for each row of X")
        targets = _vector_blocks(target, X, len(rows), "target")
        weights = _vector_blocks(weight, X, len(rows), "sample_weight")
        make = dask.delayed(worker.make_part, pure=False)
        tell = dask.delayed(worker.facts_of, pure=False)
        parts = [make(*three, ones) for three in zip(rows, targets, weights, strict=True)]
        told = [tell(part, row, loss.labels) for part, row in zip(parts, rows, strict=True)]
        futures = self._spread(parts) + self.client.compute(told)
        facts = self._gather(futures[len(parts) :])
        empty = [number for number, fact in enumerate(facts) if fact.size == 0]
        if empty:
            raise ValueError(f"X has an empty block, number {empty[0]}: it takes blocks with rows")
        widths = sorted({fact.width for fact in facts})
        if len(widths) > 1:
            raise ValueError(f"X has blocks of {widths[0]} and of {widths[1]} columns: they must agree")
        self.sizes = np.array([fact.size for fact in facts])
        self.n, self.d, self.stored = int(self.sizes.sum()), int(facts[0].width), sum(fact.stored for fact in facts)
        self.names = facts[0].names
        self.classes = _two_classes([fact.classes for fact in facts], loss, classes) if loss.labels else None
        total = sum(fact.weight for fact in facts)
        if total <= 0:
            raise ValueError("sample_weight takes numbers ≥ 0, at least one of them > 0")
        self.weighted = weight is not None
        self.samples = [
            self.client.submit(worker.make_samples, part, loss, self.classes, self.n / total, pure=False)
            for part in futures[: len(parts)]
        ]
        self._numbers = itertools.count(1)
        self._places: dict[int, list[str]] = {}
        self._threads: dict[str, int] = {}
        self.locate()

    def _spread(self, parts: list[Any]) -> list[Any]:
        """The parts, computed: as evenly over the workers as may be, neighbours together."""
        workers = sorted(self.client.nthreads())
        if not workers:
            return self.client.compute(parts)
        futures = []
        for group, address in zip(np.array_split(np.arange(len(parts)), len(workers)), workers, strict=True):
            if group.size:
                chosen = [parts[k] for k in group]
                futures += self.client.compute(chosen, workers=[address], allow_other_workers=True)
        return futures

    # -- asking ------------------------------------------------------------------------------------------------

    def submit(self, k: int | np.ndarray, function: Callable[..., Any], *arguments: Any, **where: Any) -> Any:
        """Ask one block, or several; the future of the answer. In Dask's dashboard it goes by the task's name."""
        told = arguments[1][0] if isinstance(k, np.ndarray) else arguments
        named = next((one for one in told if callable(one)), function)
        key = f"skadmm-{getattr(named, '__name__', 'task')}-{self.id[:8]}-{next(self._numbers)}"
        asked = [self.samples[one] for one in k] if isinstance(k, np.ndarray) else self.samples[k]
        return self.client.submit(function, asked, *arguments, key=key, pure=False, **where)

    def number(self) -> int:
        """A number that this home has never given before."""
        return next(self._numbers)

    def stateful(self, k: int, task: Callable[..., Any], *arguments: Any) -> Any:
        """Ask one block that may look into its memory, of the worker that holds it if it can; the future of its
        answer."""
        here = {"workers": self._places[k], "allow_other_workers": True} if self._places.get(k) else {}
        return self.submit(k, worker.run_stateful, task, arguments, **here)

    def together(self, function: Callable[..., Any], arguments: list[tuple[Any, ...]], firm: bool = False) -> Any:
        """Ask all blocks and add up; `arguments` has an entry for each.

        The worker that holds a block is asked for it; `firm` says that no other one will do. Blocks side by side on
        one worker are asked in one task for each of its threads: what a round costs is the number of its tasks.
        """
        futures = []
        place_of = [tuple(self._places.get(k, ())) for k in range(self.sizes.size)]
        for place, run in itertools.groupby(range(self.sizes.size), place_of.__getitem__):
            blocks = np.array(list(run))
            threads = self._threads.get(place[0], 1) if place else blocks.size
            here = {"workers": list(place), "allow_other_workers": not firm} if place else {}
            for some in np.array_split(blocks, min(threads, blocks.size)):
                given = [arguments[k] for k in some]
                futures.append(self.submit(some, worker.run_together, function, given, **here))
        return self.added(futures, firm)

    def locate(self) -> None:
        """Where each block is now: the same worker is asked for it every time, while it lives."""
        from distributed import wait

        wait(self.samples)
        self._threads = self.client.nthreads()
        held = self.client.who_has(self.samples)
        self._places = {k: sorted(held.get(future.key, ()))[:1] for k, future in enumerate(self.samples)}

    def added(self, futures: list[Any], firm: bool = False) -> Any:
        """The sum of the answers; the adding is the workers', in a fixed order."""
        while len(futures) > 1:
            groups = [futures[first : first + FAN_IN] for first in range(0, len(futures), FAN_IN)]
            futures = [self.client.submit(tasks.added, group, pure=False) for group in groups]
        return self._gather(futures, firm)[0]

    def _alive(self) -> bool:
        here = self.client.nthreads()
        return all(place in here for places in self._places.values() for place in places)

    def _gather(self, futures: list[Any], firm: bool = False) -> list[Any]:
        """The answers. They may be lost once more on their way here, so all of the way is watched."""
        client = self.client
        coming = asyncio.run_coroutine_threadsafe(client.gather(futures, asynchronous=True), client.loop.asyncio_loop)
        try:
            while True:
                _watch.pulse()
                try:
                    return coming.result(timeout=PATIENCE)
                except TimeoutError:
                    if coming.done():
                        raise
                    if firm and not self._alive():
                        raise WorkerGone from None
        except BaseException:
            coming.cancel()
            client.cancel(futures)
            raise

    def result(self, future: Any) -> Any:
        """One answer."""
        return self._gather([future])[0]

    def each(self, task: Callable[..., Any], *arguments: Any) -> list[Any]:
        """A task's answers, one for each block."""
        return self._gather([self.submit(k, worker.run_task, 1.0, task, arguments) for k in range(self.sizes.size)])

    def mean(self, task: Callable[..., Any], *arguments: Any) -> Any:
        """A task's mean over all samples."""
        return self.together(worker.run_task, [(size / self.n, task, arguments) for size in self.sizes])

    def look(self, x: np.ndarray) -> Look:
        """All samples at `x`. The slopes stay on the workers; what stands for them is the point and its number."""
        point = (self.number(), x.copy())
        loss, gradient = self.together(
            worker.run_stateful, [(worker.look, (size / self.n, point)) for size in self.sizes]
        )
        return Look(float(loss), np.array(gradient), point, None)

    def mean_conjugate(self, slopes: Any, scale: float) -> float:
        """(1/n) Σ w_i ℓ*(scale θ_i / w_i, b_i); θ the slopes of a look."""
        asked = [(worker.conjugate, (size / self.n, slopes, scale)) for size in self.sizes]
        return float(self.together(worker.run_stateful, asked))

    # -- blocks of a method --------------------------------------------------------------------------------------

    def bounds(self, batch_size: int) -> list[tuple[int, int, int]]:
        """The blocks of a method: Dask's own, cut into pieces of `batch_size`."""
        return [
            (k, start, min(start + batch_size, int(size)))
            for k, size in enumerate(self.sizes)
            for start in range(0, int(size), batch_size)
        ]

    def take(self, indices: np.ndarray) -> worker.Part:
        """A few samples by their numbers, brought here."""
        from skadmm.problem import stack_rows

        edges = np.cumsum((0, *self.sizes))
        home = np.searchsorted(edges, indices, side="right") - 1
        futures = [self.submit(int(k), worker.take, np.asarray(indices)[home == k] - edges[k]) for k in np.unique(home)]
        parts = self._gather(futures)
        weight = np.concatenate([part.weight for part in parts]) if self.weighted else None
        return worker.Part(stack_rows([part.rows for part in parts]), np.concatenate([p.target for p in parts]), weight)

    @property
    def fingerprint(self) -> tuple[str, ...]:
        """The checksum of every block."""
        return tuple(self._gather([self.submit(k, worker.digest) for k in range(self.sizes.size)]))


def _two_classes(found: list[np.ndarray], loss: Any, classes: Any) -> np.ndarray:
    union = np.unique(np.concatenate(found))
    if classes is not None:
        if not np.isin(union, classes).all():
            raise ValueError(f"target holds classes other than {np.asarray(classes).tolist()}")
        return np.asarray(classes)
    if union.size != 2:
        shown = ", ".join(repr(v) for v in union[:5].tolist())
        raise ValueError(f"target has {union.size} class(es) ({shown}): the {loss.name} loss takes exactly two")
    return union

"""Rows on the workers of a Dask cluster: dask.array, dask.dataframe, or a list of delayed blocks.

The driver holds x, y, the dual and sums over samples; rows, targets and all that there is one of for each sample stay
on the workers. A block that is lost with its worker is computed again from its source, by Dask itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import time
import uuid
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from skadmm import _cancel
from skadmm.backends import tasks
from skadmm.backends.base import Evaluation, StoredSamples
from skadmm.backends.dask import worker
from skadmm.backends.dask.transport import DirectTransport, Request, TransportFailed
from skadmm.backends.kinds import is_dask
from skadmm.backends.local import LocalBackend, normalised
from skadmm.backends.slicing import stack_rows
from skadmm.kernels.samples import Samples

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


class Pending(NamedTuple):
    """A question under way."""

    request: Request
    line: Any
    """Its answer to come by line, or None."""
    future: Any
    """Its task, or None."""
    begun: float


class DaskBackend(StoredSamples):
    """Samples on workers.

    Parameters
    ----------
    X, target, weight : Dask collections, or lists of delayed blocks
    loss : loss
    ones : bool
        Add a column of ones, for an intercept.
    """

    name = "dask"
    local_rows = False
    slow_reads = True
    sparse = False

    def __init__(self, X: Any, target: Any, weight: Any, loss: Any, ones: bool = False, classes: Any = None) -> None:
        import dask

        self.client = _client()
        self.id = uuid.uuid4().hex
        self.loss = loss
        self._numbers = itertools.count(1)
        self._places: dict[int, str | None] = {}
        self._threads: dict[str | None, int] = {}
        self._transport = DirectTransport(self.client)
        self._bar: Any = None
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
        self.n, self.d, self.nnz = int(self.sizes.sum()), int(facts[0].width), sum(fact.stored for fact in facts)
        self.feature_names = facts[0].names
        self.classes = _two_classes([fact.classes for fact in facts], loss, classes) if loss.labels else None
        total = sum(fact.weight for fact in facts)
        if total <= 0:
            raise ValueError("sample_weight takes numbers ≥ 0, at least one of them > 0")
        self.weighted = weight is not None
        self._blocks = [
            self.client.submit(worker.make_samples, part, loss, self.classes, self.n / total, pure=False)
            for part in futures[: len(parts)]
        ]
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

    def _submit(self, name: str, function: Callable[..., Any], *arguments: Any, **where: Any) -> Any:
        """A task, which goes by its name in Dask's dashboard."""
        shown = name.replace("_", "-")  # the dashboard goes by letters and dashes
        shown = shown.replace("evaluate", "evaluation")  # and takes eight letters that begin with a to f for a hash
        key = f"skadmm-{shown}-{self.id[:8]}-{next(self._numbers)}"
        return self.client.submit(function, *arguments, key=key, pure=False, **where)

    def _at(self, place: str | None) -> dict[str, Any]:
        """Where a task runs: with its blocks, so that Dask makes no copies of them, whose memory would be empty."""
        return {} if place is None else {"workers": [place], "allow_other_workers": False}

    def _by_task(self, requests: list[Request]) -> list[Any]:
        """The futures of answers. Bars of progress vanish with their tasks, so one of that name stays behind them."""
        futures = [self._task_of(request) for request in requests]
        self._bar = self._submit(requests[0].kind, worker.nothing)
        return futures

    def _task_of(self, request: Request) -> Any:
        kind, place, blocks, function, arguments, way = request
        held, threads = [self._blocks[k] for k in blocks], self._threads.get(place, 1)
        return self._submit(kind, way, held, function, arguments, threads, **self._at(place))

    def _directly(self, requests: list[Request]) -> Any:
        """A future of the answers."""
        keys = [[self._blocks[k].key for k in request.blocks] for request in requests]
        threads = [self._threads.get(request.place, 1) for request in requests]
        return self._transport.ask(list(zip(requests, keys, threads, strict=True)))

    def _until_there(self, ask: Callable[[], Any]) -> Any:
        """An answer, asked for again while workers are lost that should give it."""
        while True:
            try:
                return ask()
            except WorkerGone:
                self.locate()

    def number(self) -> int:
        """A number that this home has never given before."""
        return next(self._numbers)

    def stateful(self, k: int, task: Callable[..., Any], *arguments: Any) -> Pending:
        """Ask one block that may look into its memory; its answer is for ``result``."""
        request = Request(task.__name__, self._places.get(k), [k], worker.run_stateful, [(task, arguments)])
        line = self._directly([request]) if self._transport.serve([request]) else None
        return Pending(request, line, None if line else self._by_task([request])[0], time.perf_counter())

    def result(self, asked: Pending) -> Any:
        """One answer."""
        request, line, future, begun = asked
        try:
            (answer,) = self._gather([future]) if line is None else self._wait(line)
        except (TransportFailed, WorkerGone):
            (k,) = request.blocks
            (answer,) = self._until_there(
                lambda: self._gather(self._by_task([request._replace(place=self._places.get(k))]))
            )
        self._transport.took(request, time.perf_counter() - begun)
        return answer

    def place(self, k: int) -> str | None:
        """The worker that holds a block, if known."""
        return self._places.get(k)

    def call_on_one(self, blocks: list[int], task: Callable[..., Any], *arguments: Any) -> Any:
        """Ask blocks on one worker for something that takes all of them; WorkerGone where they are not there."""
        request = Request(task.__name__, self._places[blocks[0]], blocks, task, arguments, worker.run_on_one)
        begun = time.perf_counter()
        try:
            by_line = self._transport.serve([request])
            (answer,) = self._wait(self._directly([request])) if by_line else self._gather(self._by_task([request]))
        except TransportFailed:
            raise WorkerGone from None
        self._transport.took(request, time.perf_counter() - begun)
        return answer

    def map_reduce(
        self, kind: str, function: Callable[..., Any], arguments: list[tuple[Any, ...]], no_retry: bool = False
    ) -> Any:
        """Ask all blocks and add up; `arguments` has an entry for each.

        Blocks side by side on one worker are asked together: what a round costs is the number of its messages. Should
        a worker be lost, its blocks are asked again where they are then; `firm` says that this will not do.
        """

        def ask() -> Any:
            requests = []
            for key, run in itertools.groupby(range(self.sizes.size), lambda k: self._places.get(k) or k):
                blocks, place = list(run), key if isinstance(key, str) else None
                requests.append(Request(kind, place, blocks, function, [arguments[k] for k in blocks]))
            begun = time.perf_counter()
            total = self._total(requests)
            self._transport.took(requests[0], time.perf_counter() - begun)
            return total

        return ask() if no_retry else self._until_there(ask)

    def _total(self, requests: list[Request]) -> Any:
        if len(requests) <= FAN_IN and self._transport.serve(requests):
            with contextlib.suppress(TransportFailed):
                return tasks.added(self._wait(self._directly(requests)))
        futures = self._by_task(requests)
        while len(futures) > 1:
            groups = [futures[first : first + FAN_IN] for first in range(0, len(futures), FAN_IN)]
            futures = [self._submit(f"{requests[0].kind}-added", tasks.added, group) for group in groups]
        return self._gather(futures)[0]

    def locate(self) -> None:
        """Where each block is now: the same worker is asked for it every time, while it lives."""
        from distributed import wait

        wait(self._blocks)
        self._threads = self.client.nthreads()
        held = self.client.who_has(self._blocks)
        self._places = {k: min(held.get(future.key, ()), default=None) for k, future in enumerate(self._blocks)}

    def _alive(self) -> bool:
        here = self.client.nthreads()
        return all(place is None or place in here for place in self._places.values())

    def _gather(self, futures: list[Any]) -> list[Any]:
        """The answers of tasks. They may be lost once more on their way here, so all of the way is watched."""
        client = self.client
        coming = asyncio.run_coroutine_threadsafe(client.gather(futures, asynchronous=True), client.loop.asyncio_loop)
        try:
            return self._wait(coming)
        except BaseException:
            client.cancel(futures)
            raise

    def _wait(self, coming: Any) -> list[Any]:
        """What is to come, with a look now and then at the clock and at the workers."""
        try:
            while True:
                _cancel.check_cancelled()
                try:
                    return coming.result(timeout=PATIENCE)
                except TimeoutError:
                    if coming.done():
                        raise
                    if not self._alive():
                        raise WorkerGone from None
        except BaseException:
            coming.cancel()
            raise

    def _each(self, name: str, function: Callable[..., Any], given: dict[int, tuple[Any, ...]]) -> list[Any]:
        """The answers of some blocks, one for each, to what each of them is given."""

        def ask() -> list[Any]:
            return self._gather([
                self._submit(name, function, self._blocks[k], *arguments, **self._at(self._places.get(k)))
                for k, arguments in given.items()
            ])  # fmt: skip

        return self._until_there(ask)

    def each(self, task: Callable[..., Any], *arguments: Any) -> list[Any]:
        """A task's answers, one for each block."""
        return self._each(task.__name__, worker.run_task, dict.fromkeys(range(self.sizes.size), (1.0, task, arguments)))

    def each_stateful(self, task: Callable[..., Any], arguments: list[tuple[Any, ...]]) -> list[Any]:
        """The answers of blocks that may look into their memory, one for each, to what each of them is given."""
        return self.map_reduce(task.__name__, worker.run_and_concat, [(task, given) for given in arguments])

    def mean(self, task: Callable[..., Any], *arguments: Any) -> Any:
        """A task's mean over all samples."""
        asked = [(size / self.n, task, arguments) for size in self.sizes]
        return self.map_reduce(task.__name__, worker.run_task, asked)

    def evaluate(self, x: np.ndarray) -> Evaluation:
        """All samples at `x`. The slopes stay on the workers; what stands for them is the point and its number."""
        point = (self.number(), x.copy())
        asked = [(worker.evaluate, (self.n, point))] * self.sizes.size
        loss, gradient = self.map_reduce("evaluate", worker.run_stateful, asked)
        return Evaluation(float(loss), np.array(gradient), point, None)

    def mean_conjugate(self, slopes: Any, scale: float) -> float:
        """(1/n) Σ w_i ℓ*(scale θ_i / w_i, b_i); θ the slopes of a look."""
        asked = [(worker.conjugate, (size / self.n, slopes, scale)) for size in self.sizes]
        return float(self.map_reduce("conjugate", worker.run_stateful, asked))

    # -- blocks of a method --------------------------------------------------------------------------------------

    def bounds(self, batch_size: int) -> list[tuple[int, int, int]]:
        """The blocks of a method: Dask's own, cut into pieces of `batch_size`."""
        return [
            (k, start, min(start + batch_size, int(size)))
            for k, size in enumerate(self.sizes)
            for start in range(0, int(size), batch_size)
        ]

    @property
    def natural_batch(self) -> int:
        """A whole block of Dask's."""
        return int(self.sizes.max())

    def block_sizes(self, batch_size: int) -> np.ndarray:
        """The number of samples in each block of `batch_size`, none of which spans two of Dask's."""
        return np.array([float(stop - start) for _, start, stop in self.bounds(batch_size)])

    def samples(self, batch_size: int = 1) -> Samples:
        """Rows on workers are not within reach of compiled code here."""
        raise ValueError("X lives on Dask: this works on rows in memory or in files only")

    def prefetch(self, order: np.ndarray, batch_size: int) -> None:
        """Blocks are in the memory of their workers."""

    def between_chunks(self) -> None:
        """End a run that was cancelled."""
        _cancel.check_cancelled()

    def take(self, indices: np.ndarray) -> LocalBackend:
        """A few samples by their numbers, copied into the memory of this process."""
        edges = np.cumsum((0, *self.sizes))
        block = np.searchsorted(edges, indices, side="right") - 1
        given = {int(k): (np.asarray(indices)[block == k] - edges[k],) for k in np.unique(block)}
        parts = self._each("take", worker.take, given)
        weight = normalised(np.concatenate([part.weight for part in parts])) if self.weighted else np.empty(0)
        rows, target = stack_rows([part.rows for part in parts]), np.concatenate([part.target for part in parts])
        return LocalBackend(rows, target, weight, self.loss, classes=self.classes, feature_names=self.feature_names)

    @property
    def fingerprint(self) -> tuple[str, ...]:
        """The checksum of every block."""
        return tuple(self._each("digest", worker.digest, dict.fromkeys(range(self.sizes.size), ())))


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

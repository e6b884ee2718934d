"""Calls of functions on blocks that the workers of a Dask cluster hold.

A request goes to the worker that holds its blocks, directly (``transport.py``) or as a task. A block that is lost with
its worker is computed again from its source by Dask itself; the request is then sent to where the block is.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import itertools
import time
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from skadmm import _cancel
from skadmm.backends import tasks, worker
from skadmm.backends.base import WorkerGone
from skadmm.backends.dask.placement import free_tasks
from skadmm.backends.dask.transport import DirectTransport, Request, TransportFailed, in_loop_of

if TYPE_CHECKING:
    from distributed import Client, Future

FAN_IN = 8
"""Responses that one task adds up. The sums are formed on the workers, so that the driver receives one of them."""
POLL_SECONDS = 0.2
"""Seconds between two checks, while waiting, of whether the run was cancelled or a worker was lost."""
STUCK_SECONDS = 1.0
"""Seconds between two checks, while waiting, of whether tasks wait for a worker that is gone."""

T = TypeVar("T")


class Pending(NamedTuple):
    """A request under way: exactly one of `direct` and `task` is set."""

    request: Request
    direct: concurrent.futures.Future[list[Any]] | None
    """The response of the direct transport, in a list."""
    task: Future | None
    """The response of a Dask task."""
    begun: float
    """When it was sent, by ``time.perf_counter``."""


class BlockCalls:
    """Blocks on workers, each with a memory of its own, and calls of functions on them."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.sizes = np.empty(0, np.int64)
        """The number of samples in each block."""
        self._id = uuid.uuid4().hex[:8]
        """Part of the key of every task."""
        self._numbers = itertools.count(1)
        self._blocks: list[Future] = []
        self._places: dict[int, str | None] = {}
        """The address of the worker that holds each block."""
        self._threads: dict[str | None, int] = {}
        """The number of threads of each worker."""
        self._freed_at = time.monotonic()
        """When tasks that wait for a worker that is gone were last started."""
        self._transport = DirectTransport(client)
        self._bar: Future | None = None
        """A task of the last kind, kept so that its progress bar stays in Dask's dashboard."""

    def hold(self, blocks: list[Future], sizes: np.ndarray) -> None:
        """Keep these blocks; `sizes` is the number of samples in each."""
        self._blocks, self.sizes = blocks, sizes
        self.locate()
        self.client.run_on_scheduler(free_tasks, [block.key for block in blocks])

    # -- where blocks are ------------------------------------------------------------------------------------------

    def locate(self) -> None:
        """Find out where each block is. Requests for it go to this worker until the next call."""
        from distributed import wait

        while True:
            _cancel.check_cancelled()
            try:
                wait(self._blocks, timeout=POLL_SECONDS)
                break
            except TimeoutError:
                self._free_stuck()
        self._threads = self.client.nthreads()
        held = self.client.who_has(self._blocks)
        self._places = {k: min(held.get(future.key, ()), default=None) for k, future in enumerate(self._blocks)}

    def place(self, k: int) -> str | None:
        """The address of the worker that holds block k; None where it is not known."""
        return self._places.get(k)

    def number(self) -> int:
        """A number that was not returned before."""
        return next(self._numbers)

    # -- calls -----------------------------------------------------------------------------------------------------

    def stateful(self, k: int, task: Callable[..., Any], *arguments: Any) -> Pending:
        """Start a task on block k and its memory. The pending request it returns is for :meth:`result`."""
        request = Request(task.__name__, self._places.get(k), [k], worker.run_stateful, [(task, arguments)])
        begun = time.perf_counter()
        if self._transport.serves([request]):
            return Pending(request, self._send([request]), None, begun)
        return Pending(request, None, self._submit_all([request])[0], begun)

    def result(self, pending: Pending) -> Any:
        """The response to a pending request."""
        request, direct, task, begun = pending
        try:
            (response,) = self._gather([task]) if direct is None else self._wait(direct)
        except (TransportFailed, WorkerGone):
            (k,) = request.blocks
            (response,) = self._retried(
                lambda: self._gather(self._submit_all([request._replace(place=self._places.get(k))]))
            )
        self._transport.record(request, time.perf_counter() - begun)
        return response

    def call_on_one(self, blocks: list[int], task: Callable[..., Any], *arguments: Any) -> Any:
        """Call a task on several blocks of one worker at once; raises WorkerGone where they are not there."""
        request = Request(task.__name__, self._places[blocks[0]], blocks, task, arguments, worker.run_on_one)
        begun = time.perf_counter()
        try:
            direct = self._transport.serves([request])
            (response,) = self._wait(self._send([request])) if direct else self._gather(self._submit_all([request]))
        except TransportFailed:
            raise WorkerGone from None
        self._transport.record(request, time.perf_counter() - begun)
        return response

    def map_reduce(
        self, kind: str, function: Callable[..., Any], arguments: list[tuple[Any, ...]], *, retry: bool = True
    ) -> Any:
        """Call a function on every block and add up the responses; `arguments` has a tuple per block.

        Consecutive blocks on one worker share a request, because the cost of a round is that of its messages. With
        ``retry=False`` a lost worker raises WorkerGone; otherwise its blocks are found again and all are called again.
        """

        def attempt() -> Any:
            requests = []
            for key, run in itertools.groupby(range(self.sizes.size), lambda k: self._places.get(k) or k):
                blocks, place = list(run), key if isinstance(key, str) else None
                requests.append(Request(kind, place, blocks, function, [arguments[k] for k in blocks]))
            begun = time.perf_counter()
            total = self._total(requests)
            self._transport.record(requests[0], time.perf_counter() - begun)
            return total

        return self._retried(attempt) if retry else attempt()

    def each_stateful(self, task: Callable[..., Any], arguments: list[tuple[Any, ...]]) -> list[Any]:
        """The responses of all blocks to a task on a block and its memory; `arguments` has a tuple per block."""
        return self.map_reduce(task.__name__, worker.run_and_concat, [(task, given) for given in arguments])

    def call_on_each(self, name: str, function: Callable[..., Any], arguments: dict[int, tuple[Any, ...]]) -> list[Any]:
        """The responses of some blocks, which are the keys of `arguments`, in their order. Always sent as tasks."""

        def attempt() -> list[Any]:
            return self._gather([
                self._submit(name, function, self._blocks[k], *given, **_at(self._places.get(k)))
                for k, given in arguments.items()
            ])  # fmt: skip

        return self._retried(attempt)

    # -- sending ---------------------------------------------------------------------------------------------------

    def _submit(self, name: str, function: Callable[..., Any], *arguments: Any, **where: Any) -> Future:
        """A task that Dask's dashboard shows under `name`."""
        # The dashboard shows the part before the first dash. After a dash it drops words that begin like a hash in
        # hexadecimal digits and have its eight letters, such as "evaluate".
        key = f"skadmm_{name}-{self._id}-{next(self._numbers)}"
        return self.client.submit(function, *arguments, key=key, pure=False, **where)

    def _submit_all(self, requests: list[Request]) -> list[Future]:
        """Send requests as tasks. Progress bars vanish with their tasks, so an empty task of that name is kept."""
        futures = []
        for kind, place, blocks, function, arguments, call in requests:
            held, threads = [self._blocks[k] for k in blocks], self._threads.get(place, 1)
            futures.append(self._submit(kind, call, held, function, arguments, threads, **_at(place)))
        self._bar = self._submit(requests[0].kind, _nothing)
        return futures

    def _send(self, requests: list[Request]) -> concurrent.futures.Future[list[Any]]:
        """Send requests directly."""
        keys = [[self._blocks[k].key for k in request.blocks] for request in requests]
        threads = [self._threads.get(request.place, 1) for request in requests]
        return self._transport.send(list(zip(requests, keys, threads, strict=True)))

    def _total(self, requests: list[Request]) -> Any:
        """The sum of the responses."""
        if len(requests) <= FAN_IN and self._transport.serves(requests):
            with contextlib.suppress(TransportFailed):
                return tasks.added(self._wait(self._send(requests)))
        futures = self._submit_all(requests)
        while len(futures) > 1:
            groups = [futures[first : first + FAN_IN] for first in range(0, len(futures), FAN_IN)]
            futures = [self._submit(f"{requests[0].kind}_added", tasks.added, group) for group in groups]
        return self._gather(futures)[0]

    # -- waiting ---------------------------------------------------------------------------------------------------

    def _retried(self, attempt: Callable[[], T]) -> T:
        """The result of `attempt`, which is repeated each time a worker is lost."""
        while True:
            try:
                return attempt()
            except WorkerGone:
                self.locate()

    def _gather(self, futures: list[Any]) -> list[Any]:
        """The results of tasks. They can be lost on their way to the driver too, so all of the way is waited for."""
        coming: concurrent.futures.Future[list[Any]]
        coming = in_loop_of(self.client, self.client.gather(futures, asynchronous=True))
        try:
            return self._wait(coming)
        except BaseException:
            self.client.cancel(futures)
            raise

    def _wait(self, coming: concurrent.futures.Future[list[Any]]) -> list[Any]:
        """The result of a future; raises where the run was cancelled or a worker was lost meanwhile."""
        try:
            while True:
                _cancel.check_cancelled()
                try:
                    return coming.result(timeout=POLL_SECONDS)
                except TimeoutError:
                    if coming.done():
                        raise
                    if not self._all_alive():
                        raise WorkerGone from None
                    self._free_stuck()
        except BaseException:
            coming.cancel()
            raise

    def _free_stuck(self) -> None:
        """Start tasks that wait for a worker that is gone, at most every STUCK_SECONDS."""
        if time.monotonic() >= self._freed_at + STUCK_SECONDS:
            self.client.run_on_scheduler(free_tasks, [])
            self._freed_at = time.monotonic()

    def _all_alive(self) -> bool:
        alive = self.client.nthreads()
        return all(place is None or place in alive for place in self._places.values())


def _nothing() -> None:
    """The task that keeps a progress bar in Dask's dashboard."""


def _at(place: str | None) -> dict[str, Any]:
    """Options by which a task runs where its blocks are: elsewhere, Dask's copy of a block would have no memory."""
    return {} if place is None else {"workers": [place], "allow_other_workers": False}

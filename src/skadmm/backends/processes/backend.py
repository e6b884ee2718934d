"""Samples divided among processes of this machine: an executor without a cluster."""

from __future__ import annotations

import concurrent.futures
import itertools
import uuid
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np

from skadmm import _cancel
from skadmm.backends import tasks, worker
from skadmm.backends.base import WorkerGone
from skadmm.backends.processes.pool import WorkerProcess
from skadmm.backends.processes.serve import Call, HoldSamples
from skadmm.backends.processes.table import Processes
from skadmm.backends.remote import RemoteSamples
from skadmm.backends.tables import as_target, as_weight
from skadmm.kernels.rows import stored_entries
from skadmm.losses import Loss

POLL_SECONDS = 0.2
"""Seconds between two checks, while waiting, of whether the run was cancelled."""

T = TypeVar("T")


class Pending(NamedTuple):
    """A request under way."""

    message: Call
    response: concurrent.futures.Future[Any]


class ProcessBackend(RemoteSamples):
    """Samples on processes of this machine.

    Parameters
    ----------
    table : Processes
    target, weight : arrays, or None
        `weight` may be None; a table on disk has targets and weights of its own, where none are given.
    loss : loss
    ones : bool
        Add a last column of ones, for an intercept.
    """

    name = "processes"

    def __init__(self, table: Processes, target: Any, weight: Any, loss: Loss, ones: bool = False) -> None:
        n, d = table.shape
        self.table, self.loss, self._ones = table, loss, ones
        self.n, self.d, self.nnz = n, d + int(ones), stored_entries(table.rows) + n * int(ones)
        self.feature_names = table.names
        self.sizes = np.diff(table.edges)
        self._target, self.classes = as_target(table.target if target is None else target, n, loss)
        self._weight = as_weight(table.sample_weight if weight is None else weight, n)
        self.weighted = self._weight.size > 0
        self._key = uuid.uuid4().hex
        self._numbers = itertools.count(1)
        self._placed: dict[int, int] = {}
        """The generation of the worker that holds each block."""
        weakref.finalize(self, _forget, table.workers, self._key)
        self.locate()

    # -- where blocks are ------------------------------------------------------------------------------------------

    def number(self) -> int:
        """A number that was not returned before."""
        return next(self._numbers)

    def place(self, k: int) -> str | None:
        """The worker that holds block k."""
        return f"process {k}"

    def locate(self) -> None:
        """Start workers that have ended again, and give them their blocks."""
        for k, process in enumerate(self.table.workers):
            if not process.alive:
                process.start()
            if self._placed.get(k) == process.generation:
                continue
            self.table.place(k, self._ones)
            rows = slice(int(self.table.edges[k]), int(self.table.edges[k + 1]))
            weight = self._weight[rows] if self.weighted else self._weight
            held = HoldSamples(self._key, self.table.key(self._ones), k, self._target[rows], weight, self.loss)
            process.send(held).result()
            self._placed[k] = process.generation

    # -- calls -----------------------------------------------------------------------------------------------------

    def stateful(self, k: int, task: Callable[..., Any], *arguments: Any) -> Pending:
        """Start a task on block k and its memory. The pending request it returns is for :meth:`result`."""
        return self._started(k, worker.run_on_blocks, worker.run_stateful, [(task, arguments)])

    def result(self, pending: Pending) -> Any:
        """The response to a pending request."""
        try:
            return self._wait(pending.response)
        except WorkerGone:
            return self._retried(lambda: self._wait(self._sent(pending.message)))

    def call_on_one(self, blocks: list[int], task: Callable[..., Any], *arguments: Any) -> Any:
        """Call a task on several blocks of one worker at once; raises WorkerGone where they are not there."""
        (k,) = blocks  # a worker has one block
        return self._wait(self._started(k, worker.run_on_one, task, arguments).response)

    def map_reduce(
        self, kind: str, function: Callable[..., Any], arguments: list[tuple[Any, ...]], *, retry: bool = True
    ) -> Any:
        """Call a function on every block and add up the responses; `arguments` has a tuple per block."""

        def attempt() -> Any:
            return tasks.added(self._responses(function, dict(enumerate(arguments))))

        return self._retried(attempt) if retry else attempt()

    def each_stateful(self, task: Callable[..., Any], arguments: list[tuple[Any, ...]]) -> list[Any]:
        """The responses of all blocks to a task on a block and its memory; `arguments` has a tuple per block."""
        return self.map_reduce(task.__name__, worker.run_and_concat, [(task, given) for given in arguments])

    def call_on_each(self, name: str, function: Callable[..., Any], arguments: dict[int, tuple[Any, ...]]) -> list[Any]:
        """The responses of some blocks, which are the keys of `arguments`, in their order."""
        return self._retried(lambda: self._responses(function, arguments))

    def _responses(self, function: Callable[..., Any], arguments: dict[int, tuple[Any, ...]]) -> list[Any]:
        started = [self._started(k, worker.run_on_blocks, function, [given]) for k, given in arguments.items()]
        return [self._wait(pending.response) for pending in started]

    def _started(self, k: int, call: Callable[..., Any], function: Callable[..., Any], arguments: Any) -> Pending:
        message = Call(self._key, [k], call, function, arguments)
        return Pending(message, self._sent(message))

    def _sent(self, message: Call) -> concurrent.futures.Future[Any]:
        (k,) = message.blocks
        process = self.table.workers[k]
        if self._placed.get(k) != process.generation:  # another problem has replaced a worker that was lost
            gone: concurrent.futures.Future[Any] = concurrent.futures.Future()
            gone.set_exception(WorkerGone())
            return gone
        return process.send(message)

    def _retried(self, attempt: Callable[[], T]) -> T:
        """The result of `attempt`, which is repeated each time a worker is lost."""
        while True:
            try:
                return attempt()
            except WorkerGone:
                self.locate()

    def _wait(self, coming: concurrent.futures.Future[T]) -> T:
        """The result of a future; raises where the run was cancelled meanwhile."""
        while True:
            _cancel.check_cancelled()
            try:
                return coming.result(timeout=POLL_SECONDS)
            except TimeoutError:
                if coming.done():
                    raise


def _forget(processes: tuple[WorkerProcess, ...], key: str) -> None:
    for process in processes:
        process.forget(key)

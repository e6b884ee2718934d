"""Requests that are sent to workers directly, past the scheduling of tasks.

Dask takes about 10 ms to bring a task to a worker and its result back; ``Client.run``, which does not go through the
scheduler's graph of tasks, takes 2 ms. The direct transport keeps nothing: the blocks stay Dask's. Where a block has
moved, the transport fails, and the request is sent again as a task.

Requests that take longer are sent as tasks, so that they show in Dask's dashboard, and so is one of the short ones
every second. On both ways the same function runs on the same blocks and the responses are added up in the same order,
so the way changes no bit of the result.
"""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

import numpy as np

from skadmm.backends import worker

if TYPE_CHECKING:
    from dask.typing import Key
    from distributed import Client

T = TypeVar("T")
SHORT = 1.0
"""Seconds; requests of a kind that last took longer are sent as tasks."""
SHOWN_EVERY = 1.0
"""Seconds between two requests that are sent as tasks for Dask's dashboard, however short they are."""


def in_loop_of(client: Client, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
    """Run a coroutine in the event loop of a client, which has a thread of its own."""
    return asyncio.run_coroutine_threadsafe(coroutine, cast(Any, client.loop).asyncio_loop)


class Request(NamedTuple):
    """A function to be called on blocks that one worker holds; the response is a sum over them."""

    kind: str
    """A name, shown in Dask's dashboard; requests of one kind take about the same time."""
    place: str | None
    """The address of the worker that holds the blocks, if known."""
    blocks: list[int]
    """The numbers of the blocks."""
    function: Callable[..., Any]
    """A function of one block, ``worker.run_task`` or ``worker.run_stateful``; or a function of all blocks at once."""
    arguments: Any
    """A tuple per block; or one tuple for all of them at once."""
    call: Callable[..., Any] = worker.run_on_blocks
    """How the worker calls it: ``worker.run_on_blocks``, or ``worker.run_on_one`` for all of them at once."""


class TransportFailed(Exception):  # noqa: N818
    """A worker did not respond, or did not hold the blocks."""


class NotHere:
    """The response of a worker that does not hold the blocks of a request."""


async def respond(
    keys: list[Key], call: Callable[..., Any], function: Callable[..., Any], arguments: Any, threads: int,
    dask_worker: Any,
) -> Any:  # fmt: skip
    """The result that `call` as a Dask task on the blocks of these keys would give; runs on the worker."""
    try:
        blocks = [dask_worker.data[key] for key in keys]
    except KeyError:
        return NotHere()
    run = functools.partial(call, blocks, function, arguments, threads)
    return await asyncio.get_running_loop().run_in_executor(worker.pool("transport", threads), run)


class DirectTransport:
    """Sends requests to workers directly."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._seconds: dict[str, float] = {}
        """How long the last request of each kind took."""
        self._shown = -np.inf
        """When a request was last sent as a task."""

    def serves(self, requests: list[Request]) -> bool:
        """Should these requests be sent directly? If not, the caller sends them as tasks."""
        known = all(request.place is not None for request in requests)
        now = time.monotonic()
        if known and self._seconds.get(requests[0].kind, SHORT) < SHORT and now < self._shown + SHOWN_EVERY:
            return True
        self._shown = now
        return False

    def record(self, request: Request, seconds: float) -> None:
        """Remember how long a request of this kind took, on either way."""
        self._seconds[request.kind] = seconds

    def send(self, addressed: list[tuple[Request, list[Key], int]]) -> Future[list[Any]]:
        """Send every request with the keys of its blocks and a number of threads.

        Returns a future of all the responses. It raises :class:`TransportFailed`, or an error of the function itself.
        """
        return in_loop_of(self._client, self._responses(addressed))

    async def _responses(self, addressed: list[tuple[Request, list[Key], int]]) -> list[Any]:
        coming = [
            self._client.run(respond, keys, request.call, request.function, request.arguments, threads,
                             workers=[str(request.place)], asynchronous=True)
            for request, keys, threads in addressed
        ]  # fmt: skip
        try:
            by_worker = await asyncio.gather(*coming)
        except OSError as error:
            raise TransportFailed from error
        responses = [next(iter(one.values()), NotHere()) for one in by_worker]
        if any(isinstance(one, NotHere) for one in responses):
            raise TransportFailed
        return responses

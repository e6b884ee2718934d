"""Direct lines to the workers of a cluster, for questions that are answered sooner than a task is handed out.

Dask takes about 10 ms to bring a task to a worker and its answer back; its ``Client.run``, which goes past the
scheduling of tasks, takes 2. A line keeps nothing: the blocks stay Dask's. When a block has moved the line is cut, and
the question is asked again as a task.

Questions that take longer are asked as tasks, so that they show in Dask's dashboard, and so is one of the short ones
every second. Either way the same function runs on the same blocks and the answers are added up in the same order, so
which way a question goes changes no bit.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, NamedTuple

import numpy as np

from skadmm.backends.dask import worker

SHORT = 1.0
"""Seconds; questions of a kind that last took longer are asked as tasks."""
SHOWN_EVERY = 1.0
"""Seconds; so often a question is asked as a task at least, for Dask's dashboard. A task takes some 10 ms."""


class Request(NamedTuple):
    """What is asked of some blocks side by side on one worker; the answer is a sum."""

    kind: str
    """A name, by which it goes in Dask's dashboard; questions of one kind take about the same time."""
    place: str | None
    """The worker that holds them, if known."""
    blocks: list[int]
    function: Callable[..., Any]
    """``worker.run_task`` or ``worker.run_stateful``; or what is asked of all of them at once."""
    arguments: Any
    """For each block a tuple; or those for all of them at once."""
    way: Callable[..., Any] = worker.run_on_blocks
    """Or ``worker.run_as_one``."""


class TransportFailed(Exception):  # noqa: N818
    """A worker did not answer, or did not have the blocks."""


class DirectTransport:
    """Asks workers directly."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._took: dict[str, float] = {}
        self._shown = -np.inf
        """When a question was last asked as a task."""

    def serve(self, requests: list[Request]) -> bool:
        """Should these questions go by line?"""
        known = all(request.place is not None for request in requests)
        now = time.monotonic()
        if known and self._took.get(requests[0].kind, SHORT) < SHORT and now < self._shown + SHOWN_EVERY:
            return True
        self._shown = now
        return False

    def took(self, request: Request, seconds: float) -> None:
        """Remember how long questions of a kind take."""
        self._took[request.kind] = seconds

    def ask(self, asked: list[tuple[Request, list[str], int]]) -> Future[list[Any]]:
        """Ask every question, of blocks by these keys, on so many threads; a future of all the answers, which raises
        LineCut or the question's own error."""
        return asyncio.run_coroutine_threadsafe(self._ask(asked), self._client.loop.asyncio_loop)

    async def _ask(self, asked: list[tuple[Request, list[str], int]]) -> list[Any]:
        coming = [
            self._client.run(worker.answer, keys, request.way, request.function, request.arguments, threads,
                             workers=[request.place], asynchronous=True)
            for request, keys, threads in asked
        ]  # fmt: skip
        try:
            told = await asyncio.gather(*coming)
        except OSError as error:
            raise TransportFailed from error
        answers = [next(iter(one.values()), worker.NotHere()) for one in told]
        if any(isinstance(one, worker.NotHere) for one in answers):
            raise TransportFailed
        return answers

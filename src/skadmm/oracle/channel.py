"""Requests to the oracles of all blocks of a cluster, whose results are added up.

What a worker keeps between two requests may be lost with it. A request carries its number; a worker that has not
answered the one before it says so, and the solver starts again from the point it stands at.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from skadmm.backends.base import WorkerGone
from skadmm.backends.tasks import Lost
from skadmm.backends.worker import run_stateful
from skadmm.kernels.samples import Samples
from skadmm.oracle import worker_files
from skadmm.oracle.base import LostMemory
from skadmm.oracle.local import OracleFreeColumns
from skadmm.problem.free_columns import ColumnSums


class Cluster(Protocol):
    """What the oracle needs from a backend: requests to all blocks at once, each on the worker that holds the block."""

    n: int
    sizes: np.ndarray
    """The number of samples in each block."""

    def map_reduce(
        self, kind: str, function: Callable[..., Any], arguments: list[tuple[Any, ...]], *, retry: bool = True
    ) -> Any:
        """Call `function` on every block with its arguments, and add up the results."""

    def locate(self) -> None:
        """Find out which worker holds each block now."""


class KeptBeside(Protocol):
    """The checkpoint of a run, next to which workers keep their part."""

    written: int
    """How many times the checkpoint was written."""

    @property
    def beside(self) -> Any:
        """The folder for the parts of the workers."""


class Request(NamedTuple):
    """A method of the oracle on each worker, or of one of its parts, and its arguments."""

    part: Callable[[Any], Any]
    method: Callable[..., Any]
    arguments: tuple[Any, ...]


def whole(oracle: Any) -> Any:
    """The oracle of a block itself."""
    return oracle


def free_columns(oracle: Any) -> OracleFreeColumns:
    """The free columns of a block's oracle."""
    return oracle.free_columns


def nothing(oracle: Any) -> None:
    """A request for nothing, with which those before it arrive."""


def start_oracle(
    samples: Samples, memory: dict[str, Any], run: str, first: int, make: Callable[[Samples, int], Any]
) -> float:
    """Create a new oracle for this block."""
    memory[run] = (0, make(samples, first))
    return 0.0


def end_oracle(samples: Samples, memory: dict[str, Any], run: str) -> float:
    """Drop the oracle of a run that has ended."""
    memory.pop(run, None)
    return 0.0


def ask_oracle(samples: Samples, memory: dict[str, Any], run: str, number: int, requests: list[Request]) -> Any:
    """Send the next requests to this block's oracle, and return the result of the last of them."""
    last, oracle = memory.get(run, (None, None))
    if last != number - 1:
        return (Lost(),)
    memory[run] = (-1, None)  # a request that is interrupted leaves a state that must not be used
    for part, method, arguments in requests:
        result = method(part(oracle), *arguments)
    memory[run] = (number, oracle)
    return (0.0 if result is None else result,)


class Channel:
    """Requests to the oracles of all blocks, one after the other."""

    def __init__(self, backend: Cluster, make: Callable[[Samples, int], Any]) -> None:
        """`make` makes the oracle of a block from its samples and the number of the first of them among all."""
        self._backend, self._make = backend, make
        self.run = f"oracle-{uuid.uuid4().hex}"
        self.number = -1
        """The number of the last request; −1 before the first and after the last."""
        self.waiting: list[Request] = []
        """Requests without a result, which are sent with the next one: a round costs more than its content."""

    def ask(self, method: Callable[..., Any], *arguments: Any, part: Callable[[Any], Any] = whole) -> Any:
        """The sum of the results over all blocks."""
        requests, self.waiting = [*self.waiting, Request(part, method, arguments)], []
        if self.number < 0:
            self.restart()
        self.number += 1
        kind = method.__name__ if part is whole else f"{part.__name__}_{method.__name__}"
        try:
            (result,) = self.every_block(kind, ask_oracle, [(self.run, self.number, requests)] * self.blocks)
        except WorkerGone:
            raise LostMemory from None
        if isinstance(result, Lost):
            raise LostMemory
        return result

    def tell(self, method: Callable[..., Any], *arguments: Any, part: Callable[[Any], Any] = whole) -> None:
        """Add a request without a result, which is sent with the next one."""
        self.waiting.append(Request(part, method, arguments))

    def deliver(self) -> None:
        """Send the requests without a result now."""
        if self.waiting:
            self.ask(nothing)

    @property
    def blocks(self) -> int:
        """The number of blocks."""
        return int(self._backend.sizes.size)

    @property
    def n(self) -> int:
        """The number of samples."""
        return self._backend.n

    def every_block(self, kind: str, task: Callable[..., Any], arguments: list[tuple[Any, ...]]) -> Any:
        """A task for every block, on the worker that holds it; the sum of the results."""
        return self._backend.map_reduce(kind, run_stateful, [(task, given) for given in arguments], retry=False)

    def restart(self) -> None:
        """A fresh oracle for every block."""
        sizes = self._backend.sizes
        first = np.cumsum(sizes) - sizes
        self.number, self.waiting = 0, []
        while True:
            self._backend.locate()
            try:
                self.every_block("start_oracle", start_oracle, [(self.run, int(one), self._make) for one in first])
                break
            except WorkerGone:
                continue

    def close(self) -> None:
        """Let the workers drop the run, because it has ended."""
        if self.number >= 0:
            with contextlib.suppress(WorkerGone):  # a lost worker keeps nothing
                self.every_block("end_oracle", end_oracle, [(self.run,)] * self.blocks)
        self.number, self.waiting = -1, []


class KeptOnWorkers:
    """What workers keep for their blocks next to a checkpoint."""

    def __init__(self, channel: Channel, checkpoint: KeptBeside | None) -> None:
        self._channel, self._checkpoint = channel, checkpoint
        self._kept, self._offered = "", ("", 0)
        """The name of what workers keep for the checkpoint in the file; and the name of what they keep for the last
        state, with the number of checkpoints written before it."""

    def state(self) -> dict[str, Any]:
        """The name under which the workers keep their state next to the checkpoint; empty where they could not."""
        channel, keeper = self._channel, self._checkpoint
        if channel.number < 0 or keeper is None:
            return {"kept": ""}
        if channel.waiting:
            try:
                channel.deliver()
            except LostMemory:
                return {"kept": ""}
        if keeper.written > self._offered[1]:
            self._kept = self._offered[0]
        name = uuid.uuid4().hex
        self._offered = name, keeper.written
        given = (channel.run, channel.number, keeper.beside, name, [self._kept])
        try:
            (failed,) = channel.every_block("keep", worker_files.keep, [given] * channel.blocks)
        except WorkerGone:
            failed = Lost()
        return {"kept": "" if isinstance(failed, Lost) or failed else name}

    def resume(self, state: dict[str, Any]) -> bool:
        """Let the workers read what they have kept, and return whether they could."""
        channel, keeper, name = self._channel, self._checkpoint, state["kept"]
        if name == "" or keeper is None:
            return False
        if not (isinstance(name, str) and worker_files.NAME.fullmatch(name)):
            raise ValueError("'kept' is not a name under which workers keep their state")
        channel.restart()
        given = (channel.run, keeper.beside, name)
        try:
            (result,) = channel.every_block("resume_from", worker_files.resume_from, [given] * channel.blocks)
        except WorkerGone:
            result = Lost()
        if isinstance(result, Lost):
            channel.restart()
            return False
        self._kept = name
        return True


class RemoteFreeColumns:
    """The free columns of all blocks."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    def begin(self, free: np.ndarray) -> np.ndarray:
        """Σ |a_j| |θ|."""
        return self._channel.ask(OracleFreeColumns.begin, free, part=free_columns)

    def sums(self) -> ColumnSums:
        """The sums at the current margins."""
        return ColumnSums(*self._channel.ask(OracleFreeColumns.sums, part=free_columns))

    def reach(self, step: np.ndarray) -> float:
        """The largest move of a margin."""
        return float(self._channel.ask(OracleFreeColumns.reach, step, part=free_columns))

    def move(self, step: np.ndarray) -> None:
        """Move the coefficients; sent with the next request."""
        self._channel.tell(OracleFreeColumns.move, step, part=free_columns)

    def correct(self, step: np.ndarray) -> np.ndarray:
        """Change the slopes, and return Σ θ a_j."""
        return self._channel.ask(OracleFreeColumns.correct, step, part=free_columns)

    def end(self, found: bool) -> np.ndarray:
        """Σ θ a over all features."""
        return self._channel.ask(OracleFreeColumns.end, found, part=free_columns)

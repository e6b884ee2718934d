"""The oracle over rows on a cluster: every block has one on its worker, and their sums are added up.

What a worker keeps between two requests may be lost with it. A request carries its number; a worker that has not
answered the one before it says so, and the solver builds its model anew from the point it stands at.
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
from skadmm.oracle.base import (
    CURVED,
    LARGE_SHIFT,
    LARGE_SHIFT_SHARE,
    MOST_SHIFTED,
    Ahead,
    BatchSums,
    CurvatureChange,
    Ends,
    FullSums,
    LostMemory,
    ShiftAlong,
    ShiftSums,
)
from skadmm.oracle.batches import GrowingBatch
from skadmm.oracle.large_shifts import LocalLargeShifts
from skadmm.oracle.local import OracleFreeColumns
from skadmm.oracle.single_pass import SinglePassOracle
from skadmm.problem.free_columns import ColumnSums

EDGES = 256
"""Thresholds tried in one round, when one is sought among values on several workers."""


class Cluster(Protocol):
    """What the oracle needs of a backend: requests to all blocks of rows at once, each on the worker that holds it."""

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
    """The checkpoint of a run, beside which workers keep their part."""

    written: int
    """How often it was."""

    @property
    def beside(self) -> Any:
        """The folder for it."""


class Request(NamedTuple):
    """A method of the oracle on each worker, or of one of its parts, and its arguments."""

    part: Callable[[SinglePassOracle], Any]
    method: Callable[..., Any]
    arguments: tuple[Any, ...]


def whole(oracle: SinglePassOracle) -> SinglePassOracle:
    """The oracle of a block itself."""
    return oracle


def large_shifts(oracle: SinglePassOracle) -> LocalLargeShifts:
    """Its large-shift samples."""
    return oracle.large_shifts


def free_columns(oracle: SinglePassOracle) -> OracleFreeColumns:
    """Its free columns."""
    return oracle.free_columns


def start_oracle(samples: Samples, memory: dict[str, Any], run: str, first: int) -> float:
    """A fresh oracle for this block."""
    memory[run] = (0, SinglePassOracle(samples, first))
    return 0.0


def end_oracle(samples: Samples, memory: dict[str, Any], run: str) -> float:
    """Drop the oracle of a run that has ended."""
    memory.pop(run, None)
    return 0.0


def ask_oracle(samples: Samples, memory: dict[str, Any], run: str, number: int, requests: list[Request]) -> Any:
    """The next requests to this block's oracle; the result of the last of them."""
    last, oracle = memory.get(run, (None, None))
    if last != number - 1:
        return (Lost(),)
    memory[run] = (-1, None)  # should this be cut short, what is left is of no use
    for part, method, arguments in requests:
        result = method(part(oracle), *arguments)
    memory[run] = (number, oracle)
    return (0.0 if result is None else result,)


class Channel:
    """Requests to the oracles of all blocks, one after the other."""

    def __init__(self, backend: Cluster) -> None:
        self._backend = backend
        self.run = f"oracle-{uuid.uuid4().hex}"
        self.number = -1
        """Of the last request; −1 before the first and after the last."""
        self.waiting: list[Request] = []
        """Requests without a result, which go along with the next one: a round costs more than what it carries."""

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
        """A request without a result: it goes with the next one."""
        self.waiting.append(Request(part, method, arguments))

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
                self.every_block("start_oracle", start_oracle, [(self.run, int(one)) for one in first])
                break
            except WorkerGone:
                continue

    def close(self) -> None:
        """The run has ended: the workers may forget it."""
        if self.number >= 0:
            with contextlib.suppress(WorkerGone):  # and its memory with it
                self.every_block("end_oracle", end_oracle, [(self.run,)] * self.blocks)
        self.number, self.waiting = -1, []


class RemoteOracle:
    """Asks the oracles of all blocks, and adds up."""

    def __init__(self, backend: Cluster, checkpoint: KeptBeside | None = None) -> None:
        self._channel, self._checkpoint = Channel(backend), checkpoint
        self.large_shifts = RemoteLargeShifts(self._channel)
        self.free_columns = RemoteFreeColumns(self._channel)
        self._kept, self._offered = "", ("", 0)
        """What workers keep for the checkpoint in the file; and for the last one, with how many were written then."""

    # -- storage -------------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Under which name the workers keep all that they know beside the checkpoint; none where they could not."""
        channel, keeper = self._channel, self._checkpoint
        if channel.number < 0 or keeper is None:
            return {"kept": ""}
        if channel.waiting:
            try:
                channel.ask(LocalLargeShifts.end, part=large_shifts)
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
        """Let the workers read what they have kept; could they?"""
        channel, keeper, name = self._channel, self._checkpoint, state["kept"]
        if name == "" or keeper is None:
            return False
        if not (isinstance(name, str) and worker_files.NAME.fullmatch(name)):
            raise ValueError("the name of what the workers keep is not one")
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

    def restart(self) -> None:
        """A fresh oracle for every block."""
        self._channel.restart()

    def close(self) -> None:
        """The workers may forget the run."""
        self._channel.close()

    # -- a step --------------------------------------------------------------------------------------------------

    def begin(
        self, batch: GrowingBatch | None, x: np.ndarray | None, new: bool = False, stale: float | None = None
    ) -> None:
        """Choose the samples; goes with the next request."""
        self._channel.tell(SinglePassOracle.begin, batch, x)

    def along(self, step: np.ndarray | None, t: float) -> float:
        """Σ of the losses at t times a step."""
        return float(self._channel.ask(SinglePassOracle.along, step, t))

    def ends(self, step: np.ndarray) -> Ends:
        """Σ of the losses at both ends of a step."""
        return Ends(*self._channel.ask(SinglePassOracle.ends, step))

    def losses(self, t: float) -> float:
        """Σ of the losses at another t."""
        return float(self._channel.ask(SinglePassOracle.losses, t))

    def join(self, length: float, new: bool) -> BatchSums:
        """Take the step of a batch."""
        return BatchSums(*self._channel.ask(SinglePassOracle.join, length, new))

    def settle(self, length: float) -> FullSums:
        """Take the step of all samples."""
        return FullSums(*self._channel.ask(SinglePassOracle.settle, length))

    def renew(self, stale: float, afresh: bool) -> CurvatureChange:
        """Bring Σ h a aᵀ up to date."""
        return CurvatureChange(*self._channel.ask(SinglePassOracle.renew, stale, afresh))

    def batch_ahead(self, step: np.ndarray | None, new: bool) -> tuple[Ends, BatchSums]:
        """All of a batch's step in one request."""
        ends, sums = self._channel.ask(SinglePassOracle.batch_ahead, step, new)
        return Ends(*ends), BatchSums(*sums)

    def batch_taken(self) -> None:
        """It is taken whole; goes with the next request."""
        self._channel.tell(SinglePassOracle.batch_taken)

    def evaluate_ahead(self, step: np.ndarray | None, both: bool, stale: float | None) -> Ahead:
        """All of a step of all samples in one request."""
        ends, sums, H, count = self._channel.ask(SinglePassOracle.evaluate_ahead, step, both, stale)
        return Ahead(Ends(*ends), FullSums(*sums), H, int(count))

    def evaluation_taken(self) -> None:
        """It is taken whole; goes with the next request."""
        self._channel.tell(SinglePassOracle.evaluation_taken)

    def renewed(self, stale: float) -> None:
        """H has been brought up to date; goes with the next request."""
        self._channel.tell(SinglePassOracle.renewed, stale)

    def conjugate(self, scale: float) -> float:
        """Σ w ℓ*(scale θ / w)."""
        return float(self._channel.ask(SinglePassOracle.conjugate, scale))

    def margins_and_slopes(self) -> None:
        """They stay on the workers."""
        return


class RemoteLargeShifts:
    """The large-shift samples of all blocks."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    def threshold(self) -> float:
        """The shift above which a sample is one of them: a search over numbers, a few rounds of counting."""
        limit = int(LARGE_SHIFT_SHARE * self._channel.n)
        low = LARGE_SHIFT
        if self._count(np.array([low]))[0] <= limit:
            return low
        high = float(self._channel.ask(LocalLargeShifts.largest, part=large_shifts))
        while np.nextafter(low, np.inf) < high:
            edges = np.unique(np.linspace(low, high, EDGES + 2)[1:-1])
            edges = edges[(edges > low) & (edges < high)]
            if edges.size == 0:
                break
            few = self._count(edges) <= limit
            at = int(np.argmax(few)) if few.any() else edges.size
            high = float(edges[at]) if at < edges.size else high
            low = float(edges[at - 1]) if at > 0 else low
        return high

    def _count(self, edges: np.ndarray) -> np.ndarray:
        return self._channel.ask(LocalLargeShifts.count, edges, part=large_shifts)

    def curved(self, limit: float) -> float:
        """The curvature above which the samples with large shifts are few; 0 where they are not."""
        if self._count(np.array([LARGE_SHIFT]))[0] <= MOST_SHIFTED * self._channel.n:
            return 0.0
        level = CURVED * float(self._channel.ask(LocalLargeShifts.max_curvature, part=large_shifts))
        count = int(self._channel.ask(LocalLargeShifts.count_curved, level, part=large_shifts)) if level > 0.0 else 0
        return level if 0 < count <= limit else 0.0

    def begin(self, threshold: float, count: int | None = None, curvature: float = -1.0) -> int:
        """Copy them, on each worker; how many there are, which takes a request where the caller does not know it."""
        if count is None:
            return int(self._channel.ask(LocalLargeShifts.begin, threshold, None, curvature, part=large_shifts))
        self._channel.tell(LocalLargeShifts.begin, threshold, None, curvature, part=large_shifts)
        return count

    def along(self, step: np.ndarray) -> ShiftAlong:
        """Their losses along a step."""
        return ShiftAlong(*self._channel.ask(LocalLargeShifts.along, step, part=large_shifts))

    def losses(self, t: float) -> float:
        """Σ of their losses at t times the step."""
        return float(self._channel.ask(LocalLargeShifts.losses, t, part=large_shifts))

    def move(self, length: float) -> ShiftSums:
        """Take the step."""
        return ShiftSums(*self._channel.ask(LocalLargeShifts.move, length, part=large_shifts))

    def end(self) -> None:
        """The next ``begin`` of a step does it."""


class RemoteFreeColumns:
    """The free columns of all blocks."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    def begin(self, free: np.ndarray) -> np.ndarray:
        """Σ |a_j| |θ|."""
        return self._channel.ask(OracleFreeColumns.begin, free, part=free_columns)

    def sums(self) -> ColumnSums:
        """At the margins now."""
        return ColumnSums(*self._channel.ask(OracleFreeColumns.sums, part=free_columns))

    def reach(self, step: np.ndarray) -> float:
        """The largest move of a margin."""
        return float(self._channel.ask(OracleFreeColumns.reach, step, part=free_columns))

    def move(self, step: np.ndarray) -> None:
        """Move the coefficients; goes with the next request."""
        self._channel.tell(OracleFreeColumns.move, step, part=free_columns)

    def correct(self, step: np.ndarray) -> np.ndarray:
        """Change the slopes; Σ θ a_j."""
        return self._channel.ask(OracleFreeColumns.correct, step, part=free_columns)

    def end(self, found: bool) -> np.ndarray:
        """Σ θ a over all features."""
        return self._channel.ask(OracleFreeColumns.end, found, part=free_columns)

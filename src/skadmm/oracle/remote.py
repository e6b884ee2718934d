"""The looks of second-order steps on a cluster: every block's own, on its worker, asked and added up.

What a worker keeps between two questions may be lost with it. A question carries its number; a worker that has not
answered the one before it says so, and the engine builds its model anew from the point it stands at.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable
from typing import Any

import numpy as np

from skadmm.backends.base import WorkerGone
from skadmm.backends.dask.worker import run_stateful
from skadmm.backends.tasks import Lost
from skadmm.kernels.samples import Samples
from skadmm.oracle import worker_files
from skadmm.oracle.local import EDGES, LARGE_SHIFT, LARGE_SHIFT_SHARE
from skadmm.oracle.single_pass import SinglePassOracle


class LostMemory(Exception):  # noqa: N818
    """A worker no longer knows where its samples stand."""


def start_oracle(samples: Samples, memory: dict[str, Any], run: str, first: int) -> float:
    """Looks of this block, fresh."""
    memory[run] = (0, SinglePassOracle(samples, first))
    return 0.0


def end_oracle(samples: Samples, memory: dict[str, Any], run: str) -> float:
    """Drop the looks of a run that has ended."""
    memory.pop(run, None)
    return 0.0


def ask_oracle(
    samples: Samples, memory: dict[str, Any], run: str, number: int, requests: list[tuple[str, tuple[Any, ...]]]
) -> Any:
    """The next questions to this block's looks; the answer to the last of them."""
    last, oracle = memory.get(run, (None, None))
    if last != number - 1:
        return (Lost(),)
    memory[run] = (-1, None)  # should this be cut short, what is left is of no use
    for name, arguments in requests:
        answer = getattr(oracle, name)(*arguments)
    memory[run] = (number, oracle)
    return (0.0 if answer is None else answer,)


class RemoteOracle:
    """Asks the looks of all blocks, and adds up."""

    here = False

    def __init__(self, backend: Any, checkpoint: Any = None) -> None:
        self._home, self._checkpoint = backend, checkpoint
        self._run = f"looks-{uuid.uuid4().hex}"
        self._number = -1
        self._waiting: list[tuple[str, tuple[Any, ...]]] = []
        """Questions without an answer, which go along with the next one: a round costs more than what it carries."""
        self._kept, self._offered = "", ("", 0)
        """What workers keep for the checkpoint in the file; and for the last one, with how many were written then."""

    def state(self) -> dict[str, Any]:
        """Under which name the workers keep all that they know beside the checkpoint; none where they could not."""
        keeper, blocks = self._checkpoint, self._home.sizes.size
        if self._number < 0 or keeper is None:
            return {"kept": ""}
        if self._waiting:
            try:
                self._ask("large_shift_end")
            except LostMemory:
                return {"kept": ""}
        if keeper.written > self._offered[1]:
            self._kept = self._offered[0]
        name = uuid.uuid4().hex
        self._offered = name, keeper.written
        given = (self._run, self._number, keeper.beside, name, [self._kept])
        try:
            (failed,) = self._all("keep", worker_files.keep, [given] * blocks)
        except WorkerGone:
            failed = Lost()
        return {"kept": "" if isinstance(failed, Lost) or failed else name}

    def resume(self, state: dict[str, Any]) -> bool:
        """Let the workers know again what they have kept; do they?"""
        name = state["kept"]
        if name == "":
            return False
        if not (isinstance(name, str) and worker_files.NAME.fullmatch(name)):
            raise ValueError("the name of what the workers keep is not one")
        self.restart()
        given = (self._run, self._checkpoint.beside, name)
        try:
            (answer,) = self._all("take_up", worker_files.resume_from, [given] * self._home.sizes.size)
        except WorkerGone:
            answer = Lost()
        if isinstance(answer, Lost):
            self.restart()
            return False
        self._kept = name
        return True

    def restart(self) -> None:
        """Fresh looks on every worker."""
        sizes = self._home.sizes
        first = np.cumsum(sizes) - sizes
        self._number, self._waiting = 0, []
        while True:
            self._home.locate()
            try:
                self._all("start_oracle", start_oracle, [(self._run, int(one)) for one in first])
                break
            except WorkerGone:
                continue

    def _all(self, kind: str, task: Callable[..., Any], arguments: list[tuple[Any, ...]]) -> Any:
        """A question to every block, of the worker that holds it; the sum of the answers."""
        return self._home.map_reduce(kind, run_stateful, [(task, given) for given in arguments], retry=False)

    def close(self) -> None:
        """The run has ended: the workers may forget it."""
        if self._number >= 0:
            with contextlib.suppress(WorkerGone):  # and its memory with it
                self._all("end_looks", end_oracle, [(self._run,)] * self._home.sizes.size)
        self._number, self._waiting = -1, []

    def _ask(self, name: str, *arguments: Any) -> Any:
        requests, self._waiting = [*self._waiting, (name, arguments)], []
        if self._number < 0:
            self.restart()
        self._number += 1
        try:
            (answer,) = self._all(name, ask_oracle, [(self._run, self._number, requests)] * self._home.sizes.size)
        except WorkerGone:
            raise LostMemory from None
        if isinstance(answer, Lost):
            raise LostMemory
        return answer

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr(SinglePassOracle, name):
            raise AttributeError(name)
        return lambda *arguments: self._ask(name, *arguments)

    def tell(self, name: str, *arguments: Any) -> None:
        """What has no answer goes with the next question."""
        self._waiting.append((name, arguments))

    def large_shift_end(self) -> None:
        """The next ``begin`` sees to it."""

    def large_shift_threshold(self) -> float:
        """What the margins of hard rows moved by more than: a search over numbers, a few rounds of counting."""
        most = int(LARGE_SHIFT_SHARE * self._home.n)
        low = LARGE_SHIFT
        if self._ask("large_shift_count", np.array([low]))[0] <= most:
            return low
        high = float(self._ask("largest_shift"))
        while np.nextafter(low, np.inf) < high:
            edges = np.unique(np.linspace(low, high, EDGES + 2)[1:-1])
            edges = edges[(edges > low) & (edges < high)]
            if edges.size == 0:
                break
            few = self._ask("large_shift_count", edges) <= most
            at = int(np.argmax(few)) if few.any() else edges.size
            high = float(edges[at]) if at < edges.size else high
            low = float(edges[at - 1]) if at > 0 else low
        return high

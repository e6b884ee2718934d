"""First-order steps whose rows are read block by block from Python: they are too many for one sweep, or elsewhere.

What ``sense`` does in compiled code is asked of the problem's home here; ``move`` and the split are the same kernels.
"""

from __future__ import annotations

import time
from collections import deque
from typing import Any

import numpy as np

from skadmm import _cancel
from skadmm.backends import tasks
from skadmm.backends.base import WorkerGone, as_remote
from skadmm.backends.dask import worker
from skadmm.backends.tasks import Lost
from skadmm.solvers.base import Setup, couple_at_start, x_and_dual_update
from skadmm.solvers.dual_update import Point
from skadmm.solvers.first_order.runs import Run, Taken, is_known_everywhere, machine_of, sums_of, take_steps, use_change

RUN_SECONDS = 0.25
"""Steps asked for in one question take about so long, so that Ctrl-C, records and the progress bar need not wait."""


class AllSamples:
    """Steps of a method that sees all samples every time."""

    def __init__(self, rule: Any, setup: Setup, split: Any, point: Point, theta: float) -> None:
        self._rule, self._split, self._point, self._theta = rule, split, point, theta
        self._home, self._n = setup.problem.backend, setup.problem.n_samples

    def init_table(self) -> int:
        """There is no table."""
        couple_at_start(self._split, self._point, self._theta)
        return 0

    def take(self, order: np.ndarray, until: float) -> None:
        """One step for each entry of `order`."""
        for k in order:
            if self._point.clock[1] >= until:
                break
            self._rule.grad[:] = self._home.mean(tasks.gradient, self._point.x)
            self._point.clock[1] += self._n
            x_and_dual_update(self._rule, self._split, self._point, self._theta, k)


class AveragedBlocks:
    """Steps of a method that refreshes one block of a stochastic average; blocks on workers.

    With a staleness s, step t asks its block at the point of step t − s, so that s + 1 blocks are at work at once.
    Answers are used in the order of the steps: a run is as reproducible as without.
    """

    def __init__(self, rule: Any, setup: Setup, split: Any, point: Point, theta: float) -> None:
        self._rule, self._split, self._point, self._theta = rule, split, point, theta
        self._home, self._n = as_remote(setup.problem.backend), setup.problem.n_samples
        self._bounds = self._home.bounds(setup.batch_size)
        self._staleness = setup.staleness
        self._asked: deque[tuple[int, np.ndarray, Any]] = deque()
        """The next steps' blocks, where each was asked, and the answers to come."""
        self._past: deque[np.ndarray] = deque(maxlen=setup.staleness + 1)
        """The last points, oldest first."""
        self._seen: dict[int, tuple[int, np.ndarray]] = {}
        """The point at which each block was last asked, with its number."""

    def init_table(self) -> int:
        """Every block at the starting point."""
        couple_at_start(self._split, self._point, self._theta)
        rule, x, backend = self._rule, self._point.x, self._home
        self._seen = {k: (backend.number(), x.copy()) for k in range(len(self._bounds))}
        pieces: list[list[Any]] = [[] for _ in backend.sizes]
        for k, (chunk, start, stop) in enumerate(self._bounds):
            pieces[chunk].append(((start, stop), self._seen[k][0]))
        parts = backend.each_stateful(worker.first_refresh, [(some, x) for some in pieces])
        rule.grad_bar[:] = np.sum(parts, axis=0) / self._n  # in their order, wherever they are
        rule.points[:] = x
        if rule.reads == "average":
            rule.x_bar[:] = x
        return self._n

    def take(self, order: np.ndarray, until: float) -> None:
        """One step for each block in `order`."""
        rule, point = self._rule, self._point
        for number in range(order.size):
            if point.clock[1] >= until:
                return
            self._past.append(point.x.copy())
            while len(self._asked) <= self._staleness and number + len(self._asked) < order.size:
                k = int(order[number + len(self._asked)])
                late = min(self._staleness - len(self._asked), len(self._past) - 1)
                x = self._past[-1 - late]
                self._asked.append((k, x, self._ask(k, x, self._old(k))))
            k, x, future = self._asked.popleft()
            use_change(rule, self._n, k, x, point.x, self._home.result(future))
            _, start, stop = self._bounds[k]
            point.clock[1] += stop - start
            x_and_dual_update(rule, self._split, point, self._theta, k)
            rule.points[k] = x

    def _old(self, k: int) -> tuple[int, np.ndarray]:
        """Where block k was last asked; the number 0 is no block's."""
        return self._seen.get(k) or (0, self._rule.points[k].copy())

    def _ask(self, k: int, x: np.ndarray, old: tuple[int, np.ndarray]) -> Any:
        chunk, start, stop = self._bounds[k]
        self._seen[k] = (self._home.number(), x.copy())
        return self._home.stateful(chunk, worker.refresh, (start, stop), old, self._seen[k])


class BlocksInRuns(AveragedBlocks):
    """The same without staleness: steps that follow each other on blocks of one worker are asked for together."""

    def __init__(self, rule: Any, setup: Setup, split: Any, point: Point, theta: float) -> None:
        super().__init__(rule, setup, split, point, theta)
        self._machine = machine_of(rule, split, theta, self._n)
        self._number = self._home.number()
        """By which workers know the machine."""
        self._told: set[str] = set()
        """The workers that have been sent it."""
        self._most = 2
        """Steps of a run, at most."""

    def take(self, order: np.ndarray, until: float) -> None:
        """One step for each block in `order`; those taken count when time is up, or at Ctrl-C."""
        first = int(self._point.clock[0])
        try:
            while order.size and self._point.clock[1] < until:
                order = order[self._some(order, until) :]
        except (_cancel.OutOfTime, _cancel.Interrupted):
            self._seen.clear()  # of the question that was given up, nobody knows how far it came
            if self._point.clock[0] == first:
                raise

    def _some(self, order: np.ndarray, until: float) -> int:
        """The first steps of `order`; how many."""
        blocks = self._together(order[: self._most], until)
        steps = self._run(blocks) if len(blocks) > 1 else 0
        if steps == 0:  # a step alone finds its block wherever it is
            super().take(order[:1], until)
        return max(1, steps)

    def _together(self, order: np.ndarray, until: float) -> list[int]:
        """The first blocks of `order` that lie on one worker, as far as the samples touched allow."""
        blocks: list[int] = []
        touched = int(self._point.clock[1])
        for k in map(int, order):
            chunk, start, stop = self._bounds[k]
            place = self._home.place(chunk)
            if place is None or touched >= until or (blocks and place != self._place(blocks[0])):
                break
            blocks.append(k)
            touched += stop - start
        return blocks

    def _place(self, k: int) -> str | None:
        return self._home.place(self._bounds[k][0])

    def _run(self, order: list[int]) -> int:
        """Take steps in one question; how many were taken, none where the worker is gone."""
        begun = time.perf_counter()
        blocks = list(dict.fromkeys(order))
        place = str(self._place(order[0]))
        first = next(chunk for chunk in range(self._home.sizes.size) if self._home.place(chunk) == place)
        chunks = list(dict.fromkeys([first, *(self._bounds[k][0] for k in blocks)]))  # the machine stays with the first
        at, chunk_at = ({one: number for number, one in enumerate(several)} for several in (blocks, chunks))
        numbers = [self._home.number() for _ in order]
        run = Run(
            machine=self._number,
            point=self._point,
            sums=[getattr(self._rule, name) for name in sums_of(self._rule)],
            tables=[getattr(self._rule, name)[blocks] for name in self._rule.by_block],
            pieces=[(chunk_at[chunk], start, stop) for chunk, start, stop in (self._bounds[k] for k in blocks)],
            seen=[self._seen[k][0] if k in self._seen else 0 for k in blocks],
            order=[at[k] for k in order],
            numbers=numbers,
            seconds=_cancel.seconds_left(),
        )
        try:
            taken = Lost() if place not in self._told else self._home.call_on_one(chunks, take_steps, run, None)
            if isinstance(taken, Lost):
                taken = self._home.call_on_one(chunks, take_steps, run, self._machine)
        except WorkerGone:
            self._home.locate()
            return 0
        self._told.add(place)
        self._take_over(taken, blocks)
        last = dict(zip(order[: taken.steps], numbers, strict=False))
        self._seen |= {k: (number, self._rule.points[k].copy()) for k, number in last.items()}
        pace = (time.perf_counter() - begun) / taken.steps
        self._most = max(2, min(10 * taken.steps, int(RUN_SECONDS / pace)))
        return taken.steps

    def _take_over(self, taken: Taken, blocks: list[int]) -> None:
        """What a run changed, into the arrays here."""
        for here, there in zip(self._point, taken.point, strict=True):
            here[...] = there
        for name, there in zip(sums_of(self._rule), taken.sums, strict=True):
            getattr(self._rule, name)[...] = there
        self._rule.points[blocks] = taken.points


def blocks_of(rule: Any, setup: Setup, split: Any, point: Point, theta: float) -> AveragedBlocks:
    """Steps in runs, where that may be."""
    in_runs = setup.staleness == 0 and is_known_everywhere(rule) and is_known_everywhere(split)
    return (BlocksInRuns if in_runs else AveragedBlocks)(rule, setup, split, point, theta)


STEPS: dict[str, Any] = {"all": AllSamples, "average": blocks_of, "corrected": blocks_of}
"""By what a rule says it reads."""

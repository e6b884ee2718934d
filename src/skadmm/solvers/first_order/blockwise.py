"""First-order steps whose rows are read block by block from Python: there are too many for one sweep, or they are on
workers.

The backend evaluates what ``update_gradient`` computes in compiled code; ``x_update`` and ``y_dual_update`` are the
same kernels as for rows in memory.
"""

from __future__ import annotations

import time
from collections import deque
from typing import Any

import numpy as np

from skadmm import _cancel
from skadmm.backends import tasks, worker
from skadmm.backends.base import WorkerGone, as_remote
from skadmm.backends.tasks import Lost
from skadmm.solvers.base import Setup, couple_at_start, x_and_dual_update
from skadmm.solvers.dual_update import Point
from skadmm.solvers.first_order import table_start
from skadmm.solvers.first_order.runs import (
    StepsRequest,
    StepsResponse,
    fixed_parts_of,
    is_known_everywhere,
    sums_of,
    take_steps,
    use_change,
)

RUN_SECONDS = 0.25
"""The approximate time of the steps of one request, in seconds; Ctrl-C, recording and progress wait no longer."""


class AllSamples:
    """Steps of a method that reads all samples every time."""

    def __init__(self, rule: Any, setup: Setup, split: Any, point: Point, theta: float) -> None:
        self._rule, self._split, self._point, self._theta = rule, split, point, theta
        self._backend, self._n = setup.problem.backend, setup.problem.n_samples

    def init_table(self) -> int:
        """Return 0, because there is no table."""
        couple_at_start(self._split, self._point, self._theta)
        return 0

    def take(self, order: np.ndarray, until: float) -> None:
        """One step for each entry of `order`."""
        for k in order:
            if self._point.clock[1] >= until:
                break
            self._rule.grad[:] = self._backend.mean(tasks.gradient, self._point.x)
            self._point.clock[1] += self._n
            x_and_dual_update(self._rule, self._split, self._point, self._theta, k)


class AveragedBlocks:
    """Steps of a method that updates one block of a stochastic average; blocks on workers.

    With a staleness s, step t evaluates its block at the point of step t − s, so that s + 1 blocks are evaluated at the
    same time. Responses are used in the order of the steps, so a run is reproducible.
    """

    def __init__(self, rule: Any, setup: Setup, split: Any, point: Point, theta: float) -> None:
        self._rule, self._split, self._point, self._theta = rule, split, point, theta
        self._backend, self._n = as_remote(setup.problem.backend), setup.problem.n_samples
        self._bounds = self._backend.bounds(setup.batch_size)
        self._staleness = setup.staleness
        self._pending: deque[tuple[int, np.ndarray, Any]] = deque()
        """The blocks of the next steps, the point each is evaluated at, and the responses to come."""
        self._past: deque[np.ndarray] = deque(maxlen=setup.staleness + 1)
        """The last points, oldest first."""
        self._seen: dict[int, tuple[int, np.ndarray]] = {}
        """The point at which each block was last evaluated, with its number."""

    def init_table(self) -> int:
        """Evaluate every block at the starting point; none where the table starts at zero."""
        couple_at_start(self._split, self._point, self._theta)
        rule, x, backend = self._rule, self._point.x, self._backend
        table_start.start_at(rule, x)
        if not rule.filled:
            self._seen = {}
            return 0
        self._seen = {k: (backend.number(), x.copy()) for k in range(len(self._bounds))}
        pieces: list[list[Any]] = [[] for _ in backend.sizes]
        for k, (chunk, start, stop) in enumerate(self._bounds):
            pieces[chunk].append(((start, stop), self._seen[k][0]))
        parts = backend.each_stateful(worker.first_refresh, [(some, x) for some in pieces])
        rule.grad_bar[:] = np.sum(parts, axis=0) / self._n  # in the order of the blocks, on whatever workers they are
        return self._n

    def take(self, order: np.ndarray, until: float) -> None:
        """One step for each block in `order`."""
        rule, point = self._rule, self._point
        for number in range(order.size):
            if point.clock[1] >= until:
                return
            self._past.append(point.x.copy())
            while len(self._pending) <= self._staleness and number + len(self._pending) < order.size:
                k = int(order[number + len(self._pending)])
                late = min(self._staleness - len(self._pending), len(self._past) - 1)
                x = self._past[-1 - late]
                self._pending.append((k, x, self._request(k, x, self._old(k))))
            k, x, future = self._pending.popleft()
            use_change(rule, self._n, k, x, point.x, self._backend.result(future))
            _, start, stop = self._bounds[k]
            point.clock[1] += stop - start
            x_and_dual_update(rule, self._split, point, self._theta, k)
            rule.points[k] = x

    def _old(self, k: int) -> tuple[int, np.ndarray] | None:
        """The number and the point of the last evaluation of block k, None where there was none; no evaluation has the
        number 0."""
        if k in self._seen or not self._rule.visited[k]:
            return self._seen.get(k)
        return 0, self._rule.points[k].copy()

    def _request(self, k: int, x: np.ndarray, old: tuple[int, np.ndarray] | None) -> Any:
        chunk, start, stop = self._bounds[k]
        self._seen[k] = (self._backend.number(), x.copy())
        return self._backend.stateful(chunk, worker.refresh, (start, stop), old, self._seen[k])


class BlocksInRuns(AveragedBlocks):
    """Averaged blocks without staleness: consecutive steps on blocks of one worker are taken in one request."""

    def __init__(self, rule: Any, setup: Setup, split: Any, point: Point, theta: float) -> None:
        super().__init__(rule, setup, split, point, theta)
        self._parts = fixed_parts_of(rule, split, theta, self._n)
        self._parts_number = self._backend.number()
        """The number by which workers identify the fixed parts."""
        self._informed: set[str] = set()
        """The workers to which the fixed parts have been sent."""
        self._max_steps = 2
        """The largest number of steps in one request."""

    def take(self, order: np.ndarray, until: float) -> None:
        """Take one step for each block in `order`; at the time limit or Ctrl-C the steps taken so far count."""
        first = int(self._point.clock[0])
        try:
            while order.size and self._point.clock[1] < until:
                order = order[self._first_steps(order, until) :]
        except (_cancel.OutOfTime, _cancel.Interrupted):
            self._seen.clear()  # it is not known how many steps the cancelled request took
            if self._point.clock[0] == first:
                raise

    def _first_steps(self, order: np.ndarray, until: float) -> int:
        """Take the first steps of `order`, and return how many were taken."""
        blocks = self._on_one_worker(order[: self._max_steps], until)
        steps = self._run(blocks) if len(blocks) > 1 else 0
        if steps == 0:  # a single step is sent to whichever worker holds its block
            super().take(order[:1], until)
        return max(1, steps)

    def _on_one_worker(self, order: np.ndarray, until: float) -> list[int]:
        """The first blocks of `order` that lie on one worker, as far as the samples touched allow."""
        blocks: list[int] = []
        touched = int(self._point.clock[1])
        for k in map(int, order):
            chunk, start, stop = self._bounds[k]
            place = self._backend.place(chunk)
            if place is None or touched >= until or (blocks and place != self._place(blocks[0])):
                break
            blocks.append(k)
            touched += stop - start
        return blocks

    def _place(self, k: int) -> str | None:
        return self._backend.place(self._bounds[k][0])

    def _run(self, order: list[int]) -> int:
        """Take steps in one request, and return how many were taken; 0 where the worker is lost."""
        begun = time.perf_counter()
        blocks = list(dict.fromkeys(order))
        place = str(self._place(order[0]))
        first = next(chunk for chunk in range(self._backend.sizes.size) if self._backend.place(chunk) == place)
        # The first chunk on a worker holds the fixed parts.
        chunks = list(dict.fromkeys([first, *(self._bounds[k][0] for k in blocks)]))
        at, chunk_at = ({one: number for number, one in enumerate(ones)} for ones in (blocks, chunks))
        numbers = [self._backend.number() for _ in order]
        request = StepsRequest(
            parts_number=self._parts_number,
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
            response: Any = Lost()
            if place in self._informed:
                response = self._backend.call_on_one(chunks, take_steps, request, None)
            if isinstance(response, Lost):
                response = self._backend.call_on_one(chunks, take_steps, request, self._parts)
        except WorkerGone:
            self._backend.locate()
            return 0
        self._informed.add(place)
        self._use_response(response, blocks)
        last = dict(zip(order[: response.steps], numbers, strict=False))
        self._rule.visited[list(last)] = True
        self._seen |= {k: (number, self._rule.points[k].copy()) for k, number in last.items()}
        pace = (time.perf_counter() - begun) / response.steps
        self._max_steps = max(2, min(10 * response.steps, int(RUN_SECONDS / pace)))
        return response.steps

    def _use_response(self, response: StepsResponse, blocks: list[int]) -> None:
        """Copy what the steps changed into the arrays of this process."""
        for here, there in zip(self._point, response.point, strict=True):
            here[...] = there
        for name, there in zip(sums_of(self._rule), response.sums, strict=True):
            getattr(self._rule, name)[...] = there
        self._rule.points[blocks] = response.points


def blocks_of(rule: Any, setup: Setup, split: Any, point: Point, theta: float) -> AveragedBlocks:
    """Steps of a stochastic average: several per request, where workers can import all parts of the method."""
    in_runs = setup.staleness == 0 and is_known_everywhere(rule) and is_known_everywhere(split)
    return (BlocksInRuns if in_runs else AveragedBlocks)(rule, setup, split, point, theta)


STEPS: dict[str, Any] = {"all": AllSamples, "average": blocks_of, "corrected": blocks_of}
"""The classes of steps, by what a rule reads (``rule.reads``)."""

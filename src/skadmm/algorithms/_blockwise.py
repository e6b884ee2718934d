"""First-order steps whose rows are read block by block from Python: they are too many for one sweep, or elsewhere.

What ``sense`` does in compiled code is asked of the problem's home here; ``move`` and the split are the same kernels.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

from skadmm.algorithms._base import Setup, couple_at_start, move_and_split
from skadmm.algorithms._split import Point
from skadmm.blocks import tasks, worker


class AllSamples:
    """Steps of a method that sees all samples every time."""

    def __init__(self, rule: Any, setup: Setup, split: Any, point: Point, theta: float) -> None:
        self._rule, self._split, self._point, self._theta = rule, split, point, theta
        self._home, self._n = setup.problem.home, setup.problem.n_samples

    def fill(self) -> int:
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
            move_and_split(self._rule, self._split, self._point, self._theta, k)


class AveragedBlocks:
    """Steps of a method that refreshes one block of a stochastic average; blocks on workers.

    With a staleness s, step t asks its block at the point of step t − s, so that s + 1 blocks are at work at once.
    Answers are used in the order of the steps: a run is as reproducible as without.
    """

    def __init__(self, rule: Any, setup: Setup, split: Any, point: Point, theta: float) -> None:
        self._rule, self._split, self._point, self._theta = rule, split, point, theta
        self._home, self._n = setup.problem.home, setup.problem.n_samples
        self._bounds = self._home.bounds(setup.batch_size)
        self._staleness = setup.staleness
        self._asked: deque[tuple[int, np.ndarray, Any]] = deque()
        """The next steps' blocks, where each was asked, and the answers to come."""
        self._past: deque[np.ndarray] = deque(maxlen=setup.staleness + 1)
        """The last points, oldest first."""
        self._seen: dict[int, tuple[int, np.ndarray]] = {}
        """The point at which each block was last asked, with its number."""

    def fill(self) -> int:
        """Every block at the starting point."""
        couple_at_start(self._split, self._point, self._theta)
        rule, x, home = self._rule, self._point.x, self._home
        self._seen = {k: (home.number(), x.copy()) for k in range(len(self._bounds))}
        pieces: list[list[Any]] = [[] for _ in home.sizes]
        for k, (chunk, start, stop) in enumerate(self._bounds):
            pieces[chunk].append(((start, stop), self._seen[k][0]))
        parts = home.each_stateful(worker.first_refresh, [(some, x) for some in pieces])
        rule.grad_bar[:] = np.sum(parts, axis=0) / self._n  # in their order, wherever they are
        rule.points[:] = x
        self._begin(x)
        return self._n

    def _begin(self, x: np.ndarray) -> None:
        """Every block was seen at x."""
        self._rule.x_bar[:] = x

    def _use(self, k: int, x: np.ndarray, change: np.ndarray) -> None:
        """The gradients of block k, seen again at x, have changed by so much."""
        rule = self._rule
        rule.grad_bar[:] += change / self._n
        rule.x_bar[:] += rule.share[k] * (x - self._point.x)  # `move` will take the block for seen at the newest x

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
                old = self._seen.get(k) or (0, rule.points[k].copy())
                self._asked.append((k, x, self._ask(k, x, old)))
            k, x, future = self._asked.popleft()
            self._use(k, x, self._home.result(future))
            _, start, stop = self._bounds[k]
            point.clock[1] += stop - start
            move_and_split(rule, self._split, point, self._theta, k)
            rule.points[k] = x

    def _ask(self, k: int, x: np.ndarray, old: tuple[int, np.ndarray]) -> Any:
        chunk, start, stop = self._bounds[k]
        self._seen[k] = (self._home.number(), x.copy())
        return self._home.stateful(chunk, worker.refresh, (start, stop), old, self._seen[k])


class CorrectedBlocks(AveragedBlocks):
    """The same, where a step goes along the mean of the gradients last seen, corrected by the block's change."""

    def _begin(self, x: np.ndarray) -> None:
        """There is no mean of points."""

    def _use(self, k: int, x: np.ndarray, change: np.ndarray) -> None:
        rule = self._rule
        rule.grad[:] = rule.grad_bar + rule.scale * change
        rule.grad_bar[:] += change / self._n


STEPS: dict[str, Any] = {"all": AllSamples, "average": AveragedBlocks, "corrected": CorrectedBlocks}
"""By what a rule says it reads."""

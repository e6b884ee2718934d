"""First-order steps whose rows are read block by block from Python: they are too many for one sweep, or elsewhere.

What ``sense`` does in compiled code is asked of the problem's home here; ``move`` and the split are the same kernels.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from skadmm.algorithms._base import Setup, couple_at_start, move_and_split
from skadmm.algorithms._split import Point
from skadmm.blocks import tasks


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


STEPS: dict[str, Any] = {"all": AllSamples}
"""By what a rule says it reads."""

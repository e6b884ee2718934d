"""A quadratic model with a penalty over blocks: sweeps over blocks, and Newton steps on the support between them."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import scipy.linalg.lapack

from skadmm.solvers.second_order.block_sweeps import add_rows_of, square_part, support_system, sweeps, workspace

ROUNDS_PER_STEP = 70
"""With k of m features not zero, a Newton step takes about the time of k²/m divided by this many rounds of sweeps."""


def sweeps_are_cheaper(x: np.ndarray, goal: float, first: float, last: float) -> bool:
    """Return whether more rounds of sweeps would reach `goal` before a Newton step is computed, if they continue to
    reduce the change as from `first` to `last`."""
    if not 0.0 < last < first or goal <= 0.0:
        return False
    if not np.isfinite(first):
        return True
    rounds_left = math.log(goal / last) / math.log(last / first)
    return bool(rounds_left * ROUNDS_PER_STEP * x.size <= np.count_nonzero(x) ** 2)


class BlockModel(NamedTuple):
    """A quadratic model with a penalty over blocks, on the features of a working set."""

    G: np.ndarray
    """The Gram matrix. Its leading part belongs to the features; the rest is unused."""
    bound: np.ndarray
    """The largest eigenvalue of G on each block."""
    starts: np.ndarray
    l1: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    norm: np.ndarray
    group: np.ndarray

    def part(self, blocks: np.ndarray) -> tuple[BlockModel, np.ndarray]:
        """The model on the marked blocks, and the numbers of their features."""
        sizes = np.diff(self.starts)
        features = np.flatnonzero(np.repeat(blocks, sizes))
        G = np.empty((features.size, features.size))
        square_part(self.G, features, G)
        starts = np.concatenate([[0], np.cumsum(sizes[blocks])])
        part = BlockModel(
            G, self.bound[blocks], starts, self.l1[features], self.lower[features], self.upper[features],
            self.norm[blocks], self.group[blocks],
        )  # fmt: skip
        return part, features

    def minimise(self, x: np.ndarray, q: np.ndarray, goal: float, rounds: int, limit: int, short: int) -> bool:
        """x ← the minimiser, q ← the gradient of the smooth part there: sweeps, and Newton steps on the support
        between them where more sweeps would cost more. Returns whether no step changes more than `goal` any more."""
        work = workspace(x.size, self.norm.size)
        for _ in range(rounds):
            first, last = sweeps(self, work, x, q, goal, limit, short)
            if last <= goal:
                return True
            if not sweeps_are_cheaper(x, goal, first, last):
                self.newton_step(x, q)
        return False

    def newton_step(self, x: np.ndarray, q: np.ndarray) -> None:
        """A step on the features that are not zero, where the penalty is smooth; what changes its sign becomes zero."""
        support = np.flatnonzero((x != 0.0) & (x > self.lower) & (x < self.upper))
        if support.size == 0 or np.any(self.norm[self._block_of(support)] == 2):
            return
        here, size = x[support], support.size
        block, norms = self._norms(support, here)
        hessian, gradient = np.empty((size, size), order="F"), np.empty(size)
        support_system(self.G, support, block, here, q, self.l1, self.group, norms, hessian, gradient)
        _, step, failed = scipy.linalg.lapack.dposv(hessian, -gradient, lower=1, overwrite_a=1)
        if failed:
            return
        for length in (1.0, 0.25, 0.0625):
            there = here + length * step
            there[(np.sign(there) != np.sign(here)) & (self.l1[support] > 0.0)] = 0.0
            there = np.clip(there, self.lower[support], self.upper[support])
            change = there - here
            slope = np.zeros(q.size)
            add_rows_of(self.G, support, change, slope)
            rise = float(q[support] @ change) + 0.5 * float(change @ slope[support])
            if rise + self._penalty(support, there) < self._penalty(support, here):
                x[support] = there
                q += slope
                return

    def _block_of(self, features: np.ndarray) -> np.ndarray:
        return np.searchsorted(self.starts, features, side="right") - 1

    def _norms(self, support: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The block of each feature, and the Euclidean norm of each block."""
        block = self._block_of(support)
        return block, np.sqrt(np.bincount(block, values**2, minlength=self.group.size))

    def _penalty(self, support: np.ndarray, values: np.ndarray) -> float:
        _, norms = self._norms(support, values)
        return float(self.l1[support] @ np.abs(values)) + float(self.group @ norms)

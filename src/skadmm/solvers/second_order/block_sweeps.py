"""Block coordinate descent on a quadratic model: sweeps over blocks with the Gram matrix of a working set.

    minimise over x   ½ (x − x₀)·G (x − x₀) + q₀·(x − x₀) + Σ_b penalty_b(x_b)

q is the gradient of the smooth part, kept up to date, so a block whose step is zero costs no more than its own size.
"""

import math
from typing import NamedTuple

import numpy as np
import scipy.linalg.lapack

from skadmm.kernels.compile import kernel
from skadmm.regularizers._norms import clip_linf

ROUNDS_PER_STEP = 70
"""With k of m features not zero, a Newton step takes about the time of k²/m divided by this many rounds of sweeps."""


@kernel
def block_prox(v, start, stop, step, l1, lower, upper, norm, group, out):
    """out ← the proximal step of block [start, stop): the ℓ1 part and bounds by coordinate, then the norm."""
    for j in range(start, stop):
        bound = step * l1[j]
        u = v[j] - min(max(v[j], -bound), bound)
        out[j] = min(max(u, lower[j]), upper[j])
    if norm == 1:
        size = 0.0
        for j in range(start, stop):
            size += out[j] * out[j]
        size = math.sqrt(size)
        limit = step * group
        factor = 0.0 if size <= limit else 1.0 - limit / size
        for j in range(start, stop):
            out[j] *= factor
    elif norm == 2:
        clip_linf(out, range(start, stop), step * group, out)


@kernel
def _sweep(G, bound, blocks, starts, l1, lower, upper, norm, group, x, q, aim, new):
    """One step of each block in `blocks`; the largest change times its curvature."""
    largest = 0.0
    for b in blocks:
        start, stop = starts[b], starts[b + 1]
        L = bound[b]
        for j in range(start, stop):
            aim[j] = x[j] - q[j] / L
        block_prox(aim, start, stop, 1.0 / L, l1, lower, upper, norm[b], group[b], new)
        for j in range(start, stop):
            step = new[j] - x[j]
            if step != 0.0:
                x[j] = new[j]
                row = G[j]
                for k in range(q.size):
                    q[k] += step * row[k]
                largest = max(largest, abs(step) * L)
    return largest


@kernel
def sweeps(G, bound, starts, l1, lower, upper, norm, group, x, q, goal, limit, short):
    """Sweeps over all blocks and, between them, over those that are not zero, until none changes by more than `goal`.

    Returns the changes of the first and the last sweep over all blocks; the last is at most `goal` where they have
    arrived.
    """
    n_blocks = starts.size - 1
    every = np.arange(n_blocks)
    some = np.empty(n_blocks, np.int64)
    aim, new = np.empty(x.size), np.empty(x.size)
    first = last = np.inf
    for made in range(limit):
        last = _sweep(G, bound, every, starts, l1, lower, upper, norm, group, x, q, aim, new)
        if made == 0:
            first = last
        if last <= goal:
            break
        count = 0
        for b in range(n_blocks):
            for j in range(starts[b], starts[b + 1]):
                if x[j] != 0.0:
                    some[count] = b
                    count += 1
                    break
        for _ in range(short):
            if _sweep(G, bound, some[:count], starts, l1, lower, upper, norm, group, x, q, aim, new) <= 0.5 * goal:
                break
    return first, last


@kernel
def violations(x, gradient, features, starts, l1, lower, upper, norm, group, out):
    """out_b ← how far block b is from optimal: the size of the smallest element of gradient + ∂penalty."""
    for b in range(starts.size - 1):
        total = 0.0
        off = False
        square = 0.0
        for p in range(starts[b], starts[b + 1]):
            j = features[p]
            square += x[j] * x[j]
            off = off or x[j] != 0.0
        size = math.sqrt(square)
        absolute = 0.0
        for p in range(starts[b], starts[b + 1]):
            j = features[p]
            g = gradient[j]
            if norm[b] == 1 and off:
                g += group[b] * x[j] / size
            if x[j] != 0.0:
                r = g + (l1[j] if x[j] > 0.0 else -l1[j])
            else:
                r = max(abs(g) - l1[j], 0.0) * (1.0 if g > 0.0 else -1.0)
            # −r is the direction in which x_j wants to move: a bound may hold it.
            if (r > 0.0 and x[j] <= lower[j]) or (r < 0.0 and x[j] >= upper[j]):
                r = 0.0
            total += r * r
            absolute += abs(r)
        if norm[b] == 1 and not off:
            out[b] = max(math.sqrt(total) - group[b], 0.0)
        elif norm[b] == 2 and not off:
            out[b] = max(absolute - group[b], 0.0)
        elif norm[b] == 2:
            out[b] = -1.0
        else:
            out[b] = math.sqrt(total)


@kernel
def support_system(G, support, block, x, q, l1, group, norms, hessian, gradient):
    """The lower triangle of the Hessian and the gradient on a support, where the penalty is smooth; x is there."""
    for c in range(support.size):
        row, b = G[support[c]], block[c]
        for r in range(c, support.size):
            hessian[r, c] = row[support[r]]
        gradient[c] = q[support[c]] + (l1[support[c]] if x[c] > 0.0 else -l1[support[c]])
        if group[b] > 0.0:
            weight, unit = group[b] / norms[b], x[c] / norms[b]
            gradient[c] += group[b] * unit
            hessian[c, c] += weight
            for r in range(c, support.size):
                if block[r] != b:
                    break
                hessian[r, c] -= weight * unit * x[r] / norms[b]


@kernel
def add_rows_of(G, rows, scale, out):
    """out ← out + Σ_k scale_k G[rows_k], as far as `out` goes."""
    for k in range(rows.size):
        row, factor = G[rows[k]], scale[k]
        for j in range(out.size):
            out[j] += factor * row[j]


class BlockModel(NamedTuple):
    """A quadratic model with a penalty over blocks, on the features of a working set."""

    G: np.ndarray
    """Its leading part belongs to the features; the rest is unused."""
    bound: np.ndarray
    """The largest eigenvalue of G on each block."""
    starts: np.ndarray
    l1: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    norm: np.ndarray
    group: np.ndarray

    def minimise(self, x: np.ndarray, q: np.ndarray, goal: float, rounds: int, limit: int, short: int) -> bool:
        """x ← the minimiser, q ← the gradient of the smooth part there: sweeps, and Newton steps on the support
        between them where more sweeps would cost more. Returns whether no step changes more than `goal` any more."""
        for _ in range(rounds):
            first, last = sweeps(*self, x, q, goal, limit, short)
            if last <= goal:
                return True
            if not self._sweeps_are_cheaper(x, goal, first, last):
                self._newton_step(x, q)
        return False

    def _sweeps_are_cheaper(self, x: np.ndarray, goal: float, first: float, last: float) -> bool:
        """Would another round of sweeps arrive, at their rate so far, before a Newton step is done?"""
        if not 0.0 < last < first or goal <= 0.0:
            return False
        rounds_left = math.log(goal / last) / math.log(last / first)
        return bool(rounds_left * ROUNDS_PER_STEP * x.size <= np.count_nonzero(x) ** 2)

    def _newton_step(self, x: np.ndarray, q: np.ndarray) -> None:
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

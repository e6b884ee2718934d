"""The quadratic model on a few clusters, minimised with its ℓ1 terms: coordinate descent, then exactly on the pattern.

    minimise over u    g·(u − u₀) + ½(u − u₀)·H(u − u₀) + Σ_c λ_c|u_c| + Σ_e λ_e|a_e·u|,      a_e with two entries

In one coordinate the problem is a parabola with kinks, solved exactly. Descent alone is slow where clusters are
correlated, and stops where two of them are equal and should move together; so between its sweeps the pattern (what is
zero, what is equal) is held and the model minimised on it by one linear solve, as far as the kinks allow.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg
import scipy.sparse

from skadmm.kernels.compile import kernel
from skadmm.operators.clusters import clusters, contract_matrix, contract_vector, expand_vector
from skadmm.solvers.second_order import l1_rows


@kernel
def _descend(H, slope, u, starts, rows, entries, v, strength, zero, at, weight, sweeps, rounding):
    """Sweeps over the clusters; `slope` = H(u − u₀) + g and v = (a_e·u)_e are kept up. `at` and `weight` have space for
    the kinks of a cluster. Returns the sweeps made."""
    for sweep in range(sweeps):
        unchanged = True
        for c in range(u.size):
            curvature = H[c, c]
            linear = slope[c] - curvature * u[c]
            kinks = 0
            below = linear - zero[c]  # the derivative, without its parabola, left of all kinks
            if zero[c] > 0.0:
                at[0], weight[0] = 0.0, zero[c]
                kinks = 1
            for p in range(starts[c], starts[c + 1]):
                e = rows[p]
                place = u[c] - v[e] / entries[p]
                jump = strength[e] * abs(entries[p])
                k = kinks
                while k > 0 and at[k - 1] > place:
                    at[k], weight[k] = at[k - 1], weight[k - 1]
                    k -= 1
                at[k], weight[k] = place, jump
                kinks += 1
                below -= jump
            best = 0.0
            found = False
            for k in range(kinks):
                if -below <= curvature * at[k]:
                    best, found = -below / curvature, True
                    break
                below += 2.0 * weight[k]
                if -below < curvature * at[k]:
                    best, found = at[k], True
                    break
            if not found:
                best = -below / curvature
            change = best - u[c]
            if change == 0.0:
                continue
            line = H[c]
            for j in range(u.size):
                slope[j] += line[j] * change
            for p in range(starts[c], starts[c + 1]):
                moved = v[rows[p]] + entries[p] * change
                v[rows[p]] = 0.0 if abs(moved) <= rounding * abs(entries[p] * best) else moved
            u[c] = best
            unchanged = False
        if unchanged:
            return sweep + 1
    return sweeps


class ReducedModel:
    """A quadratic model with ℓ1 terms on single clusters (`zero`) and on pairs of them (`pairs`, `strength`)."""

    def __init__(
        self,
        H: np.ndarray,
        gradient: np.ndarray,
        start: np.ndarray,
        pairs: scipy.sparse.csr_array,
        strength: np.ndarray,
        zero: np.ndarray,
    ) -> None:
        self.H, self.gradient, self.start = H, gradient, start
        self.strength, self.zero = strength, zero
        self.members, self.entries = pairs.indices.reshape(-1, 2).T, pairs.data.reshape(-1, 2).T
        self.by_cluster = scipy.sparse.csc_array(pairs)
        self.max_kinks = int(np.diff(self.by_cluster.indptr).max(initial=0)) + 1
        self.rows = _on_identity(pairs)
        self.u = start.copy()

    def minimise(self, rounds: int, sweeps: int) -> np.ndarray:
        """Make up to `rounds` rounds of descent and exact solve; returns u with exact zeros and exact equalities."""
        # SciPy's choice between two integer types would double the kernels.
        starts, rows = self.by_cluster.indptr.astype(np.int64), self.by_cluster.indices.astype(np.int64)
        at, weight = np.empty((2, self.max_kinks + 1))
        for number in range(rounds):
            slope = self._slope(self.u)
            made = _descend(
                self.H, slope, self.u, starts, rows, self.by_cluster.data,
                self._row_values(self.u), self.strength, self.zero, at, weight, sweeps, l1_rows.ROUNDING,
            )  # fmt: skip
            if number and made == 1:
                break
            if self._solve_on_pattern() and made < sweeps:
                break
        return self._exact()

    def _slope(self, u: np.ndarray) -> np.ndarray:
        return self.gradient + self.H @ (u - self.start)

    def _row_values(self, u: np.ndarray) -> np.ndarray:
        """a_e·u, set to zero where it is only rounding error."""
        one, other = self.entries * u[self.members]
        v = one + other
        v[np.abs(v) <= l1_rows.ROUNDING * (np.abs(one) + np.abs(other))] = 0.0
        return v

    def _row_slopes(self, weights: np.ndarray) -> np.ndarray:
        """Σ over the rows of a weight times a_e."""
        return np.bincount(self.members.ravel(), (self.entries * weights).ravel(), self.u.size)

    def _pattern(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """v, and what the zero rows tie together: a label for each cluster (−1: zero) and its factor."""
        v = self._row_values(self.u)
        labels, factors = clusters(self.rows, np.concatenate([v == 0, self.u == 0]))
        return v, labels, factors

    def _solve_on_pattern(self) -> bool:
        """Move towards the minimiser with this pattern, as far as that is best; returns whether it was reached without
        a kink."""
        v, labels, factors = self._pattern()
        if labels.max() < 0:
            return True
        size = int(labels.max()) + 1
        slope = self._slope(self.u)
        descent = -(slope + self.zero * np.sign(self.u) + self._row_slopes(self.strength * np.sign(v)))
        try:
            reduced = contract_matrix(self.H, labels, factors, size)
            factor = scipy.linalg.cho_factor(reduced, lower=True, overwrite_a=True, check_finite=False)
        except scipy.linalg.LinAlgError:
            return False
        right = contract_vector(descent, labels, factors, size)
        step = scipy.linalg.cho_solve(factor, right, check_finite=False)
        if not np.isfinite(step).all():
            return False
        direction = expand_vector(step, labels, factors)
        length, clear = self._best_length(slope, direction, v)
        self.u += length * direction
        if not clear:
            # Where a cluster stops at zero it stops there exactly.
            self.u[np.abs(self.u) <= l1_rows.ROUNDING * np.abs(direction)] = 0.0
        return clear

    def _best_length(self, slope: np.ndarray, direction: np.ndarray, v: np.ndarray) -> tuple[float, bool]:
        """The best t ≤ 1 along u + t·direction, kinks included, and whether it is 1 without a kink before it."""
        dv = np.sum(self.entries * direction[self.members], axis=0)
        value = np.concatenate([self.u, v])
        change = np.concatenate([direction, dv])
        weight = np.concatenate([self.zero, self.strength])
        opposed = np.sign(value) * np.sign(change) < 0
        crossing = np.flatnonzero(opposed & (np.abs(value) < np.abs(change)) & (weight > 0))
        if crossing.size == 0:
            return 1.0, True
        times = -value[crossing] / change[crossing]
        order = np.argsort(times)
        times, jumps = times[order], 2.0 * (weight * np.abs(change))[crossing[order]]
        curvature = float(direction @ (self.H @ direction))
        rise = float(slope @ direction) + float(weight @ (np.sign(value) * change))
        for time, jump in zip(times, jumps, strict=True):
            if rise + curvature * time >= 0.0:
                return -rise / curvature, False
            rise += jump
            if rise + curvature * time >= 0.0:
                return float(time), False
        return min(1.0, -rise / curvature) if curvature > 0.0 else 1.0, False

    def _exact(self) -> np.ndarray:
        """u with equal clusters equal to the last bit."""
        _, labels, factors = self._pattern()
        free = np.flatnonzero(labels >= 0)
        exact = np.zeros_like(self.u)
        if free.size:
            first = np.zeros(int(labels.max()) + 1, np.int64)
            first[labels[free[::-1]]] = free[::-1]
            exact[free] = factors[free] * (self.u[first] / factors[first])[labels[free]]
        return exact


def _on_identity(pairs: scipy.sparse.csr_array) -> scipy.sparse.csr_array:
    """The rows of `pairs` stacked on those of the identity."""
    m, size = pairs.shape
    each = np.arange(size, dtype=pairs.indices.dtype)
    parts = (
        np.concatenate([pairs.data, np.ones(size)]),
        np.concatenate([pairs.indices, each]),
        np.concatenate([pairs.indptr, pairs.indptr[-1] + 1 + each]),
    )
    return scipy.sparse.csr_array(parts, shape=(m + size, size))

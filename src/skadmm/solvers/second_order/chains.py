"""The exact proximal step of ψ(A·) where A ties features along chains, and each by itself to zero.

    minimise over x      ½‖x − v‖² + t Σ λ_e |(Ax)_e|

Rows of A with two features that are multiples of a difference, and that lie along chains (one or several, in any
order), are minimised over by dynamic programming: the derivative of the cost of the features so far, as a function of
the last of them, is piecewise linear and increasing, and a row of A clips it at ±λ (Johnson 2013). Rows with one
feature, equal along a chain, are a soft threshold after that (Friedman et al. 2007). The work is linear in d, and
features that come out equal, or zero, are exactly so.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skadmm.kernels.compile import kernel
from skadmm.problem.problem import Problem
from skadmm.solvers.second_order import l1_rows


def denoise(h: np.ndarray, q: np.ndarray, weight: np.ndarray, out: np.ndarray) -> None:
    """out ← argmin over x of Σ ½h_i x_i² − q_i x_i + weight_i |x_{i+1} − x_i|, h > 0; a weight of zero ends a chain."""
    _denoise(h, q, weight, *np.empty((3, 2 * q.size)), *np.empty((2, q.size)), out)


@kernel
def _denoise(h, q, weight, knot, slope, height, low, high, out):
    n = q.size
    # The derivative is first[0]·x + first[1] left of all knots; at a knot its line changes by (slope, height).
    left, right = n, n - 1
    first, last = -q[0], -q[0]
    for i in range(n - 1):
        w = weight[i]
        a, b = h[i], first
        while left <= right and a * knot[left] + b <= -w:
            a += slope[left]
            b += height[left]
            left += 1
        low[i] = (-w - b) / a
        c, d = h[i], last
        while right >= left and c * knot[right] + d >= w:
            c -= slope[right]
            d -= height[right]
            right -= 1
        high[i] = (w - d) / c
        left -= 1
        knot[left], slope[left], height[left] = low[i], a, b + w
        right += 1
        knot[right], slope[right], height[right] = high[i], -c, w - d
        first, last = -w - q[i + 1], w - q[i + 1]
    a, b = h[n - 1], first
    while left <= right and a * knot[left] + b <= 0.0:
        a += slope[left]
        b += height[left]
        left += 1
    out[n - 1] = -b / a
    for i in range(n - 2, -1, -1):
        out[i] = min(max(out[i + 1], low[i]), high[i])


@kernel
def merge_rounding(h, q, weight, rounding, x):
    """Make neighbouring pieces of the result of :func:`denoise` equal to the last bit where they differ by rounding.

    A piece is determined by (Σq ± weight) / Σh over its features, so that it has the rounding errors of these sums. At
    the smallest strength at which two pieces are fused, nothing but such errors separates them.
    """
    n = x.size
    start, value, mass, size = 0, x[0], 0.0, 0.0
    i = 0
    while i < n:
        end, own, terms = i, 0.0, 0.0
        while end < n and x[end] == x[i]:
            own += h[end]
            terms += abs(q[end]) + h[end] * abs(x[end])
            end += 1
        error = 0.0 if i == 0 else (size + weight[i - 1]) / mass + (terms + weight[i - 1]) / own
        if i > 0 and abs(x[i] - value) <= rounding * error:
            value = (mass * value + own * x[i]) / (mass + own)
            mass += own
            size += terms
        else:
            x[start:i] = value
            start, value, mass, size = i, x[i], own, terms
        i = end
    x[start:] = value


@kernel
def multipliers_along(h, q, x, bound, rounding, u):
    """u ← the multipliers with u_{i−1} − u_i = q_i − h_i x_i, clipped to ±bound; returns the norm of what was clipped.

    The sums start from both ends, so that rounding adds up over half the length. What is left in the middle is spread
    over all places. Where the right side is rounding everywhere, u is zero.
    """
    n = q.size
    total, size, nothing = 0.0, 0.0, True
    for i in range(n):
        size = max(size, abs(x[i]))
    for i in range(n):
        rest = q[i] - h[i] * x[i]
        total += rest
        if abs(rest) > rounding * (abs(q[i]) + h[i] * size):
            nothing = False
    if nothing:
        u[:] = 0.0
        return 0.0
    mean, middle, beyond = total / n, n // 2, 0.0
    running = 0.0
    for i in range(middle):
        running -= q[i] - h[i] * x[i] - mean
        u[i] = running
    running = 0.0
    for i in range(n - 1, middle, -1):
        running += q[i] - h[i] * x[i] - mean
        u[i - 1] = running
    for i in range(n - 1):
        kept = min(max(u[i], -bound[i]), bound[i])
        beyond += (u[i] - kept) ** 2
        u[i] = kept
    return np.sqrt(beyond)


@kernel
def _walk(neighbour, link, placed, order, row):
    """Features chain by chain, each from an end, and the row to the next one; returns how many lie on chains. These are
    marked in `placed`."""
    count = 0
    for start in range(neighbour.shape[0]):
        if placed[start] or neighbour[start, 1] >= 0:
            continue
        before, here = -1, start
        while here >= 0:
            placed[here] = True
            order[count] = here
            after, by = -1, -1
            for side in range(2):
                if neighbour[here, side] >= 0 and link[here, side] != before:
                    after, by = neighbour[here, side], link[here, side]
            row[count] = by
            count += 1
            before, here = by, after
    return count


class ProximalStep(NamedTuple):
    """x, and multipliers β of the rows with (v − x)/t = Aᵀβ, within their bounds and on them where (Ax)_e ≠ 0."""

    x: np.ndarray
    multiplier: np.ndarray


class ChainPenalty(NamedTuple):
    """ψ(A·) along chains."""

    order: np.ndarray
    """Features, chain by chain."""
    row: np.ndarray
    """The row of A between each of them and the next; −1 at the end of a chain."""
    entry: np.ndarray
    """That row's entry for the first of the two."""
    weight: np.ndarray
    """λ_e times its magnitude; 0 at the end of a chain."""
    threshold: np.ndarray
    """The sum of λ_e |a_e| over the rows of each feature alone."""
    single: np.ndarray
    """The rows of A with one feature."""
    feature: np.ndarray
    """The features of those rows."""
    single_entry: np.ndarray
    """The entries of those rows."""
    bound: np.ndarray
    """λ_e of those rows, with the sign of the entry."""
    n_constraints: int
    """The number of rows of A."""

    @property
    def ties(self) -> bool:
        """Return whether a row ties two features to each other."""
        return bool(np.any(self.row >= 0))

    def values(self, x: np.ndarray) -> np.ndarray:
        """Ax, exactly zero where features are equal."""
        y = np.zeros(self.n_constraints)
        y[self.single] = self.single_entry * x[self.feature]
        tied, along = np.flatnonzero(self.row >= 0), x[self.order]
        y[self.row[tied]] = self.entry[tied] * (along[tied] - along[tied + 1])
        return y

    def prox(self, v: np.ndarray, t: float) -> ProximalStep:
        """The minimiser, with its multipliers."""
        multiplier = np.zeros(self.n_constraints)
        smooth = v
        tied = np.flatnonzero(self.row >= 0)
        if tied.size:
            along, out = v[self.order], np.empty_like(v)
            denoise(np.ones(v.size), along, t * self.weight, out)
            total = np.cumsum((along - out) / t)
            multiplier[self.row[tied]] = total[tied] / self.entry[tied]
            smooth = np.empty_like(v)
            smooth[self.order] = out
        limit = t * self.threshold
        x = smooth - np.clip(smooth, -limit, limit)
        if self.single.size:
            share = np.clip(smooth / np.where(limit > 0.0, limit, 1.0), -1.0, 1.0)
            multiplier[self.single] = self.bound * share[self.feature]
        return ProximalStep(x, multiplier)


def penalty_along_chains(problem: Problem) -> ChainPenalty | None:
    """The penalty of a problem, if it is an ℓ1 norm on short rows that lie along chains; None otherwise."""
    if not l1_rows.has_short_rows(problem):
        return None
    A, d = problem.constraint.A, problem.n_features
    strengths = l1_rows.checked_strengths(problem)
    counts = np.diff(A.indptr)
    single, double = np.flatnonzero(counts == 1), np.flatnonzero(counts == 2)
    at = A.indptr[single]
    feature, entries = A.indices[at].astype(np.int64), A.data[at]
    threshold = np.bincount(feature, strengths[single] * np.abs(entries), minlength=d)
    order, row = np.arange(d), np.full(d, -1)
    entry, weight = np.ones(d), np.zeros(d)
    if double.size:
        at = A.indptr[double]
        one, two = A.indices[at].astype(np.int64), A.indices[at + 1].astype(np.int64)
        if not np.array_equal(A.data[at], -A.data[at + 1]) or not lie_along_chains(one, two, double, order, row):
            return None
        tied = np.flatnonzero(row >= 0)
        if not np.array_equal(threshold[order[tied]], threshold[order[tied + 1]]):
            return None
        value = np.zeros(A.shape[0])
        value[double] = A.data[at]
        start = np.zeros(A.shape[0], np.int64)
        start[double] = one
        entry[tied] = np.where(start[row[tied]] == order[tied], 1.0, -1.0) * value[row[tied]]
        weight[tied] = strengths[row[tied]] * np.abs(entry[tied])
    bound = strengths[single] * np.sign(entries)
    return ChainPenalty(order, row, entry, weight, threshold, single, feature, entries, bound, A.shape[0])


def lie_along_chains(one: np.ndarray, two: np.ndarray, rows: np.ndarray, order: np.ndarray, row: np.ndarray) -> bool:
    """Fill in features and rows along the chains; False where the pairs make no chains."""
    ends, others = np.concatenate([one, two]), np.concatenate([two, one])
    links = np.concatenate([rows, rows])
    degree = np.bincount(ends, minlength=order.size)
    if degree.max() > 2:
        return False
    sort = np.argsort(ends, kind="stable")
    ends, others, links = ends[sort], others[sort], links[sort]
    second = np.zeros(ends.size, np.int64)
    second[1:] = ends[1:] == ends[:-1]
    neighbour, link = np.full((order.size, 2), -1), np.full((order.size, 2), -1)
    neighbour[ends, second], link[ends, second] = others, links
    return bool(_walk(neighbour, link, np.zeros(order.size, bool), order, row) == order.size)


def chains_of(problem: Problem) -> ChainPenalty:
    """The penalty of a problem for which :func:`reason_against` returns None."""
    penalty = penalty_along_chains(problem)
    if penalty is None:
        raise ValueError("the penalty does not lie along chains")
    return penalty


def reason_against(problem: Problem) -> str | None:
    """Why the penalty of a problem does not lie along chains; None when it does."""
    reason = l1_rows.reason_against(problem)
    if reason is None and penalty_along_chains(problem) is None:
        return "the rows of A with two entries must be differences along paths, with one ℓ1 strength along each"
    return reason

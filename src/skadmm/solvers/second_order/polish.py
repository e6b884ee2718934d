"""The polish: makes x meet exactly what y meets: fused and zero where y is zero, and within its bounds.

ADMM's y has exact zeros, its x only approximate ones. Rows of A with one or two entries whose y is zero tie features
together (or to zero), and so do the entries of a maximum norm that share its size; on the clusters that are left free,
the quadratic model plus the now linear ψ is minimised exactly. Where ψ is a constraint (lower ≤ Ax ≤ upper), y meets it
exactly and x only in the limit. The objective is infinite at a point that misses the constraint by more than rounding,
so x is moved before it is measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from skadmm.kernels.compile import compiled, kernel
from skadmm.operators.clusters import clusters
from skadmm.problem.problem import Problem
from skadmm.regularizers import GroupLInf, LInf, Stacked
from skadmm.regularizers._base import subgradient
from skadmm.regularizers._envelope import parts_of, prox_with_steps

DAMPING = 1e-12
"""The model is damped towards x by this share of its maximum curvature: x must stay bounded along directions that the
data do not see."""
MAX_GROWTH = 1e6
"""A solution this many times larger than x is discarded, and x is kept."""
MAX_ROUNDS = 50
"""The number of times that rows which a point misses may tie more features."""
TINY = float(np.finfo(float).tiny)

_subgradient = compiled(subgradient)


@kernel
def _contract(H, q, x, free, labels, factors, reduced, right, start, size):
    """The model in the clusters' own coordinates, and the coordinates nearest to x. The outputs start from zero; `size`
    becomes the squared norms of the factors."""
    for i in free:
        f = factors[i]
        line = reduced[labels[i]]
        for j in free:
            line[labels[j]] += f * H[i, j] * factors[j]
        right[labels[i]] += f * q[i]
        start[labels[i]] += f * x[i]
        size[labels[i]] += f * f
    for c in range(size.size):
        start[c] /= size[c]


def has_pattern(problem: Problem, y: np.ndarray) -> bool:
    """Return whether zeros of y tie features together or to zero, so that there is something to polish."""
    constraint = problem.constraint
    if constraint.B is not None or constraint.c.any() or problem.n_split == 0:
        return False
    return int(_pattern(problem, y)[0].max()) + 1 < problem.n_features


@singledispatch
def tied_sizes(reg: Any, y: np.ndarray) -> list[np.ndarray]:
    """The sets of coordinates that share the size which a maximum norm has; none for other regularisers."""
    return []


@tied_sizes.register
def _(reg: LInf, y: np.ndarray) -> list[np.ndarray]:
    return [_largest(y, np.arange(y.size))]


@tied_sizes.register
def _(reg: GroupLInf, y: np.ndarray) -> list[np.ndarray]:
    members, starts = reg.groups
    return [_largest(y, group) for group in np.split(members, starts[1:])[:-1]]


def _largest(y: np.ndarray, group: np.ndarray) -> np.ndarray:
    """The coordinates of a group with the largest absolute value; none where it is zero."""
    size = np.abs(y[group])
    return group[(size == size.max(initial=0.0)) & (size > 0.0)]


def _pattern(problem: Problem, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The clusters of features that zeros of y, and maximum norms at y, tie together; and their factors in them."""
    A, zero = problem.constraint.A, y == 0
    if problem.psi.separable:  # no maximum norms
        return clusters(A, zero)
    tied = [part.start + one for part in parts_of(problem.psi, y.size) for one in tied_sizes(part.reg, y[part.where])]
    first = np.concatenate([one[:-1] for one in tied] or [np.empty(0, int)])
    if first.size == 0:
        return clusters(A, zero)
    second = np.concatenate([one[1:] for one in tied])
    signed = sp.csr_array(sp.diags_array(np.sign(y)) @ A)
    equal = sp.csr_array(signed[first] - signed[second])
    equal.eliminate_zeros()
    stacked = sp.csr_array(sp.vstack([A, equal], format="csr"))
    return clusters(stacked, np.append(zero, np.ones(first.size, bool)))


def polished(problem: Problem, x: np.ndarray, y: np.ndarray, H: np.ndarray, q: np.ndarray) -> list[np.ndarray]:
    """Points with the pattern of y: the one that minimises ½x·Hx − q·x + ψ(Ax) on it, then the one nearest to x. Where
    columns of X are equal, H does not determine the first one. Empty where there is no pattern. Bounds at which y lies
    stay active."""
    constraint = problem.constraint
    if constraint.B is not None or constraint.c.any() or problem.n_split == 0:
        return []
    rows = ConstrainedRows.of(problem)
    labels, factors = _pattern(problem, y)
    size = int(labels.max()) + 1
    if size == problem.n_features:
        return []
    if size == 0:
        return [np.zeros(problem.n_features)]
    free = np.flatnonzero(labels >= 0)
    slope = penalty_slopes(problem, y)
    reduced, right, start = np.zeros((size, size)), np.zeros(size), np.zeros(size)
    _contract(H, q - constraint.At(slope), x, free, labels, factors, reduced, right, start, np.zeros(size))
    held, values = held_clusters(rows, y, labels, factors)
    start[held] = values
    loose = np.delete(np.arange(size), held)
    right = right[loose] - reduced[np.ix_(loose, held)] @ values
    u = start.copy()
    damping = DAMPING * float(np.einsum("ii->i", H).max())
    u[loose] = _minimiser(reduced[np.ix_(loose, loose)], right, start[loose], damping)
    candidate = np.zeros(problem.n_features)
    candidate[free] = factors[free] * u[labels[free]]
    # ψ is linear only while no sign changes.
    kept = y != 0 if rows is None else (y != 0) & ~rows.is_constraint
    if problem.psi.separable and np.any((constraint.A @ candidate)[kept] * y[kept] < 0):
        candidate[free] = factors[free] * start[labels[free]]
    return [candidate, _nearest(x, labels, factors)]


def nearest_with_pattern(problem: Problem, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The point nearest to x that has the pattern of y."""
    return _nearest(x, *_pattern(problem, y))


def _nearest(x: np.ndarray, labels: np.ndarray, factors: np.ndarray) -> np.ndarray:
    free = np.flatnonzero(labels >= 0)
    out, factor, cluster = np.zeros(x.size), factors[free], labels[free]
    out[free] = factor * (np.bincount(cluster, factor * x[free]) / np.bincount(cluster, factor**2))[cluster]
    return out


NEGLIGIBLE = 0.05
"""Entries of y are too small to matter where without them the objective is larger by at most this share of what the
tolerance allows."""
CurvatureOfClusters = Callable[[np.ndarray, np.ndarray, int], np.ndarray]
"""From labels, factors and the number of clusters, the second derivative along each cluster's coordinate."""


def diagonal_on_clusters(H: np.ndarray, labels: np.ndarray, factors: np.ndarray, size: int) -> np.ndarray:
    """The curvature along each cluster's coordinate where the second derivative is H."""
    free = np.flatnonzero(labels >= 0)
    expansion = sp.csr_array((factors[free], (labels[free], free)), shape=(size, labels.size))
    return np.maximum(np.asarray(expansion.multiply(expansion @ H).sum(axis=1)).ravel(), 0.0)


def without_traces(
    problem: Problem, y: np.ndarray, curvature_of: CurvatureOfClusters, allowed: float
) -> Iterator[np.ndarray]:
    """y with zeros in place of its entries that may be too small to matter, first of more of them, then of fewer; none
    where there are no such entries.

    At a strength where a row of A is about to leave zero (the first one of a path is such a strength), a point with a
    trace of it is as good as one without. Making (Ax)_e zero by moving one cluster of x raises the objective by half of
    the curvature there times the square of the move, if its minimum is at x. If its minimum is only near x, and within
    `allowed` of the objective there, the point without the entry may be the better one although this is larger."""
    constraint = problem.constraint
    if not problem.psi.separable or not problem.psi.subdifferentiable or constraint.B is not None:
        return
    A, sizes = constraint.A, np.diff(constraint.A.indptr)
    rows = np.flatnonzero((y != 0.0) & (sizes >= 1) & (sizes <= 2))
    labels, factors = clusters(A, y == 0.0)
    size = int(labels.max()) + 1
    if rows.size == 0 or size == 0 or constraint.c.any():
        return
    curvature = curvature_of(labels, factors, size)
    cost = np.full(rows.size, np.inf)
    for entries in (A.indptr[rows], A.indptr[rows + 1] - 1):
        feature = A.indices[entries]
        moved = y[rows] / (A.data[entries] * factors[feature])
        one = 0.5 * curvature[labels[feature]] * moved**2
        cost = np.minimum(cost, np.where(labels[feature] >= 0, one, np.inf))
    count = rows.size + 1
    for limit in (allowed, NEGLIGIBLE * allowed):
        traces = rows[cost <= limit]
        if 0 < traces.size < count:
            count, out = traces.size, y.copy()
            out[traces] = 0.0
            yield out


def better_polished(
    problem: Problem, x: np.ndarray, y: np.ndarray, H: np.ndarray, q: np.ndarray, ridge: Any
) -> np.ndarray:
    """x with the pattern of y, exact on it, where ½x·Hx − q·x + ψ(Ax) is not larger there; else x. H includes the
    ridge."""
    candidates = polished(problem, x, y, H, q)
    if not candidates:
        return x

    def value(v: np.ndarray) -> float:
        return float(v @ (0.5 * (H @ v) - q)) + problem.penalty(v) - 0.5 * float(v @ (ridge * v))

    return candidates[0] if value(candidates[0]) <= value(x) else x


def _minimiser(H: np.ndarray, q: np.ndarray, start: np.ndarray, damping: float) -> np.ndarray:
    """argmin over u of ½u·Hu − q·u + ½ damping ‖u − start‖²; `start` where this is not well-defined."""
    if not damping > 0.0 or start.size == 0:
        return start
    try:
        u = np.linalg.solve(H + damping * np.eye(start.size), q + damping * start)
    except np.linalg.LinAlgError:
        return start
    return u if np.all(np.abs(u) <= MAX_GROWTH * (1.0 + np.abs(start).max())) else start


class ConstrainedRows(NamedTuple):
    """The rows of A on which ψ is a constraint; −I as B and c = 0."""

    problem: Problem
    is_constraint: np.ndarray
    """For each row of A whether ψ is a constraint on it."""
    single: np.ndarray
    """Rows among them that hold one feature: bounds."""
    feature: np.ndarray
    """The feature of each row that holds one feature."""
    entry: np.ndarray
    """The entry of each row that holds one feature."""
    pairs: np.ndarray
    """A mask of the rows that hold two features: orders."""

    @classmethod
    def of(cls, problem: Problem) -> ConstrainedRows | None:
        """The constrained rows of a problem; None where there are none, or B is not −I or c is not zero."""
        constraint, m = problem.constraint, problem.n_split
        if m == 0 or problem.psi.subdifferentiable or constraint.B is not None or constraint.c.any():
            return None
        mask = np.zeros(m, bool)
        for part in parts_of(problem.psi, m):
            mask[part.where] = not part.reg.subdifferentiable
        A = constraint.A
        counts = np.diff(A.indptr)
        single, pairs = np.flatnonzero(mask & (counts == 1)), mask & (counts == 2)
        return cls(problem, mask, single, A.indices[A.indptr[single]], A.data[A.indptr[single]], pairs)

    def projected(self, y: np.ndarray) -> np.ndarray:
        """The nearest vector that meets the constraint: proximal steps of length zero."""
        out, steps = y.copy(), np.full(y.size, TINY)
        for part in parts_of(self.problem.psi, y.size):
            out[part.where] = prox_with_steps(part.reg, y[part.where], steps[part.where])
        return out

    def moved(self, x: np.ndarray, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """x within its constraints: equal over features that rows of two entries with y = 0 tie, zero where rows tie
        them to zero, and within its bounds. Rows that x still misses tie their features too.

        `weight` is the curvature of the loss along each feature: the same change of x costs more along a column of
        large entries."""
        A, tied = self.problem.constraint.A, self.is_constraint & (y == 0.0)
        out = x
        for _ in range(MAX_ROUNDS):
            out = self._tied(x, tied, weight)
            missed = self._missed(out) & ~tied
            if not missed.any():
                break
            tied |= missed
        values = np.asarray(A @ out)
        nearest = self.projected(values)
        off = nearest[self.single] != values[self.single]
        out[self.feature[off]] = nearest[self.single][off] / self.entry[off]
        return out

    def _tied(self, x: np.ndarray, tied: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """x with the weighted mean over the features that the rows in `tied` (a mask) join, and zero where they tie
        them to zero."""
        out = x.copy()
        labels, factors = clusters(self.problem.constraint.A, tied)
        out[labels < 0] = 0.0
        free = np.flatnonzero(labels >= 0)
        count = np.bincount(labels[free])
        pull = weight[free] * factors[free]
        mean = np.bincount(labels[free], pull * x[free]) / np.bincount(labels[free], pull * factors[free])
        several = free[count[labels[free]] > 1]
        out[several] = factors[several] * mean[labels[several]]
        return out

    def _missed(self, x: np.ndarray) -> np.ndarray:
        """A mask of the rows of two entries that x misses by more than rounding, and whose nearest value is zero."""
        values = np.asarray(self.problem.y_of_x(x))
        nearest = self.projected(values)
        return self.pairs & (nearest == 0.0) & (values != 0.0)

    def held(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Features that a bound other than zero holds, by y, and the values at which it does."""
        at_bound = (self.projected(y + 1.0) == y) | (self.projected(y - 1.0) == y)
        rows = at_bound[self.single] & (y[self.single] != 0.0)
        return self.feature[rows], y[self.single][rows] / self.entry[rows]


def held_clusters(
    rows: ConstrainedRows | None, y: np.ndarray, labels: np.ndarray, factors: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The clusters that bounds other than zero hold, and their values in the clusters' own coordinates."""
    values = np.full(int(labels.max(initial=-1)) + 1, np.nan)
    if rows is not None:
        features, levels = rows.held(y)
        kept = labels[features] >= 0
        values[labels[features[kept]]] = levels[kept] / factors[features[kept]]
    held = np.flatnonzero(~np.isnan(values))
    return held, values[held]


def penalty_slopes(problem: Problem, y: np.ndarray) -> np.ndarray:
    """A subgradient of ψ at y on the rows without a constraint; zero on the constrained rows."""
    slopes = np.zeros(y.size)
    if problem.psi.subdifferentiable and not isinstance(problem.psi, Stacked):
        _subgradient(problem.psi, y, slopes)
        return slopes
    for part in parts_of(problem.psi, y.size):
        if part.reg.subdifferentiable:
            out = np.empty(part.stop - part.start)
            _subgradient(part.reg, y[part.where], out)
            slopes[part.where] = out
    return slopes

"""Rows of A on which ψ is a constraint (lower ≤ Ax ≤ upper): points are moved so that they satisfy it exactly.

A split method's y meets such a constraint exactly, its x only in the limit. The objective is infinite at a point that
misses the constraint by more than rounding, so x is moved before it is measured.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skadmm.kernels.compile import compiled
from skadmm.operators.clusters import clusters
from skadmm.problem.problem import Problem
from skadmm.regularizers._base import subgradient
from skadmm.regularizers._envelope import parts_of, prox_with_steps

TINY = float(np.finfo(float).tiny)

_subgradient = compiled(subgradient)


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
        single = np.flatnonzero(mask & (np.diff(A.indptr) == 1))
        return cls(problem, mask, single, A.indices[A.indptr[single]], A.data[A.indptr[single]])

    def projected(self, y: np.ndarray) -> np.ndarray:
        """The nearest vector that meets the constraint: proximal steps of length zero."""
        out, steps = y.copy(), np.full(y.size, TINY)
        for part in parts_of(self.problem.psi, y.size):
            out[part.where] = prox_with_steps(part.reg, y[part.where], steps[part.where])
        return out

    def moved(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """x, equal over features that rows of two entries with y = 0 tie, zero where rows tie them to zero, and within
        its bounds."""
        A, out = self.problem.constraint.A, x.copy()
        labels, factors = clusters(A, self.is_constraint & (y == 0.0))
        out[labels < 0] = 0.0
        free = np.flatnonzero(labels >= 0)
        count = np.bincount(labels[free])
        mean = np.bincount(labels[free], factors[free] * x[free]) / np.bincount(labels[free], factors[free] ** 2)
        several = free[count[labels[free]] > 1]
        out[several] = factors[several] * mean[labels[several]]
        values = np.asarray(A @ out)
        nearest = self.projected(values)
        off = nearest[self.single] != values[self.single]
        out[self.feature[off]] = nearest[self.single][off] / self.entry[off]
        return out

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
    for part in parts_of(problem.psi, y.size):
        if part.reg.subdifferentiable:
            out = np.empty(part.stop - part.start)
            _subgradient(part.reg, y[part.where], out)
            slopes[part.where] = out
    return slopes


__all__ = ["ConstrainedRows", "held_clusters", "penalty_slopes"]

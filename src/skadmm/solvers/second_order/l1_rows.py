"""Penalties Σ λ_e |(Ax)_e|: the strength of each row, and the rows of A with one feature or two.

Where every row of A has one entry or two, the rows with (Ax)_e = 0 join features into clusters of proportional
coefficients, or tie them to zero.
"""

from __future__ import annotations

import copy
from functools import cached_property
from typing import Self

import numpy as np
import scipy.sparse

from skadmm.operators.clusters import clusters
from skadmm.problem.problem import Problem
from skadmm.regularizers import L1, SquaredL2, Stacked, Zero
from skadmm.regularizers._base import Regularizer

ROUNDING = 1e-13
"""A row of Ax that is this small relative to its terms is zero."""
AT_BOUND = 1e-9
"""A multiplier this close to its bound, relatively, is at it."""
MAX_CLUSTERS = 5000
"""The number of clusters at x = 0 up to which a dense Hessian is formed on them."""


def row_strengths(psi: Regularizer | L1, size: int) -> np.ndarray | None:
    """λ_e of each row where ψ is a weighted ℓ1 norm, or two of them stacked; None otherwise."""
    if isinstance(psi, L1):
        return np.full(size, psi.strength) if psi.weights.size == 0 else psi.strength * psi.weights
    if isinstance(psi, Stacked):
        first, second = row_strengths(psi.first, psi.split), row_strengths(psi.second, size - psi.split)
        return None if first is None or second is None else np.concatenate([first, second])
    return None


def checked_strengths(problem: Problem) -> np.ndarray:
    """λ_e of each row of a problem whose ψ is a weighted ℓ1 norm."""
    strengths = row_strengths(problem.psi, problem.n_split)
    if strengths is None:
        raise ValueError("psi must be an ℓ1 norm")
    return strengths


def has_short_rows(problem: Problem) -> bool:
    """Return whether the penalty is an ℓ1 norm with weights > 0 of rows with one or two entries, B = −I and c = 0."""
    constraint = problem.constraint
    strengths = row_strengths(problem.psi, problem.n_split)
    if strengths is None or not isinstance(problem.omega, (Zero, SquaredL2)) or constraint.B is not None:
        return False
    counts = np.diff(constraint.A.indptr)
    short = counts.size > 0 and counts.min() >= 1 and counts.max() <= 2 and bool(np.all(constraint.A.data != 0))
    return bool(short and strengths.min() > 0 and not constraint.c.any())


def starting_clusters(problem: Problem) -> int:
    """The number of clusters at x = 0: the connected components of A in which no row has one feature alone."""
    labels, _ = clusters(problem.constraint.A, np.ones(problem.n_constraints, bool))
    return int(labels.max(initial=-1)) + 1


def reason_against(problem: Problem) -> str | None:
    """Why a problem has no penalty on short rows that solvers in memory can take; None when it has."""
    if not problem.backend.local_rows:
        return f"it {problem.lacks_local_rows()}"
    return reason_against_rows(problem)


def reason_against_rows(problem: Problem) -> str | None:
    """The same for solvers that ask an oracle about the samples, wherever they are."""
    if not has_short_rows(problem):
        return "psi must be an ℓ1 norm with weights > 0, on rows of A with one or two entries, with B = −I and c = 0"
    if starting_clusters(problem) > MAX_CLUSTERS:
        return f"more than {MAX_CLUSTERS} connected components of features have no ℓ1 term"
    return None


class ShortRows:
    """ψ(A·) = Σ λ_e |(Ax)_e| with one or two entries in each row of A."""

    def __init__(self, problem: Problem) -> None:
        self.A: scipy.sparse.csr_array = problem.constraint.A
        self.strengths = checked_strengths(problem)

    def reweighted(self, problem: Problem) -> Self:
        """The same for a problem that differs in the strength of ψ alone."""
        other = copy.copy(self)
        other.strengths = checked_strengths(problem)
        return other

    @cached_property
    def magnitude(self) -> scipy.sparse.csr_array:
        """|A|, entry by entry."""
        return abs(self.A)

    @cached_property
    def first(self) -> np.ndarray:
        """The first feature of each row."""
        return self.A.indices[self.A.indptr[:-1]]

    @cached_property
    def last(self) -> np.ndarray:
        """The last feature of each row, which is also its first where the row has one entry."""
        return self.A.indices[self.A.indptr[1:] - 1]

    @cached_property
    def single(self) -> np.ndarray:
        """Which rows have one entry."""
        return self.first == self.last

    def values(self, x: np.ndarray) -> np.ndarray:
        """Ax, set to zero where it is only rounding error."""
        y = self.A @ x
        y[np.abs(y) <= ROUNDING * (self.magnitude @ np.abs(x))] = 0.0
        return y

    def at_bound(self, multiplier: np.ndarray) -> np.ndarray:
        """Which multipliers are at their bounds."""
        return np.abs(multiplier) >= self.strengths * (1.0 - AT_BOUND)

    @cached_property
    def transposed(self) -> scipy.sparse.csr_array:
        """Aᵀ."""
        return scipy.sparse.csr_array(self.A.T)

    def on_clusters(
        self, labels: np.ndarray, factors: np.ndarray, size: int
    ) -> tuple[scipy.sparse.csr_array, np.ndarray, np.ndarray]:
        """ψ as a function of `size` clusters u, x_j = factors_j u_labels_j: rows with two clusters, their strengths,
        and the total strength of the rows with one cluster, cluster by cluster."""
        A, first, last = self.A, self.first, self.last
        one, other = labels[first], np.where(self.single, -1, labels[last])
        a, b = A.data[A.indptr[:-1]] * factors[first], A.data[A.indptr[1:] - 1] * factors[last]
        joined = (one == other) & (one >= 0)
        a[joined] += b[joined]
        other[joined] = -1
        rounding = ROUNDING * np.abs(A.data).max()
        one[np.abs(a) <= rounding], other[np.abs(b) <= rounding] = -1, -1
        alone = np.zeros(size)
        for entry, member, absent in ((a, one, other), (b, other, one)):
            rows = np.flatnonzero((member >= 0) & (absent < 0))
            alone += np.bincount(member[rows], self.strengths[rows] * np.abs(entry[rows]), size)
        double = np.flatnonzero((one >= 0) & (other >= 0))
        entries, members = np.column_stack([a, b])[double].ravel(), np.column_stack([one, other])[double].ravel()
        pairs = scipy.sparse.csr_array((entries, members, np.arange(0, entries.size + 1, 2)), (double.size, size))
        return pairs, self.strengths[double], alone

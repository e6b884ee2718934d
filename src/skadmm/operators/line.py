"""Differences along a line: which matrices are such, and the multipliers of a trend penalty by cumulative sums.

The differences of order k+1 at positions t are D = Δ S_k Δ … S_1 Δ, with first differences Δ and
S_j = diag(j / (t_{i+j} − t_i)). Solving Dᵀw = r through DDᵀ loses all digits, because its condition number grows like
d^(2k+2). Each factor of Dᵀ by itself is inverted by a cumulative sum or a scaling, which lose next to none.
"""

from __future__ import annotations

from math import comb
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from skadmm.operators.trend import mean_spacing

PROJECTIONS = 2
"""One leaves the rounding of a projection, the second only that of what the first left."""
ROUNDING = 64 * float(np.finfo(float).eps)


class Line(NamedTuple):
    """Differences of order `order` + 1 at increasing positions `t`, each row multiplied by its entry of `scale`."""

    t: np.ndarray
    order: int
    scale: np.ndarray

    @property
    def n_rows(self) -> int:
        """How many differences there are."""
        return self.t.size - 1 - self.order

    def null_space(self) -> np.ndarray:
        """The polynomials of degree `order` at the positions, as orthonormal columns."""
        return _divided_powers(_unit(self.t), 0, self.order)

    def multiplier(self, r: np.ndarray) -> np.ndarray:
        """The w with diag(scale)·D transposed times w = r, for the part of r that is orthogonal to the polynomials."""
        unit, v = _unit(self.t), np.asarray(r, dtype=np.float64)
        for j in range(self.order + 1):
            # What is left to invert sees the divided differences of the polynomials as zero: so must v.
            basis = _divided_powers(unit, j, self.order - j)
            for _ in range(PROJECTIONS):
                v = v - basis @ (basis.T @ v)
            v = -_sums(v)
            if j < self.order:
                v = v * (self.t[j + 1 :] - self.t[: -(j + 1)]) / (j + 1)
        return v / self.scale


class GraphTrend(NamedTuple):
    """Differences over a graph: G, GᵀG, GGᵀG, … for the orders 0, 1, 2, …, G the incidence matrix."""

    G: sp.csr_array
    order: int

    def laplacian(self) -> sp.csr_array:
        """L = GᵀG."""
        return sp.csr_array(self.G.T @ self.G)

    def dof(self, y: np.ndarray) -> int:
        """The dimension of the vectors whose differences are zero where y is.

        Let L = GᵀG. Rows T of GL^k have the rank of the same rows of G, for L is invertible on the rows' span; so have
        those of L^k. Rows of L are independent unless they are all the rows of a component.
        """
        from skadmm.operators.clusters import clusters

        tied = y == 0.0
        if self.order % 2 == 0:
            return int(clusters(self.G, tied)[0].max(initial=-1)) + 1
        component, _ = clusters(self.G, np.ones(self.G.shape[0], bool))
        whole = np.bincount(component, weights=tied) == np.bincount(component)
        return int(tied.size) - int(np.count_nonzero(tied)) + int(np.count_nonzero(whole))


def line_at(positions: np.ndarray, order: int, unit: float | None = None) -> Line:
    """The differences that :func:`skadmm.operators.trend.spaced_trend` takes with the same arguments."""
    unit = mean_spacing(positions) if unit is None else unit
    return Line(positions / unit, order, np.ones(positions.size - 1 - order))


def as_line(A: sp.csr_array) -> Line | None:
    """`A` as evenly spaced differences, each row times a number of its own; None where it is something else."""
    m, d = A.shape
    k = d - m
    if m < 1 or k < 1 or A.nnz != m * (k + 1) or np.any(np.diff(A.indptr) != k + 1):
        return None
    if not A.has_sorted_indices:
        A = A.sorted_indices()
    if not _is_banded(A, k + 1):
        return None
    entries = A.data.reshape(m, k + 1)
    scale = entries[:, -1].copy()
    for j in range(k):
        wanted = (-1) ** (k - j) * comb(k, j) * scale
        if not np.array_equal(entries[:, j], wanted) and np.any(
            np.abs(entries[:, j] - wanted) > 1e-14 * np.abs(wanted)
        ):
            return None
    return Line(np.arange(float(d)), k - 1, scale)


def as_uneven_line(A: sp.csr_array) -> Line | None:
    """`A` as divided differences of order one at uneven positions, which follow from its entries 1/h; None where it is
    something else."""
    m, d = A.shape
    if m < 1 or d - m != 2 or A.nnz != 3 * m or np.any(np.diff(A.indptr) != 3):
        return None
    if not A.has_sorted_indices:
        A = A.sorted_indices()
    if not _is_banded(A, 3):
        return None
    first, middle, last = A.data.reshape(m, 3).T
    sound = np.all(first > 0) and np.all(last > 0) and np.array_equal(first[1:], last[:-1])
    if not sound or np.any(np.abs(first + middle + last) > 1e-14 * np.abs(middle)):
        return None
    return Line(np.concatenate([[0.0], np.cumsum(1.0 / np.append(first, last[-1]))]), 1, np.ones(m))


def _is_banded(A: sp.csr_array, width: int) -> bool:
    """Has row i, with `width` sorted entries, those in the columns i, i + 1, …?"""
    columns, first = A.indices.reshape(-1, width), np.arange(A.shape[0], dtype=A.indices.dtype)
    return np.array_equal(columns[:, 0], first) and np.array_equal(columns[:, -1], first + width - 1)


def _unit(t: np.ndarray) -> np.ndarray:
    """Positions moved and scaled to [−1, 1]."""
    middle, half = 0.5 * (t[0] + t[-1]), 0.5 * (t[-1] - t[0])
    return (t - middle) / half if half > 0 else np.zeros(t.size)


def _divided_powers(t: np.ndarray, j: int, degree: int) -> np.ndarray:
    """The divided differences over t_i, …, t_{i+j} of the polynomials of degree j + `degree`, as orthonormal columns.

    That of t^(j+m) is h_m(t_i, …, t_{i+j}), the sum of all products of m of them; h_m of one point more adds products
    with that point, so nothing cancels.
    """
    d = t.size - j
    if degree == 0:
        return np.full((d, 1), d**-0.5)
    columns = [np.ones(d), *(t[:d] ** m for m in range(1, degree + 1))]
    for i in range(1, j + 1):
        for m in range(1, degree + 1):
            columns[m] = columns[m] + t[i : i + d] * columns[m - 1]
    return np.linalg.qr(np.column_stack(columns))[0]


def _sums(v: np.ndarray) -> np.ndarray:
    """Cumulative sums without the last, which is zero, from the nearer end: rounding adds up over half the length."""
    middle = v.size // 2
    left = np.cumsum(v[:middle])
    right = -np.cumsum(v[:middle:-1])[::-1] if v.size > middle + 1 else np.empty(0)
    return np.concatenate([left, right])

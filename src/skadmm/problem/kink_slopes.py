"""Slopes of a loss with kinks that balance the penalty, by least squares over the samples at their kink.

The slopes of a smoothed loss carry the error of its minimisation, times its curvature. Where the strength of the
penalty is smaller than that error, Xᵀθ/n is no multiple of a subgradient of the penalty, and a lower bound from θ is
worthless, however good x is. Away from the kink a slope is known exactly; at the kink, θ may be any number between the
slopes of the two pieces, and β any subgradient on the rows of A whose y is zero. These are changed as little as
Xᵀθ/n + Aᵀβ + Ω' = 0 allows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from skadmm.kernels.rows import as_matrix
from skadmm.losses.offset import split_offset
from skadmm.problem.free_columns import ORTHOGONAL, LocalFreeColumns
from skadmm.problem.problem import Problem
from skadmm.regularizers import SquaredL2, Zero

MAX_ENTRIES = 4_000_000
"""The least-squares problem is solved where its matrix has at most this many entries."""
MAX_ROUNDS = 20
"""The number of times that slopes which would leave their range are held at its end."""
INSIDE = 1e-9
"""A slope is at a kink where it lies inside its range by more than this share of it."""
BALANCED = 1e-15
"""A residual of this share of the sizes of its terms is rounding."""
TINY = float(np.finfo(float).tiny)


class Balanced(NamedTuple):
    """Slopes and a multiplier that balance each other."""

    slopes: np.ndarray
    gradient: np.ndarray
    """(1/n) Xᵀ slopes."""
    multiplier: np.ndarray

    def orthogonal_to(self, problem: Problem, features: np.ndarray) -> bool:
        """Are the slopes orthogonal to the columns of these features, up to rounding?"""
        if not features.size:
            return True
        columns = LocalFreeColumns(problem.samples())
        columns.place(self.slopes, self.slopes)
        sizes = columns.begin(features)
        return bool(np.all(problem.n_samples * np.abs(self.gradient[features]) <= ORTHOGONAL * sizes))


def balanced(
    problem: Problem, x: np.ndarray, slopes: np.ndarray, multiplier: np.ndarray, slack: np.ndarray
) -> Balanced | None:
    """Change slopes at kinks, and the multiplier on the rows in `slack`, until the gradient of the loss and the
    penalty's are opposite; None where the loss has no two pieces, or the least-squares problem would be too large.

    The slopes stay in the domain of the conjugate, and have the weights of their samples in them.
    """
    local = problem.local
    loss, target, _ = split_offset(local.loss, local.target)
    if loss.pieces is None or not isinstance(problem.omega, (Zero, SquaredL2)) or problem.constraint.B is not None:
        return None
    weight = problem.sample_weight if problem.sample_weight.size else np.ones(slopes.size)
    pieces = loss.pieces(target)
    low, high = weight * pieces.lower, weight * pieces.upper
    slopes = np.clip(slopes, low, high)
    inside = np.minimum(slopes - low, high - slopes)
    free, n, d = np.flatnonzero(inside > INSIDE * (high - low)), problem.n_samples, problem.n_features
    rows = np.flatnonzero(slack)
    if not 0 < d * (free.size + rows.size) <= MAX_ENTRIES:
        return None
    X, A, omega = as_matrix(problem.rows), problem.constraint.A, problem.omega
    ridge = omega.strength * (omega.weights if omega.weights.size else 1.0) if isinstance(omega, SquaredL2) else 0.0
    kinks = _dense(X[free]).T * (inside[free] / n)
    unit = max(float(np.abs(multiplier).max(initial=0.0)), TINY)
    ties = _dense(A[rows]).T * unit
    sizes = np.abs(kinks).sum(axis=1) + np.abs(ties).sum(axis=1) + np.abs(np.asarray(X.T @ slopes)) / n + TINY
    kinks, ties = kinks / sizes[:, None], ties / sizes[:, None]
    multiplier = multiplier.copy()
    for _ in range(MAX_ROUNDS):
        off = (np.asarray(X.T @ slopes) / n + problem.constraint.At(multiplier) + ridge * x) / sizes
        if np.abs(off).max() <= BALANCED:
            break
        matrix = np.hstack([kinks, ties])
        if not (matrix.size and np.isfinite(matrix).all() and np.isfinite(off).all()):
            break
        change = -np.linalg.lstsq(matrix, off, rcond=1e-13)[0]
        moved = slopes[free] + inside[free] * change[: free.size]
        slopes[free] = np.clip(moved, low[free], high[free])
        multiplier[rows] += unit * change[free.size :]
        left = moved == slopes[free]
        free, kinks = free[left], kinks[:, left]
    return Balanced(slopes, np.asarray(X.T @ slopes) / n, multiplier)


def _dense(rows: Any) -> np.ndarray:
    return np.asarray(rows.toarray() if sp.issparse(rows) else rows, dtype=float)

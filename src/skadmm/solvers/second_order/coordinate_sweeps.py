"""Coordinate descent on least squares with an ℓ1 and a squared ℓ2 term, one feature after another, no Gram matrix.

Columns of X are rows here, so that the entries of one column are contiguous.
"""

import numpy as np

from skadmm.kernels.compile import kernel
from skadmm.kernels.rows import row_add, row_dot


@kernel
def sweep(columns, curvature, threshold, ridge, order, x, residual):
    """Minimise ½‖r‖² + Σ threshold_k |x_k| + ½ Σ ridge_k x_k² over x_k for each k of `order` in turn, where r changes
    by column k as x_k does. Returns the largest change, times its curvature."""
    largest = 0.0
    for k in order:
        aim = x[k] - (row_dot(columns, k, residual) + ridge[k] * x[k]) / curvature[k]
        limit = threshold[k] / curvature[k]
        step = aim - min(max(aim, -limit), limit) - x[k]
        if step != 0.0:
            x[k] += step
            row_add(columns, k, step, residual)
            largest = max(largest, abs(step) * curvature[k])
    return largest


@kernel
def descend(columns, curvature, threshold, ridge, x, residual, goal, short_sweeps, max_sweeps):
    """Sweeps, until one over all features changes none by more than `goal`, or `max_sweeps` have been made. Returns
    the number of sweeps, those over a part of the features counted as that part, and whether the goal was met."""
    every, nonzero = np.arange(x.size), np.arange(x.size)
    made = 0.0
    while made < max_sweeps:
        made += 1.0
        if sweep(columns, curvature, threshold, ridge, every, x, residual) <= goal:
            return made, True
        count = 0
        for k in range(x.size):  # np.flatnonzero would be compiled too
            if x[k] != 0.0:
                nonzero[count] = k
                count += 1
        for _ in range(short_sweeps):
            made += count / x.size
            if sweep(columns, curvature, threshold, ridge, nonzero[:count], x, residual) <= 0.5 * goal:
                break
    return made, False

"""Coordinate descent on least squares with an ℓ1 and a squared ℓ2: one feature after another, no Gram matrix.

Columns of X are rows here, so that the entries of one lie together.
"""

import numpy as np

from skadmm.kernels.compile import kernel
from skadmm.kernels.rows import row_add, row_dot


@kernel
def sweep(columns, curvature, threshold, ridge, order, x, residual):
    """Minimise ½‖r‖² + Σ threshold_k |x_k| + ½ Σ ridge_k x_k² over x_k for each k of `order` in turn, where r moves by
    column k as x_k does. Returns the largest change, times its curvature."""
    largest = 0.0
    for k in order:
        curvatures = curvature[k]
        aim = x[k] - (row_dot(columns, k, residual) + ridge[k] * x[k]) / curvatures
        limit = threshold[k] / curvatures
        step = aim - min(max(aim, -limit), limit) - x[k]
        if step != 0.0:
            x[k] += step
            row_add(columns, k, step, residual)
            largest = max(largest, abs(step) * curvatures)
    return largest


@kernel
def descend(columns, curvature, threshold, ridge, x, residual, goal, short, most):
    """Sweeps, until one over all features changes none by more than `goal`, or `most` of them have been made. Returns
    how many, those over a part of the features counted as that part, and whether they have arrived."""
    every = np.arange(x.size)
    made = 0.0
    while made < most:
        made += 1.0
        if sweep(columns, curvature, threshold, ridge, every, x, residual) <= goal:
            return made, True
        some = np.flatnonzero(x)
        for _ in range(short):
            made += some.size / x.size
            if sweep(columns, curvature, threshold, ridge, some, x, residual) <= 0.5 * goal:
                break
    return made, False

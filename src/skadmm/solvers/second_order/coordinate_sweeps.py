"""Coordinate descent on least squares with an ℓ1 and a squared ℓ2 term, one feature after another, no Gram matrix.

Columns of X are rows here, so that the entries of one column are contiguous.
"""

from skadmm.kernels.compile import inlined, kernel
from skadmm.kernels.rows import row_add, row_dot


@inlined
def sweep(columns, curvature, threshold, ridge, order, count, x, residual):
    """Minimise ½‖r‖² + Σ threshold_k |x_k| + ½ Σ ridge_k x_k² over x_k for each k of the first `count` of `order` in
    turn, where r changes by column k as x_k does. Returns the largest change, times its curvature."""
    largest = 0.0
    for place in range(count):
        k = order[place]
        aim = x[k] - (row_dot(columns, k, residual) + ridge[k] * x[k]) / curvature[k]
        limit = threshold[k] / curvature[k]
        step = aim - min(max(aim, -limit), limit) - x[k]
        if step != 0.0:
            x[k] += step
            row_add(columns, k, step, residual)
            largest = max(largest, abs(step) * curvature[k])
    return largest


@kernel
def descend(columns, curvature, threshold, ridge, order, x, residual, goal, short_sweeps, max_sweeps):
    """Sweeps, until one over all features changes none by more than `goal`, or `max_sweeps` have been made; `order`
    has space for the features of a sweep. Returns the number of sweeps, those over a part of the features counted as
    that part, and whether the goal was met."""
    made, count, arrived = 0.0, 0, False
    while made < max_sweeps and not arrived:
        for inner in range(short_sweeps + 1):  # one call of the sweep for both kinds: each would be a copy of its code
            if inner <= 1:
                count = 0
                for k in range(x.size):
                    if inner == 0 or x[k] != 0.0:
                        order[count] = k
                        count += 1
            made += 1.0 if inner == 0 else count / x.size
            moved = sweep(columns, curvature, threshold, ridge, order, count, x, residual)
            if inner == 0:
                arrived = moved <= goal
            if arrived or (inner > 0 and moved <= 0.5 * goal):
                break
    return made, arrived

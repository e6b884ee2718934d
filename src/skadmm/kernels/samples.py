"""Sums over samples: the loss, its gradient and its curvature along a direction, by block or in all.

`weight` is empty when every sample counts the same. Block k holds rows k·batch … (k+1)·batch − 1.
"""

from typing import Any, NamedTuple

import numpy as np

from skadmm.kernels.compile import inlined, kernel
from skadmm.kernels.loss_functions import conjugate, curvature, derivative, value
from skadmm.kernels.rows import n_rows, row_add, row_dot


class Samples(NamedTuple):
    """Rows in memory, with their targets and normalised weights, under a loss, cut into fixed blocks."""

    rows: Any
    target: Any
    weight: Any
    loss: Any
    batch: int


class Targets(NamedTuple):
    """Samples without their rows: a kernel that needs only margins is compiled once for all kinds of rows."""

    target: Any
    weight: Any
    loss: Any


@inlined
def weight_of(samples, i):
    """The weight of sample i; weights average to one."""
    return 1.0 if samples.weight.size == 0 else samples.weight[i]


@inlined
def block_bounds(samples, k):
    """The first row of block k and the row after its last."""
    start = k * samples.batch
    return start, min(start + samples.batch, n_rows(samples.rows))


@inlined
def slope(samples, i, x):
    """w_i ℓ'(a_i·x, b_i): the scalar that multiplies a_i in sample i's gradient."""
    z = row_dot(samples.rows, i, x)
    return weight_of(samples, i) * derivative(samples.loss, z, samples.target[i])


@kernel
def add_block_gradient(samples, k, x, scale, out):
    """out ← out + scale · Σ over block k of ∇ℓ_i(x)."""
    start, stop = block_bounds(samples, k)
    for i in range(start, stop):
        row_add(samples.rows, i, scale * slope(samples, i, x), out)
    return stop - start


@inlined
def refresh_block(samples, k, x, slopes, scale, out):
    """Replace block k's stored slopes by those at x; out ← out + scale · (the change of the block's gradient)."""
    start, stop = block_bounds(samples, k)
    for i in range(start, stop):
        new = slope(samples, i, x)
        row_add(samples.rows, i, scale * (new - slopes[i]), out)
        slopes[i] = new
    return stop - start


@kernel
def refresh_samples(samples, x, slopes, out):
    """Replace the stored slopes of the first block by those at x; out ← out + the change of the block's gradient."""
    refresh_block(samples, 0, x, slopes, 1.0, out)


@kernel
def add_block_change(samples, k, x, slopes, scale, out):
    """out ← out + scale · (block k's gradient at x minus that of its stored slopes); the slopes stay."""
    start, stop = block_bounds(samples, k)
    for i in range(start, stop):
        row_add(samples.rows, i, scale * (slope(samples, i, x) - slopes[i]), out)
    return stop - start


def targets_of(samples: Samples) -> Targets:
    """The samples without their rows."""
    return Targets(samples.target, samples.weight, samples.loss)


@kernel
def mean_loss_and_gradient(samples, x, out):
    """(1/n) Σ ℓ_i(x), and out ← its gradient, in one sweep over the rows."""
    n = n_rows(samples.rows)
    out[:] = 0.0
    total = 0.0
    for i in range(n):
        z = row_dot(samples.rows, i, x)
        total += weight_of(samples, i) * value(samples.loss, z, samples.target[i])
        row_add(samples.rows, i, weight_of(samples, i) * derivative(samples.loss, z, samples.target[i]) / n, out)
    return total / n


@kernel
def mean_gradient(samples, x, out):
    """out ← the gradient of (1/n) Σ ℓ_i at x."""
    n = n_rows(samples.rows)
    out[:] = 0.0
    for i in range(n):
        row_add(samples.rows, i, slope(samples, i, x) / n, out)


@kernel
def mean_gradient_and_slopes(samples, x, slopes, out):
    """out ← the gradient of (1/n) Σ ℓ_i at x, and the slopes it is made of; returns n."""
    n = n_rows(samples.rows)
    out[:] = 0.0
    for i in range(n):
        slopes[i] = slope(samples, i, x)
        row_add(samples.rows, i, slopes[i] / n, out)
    return n


@kernel
def evaluate_samples(samples, x, n, slopes, margins, out):
    """Margins and slopes of all these samples, and out ← their part of the gradient of a mean over n; returns Σ w_i ℓ.
    Each row is read once."""
    out[:] = 0.0
    total = 0.0
    for i in range(n_rows(samples.rows)):
        margins[i] = row_dot(samples.rows, i, x)
        w = weight_of(samples, i)
        slopes[i] = w * derivative(samples.loss, margins[i], samples.target[i])
        total += w * value(samples.loss, margins[i], samples.target[i])
        row_add(samples.rows, i, slopes[i] / n, out)
    return total


@kernel
def mean_curvature_product(samples, x, v, out):
    """out ← (1/n) Σ ℓ''_i(x) a_i (a_i·v)."""
    n = n_rows(samples.rows)
    out[:] = 0.0
    for i in range(n):
        h = weight_of(samples, i) * curvature(samples.loss, row_dot(samples.rows, i, x), samples.target[i])
        row_add(samples.rows, i, h * row_dot(samples.rows, i, v) / n, out)


@kernel
def _mean_conjugate(targets, theta):
    n = targets.target.size
    total = 0.0
    for i in range(n):
        w = weight_of(targets, i)
        if w > 0.0:
            total += w * conjugate(targets.loss, theta[i] / w, targets.target[i])
    return total / n


@kernel
def _mean_loss(targets, margins):
    n = targets.target.size
    total = 0.0
    for i in range(n):
        total += weight_of(targets, i) * value(targets.loss, margins[i], targets.target[i])
    return total / n


def mean_loss(samples: Samples, margins: np.ndarray) -> float:
    """(1/n) Σ w_i ℓ(z_i, b_i) of the margins z."""
    return float(_mean_loss(targets_of(samples), margins))


def mean_conjugate(samples: Samples, theta: np.ndarray) -> float:
    """(1/n) Σ w_i ℓ*(θ_i / w_i, b_i): the conjugate of the weighted mean loss at θ/n."""
    return float(_mean_conjugate(targets_of(samples), theta))


@kernel
def slopes_at(samples, x, out):
    """out_i ← w_i ℓ'(a_i·x, b_i)."""
    for i in range(out.size):
        out[i] = slope(samples, i, x)

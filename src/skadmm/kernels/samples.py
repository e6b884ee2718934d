"""Sums over samples: the loss, its gradient and its curvature along a direction, by block or in all.

`weight` is empty when every sample counts the same. Block k holds rows k·batch … (k+1)·batch − 1. The functions here
are those of losses of one margin; ``coupled_samples.py`` has those of losses of several margins per sample.
"""

from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np

from skadmm.kernels.compile import attach, compiled, generic, inlined, kernel
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


@generic
def add_block_gradient(samples: Any, k: int, x: Any, scale: float, out: Any) -> int:
    """out ← out + scale · Σ over block k of ∇ℓ_i(x)."""


def _add_block_gradient(samples, k, x, scale, out):
    start, stop = block_bounds(samples, k)
    for i in range(start, stop):
        row_add(samples.rows, i, scale * slope(samples, i, x), out)
    return stop - start


attach(add_block_gradient, Samples, _add_block_gradient)


@generic
def refresh_block(samples: Any, k: int, x: Any, slopes: Any, scale: float, out: Any) -> int:
    """Replace block k's stored slopes by those at x; out ← out + scale · (the change of the block's gradient)."""


def _refresh_block(samples, k, x, slopes, scale, out):
    start, stop = block_bounds(samples, k)
    for i in range(start, stop):
        new = slope(samples, i, x)
        row_add(samples.rows, i, scale * (new - slopes[i]), out)
        slopes[i] = new
    return stop - start


attach(refresh_block, Samples, _refresh_block)


@kernel
def refresh_samples(samples, x, slopes, out):
    """Replace the stored slopes of the first block by those at x; out ← out + the change of the block's gradient."""
    refresh_block(samples, 0, x, slopes, 1.0, out)


@generic
def add_block_change(samples: Any, k: int, x: Any, slopes: Any, scale: float, out: Any) -> int:
    """out ← out + scale · (block k's gradient at x minus that of its stored slopes); the slopes stay."""


def _add_block_change(samples, k, x, slopes, scale, out):
    start, stop = block_bounds(samples, k)
    for i in range(start, stop):
        row_add(samples.rows, i, scale * (slope(samples, i, x) - slopes[i]), out)
    return stop - start


attach(add_block_change, Samples, _add_block_change)


@singledispatch
def targets_of(samples: Any) -> Any:
    """The samples without their rows."""
    return Targets(samples.target, samples.weight, samples.loss)


@singledispatch
def curvature_product(samples: Any, curvatures: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """The Hessian of the losses in their margins, from the curvatures of an expansion, times `columns`, (n, m)."""
    return curvatures[:, None] * columns


@generic
def mean_loss_and_gradient(samples: Any, x: Any, out: Any) -> float:
    """(1/n) Σ ℓ_i(x), and out ← its gradient, in one sweep over the rows."""


def _mean_loss_and_gradient(samples, x, out):
    n = n_rows(samples.rows)
    out[:] = 0.0
    total = 0.0
    for i in range(n):
        z = row_dot(samples.rows, i, x)
        total += weight_of(samples, i) * value(samples.loss, z, samples.target[i])
        row_add(samples.rows, i, weight_of(samples, i) * derivative(samples.loss, z, samples.target[i]) / n, out)
    return total / n


attach(mean_loss_and_gradient, Samples, _mean_loss_and_gradient)


@generic
def mean_gradient_generic(samples: Any, x: Any, out: Any) -> None:
    """out ← the gradient of (1/n) Σ ℓ_i at x."""


def _mean_gradient(samples, x, out):
    n = n_rows(samples.rows)
    out[:] = 0.0
    for i in range(n):
        row_add(samples.rows, i, slope(samples, i, x) / n, out)


attach(mean_gradient_generic, Samples, _mean_gradient)


@kernel
def mean_gradient(samples, x, out):
    """out ← the gradient of (1/n) Σ ℓ_i at x."""
    mean_gradient_generic(samples, x, out)


@generic
def mean_gradient_and_slopes(samples: Any, x: Any, slopes: Any, out: Any) -> int:
    """out ← the gradient of (1/n) Σ ℓ_i at x, and the slopes it is made of; returns n."""


def _mean_gradient_and_slopes(samples, x, slopes, out):
    n = n_rows(samples.rows)
    out[:] = 0.0
    for i in range(n):
        slopes[i] = slope(samples, i, x)
        row_add(samples.rows, i, slopes[i] / n, out)
    return n


attach(mean_gradient_and_slopes, Samples, _mean_gradient_and_slopes)


@generic
def mean_curvature_product(samples: Any, x: Any, v: Any, out: Any) -> None:
    """out ← (1/n) Σ ℓ''_i(x) a_i (a_i·v)."""


def _mean_curvature_product(samples, x, v, out):
    n = n_rows(samples.rows)
    out[:] = 0.0
    for i in range(n):
        h = weight_of(samples, i) * curvature(samples.loss, row_dot(samples.rows, i, x), samples.target[i])
        row_add(samples.rows, i, h * row_dot(samples.rows, i, v) / n, out)


attach(mean_curvature_product, Samples, _mean_curvature_product)


@generic
def mean_conjugate_generic(targets: Any, theta: Any) -> float:
    """(1/n) Σ w_i ℓ*(θ_i / w_i, b_i)."""


def _mean_conjugate(targets, theta):
    n = targets.target.size
    total = 0.0
    for i in range(n):
        w = weight_of(targets, i)
        if w > 0.0:
            total += w * conjugate(targets.loss, theta[i] / w, targets.target[i])
    return total / n


attach(mean_conjugate_generic, Targets, _mean_conjugate)
_conjugate_of = compiled(mean_conjugate_generic)


@generic
def evaluate_margins_generic(targets: Any, margins: Any, slopes: Any) -> float:
    """slopes_i ← w_i ℓ'(z_i, b_i) at the margins z; returns Σ w_i ℓ(z_i, b_i)."""


def _evaluate_margins(targets, margins, slopes):
    total = 0.0
    for i in range(margins.size):
        w, z, b = weight_of(targets, i), margins[i], targets.target[i]
        slopes[i] = w * derivative(targets.loss, z, b)
        total += w * value(targets.loss, z, b)
    return total


attach(evaluate_margins_generic, Targets, _evaluate_margins)
_evaluation_of = compiled(evaluate_margins_generic)


@kernel
def _mean_slope(targets, margin):
    n = targets.target.size
    total = 0.0
    for i in range(n):
        total += weight_of(targets, i) * derivative(targets.loss, margin, targets.target[i])
    return total / n


def mean_slope_at(targets: Targets, margin: float) -> float:
    """(1/n) Σ w_i ℓ'(z, b_i) at one margin z for all samples."""
    return float(_mean_slope(targets, margin))


def mean_loss_at(targets: Targets, margins: np.ndarray) -> float:
    """(1/n) Σ w_i ℓ(z_i, b_i) of the margins z, without rows."""
    return float(_evaluation_of(targets, margins, np.empty(margins.size))) / margins.size


def mean_conjugate_at(targets: Targets, theta: np.ndarray) -> float:
    """(1/n) Σ w_i ℓ*(θ_i / w_i, b_i), without rows."""
    return float(_conjugate_of(targets, theta))


@kernel
def _mean_curvature(targets, margin):
    n = targets.target.size
    total = 0.0
    for i in range(n):
        total += weight_of(targets, i) * curvature(targets.loss, margin, targets.target[i])
    return total / n


def mean_curvature_at(samples: Samples, margin: float) -> float:
    """(1/n) Σ w_i ℓ''(z, b_i) at one margin z for all samples."""
    return float(_mean_curvature(targets_of(samples), margin))


def mean_loss(samples: Samples, margins: np.ndarray) -> float:
    """(1/n) Σ w_i ℓ(z_i, b_i) of the margins z."""
    return mean_loss_at(targets_of(samples), margins)


def evaluate_margins(samples: Any, margins: np.ndarray, slopes: np.ndarray) -> float:
    """slopes_i ← w_i ℓ'(z_i, b_i) at the margins z; returns Σ w_i ℓ(z_i, b_i)."""
    return float(_evaluation_of(targets_of(samples), margins, slopes))


def mean_conjugate(samples: Samples, theta: np.ndarray) -> float:
    """(1/n) Σ w_i ℓ*(θ_i / w_i, b_i): the conjugate of the weighted mean loss at θ/n."""
    return float(_conjugate_of(targets_of(samples), theta))


@generic
def slopes_at_generic(samples: Any, x: Any, out: Any) -> None:
    """out_i ← w_i ℓ'(a_i·x, b_i)."""


def _slopes_at(samples, x, out):
    for i in range(out.size):
        out[i] = slope(samples, i, x)


attach(slopes_at_generic, Samples, _slopes_at)
slopes_at = compiled(slopes_at_generic)

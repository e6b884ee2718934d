"""Sums over samples: the loss, its gradient and its curvature along a direction, by block or in all.

`weight` is empty when every sample counts the same. Block k holds rows k·batch … (k+1)·batch − 1. The functions here
are those of losses of one margin; ``coupled_samples.py`` has those of losses of several margins per sample.
"""

from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np

from skadmm.kernels.compile import attach, compiled, generic, inlined, kernel
from skadmm.kernels.loss_functions import conjugate, curvature, derivative, model_curvature, value
from skadmm.kernels.rows import n_rows, row_add, row_dot

MARGINS_PER_CHUNK = 1 << 16
"""Margins at which losses are evaluated at a time: temporary arrays have this size, whatever the number of samples."""


class Samples(NamedTuple):
    """Rows in memory, with their targets and normalised weights, under a loss, cut into fixed blocks."""

    rows: Any
    target: Any
    weight: Any
    loss: Any
    batch: int


class Targets(NamedTuple):
    """Samples without their rows and weights: what a kernel of a loss needs besides margins."""

    target: Any
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
    """The samples without their rows and weights."""
    return Targets(samples.target, samples.loss)


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


@kernel
def evaluate_samples(samples, x, n, slopes, margins, out):
    """Margins and slopes of all these samples, and out ← out + their part of the gradient of a mean over n; returns
    Σ w_i ℓ. Each row is read once."""
    total = 0.0
    for i in range(n_rows(samples.rows)):
        z, w, b = row_dot(samples.rows, i, x), weight_of(samples, i), samples.target[i]
        margins[i] = z
        new = w * derivative(samples.loss, z, b)
        slopes[i] = new
        total += w * value(samples.loss, z, b)
        row_add(samples.rows, i, new / n, out)
    return total


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
def evaluate_targets(targets: Any, margins: Any, values: Any, slopes: Any, curvatures: Any) -> None:
    """values, slopes and curvatures ← ℓ, ℓ' and the curvature of a model at the margins, without weights.

    It is the only kernel of a loss for all that solvers compute from margins.
    """


def _evaluate_targets(targets, margins, values, slopes, curvatures):
    for i in range(margins.size):
        z, b = margins[i], targets.target[i]
        values[i] = value(targets.loss, z, b)
        slopes[i] = derivative(targets.loss, z, b)
        curvatures[i] = model_curvature(targets.loss, z, b)


@generic
def conjugates_of_targets(targets: Any, theta: Any, values: Any) -> None:
    """values_i ← ℓ*(θ_i, b_i), without weights."""


def _conjugates_of_targets(targets, theta, values):
    for i in range(theta.size):
        values[i] = conjugate(targets.loss, theta[i], targets.target[i])


attach(evaluate_targets, Targets, _evaluate_targets)
attach(conjugates_of_targets, Targets, _conjugates_of_targets)
_evaluate = compiled(evaluate_targets)
_conjugates = compiled(conjugates_of_targets)


@singledispatch
def rows_per_sample(samples: Any) -> int:
    """How many consecutive margins belong together."""
    return 1


def evaluate_margins(
    samples: Any, place: Any, margins: np.ndarray, slopes: np.ndarray, curvatures: np.ndarray
) -> float:
    """Slopes w_i ℓ' and curvatures (of a model) of the samples at `place`, a slice or row numbers, at their margins;
    returns Σ w_i ℓ."""
    targets, values = targets_of(samples), np.empty(margins.size)
    _evaluate(targets._replace(target=targets.target[place]), margins, values, slopes, curvatures)
    if samples.weight.size:
        for part in (values, slopes, curvatures):
            part *= samples.weight[place]
    return float(values.sum())


def sum_of_losses(samples: Any, place: Any, margins: np.ndarray) -> float:
    """Σ w_i ℓ of the samples at `place`, a slice or row numbers, at their margins."""
    together, total = rows_per_sample(samples), 0.0
    length = max(MARGINS_PER_CHUNK // together, 1) * together
    for start in range(0, margins.size, length):
        stop = min(start + length, margins.size)
        here = slice(place.start + start, place.start + stop) if isinstance(place, slice) else place[start:stop]
        total += evaluate_margins(samples, here, margins[start:stop], *np.empty((2, stop - start)))
    return total


def mean_loss(samples: Any, margins: np.ndarray) -> float:
    """(1/n) Σ w_i ℓ(z_i, b_i) of the margins z."""
    return sum_of_losses(samples, slice(0, margins.size), margins) / margins.size


def mean_conjugate(samples: Any, theta: np.ndarray) -> float:
    """(1/n) Σ w_i ℓ*(θ_i / w_i, b_i): the conjugate of the weighted mean loss at θ/n."""
    values, weight = np.empty(theta.size), samples.weight
    if weight.size:
        counted = weight > 0.0
        _conjugates(targets_of(samples), np.divide(theta, weight, out=np.zeros(theta.size), where=counted), values)
        values = values[counted] * weight[counted]
    else:
        _conjugates(targets_of(samples), theta, values)
    return float(values.sum()) / theta.size


@kernel
def _at_one_margin(targets, margin, slopes, curvatures):
    for i in range(slopes.size):
        slopes[i] = derivative(targets.loss, margin, targets.target[i])
        curvatures[i] = curvature(targets.loss, margin, targets.target[i])


def at_one_margin(samples: Samples, margin: float) -> tuple[np.ndarray, np.ndarray]:
    """ℓ'(z, b_i) and ℓ''(z, b_i) of all samples at one margin z, without weights."""
    slopes, curvatures = np.empty((2, samples.target.size))
    _at_one_margin(targets_of(samples), margin, slopes, curvatures)
    return slopes, curvatures


def mean_slope(samples: Samples, margin: float) -> float:
    """(1/n) Σ w_i ℓ'(z, b_i) at one margin z for all samples."""
    slopes, _ = at_one_margin(samples, margin)
    if samples.weight.size:
        slopes *= samples.weight
    return float(slopes.sum()) / slopes.size


def mean_curvature_at(samples: Samples, margin: float) -> float:
    """(1/n) Σ w_i ℓ''(z, b_i) at one margin z for all samples."""
    _, curvatures = at_one_margin(samples, margin)
    if samples.weight.size:
        curvatures *= samples.weight
    return float(curvatures.sum()) / curvatures.size


@generic
def slopes_at_generic(samples: Any, x: Any, out: Any) -> None:
    """out_i ← w_i ℓ'(a_i·x, b_i)."""


def _slopes_at(samples, x, out):
    for i in range(out.size):
        out[i] = slope(samples, i, x)


attach(slopes_at_generic, Samples, _slopes_at)
slopes_at = compiled(slopes_at_generic)

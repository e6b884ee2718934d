"""Sums over samples whose loss is a function of several margins, one for each output.

A sample is k consecutive rows of :class:`~skadmm.kernels.rows.StackedRows`. The row generics of the loss get its k
margins and targets at once. Slopes, margins and weights have an entry for each of the n·k rows, as those of separable
losses have, so nothing else changes for a solver. The weights of the rows of a sample are equal.

A curvature here is the hᵢ of diag(h) − h hᵀ / Σ h, the Hessian of a sample in its margins.
"""

from typing import Any, NamedTuple

import numpy as np

from skadmm.kernels.compile import attach, facts, generic, inlined
from skadmm.kernels.rows import n_rows, row_add, row_dot
from skadmm.kernels.samples import (
    add_block_change,
    add_block_gradient,
    block_bounds,
    conjugates_of_targets,
    curvature_product,
    evaluate_targets,
    mean_curvature_product,
    mean_gradient_and_slopes,
    mean_gradient_generic,
    mean_loss_and_gradient,
    refresh_block,
    rows_per_sample,
    slopes_at_generic,
    targets_of,
    weight_of,
)


@facts(allocates=True)
class CoupledSamples(NamedTuple):
    """Samples, k rows each, under a loss of k margins; the fields are those of ``Samples``."""

    rows: Any
    target: Any
    weight: Any
    loss: Any
    batch: int


class CoupledTargets(NamedTuple):
    """Coupled samples without their rows and weights."""

    target: Any
    loss: Any
    outputs: int


@targets_of.register
def _(samples: CoupledSamples) -> CoupledTargets:
    return CoupledTargets(samples.target, samples.loss, samples.rows.outputs)


@rows_per_sample.register
def _(samples: CoupledSamples) -> int:
    return int(samples.rows.outputs)


@curvature_product.register
def _(samples: CoupledSamples, curvatures: np.ndarray, columns: np.ndarray) -> np.ndarray:
    k = samples.rows.outputs
    h, parts = curvatures.reshape(-1, k, 1), columns.reshape(-1, k, columns.shape[1])
    total = h.sum(axis=1, keepdims=True)
    mean = (h * parts).sum(axis=1, keepdims=True) / np.where(total > 0.0, total, 1.0)
    return (h * (parts - mean)).reshape(columns.shape)


@generic
def row_value(loss: Any, z: Any, b: Any) -> float:
    """ℓ(z, b) of k margins and targets."""


@generic
def row_derivative(loss: Any, z: Any, b: Any, out: Any) -> None:
    """out ← the gradient of ℓ in its margins."""


@generic
def row_curvature(loss: Any, z: Any, b: Any, out: Any) -> None:
    """out ← h, where the Hessian of ℓ in its margins is diag(h) − h hᵀ / Σ h."""


@generic
def row_evaluate(loss: Any, z: Any, b: Any, slopes: Any, curvatures: Any) -> float:
    """ℓ(z, b), and its gradient and curvature in one: they share most of their work."""


@generic
def row_conjugate(loss: Any, theta: Any, b: Any) -> float:
    """ℓ*(θ, b) = sup over z of θ·z − ℓ(z, b); infinite outside its domain."""


@inlined
def _row_slopes(samples, start, k, x, z, out):
    """z ← the margins of the sample whose first row is `start`, and out ← its slopes; its weight."""
    for c in range(k):
        z[c] = row_dot(samples.rows, start + c, x)
    w = weight_of(samples, start)
    row_derivative(samples.loss, z, samples.target[start : start + k], out)
    for c in range(k):
        out[c] *= w
    return w


def _add_block_gradient(samples, k, x, scale, out):
    outputs = samples.rows.outputs
    z, new = np.empty(outputs), np.empty(outputs)
    start, stop = block_bounds(samples, k)
    for i in range(start, stop, outputs):
        _row_slopes(samples, i, outputs, x, z, new)
        for c in range(outputs):
            row_add(samples.rows, i + c, scale * new[c], out)
    return stop - start


def _refresh_block(samples, k, x, slopes, scale, out):
    outputs = samples.rows.outputs
    z, new = np.empty(outputs), np.empty(outputs)
    start, stop = block_bounds(samples, k)
    for i in range(start, stop, outputs):
        _row_slopes(samples, i, outputs, x, z, new)
        for c in range(outputs):
            row_add(samples.rows, i + c, scale * (new[c] - slopes[i + c]), out)
            slopes[i + c] = new[c]
    return stop - start


def _add_block_change(samples, k, x, slopes, scale, out):
    outputs = samples.rows.outputs
    z, new = np.empty(outputs), np.empty(outputs)
    start, stop = block_bounds(samples, k)
    for i in range(start, stop, outputs):
        _row_slopes(samples, i, outputs, x, z, new)
        for c in range(outputs):
            row_add(samples.rows, i + c, scale * (new[c] - slopes[i + c]), out)
    return stop - start


def _mean_loss_and_gradient(samples, x, out):
    n, outputs = n_rows(samples.rows), samples.rows.outputs
    z, new = np.empty(outputs), np.empty(outputs)
    out[:] = 0.0
    total = 0.0
    for i in range(0, n, outputs):
        w = _row_slopes(samples, i, outputs, x, z, new)
        total += w * row_value(samples.loss, z, samples.target[i : i + outputs])
        for c in range(outputs):
            row_add(samples.rows, i + c, new[c] / n, out)
    return total / n


def _mean_gradient(samples, x, out):
    n, outputs = n_rows(samples.rows), samples.rows.outputs
    z, new = np.empty(outputs), np.empty(outputs)
    out[:] = 0.0
    for i in range(0, n, outputs):
        _row_slopes(samples, i, outputs, x, z, new)
        for c in range(outputs):
            row_add(samples.rows, i + c, new[c] / n, out)


def _mean_gradient_and_slopes(samples, x, slopes, out):
    n, outputs = n_rows(samples.rows), samples.rows.outputs
    z = np.empty(outputs)
    out[:] = 0.0
    for i in range(0, n, outputs):
        _row_slopes(samples, i, outputs, x, z, slopes[i : i + outputs])
        for c in range(outputs):
            row_add(samples.rows, i + c, slopes[i + c] / n, out)
    return n


def _mean_curvature_product(samples, x, v, out):
    n, outputs = n_rows(samples.rows), samples.rows.outputs
    z, h, u = np.empty(outputs), np.empty(outputs), np.empty(outputs)
    out[:] = 0.0
    for i in range(0, n, outputs):
        for c in range(outputs):
            z[c] = row_dot(samples.rows, i + c, x)
            u[c] = row_dot(samples.rows, i + c, v)
        row_curvature(samples.loss, z, samples.target[i : i + outputs], h)
        total, along = 0.0, 0.0
        for c in range(outputs):
            total += h[c]
            along += h[c] * u[c]
        mean = along / total if total > 0.0 else 0.0
        w = weight_of(samples, i)
        for c in range(outputs):
            row_add(samples.rows, i + c, w * h[c] * (u[c] - mean) / n, out)


def _slopes_at(samples, x, out):
    outputs = samples.rows.outputs
    z = np.empty(outputs)
    for i in range(0, out.size, outputs):
        _row_slopes(samples, i, outputs, x, z, out[i : i + outputs])


def _evaluate_targets(targets, margins, values, slopes, curvatures):
    """The loss of a sample is that of its first row; the other rows have none."""
    outputs = targets.outputs
    for i in range(0, margins.size, outputs):
        part = slice(i, i + outputs)
        z, b = margins[part], targets.target[part]
        for c in range(i + 1, i + outputs):
            values[c] = 0.0
        values[i] = row_evaluate(targets.loss, z, b, slopes[part], curvatures[part])


def _conjugates_of_targets(targets, theta, values):
    outputs = targets.outputs
    for i in range(0, theta.size, outputs):
        part = slice(i, i + outputs)
        for c in range(i + 1, i + outputs):
            values[c] = 0.0
        values[i] = row_conjugate(targets.loss, theta[part], targets.target[part])


_OF_SAMPLES: tuple[tuple[Any, Any], ...] = (
    (add_block_gradient, _add_block_gradient),
    (refresh_block, _refresh_block),
    (add_block_change, _add_block_change),
    (mean_loss_and_gradient, _mean_loss_and_gradient),
    (mean_gradient_generic, _mean_gradient),
    (mean_gradient_and_slopes, _mean_gradient_and_slopes),
    (mean_curvature_product, _mean_curvature_product),
    (slopes_at_generic, _slopes_at),
)
_OF_TARGETS: tuple[tuple[Any, Any], ...] = (
    (evaluate_targets, _evaluate_targets),
    (conjugates_of_targets, _conjugates_of_targets),
)
for _generic, _implementation in _OF_SAMPLES:
    attach(_generic, CoupledSamples, _implementation)
for _generic, _implementation in _OF_TARGETS:
    attach(_generic, CoupledTargets, _implementation)

"""Sweeps over the columns of a working set for several outputs: block coordinate descent on a quadratic model of the
loss whose Gram matrix would be too large.

The model has the Hessian diag(hᵢ) − hᵢ hᵢᵀ/Σhᵢ of each sample in its margins, or diag(hᵢ) where the loss is a sum over
outputs. The slopes of the model at all samples are kept, so a step of one feature costs two passes over its column.
A step minimises a bound of the model that is diagonal over the coefficients of the block, with the penalty.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from skadmm.kernels.compile import attach, generic, inlined, kernel
from skadmm.kernels.rows import CSRRows, DenseRows, span, unsigned
from skadmm.regularizers._norms import clip_linf

ROOT_STEPS = 30
"""The maximum number of Newton steps for the norm of a block."""


class SweepModel(NamedTuple):
    """A quadratic model of the loss on the pairs (a feature and an output) of a working set."""

    columns: Any
    """The columns of the distinct features, as rows."""
    first: Any
    """Run r is the pairs first[r] … first[r + 1] − 1: consecutive ones of one feature, within a block."""
    column: Any
    """The column of each run."""
    output: Any
    """The output of each pair."""
    runs: Any
    """Block b is the runs runs[b] … runs[b + 1] − 1."""
    h: Any
    """The curvatures, of shape (n, k)."""
    inverse: Any
    """1/Σ hᵢ of each sample; empty where the loss is a sum over outputs."""
    scale: float
    """The model is a mean over 1/scale rows."""


class SweepPenalty(NamedTuple):
    """The penalty on the pairs of a working set."""

    starts: Any
    """Block b is the pairs starts[b] … starts[b + 1] − 1."""
    l1: Any
    ridge: Any
    lower: Any
    upper: Any
    norm: Any
    group: Any


@generic
def column_products(columns: Any, r: int, outputs: Any, v: Any, out: Any) -> None:
    """out_p ← Σ_i a_ir v[i, outputs_p]."""


@generic
def add_column(columns: Any, r: int, outputs: Any, step: Any, h: Any, inverse: Any, v: Any) -> None:
    """v_i ← v_i + a_ir (h_i ∘ step − h_i (h_i · step) inverse_i), the step in some outputs, for all samples."""


@generic
def column_bounds(columns: Any, r: int, outputs: Any, h: Any, inverse: Any, out: Any) -> None:
    """out_p ← Σ_i a_ir² d_i, for a diagonal d_i that is above the Hessian of sample i in its margins."""


@inlined
def _add_products(a, line, outputs, out):
    if outputs.size == line.size:  # all outputs, in order
        for p in range(out.size):
            out[p] += a * line[p]
    else:
        for p in range(out.size):
            out[p] += a * line[outputs[p]]


@inlined
def _add_change(a, outputs, step, h, inverse, i, line):
    """The change of the slopes of sample i, `line`, by the change a · step of its margins."""
    if inverse.size == 0:
        for p in range(step.size):
            line[outputs[p]] += a * h[outputs[p]] * step[p]
    elif outputs.size == line.size:
        mean = 0.0
        for c in range(step.size):
            mean += h[c] * step[c]
        mean *= inverse[i]
        for c in range(line.size):
            line[c] += a * h[c] * (step[c] - mean)
    else:
        mean = 0.0
        for p in range(step.size):
            change = a * h[outputs[p]] * step[p]
            line[outputs[p]] += change
            mean += change
        mean *= inverse[i]
        for c in range(line.size):
            line[c] -= h[c] * mean


@inlined
def _add_bounds(square, outputs, h, inverse, i, out):
    """diag(h) is above diag(h) − h hᵀ/Σh; so is 2 diag(h(1 − h/Σh)), which is smaller where one share is above ½."""
    large = False
    if inverse.size:
        for c in range(h.size):
            large = large or 2.0 * h[c] * inverse[i] > 1.0
    for p in range(out.size):
        bound = h[outputs[p]]
        if large:
            bound *= 2.0 * (1.0 - bound * inverse[i])
        out[p] += square * bound


def _dense_products(columns, r, outputs, v, out):
    out[:] = 0.0
    for i in range(v.shape[0]):
        _add_products(columns.values[r, i], v[i], outputs, out)


def _csr_products(columns, r, outputs, v, out):
    out[:] = 0.0
    for e in span(columns.indptr, r):
        _add_products(columns.data[e], v[unsigned(columns.indices[e])], outputs, out)


def _dense_add(columns, r, outputs, step, h, inverse, v):
    for i in range(v.shape[0]):
        _add_change(columns.values[r, i], outputs, step, h[i], inverse, i, v[i])


def _csr_add(columns, r, outputs, step, h, inverse, v):
    for e in span(columns.indptr, r):
        i = unsigned(columns.indices[e])
        _add_change(columns.data[e], outputs, step, h[i], inverse, i, v[i])


def _dense_bounds(columns, r, outputs, h, inverse, out):
    out[:] = 0.0
    for i in range(h.shape[0]):
        a = columns.values[r, i]
        _add_bounds(a * a, outputs, h[i], inverse, i, out)


def _csr_bounds(columns, r, outputs, h, inverse, out):
    out[:] = 0.0
    for e in span(columns.indptr, r):
        i = unsigned(columns.indices[e])
        _add_bounds(columns.data[e] * columns.data[e], outputs, h[i], inverse, i, out)


for _generic, _dense, _csr in (
    (column_products, _dense_products, _csr_products),
    (add_column, _dense_add, _csr_add),
    (column_bounds, _dense_bounds, _csr_bounds),
):
    attach(_generic, DenseRows, _dense)
    attach(_generic, CSRRows, _csr)


@kernel
def diagonal_bounds(model, ridge, damping, out):
    """out ← for each pair a bound of its curvature, with which a diagonal is above the Hessian on every block."""
    for r in range(model.first.size - 1):
        start, stop = model.first[r], model.first[r + 1]
        column_bounds(model.columns, model.column[r], model.output[start:stop], model.h, model.inverse, out[start:stop])
    for b in range(model.runs.size - 1):
        count = model.runs[b + 1] - model.runs[b]  # |Σ_r u_r|² is at most `count` times Σ_r |u_r|²
        for p in range(model.first[model.runs[b]], model.first[model.runs[b + 1]]):
            out[p] = (1.0 + damping) * count * model.scale * out[p] + ridge[p]
            if out[p] <= 0.0:
                out[p] = 1.0


@inlined
def block_norm(start, stop, bound, aim, strength):
    """The norm t of the minimiser x of ½ Σ bound (x − aim/bound)² + strength ‖x‖₂: x = aim/(bound + strength/t), where
    ‖aim‖₂ > strength. Newton's method for 1/‖aim/(bound t + strength)‖ = 1 increases t from a lower bound."""
    square, largest = 0.0, 0.0
    for p in range(start, stop):
        square += aim[p] * aim[p]
        largest = max(largest, bound[p])
    t = (math.sqrt(square) - strength) / largest
    for _ in range(ROOT_STEPS):
        total, slope = 0.0, 0.0
        for p in range(start, stop):
            below = bound[p] * t + strength
            part = aim[p] * aim[p] / (below * below)
            total += part
            slope += part * bound[p] / below
        size = math.sqrt(total)
        change = (size - 1.0) * total / slope
        t += change
        if abs(change) <= 1e-14 * t:
            break
    return t


@inlined
def minimise_block(penalty, b, bound, x, q, aim, new):
    """new ← the minimiser over block b of q·(new − x) + ½ Σ bound (new − x)² and the penalty; the ridge is in q."""
    start, stop = penalty.starts[b], penalty.starts[b + 1]
    norm, strength = penalty.norm[b], penalty.group[b]
    largest = 0.0
    for p in range(start, stop):
        largest = max(largest, bound[p])
    square = 0.0
    for p in range(start, stop):
        curvature = largest if norm == 2 else bound[p]
        u = curvature * x[p] - q[p]
        u -= min(max(u, -penalty.l1[p]), penalty.l1[p])
        aim[p] = min(max(u, curvature * penalty.lower[p]), curvature * penalty.upper[p])
        new[p] = aim[p] / curvature
        square += aim[p] * aim[p]
    if norm == 1:
        zero = square <= strength * strength
        t = 0.0 if zero else block_norm(start, stop, bound, aim, strength)
        for p in range(start, stop):
            new[p] = 0.0 if zero or t <= 0.0 else aim[p] / (bound[p] + strength / t)
    elif norm == 2:
        clip_linf(new, range(start, stop), strength / largest, new)


@inlined
def column_sweep(model, penalty, bound, every, x, slopes, q, aim, new):
    """One step of every block, or of those that are not zero; the largest change times its curvature."""
    moved = 0.0
    for b in range(penalty.starts.size - 1):
        start, stop = penalty.starts[b], penalty.starts[b + 1]
        some = every
        for p in range(start, stop):
            some = some or x[p] != 0.0
        if not some:
            continue
        for r in range(model.runs[b], model.runs[b + 1]):
            first, last = model.first[r], model.first[r + 1]
            column_products(model.columns, model.column[r], model.output[first:last], slopes, q[first:last])
        for p in range(start, stop):
            q[p] = model.scale * q[p] + penalty.ridge[p] * x[p]
        minimise_block(penalty, b, bound, x, q, aim, new)
        for r in range(model.runs[b], model.runs[b + 1]):
            first, last, changed = model.first[r], model.first[r + 1], False
            for p in range(first, last):
                aim[p] = new[p] - x[p]
                moved = max(moved, abs(aim[p]) * bound[p])
                changed = changed or aim[p] != 0.0
                x[p] = new[p]
            if changed:
                add_column(
                    model.columns, model.column[r], model.output[first:last], aim[first:last], model.h, model.inverse,
                    slopes,
                )  # fmt: skip
    return moved


@kernel
def column_sweeps(model, penalty, bound, x, slopes, goal, limit, short, work):
    """Sweeps over all blocks and, between them, over those that are not zero, until none changes by more than `goal`.
    x and the slopes of the model are changed in place; `work` is an array of three rows. Returns how many sweeps were
    made."""
    q, aim, new = work[0], work[1], work[2]
    count = 0
    for _ in range(limit):
        for inner in range(short + 1):
            moved = column_sweep(model, penalty, bound, inner == 0, x, slopes, q, aim, new)
            count += 1
            if inner == 0 and moved <= goal:
                return count
            if moved <= 0.5 * goal:
                break
    return count

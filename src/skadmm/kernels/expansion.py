"""Second-order expansions of the loss in the margins: what SAN-ADMM reads from the rows.

Sample i is expanded at the margin zᵢ: slope wᵢℓ'(zᵢ), curvature wᵢℓ''(zᵢ). Every kernel works on an array of row
numbers, so a stage, a set of hard rows and the whole data are the same thing. Sums over many rows are cut into a fixed
number of parts, run on as many threads as there are and added in order: the result does not depend on the threads.
"""

import functools
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numba
import numpy as np

from skadmm import _watch
from skadmm._compile import attach, generic, kernel
from skadmm.kernels.rows import CSRRows, DenseRows, row_add, row_dot
from skadmm.kernels.samples import weight_of
from skadmm.losses._base import curvature, derivative, value

PARTS = 4
AT_ONCE = 1 << 20
"""Rows between two moments at which a run can be stopped; fewer where rows come from files."""
SCALAR_WORK = 20.0
"""Evaluating a loss costs about as much as reading this many entries."""
SMALL = 1_000_000
"""Below this much work (entries read, or products formed) one part is quicker than four."""


@kernel
def margins(rows, index, x, out):
    """out_i ← a_i·x for the rows in `index`."""
    for i in index:
        out[i] = row_dot(rows, i, x)


@kernel
def margins_of_two(rows, index, x, step, out, move):
    """out_i ← a_i·x and move_i ← a_i·step for the rows in `index`, each row read once."""
    for i in index:
        out[i] = row_dot(rows, i, x)
        move[i] = row_dot(rows, i, step)


@kernel
def loss_along(samples, index, z, move, t):
    """Σ over `index` of w_i ℓ(z_i + t·move_i)."""
    total = 0.0
    for i in index:
        total += weight_of(samples, i) * value(samples.loss, z[i] + t * move[i], samples.target[i])
    return total


@kernel
def expand_along(samples, index, z, move, t, slope, bend):
    """Slope and curvature of every row of `index` at z_i + t·move_i; returns Σ w_i ℓ."""
    total = 0.0
    for i in index:
        w = weight_of(samples, i)
        margin = z[i] + t * move[i]
        slope[i] = w * derivative(samples.loss, margin, samples.target[i])
        bend[i] = w * curvature(samples.loss, margin, samples.target[i])
        total += w * value(samples.loss, margin, samples.target[i])
    return total


@kernel
def expand(samples, index, z, slope, bend):
    """Slope and curvature of every row of `index` at its margin z_i; returns Σ w_i ℓ(z_i)."""
    return expand_along(samples, index, z, z, 0.0, slope, bend)


@kernel
def add_rows(rows, index, scale, out):
    """out ← out + Σ over `index` of scale_i a_i."""
    for i in index:
        row_add(rows, i, scale[i], out)


@kernel
def add_squares(rows, index, out):
    """out_j ← out_j + Σ over `index` of a_ij²."""
    _add_squares(rows, index, out)


@generic
def _add_squares(rows: Any, index: Any, out: Any) -> None:
    """out_j ← out_j + Σ over `index` of a_ij²."""


def _csr_squares(rows, index, out):
    for i in index:
        for p in range(rows.indptr[i], rows.indptr[i + 1]):
            out[rows.indices[p]] += rows.data[p] * rows.data[p]


def _dense_squares(rows, index, out):
    for i in index:
        for j in range(out.size):
            out[j] += rows.values[i, j] * rows.values[i, j]


attach(_add_squares, CSRRows, _csr_squares)
attach(_add_squares, DenseRows, _dense_squares)


@generic
def _add_outer(rows: Any, index: Any, scale: Any, out: Any) -> None:
    """Lower triangle of out ← out + Σ over `index` of scale_i a_i a_iᵀ."""


def _csr_outer(rows, index, scale, out):
    for i in index:
        for p in range(rows.indptr[i], rows.indptr[i + 1]):
            r = rows.indices[p]
            v = scale[i] * rows.data[p]
            # Column numbers are sorted, so this stays in the lower triangle.
            for q in range(rows.indptr[i], p + 1):
                out[r, rows.indices[q]] += v * rows.data[q]


def _dense_outer(rows, index, scale, out):
    # Four rows at a time: one load and store of `out` for four products.
    d = out.shape[0]
    buffer = np.zeros((4, d))  # not empty: a row beyond the last counts 0 times, and 0 · NaN is NaN
    weight = np.empty(4)
    for start in range(0, index.size, 4):
        for k in range(4):
            if start + k < index.size:
                i = index[start + k]
                weight[k] = scale[i]
                for j in range(d):
                    buffer[k, j] = rows.values[i, j]
            else:
                weight[k] = 0.0
        b0, b1, b2, b3 = buffer[0], buffer[1], buffer[2], buffer[3]
        for r in range(d):
            a0, a1, a2, a3 = weight[0] * b0[r], weight[1] * b1[r], weight[2] * b2[r], weight[3] * b3[r]
            line = out[r]
            for c in range(r + 1):
                line[c] += a0 * b0[c] + a1 * b1[c] + a2 * b2[c] + a3 * b3[c]


attach(_add_outer, CSRRows, _csr_outer)
attach(_add_outer, DenseRows, _dense_outer)


@kernel
def add_outer(rows, index, scale, out):
    """Lower triangle of out ← out + Σ over `index` of scale_i a_i a_iᵀ."""
    _add_outer(rows, index, scale, out)


@kernel
def mirror(matrix):
    """The lower triangle, copied into the upper one."""
    for i in range(matrix.shape[0]):
        for j in range(i):
            matrix[j, i] = matrix[i, j]


def _added(total: np.ndarray, part: np.ndarray) -> np.ndarray:
    total += part
    return total


@cache
def _pool() -> ThreadPoolExecutor:
    """As many threads as Numba may use: NUMBA_NUM_THREADS, or the processors this process is allowed."""
    allowed: int = numba.config.NUMBA_NUM_THREADS  # type: ignore[attr-defined]
    return ThreadPoolExecutor(max_workers=min(PARTS, allowed), thread_name_prefix="skadmm")


def in_parts(
    work: Callable[[np.ndarray], Any], index: np.ndarray, entries: float, at_once: int = AT_ONCE
) -> Iterator[Any]:
    """`work` on fixed parts of `index`, several at once; the answers in order.

    `entries` is how much all of it reads; between `at_once` rows and the next a run can be stopped.
    """
    for first in range(0, max(index.size, 1), at_once):
        _watch.pulse()
        some = index[first : first + at_once]
        if entries * (some.size / max(index.size, 1)) < SMALL:
            yield work(some)
        else:
            yield from _pool().map(work, np.array_split(some, PARTS))


def sum_rows(rows: Any, index: np.ndarray, scale: np.ndarray, entries: float, at_once: int = AT_ONCE) -> np.ndarray:
    """Σ over `index` of scale_i a_i."""

    def part(some: np.ndarray) -> np.ndarray:
        out = np.zeros(rows.shape[1])
        add_rows(rows, some, scale, out)
        return out

    return functools.reduce(_added, in_parts(part, index, entries, at_once))


def sum_outer(rows: Any, index: np.ndarray, scale: np.ndarray, entries: float, at_once: int = AT_ONCE) -> np.ndarray:
    """Σ over `index` of scale_i a_i a_iᵀ, both triangles."""

    def part(some: np.ndarray) -> np.ndarray:
        out = np.zeros((rows.shape[1], rows.shape[1]))
        add_outer(rows, some, scale, out)
        return out

    total = functools.reduce(_added, in_parts(part, index, entries, at_once))
    mirror(total)
    return total

"""Second-order expansions of the loss in the margins: what SAN-ADMM reads from the rows.

Sample i is expanded at the margin zᵢ: slope wᵢℓ'(zᵢ), curvature wᵢℓ''(zᵢ), or the loss's own for models. Every kernel
works on an array of row numbers, so a batch, a set of large-shift samples and the whole data are treated alike. Sums
over many rows are cut into a fixed number of parts, run on as many threads as there are and added in order: the result
does not depend on the threads.
"""

import functools
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, NamedTuple

import numba
import numpy as np

from skadmm import _cancel
from skadmm.kernels.compile import attach, compiled, generic, kernel
from skadmm.kernels.loss_functions import derivative, model_curvature, value
from skadmm.kernels.rows import CSRRows, DenseRows, StackedRows, margins, row_add, row_dot, span, unsigned
from skadmm.kernels.samples import Samples, evaluate_margins, sum_of_losses, weight_of
from skadmm.kernels.threads import one_thread

PARTS = 4
ENTRIES_PER_CHUNK = 1 << 20
"""Rows between two calls of `between`, where a run can be stopped; fewer where rows come from files."""
GATHERED_ROWS, GATHERED_ENTRIES = 512, 1 << 17
"""The minimum number of dense rows gathered for one product; more are gathered where rows are short."""
SCALAR_WORK = 20.0
"""Evaluating a loss costs about as much as reading this many entries."""
SMALL = 2_000_000
"""Below this much work (entries read, or products formed) one part is faster than four."""


def _place(index: Any) -> Any:
    """Row numbers as a slice, where they are consecutive."""
    if len(index) and index[-1] - index[0] == len(index) - 1 and np.all(index[1:] > index[:-1]):
        return slice(int(index[0]), int(index[-1]) + 1)
    return index


def loss_along(samples: Samples, index: np.ndarray, z: np.ndarray, move: np.ndarray, t: float) -> float:
    """Σ over `index` of w_i ℓ(z_i + t·move_i)."""
    place = _place(index)
    return sum_of_losses(samples, place, z[place] + t * move[place])


def expand_along(
    samples: Samples,
    index: np.ndarray,
    z: np.ndarray,
    move: np.ndarray,
    t: float,
    slope: np.ndarray,
    curvatures: np.ndarray,
) -> float:
    """Slope and curvature (of a model) of every row of `index` at z_i + t·move_i; returns Σ w_i ℓ."""
    place = _place(index)
    margin = z[place] + t * move[place] if t != 0.0 else z[place]
    if isinstance(place, slice):
        return evaluate_margins(samples, place, margin, slope[place], curvatures[place])
    slopes, bends = np.empty(index.size), np.empty(index.size)
    total = evaluate_margins(samples, place, margin, slopes, bends)
    slope[place], curvatures[place] = slopes, bends
    return total


def expand(samples: Samples, index: np.ndarray, z: np.ndarray, slope: np.ndarray, curvatures: np.ndarray) -> float:
    """Slope and curvature of every row of `index` at its margin z_i; returns Σ w_i ℓ(z_i)."""
    return expand_along(samples, index, z, z, 0.0, slope, curvatures)


@kernel
def expand_and_add(samples, index, step, z, move, slope, curvatures, out):
    """move_i ← a_i·step, slope and curvature of every row of `index` at z_i + move_i, and out ← out + Σ slope_i a_i;
    returns Σ w_i ℓ there. Each row is read once."""
    total = 0.0
    for i in index:
        w, b = weight_of(samples, i), samples.target[i]
        move[i] = row_dot(samples.rows, i, step)
        margin = z[i] + move[i]
        slope[i] = w * derivative(samples.loss, margin, b)
        curvatures[i] = w * model_curvature(samples.loss, margin, b)
        total += w * value(samples.loss, margin, b)
        row_add(samples.rows, i, slope[i], out)
    return total


@kernel
def add_rows(rows, index, scale, out):
    """out ← out + Σ over `index` of scale_i a_i."""
    for i in index:
        row_add(rows, i, scale[i], out)


@generic
def add_squares_generic(rows: Any, index: Any, out: Any) -> None:
    """out_j ← out_j + Σ over `index` of a_ij²."""


def _csr_squares(rows, index, out):
    for i in index:
        for p in span(rows.indptr, i):
            out[unsigned(rows.indices[p])] += rows.data[p] * rows.data[p]


def _dense_squares(rows, index, out):
    for i in index:
        for j in range(out.size):
            out[j] += rows.values[i, j] * rows.values[i, j]


def _stacked_squares(rows, index, out):
    for i in index:
        row, start = i // rows.outputs, (i % rows.outputs) * rows.width
        add_squares_generic(rows.rows, range(row, row + 1), out[start : start + rows.width])


attach(add_squares_generic, CSRRows, _csr_squares)
attach(add_squares_generic, StackedRows, _stacked_squares)
attach(add_squares_generic, DenseRows, _dense_squares)
add_squares = compiled(add_squares_generic)


@kernel
def _csr_outer(rows, index, scale, values, columns, out):
    """Lower triangle of out ← out + Σ over `index` of scale_i a_i a_iᵀ.

    Column numbers increase, so two lines of `out` at a time share the entries that are read. `values` and
    `columns` are scratch for the entries of a row.
    """
    for i in index:
        size = rows.indptr[i + 1] - rows.indptr[i]
        for q in range(size):
            values[q], columns[q] = rows.data[rows.indptr[i] + q], rows.indices[rows.indptr[i] + q]
        weight = scale[i]
        for p in range(0, size - 1, 2):
            upper, lower = out[columns[p]], out[columns[p + 1]]
            v, w = weight * values[p], weight * values[p + 1]
            for q in range(p + 1):
                upper[columns[q]] += v * values[q]
                lower[columns[q]] += w * values[q]
            lower[columns[p + 1]] += w * values[p + 1]
        if size % 2 == 1:
            last, v = out[columns[size - 1]], weight * values[size - 1]
            for q in range(size):
                last[columns[q]] += v * values[q]


@kernel
def _gather_scaled(values, index, scale, out):
    """out_k ← √|scale_i| a_i, i = index_k."""
    for k in range(index.size):
        i = index[k]
        root = np.sqrt(abs(scale[i]))
        for j in range(out.shape[1]):
            out[k, j] = root * values[i, j]


def gathered_rows(d: int) -> int:
    """The number of dense rows of this length that are gathered at once."""
    return max(GATHERED_ROWS, GATHERED_ENTRIES // d)


class Workspace(NamedTuple):
    """Arrays in which dense rows are gathered and multiplied; they are used again for each sum."""

    gathered: np.ndarray
    product: np.ndarray


KEPT_ENTRIES = 1 << 18
"""A workspace of no more entries than this is kept by each thread for its next sum."""
_kept = threading.local()


def workspace_for(rows: Any, limit: int) -> Workspace:
    """A workspace for sums over up to `limit` rows. Allocating it each time would cost as much as the work where freed
    memory is returned to the system at once, as on Dask's workers."""
    if isinstance(rows, StackedRows):
        return workspace_for(rows.rows, limit)
    if not isinstance(rows, DenseRows):
        return Workspace(np.empty((0, 0)), np.empty((0, 0)))
    d = rows.shape[1]
    size = gathered_rows(d)
    if size * d + d * d > KEPT_ENTRIES:
        return Workspace(np.empty((min(size, max(limit, 1)), d)), np.empty((d, d)))
    workspace: Workspace | None = getattr(_kept, "workspace", None)
    if workspace is None or workspace.product.shape[0] != d:
        workspace = _kept.workspace = Workspace(np.empty((size, d)), np.empty((d, d)))
    return workspace


def _dense_outer(
    values: np.ndarray, index: np.ndarray, scale: np.ndarray, out: np.ndarray, workspace: Workspace
) -> None:
    """out ← out + Σ over `index` of scale_i a_i a_iᵀ, by BLAS: a product of a matrix with its own transpose, for the
    rows with positive scales and for those with negative ones."""
    size = workspace.gathered.shape[0]
    negative = scale[index] < 0
    for add, chosen in ((np.add, index[~negative]), (np.subtract, index[negative])):
        for start in range(0, chosen.size, size):
            chunk = chosen[start : start + size]
            gathered = workspace.gathered[: chunk.size]
            _gather_scaled(values, chunk, scale, gathered)
            np.matmul(gathered.T, gathered, out=workspace.product)
            add(out, workspace.product, out=out)


def _stacked_outer(
    rows: StackedRows, index: np.ndarray, scale: np.ndarray, out: np.ndarray, workspace: Workspace
) -> None:
    """The same for several outputs: rows of different outputs have no column in common."""
    k, d = rows.outputs, rows.width
    output = index % k
    for c in range(k):
        block, place = np.zeros((d, d)), slice(c * d, (c + 1) * d)
        add_outer(rows.rows, index[output == c] // k, np.ascontiguousarray(scale[c::k]), block, workspace)
        out[place, place] += block


def add_outer(rows: Any, index: np.ndarray, scale: np.ndarray, out: np.ndarray, workspace: Workspace) -> None:
    """Lower triangle of out ← out + Σ over `index` of scale_i a_i a_iᵀ."""
    if isinstance(rows, StackedRows):
        _stacked_outer(rows, index, scale, out, workspace)
    elif isinstance(rows, DenseRows):
        _dense_outer(rows.values, index, scale, out, workspace)
    else:
        _csr_outer(rows, index, scale, np.empty(out.shape[0]), np.empty(out.shape[0], np.uint32), out)


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
def several() -> Callable[..., Iterator[Any]]:
    """``map`` on as many threads as Numba may use: NUMBA_NUM_THREADS, or the processors this process is allowed."""
    allowed: int = min(PARTS, numba.config.NUMBA_NUM_THREADS)  # type: ignore[attr-defined]
    return map if allowed == 1 else ThreadPoolExecutor(allowed, thread_name_prefix="skadmm").map


def in_parts(
    work: Callable[[np.ndarray], Any],
    index: np.ndarray | range,
    entries: float,
    rows_per_chunk: int = ENTRIES_PER_CHUNK,
    between: Callable[[], None] = _cancel.check_cancelled,
) -> Iterator[Any]:
    """Call `work` on fixed parts of `index`, several at the same time; returns the results in order.

    `entries` is the number of entries that all parts read; `between` is called before each chunk of `rows_per_chunk`
    rows: it ends a run that was cancelled, and may release the pages of a file.
    """
    for first in range(0, max(len(index), 1), rows_per_chunk):
        between()
        part = index[first : first + rows_per_chunk]
        some = np.arange(part.start, part.stop, part.step) if isinstance(part, range) else part
        if entries * (some.size / max(len(index), 1)) < SMALL:
            yield work(some)
        else:
            yield from several()(work, np.array_split(some, PARTS))


def all_margins(
    rows: Any,
    index: np.ndarray | range,
    x: np.ndarray,
    out: np.ndarray,
    entries: float,
    rows_per_chunk: int = ENTRIES_PER_CHUNK,
    between: Callable[[], None] = _cancel.check_cancelled,
) -> None:
    """out_i ← a_i·x for the rows in `index`, in parts."""
    for _ in in_parts(lambda part: margins(rows, part, x, out), index, entries, rows_per_chunk, between):
        pass


def sum_rows(
    rows: Any,
    index: np.ndarray | range,
    scale: np.ndarray,
    entries: float,
    rows_per_chunk: int = ENTRIES_PER_CHUNK,
    between: Callable[[], None] = _cancel.check_cancelled,
) -> np.ndarray:
    """Σ over `index` of scale_i a_i."""

    def part(some: np.ndarray) -> np.ndarray:
        out = np.zeros(rows.shape[1])
        add_rows(rows, some, scale, out)
        return out

    return functools.reduce(_added, in_parts(part, index, entries, rows_per_chunk, between))


def sum_expansions(
    rows: Any,
    index: np.ndarray | range,
    curvatures: np.ndarray,
    scale: np.ndarray,
    new: bool,
    work: float,
    rows_per_chunk: int = ENTRIES_PER_CHUNK,
    between: Callable[[], None] = _cancel.check_cancelled,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Σ over `index` of curvatures_i a_i a_iᵀ, of scale_i a_i, and, where they are `new`, of a_i².

    One chunk of rows is read at a time, so that it is still in the cache for the next sum.
    """
    d = rows.shape[1]
    size = gathered_rows(d)

    def part(some: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        outer, total, squares = np.zeros((d, d)), np.zeros(d), np.zeros(d)
        workspace = workspace_for(rows, some.size)
        for start in range(0, some.size, size):
            chunk = some[start : start + size]
            add_rows(rows, chunk, scale, total)
            if new:
                add_squares(rows, chunk, squares)
            add_outer(rows, chunk, curvatures, outer, workspace)
        return outer, total, squares

    with one_thread():
        parts = in_parts(part, index, work, rows_per_chunk, between)
        outer, total, squares = functools.reduce(lambda one, two: tuple(map(_added, one, two)), parts)
    mirror(outer)
    return outer, total, squares


def sum_outer(
    rows: Any,
    index: np.ndarray | range,
    scale: np.ndarray,
    entries: float,
    rows_per_chunk: int = ENTRIES_PER_CHUNK,
    between: Callable[[], None] = _cancel.check_cancelled,
) -> np.ndarray:
    """Σ over `index` of scale_i a_i a_iᵀ, both triangles."""

    def part(some: np.ndarray) -> np.ndarray:
        out = np.zeros((rows.shape[1], rows.shape[1]))
        add_outer(rows, some, scale, out, workspace_for(rows, some.size))
        return out

    with one_thread():
        total = functools.reduce(_added, in_parts(part, index, entries, rows_per_chunk, between))
    mirror(total)
    return total

"""Columns of X merged into units: x = P u, where each feature belongs to one unit, or to none and is zero."""

import functools
from typing import Any, NamedTuple

import numpy as np

from skadmm.kernels.compile import kernel
from skadmm.kernels.expansion import gathered_rows, in_parts
from skadmm.kernels.rows import CSRRows, DenseRows, as_matrix, span, unsigned
from skadmm.kernels.threads import one_thread


class Columns(NamedTuple):
    """X by columns: a contraction reads those of its features only."""

    data: np.ndarray
    rows: np.ndarray
    starts: np.ndarray
    height: int


def columns_of(rows: Any) -> Any:
    """Sparse rows by columns; dense ones as they are."""
    if isinstance(rows, DenseRows):
        return rows
    csc = as_matrix(rows).tocsc()
    return Columns(csc.data, csc.indices, csc.indptr, rows.shape[0])


@kernel
def _gather(columns, order, label, factor, starts, ends, data, units):
    """Rows of the contracted X. `starts` holds where each row begins, with space for every entry, and `ends`, which
    begins with the same numbers, where it ends. Features come in the order of their units, so that those of one unit
    are neighbours and the units of a row increase. Then the space that merging left between rows is removed."""
    for j in order:
        unit = label[j]
        for p in span(columns.starts, j):
            i = unsigned(columns.rows[p])
            entry = columns.data[p] * factor[j]
            end = ends[i]
            if end > starts[i] and units[end - 1] == unit:
                data[end - 1] += entry
            else:
                data[end], units[end] = entry, unit
                ends[i] = end + 1
    filled = 0
    for i in range(ends.size):
        begin = starts[i]
        starts[i] = filled
        for p in range(begin, ends[i]):
            data[filled], units[filled] = data[p], units[p]
            filled += 1
    starts[ends.size] = filled


@kernel
def _merge(values, held, unit, factor, out):
    """The same for dense rows: feature held_k times factor_k belongs to unit_k."""
    for i in range(out.shape[0]):
        for k in range(held.size):
            out[i, unit[k]] += values[i, held[k]] * factor[k]


def contracted(columns: Any, label: np.ndarray, factor: np.ndarray, size: int) -> Any:
    """The rows of X P: feature j belongs to unit ``label[j]`` (−1: to none) and is ``factor[j]`` times its unit."""
    held = np.flatnonzero(label >= 0)
    if isinstance(columns, DenseRows):
        merged = np.zeros((columns.values.shape[0], size))
        _merge(columns.values, held.astype(np.uint32), label[held].astype(np.uint32), factor[held], merged)
        return DenseRows(merged)
    order = held[np.argsort(label[held], kind="stable")]
    entries = np.repeat(label >= 0, np.diff(columns.starts))
    counts = np.bincount(columns.rows[entries], minlength=columns.height)
    starts = np.concatenate([[0], np.cumsum(counts)])
    data, units = np.empty(starts[-1]), np.empty(starts[-1], np.int32)
    _gather(columns, order, label, factor, starts, starts[:-1].copy(), data, units)
    # The integer types of X: its kernels serve these rows too.
    units, ends = units[: starts[-1]].astype(columns.rows.dtype), starts.astype(columns.starts.dtype)
    return CSRRows(data[: starts[-1]], units, ends, size)


@kernel
def _csr_cross(rows, index, scale, line, out):
    """out[line_c] ← out[line_c] + Σ over `index` of scale_i a_ic a_i, for the columns c with line_c ≥ 0."""
    for i in index:
        for p in span(rows.indptr, i):
            at = line[unsigned(rows.indices[p])]
            if at < 0:
                continue
            v = scale[i] * rows.data[p]
            for q in span(rows.indptr, i):
                out[at, unsigned(rows.indices[q])] += v * rows.data[q]


def _dense_cross(
    values: np.ndarray, index: np.ndarray, scale: np.ndarray, columns: np.ndarray, out: np.ndarray
) -> None:
    """out ← out + Σ over `index` of scale_i a_i[columns] a_iᵀ, by BLAS."""
    few = gathered_rows(values.shape[1])
    for start in range(0, index.size, few):
        some = index[start : start + few]
        together = some[-1] - some[0] == some.size - 1
        gathered = values[some[0] : some[-1] + 1] if together else values[some]
        out += (scale[some, None] * gathered[:, columns]).T @ gathered


def sum_cross(rows: Any, columns: np.ndarray, index: np.ndarray, scale: np.ndarray, entries: float) -> np.ndarray:
    """Σ over `index` of scale_i a_i[columns] a_iᵀ: some lines of the sum of outer products."""
    line = np.full(rows.shape[1], -1)
    line[columns] = np.arange(columns.size)

    def part(some: np.ndarray) -> np.ndarray:
        out = np.zeros((columns.size, rows.shape[1]))
        if isinstance(rows, DenseRows):
            _dense_cross(rows.values, some, scale, columns, out)
        else:
            _csr_cross(rows, some, scale, line, out)
        return out

    with one_thread():
        return functools.reduce(np.add, in_parts(part, index, entries))

"""Parts of rows and samples: consecutive ones without a copy, others copied, and several parts concatenated."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from skadmm.kernels.rows import CSRRows, DenseRows, StackedRows, as_matrix, from_matrix
from skadmm.kernels.samples import Samples

Rows = DenseRows | CSRRows | StackedRows
"""Rows as compiled code reads them."""


def slice_rows(rows: Rows, start: int, stop: int) -> Rows:
    """Consecutive rows, without a copy; of several outputs, all rows of a sample or a copy."""
    if isinstance(rows, StackedRows):
        k = rows.outputs
        if start % k or stop % k:
            return from_matrix(as_matrix(rows, start, stop))
        return rows._replace(rows=slice_rows(rows.rows, start // k, stop // k))
    if isinstance(rows, DenseRows):
        return DenseRows(rows.values[start:stop])
    return CSRRows(rows.data, rows.indices, rows.indptr[start : stop + 1], rows.width)


def part_of(samples: Samples, start: int, stop: int) -> Samples:
    """Consecutive samples as one block, without a copy."""
    weight = samples.weight[start:stop] if samples.weight.size else samples.weight
    rows = slice_rows(samples.rows, start, stop)
    return samples._replace(rows=rows, target=samples.target[start:stop], weight=weight, batch=stop - start)


def take_rows(rows: Rows, indices: np.ndarray) -> Rows:
    """Some rows, copied."""
    if isinstance(rows, StackedRows):
        return _take_stacked(rows, indices)
    if isinstance(rows, DenseRows):
        taken = rows.values[indices]  # in the memory order of `rows`, so that no other kernels are compiled
        return DenseRows(np.ascontiguousarray(taken) if rows.values.flags.c_contiguous else np.asfortranarray(taken))
    starts, ends = rows.indptr[:-1][indices], rows.indptr[1:][indices]
    counts = ends - starts
    indptr = np.zeros(counts.size + 1, rows.indptr.dtype)
    np.cumsum(counts, out=indptr[1:])
    entries = np.arange(indptr[-1]) + np.repeat(starts - indptr[:-1], counts)
    return CSRRows(rows.data[entries], rows.indices[entries], indptr, rows.width)


def _take_stacked(rows: StackedRows, indices: np.ndarray) -> Rows:
    """Some rows of several outputs: whole samples as they are, others as sparse rows of the full width."""
    k, count = rows.outputs, len(indices)
    samples = np.asarray(indices)[::k] // k
    if count % k == 0 and np.array_equal(indices, (samples[:, None] * k + np.arange(k)).ravel()):
        return rows._replace(rows=take_rows(rows.rows, samples))
    every = take_rows(rows.rows, np.asarray(indices) // k)
    whole = scipy.sparse.csr_array(as_matrix(every))
    offset = np.repeat((np.asarray(indices) % k) * rows.width, np.diff(whole.indptr))
    return CSRRows(whole.data, whole.indices + offset.astype(whole.indices.dtype), whole.indptr, rows.shape[1])


def stack_rows(parts: list[Any]) -> Rows:
    """The rows of several blocks, one after the other: all dense, all sparse, or of the same several outputs.

    Of several outputs, :func:`take_rows` gives stacked rows where it took whole samples and sparse rows elsewhere; a
    mixture of both becomes sparse.
    """
    if all(isinstance(part, StackedRows) for part in parts):
        return parts[0]._replace(rows=stack_rows([part.rows for part in parts]))
    if isinstance(parts[0], DenseRows):
        return DenseRows(np.concatenate([np.ascontiguousarray(part.values) for part in parts]))
    parts = [from_matrix(as_matrix(part)) if isinstance(part, StackedRows) else part for part in parts]
    counts = np.concatenate([np.diff(part.indptr) for part in parts])
    indptr = np.zeros(counts.size + 1, np.result_type(*(part.indptr.dtype for part in parts)))
    np.cumsum(counts, out=indptr[1:])
    data, indices = (np.concatenate([getattr(part, name) for part in parts]) for name in ("data", "indices"))
    return CSRRows(data, indices, indptr, parts[0].width)

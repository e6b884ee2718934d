"""Parts of rows and samples: consecutive ones without a copy, others copied, and several parts concatenated."""

from __future__ import annotations

from typing import Any

import numpy as np

from skadmm.kernels.rows import CSRRows, DenseRows
from skadmm.kernels.samples import Samples

Rows = DenseRows | CSRRows
"""Rows as compiled code reads them."""


def slice_rows(rows: Rows, start: int, stop: int) -> Rows:
    """Consecutive rows, without a copy."""
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
    if isinstance(rows, DenseRows):
        taken = rows.values[indices]  # in the memory order of `rows`, so that no other kernels are compiled
        return DenseRows(np.ascontiguousarray(taken) if rows.values.flags.c_contiguous else np.asfortranarray(taken))
    starts, ends = rows.indptr[:-1][indices], rows.indptr[1:][indices]
    counts = ends - starts
    indptr = np.zeros(counts.size + 1, rows.indptr.dtype)
    np.cumsum(counts, out=indptr[1:])
    entries = np.arange(indptr[-1]) + np.repeat(starts - indptr[:-1], counts)
    return CSRRows(rows.data[entries], rows.indices[entries], indptr, rows.width)


def stack_rows(parts: list[Any]) -> Rows:
    """The rows of several blocks, all dense or all sparse, one after the other."""
    if isinstance(parts[0], DenseRows):
        return DenseRows(np.concatenate([np.ascontiguousarray(part.values) for part in parts]))
    counts = np.concatenate([np.diff(part.indptr) for part in parts])
    indptr = np.zeros(counts.size + 1, parts[0].indptr.dtype)
    np.cumsum(counts, out=indptr[1:])
    data, indices = (np.concatenate([getattr(part, name) for part in parts]) for name in ("data", "indices"))
    return CSRRows(data, indices, indptr, parts[0].width)

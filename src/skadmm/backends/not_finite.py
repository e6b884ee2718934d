"""Where a table has NaN or infinity, for the message that refuses it."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

SHOWN = 5
"""Columns that are named."""


class NotFiniteError(ValueError):
    """NaN or infinity among the features: where, and what can be done."""

    def __init__(self, fault: str, columns: list[Any]) -> None:
        super().__init__(f"{fault}: impute the values, or leave out these rows or columns")
        self.fault, self.columns = fault, columns


def located(X: Any, names: list[Any] | None = None, before: int | None = None) -> NotFiniteError | None:
    """The error for a table in memory that has NaN or infinity; None where all its numbers are finite. `before` is the
    number of rows that were read before these, all of them finite, where X is a block of a larger table."""
    entries = X.data if sp.issparse(X) else X
    if isinstance(entries, np.ndarray) and entries.dtype.kind in "fiub" and np.isfinite(entries).all():
        return None
    bad = _bad(X)
    counts = np.asarray(bad.sum(axis=0)).ravel()
    columns = np.flatnonzero(counts)
    if columns.size == 0:
        return None
    labels = names or list(getattr(X, "columns", range(counts.size)))
    rows = np.flatnonzero(np.asarray(bad.sum(axis=1)).ravel())
    first = rows[0] + (before or 0)
    seen = f"{bad.shape[0]:,} rows" if before is None else f"the {before + bad.shape[0]:,} rows read so far"
    extent = f"{rows.size:,} of {seen}, the first is row {first:,}"
    if columns.size == 1:
        where = f"the column {labels[columns[0]]!r} ({extent})"
    else:
        shown = ", ".join(f"{labels[j]!r} ({counts[j]:,} row{'s' if counts[j] > 1 else ''})" for j in columns[:SHOWN])
        shown += f", … ({columns.size:,} in all)" if columns.size > SHOWN else ""
        where = f"{extent}, in the columns {shown}"
    return NotFiniteError(f"X contains NaN or infinity in {where}", [labels[j] for j in columns])


def _bad(X: Any) -> Any:
    """Where a table has NaN or infinity: an array, or a sparse array, of truth values."""
    if sp.issparse(X):
        entries = X.tocoo()
        bad = ~np.isfinite(entries.data)
        row, column = entries.row[bad], entries.col[bad]
        return sp.csr_array((np.ones(row.size, dtype=np.int64), (row, column)), shape=X.shape)
    if hasattr(X, "columns"):
        columns = [X.iloc[:, j].to_numpy(dtype=np.float64, na_value=np.nan) for j in range(X.shape[1])]
        return ~np.isfinite(np.column_stack(columns))
    return ~np.isfinite(np.asarray(X, dtype=np.float64))

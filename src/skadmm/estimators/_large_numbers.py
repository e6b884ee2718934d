"""Numbers so large that their fourth powers overflow: a fit refuses them and names the column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
import scipy.sparse as sp

MAX_SIZE = 1e75
"""Gradients and squared losses are products of two numbers of X and y, and fits and cross-validation square them again.
The sum of 10⁸ fourth powers of this number, 1e308, is still below the largest float."""


def refuse_large_numbers(values: Any, names: Sequence[Any] | None = None, *, what: str = "X") -> None:
    """Raise where a number in a table or vector is too large; the message names its column and row."""
    if sp.issparse(values):
        largest = np.asarray(abs(values).max(axis=0).todense()).ravel()
    else:
        largest = np.abs(values).reshape(len(values), -1).max(axis=0)
    columns = np.flatnonzero(~(largest <= MAX_SIZE))
    if columns.size:
        refuse_columns(columns, largest[columns[0]], names, what=what, several=np.ndim(values) == 2)


def refuse_columns(
    columns: np.ndarray, size: float, names: Sequence[Any] | None, *, what: str = "X", several: bool = True
) -> NoReturn:
    """Raise for these columns, in the first of which are numbers of this size."""
    j = int(columns[0])
    name = repr(names[j]) if names is not None else str(j)
    where = f" in column {name}" if several else ""
    more = f" (and in {columns.size - 1} more columns)" if columns.size > 1 else ""
    remedy = "divide the column by a constant, or leave it out" if several else f"divide {what} by a constant"
    raise ValueError(
        f"{what} has numbers of the size {size:.0e}{where}{more}: it takes numbers up to {MAX_SIZE:g}, because squares "
        f"and products of larger ones overflow; {remedy}"
    )

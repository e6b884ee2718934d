"""The singular directions of the rows: along which of them a sum over samples changes, and how fast."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse as sp

MOST_WORK = 1e9
"""Products that the directions may take; tables that need more have none."""
SMALLEST = 1e-11
"""Relative to the largest: below it a singular value is rounding."""


class Directions(NamedTuple):
    """XᵀWX/n = axesᵀ diag(sizes²) axes, without the directions in which all rows are zero."""

    axes: np.ndarray
    """A unit vector per row."""
    sizes: np.ndarray
    """Positive."""


def directions_of(matrix: Any, weight: np.ndarray) -> Directions | None:
    """The directions of an array or sparse matrix whose rows have weights; None where that is too much work.

    They come from the rows themselves: in XᵀWX directions with singular values below 1e-8 are rounding.
    """
    n, d = matrix.shape
    if n * d * min(n, d) > MOST_WORK:
        return None
    table = np.array(matrix.toarray() if sp.issparse(matrix) else matrix, dtype=np.float64)
    table *= np.sqrt((weight if weight.size else np.ones(n)) / n)[:, None]
    if not np.isfinite(table).all():
        return None
    if n > d:
        table = scipy.linalg.qr(table, mode="r", overwrite_a=True, check_finite=False)[0][:d]
    try:
        _, sizes, axes = scipy.linalg.svd(table, full_matrices=False, check_finite=False)
    except np.linalg.LinAlgError:
        return None
    kept = sizes > SMALLEST * sizes.max(initial=0.0)
    return Directions(axes[kept], sizes[kept])

"""Differences along a line, of any order."""

from math import comb
from typing import Any

import numpy as np
import scipy.sparse as sp

from skadmm.operators.canonical import canonical, checked_count


def trend(d: int, order: int) -> sp.csr_array:
    """Differences of order k+1: (A x)_i = Σ_j (−1)^(k+1−j) C(k+1, j) x_{i+j}, as ``numpy.diff(x, k + 1)``.

    ψ = ℓ1 then makes x a piecewise polynomial of degree k: order 0 is the fused lasso on a chain, order 1
    linear trend filtering, and so on.

    Parameters
    ----------
    d : int
        Number of features, in their order along the line.
    order : int
        The degree k ≥ 0 of the pieces, at most d − 1.

    Returns
    -------
    csr_array of shape (d - 1 - order, d)

    References
    ----------
    Kim, Koh, Boyd, Gorinevsky. ℓ1 trend filtering. SIAM Review 51, 2009.
    """
    d, order = checked_count(d, "d"), checked_count(order, "order", least=0)
    if order > d - 1:
        raise ValueError(f"order must be at most d − 1 = {d - 1}, got {order}")
    k = order + 1
    coefficients = np.array([(-1) ** (k - j) * comb(k, j) for j in range(k + 1)], dtype=np.float64)
    rows = d - k
    indices = (np.arange(rows)[:, None] + np.arange(k + 1)).ravel()
    indptr = np.arange(rows + 1) * (k + 1)
    return canonical(sp.csr_array((np.tile(coefficients, rows), indices, indptr), shape=(rows, d)))


def chain(d: int) -> sp.csr_array:
    """First differences, (A x)_i = x_{i+1} − x_i: ``trend(d, 0)``.

    Parameters
    ----------
    d : int
        Number of features, in their order along the line.

    Returns
    -------
    csr_array of shape (d - 1, d)
    """
    return trend(d, 0)


def checked_shape(shape: Any, role: str = "shape") -> tuple[int, ...]:
    """`shape` as a tuple of lengths; an integer is one axis."""
    axes = tuple(shape) if np.iterable(shape) and not isinstance(shape, str) else (shape,)
    if not axes:
        raise ValueError(f"{role} must name at least one axis, got {shape!r}")
    return tuple(checked_count(length, role) for length in axes)

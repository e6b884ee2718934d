"""Differences along a line, of any order."""

from math import comb
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from skadmm.operators.canonical import canonical, checked_count


def trend(d: int, order: int, positions: ArrayLike | None = None) -> sp.csr_array:
    """Build the differences of order k + 1 along a line, as ``numpy.diff(x, k + 1)``.

    (A x)_i = Σ_j (−1)^(k+1−j) C(k+1, j) x_{i+j}. At uneven positions they are divided differences, in units of the mean
    spacing.

    ψ = ℓ1 then makes x a piecewise polynomial of degree k: order 0 is the fused lasso on a chain, order 1
    linear trend filtering, and so on.

    Parameters
    ----------
    d : int
        Number of features, in their order along the line.
    order : int
        The degree k ≥ 0 of the pieces, at most d − 1.
    positions : array of length d, or None
        The increasing positions of the features; None means that they are evenly spaced.

    Returns
    -------
    csr_array of shape (d - 1 - order, d)
        Row i has its entries in columns i to i + order + 1.

    See Also
    --------
    skadmm.TrendFilter : An estimator that uses it.
    skadmm.operators.chain : Order 0.

    References
    ----------
    Kim, Koh, Boyd, Gorinevsky. ℓ1 trend filtering. SIAM Review 51, 2009.
    Tibshirani, R. J. Adaptive piecewise polynomial estimation via trend filtering. Annals of Statistics 42, 2014.

    Examples
    --------
    >>> from skadmm.operators import trend
    >>> trend(4, 1).toarray()
    array([[ 1., -2.,  1.,  0.],
           [ 0.,  1., -2.,  1.]])
    """
    d, order = checked_count(d, "d"), checked_count(order, "order", least=0)
    if order > d - 1:
        raise ValueError(f"order must be at most d − 1 = {d - 1}, got {order}")
    if positions is not None:
        return spaced_trend(_checked_positions(positions, d), order)
    k = order + 1
    coefficients = np.array([(-1) ** (k - j) * comb(k, j) for j in range(k + 1)], dtype=np.float64)
    rows = d - k
    index: type[np.signedinteger[Any]] = np.int32 if rows * (k + 1) <= np.iinfo(np.int32).max else np.int64
    indices = np.arange(rows, dtype=index)[:, None] + np.arange(k + 1, dtype=index)
    indptr = np.arange(0, rows * (k + 1) + 1, k + 1, dtype=index)
    D = sp.csr_array((np.tile(coefficients, rows), indices.ravel(), indptr), shape=(rows, d))
    D.has_canonical_format = True
    return D


def spaced_trend(positions: np.ndarray, order: int, unit: float | None = None) -> sp.csr_array:
    """Divided differences of order k+1 on increasing positions, in units of their mean spacing unless `unit` is given;
    none where there are too few positions. Evenly spaced, it is ``trend(positions.size, order)``.
    """
    d = positions.size
    if d - 1 - order <= 0:
        return sp.csr_array((0, d))
    t = positions / (mean_spacing(positions) if unit is None else unit)
    D = trend(d, 0)
    for k in range(1, order + 1):
        shrink = sp.diags_array(k / (t[k:] - t[:-k]))
        D = sp.csr_array(trend(d - k, 0) @ shrink @ D)
    return canonical(D)


def mean_spacing(positions: np.ndarray) -> float:
    """The mean distance of neighbours; 1 for a single position."""
    return float(positions[-1] - positions[0]) / (positions.size - 1) if positions.size > 1 else 1.0


def _checked_positions(positions: Any, d: int) -> np.ndarray:
    """`positions` as d finite, strictly increasing numbers."""
    try:
        values = np.asarray(positions, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"positions must be numbers, one per feature; got {positions!r}") from error
    if values.shape != (d,):
        raise ValueError(f"positions must have length {d}, one per feature; got shape {values.shape}")
    if not np.all(np.isfinite(values)) or not np.all(np.diff(values) > 0):
        raise ValueError("positions must be finite and strictly increasing")
    return values


def chain(d: int) -> sp.csr_array:
    """First differences, (A x)_i = x_{i+1} − x_i: ``trend(d, 0)``.

    Parameters
    ----------
    d : int
        Number of features, in their order along the line.

    Returns
    -------
    csr_array of shape (d - 1, d)
        Row i has −1 in column i and +1 in column i + 1.

    See Also
    --------
    skadmm.operators.trend : Differences of higher order.
    skadmm.operators.grid : Differences on an image.
    skadmm.operators.incidence : Differences on any graph.

    Examples
    --------
    >>> from skadmm.operators import chain
    >>> chain(3).toarray()
    array([[-1.,  1.,  0.],
           [ 0., -1.,  1.]])
    """
    return trend(d, 0)


def checked_shape(shape: Any, role: str = "shape") -> tuple[int, ...]:
    """`shape` as a tuple of lengths; an integer is one axis."""
    axes = tuple(shape) if np.iterable(shape) and not isinstance(shape, str) else (shape,)
    if not axes:
        raise ValueError(f"{role} must name at least one axis, got {shape!r}")
    return tuple(checked_count(length, role) for length in axes)

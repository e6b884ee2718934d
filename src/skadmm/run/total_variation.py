"""The exact proximal operator of total variation along a line, as a function of arrays."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from skadmm.operators.line import ROUNDING
from skadmm.solvers.second_order.chains import denoise, merge_rounding


def denoise_line(
    values: ArrayLike, strength: float | ArrayLike, *, sample_weight: ArrayLike | None = None
) -> np.ndarray:
    """Minimise ½ Σ w_i (x_i − values_i)² + Σ strength_i |x_{i+1} − x_i| exactly, in linear time.

    This is the minimisation of :class:`skadmm.TrendFilter` of order 0 as a function of arrays, for use inside other
    programs. ``alpha`` of the estimator is ``strength`` divided by the number of values.

    Parameters
    ----------
    values : array of shape (n,)
        The signal, finite.
    strength : float or array of shape (n − 1,)
        Not negative; one value for all differences, or one for each. A strength of zero separates the values on its two
        sides.
    sample_weight : array of shape (n,), optional
        Positive weights of the values; 1 where it is not given.

    Returns
    -------
    ndarray of shape (n,)
        The minimiser. Neighbours that are fused are equal to the last bit.

    See Also
    --------
    skadmm.TrendFilter : The estimator, which has a certificate and other orders.
    skadmm.TrendFilterCV : Chooses the strength by cross-validation.

    References
    ----------
    Johnson, N. A. (2013). A dynamic programming algorithm for the fused lasso and L0-segmentation. Journal of
    Computational and Graphical Statistics 22, 246–260.

    Examples
    --------
    >>> from skadmm import denoise_line
    >>> denoise_line([0.0, 0.2, 0.1, 3.0, 3.2], 0.3).round(2)
    array([0.2 , 0.2 , 0.2 , 2.95, 2.95])
    """
    signal = np.ascontiguousarray(values, dtype=np.float64)
    if signal.ndim != 1 or signal.size == 0:
        raise ValueError(f"values has shape {signal.shape}: it takes a vector with at least one entry")
    weights = _filled("strength", strength, signal.size - 1)
    if weights.size and not weights.min() >= 0.0:
        raise ValueError("strength holds a negative number or NaN: it takes numbers ≥ 0")
    h = np.ones(signal.size) if sample_weight is None else _filled("sample_weight", sample_weight, signal.size)
    if not (h.min() > 0.0 and np.isfinite(h.max())):
        raise ValueError("sample_weight holds a number that is not positive and finite: it takes finite numbers > 0")
    if not np.isfinite(signal.dot(signal)) and not np.isfinite(signal).all():
        raise ValueError("values holds NaN or infinity: it takes finite numbers")
    x = np.empty_like(signal)
    q = signal if sample_weight is None else h * signal
    denoise(h, q, weights, x)
    merge_rounding(h, q, weights, ROUNDING, x)
    return x


def _filled(name: str, value: ArrayLike, size: int) -> np.ndarray:
    """One value for each of `size` places."""
    given = np.asarray(value, dtype=np.float64)
    if given.ndim == 0:
        return np.full(size, given)
    if given.shape != (size,):
        raise ValueError(f"{name} has shape {given.shape}: it takes a number, or a vector of length {size}")
    return np.ascontiguousarray(given)

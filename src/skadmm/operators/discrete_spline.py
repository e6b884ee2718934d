"""The curve between the positions of a trend: a piecewise polynomial through its values there.

On [t_i, t_{i+1}) the curve of order k is the polynomial of degree k through the values at t_i, …, t_{i+k}. Two
neighbouring pieces are the same polynomial where the divided difference over t_i, …, t_{i+k+1} vanishes, so the knots
are the positions t_{i+1} of the differences that do not. Before the first position and after the last one the first and
the last piece continue.

References
----------
Tibshirani, R. J. (2022). Divided differences, falling factorials, and discrete splines. Foundations and Trends in
Machine Learning 15.
"""

import numpy as np
import scipy.sparse as sp


def interpolation(positions: np.ndarray, at: np.ndarray, order: int) -> sp.csr_array:
    """The matrix from values at increasing `positions` to the values of their curve `at` other positions.

    Parameters
    ----------
    positions : ndarray of shape (d,)
        Strictly increasing.
    at : ndarray of shape (n,)
    order : int
        The degree of the pieces; at most d − 1 is used.

    Returns
    -------
    csr_array of shape (n, d)
        With order + 1 entries in each row, those of Lagrange's polynomials.
    """
    n, d = at.size, positions.size
    k = min(order, d - 1)
    first = np.clip(np.searchsorted(positions, at, side="right") - 1, 0, d - 1 - k)
    entries = np.ones((n, k + 1))
    for a in range(k + 1):
        for b in range(k + 1):
            if a != b:
                entries[:, a] *= (at - positions[first + b]) / (positions[first + a] - positions[first + b])
    columns = first[:, None] + np.arange(k + 1)
    return sp.csr_array((entries.ravel(), columns.ravel(), (k + 1) * np.arange(n + 1)), shape=(n, d))

"""The moments of columns from which a graph is learnt, summed over blocks of rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp


class Sums(NamedTuple):
    """Sums over some rows of the columns themselves."""

    rows: int
    total: np.ndarray

    def added(self, other: Sums) -> Sums:
        """The sums over these and other rows."""
        return Sums(self.rows + other.rows, self.total + other.total)


class Moments(NamedTuple):
    """Sums over some rows of powers and products of centred columns."""

    rows: int
    mean: np.ndarray
    """The mean of each column over all rows, by which it is centred."""
    fourth: np.ndarray
    """The fourth power of each column."""
    products: np.ndarray
    """The products of all pairs of columns."""

    def added(self, other: Moments) -> Moments:
        """The moments of these and other rows."""
        products = self.products + other.products
        return Moments(self.rows + other.rows, self.mean, self.fourth + other.fourth, products)


def column_sums(rows: Any, chosen: np.ndarray | None) -> Sums:
    """The sums over some rows; `chosen` is a mask of those that count, or None for all."""
    rows = rows if chosen is None else rows[np.flatnonzero(chosen)]
    return Sums(rows.shape[0], np.asarray(rows.sum(axis=0), dtype=np.float64).ravel())


def column_moments(mean: np.ndarray, rows: Any, chosen: np.ndarray | None) -> Moments:
    """The moments of some rows about `mean`; `chosen` is a mask of those that count, or None for all."""
    rows = rows if chosen is None else rows[np.flatnonzero(chosen)]
    n, d = rows.shape
    if not sp.issparse(rows):
        centred = rows - mean
        squares = centred**2
        return Moments(n, mean, np.einsum("ij,ij->j", squares, squares), centred.T @ centred)
    rows = sp.csc_array(rows, dtype=np.float64)
    rows.sum_duplicates()
    stored = np.diff(rows.indptr)
    centred = rows.data - np.repeat(mean, stored)
    fourth = np.bincount(np.repeat(np.arange(d), stored), centred**4, d) + (n - stored) * mean**4
    total = np.asarray(rows.sum(axis=0)).ravel()
    products = (rows.T @ rows).toarray()
    products -= np.outer(total, mean) + np.outer(mean, total - n * mean)
    return Moments(n, mean, fourth, products)

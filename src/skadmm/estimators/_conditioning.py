"""Large tables whose columns are far from zero, or of very different scales, on which no solver is accurate.

In memory every table is centred and scaled. A large table is not, because that takes a copy: it gets one where the
numbers call for it. Its coefficients are those of the table given, up to a shift of the intercept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from skadmm.backends.shifted import shifted
from skadmm.estimators._design import NO_CENTRE

CONSTANT = 1e-14
"""A column is constant where its variance is no more than this share of its squared mean: that is rounding."""
MAX_OFFSET = 100.0
"""Columns are centred where the mean of one is more than this many of its standard deviations from zero."""
MAX_RATIO = 1e3
"""Columns are divided by their standard deviations where the largest is more than this many times the smallest."""


class Conditioned(NamedTuple):
    """A table as the solver sees it: the columns (a_j − centre_j) / unit_j."""

    X: Any
    centre: np.ndarray = NO_CENTRE
    """Empty where columns are not centred."""
    unit: np.ndarray = NO_CENTRE
    """Empty where columns are not divided."""


class ColumnMoments(NamedTuple):
    """What is known about the columns of a large table."""

    mean: np.ndarray
    variance: np.ndarray

    @property
    def varies(self) -> np.ndarray:
        """A mask of the columns that are not constant."""
        return self.variance > CONSTANT * self.mean**2

    @property
    def spread(self) -> np.ndarray:
        """The standard deviations, 1 for constant columns."""
        return np.where(self.varies, np.sqrt(self.variance), 1.0)

    @property
    def are_far(self) -> bool:
        """Is the mean of a column many standard deviations from zero?"""
        return bool(np.any(self.varies & (np.abs(self.mean) > MAX_OFFSET * self.spread)))

    @property
    def are_uneven(self) -> bool:
        """Are the columns of very different scales?"""
        sizes = self.spread[self.varies]
        return sizes.size > 0 and bool(sizes.max() > MAX_RATIO * sizes.min())


def conditioned(
    X: Any, columns: ColumnMoments, centres: Callable[[np.ndarray], np.ndarray], *, centred: bool, divided: bool
) -> Conditioned:
    """A copy of a large table with centred columns, or with columns divided by their standard deviations, where that is
    called for; the table itself elsewhere, and where the disk is too small for a copy.

    `centres` changes the means to centres: the value of a constant column, zero for a column that is to stay sparse.
    """
    if not ((centred and columns.are_far) or (divided and columns.are_uneven)):
        return Conditioned(X)
    centre = centres(columns.mean) if centred else np.zeros(columns.mean.size)
    unit = columns.spread if divided else np.ones(columns.mean.size)
    copy = shifted(X, centre, unit)
    if copy is None:
        return Conditioned(X)
    return Conditioned(copy, centre if centred else NO_CENTRE, unit if divided else NO_CENTRE)

"""Tables in which every sample sees one feature, as those of signals do."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from skadmm.kernels.rows import as_matrix, is_dense

FIRST_ROWS = (8, 1000)
"""The number of rows of X examined before all of them are: most other tables are recognised by the first few."""
MAX_DENSE_ENTRIES = 10_000_000
"""A dense X with more entries is not searched for zeros."""


class SingleEntries:
    """The entries of a table with at most one in a row, and what a squared loss needs to know of its samples.

    Parameters
    ----------
    sample, feature : arrays of int
        The places of the nonzero entries.
    value : array
        The entries.
    target, weight : arrays
        Of all samples; `weight` is empty where all count the same.
    n_features : int
    """

    def __init__(
        self,
        sample: np.ndarray,
        feature: np.ndarray,
        value: np.ndarray,
        target: np.ndarray,
        weight: np.ndarray,
        n_features: int,
    ) -> None:
        self.sample, self.feature, self.value = sample, feature, value
        self.target, self.weight, self.n_features = target, weight, n_features

    def by_feature(self, terms: np.ndarray) -> np.ndarray:
        """Σ wᵢ termsᵢ / n of each feature, one term per entry."""
        if self.weight.size:
            terms = terms * self.weight[self.sample]
        return np.bincount(self.feature, weights=terms, minlength=self.n_features) / self.target.size

    @cached_property
    def squares(self) -> np.ndarray:
        """Σ wᵢ aᵢⱼ² / n of each feature."""
        return self.by_feature(self.value**2)

    @cached_property
    def all_seen(self) -> bool:
        """Does a sample with a positive weight see every feature?"""
        return bool(np.all(self.squares > 0.0))

    @cached_property
    def products(self) -> np.ndarray:
        """Σ wᵢ aᵢⱼ bᵢ / n of each feature."""
        return self.by_feature(self.value * self.target[self.sample])

    @cached_property
    def half_square(self) -> float:
        """Σ wᵢ bᵢ² / 2n, the squared loss at zero."""
        weighted = self.target * self.weight if self.weight.size else self.target
        return 0.5 * float(weighted @ self.target) / self.target.size


def find_single_entries(rows: Any, target: np.ndarray, weight: np.ndarray) -> SingleEntries | str:
    """The entries of a table; a reason where a row has more than one."""
    n, d = rows.shape
    for stop in (min(FIRST_ROWS[0], n), min(FIRST_ROWS[1], n), n):
        if is_dense(rows) and stop * d > MAX_DENSE_ENTRIES:
            return f"X is dense and has more than {MAX_DENSE_ENTRIES:,} entries: give it as a sparse matrix"
        matrix = sp.csr_array(as_matrix(rows, 0, stop))
        if np.diff(matrix.indptr).max(initial=0) > 1:
            return "a row of X has more than one nonzero entry"
    sample = np.flatnonzero(np.diff(matrix.indptr))
    return SingleEntries(sample, matrix.indices, matrix.data.astype(np.float64, copy=False), target, weight, d)

"""The table as the solver sees it: scaled columns, and a column of ones for the intercept."""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

HELD_INTERCEPT = 1e3
"""With a ridge, which holds every coefficient, the column of ones is this large and its coefficient as small: what the
ridge takes from the intercept is then a millionth of what it takes from a coefficient."""


class Design(NamedTuple):
    """The columns x_j / scale_j, and behind them, for an intercept, a column of `ones`."""

    X: Any
    scale: np.ndarray
    ones: float
    """The value of the column of ones; 0 where there is none."""

    @property
    def n_extra(self) -> int:
        """How many columns were added."""
        return int(self.ones != 0.0)

    def widened(self, A: sp.csr_array) -> sp.csr_array:
        """`A` with an empty column for the intercept: no penalty reaches it."""
        if self.n_extra == 0:
            return A
        return sp.csr_array((A.data, A.indices, A.indptr), shape=(A.shape[0], A.shape[1] + 1))

    def original(self, x: np.ndarray) -> tuple[np.ndarray, float]:
        """Coefficients on the scale of the table given, and the intercept."""
        d = self.scale.size
        return x[:d] / self.scale, float(x[d] * self.ones) if self.n_extra else 0.0

    def scaled(self, coef: np.ndarray, intercept: float) -> np.ndarray:
        """The solver's x of these coefficients."""
        x = coef * self.scale
        return np.append(x, intercept / self.ones) if self.n_extra else x


def build_design(
    X: Any, sample_weight: np.ndarray | None, *, fit_intercept: bool, standardize: bool, ridge: float
) -> Design:
    """`X` (validated) as a :class:`Design`."""
    ones = 0.0 if not fit_intercept else HELD_INTERCEPT if ridge > 0 else 1.0
    return assembled(X, spread(X, sample_weight) if standardize else np.ones(X.shape[1]), ones)


def assembled(X: Any, scale: np.ndarray, ones: float) -> Design:
    """The columns of `X` divided by `scale`, with one of `ones`: C order or CSR, so few kernels to compile."""
    plain = bool(np.all(scale == 1.0))
    if sp.issparse(X):
        matrix = sp.csr_array(X, dtype=np.float64)
        if not plain:
            matrix = sp.csr_array(matrix @ sp.diags_array(1.0 / scale))
        if ones:
            column = sp.csr_array(np.full((X.shape[0], 1), ones))
            matrix = sp.csr_array(sp.hstack([matrix, column], format="csr"))
        return Design(matrix, scale, ones)
    table = np.empty((X.shape[0], X.shape[1] + int(ones != 0.0)))
    table[:, : X.shape[1]] = X if plain else X / scale
    if ones:
        table[:, -1] = ones
    return Design(table, scale, ones)


def spread(X: Any, sample_weight: np.ndarray | None) -> np.ndarray:
    """The weighted standard deviation of each column, 1 where it is zero; a sparse table is not centred densely."""
    weight = np.ones(X.shape[0]) if sample_weight is None else sample_weight
    share = weight / weight.sum()
    if sp.issparse(X):
        mean = np.asarray(X.T @ share).ravel()
        square = np.asarray(X.multiply(X).T @ share).ravel()
        variance = np.maximum(square - mean**2, 0.0)
        noise = 1e-14 * square
    else:
        mean = share @ X
        variance = share @ (X - mean) ** 2
        noise = 1e-14 * mean**2
    return np.where(variance > noise, np.sqrt(variance), 1.0)

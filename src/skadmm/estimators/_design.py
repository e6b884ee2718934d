"""The table as the solver sees it: scaled columns, and a column of ones for the intercept."""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from skadmm.regularizers import SquaredL2


class Design(NamedTuple):
    """The columns x_j / scale_j, and behind them, for an intercept, a column of ones."""

    X: Any
    scale: np.ndarray
    intercept: bool

    @property
    def width(self) -> int:
        """How many columns the solver sees."""
        return self.scale.size + int(self.intercept)

    def widened(self, A: sp.csr_array) -> sp.csr_array:
        """`A` with an empty column for the intercept: no penalty reaches it."""
        return sp.csr_array((A.data, A.indices, A.indptr), shape=(A.shape[0], A.shape[1] + 1)) if self.intercept else A

    def ridge(self, strength: float) -> SquaredL2 | None:
        """(strength/2)‖x‖² without the intercept; None where it is zero."""
        if strength == 0.0:
            return None
        return SquaredL2(strength, np.append(np.ones(self.scale.size), 0.0) if self.intercept else None)

    def original(self, x: np.ndarray) -> tuple[np.ndarray, float]:
        """Coefficients on the scale of the table given, and the intercept."""
        d = self.scale.size
        return x[:d] / self.scale, float(x[d]) if self.intercept else 0.0

    def scaled(self, coef: np.ndarray, intercept: float) -> np.ndarray:
        """The solver's x of these coefficients."""
        x = coef * self.scale
        return np.append(x, intercept) if self.intercept else x


def build_design(X: Any, sample_weight: np.ndarray | None, *, fit_intercept: bool, standardize: bool) -> Design:
    """`X` (validated) as a :class:`Design`."""
    return assembled(X, spread(X, sample_weight) if standardize else np.ones(X.shape[1]), fit_intercept)


def assembled(X: Any, scale: np.ndarray, intercept: bool) -> Design:
    """The columns of `X` divided by `scale`, and one of ones: C order or CSR, so few kernels to compile."""
    plain = bool(np.all(scale == 1.0))
    if sp.issparse(X):
        matrix = sp.csr_array(X, dtype=np.float64)
        if not plain:
            matrix = sp.csr_array(matrix @ sp.diags_array(1.0 / scale))
        if intercept:
            column = sp.csr_array(np.ones((X.shape[0], 1)))
            matrix = sp.csr_array(sp.hstack([matrix, column], format="csr"))
        return Design(matrix, scale, intercept)
    table = np.empty((X.shape[0], X.shape[1] + int(intercept)))
    table[:, : X.shape[1]] = X if plain else X / scale
    if intercept:
        table[:, -1] = 1.0
    return Design(table, scale, intercept)


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

"""The table as the solver sees it: centred and scaled columns, and a column of ones for the intercept.

With an intercept a shift of the columns changes only the intercept, which is not penalised: x·(a − m) + b' is x·a + b
with b = b' − m·x. Solvers are more accurate and faster on centred columns, so all columns of a dense table are centred,
and those columns of a sparse table whose entries are all stored.
"""

from __future__ import annotations

from collections import deque
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from skadmm.backends.shifted import less_centre
from skadmm.estimators._large_numbers import refuse_large_numbers
from skadmm.kernels.expansion import PARTS, SMALL, several
from skadmm.regularizers import SquaredL2
from skadmm.run.memory import ALWAYS_FREE, available, bytes_of

NO_CENTRE = np.empty(0)
NO_COPIES = np.empty(0, dtype=np.int64)
FLOAT, SPARSE_ENTRY = 8, 12
"""Bytes of a number, and of an entry of a sparse table with its column."""
FEW = 1000
"""Columns that are not constant in this many rows are not constant."""
SUSPICIOUS = 1e60
"""The mean of a column in which a number is larger than MAX_SIZE, for up to 10¹⁵ rows, unless others cancel it."""
GATHERED = 2**16
"""Entries that are gathered at a time, so that a table of chosen rows is copied once and not twice."""


class Design(NamedTuple):
    """The columns (x_j − centre_j) / scale_j, and behind them, for an intercept, a column of ones."""

    X: Any
    scale: np.ndarray
    intercept: bool
    centre: np.ndarray = NO_CENTRE
    """The centre of each column; empty where columns are not centred."""
    scaled_penalty: bool = False
    """True where the columns are not divided by their scale and the penalty is on scale · x instead: the same model,
    without a copy of the table."""
    unit: np.ndarray = NO_CENTRE
    """What the columns of X were divided by in place of their scale; empty where by nothing."""
    copies: np.ndarray = NO_COPIES
    """The feature of which each column of X is a copy, where features have several columns: the coefficient of a
    feature is the sum of theirs. Empty where every feature has one column."""

    @property
    def width(self) -> int:
        """How many columns the solver sees."""
        return self.scale.size + int(self.intercept)

    @property
    def n_features(self) -> int:
        """How many columns the table given has."""
        return int(self.copies.max()) + 1 if self.copies.size else self.scale.size

    @property
    def factor(self) -> np.ndarray:
        """What the solver's coefficients are multiplied by before the penalty sees them."""
        if not self.scaled_penalty:
            return np.ones(self.scale.size)
        return self.scale / self.unit if self.unit.size else self.scale

    def widened(self, A: sp.csr_array) -> sp.csr_array:
        """`A` on the solver's x, with an empty column for the intercept, which is not penalised."""
        if self.scaled_penalty:
            A = sp.csr_array(A @ sp.diags_array(self.factor))
        return sp.csr_array((A.data, A.indices, A.indptr), shape=(A.shape[0], A.shape[1] + 1)) if self.intercept else A

    def ridge(self, strength: float) -> SquaredL2 | None:
        """(strength/2)‖x‖² without the intercept; None where it is zero."""
        if strength == 0.0:
            return None
        if not (self.intercept or self.scaled_penalty):
            return SquaredL2(strength, None)
        weights = self.factor**2
        return SquaredL2(strength, np.append(weights, 0.0) if self.intercept else weights)

    def penalised(self, x: np.ndarray) -> np.ndarray:
        """The coefficients that the penalty sees, without the intercept."""
        part = x[: self.scale.size]
        return part * self.factor if self.scaled_penalty else part

    def as_solved(self, x: np.ndarray) -> np.ndarray:
        """The solver's x, from one whose coefficients are those that the penalty sees."""
        return np.append(x[: self.scale.size] / self.factor, x[self.scale.size :]) if self.scaled_penalty else x

    def original(self, x: np.ndarray) -> tuple[np.ndarray, float]:
        """Coefficients on the scale of the table given, and the intercept."""
        coef = self.parts(x)
        intercept = float(x[coef.size]) - self._shift(coef) if self.intercept else 0.0
        return np.bincount(self.copies, coef) if self.copies.size else coef, intercept

    def parts(self, x: np.ndarray) -> np.ndarray:
        """The coefficient of each column of X, on the scale of the table given."""
        d = self.scale.size
        return x[:d] if self._divided is None else x[:d] / self._divided

    def by_feature(self, values: np.ndarray) -> np.ndarray:
        """One number for each feature, from numbers for the columns of X that are equal for its copies, or NaN."""
        if not self.copies.size:
            return values
        known = ~np.isnan(values)
        found = np.full(self.n_features, np.nan)
        found[self.copies[known]] = values[known]
        return found

    def scaled(self, coef: np.ndarray, intercept: float) -> np.ndarray:
        """The solver's x of these coefficients; copies have equal shares."""
        if self.copies.size:
            coef = (coef / np.bincount(self.copies))[self.copies]
        x = coef if self._divided is None else coef * self._divided
        return np.append(x, intercept + self._shift(coef)) if self.intercept else x

    @property
    def _divided(self) -> np.ndarray | None:
        """What the columns were divided by; None where by nothing."""
        if not self.scaled_penalty:
            return self.scale
        return self.unit if self.unit.size else None

    def _shift(self, coef: np.ndarray) -> float:
        """What centring adds to the intercept."""
        return float(coef @ self.centre) if self.centre.size else 0.0

    def on(self, X: Any, rows: np.ndarray | None = None) -> Design:
        """Other rows, centred and scaled like these: those of `X`, or some of them."""
        return assembled(X, self.scale, self.intercept, self.centre, rows, self.copies)


def build_design(
    X: Any,
    sample_weight: np.ndarray | None,
    *,
    fit_intercept: bool,
    standardize: bool,
    names: Any = None,
    copies: np.ndarray = NO_COPIES,
) -> Design:
    """`X` (validated) as a :class:`Design`; `names` are those of its columns, for messages. With `copies`, it has the
    columns of X that they name, in their order."""
    middle = centre(X, sample_weight) if fit_intercept else NO_CENTRE
    if _may_be_large(X, middle):
        refuse_large_numbers(X, names)
    scale = spread(X, sample_weight) if standardize else np.ones(X.shape[1])
    if copies.size:
        check_copies(X, copies)
        scale, middle = scale[copies], middle[copies] if middle.size else middle
    return assembled(X, scale, fit_intercept, middle, copies=copies)


def _may_be_large(X: Any, middle: np.ndarray) -> bool:
    """Can `X` hold numbers that are too large? Where the means of dense columns are known, they and the first rows tell
    it without another reading: a number above MAX_SIZE moves the mean of its column by more than SUSPICIOUS."""
    seen = X.data if sp.issparse(X) else X[:FEW] if middle.size else X
    return not (np.vdot(seen, seen) < SUSPICIOUS**2 and np.abs(middle).max(initial=0.0) < SUSPICIOUS)


def check_copies(X: Any, copies: np.ndarray) -> None:
    """Raise where a table with these columns of `X` does not fit into memory."""
    if sp.issparse(X):
        stored = np.bincount(X.indices, minlength=X.shape[1])
        needed = 2.0 * SPARSE_ENTRY * float(stored[copies].sum())  # a column of ones is added to a copy
    else:
        needed = float(FLOAT) * X.shape[0] * copies.size
    free = available() if needed > ALWAYS_FREE else np.inf
    if needed > free:
        raise MemoryError(
            f"overlap='latent': the {X.shape[1]} features have {copies.size} columns, one for each group that holds "
            f"them; these take {bytes_of(needed)} of memory, and {bytes_of(free)} are available"
        )


def assembled(
    X: Any,
    scale: np.ndarray,
    intercept: bool,
    centre: np.ndarray = NO_CENTRE,
    rows: np.ndarray | None = None,
    copies: np.ndarray = NO_COPIES,
) -> Design:
    """The columns (`X` − `centre`) / `scale`, and a column of ones, in C order or CSR so that few kernels are compiled.
    With `rows`, only those rows of `X` are copied, once; with `copies`, the columns that they name."""
    place = _sparse_table if sp.issparse(X) else _dense_table
    return Design(place(X, scale, intercept, centre, rows, copies), scale, intercept, centre, copies=copies)


def _sparse_table(
    X: Any, scale: np.ndarray, intercept: bool, centre: np.ndarray, rows: np.ndarray | None, copies: np.ndarray
) -> sp.csr_array:
    X = X if rows is None else X[rows]
    matrix = sp.csr_array(X[:, copies] if copies.size else X, dtype=np.float64)
    if np.any(centre):
        matrix = less_centre(matrix, centre)
    if not np.all(scale == 1.0):
        matrix = sp.csr_array(matrix @ sp.diags_array(1.0 / scale))
    if intercept:
        column = sp.csr_array(np.ones((matrix.shape[0], 1)))
        matrix = sp.csr_array(sp.hstack([matrix, column], format="csr"))
    return matrix


def _dense_table(
    X: np.ndarray, scale: np.ndarray, intercept: bool, centre: np.ndarray, rows: np.ndarray | None, copies: np.ndarray
) -> np.ndarray:
    """Filled a few rows at a time, which stay in the processor's cache meanwhile; large tables on several threads."""
    n, d = X.shape[0] if rows is None else rows.size, scale.size
    table = np.empty((n, d + int(intercept)))
    plain = bool(np.all(scale == 1.0))
    step = max(1, GATHERED // max(1, d))

    def fill(first: int, stop: int) -> None:
        for i in range(first, stop, step):
            some = slice(i, min(i + step, stop))
            part = table[some, :d]
            given = X[some] if rows is None else X[rows[some]]
            given = given[:, copies] if copies.size else given
            if centre.size:
                np.subtract(given, centre, out=part)
            else:
                part[:] = given
            if not plain:
                part /= scale
            if intercept:
                table[some, d] = 1.0

    if table.size < SMALL:
        fill(0, n)
    else:
        ends = np.linspace(0, n, PARTS + 1).astype(int).tolist()
        deque(several()(fill, ends[:-1], ends[1:]), maxlen=0)
    return table


def centre(X: Any, sample_weight: np.ndarray | None) -> np.ndarray:
    """The weighted mean of each column; zero for a column of a sparse table that has entries which are not stored.

    A constant column has its own value, so that it becomes zero and not rounding.
    """
    share = _share(X, sample_weight)
    if not sp.issparse(X):
        mean = share @ X
        constant = np.flatnonzero(np.all(X[:FEW] == X[0], axis=0))
        constant = constant[np.all(X[:, constant] == X[0, constant], axis=0)]
        mean[constant] = X[0, constant]
        return mean
    return np.where(_all_stored(X), np.asarray(X.T @ share).ravel(), 0.0)


def _all_stored(X: Any) -> np.ndarray:
    """A mask of the columns of a sparse table whose entries are all stored."""
    return np.bincount(X.indices, minlength=X.shape[1]) == X.shape[0]


def _share(X: Any, sample_weight: np.ndarray | None) -> np.ndarray:
    weight = np.ones(X.shape[0]) if sample_weight is None else sample_weight
    return weight / weight.sum()


def spread(X: Any, sample_weight: np.ndarray | None) -> np.ndarray:
    """The weighted standard deviation of each column, 1 where it is zero."""
    mean, variance = column_moments(X, sample_weight)
    return np.where(variance > 1e-14 * mean**2, np.sqrt(variance), 1.0)


def column_moments(X: Any, sample_weight: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """The weighted mean and variance of each column; a sparse table is not centred densely."""
    share = _share(X, sample_weight)
    if not sp.issparse(X):
        mean = share @ X
        return mean, share @ (X - mean) ** 2
    mean = np.asarray(X.T @ share).ravel()
    part = sp.csr_array(X, dtype=np.float64)
    stored = np.repeat(share, np.diff(part.indptr))
    variance = np.bincount(part.indices, stored * (part.data - mean[part.indices]) ** 2, minlength=X.shape[1])
    missing = 1.0 - np.bincount(part.indices, stored, minlength=X.shape[1])
    variance += np.where(_all_stored(part), 0.0, np.maximum(missing, 0.0)) * mean**2
    return mean, variance

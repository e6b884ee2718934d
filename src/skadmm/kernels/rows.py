"""Rows of a matrix, whatever its storage: the only way compiled code reads X, A or B."""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from skadmm.kernels.compile import attach, generic, jitable, kernel


class DenseRows(NamedTuple):
    """A two-dimensional array, C- or F-ordered."""

    values: Any

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.values.shape


class CSRRows(NamedTuple):
    """Compressed sparse rows."""

    data: Any
    indices: Any
    indptr: Any
    width: int

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.indptr.size - 1, self.width


class PairRows(NamedTuple):
    """Rows of at most two entries: chains, grids, incidence matrices, and those stacked on the identity."""

    first: Any
    second: Any
    first_value: Any
    second_value: Any
    width: int
    pairs: int
    """The first row from which every row has at most one entry, so that the second one need not be read."""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.first.size, self.width


class StackedRows(NamedTuple):
    """The rows of X for several outputs: row i·k + c is row i in the columns of output c, c·d … (c + 1)·d − 1.

    It is X ⊗ I_k with its columns ordered by output. Nothing is copied: x is the coefficients of output 0, then those
    of output 1, and so on.
    """

    rows: Any
    outputs: int
    width: int
    """The columns of X, d."""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.rows.shape[0] * self.outputs, self.width * self.outputs


AnyRows = DenseRows | CSRRows | StackedRows
"""Rows of X."""


def stacked(rows: DenseRows | CSRRows, outputs: int) -> StackedRows:
    """Rows for several outputs."""
    return StackedRows(rows, outputs, rows.shape[1])


def outputs_of(rows: Any) -> int:
    """The number of outputs that the rows serve."""
    return rows.outputs if isinstance(rows, StackedRows) else 1


def stored_entries(rows: AnyRows) -> int:
    """The number of entries that are read when every row is read once."""
    if isinstance(rows, StackedRows):
        return rows.outputs * stored_entries(rows.rows)
    return int(rows.data.size if isinstance(rows, CSRRows) else rows.values.size)


def is_dense(rows: AnyRows) -> bool:
    """Return whether all entries are stored."""
    return isinstance(rows, DenseRows)


def as_matrix(rows: AnyRows, start: int = 0, stop: int | None = None) -> Any:
    """Consecutive rows as an array or a SciPy CSR array, without a copy of their entries but for several outputs."""
    stop = rows.shape[0] if stop is None else stop
    if isinstance(rows, StackedRows):
        return _kronecker(rows, start, stop)
    if isinstance(rows, DenseRows):
        return rows.values[start:stop]
    first, last = rows.indptr[start], rows.indptr[stop]
    parts = rows.data[first:last], rows.indices[first:last], rows.indptr[start : stop + 1] - first
    return scipy.sparse.csr_array(parts, shape=(stop - start, rows.width))


def times_basis(matrix: Any, basis: Any) -> Any:
    """A matrix of rows times a sparse basis; columns that the basis leaves out are not read."""
    used = np.flatnonzero(np.diff(basis.indptr))
    if scipy.sparse.issparse(matrix) or 2 * used.size > basis.shape[0]:
        return matrix @ basis
    return matrix[:, used] @ basis[used]


def _kronecker(rows: StackedRows, start: int, stop: int) -> Any:
    """Consecutive rows of several outputs as a CSR array, whose entries are copied."""
    k = rows.outputs
    first, last = start // k, -(-stop // k)
    part = scipy.sparse.csr_array(as_matrix(rows.rows, first, last))
    counts = np.repeat(np.diff(part.indptr), k)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    source = np.arange(indptr[-1]) - np.repeat(indptr[:-1] - np.repeat(part.indptr[:-1], k), counts)
    offset = np.repeat(np.tile(np.arange(k) * rows.width, last - first), counts)
    whole = (part.data[source], part.indices[source] + offset, indptr)
    return scipy.sparse.csr_array(whole, shape=((last - first) * k, rows.shape[1]))[
        start - first * k : stop - first * k
    ]


def from_matrix(matrix: Any) -> DenseRows | CSRRows:
    """An array, or a SciPy CSR array, as rows."""
    if scipy.sparse.issparse(matrix):
        return CSRRows(matrix.data, matrix.indices, matrix.indptr, matrix.shape[1])
    return DenseRows(matrix)


def scaled_columns(rows: Any, scale: np.ndarray) -> Any:
    """A copy with column j multiplied by scale_j, in the same floating type."""
    if isinstance(rows, StackedRows):
        by_output = scale.reshape(rows.outputs, rows.width)
        if not np.all(by_output == by_output[0]):
            raise ValueError("scale differs between the outputs of a column: it takes one number per column of X")
        return rows._replace(rows=scaled_columns(rows.rows, by_output[0]))
    if isinstance(rows, DenseRows):
        return DenseRows(np.multiply(rows.values, scale, dtype=rows.values.dtype, casting="same_kind"))
    factor = scale.astype(rows.data.dtype)
    return CSRRows(rows.data * factor[rows.indices], rows.indices, rows.indptr, rows.width)


def scaled_entries(rows: DenseRows | CSRRows, weight: np.ndarray) -> DenseRows | CSRRows:
    """A copy with entry j of every row multiplied by weight_j, in the type of the product."""
    if isinstance(rows, DenseRows):
        return DenseRows(rows.values * weight)
    return rows._replace(data=rows.data * weight[rows.indices])


def entries_per_row(rows: DenseRows | CSRRows) -> float:
    """The mean number of stored entries of a row."""
    return stored_entries(rows) / max(1, rows.shape[0])


def weighted_column_squares(rows: AnyRows, weight: np.ndarray) -> np.ndarray:
    """Σ weight_i a_ij² of each column j."""
    if isinstance(rows, StackedRows):
        k = rows.outputs
        return np.concatenate([weighted_column_squares(rows.rows, weight[c::k]) for c in range(k)])
    if isinstance(rows, DenseRows):
        return np.einsum("i,ij,ij->j", weight, rows.values, rows.values, dtype=np.float64)
    squares = np.repeat(weight, np.diff(rows.indptr)) * rows.data.astype(np.float64) ** 2
    return np.bincount(rows.indices, squares, minlength=rows.width)


def norms_squared(rows: AnyRows) -> np.ndarray:
    """‖a_i‖² of each row."""
    if isinstance(rows, StackedRows):
        return np.repeat(norms_squared(rows.rows), rows.outputs)
    if isinstance(rows, DenseRows):
        return np.einsum("ij,ij->i", rows.values, rows.values, dtype=np.float64)
    first, starts = rows.indptr[0], rows.indptr[:-1]
    squares = np.zeros(rows.indptr[-1] - first + 1)  # one more, for rows at the end without entries
    np.square(rows.data[first : rows.indptr[-1]], out=squares[:-1], dtype=np.float64)
    return (
        np.where(np.diff(rows.indptr) > 0, np.add.reduceat(squares, starts - first), 0.0)
        if starts.size
        else squares[:0]
    )


@generic
def n_rows(rows: Any) -> int:
    """The number of rows."""


@generic
def row_dot(rows: Any, i: int, x: Any) -> float:
    """Row i times x."""


@jitable
def unsigned(number):
    """An index into an array, as an unsigned number. For signed ones Numba checks whether they are negative and count
    from the end; where indices are read from another array, that takes longer than the rest of a loop."""
    return np.uintp(number)


@jitable
def span(starts, i):
    """The places of the entries of row i."""
    return range(unsigned(starts[i]), unsigned(starts[i + 1]))


@generic
def row_add(rows: Any, i: int, scale: float, out: Any) -> None:
    """out ← out + scale · row i."""


def _dense_n_rows(rows):
    return rows.values.shape[0]


def _dense_dot(rows, i, x):
    total = 0.0
    for j in range(x.size):
        total += rows.values[i, j] * x[j]
    return total


def _dense_add(rows, i, scale, out):
    for j in range(out.size):
        out[j] += scale * rows.values[i, j]


def _csr_n_rows(rows):
    return rows.indptr.size - 1


def _csr_dot(rows, i, x):
    total = 0.0
    for p in span(rows.indptr, i):
        total += rows.data[p] * x[unsigned(rows.indices[p])]
    return total


def _csr_add(rows, i, scale, out):
    for p in span(rows.indptr, i):
        out[unsigned(rows.indices[p])] += scale * rows.data[p]


def _stacked_n_rows(rows):
    return n_rows(rows.rows) * rows.outputs


def _stacked_dot(rows, i, x):
    start = (i % rows.outputs) * rows.width
    return row_dot(rows.rows, i // rows.outputs, x[start : start + rows.width])


def _stacked_add(rows, i, scale, out):
    start = (i % rows.outputs) * rows.width
    row_add(rows.rows, i // rows.outputs, scale, out[start : start + rows.width])


def _pair_n_rows(rows):
    return rows.first.size


def _pair_dot(rows, i, x):
    one = rows.first_value[i] * x[rows.first[i]]
    return one + rows.second_value[i] * x[rows.second[i]] if i < rows.pairs else one


def _pair_add(rows, i, scale, out):
    out[rows.first[i]] += scale * rows.first_value[i]
    if i < rows.pairs:
        out[rows.second[i]] += scale * rows.second_value[i]


_IMPLEMENTATIONS: dict[type, tuple[Any, Any, Any]] = {
    DenseRows: (_dense_n_rows, _dense_dot, _dense_add),
    CSRRows: (_csr_n_rows, _csr_dot, _csr_add),
    PairRows: (_pair_n_rows, _pair_dot, _pair_add),
    StackedRows: (_stacked_n_rows, _stacked_dot, _stacked_add),
}
for _cls, _functions in _IMPLEMENTATIONS.items():
    for _generic, _implementation in zip((n_rows, row_dot, row_add), _functions, strict=True):
        attach(_generic, _cls, _implementation)


@kernel
def copy_into(v, out):
    """out ← v, as a loop: ``out[:] = v`` makes Numba compile an error message, which takes seconds."""
    for j in range(v.size):
        out[j] = v[j]


@kernel
def margins(rows, index, x, out):
    """out_i ← a_i·x for the rows in `index`."""
    for i in index:
        out[i] = row_dot(rows, i, x)


def multiply(rows: Any, x: np.ndarray, out: np.ndarray) -> None:
    """out ← rows · x."""
    margins(rows, np.arange(out.size), x, out)


def from_sparse(matrix: Any) -> CSRRows | PairRows:
    """Compiled rows of a SciPy CSR matrix, in the fastest kind that holds it."""
    counts = np.diff(matrix.indptr)
    if matrix.shape[1] and matrix.shape[0] and counts.max() <= 2:
        return _pairs(matrix, counts)
    return CSRRows(matrix.data, matrix.indices, matrix.indptr, matrix.shape[1])


def _pairs(matrix: Any, counts: np.ndarray) -> PairRows:
    # A missing entry is stored as zero in the row's first column (or column 0), so that it contributes nothing.
    rows = matrix.shape[0]
    first, second = np.zeros(rows, np.uint32), np.zeros(rows, np.uint32)
    first_value, second_value = np.zeros(rows), np.zeros(rows)
    some, two = counts >= 1, counts == 2
    first[some] = matrix.indices[matrix.indptr[:-1][some]]
    first_value[some] = matrix.data[matrix.indptr[:-1][some]]
    second[:] = first
    second[two] = matrix.indices[matrix.indptr[:-1][two] + 1]
    second_value[two] = matrix.data[matrix.indptr[:-1][two] + 1]
    pairs = int(np.flatnonzero(two)[-1]) + 1 if two.any() else 0
    return PairRows(first, second, first_value, second_value, matrix.shape[1], pairs)

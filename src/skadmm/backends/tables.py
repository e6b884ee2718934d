"""Tables in memory as rows that compiled code reads, copied only where it is necessary."""

from typing import Any

import numpy as np
import scipy.sparse

from skadmm import _checks
from skadmm.backends.files import FileBlocks
from skadmm.backends.frames import frame_values
from skadmm.kernels.rows import CSRRows, DenseRows


def as_rows(X: Any, name: str = "X") -> tuple[DenseRows | CSRRows, list[str] | None]:
    """Turn a table into rows that compiled code reads, and find the names of its columns.

    No copy is made of a C- or F-ordered float32 or float64 array, nor of the values of a CSR matrix of those types.

    Parameters
    ----------
    X : array, sparse matrix or table
        The table: NumPy, SciPy, pandas, polars, pyarrow, or anything that exports an Arrow stream.
    name : str
        The name of the argument in messages.

    Returns
    -------
    rows : DenseRows or CSRRows
        The rows.
    names : list of str or None
        The names of the columns, where the table has them.

    See Also
    --------
    skadmm.backends.LocalBackend : Uses the rows.

    Examples
    --------
    >>> import pandas as pd
    >>> from skadmm.backends import as_rows
    >>> rows, names = as_rows(pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]}))
    >>> rows.shape, names
    ((2, 2), ['a', 'b'])
    """
    names = None
    if isinstance(X, FileBlocks):
        return X.rows, X.names
    frame = frame_values(X, name)
    if frame is not None:
        X, names = frame
    rows = _sparse_rows(X, name) if scipy.sparse.issparse(X) else _dense_rows(X, name)
    n, d = rows.shape
    if n == 0 or d == 0:
        raise ValueError(f"{name} has shape ({n}, {d}): it takes at least one row and one column")
    return rows, names


def _floating(dtype: np.dtype, name: str) -> np.dtype:
    """The type of the rows: float32 stays, other numbers become float64."""
    if dtype in (np.dtype(np.float32), np.dtype(np.float64)):
        return dtype
    if dtype.kind in "fiub":
        return np.dtype(np.float64)
    raise TypeError(f"{name} has dtype {dtype}: it takes real numbers (float, integer or boolean)")


def _dense_rows(X: Any, name: str) -> DenseRows:
    array = np.asarray(X)
    if array.ndim != 2:
        raise ValueError(f"{name} has {array.ndim} dimension(s): it takes a two-dimensional array")
    array = array.astype(_floating(array.dtype, name), copy=False)
    if not (array.flags.c_contiguous or array.flags.f_contiguous):
        array = np.ascontiguousarray(array)
    _checks.finite(array, name)
    return DenseRows(array)


def _sparse_rows(X: Any, name: str) -> CSRRows:
    if X.ndim != 2:
        raise ValueError(f"{name} has {X.ndim} dimension(s): it takes a two-dimensional array")
    dtype = _floating(X.dtype, name)
    matrix = X.tocsr()
    if not matrix.has_canonical_format:
        matrix = matrix.copy() if matrix is X else matrix
        matrix.sum_duplicates()
    data = matrix.data.astype(dtype, copy=False)
    _checks.finite(data, name)
    small = max(matrix.shape[1], matrix.nnz) < np.iinfo(np.int32).max
    index = np.int32 if small else np.int64
    return CSRRows(
        data, matrix.indices.astype(index, copy=False), matrix.indptr.astype(index, copy=False), matrix.shape[1]
    )

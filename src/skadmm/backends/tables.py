"""X, the target and the weights of the samples, checked, as compiled code reads them; copied only where it is
necessary."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from skadmm import _checks
from skadmm._types import TableLike, Values
from skadmm.backends.files import FileBlocks
from skadmm.backends.frames import frame_values
from skadmm.backends.local import normalised
from skadmm.kernels.rows import CSRRows, DenseRows, stacked
from skadmm.losses import Loss
from skadmm.losses.offset import TARGET, CoupledOffset, Offset, with_offset


def as_rows(X: TableLike, name: str = "X") -> tuple[DenseRows | CSRRows, list[str] | None]:
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
    frame = None if isinstance(X, np.ndarray) else frame_values(X, name)
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


def as_target(
    target: Values | None, n: int, loss: Loss, classes: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray | None]:
    """Check the targets; classes are coded as −1 and +1.

    Targets of k columns, and k classes for a loss of several margins (one-hot), are returned row by row.

    Parameters
    ----------
    target : array-like of length n, or of shape (n, k)
        Numbers, or classes.
    n : int
        The number of rows.
    loss : loss
        It says whether targets are classes.
    classes : ndarray, optional
        The classes, where they are known already.

    Returns
    -------
    target : ndarray of float
        The targets as compiled code reads them, n or n·k of them.
    classes : ndarray or None
        The classes in sorted order; None in regression.

    See Also
    --------
    skadmm.backends.as_weight : Checks the weights.

    Examples
    --------
    >>> from skadmm.backends import as_target
    >>> from skadmm.losses import Logistic
    >>> as_target(["no", "yes", "no"], 3, Logistic())
    (array([-1.,  1., -1.]), array(['no', 'yes'], dtype='<U3'))
    """
    if target is None:
        raise ValueError("target=None: it takes a vector with an entry for each row of X")
    array = np.asarray(target)
    if isinstance(loss, (Offset, CoupledOffset)):
        # The targets of other samples, without offsets unless they are records themselves.
        records = array.dtype == TARGET
        values, classes = as_target(array["value"] if records else array, n, loss.loss, classes)
        offset = array["offset"].ravel() if records else np.zeros(values.size)
        return with_offset(loss.loss, values, offset)[1], classes
    if array.ndim == 2 and array.shape[0] == n and not loss.labels:
        numbers = _columns(array, n)
        check_range(numbers, loss, "target")
        return numbers, None
    if array.ndim == 2 and array.shape[0] == n and loss.coupled:
        return _one_hot(array), np.arange(array.shape[1]) if classes is None else classes
    if array.ndim != 1 or array.size != n:
        raise ValueError(f"target has shape {array.shape}: it takes a vector of length {n}, the number of rows of X")
    if not loss.labels:
        numbers = _checks.vector(array, "target", n, of="the number of rows of X")
        check_range(numbers, loss, "target")
        return numbers, None
    if array.dtype.kind == "f":
        _checks.finite(array, "target")
    if classes is None:
        classes = _classes(array, loss)
    elif not np.isin(array, classes).all():
        raise ValueError(f"target holds classes other than {classes.tolist()}")
    if loss.coupled:
        return (array[:, None] == classes).astype(float).ravel(), classes
    if array.dtype == np.float64 and classes.tolist() == [-1.0, 1.0]:
        return array, classes
    return np.where(array == classes[1], 1.0, -1.0), classes


def check_range(target: np.ndarray, loss: Loss, name: str) -> None:
    """Raise where a target is outside the range of the loss; the message has the first one."""
    low, high = loss.target_minimum, loss.target_maximum
    outside = (target <= low if loss.target_open else target < low) | (target > high)
    if np.any(outside):
        first = int(np.argmax(outside))
        takes = f"{'>' if loss.target_open else '≥'} {low:g}" if high == np.inf else f"from {low:g} to {high:g}"
        raise ValueError(f"{name}[{first}]={float(target[first]):g}: the {loss.name} loss takes numbers {takes}")


def _columns(array: np.ndarray, n: int) -> np.ndarray:
    """A target of several columns, row by row."""
    if array.shape[1] == 0:
        raise ValueError(f"target has shape {array.shape}: it takes at least one column")
    return _checks.vector(array.ravel(), "target", array.size, of="the number of its entries")


def _one_hot(array: np.ndarray) -> np.ndarray:
    """A table with a column for each class, one where it is the class of the row and zero elsewhere, row by row."""
    if array.shape[1] < 2 or not np.all((array == 0) | (array == 1)) or not np.all(array.sum(axis=1) == 1):
        raise ValueError(f"target has shape {array.shape}: it takes classes, or a table with a single one in each row")
    return array.astype(float).ravel()


def _classes(array: np.ndarray, loss: Loss) -> np.ndarray:
    """The classes of a target, as many as the loss takes."""
    try:
        classes = np.unique(array)
    except TypeError:
        raise TypeError("target mixes values that cannot be sorted: it takes classes of one type") from None
    if classes.size != 2 and not (loss.coupled and classes.size > 2):
        raise class_count_error(classes, loss)
    return classes


def class_count_error(classes: np.ndarray, loss: Loss) -> ValueError:
    """The error for a target of one class, or of more classes than the loss takes, with the loss that takes them."""
    shown = ", ".join(repr(v) for v in classes[:5].tolist()) + (", …" if classes.size > 5 else "")
    takes = "two or more" if loss.coupled else "exactly two"
    hint = ""
    if classes.dtype.kind == "f":
        hint = "; for a target of numbers choose another loss, such as 'squared'"
    elif classes.size > 2:
        hint = "; loss='multinomial' (--loss multinomial) takes more"
    number = "1 class" if classes.size == 1 else f"{classes.size} classes"
    return ValueError(f"target has {number} ({shown}): the {loss.name} loss takes {takes}{hint}")


def for_outputs(rows: DenseRows | CSRRows, target: np.ndarray, weight: np.ndarray) -> tuple[Any, np.ndarray]:
    """Rows and weights for a target of :func:`as_target`, which has an entry for each sample and output.

    With k outputs the weights have mean k, so that the mean loss is over samples, and a sum over outputs.
    """
    outputs = target.size // rows.shape[0]
    if outputs == 1:
        return rows, weight
    weight = np.repeat(weight, outputs) if weight.size else np.ones(target.size)
    return stacked(rows, outputs), outputs * weight


def as_weight(weight: Values | None, n: int) -> np.ndarray:
    """Check the weights of the samples, and scale them to mean one.

    Parameters
    ----------
    weight : array-like of length n or None
        Numbers ≥ 0.
    n : int
        The number of rows.

    Returns
    -------
    ndarray
        The weights with mean one; empty where none are given.

    See Also
    --------
    skadmm.backends.as_target : Checks the targets.

    Examples
    --------
    >>> from skadmm.backends import as_weight
    >>> as_weight([1, 3], 2)
    array([0.5, 1.5])
    """
    if weight is None:
        return np.empty(0)
    weight = _checks.vector(weight, "sample_weight", n, of="the number of rows of X")
    if np.any(weight < 0) or not np.any(weight > 0):
        raise ValueError("sample_weight takes numbers ≥ 0, at least one of them > 0")
    return normalised(weight)

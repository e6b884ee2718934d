"""One form for every operator: CSR, float64, sorted, without duplicates or stored zeros."""

import operator
from typing import Any

import numpy as np
import scipy.sparse as sp

from skadmm._types import Matrix


def canonical(matrix: Any) -> sp.csr_array:
    """`matrix` as a ``csr_array`` of float64 in canonical form, with 32-bit indices when they fit."""
    csr = sp.csr_array(matrix, dtype=np.float64, copy=True)
    csr.sum_duplicates()
    if not csr.data.all():
        csr.eliminate_zeros()
    if csr.indices.dtype != np.int32 and max(*csr.shape, csr.nnz) <= np.iinfo(np.int32).max:
        indices, indptr = csr.indices.astype(np.int32), csr.indptr.astype(np.int32)
        csr = sp.csr_array((csr.data, indices, indptr), shape=csr.shape)
        csr.has_canonical_format = True
    return csr


def identity(d: int) -> sp.csr_array:
    """Build A = I, so that ψ penalises the coefficients themselves.

    Parameters
    ----------
    d : int
        Number of features.

    Returns
    -------
    csr_array of shape (d, d)
        The identity.

    See Also
    --------
    skadmm.operators.stack : Puts it below other matrices.

    Examples
    --------
    >>> from skadmm.operators import identity
    >>> identity(2).toarray()
    array([[1., 0.],
           [0., 1.]])
    """
    return canonical(sp.eye_array(checked_count(d, "d"), format="csr"))


def as_operator(A: Matrix | None, n_features: int, role: str = "A") -> sp.csr_array:
    """Check a matrix and bring it to canonical form.

    Parameters
    ----------
    A : sparse matrix or array, ndarray, DataFrame, "identity" or None
        None means the identity.
    n_features : int
        The width `A` must have.
    role : str
        The name of the argument in messages.

    Returns
    -------
    csr_array of shape (m, n_features)
        Float64, with sorted indices and without explicit zeros or duplicates.

    See Also
    --------
    skadmm.operators.identity : The default.

    Examples
    --------
    >>> import numpy as np
    >>> from skadmm.operators import as_operator
    >>> as_operator(np.array([[1, -1, 0]]), 3).toarray()
    array([[ 1., -1.,  0.]])
    """
    n_features = checked_count(n_features, "n_features")
    if A is None or (isinstance(A, str) and A == "identity"):
        return identity(n_features)
    matrix = checked_matrix(A, role)
    if matrix.shape[1] != n_features:
        raise ValueError(f"{role} must have one column per feature, {n_features}; got shape {matrix.shape}")
    return canonical(matrix)


def checked_matrix(matrix: Any, role: str) -> Any:
    """`matrix` as a sparse container or an ndarray: real, finite, with two dimensions."""
    if isinstance(matrix, str):
        raise ValueError(
            f"{role} must be a matrix or 'identity', got {matrix!r}: skadmm.operators has functions that return "
            "matrices, such as chain(n_features)"
        )
    if not sp.issparse(matrix):
        if hasattr(matrix, "matvec"):
            raise TypeError(f"{role} must be a sparse or dense matrix; a LinearOperator has no entries to read")
        try:
            matrix = np.asarray(matrix)
        except ValueError as error:
            raise ValueError(f"{role} must be a matrix with rows of one length") from error
    if matrix.ndim != 2:
        raise ValueError(f"{role} must have two dimensions, got shape {matrix.shape}")
    if matrix.dtype.kind not in "biuf":
        raise ValueError(f"{role} must hold real numbers, got dtype {matrix.dtype}")
    entries = matrix.tocsr().data if sp.issparse(matrix) else matrix
    if not np.all(np.isfinite(entries)):
        raise ValueError(f"{role} must be finite, got NaN or infinity")
    return matrix


def checked_count(count: Any, role: str, least: int = 1) -> int:
    """`count` as an int of at least `least`."""
    try:
        number = operator.index(count)
    except TypeError:
        number = None
    if number is None or isinstance(count, (bool, np.bool_)) or number < least:
        raise ValueError(f"{role} must be an integer ≥ {least}, got {count!r}")
    return number


def checked_weights(weights: Any, size: int, role: str, per: str) -> np.ndarray:
    """`weights` as `size` finite numbers ≥ 0; ones for None. `per` says what each belongs to."""
    if weights is None:
        return np.ones(size)
    try:
        values = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{role} must be numbers, one per {per}; got {weights!r}") from error
    if values.shape != (size,):
        raise ValueError(f"{role} must have length {size}, one per {per}; got shape {values.shape}")
    if not np.all(np.isfinite(values)) or np.any(values < 0):
        bad = values[~(np.isfinite(values) & (values >= 0))][0]
        raise ValueError(f"{role} must be finite and ≥ 0, got {bad}")
    return values

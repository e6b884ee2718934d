"""The structure of a solution x from the zeros of Ax: fused features, degrees of freedom; null spaces and ranks."""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from skadmm.operators.clusters import clusters
from skadmm.operators.line import as_line
from skadmm.regularizers import Nuclear

LARGEST_DENSE = 400
"""Where rows of A join at most this many features, ranks and null spaces are computed densely."""
ROUNDING, NOTHING = 1e-10, 1e-14
"""What counts as zero: an entry of Ax relative to its terms, and relative to the largest coefficient."""
WIDE = 1e-13
"""The same as ROUNDING for rows with more than two entries. Differences of high order are small in any case (third
differences of a curve of d points are about d⁻³), so the tolerance covers only the rounding of x itself."""


def ties(A: sp.csr_array, x: np.ndarray) -> np.ndarray:
    """The rows on which Ax is zero up to rounding, that of its own terms or of the largest coefficient."""
    size = abs(A)
    floor = NOTHING * np.abs(x).max(initial=0.0) * np.asarray(size.sum(axis=1)).ravel()
    return np.abs(A @ x) <= np.where(np.diff(A.indptr) <= 2, ROUNDING, WIDE) * (size @ np.abs(x)) + floor


def fused(A: sp.csr_array, x: np.ndarray, tied: np.ndarray | None = None) -> np.ndarray:
    """Clusters of features that are joined by rows of A with at most two entries on which Ax is zero.

    Parameters
    ----------
    A : csr_array
    x : ndarray
    tied : ndarray of bool, optional
        The rows on which Ax is zero; by default those on which it is zero up to rounding.

    Returns
    -------
    ndarray of int
        A label for each feature: 0, 1, … in the order in which they first occur, −1 for features that are zero.
    """
    if A.shape[0] == 0:
        return np.arange(A.shape[1])
    return clusters(A, ties(A, x) if tied is None else tied)[0]


def degrees_of_freedom(
    A: sp.csr_array, x: np.ndarray, psi: Any = None, y: np.ndarray | None = None, labels: np.ndarray | None = None
) -> int:
    """The dimension of the vectors that have the zeros of Ax.

    Parameters
    ----------
    A : csr_array
    x : ndarray
        A solution.
    psi : regulariser or None
        For a ψ of groups the result is the number of non-zero coefficients, an upper bound. For a nuclear norm it is
        the dimension r(m + k − r) of the matrices of rank r, and what A leaves free.
    y : ndarray or None
        The solver's own y = Ax, whose zeros are exact. It is used for groups, and where A has rows with more than two
        entries; None takes the rows on which Ax is zero up to rounding.
    labels : ndarray of int or None
        The clusters of x that :func:`fused` finds, where they are known.

    Returns
    -------
    int
        For a graph, the number of clusters that are not zero. For differences along a line, the number of knots
        plus the order plus one. For any other matrix d minus the rank of the zero rows, exact where these rows are
        independent by their pattern or join at most LARGEST_DENSE features; an upper bound beyond.

    References
    ----------
    Tibshirani, R. J. and Taylor, J. (2012). Degrees of freedom in lasso problems. Annals of Statistics 40.
    """
    if isinstance(psi, Nuclear):
        return _of_low_rank(A, x, psi, y)
    if psi is not None and not psi.separable:
        return int(np.count_nonzero(nonzero_in_groups(A, x, y)))
    if A.shape[0] == 0:
        return int(x.size)
    if np.diff(A.indptr).max() <= 2:
        return int((fused(A, x) if labels is None else labels).max(initial=-1)) + 1
    return int(x.size) - rank(A[ties(A, x) if y is None or y.size != A.shape[0] else y == 0.0])


def nonzero_in_groups(A: sp.csr_array, x: np.ndarray, y: np.ndarray | None) -> np.ndarray:
    """A mask of the coefficients that are not zero; one that is rounding is zero where its row of y is."""
    nonzero = x != 0.0
    if y is not None and y.size == A.shape[0]:
        rows = np.flatnonzero((np.diff(A.indptr) == 1) & (y == 0.0))
        nonzero[A.indices[A.indptr[rows]]] = False
    return nonzero


def _of_low_rank(A: sp.csr_array, x: np.ndarray, psi: Nuclear, y: np.ndarray | None) -> int:
    """The dimension of the matrices V of the rank of Ax, of single rows that are not zero, and of what A leaves free;
    an upper bound where the rows of A depend on each other."""
    y = A @ x if y is None or y.size != A.shape[0] else y
    m, k, r = (y.size - psi.single) // psi.columns, psi.columns, psi.rank(y)
    single = int(np.count_nonzero(y[y.size - psi.single :]))
    return min(int(x.size), r * (m + k - r) + single + int(x.size) - rank(A))


def rank(A: sp.csr_array) -> int:
    """The rank of a sparse matrix; a lower bound where LARGEST_DENSE is exceeded and the pattern does not suffice."""
    A = sp.csr_array(A)
    A.sum_duplicates()
    counts = np.diff(A.indptr)
    alone = np.zeros(A.shape[1], bool)  # features with a row of one entry; other rows' entries there do not matter
    alone[A.indices[A.indptr[:-1][counts == 1]]] = True
    A = sp.csr_array(A[counts > 1][:, ~alone])
    A = A[np.diff(A.indptr) > 0]
    found = int(np.count_nonzero(alone))
    if A.shape[0] == 0:
        return found
    rows_of, columns_of = _joined(A)
    for rows, columns in zip(rows_of, columns_of, strict=True):
        part = A[rows]
        ends = (part.indices[part.indptr[:-1]], part.indices[part.indptr[1:] - 1])
        independent = max(np.unique(end).size for end in ends)  # rows that begin, or end, in different columns
        if independent < rows.size and columns.size <= LARGEST_DENSE:
            independent = int(np.linalg.matrix_rank(part[:, columns].toarray()))
        found += independent
    return found


def _joined(A: sp.csr_array) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """The rows and the columns of each connected part of a matrix, for parts that have rows."""
    m = A.shape[0]
    count, labels = connected_components(sp.block_array([[None, A], [A.T, None]], format="csr"), directed=False)
    parts = []
    for own in (labels[:m], labels[m:]):
        order = np.argsort(own, kind="stable")
        parts.append(np.split(order, np.cumsum(np.bincount(own, minlength=count))[:-1]))
    with_rows = [k for k in range(count) if parts[0][k].size]
    return [parts[0][k] for k in with_rows], [parts[1][k] for k in with_rows]


class NullSpace(NamedTuple):
    """{x : Ax = 0}."""

    basis: sp.csr_array
    """Its basis vectors are the columns."""
    disjoint: bool
    """Has every feature an entry in at most one of them?"""


def null_space(A: sp.csr_array) -> NullSpace | None:
    """A basis of {x : Ax = 0}; None where A is too large and general.

    Rows of at most two entries make one vector for each connected component, differences along a line its polynomials.
    Other rows are taken densely, where they join at most LARGEST_DENSE features.
    """
    d = A.shape[1]
    counts = np.diff(A.indptr)
    narrow = counts <= 2
    labels, factors = clusters(A, narrow)
    size = int(labels.max(initial=-1)) + 1
    nonzero = np.flatnonzero(labels >= 0)
    basis = sp.csr_array((factors[nonzero], (nonzero, labels[nonzero])), shape=(d, size))
    if narrow.all():
        return NullSpace(basis, True)
    rest = sp.csr_array(A[~narrow] @ basis)  # the other rows, in the coordinates of the components
    rest.eliminate_zeros()
    rest.sort_indices()
    rest = rest[np.diff(rest.indptr) > 0]
    if rest.shape[0] == 0:
        return NullSpace(basis, True)
    free = np.ones(size, bool)
    found = []
    for rows, columns in zip(*_joined(rest), strict=True):
        part = sp.csr_array(rest[rows][:, columns])
        line = as_line(part)
        if line is None and columns.size > LARGEST_DENSE:
            return None
        vectors = _dense_null_space(part.toarray()) if line is None else line.null_space()
        free[columns] = False
        if vectors.shape[1]:
            place = np.repeat(columns, vectors.shape[1])
            number = np.tile(np.arange(vectors.shape[1]), columns.size)
            found.append(sp.csr_array((vectors.ravel(), (place, number)), shape=(size, vectors.shape[1])))
    found.append(sp.eye_array(size, format="csr")[:, free])
    inner = sp.csr_array(sp.hstack(found))
    return NullSpace(sp.csr_array(basis @ inner), bool(np.diff(inner.indptr).max(initial=0) <= 1))


def _dense_null_space(A: np.ndarray) -> np.ndarray:
    """An orthonormal basis of {x : Ax = 0}, in columns."""
    _, values, right = np.linalg.svd(A, full_matrices=True)
    return right[int(np.count_nonzero(values > 1e-12 * values[0])) :].T

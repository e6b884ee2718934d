"""What the zeros of Ax say about x: which features are fused, and how many degrees of freedom are left."""

from typing import Any

import numpy as np
import scipy.sparse as sp

LARGEST_DENSE = 3000
"""Up to this many features the rank of a general matrix is computed, densely; beyond it is bounded."""
ROUNDING, NOTHING = 1e-10, 1e-14


def ties(A: sp.csr_array, x: np.ndarray) -> np.ndarray:
    """The rows on which Ax is zero, but for rounding: of its own terms, or of the largest coefficient."""
    size = abs(A)
    least = NOTHING * np.abs(x).max(initial=0.0) * np.asarray(size.sum(axis=1)).ravel()
    return np.abs(A @ x) <= ROUNDING * (size @ np.abs(x)) + least


def fused(A: sp.csr_array, x: np.ndarray, tied: np.ndarray | None = None) -> np.ndarray:
    """Which features are tied together by the rows of A with at most two entries on which Ax is zero.

    `tied` says which rows these are; None takes those on which Ax is zero but for rounding.

    A label for each feature: 0, 1, … in the order in which they first occur, −1 for those tied to zero.
    """
    from skadmm.polish import clusters

    if A.shape[0] == 0:
        return np.arange(A.shape[1])
    labels, _ = clusters(A, ties(A, x) if tied is None else tied)
    order: dict[int, int] = {}
    return np.array([-1 if label < 0 else order.setdefault(int(label), len(order)) for label in labels])


def degrees_of_freedom(A: sp.csr_array, x: np.ndarray, psi: Any = None) -> int:
    """The dimension of the vectors that have the zeros of Ax.

    For a graph that is the number of fused groups that are not zero. For a ψ of groups it is the number of non-zero
    coefficients, an upper bound.

    References
    ----------
    Tibshirani, R. J. and Taylor, J. (2012). Degrees of freedom in lasso problems. Annals of Statistics 40.
    """
    d = int(x.size)
    if psi is not None and not psi.separable:
        return int(np.count_nonzero(x))
    if A.shape[0] == 0:
        return d
    if np.diff(A.indptr).max() <= 2:
        return int(fused(A, x).max(initial=-1)) + 1
    tied = A[ties(A, x)]
    if tied.shape[0] == 0:
        return d
    if d > LARGEST_DENSE:
        return max(0, d - tied.shape[0])
    return d - int(np.linalg.matrix_rank(tied.toarray()))


def null_space(A: sp.csr_array) -> np.ndarray | None:
    """A basis of {x : Ax = 0} as columns; None where A is too large and general to tell."""
    d = A.shape[1]
    if A.shape[0] == 0:
        return np.eye(d)
    if np.diff(A.indptr).max() <= 2:
        from skadmm.polish import clusters

        labels, factors = clusters(A, np.ones(A.shape[0], bool))
        basis = np.zeros((d, int(labels.max(initial=-1)) + 1))
        held = labels >= 0
        basis[held, labels[held]] = factors[held]
        return basis
    if d > LARGEST_DENSE:
        return None
    _, values, right = np.linalg.svd(A.toarray(), full_matrices=True)
    rank = int(np.count_nonzero(values > 1e-12 * values[0])) if values.size else 0
    return right[rank:].T

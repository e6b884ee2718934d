"""Operators on the coefficients of several outputs, x = [w₁; …; w_k] with d coefficients each."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from skadmm._types import Matrix
from skadmm.operators.canonical import as_operator


def for_each_output(A: Any, n_outputs: int, size: int) -> Any:
    """A penalty matrix over the features used for every output: I ⊗ A.

    Parameters
    ----------
    A : matrix, "identity" or None
        A matrix with a column for every coefficient of every output is returned as it is.
    n_outputs : int
        The number of outputs, k.
    size : int
        d·k, the number of all coefficients.

    Returns
    -------
    csr_array of shape (k·m, d·k), or `A` itself
        The rows of the first output come first.
    """
    if A is None or isinstance(A, str):
        return A
    width = getattr(A, "shape", (0, 0))[1:]
    if n_outputs == 1 or width == (size,):
        return A
    return sp.csr_array(sp.kron(sp.eye_array(n_outputs), as_operator(A, size // n_outputs), format="csr"))


def across_outputs(A: Matrix | None, n_features: int) -> sp.csr_array:
    """A penalty matrix over the outputs (tasks, classes) used for every feature: A ⊗ I.

    Parameters
    ----------
    A : matrix of shape (m, k)
        For example ``skadmm.operators.incidence(graph)`` of a graph over tasks.
    n_features : int
        The number of features, d.

    Returns
    -------
    csr_array of shape (m·d, d·k)
        The rows of the first row of A come first.

    See Also
    --------
    skadmm.operators.output_groups : Groups that join the outputs.
    skadmm.operators.incidence : The matrix of a graph.

    Examples
    --------
    >>> from skadmm.operators import across_outputs, chain
    >>> across_outputs(chain(2), 2).toarray()
    array([[-1.,  0.,  1.,  0.],
           [ 0., -1.,  0.,  1.]])
    """
    A = sp.csr_array(A)
    return sp.csr_array(sp.kron(A, sp.eye_array(n_features), format="csr"))


def output_groups(n_rows: int, n_outputs: int, n_single: int = 0) -> np.ndarray:
    """The groups that join the outputs: row r of I ⊗ A in all outputs is group r.

    Parameters
    ----------
    n_rows : int
        The rows of A, or of features where there is none.
    n_outputs : int
        The number of outputs, k.
    n_single : int
        Rows that follow those of I ⊗ A and are groups by themselves.

    Returns
    -------
    ndarray of int
        A label for each row, as ``GroupL2(groups=...)`` takes them.

    See Also
    --------
    skadmm.operators.across_outputs : A penalty matrix over the outputs.
    skadmm.regularizers.GroupL2 : A Euclidean norm for each group.

    Examples
    --------
    >>> from skadmm.operators import output_groups
    >>> output_groups(3, 2)
    array([0, 1, 2, 0, 1, 2])
    """
    return np.concatenate([np.tile(np.arange(n_rows), n_outputs), n_rows + np.arange(n_single)])

"""Operators on the coefficients of several outputs, x = [w₁; …; w_k] with d coefficients each."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from skadmm.operators.canonical import as_operator


def for_each_output(A: Any, n_outputs: int, size: int) -> Any:
    """A penalty matrix over the features used for every output: I ⊗ A.

    Parameters
    ----------
    A : matrix, "identity" or None
        A matrix with a column for every coefficient of every output is returned as it is.
    n_outputs : int
        k.
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


def across_outputs(A: Any, n_features: int) -> sp.csr_array:
    """A penalty matrix over the outputs (tasks, classes) used for every feature: A ⊗ I.

    Parameters
    ----------
    A : matrix of shape (m, k)
        For example ``skadmm.operators.incidence(graph)`` of a graph over tasks.
    n_features : int
        d.

    Returns
    -------
    csr_array of shape (m·d, d·k)
        The rows of the first row of A come first.
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
        k.
    n_single : int
        Rows that follow those of I ⊗ A and are groups by themselves.

    Returns
    -------
    ndarray of int
        A label for each row, as ``GroupL2(groups=...)`` takes them.
    """
    return np.concatenate([np.tile(np.arange(n_rows), n_outputs), n_rows + np.arange(n_single)])

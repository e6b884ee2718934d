"""Diagonal preconditioning: the same problem in x = scale · u, for methods that have one step for all features.

With X·diag(scale), A·diag(scale) and Ω(scale · u) nothing else changes: y, the dual and every value are the same. Done
once, at the door; no method knows of it.
"""

import copy
import functools
from typing import Any

import numpy as np
import scipy.sparse

from skadmm.kernels.rows import CSRRows, DenseRows
from skadmm.problem.constraint import Constraint
from skadmm.problem.problem import Problem
from skadmm.regularizers import L1, Box, NonNegative, Zero

PRECONDITIONERS = ("diagonal",)


def diagonal(problem: Problem, rho: float) -> np.ndarray:
    """scale_j = (sup ℓ'' · (1/n) Σ wᵢ aᵢⱼ² + ρ (AᵀA)_jj)^(−1/2): the bound of the curvature gets a diagonal of ones.

    A feature that neither the data nor A touches keeps its unit.
    """
    squares = problem.loss.curvature_bound * _mean_squares(problem)
    A = problem.constraint.A
    squares += rho * np.bincount(A.indices, A.data**2, minlength=problem.n_features)
    return 1.0 / np.sqrt(np.where(squares > 0, squares, 1.0))


def rescaled(problem: Problem, scale: np.ndarray) -> Problem:
    """`problem` in u, x = scale · u."""
    other = copy.copy(problem)
    for name in (
        "backend",
        "_sample_smoothness",
        "L",
        "L_mean",
        "L_full",
        "_at_zero",
        "gradient_scale",
    ):  # of the old columns
        vars(other).pop(name, None)
    other.omega = _in_new_units(problem.omega, scale)
    other.rows = _scaled_rows(problem.rows, scale)
    constraint: Constraint = object.__new__(Constraint)
    constraint.A = scipy.sparse.csr_array(problem.constraint.A @ scipy.sparse.diags_array(scale))
    constraint.B, constraint.c = problem.constraint.B, problem.constraint.c
    other.constraint = constraint
    return other


def _mean_squares(problem: Problem) -> np.ndarray:
    """(1/n) Σ wᵢ aᵢⱼ², by feature."""
    rows, n = problem.rows, problem.n_samples
    weight = problem.sample_weight if problem.sample_weight.size else np.ones(n)
    if isinstance(rows, DenseRows):
        return np.einsum("i,ij,ij->j", weight, rows.values, rows.values, dtype=np.float64) / n
    squares = np.repeat(weight, np.diff(rows.indptr)) * rows.data.astype(np.float64) ** 2
    return np.bincount(rows.indices, squares, minlength=problem.n_features) / n


def _scaled_rows(rows: Any, scale: np.ndarray) -> Any:
    if isinstance(rows, DenseRows):
        return DenseRows(np.multiply(rows.values, scale, dtype=rows.values.dtype, casting="same_kind"))
    factor = scale.astype(rows.data.dtype)
    return CSRRows(rows.data * factor[rows.indices], rows.indices, rows.indptr, rows.width)


@functools.singledispatch
def _in_new_units(omega: Any, scale: np.ndarray) -> Any:
    """u ↦ Ω(scale · u) as a regulariser of the same kind."""
    raise ValueError(
        f"precondition='diagonal': omega={type(omega).__name__} does not stay one when features are rescaled; "
        "omega_mode='fold' takes any omega"
    )


@_in_new_units.register
def _(omega: Zero, scale: np.ndarray) -> Any:
    return omega


@_in_new_units.register
def _(omega: L1, scale: np.ndarray) -> Any:
    return omega._replace(weights=scale * omega.weights if omega.weights.size else scale.copy())


@_in_new_units.register
def _(omega: Box, scale: np.ndarray) -> Any:
    return omega._replace(lower=omega.lower / scale, upper=omega.upper / scale)


@_in_new_units.register
def _(omega: NonNegative, scale: np.ndarray) -> Any:
    return omega

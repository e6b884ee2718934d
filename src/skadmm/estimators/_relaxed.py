"""relax=: the structure of a penalised fit is kept, and its values are fitted again without the penalty.

What is zero stays zero, what is fused stays fused; the clusters, groups or pieces that are left are free parameters.
The penalty finds the structure, and no longer shrinks the values. Standard errors are those of this second fit: they
take the structure as given, although the same data chose it, and are therefore too small to test it.

References
----------
Meinshausen, N. (2007). Relaxed lasso. Computational Statistics and Data Analysis 52.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg

from skadmm.estimators._penalty import Penalty
from skadmm.kernels.compile import kernel
from skadmm.kernels.loss_functions import curvature, derivative
from skadmm.kernels.rows import as_matrix
from skadmm.problem.problem import Problem
from skadmm.problem.structure import null_space, ties
from skadmm.regularizers import Box
from skadmm.run.result import Result
from skadmm.run.solve import solve

LIKELIHOODS = ("logistic", "poisson")
"""Losses that are the negative logarithm of a likelihood without an unknown dispersion."""

UNDETERMINED = 1e-6
"""A coefficient is not determined where its share of the directions that do not change the margins is larger."""


class Relaxed(NamedTuple):
    """A second fit on the structure of the first."""

    x: np.ndarray
    """The solver's x, with the intercept."""
    standard_errors: np.ndarray
    """Standard errors of the coefficients on the scale of the solver; NaN where they are not determined, and for
    coefficients that the structure keeps at zero, which are not estimated."""
    result: Result | None
    """The result of the second fit; None where there was nothing to fit."""


class Sample(NamedTuple):
    """The data of the first fit that the second one needs."""

    X: Any
    """The table, with a column of ones where there is an intercept."""
    target: np.ndarray
    sample_weight: np.ndarray | None
    loss: Any
    intercept: bool


def structure_of(penalty: Penalty, x: np.ndarray) -> sp.csr_array:
    """The vectors with the structure of `x`, as combinations of columns."""
    if penalty.groups is not None:
        nonzero = np.flatnonzero(x)
        if penalty.copies is not None:  # one column is enough for a feature
            nonzero = penalty.copies.first_of(nonzero)
        return sp.csr_array(sp.eye_array(x.size, format="csr")[:, nonzero])
    found = null_space(sp.csr_array(penalty.A[ties(penalty.A, x)]))
    if found is None:
        raise ValueError("relax=True: the penalty matrix is too large and general for its structure to be found")
    return found.basis


def relaxed(
    sample: Sample,
    solution: np.ndarray,
    basis: sp.csr_array,
    limits: tuple[sp.csr_array, Box] | None,
    tol: float,
    passes: float,
) -> Relaxed:
    """The fit of the loss alone over the columns of `basis`, and an intercept where there is one; within `limits`, rows
    and their bounds.

    Without columns it is the first fit, `solution`: all coefficients stay zero, and its intercept was not penalised.
    """
    d, k = basis.shape
    if k == 0:
        return Relaxed(solution, np.full(d, np.nan), None)
    wide = sp.csr_array(sp.block_diag([basis, sp.eye_array(int(sample.intercept))], format="csr"))
    X = sample.X @ wide
    X = sp.csr_array(X) if sp.issparse(X) else np.ascontiguousarray(X)
    psi = A = None
    if limits is not None:
        A = sp.csr_array(limits[0] @ wide[:d])
        psi = limits[1]
        kept = np.diff(A.indptr) > 0
        A, psi = A[kept], Box(psi.lower[kept], psi.upper[kept])
    if A is not None and A.shape[0] == 0:
        psi = A = None
    problem = Problem(X, sample.target, loss=sample.loss, psi=psi, A=A, sample_weight=sample.sample_weight)
    start = None
    if sample.intercept and problem.far_constant is not None:
        start = np.append(np.zeros(k), solution[-1])
    result = solve(problem, tol=tol, passes=passes, record_every=0, x0=start)
    errors = np.full(d, np.nan)
    if limits is None or not _active(problem, result.x):
        errors = _standard_errors(problem, result.x, sample.sample_weight, sp.csr_array(wide[:d]))
    return Relaxed(np.asarray(wide @ result.x), errors, result)


def _active(problem: Problem, x: np.ndarray) -> bool:
    """Return whether a bound is active at the solution."""
    if problem.n_split == 0:
        return False
    y = problem.constraint.A @ x
    near = 1e-9 * (1.0 + np.abs(y))
    return bool(np.any((y - problem.psi.lower <= near) | (problem.psi.upper - y <= near)))


def _standard_errors(
    problem: Problem, x: np.ndarray, sample_weight: np.ndarray | None, rows: sp.csr_array
) -> np.ndarray:
    """The standard errors of rows · parameters; NaN for rows of zeros, and where the samples do not determine them."""
    n, k = problem.n_samples, problem.n_features
    if not problem.loss.smooth:
        return np.full(rows.shape[0], np.nan)
    margins = np.asarray(problem.backend.evaluate(x).margins, dtype=np.float64)
    weights = problem.sample_weight if problem.sample_weight.size else np.ones(n)
    slopes, curvatures = np.empty(n), np.empty(n)
    _derivatives(problem.loss, margins, problem.target, slopes, curvatures)
    X = as_matrix(problem.rows)
    information = _inverted(_weighted_gram(X, weights * curvatures) / n, n)
    total = float(n if sample_weight is None else sample_weight.sum())
    inverse = information.inverse / total
    if getattr(problem.loss, "gaussian", False):
        residual, freedom = float(weights @ slopes**2) * total / n, total - (k - information.free.shape[1])
        covariance = inverse * (residual / freedom if freedom > 0 else np.nan)
    elif problem.loss.name in LIKELIHOODS:
        covariance = inverse
    else:
        covariance = inverse @ (_weighted_gram(X, weights * slopes**2) * total / n) @ inverse
    errors = np.sqrt(np.maximum((rows @ covariance * rows.toarray()).sum(axis=1), 0.0))
    in_units = rows @ sp.diags_array(information.units)
    along = np.linalg.norm(in_units @ information.free, axis=1)
    errors[along > UNDETERMINED * scipy.sparse.linalg.norm(in_units, axis=1)] = np.nan
    errors[np.diff(rows.indptr) == 0] = np.nan
    return errors


class _Inverted(NamedTuple):
    """The inverse of a Hessian on the directions that the samples determine."""

    inverse: np.ndarray
    units: np.ndarray
    """The unit of each parameter in which its column has the norm 1."""
    free: np.ndarray
    """Directions that do not change the margins, in these units: orthonormal columns."""


def _inverted(hessian: np.ndarray, n: int) -> _Inverted:
    """The inverse of XᵀHX/n over n samples. Its columns are normalised first, so that a feature in small units is not
    taken for one that the samples do not determine."""
    diagonal = np.diag(hessian)
    units = 1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
    values, vectors = np.linalg.eigh(hessian * units[:, None] * units)
    smallest = 10.0 * np.finfo(float).eps * (diagonal.size + np.sqrt(n))  # the rounding of the sums over samples
    kept = values > smallest
    found = units[:, None] * vectors[:, kept]
    return _Inverted(found / values[kept] @ found.T, units, vectors[:, ~kept])


@kernel
def _derivatives(loss, margins, target, slopes, curvatures):
    for i in range(margins.size):
        slopes[i] = derivative(loss, margins[i], target[i])
        curvatures[i] = curvature(loss, margins[i], target[i])


def _weighted_gram(X: Any, weights: np.ndarray) -> np.ndarray:
    part = X.T @ (sp.diags_array(weights) @ X)
    return np.asarray(part.toarray() if sp.issparse(part) else part)

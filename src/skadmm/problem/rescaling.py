"""Diagonal preconditioning: the same problem in u, x = scale · u, for methods with one step size for all features.

The rows become X·diag(scale), the constraint A·diag(scale) and the penalty Ω(scale · u). Nothing else changes: y, the
dual and every value are the same. It is done once, before a method starts, and no method depends on it.
"""

import functools
from typing import Any

import numpy as np

from skadmm.kernels.rows import scaled_columns, weighted_column_squares
from skadmm.problem.problem import Problem
from skadmm.regularizers import L1, Box, NonNegative, Zero

PRECONDITIONERS = ("diagonal",)


def diagonal(problem: Problem, rho: float) -> np.ndarray:
    """scale_j = (sup ℓ'' · (1/n) Σ wᵢ aᵢⱼ² + ρ (AᵀA)_jj)^(−1/2): the bound of the curvature gets a diagonal of ones.

    A feature that occurs neither in the data nor in A has scale one; with several outputs it has one scale for all.
    """
    squares = problem.curvature_scale * _mean_squares(problem)
    A = problem.constraint.A
    squares += rho * np.bincount(A.indices, A.data**2, minlength=problem.n_features)
    if problem.n_outputs > 1:
        squares = np.tile(squares.reshape(problem.n_outputs, -1).mean(axis=0), problem.n_outputs)
    return 1.0 / np.sqrt(np.where(squares > 0, squares, 1.0))


def balanced_rho(problem: Problem) -> float | None:
    """ρ at which the trace of ρAᵀA equals that of the bound of the loss's Hessian; None where one of them is zero."""
    squares = problem.constraint.sum_of_squares
    rho = problem.L_mean / squares if squares > 0.0 else 0.0
    return rho if 0.0 < rho < np.inf else None


def rescaled(problem: Problem, scale: np.ndarray) -> Problem:
    """The problem in u, x = scale · u."""
    local = problem.local
    return problem.replace(
        backend=local.with_samples(scaled_columns(local.rows, scale), local.target, local.weight),
        omega=_rescaled_omega(problem.omega, scale),
        constraint=problem.constraint.rescaled(scale),
    )


def _mean_squares(problem: Problem) -> np.ndarray:
    """(1/n) Σ wᵢ aᵢⱼ², by feature."""
    n = problem.n_samples
    weight = problem.sample_weight if problem.sample_weight.size else np.ones(n)
    return weighted_column_squares(problem.rows, weight) / n


@functools.singledispatch
def _rescaled_omega(omega: Any, scale: np.ndarray) -> Any:
    """u ↦ Ω(scale · u) as a regulariser of the same kind."""
    raise ValueError(
        f"precondition='diagonal': omega={type(omega).__name__} changes its form when features are rescaled; "
        "omega_mode='fold' takes any omega"
    )


@_rescaled_omega.register
def _(omega: Zero, scale: np.ndarray) -> Any:
    return omega


@_rescaled_omega.register
def _(omega: L1, scale: np.ndarray) -> Any:
    return omega._replace(weights=scale * omega.weights if omega.weights.size else scale.copy())


@_rescaled_omega.register
def _(omega: Box, scale: np.ndarray) -> Any:
    return omega._replace(lower=omega.lower / scale, upper=omega.upper / scale)


@_rescaled_omega.register
def _(omega: NonNegative, scale: np.ndarray) -> Any:
    return omega

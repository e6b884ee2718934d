"""Steps 5 and 6 of Algorithm 1: the only updates of y and the dual, shared by every method.

    y    ← argmin over y of ψ(y) + (ρ/2)‖Ax + By − c + dual‖²
    dual ← dual + Ax + By − c

Each call leaves in ``point.coupling`` the vector the next x-step asks for, Aᵀ(θ·Ax + By − c + dual): θ = 1 for
methods that linearise the penalty, θ = 0 for those that solve with ρAᵀA.

Over-relaxation r replaces Ax by r·Ax + (1 − r)(c − By) in both updates; r = 1 is the paper's.
"""

from typing import Any, NamedTuple

import numpy as np

from skadmm.kernels.compile import attach, generic, jitable
from skadmm.kernels.rows import copy_into, from_sparse, row_add, row_dot
from skadmm.problem.constraint import largest_eigenvalue
from skadmm.problem.problem import Problem
from skadmm.regularizers._base import prox, prox_at


class Point(NamedTuple):
    """The current point of a run; its arrays are changed in place."""

    x: Any
    y: Any
    dual: Any
    coupling: Any
    """Aᵀ(θ·Ax + By − c + dual) at the current point."""
    x_sum: Any
    """Σ of x_1 … x_t."""
    y_sum: Any
    """Σ of y_1 … y_t."""
    clock: Any
    """[t, samples touched], int64."""


@generic
def y_dual_update(split: Any, point: Any, theta: float) -> None:
    """Update y and the dual from x, and the coupling."""


@generic
def couple(split: Any, point: Any, theta: float) -> None:
    """The coupling at the current point, for the first x-step."""


class NoSplit(NamedTuple):
    """ψ = 0: there is no constraint, so y and the dual are empty."""


attach(y_dual_update, NoSplit, lambda split, point, theta: None)
attach(couple, NoSplit, lambda split, point, theta: None)


class SeparableSplit(NamedTuple):
    """B = −I and a separable ψ: one sweep over the rows of A does everything."""

    A: Any
    c: Any
    psi: Any
    rho: float
    relaxation: float = 1.0


def _separable_step(split, point, theta):
    point.coupling[:] = 0.0
    step = 1.0 / split.rho
    for e in range(point.dual.size):
        Ax = row_dot(split.A, e, point.x)
        relaxed = split.relaxation * (Ax - split.c[e]) + (1.0 - split.relaxation) * point.y[e]
        v = relaxed + point.dual[e]
        y = prox_at(split.psi, e, v, step)
        dual = v - y
        point.y[e] = y
        point.y_sum[e] += y
        point.dual[e] = dual
        row_add(split.A, e, theta * Ax - y - split.c[e] + dual, point.coupling)


def _separable_couple(split, point, theta):
    point.coupling[:] = 0.0
    for e in range(point.dual.size):
        Ax = row_dot(split.A, e, point.x)
        row_add(split.A, e, theta * Ax - point.y[e] - split.c[e] + point.dual[e], point.coupling)


attach(y_dual_update, SeparableSplit, _separable_step)
attach(couple, SeparableSplit, _separable_couple)


class VectorSplit(NamedTuple):
    """B = −I and any ψ: its prox sees the whole vector."""

    A: Any
    c: Any
    psi: Any
    rho: float
    relaxation: float = 1.0


def _vector_step(split, point, theta):
    # The dual's array holds Ax − c + dual until y is known.
    for e in range(point.dual.size):
        Ax = row_dot(split.A, e, point.x)
        point.dual[e] += split.relaxation * (Ax - split.c[e]) + (1.0 - split.relaxation) * point.y[e]
    prox(split.psi, point.dual, 1.0 / split.rho, point.y)
    for e in range(point.dual.size):
        point.dual[e] -= point.y[e]
        point.y_sum[e] += point.y[e]
    couple(split, point, theta)


attach(y_dual_update, VectorSplit, _vector_step)
attach(couple, VectorSplit, _separable_couple)


@jitable
def _gather(split, point):
    """dual ← Ax − c + dual, and work ← Bᵀ of that."""
    split.work[:] = 0.0
    for e in range(point.dual.size):
        Ax, By = row_dot(split.A, e, point.x), row_dot(split.B, e, point.y)
        v = split.relaxation * (Ax - split.c[e]) - (1.0 - split.relaxation) * By + point.dual[e]
        point.dual[e] = v
        row_add(split.B, e, v, split.work)


@jitable
def _finish(split, point, theta):
    """With y known: dual ← dual + By, the sum of y, and the coupling."""
    for j in range(point.y.size):
        point.y_sum[j] += point.y[j]
    for e in range(point.dual.size):
        point.dual[e] += row_dot(split.B, e, point.y)
    couple(split, point, theta)


def _couple_general(split, point, theta):
    point.coupling[:] = 0.0
    for e in range(point.dual.size):
        By = row_dot(split.B, e, point.y)
        inner = theta * row_dot(split.A, e, point.x) + By - split.c[e] + point.dual[e]
        row_add(split.A, e, inner, point.coupling)


class DiagonalSplit(NamedTuple):
    """BᵀB diagonal and ψ separable: y in closed form, coordinate by coordinate."""

    A: Any
    B: Any
    c: Any
    psi: Any
    rho: float
    gram: Any
    """The diagonal of BᵀB."""
    work: Any
    """Scratch of the length of y."""
    relaxation: float = 1.0


def _diagonal_step(split, point, theta):
    _gather(split, point)
    for j in range(point.y.size):
        y = prox_at(split.psi, j, -split.work[j] / split.gram[j], 1.0 / (split.rho * split.gram[j]))
        point.y[j] = y
    _finish(split, point, theta)


class UniformSplit(NamedTuple):
    """BᵀB a multiple of the identity: y in closed form for any ψ."""

    A: Any
    B: Any
    c: Any
    psi: Any
    rho: float
    gram: float
    work: Any
    relaxation: float = 1.0


def _uniform_step(split, point, theta):
    _gather(split, point)
    for j in range(point.y.size):
        split.work[j] = -split.work[j] / split.gram
    prox(split.psi, split.work, 1.0 / (split.rho * split.gram), point.y)
    _finish(split, point, theta)


class GeneralSplit(NamedTuple):
    """Any B and any ψ: y by accelerated proximal gradient from the last y, to `tolerance`."""

    A: Any
    B: Any
    c: Any
    psi: Any
    rho: float
    gram: float
    """A bound of the eigenvalues of BᵀB."""
    work: Any
    extrapolated: Any
    previous: Any
    image: Any
    """Scratch of the length of the dual."""
    tolerance: float
    max_iterations: int
    relaxation: float = 1.0


def _general_step(split, point, theta):
    # work = Bᵀ(Ax − c + dual); the gradient of the quadratic at y is ρ(BᵀBy + work).
    _gather(split, point)
    momentum = 1.0
    copy_into(point.y, split.extrapolated)
    for _ in range(split.max_iterations):
        copy_into(point.y, split.previous)
        for e in range(point.dual.size):
            split.image[e] = row_dot(split.B, e, split.extrapolated)
        for j in range(point.y.size):
            split.extrapolated[j] -= split.work[j] / split.gram
        for e in range(point.dual.size):
            row_add(split.B, e, -split.image[e] / split.gram, split.extrapolated)
        prox(split.psi, split.extrapolated, 1.0 / (split.rho * split.gram), point.y)
        next_momentum = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum * momentum))
        change, size, uphill = 0.0, 0.0, 0.0
        for j in range(point.y.size):
            move = point.y[j] - split.previous[j]
            change = max(change, abs(move))
            size = max(size, abs(point.y[j]))
            uphill += (split.extrapolated[j] - point.y[j]) * move
        factor = (momentum - 1.0) / next_momentum
        if uphill > 0.0:  # restart, because the momentum increases the objective
            factor, next_momentum = 0.0, 1.0
        for j in range(point.y.size):
            split.extrapolated[j] = point.y[j] + factor * (point.y[j] - split.previous[j])
        momentum = next_momentum
        if change <= split.tolerance * max(size, 1e-12):
            break
    _finish(split, point, theta)


for _cls, _step in ((DiagonalSplit, _diagonal_step), (UniformSplit, _uniform_step), (GeneralSplit, _general_step)):
    attach(couple, _cls, _couple_general)
    attach(y_dual_update, _cls, _step)


def build(problem: Problem, rho: float, relaxation: float = 1.0) -> Any:
    """The fastest kind of split that the problem allows."""
    constraint, psi = problem.constraint, problem.psi
    if problem.n_split == 0:
        return NoSplit()
    A, c = constraint.A_rows, constraint.c
    if constraint.B is None:
        kind = SeparableSplit if psi.separable else VectorSplit
        return kind(A, c, psi, rho, relaxation)
    matrix = constraint.B
    B = from_sparse(matrix)
    gram = (matrix.T @ matrix).tocsr()
    diagonal = np.ascontiguousarray(gram.diagonal())
    off_diagonal = gram.nnz - np.count_nonzero(diagonal)
    work = np.empty(problem.n_split)
    if off_diagonal == 0 and np.ptp(diagonal) <= 1e-15 * diagonal[0]:
        return UniformSplit(A, B, c, psi, rho, float(diagonal[0]), work, relaxation)
    if off_diagonal == 0 and psi.separable:
        return DiagonalSplit(A, B, c, psi, rho, diagonal, work, relaxation)
    return GeneralSplit(
        A, B, c, psi, rho, largest_eigenvalue(matrix), work, np.empty_like(work), np.empty_like(work),
        np.empty(problem.n_constraints), 1e-13, 10_000, relaxation,
    )  # fmt: skip


def start(problem: Problem, x: np.ndarray, y: np.ndarray | None, dual: np.ndarray | None) -> Point:
    """A point to start from; y defaults to y(x) where it exists, else 0, the dual to 0."""
    if y is None:
        y = problem.y_of_x(x)
        y = np.zeros(problem.n_split) if y is None else y
    dual = np.zeros(problem.n_constraints) if dual is None else dual
    d = problem.n_features
    return Point(
        np.array(x, dtype=float), np.array(y, dtype=float), np.array(dual, dtype=float),
        np.zeros(d), np.zeros(d), np.zeros(problem.n_split), np.zeros(2, np.int64),
    )  # fmt: skip


__all__ = ["Point", "build", "couple", "start", "y_dual_update"]

"""(ρAᵀA + σI)⁻¹: the linear system inside the x-steps that do not linearise the penalty.

A system is a value built from A, ρ and (when fixed) σ, and never changed: a new ρ or σ means a new system, so a
factor cannot be stale. A squared ℓ2 with weights adds a diagonal of its own, `extra`, to ρAᵀA.
"""

from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse
import scipy.sparse.linalg

from skadmm.kernels.compile import attach, facts, generic, jitable
from skadmm.kernels.rows import n_rows, row_add, row_dot, span, unsigned
from skadmm.problem.constraint import Constraint
from skadmm.regularizers import Zero
from skadmm.regularizers._base import prox, subgradient
from skadmm.solvers.base import Setup

DENSE_LIMIT = 600
"""Up to this many features the inverse (or eigenvectors) is held as a dense matrix."""
FILL_LIMIT = 30.0
"""A sparse factor is kept when it has at most this many entries per entry of AᵀA + I."""


@generic
def solve(system: Any, shift: float, right: Any, out: Any) -> None:
    """out ← (ρAᵀA + shift·I)⁻¹ right. `out` holds a first guess, which iterative systems use."""


class ScaledIdentity(NamedTuple):
    """A = 0."""

    rho: float


def _scaled(system, shift, right, out):
    for j in range(right.size):
        out[j] = right[j] / shift


attach(solve, ScaledIdentity, _scaled)


class Diagonal(NamedTuple):
    """A = 0, with a diagonal besides the shift."""

    extra: Any


def _diagonal(system, shift, right, out):
    for j in range(right.size):
        out[j] = right[j] / (shift + system.extra[j])


attach(solve, Diagonal, _diagonal)


@facts(allocates=True)
class DenseInverse(NamedTuple):
    """The inverse for one fixed shift."""

    inverse: Any


def _dense(system, shift, right, out):
    np.dot(system.inverse, right, out)


attach(solve, DenseInverse, _dense)


class SparseFactor(NamedTuple):
    """P (ρAᵀA + σI) Pᵀ = L D Lᵀ for one fixed shift; L unit lower triangular, by columns."""

    data: Any
    indices: Any
    indptr: Any
    diagonal: Any
    order: Any
    work: Any


def _sparse(system, shift, right, out):
    d = right.size
    z = system.work
    for i in range(d):
        z[i] = right[unsigned(system.order[i])]
    for j in range(d):
        for p in span(system.indptr, j):
            z[unsigned(system.indices[p])] -= system.data[p] * z[j]
    for j in range(d - 1, -1, -1):
        total = z[j] / system.diagonal[j]
        for p in span(system.indptr, j):
            total -= system.data[p] * z[unsigned(system.indices[p])]
        z[j] = total
    for i in range(d):
        out[unsigned(system.order[i])] = z[i]


attach(solve, SparseFactor, _sparse)


@facts(allocates=True)
class Eigenbasis(NamedTuple):
    """AᵀA = QΛQᵀ: any shift, with two dense products per solve."""

    vectors: Any
    vectors_transposed: Any
    values: Any
    rho: float


def _eigen(system, shift, right, out):
    z = np.dot(system.vectors_transposed, right)
    for j in range(z.size):
        z[j] /= shift + system.rho * system.values[j]
    np.dot(system.vectors, z, out)


attach(solve, Eigenbasis, _eigen)


class ConjugateGradients(NamedTuple):
    """Any shift, started from the last solution; the matrix is never formed."""

    A: Any
    rho: float
    extra: Any
    residual: Any
    direction: Any
    image: Any
    tolerance: float


def _iterate(system, shift, right, out):
    r, p, q = system.residual, system.direction, system.image
    m = n_rows(system.A)
    size = 0.0
    for j in range(out.size):
        q[j] = (shift + system.extra[j]) * out[j]
        size += right[j] * right[j]
    for e in range(m):
        row_add(system.A, e, system.rho * row_dot(system.A, e, out), q)
    now = 0.0
    for j in range(out.size):
        r[j] = right[j] - q[j]
        p[j] = r[j]
        now += r[j] * r[j]
    goal = system.tolerance * system.tolerance * size
    for _ in range(10 * out.size + 100):
        if not goal < now < np.inf:  # in a run that diverges, numbers become infinite or NaN
            break
        along = 0.0
        for j in range(out.size):
            q[j] = (shift + system.extra[j]) * p[j]
        for e in range(m):
            row_add(system.A, e, system.rho * row_dot(system.A, e, p), q)
        for j in range(out.size):
            along += p[j] * q[j]
        length = now / along
        after = 0.0
        for j in range(out.size):
            out[j] += length * p[j]
            r[j] -= length * q[j]
            after += r[j] * r[j]
        for j in range(out.size):
            p[j] = r[j] + (after / now) * p[j]
        now = after


attach(solve, ConjugateGradients, _iterate)


@jitable
def gradient_step(rule, point):
    """x ← (ρAᵀA + LI)⁻¹ [L x − ρAᵀ(By − c + dual) − g], g the rule's gradient: the penalty kept whole."""
    subgradient(rule.omega, point.x, rule.work)
    for j in range(point.x.size):
        rule.work[j] = rule.L * point.x[j] - rule.rho * point.coupling[j] - rule.grad[j] - rule.work[j]
    solve(rule.system, rule.shift, rule.work, point.x)


@jitable
def gradient_step_uzawa(rule, point):
    """x ← prox of Ω/(L_A + L) at x − [g + ρAᵀ(Ax + By − c + dual)] / (L_A + L): the penalty linearised."""
    step = 1.0 / (rule.L_A + rule.L)
    for j in range(point.x.size):
        rule.work[j] = point.x[j] - step * (rule.grad[j] + rule.rho * point.coupling[j])
    prox(rule.omega, rule.work, step, point.x)


def absorb(setup: Setup, shift: float) -> tuple[Any, float]:
    """What is left of Ω, and the shift of the system: a squared ℓ2 in mode "system" becomes part of the shift, or of
    :func:`weighted_ridge` if it has weights."""
    omega = setup.problem.omega
    if setup.omega_mode != "system":
        return omega, shift
    return Zero(), shift if omega.weights.size else shift + omega.strength


def weighted_ridge(setup: Setup) -> np.ndarray | None:
    """The diagonal that a squared ℓ2 with weights adds to the system in mode "system"; None where there is none."""
    omega = setup.problem.omega
    return omega.strength * omega.weights if setup.omega_mode == "system" and omega.weights.size else None


def fixed(
    constraint: Constraint, rho: float, shift: float, tolerance: float = 1e-12, extra: np.ndarray | None = None
) -> Any:
    """The best system for one shift: dense inverse, sparse factor, or conjugate gradients."""
    d = constraint.A.shape[1]
    if constraint.n_constraints == 0:
        return ScaledIdentity(rho) if extra is None else Diagonal(extra)
    if d <= DENSE_LIMIT:
        matrix = rho * (constraint.A.T @ constraint.A).toarray() + np.diag(_diagonal_of(d, shift, extra))
        try:
            inverse = scipy.linalg.inv(matrix)
        except scipy.linalg.LinAlgError:  # the shift is almost zero, and AᵀA is singular
            inverse = scipy.linalg.pinvh(matrix)
        return DenseInverse(np.ascontiguousarray(inverse))
    factor = _factorised(constraint, rho, _diagonal_of(d, shift, extra))
    return factor or _iterative(constraint, rho, tolerance, extra)


def shifted(constraint: Constraint, rho: float, tolerance: float = 1e-12, extra: np.ndarray | None = None) -> Any:
    """The best system for a shift that changes every step: eigenvectors, or conjugate gradients."""
    if constraint.n_constraints == 0:
        return ScaledIdentity(rho) if extra is None else Diagonal(extra)
    if constraint.A.shape[1] <= DENSE_LIMIT:
        gram = (constraint.A.T @ constraint.A).toarray()
        # With a diagonal of its own the eigenvectors are those of ρAᵀA + diagonal.
        values, vectors = np.linalg.eigh(gram if extra is None else rho * gram + np.diag(extra))
        vectors = np.ascontiguousarray(vectors)
        factor = rho if extra is None else 1.0
        return Eigenbasis(vectors, np.ascontiguousarray(vectors.T), np.maximum(values, 0.0), factor)
    return _iterative(constraint, rho, tolerance, extra)


def _diagonal_of(d: int, shift: float, extra: np.ndarray | None) -> np.ndarray:
    return np.full(d, shift) if extra is None else shift + extra


def _iterative(
    constraint: Constraint, rho: float, tolerance: float, extra: np.ndarray | None = None
) -> ConjugateGradients:
    d = constraint.A.shape[1]
    extra = np.zeros(d) if extra is None else extra
    return ConjugateGradients(constraint.A_rows, rho, extra, np.empty(d), np.empty(d), np.empty(d), tolerance)


def _factorised(constraint: Constraint, rho: float, diagonal: np.ndarray) -> SparseFactor | None:
    """L D Lᵀ from SuperLU in its symmetric mode; None when it fills in too much, or the matrix is singular."""
    d = constraint.A.shape[1]
    matrix = scipy.sparse.csc_array(rho * (constraint.A.T @ constraint.A) + scipy.sparse.diags_array(diagonal))
    try:
        factor = scipy.sparse.linalg.splu(
            matrix, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True}
        )
    except RuntimeError:
        return None
    if factor.L.nnz > FILL_LIMIT * matrix.nnz or not np.array_equal(factor.perm_r, factor.perm_c):
        return None
    lower = scipy.sparse.csc_array(scipy.sparse.tril(factor.L, -1, format="csc"))
    order = np.argsort(factor.perm_c)
    return SparseFactor(
        lower.data, lower.indices, lower.indptr, factor.U.diagonal(), order.astype(np.int64), np.empty(d)
    )

"""Least-squares corrections of a multiplier on some rows of A: δ with rowsᵀδ as close to −r as it can be.

δ = −rows (rowsᵀrows)⁺ r. A sparse factorisation of rowsᵀrows gives it exactly and is cheap for chains, trees and grids
of moderate size; on graphs that expand in all directions it fills up, and there a few conjugate gradient steps are
enough. Which of the two is used follows from a bound of the factorisation's work, so that a correction never costs more
than the run it serves.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp
import scipy.sparse.csgraph
import scipy.sparse.linalg

from skadmm import _cancel
from skadmm.kernels.compile import kernel
from skadmm.kernels.rows import span

MAX_FACTOR_WORK = 2e9
"""The maximum number of multiplications of a factorisation."""
MAX_SPARSE_WORK = 2e8
"""The maximum number of multiplications in the product of sparse matrices before it, which are slower."""
MAX_DENSE_WORK = 1e11
"""The maximum number of multiplications in the product of dense matrices, which are faster."""
DENSE_SHARE = 0.2
"""Dense matrices are used where at least this share of the entries is not zero."""
DENSE_ENTRIES = 64
"""Dense matrices are used where a row has at least this many entries on average."""
SMALL_WORK = 1e7
"""Where rowsᵀrows takes more multiplications than this, conjugate gradients are tried before a factorisation."""
FEW_ITERATIONS = 30
"""The number of steps of conjugate gradients before a factorisation, which suffices where the rows are close to
orthogonal, as those of wavelets are."""
MAX_ITERATIONS = 2000
"""The number of steps of conjugate gradients where nothing is factorised."""
ITERATIONS_PER_CHECK = 50
"""Conjugate gradient steps between two checks for the time limit and for Ctrl-C."""
ENOUGH = 1e-12
"""The iteration ends when the gradient has shrunk by this factor."""
ROUNDING = 1e-15
"""The iteration ends when the gradient, relative to the residual, is below this, because it is rounding error then."""


@kernel
def _peel(indptr, indices, alive, degree, stack):
    """Remove nodes with at most one neighbour until none is left: eliminating them first fills nothing."""
    top = 0
    for node in range(degree.size):
        if degree[node] <= 1:
            stack[top] = node
            top += 1
    while top > 0:
        top -= 1
        node = stack[top]
        if not alive[node]:
            continue
        alive[node] = False
        for p in span(indptr, node):
            other = indices[p]
            if other != node and alive[other]:
                degree[other] -= 1
                if degree[other] == 1:
                    stack[top] = other
                    top += 1


def factor_work(gram: Any) -> float:
    """A bound of the multiplications in a sparse Cholesky factorisation of a symmetric matrix.

    Trees that hang on the rest are eliminated first, which fills nothing; what is left is ordered by the reverse
    Cuthill–McKee method, whose envelope bounds the fill.
    """
    matrix = sp.csr_array(gram)
    size = matrix.shape[0]
    degree = np.diff(matrix.indptr).astype(np.int64) - (matrix.diagonal() != 0)
    alive = np.ones(size, bool)
    _peel(matrix.indptr, matrix.indices, alive, degree, np.empty(2 * size + 1, np.int64))
    kept = np.flatnonzero(alive)
    if kept.size == 0:
        return float(matrix.nnz)
    core = sp.csr_array(matrix[kept][:, kept])
    order = scipy.sparse.csgraph.reverse_cuthill_mckee(core, symmetric_mode=True)
    place = np.empty(kept.size, np.int64)
    place[order] = np.arange(kept.size)
    row = np.repeat(np.arange(kept.size), np.diff(core.indptr))
    first = np.arange(kept.size)
    np.minimum.at(first, place[row], place[core.indices])
    width = (np.arange(kept.size) - first).astype(float)
    return float(matrix.nnz + width @ width)


def is_orthonormal(A: Any) -> bool:
    """Is A square with orthonormal rows? Tested with random vectors, without forming AAᵀ."""
    if A.shape[0] != A.shape[1] or A.shape[0] == 0:
        return False
    squares = np.asarray(A.multiply(A).sum(axis=1)).ravel()
    if np.any(np.abs(squares - 1.0) > 1e-10):
        return False
    v = np.random.default_rng(0).standard_normal((A.shape[0], 3))
    return bool(np.all(np.abs(A @ (A.T @ v) - v) <= 1e-10))


def is_cheap(gram: Any) -> bool:
    """May a symmetric matrix be factorised, or would it fill up?"""
    return factor_work(gram) <= MAX_FACTOR_WORK


def symmetric_factor(matrix: Any) -> Any:
    """A sparse factorisation of a symmetric positive definite matrix; None where it is singular."""
    try:
        return scipy.sparse.linalg.splu(
            sp.csc_array(matrix), permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True}
        )
    except RuntimeError:  # exactly singular
        return None


def gram_work(rows: Any) -> float:
    """The multiplications that rowsᵀrows takes."""
    entries = np.diff(sp.csr_array(rows).indptr).astype(float)
    return float(entries @ entries)


def gram_of(rows: Any) -> sp.csr_array | None:
    """rowsᵀrows, by a dense product where the rows are dense; None where it takes too many multiplications, or where
    it is dense and singular, so that its factors would have no correct digits."""
    dense = rows.nnz >= rows.shape[0] * max(DENSE_SHARE * rows.shape[1], DENSE_ENTRIES)
    if dense and rows.shape[0] < rows.shape[1]:
        return None
    if gram_work(rows) > (MAX_DENSE_WORK if dense else MAX_SPARSE_WORK):
        return None
    if not dense:
        return sp.csr_array(rows.T @ rows)
    table = rows.toarray()
    return sp.csr_array(table.T @ table)


def correction(rows: Any, residual: np.ndarray) -> np.ndarray:
    """δ that minimises ‖residual + rowsᵀδ‖."""
    if gram_work(rows) > SMALL_WORK:
        delta, converged = _conjugate_gradients(rows, residual, FEW_ITERATIONS)
        if converged:
            return delta
    gram = gram_of(rows)
    if gram is None:
        return _conjugate_gradients(rows, residual, MAX_ITERATIONS)[0]
    largest = float(gram.diagonal().max(initial=0.0))
    if largest == 0.0:
        return np.zeros(rows.shape[0])
    if is_cheap(gram):
        _cancel.check_cancelled()
        factor = symmetric_factor(gram + 1e-12 * largest * sp.eye_array(gram.shape[0]))
        if factor is not None:
            delta = np.zeros(rows.shape[0])
            for _ in range(2):  # once more for the rounding, and for what the shift has changed
                delta -= rows @ factor.solve(residual + rows.T @ delta)
            return delta
    return _conjugate_gradients(rows, residual, MAX_ITERATIONS)[0]


def _conjugate_gradients(rows: Any, residual: np.ndarray, limit: int) -> tuple[np.ndarray, bool]:
    """The same by conjugate gradients on the least-squares problem, with rows of equal norm; has it converged?"""
    norms = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())
    scaled = sp.csr_array(sp.diags_array(np.where(norms > 0.0, 1.0 / np.maximum(norms, 1e-300), 0.0)) @ rows)
    transposed = sp.csr_array(scaled.T)
    delta = np.zeros(rows.shape[0])
    left = residual.astype(float)
    slope = scaled @ left
    direction, size = -slope, float(slope @ slope)
    goal = max(ENOUGH**2 * size, (ROUNDING * float(np.linalg.norm(left))) ** 2)
    for iteration in range(limit):
        if size <= goal or size == 0.0:
            break
        if iteration % ITERATIONS_PER_CHECK == 0:
            _cancel.check_cancelled()
        moved = transposed @ direction
        length = size / float(moved @ moved)
        delta += length * direction
        left += length * moved
        slope = scaled @ left
        before, size = size, float(slope @ slope)
        direction = -slope + (size / before) * direction
    return np.where(norms > 0.0, delta / np.maximum(norms, 1e-300), 0.0), size <= goal

"""The linear systems of an interior point step where A has any rows: many features, few samples.

A step changes x, the margins m and the multiplier u of r = A x − c by the solution of

    Xᵀδ + ridge·dx + Aᵀdu = −dual residual,   δ = D dm,   dm = X dx + margin residual,   du = Θ(A dx + w)

with D the curvatures of the samples and Θ > 0 a number for each row. Two ways to solve it have one dense matrix, of the
order of the samples:

* :class:`SynthesisSystem`, where x is found from r, as for differences along a line (cumulative sums) and orthonormal
  wavelets. Its coordinates are r and the coefficients t of the null space of A: nothing is as ill-conditioned as AᵀΘA.
* :class:`NormalSystem`, where AᵀΘA has a cheap sparse factorisation; rows of A with many entries count as samples.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from skadmm import _cancel
from skadmm.kernels.rows import as_matrix
from skadmm.operators.line import Line
from skadmm.operators.row_correction import factor_work, is_orthonormal, symmetric_factor
from skadmm.problem.problem import Problem

MAX_DENSE = 4000
"""The largest order of the dense matrix."""
MAX_ENTRIES = 100_000_000
"""The maximum number of entries of a dense table of samples × features."""
MAX_FACTOR_WORK = 2e10
"""The maximum number of multiplications of the sparse factorisation."""
MANY_ENTRIES = 64
"""A row of A with more entries than this counts as a sample, where others do not have as many."""
SHIFT = 1e-8
"""The relative shift of the diagonal of the matrix that is factorised, because A may have dependent columns."""
HELD = 1e-10
"""A step is damped by this share of the data's curvature, because A and X may both vanish along some directions."""
REFINEMENTS = 3
"""The number of steps of iterative refinement."""
MAX_REFINEMENTS = 40
"""Conjugate gradient steps on the whole system, which undo the shift and rounding."""
NEGLIGIBLE = 1e-17
"""A column whose part in the dense matrix is below this share of the identity is left out."""


class Move(NamedTuple):
    """A step of the coordinates, the margins and the multiplier."""

    z: np.ndarray
    m: np.ndarray
    u: np.ndarray


class RowSystem(Protocol):
    """Coordinates z of x, and the systems of interior point steps in them."""

    size: int
    """The number of coordinates."""
    exact_rows: bool
    """True where the rows A x − c are coordinates, so that every x has them exactly."""

    def x_of(self, z: np.ndarray, r: np.ndarray | None = None) -> np.ndarray:
        """x; with the rows `r` in place of those of z where they are coordinates."""

    def margins(self, z: np.ndarray) -> np.ndarray:
        """X x."""

    def rows(self, z: np.ndarray) -> np.ndarray:
        """A x − c."""

    def adjoint(self, z: np.ndarray, slopes: np.ndarray, u: np.ndarray) -> np.ndarray:
        """The derivative of the loss with these slopes, the ridge and u·(A x − c) in z."""

    def row_sizes(self) -> np.ndarray:
        """How much each row changes when the margins change by about one."""

    def factorise(self, curvatures: np.ndarray, inverse_theta: np.ndarray) -> None:
        """Prepare :meth:`solve` for D and Θ⁻¹."""

    def solve(self, dual: np.ndarray, margin: np.ndarray, w: np.ndarray) -> Move:
        """The step for the dual residual, the margin residual and w."""

    def on_support(self, z: np.ndarray, slopes: np.ndarray, curvatures: np.ndarray, pulls: np.ndarray) -> np.ndarray:
        """z after a Newton step that keeps the zeros of its rows; z itself where that is not possible."""

    def multiplier(self, slopes: np.ndarray) -> np.ndarray | None:
        """u for which the dual residual vanishes at the slopes; None where there is no simple one."""


def reason_against(problem: Problem, ridge: Any) -> str | None:
    """Why there is no system for a problem; None where there is one."""
    n, d, A = problem.n_samples, problem.n_features, problem.constraint.A
    if n > MAX_DENSE:
        return f"{n} samples are more than a dense matrix can hold ({MAX_DENSE})"
    if n * d > MAX_ENTRIES:
        return f"a dense table of {n} samples and {d} features would have more than {MAX_ENTRIES} entries"
    if _has_synthesis(problem, ridge):
        return None
    wide = _wide_rows(A)
    if n + int(wide.sum()) > MAX_DENSE:
        return f"samples and rows of A with many entries are more than a dense matrix can hold ({MAX_DENSE})"
    narrow = abs(A[~wide])
    if factor_work(narrow.T @ narrow + sp.eye_array(d)) > MAX_FACTOR_WORK:
        return "AᵀA has no cheap sparse factorisation"
    return None


def system_for(problem: Problem, ridge: Any) -> RowSystem:
    """The system for a problem for which there is one."""
    if not _has_synthesis(problem, ridge):
        return NormalSystem(problem, ridge, _wide_rows(problem.constraint.A))
    line = problem.constraint.line
    return SynthesisSystem.rotated(problem) if line is None else SynthesisSystem.along(problem, line)


def _has_synthesis(problem: Problem, ridge: Any) -> bool:
    """Return whether x can be computed from A x at low cost."""
    return not np.any(ridge) and (problem.constraint.line is not None or is_orthonormal(problem.constraint.A))


def _wide_rows(A: Any) -> np.ndarray:
    return np.diff(A.indptr) > MANY_ENTRIES


class SynthesisSystem:
    """z = (r, t) with x = R(r + c) + N t, A R = I and A N = 0."""

    exact_rows = True

    def __init__(self, problem: Problem, table: np.ndarray, basis: np.ndarray, integrate: Any) -> None:
        """`table` is X R; `basis` is N, and `integrate` R as a function."""
        X, c = as_matrix(problem.rows), problem.constraint.c
        self.basis, self.integrate, self.c = basis, integrate, c
        self.F = np.asarray(X @ basis)
        # Columns that are orthogonal to those of the null space are far less correlated.
        self.tilt = np.linalg.lstsq(self.F, table, rcond=1e-12)[0] if basis.shape[1] else np.zeros((0, c.size))
        self.G = table - self.F @ self.tilt
        self.offset = self.G @ c
        self.m, self.size = c.size, c.size + basis.shape[1]

    @classmethod
    def along(cls, problem: Problem, line: Line) -> SynthesisSystem:
        """For differences along a line: cumulative sums."""
        X = as_matrix(problem.rows)
        table = np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)
        spacings = [(line.t[j:] - line.t[:-j]) / j for j in range(1, line.order + 1)]
        for j in range(line.order + 1):
            _cancel.check_cancelled()
            table = np.cumsum(table[:, :0:-1], axis=1)[:, ::-1]
            if j < line.order:
                table = table * spacings[j]
        table = table / line.scale

        def integrate(r: np.ndarray) -> np.ndarray:
            x = np.concatenate([[0.0], np.cumsum(r / line.scale)])
            for spacing in reversed(spacings):
                x = np.concatenate([[0.0], np.cumsum(x * spacing)])
            return x

        return cls(problem, table, line.null_space(), integrate)

    @classmethod
    def rotated(cls, problem: Problem) -> SynthesisSystem:
        """For a square A with orthonormal rows."""
        X, A = as_matrix(problem.rows), problem.constraint.A
        table = (A @ X.T).T
        table = np.asarray(table.toarray() if sp.issparse(table) else table, dtype=np.float64)
        return cls(problem, table, np.zeros((problem.n_features, 0)), lambda r: A.T @ r)

    def x_of(self, z: np.ndarray, r: np.ndarray | None = None) -> np.ndarray:
        """R(r + c) + N t."""
        rows = (z[: self.m] if r is None else r) + self.c
        return self.integrate(rows) + self.basis @ (z[self.m :] - self.tilt @ rows)

    def margins(self, z: np.ndarray) -> np.ndarray:
        """G(r + c) + F t."""
        return self.G @ z[: self.m] + self.F @ z[self.m :] + self.offset

    def rows(self, z: np.ndarray) -> np.ndarray:
        """r itself."""
        return z[: self.m]

    def adjoint(self, z: np.ndarray, slopes: np.ndarray, u: np.ndarray) -> np.ndarray:
        """(Gᵀθ + u, Fᵀθ)."""
        return np.concatenate([self.G.T @ slopes + u, self.F.T @ slopes])

    def row_sizes(self) -> np.ndarray:
        """1 over the size of each column."""
        sizes = np.sqrt(np.mean(self.G**2, axis=0))
        return 1.0 / np.where(sizes > 0.0, sizes, 1.0)

    def factorise(self, curvatures: np.ndarray, inverse_theta: np.ndarray) -> None:
        """I + √D G Θ⁻¹ Gᵀ √D, and what borders it for t."""
        self.root, self.inverse_theta = np.sqrt(curvatures), inverse_theta
        sizes = inverse_theta * (self.root**2 @ self.G**2)
        seen = sizes > NEGLIGIBLE
        self.half = self.G[:, seen] * np.sqrt(inverse_theta[seen]) * self.root[:, None]
        self.factor = factor_of(self.half @ self.half.T)
        self.border = self.root[:, None] * self.F
        self.solved = scipy.linalg.cho_solve(self.factor, self.border, check_finite=False)
        schur = self.border.T @ self.solved
        self.schur = schur + 1e-14 * np.diag(np.maximum(np.diag(schur), 1e-300))

    def solve(self, dual: np.ndarray, margin: np.ndarray, w: np.ndarray) -> Move:
        """By the slopes' change δ, from which the others follow without cancellation."""
        known = -self.inverse_theta * dual[: self.m] - w
        scaled, t = self._bordered(self.root * (margin + self.G @ known), -dual[self.m :])
        back = self.G.T @ (self.root * scaled)
        r = known - self.inverse_theta * back
        return Move(np.concatenate([r, t]), margin + self.G @ r + self.F @ t, -dual[: self.m] - back)

    def on_support(self, z: np.ndarray, slopes: np.ndarray, curvatures: np.ndarray, pulls: np.ndarray) -> np.ndarray:
        """z after a Newton step on the rows that are not zero and on t; `pulls` are the derivatives of the penalty in
        the rows, constant while no sign changes. A QR factorisation does not square the condition number."""
        support = np.flatnonzero(z[: self.m])
        table = np.hstack([self.G[:, support], self.F])
        slope = table.T @ slopes + np.concatenate([pulls[support], np.zeros(self.F.shape[1])])
        sizes = np.linalg.norm(table, axis=0)
        sizes[sizes == 0.0] = 1.0
        R = scipy.linalg.qr(np.sqrt(curvatures)[:, None] * (table / sizes), mode="economic", check_finite=False)[1]
        if R.shape[0] < R.shape[1] or np.abs(np.diag(R)).min(initial=1.0) <= 1e-13 * np.abs(R).max(initial=1.0):
            return z
        inner = scipy.linalg.solve_triangular(R, slope / sizes, trans=1, check_finite=False)
        step = scipy.linalg.solve_triangular(R, inner, check_finite=False) / sizes
        moved = z.copy()
        moved[np.concatenate([support, np.arange(self.m, self.size)])] -= step
        return moved

    def multiplier(self, slopes: np.ndarray) -> np.ndarray:
        """u for which the dual residual of the rows is zero."""
        return -(self.G.T @ slopes)

    def _bordered(self, right: np.ndarray, below: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """v and t with v + half halfᵀ v − border t = `right` and borderᵀ v = `below`, refined."""
        v, t = np.zeros(right.size), np.zeros(below.size)
        for _ in range(1 + REFINEMENTS):
            left = right - v - self.half @ (self.half.T @ v) + self.border @ t
            missed = below - self.border.T @ v
            first = scipy.linalg.cho_solve(self.factor, left, check_finite=False)
            change = np.linalg.lstsq(self.schur, missed - self.border.T @ first, rcond=None)[0]
            v, t = v + first + self.solved @ change, t + change
        return v, t


class NormalSystem:
    """z = x, by a sparse factorisation of AᵀΘA + ridge and a dense one of the order of the samples."""

    exact_rows = False

    def __init__(self, problem: Problem, ridge: Any, wide: np.ndarray) -> None:
        """`wide` marks the rows of A that count as samples."""
        X = as_matrix(problem.rows)
        self.A, self.c, self.wide, self.n = problem.constraint.A, problem.constraint.c, wide, problem.n_samples
        self.At = sp.csr_array(self.A.T)
        dense = sp.csr_array(self.A[wide]).toarray()
        self.table = np.vstack([X.toarray() if sp.issparse(X) else X, dense]).astype(np.float64)
        """The samples, and the rows that count as such."""
        self.narrow = sp.csr_array(self.A[~wide])
        self.size = problem.n_features
        self.ridge = np.broadcast_to(np.asarray(ridge, float), (self.size,))

    def x_of(self, z: np.ndarray, r: np.ndarray | None = None) -> np.ndarray:
        """x itself."""
        return z

    def margins(self, z: np.ndarray) -> np.ndarray:
        """X x."""
        return self.table[: self.n] @ z

    def rows(self, z: np.ndarray) -> np.ndarray:
        """A x − c."""
        return self.A @ z - self.c

    def adjoint(self, z: np.ndarray, slopes: np.ndarray, u: np.ndarray) -> np.ndarray:
        """Xᵀθ + ridge·x + Aᵀu."""
        return self.table[: self.n].T @ slopes + self.ridge * z + self.At @ u

    def row_sizes(self) -> np.ndarray:
        """√Σ a_ej²/s_j² with s_j the size of column j of X."""
        squares = np.mean(self.table[: self.n] ** 2, axis=0)
        known = squares[squares > 0.0]
        inverse = 1.0 / np.where(squares > 0.0, squares, float(np.median(known)) if known.size else 1.0)
        sizes = np.sqrt(self.A.multiply(self.A) @ inverse)
        return np.where(sizes > 0.0, sizes, 1.0)

    def factorise(self, curvatures: np.ndarray, inverse_theta: np.ndarray) -> None:
        """S = AᵀΘA + ridge, and I + √D X S⁻¹ Xᵀ √D."""
        _cancel.check_cancelled()
        self.theta = 1.0 / inverse_theta
        base = self.narrow.T @ sp.diags_array(self.theta[~self.wide]) @ self.narrow
        weights = np.concatenate([curvatures, self.theta[self.wide]])
        data = weights @ self.table**2
        seen = data[data > 0.0]
        self.held = self.ridge + HELD * np.where(data > 0.0, data, float(np.median(seen)) if seen.size else 1.0)
        shift = SHIFT * (base.diagonal() + data) + self.held
        self.sparse = symmetric_factor(sp.csc_array(base + sp.diags_array(shift)))
        self.weights, self.root = weights, np.sqrt(weights)
        _cancel.check_cancelled()
        self.spread = self.sparse.solve(np.ascontiguousarray(self.table.T)) * self.root
        dense = self.root[:, None] * (self.table @ self.spread)
        self.factor = factor_of(0.5 * (dense + dense.T))

    def solve(self, dual: np.ndarray, margin: np.ndarray, w: np.ndarray) -> Move:
        """By conjugate gradients on the whole system, preconditioned by its factorisation."""
        along = np.concatenate([margin, w[self.wide]])
        pull = np.where(self.wide, 0.0, self.theta * w)
        right = -dual - self.table.T @ (self.weights * along) - self.At @ pull
        x = self._refined(right)
        rows = self.A @ x + w
        return Move(x, self.table[: self.n] @ x + margin, self.theta * rows)

    def on_support(self, z: np.ndarray, slopes: np.ndarray, curvatures: np.ndarray, pulls: np.ndarray) -> np.ndarray:
        """z itself."""
        return z

    def multiplier(self, slopes: np.ndarray) -> np.ndarray | None:
        """None, because there is no simple one."""
        return None

    def _product(self, v: np.ndarray) -> np.ndarray:
        """The whole matrix times v."""
        narrow = self.narrow.T @ (self.theta[~self.wide] * (self.narrow @ v))
        return self.table.T @ (self.weights * (self.table @ v)) + self.held * v + narrow

    def _approximate(self, v: np.ndarray) -> np.ndarray:
        """The inverse of the matrix with its shift."""
        first = self.sparse.solve(v)
        inner = scipy.linalg.cho_solve(self.factor, self.root * (self.table @ first), check_finite=False)
        return first - self.spread @ inner

    def _refined(self, right: np.ndarray) -> np.ndarray:
        x, left = np.zeros(right.size), right.copy()
        goal = 1e-14 * float(np.linalg.norm(right))
        direction, before = np.zeros(right.size), 1.0
        for _ in range(MAX_REFINEMENTS):
            conditioned = self._approximate(left)
            size = float(left @ conditioned)
            if not size > 0.0 or not np.isfinite(size):
                break
            direction = conditioned + (size / before) * direction
            moved = self._product(direction)
            length = size / float(direction @ moved)
            x, left, before = x + length * direction, left - length * moved, size
            if float(np.linalg.norm(left)) <= goal:
                break
        return x


def factor_of(matrix: np.ndarray) -> tuple[np.ndarray, bool]:
    """The Cholesky factor of I + `matrix`, which is positive semidefinite but for rounding."""
    shift = 0.0
    while True:
        lower, failed = scipy.linalg.lapack.dpotrf(matrix + (1.0 + shift) * np.eye(matrix.shape[0]), lower=1)
        if not failed:
            return lower, True
        shift = max(10.0 * shift, 1e-14 * float(np.abs(matrix).max()))

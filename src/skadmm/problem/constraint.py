"""The constraint A x + B y = c."""

from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse
import scipy.sparse.linalg

from skadmm import _checks
from skadmm.kernels.rows import from_sparse
from skadmm.operators import as_operator
from skadmm.operators.graph_trend import as_graph_trend
from skadmm.operators.line import GraphTrend, Line, as_line, as_uneven_line

EXACT_EIGENVALUES = 400
"""Up to this order a dense eigenvalue routine is faster than an iteration."""


class Constraint:
    """A x + B y = c, with B = −I and c = 0 unless given.

    Parameters
    ----------
    A : matrix of shape (m, d), or None for no constraint at all (m = 0)
    B : None (−I), a number (times I), a vector (a diagonal) or a matrix of shape (m, p)
    c : None (0) or a vector of length m
    n_features : d
    line : Line or None
        Differences along a line that A is known to be. Evenly spaced ones, and those of order one at any positions, are
        recognised without it.
    folded : int
        How many of the last rows fold Ω into ψ: x − z = 0.
    graph : GraphTrend or None
        Differences over a graph that A is known to be. Laplacians, and their differences along edges of one weight, are
        recognised without it.
    """

    def __init__(
        self,
        A: Any,
        B: Any,
        c: Any,
        n_features: int,
        line: Line | None = None,
        folded: int = 0,
        graph: GraphTrend | None = None,
    ) -> None:
        self.A = as_operator(A, n_features) if A is not None else scipy.sparse.csr_array((0, n_features))
        m = int(self.A.shape[0])
        self.B = None if B is None else _as_second(B, m)
        self.n_constraints = m
        """m, the length of the multiplier."""
        self.n_split = m if self.B is None else int(self.B.shape[1])
        """The length of y."""
        self.sum_of_squares = float(self.A.data @ self.A.data)
        """Σ of the squared entries of A, the trace of AᵀA."""
        self.c = np.zeros(m) if c is None else _checks.vector(c, "c", m, of="the number of rows of A")
        self._line, self._graph = line, graph
        self.folded = folded

    @cached_property
    def line(self) -> Line | None:
        """The differences along a line that A is, each row times a number; None where it is something else."""
        if self._line is not None:
            return self._line
        even = as_line(self.A)
        return as_uneven_line(self.A) if even is None else even

    @cached_property
    def graph_trend(self) -> GraphTrend | None:
        """The differences over a graph that A is; None where it is something else."""
        return as_graph_trend(self.A) if self._graph is None else self._graph

    @cached_property
    def A_rows(self) -> Any:
        """The rows of A as compiled code reads them."""
        return from_sparse(self.A)

    @cached_property
    def _A_transposed(self) -> Any:
        return self.A.T

    @cached_property
    def norm_A_squared(self) -> float:
        """An upper bound of the eigenvalues of AᵀA, at most 0.1 % too large."""
        return largest_eigenvalue(self.A)

    @cached_property
    def B_inverse_norm_squared(self) -> float:
        """L_B, the largest eigenvalue of (B⁻¹)ᵀB⁻¹; infinite where B is not invertible."""
        if self.B is None or self.n_constraints == 0:
            return 1.0
        if self.B.shape[0] != self.B.shape[1]:
            return np.inf
        smallest = np.linalg.svd(self.B.toarray(), compute_uv=False)[-1]
        return float(1.0 / smallest**2) if smallest > 0 else np.inf

    @cached_property
    def has_full_row_rank(self) -> bool:
        """Are the rows of A linearly independent? True where there are none."""
        m, d = self.A.shape
        return m == 0 or (m <= d and _solver(self.A @ self.A.T) is not None)

    def At(self, v: np.ndarray) -> np.ndarray:
        """Aᵀ v."""
        return self._A_transposed @ v

    def By(self, y: np.ndarray) -> np.ndarray:
        """B y."""
        return -y if self.B is None else self.B @ y

    def Bt(self, v: np.ndarray) -> np.ndarray:
        """Bᵀ v."""
        return -v if self.B is None else self.B.T @ v

    def residual(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """A x + B y − c."""
        return self.A @ x + self.By(y) - self.c

    def y_of_x(self, x: np.ndarray) -> np.ndarray | None:
        """y(x) = B⁻¹(c − Ax), or None where B is not invertible."""
        if self.B is None:
            y = self.A @ x
            y -= self.c
            return y
        return None if self._B_solve is None else self._B_solve(self.c - self.A @ x)

    @property
    def has_y_of_x(self) -> bool:
        """Is B invertible?"""
        return self.B is None or self._B_solve is not None

    def x_of_y(self, y: np.ndarray) -> np.ndarray | None:
        """x(y) = A⁻¹(c − By), or None where A is not invertible."""
        return None if self._A_solve is None else self._A_solve(self.c - self.By(y))

    @cached_property
    def _B_solve(self) -> Any:
        return _solver(self.B)

    @cached_property
    def _A_solve(self) -> Any:
        return _solver(self.A)

    def stacked_on_identity(self) -> "Constraint":
        """[A; I] x + [B 0; 0 −I] [y; z] = [c; 0]: the constraint that folds Ω into ψ."""
        d = self.A.shape[1]
        A = scipy.sparse.vstack([self.A, scipy.sparse.eye_array(d)], format="csr")
        B = None if self.B is None else scipy.sparse.block_diag([self.B, -scipy.sparse.eye_array(d)], format="csr")
        return Constraint(A, B, np.concatenate([self.c, np.zeros(d)]), d, folded=d)

    def rescaled(self, scale: np.ndarray) -> "Constraint":
        """A diag(scale) u + B y = c: the constraint in x = scale · u."""
        A = self.A @ scipy.sparse.diags_array(scale)
        return Constraint(A, self.B, self.c, self.A.shape[1], folded=self.folded)


def _as_second(B: Any, m: int) -> Any:
    """B, which is given, as a CSR matrix, or None for −I."""
    if not scipy.sparse.issparse(B):
        try:
            B = np.asarray(B)
        except ValueError:
            raise ValueError("B has rows of different lengths: it takes a number, a vector or a matrix") from None
    if B.ndim == 0:
        value = _checks.number(B.item(), "B")
        if value == 0:
            raise ValueError("B=0 leaves y unconstrained: it takes a number other than 0")
        return None if value == -1 else scipy.sparse.csr_array(value * scipy.sparse.eye_array(m, format="csr"))
    if B.ndim == 1 and not scipy.sparse.issparse(B):
        diagonal = _checks.vector(B, "B", m, of="the number of rows of A")
        B = scipy.sparse.diags_array(diagonal)
    matrix = as_operator(B, B.shape[-1], role="B")
    if matrix.shape[0] != m:
        raise ValueError(f"B has {matrix.shape[0]} rows: it takes {m}, the number of rows of A")
    empty = np.flatnonzero(np.bincount(matrix.indices[matrix.data != 0], minlength=matrix.shape[1]) == 0)
    if empty.size:
        raise ValueError(f"B has only zeros in column {empty[0]}: every coordinate of y must be constrained")
    return matrix


def _solver(matrix: Any) -> Any:
    """A function v ↦ matrix⁻¹ v, or None where there is no inverse."""
    if matrix.shape[0] != matrix.shape[1] or matrix.shape[0] == 0:
        return None
    try:
        factor = scipy.sparse.linalg.splu(scipy.sparse.csc_array(matrix))
    except RuntimeError:  # exactly singular
        return None
    diagonal = np.abs(factor.U.diagonal())
    if diagonal.min() <= 1e-13 * diagonal.max():
        return None
    return factor.solve


def largest_eigenvalue(matrix: Any) -> float:
    """An upper bound of the largest eigenvalue of matrixᵀ matrix, at most 0.1 % too large."""
    m, d = matrix.shape
    if m == 0 or matrix.nnz == 0:
        return 0.0
    magnitude = abs(matrix)
    holder = float(magnitude.sum(axis=0).max() * magnitude.sum(axis=1).max())  # ‖A‖² ≤ ‖A‖₁ ‖A‖∞
    if min(m, d) <= EXACT_EIGENVALUES:
        gram = (matrix @ matrix.T if m < d else matrix.T @ matrix).toarray()
        return min(holder, float(np.linalg.eigvalsh(gram)[-1]) * (1 + 1e-12))
    # A random start: the vector of ones lies in the null space of every incidence matrix.
    start = np.random.default_rng(0).standard_normal(d)
    gram_product = scipy.sparse.linalg.LinearOperator((d, d), matvec=lambda v: matrix.T @ (matrix @ v), dtype=float)
    estimate = scipy.sparse.linalg.eigsh(gram_product, k=1, v0=start, tol=1e-4, return_eigenvectors=False)[0]
    return min(holder, float(estimate) * (1 + 1e-3))

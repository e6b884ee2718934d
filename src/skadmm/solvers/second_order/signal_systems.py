"""Newton systems of a signal: H x + Aᵀu = q and A x − E u = b, H and E diagonal.

Eliminating x leaves AH⁻¹Aᵀ + E, a sparse positive definite matrix. For differences of order k+1 along a line of d
points its condition number grows like d^(2k+2), beyond all digits from a few hundred points on. There the system is
solved in the derivatives along the line, by orthogonal transformations (``line_smoother.py``).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg

from skadmm.operators.line import Line
from skadmm.solvers.second_order.line_smoother import Smoother

SHIFT = 1e-13
"""The relative shift of the diagonal, for rows of A that depend on each other."""


class SignalPoint(NamedTuple):
    """x, v = A x, and the multipliers u."""

    x: np.ndarray
    v: np.ndarray
    u: np.ndarray


class GeneralSystem:
    """The system of any sparse A."""

    def __init__(self, A: sp.csr_array, h: np.ndarray) -> None:
        self.A, self.At, self.h = A, sp.csr_array(A.T), h
        self.gram = sp.csc_array(A @ sp.diags_array(1.0 / h) @ self.At)

    def factor(self, e: np.ndarray) -> _GeneralFactor:
        """The factors for one E."""
        return _GeneralFactor(self, e)

    def with_zeros(self, q: np.ndarray, zero: np.ndarray, u: np.ndarray) -> SignalPoint | None:
        """The minimiser with A x = 0 on the rows in `zero`, and the multipliers `u` on the others."""
        A, h = self.A, self.h
        rows = A[zero]
        k = rows.shape[0]
        scale = float(h.max())
        system = sp.block_array(
            [[sp.diags_array(h), scale * rows.T], [scale * rows, -SHIFT * scale * sp.eye_array(k)]], format="csc"
        ) if k else sp.csc_array(sp.diags_array(h))  # fmt: skip
        answer = _solved(system, np.concatenate([q - A[~zero].T @ u[~zero], np.zeros(k)]))
        if answer is None:
            return None
        x, u = answer[: h.size], u.copy()
        u[zero] = scale * answer[h.size :]
        return SignalPoint(x, np.where(zero, 0.0, A @ x), u)


class _GeneralFactor:
    def __init__(self, system: GeneralSystem, e: np.ndarray) -> None:
        self.system = system
        self.lu = scipy.sparse.linalg.splu(
            sp.csc_array(system.gram + sp.diags_array(e)),
            permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True},
        )  # fmt: skip

    def solve(self, q: np.ndarray | float, b: np.ndarray, *, refine: bool = True) -> SignalPoint:
        """The solution; the general system has no refinement."""
        system = self.system
        u = self.lu.solve(system.A @ (q / system.h) - b)
        x = (q - system.At @ u) / system.h
        return SignalPoint(x, system.A @ x, u)


class LineSystem:
    """The system of differences along a line."""

    def __init__(self, line: Line, h: np.ndarray) -> None:
        self.line, self.h = line, h
        d, k = line.t.size, line.order
        # Derivatives over the whole line, not over one spacing, have the size of x. A is then divided by `scale`, and u
        # multiplied by it.
        length = float(line.t[-1] - line.t[0])
        self.scale = length**k
        self.steps = np.zeros((k, d))
        for j in range(1, k + 1):
            self.steps[j - 1, : d - j] = (line.t[j:] - line.t[:-j]) / (j * length)

    def factor(self, e: np.ndarray) -> _LineFactor:
        """The factors for one E."""
        return _LineFactor(self, Smoother(self.steps, self.h, e * self.scale**2))

    def with_zeros(self, q: np.ndarray, zero: np.ndarray, u: np.ndarray) -> SignalPoint | None:
        """The minimiser with A x = 0 on the rows in `zero`, and the multipliers `u` on the others."""
        smoother, given = Smoother(self.steps, self.h, np.zeros(zero.size), ~zero), u / self.scale
        nothing = np.zeros(zero.size)
        x, v, _ = smoother.solve(q, nothing, given)
        change, turn, _ = smoother.solve(q - self.h * x, nothing, given)
        x, v = x + change, (v + turn) / self.scale
        if not (np.all(np.isfinite(x)) and np.all(np.isfinite(v))):
            return None
        found = self.line.multiplier(q - self.h * x) * self.line.scale
        return SignalPoint(x, np.where(zero, 0.0, v), np.where(zero, found, u))


class _LineFactor:
    def __init__(self, system: LineSystem, smoother: Smoother) -> None:
        self.system, self.smoother = system, smoother

    def solve(self, q: np.ndarray | float, b: np.ndarray, *, refine: bool = True) -> SignalPoint:
        """The solution, with one step of iterative refinement unless it is switched off."""
        system = self.system
        right, drive = np.broadcast_to(q, system.h.shape).astype(np.float64), b * system.scale
        x, v, u = self.smoother.solve(right, drive)
        if not refine:
            return SignalPoint(x, v / system.scale, u * system.scale)
        change, turn, u = self.smoother.solve(right - system.h * x, drive - v)
        return SignalPoint(x + change, (v + turn) / system.scale, u * system.scale)


def _solved(matrix: sp.csc_array, right: np.ndarray) -> np.ndarray | None:
    try:
        factor = scipy.sparse.linalg.splu(matrix)
    except RuntimeError:
        return None
    answer = factor.solve(right)
    answer += factor.solve(right - matrix @ answer)
    return answer if np.all(np.isfinite(answer)) else None


__all__ = ["GeneralSystem", "LineSystem", "SignalPoint"]

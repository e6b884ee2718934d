"""Newton systems of a signal: H x + Aᵀu = q and A x − E u = b, H and E diagonal.

Eliminating x leaves AH⁻¹Aᵀ + E. For differences of order k+1 along a line of d points its condition number grows like
d^(2k+2), beyond all digits from a few hundred points on. There, with A = Δ S_k Δ … S_1 Δ, the derivatives
z_j = S_j Δ z_{j−1} (z_0 = x) and the sums m_j = Δᵀ S_{j+1} m_{j+1} (m_k = Δᵀu) are unknowns of their own, so that the
factors are never multiplied out; sorted along the line, that system is banded.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg

from skadmm.operators.line import Line

SHIFT = 1e-13
"""Relative, for rows of A that depend on each other."""


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

    def solve(self, q: np.ndarray | float, b: np.ndarray) -> SignalPoint:
        system = self.system
        u = self.lu.solve(system.A @ (q / system.h) - b)
        x = (q - system.At @ u) / system.h
        return SignalPoint(x, system.A @ x, u)


class LineSystem:
    """The system of differences along a line."""

    def __init__(self, line: Line, h: np.ndarray) -> None:
        d, k = line.t.size, line.order
        self.d, self.k, self.m = d, k, d - k - 1
        # Derivatives over the whole line, not over one spacing, have the size of x.
        length = float(line.t[-1] - line.t[0])
        t = line.t / length
        self.scale = length**k
        first = [sp.diags_array([-np.ones(d - j), np.ones(d - j)], offsets=[0, 1], shape=(d - j, d - j + 1))
                 for j in range(1, k + 2)]  # fmt: skip
        S = [sp.diags_array(j / (t[j:] - t[:-j])) for j in range(1, k + 1)]
        self.last = sp.coo_array(first[k])
        # The unknowns are z_0 … z_k, m_1 … m_k and u; block row j holds the equation of the unknown j.
        blocks: list[list[Any]] = [[None] * (2 * k + 2) for _ in range(2 * k + 1)]
        sums = [first[j].T @ S[j] for j in range(k)] + [first[k].T]
        blocks[0][0], blocks[0][k + 1] = sp.diags_array(h), sums[0]
        for j in range(1, k + 1):
            blocks[j][j - 1], blocks[j][j] = -(S[j - 1] @ first[j - 1]), sp.eye_array(d - j)
            blocks[k + j][k + j], blocks[k + j][k + j + 1] = sp.eye_array(d - j), -sums[j]
        self.upper = sp.coo_array(sp.block_array(blocks))
        sizes = [d - j for j in range(k + 1)] + [d - j for j in range(1, k + 2)]
        self.derivative = slice(sum(sizes[:k]), sum(sizes[: k + 1]))
        self.size = sum(sizes)
        self.order = np.argsort(np.concatenate([np.arange(size) + 0.5 * (d - size) for size in sizes]), kind="stable")
        self.place = np.argsort(self.order)
        self.base = self.size - self.m
        self.indices, self.indptr, self.sources = self._pattern()

    def _pattern(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Where the matrix of every factorisation has its entries, by columns, and which of them each one is."""
        diagonal = self.base + np.arange(self.m)
        rows = np.concatenate([self.upper.row, self.base + self.last.row, diagonal])
        columns = np.concatenate([self.upper.col, self.derivative.start + self.last.col, diagonal])
        number = np.arange(float(rows.size))
        matrix = sp.csc_array((number, (self.place[rows], self.place[columns])), shape=(self.size, self.size))
        return matrix.indices, matrix.indptr, matrix.data.astype(np.int64)

    def factor(self, e: np.ndarray) -> _LineFactor:
        """The factors for one E."""
        return _LineFactor(self, np.ones(self.m), e)

    def with_zeros(self, q: np.ndarray, zero: np.ndarray, u: np.ndarray) -> SignalPoint | None:
        """The minimiser with A x = 0 on the rows in `zero`, and the multipliers `u` on the others."""
        try:
            answer = _LineFactor(self, zero.astype(float), (~zero).astype(float)).solve(q, np.where(zero, 0.0, -u))
        except RuntimeError:
            return None
        if not np.all(np.isfinite(answer.u)):
            return None
        return answer._replace(v=np.where(zero, 0.0, answer.v), u=np.where(zero, answer.u, u))


class _LineFactor:
    """`on` · A x − e u = b in the last rows."""

    def __init__(self, system: LineSystem, on: np.ndarray, e: np.ndarray) -> None:
        self.system, last = system, system.last
        # A is divided by `scale` and u multiplied by it, against the derivatives over the whole line.
        entries = np.concatenate([system.upper.data, on[last.row] * last.data, -e * system.scale**2])
        shape = (system.size, system.size)
        self.matrix = sp.csc_array((entries[system.sources], system.indices, system.indptr), shape=shape)
        self.lu = scipy.sparse.linalg.splu(self.matrix, permc_spec="NATURAL")

    def solve(self, q: np.ndarray | float, b: np.ndarray) -> SignalPoint:
        system = self.system
        right = np.zeros(system.size)
        right[: system.d], right[system.base :] = q, b * system.scale
        right = right[system.order]
        answer = self.lu.solve(right)
        answer = (answer + self.lu.solve(right - self.matrix @ answer))[system.place]
        v = np.diff(answer[system.derivative]) / system.scale
        return SignalPoint(answer[: system.d], v, answer[system.base :] * system.scale)


def _solved(matrix: sp.csc_array, right: np.ndarray) -> np.ndarray | None:
    try:
        factor = scipy.sparse.linalg.splu(matrix)
    except RuntimeError:
        return None
    answer = factor.solve(right)
    answer += factor.solve(right - matrix @ answer)
    return answer if np.all(np.isfinite(answer)) else None


__all__ = ["GeneralSystem", "LineSystem", "SignalPoint"]

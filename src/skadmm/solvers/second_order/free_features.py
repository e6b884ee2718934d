"""Features without any penalty or bound, such as an intercept: eliminated from the models of block descent.

Let F be their columns. The other columns of a working set are replaced by Z = X − F B, orthogonal to F as far as the
samples' own weights go, so an offset of the columns costs no accuracy and slows no sweep. What the curvatures D of a
model add is a Schur complement, and the coefficients of F follow from those of the others:

    G = ZᵀDZ/n − S M Sᵀ,    M = FᵀDF/n,    Sᵀ = M⁻¹FᵀDZ/n.

After each step the coefficients of F are set to their optimum by Newton's method in the margins. The slopes are then
orthogonal to F, which is what the duality gap needs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

ORTHOGONAL = 1e-14
"""Slopes are orthogonal to a column where their product is this share of the sum of its terms' sizes: rounding."""


class FreeFeatures:
    """The free features of a problem, and their columns F."""

    def __init__(self, columns: Any, index: np.ndarray, weights: np.ndarray) -> None:
        """`columns` is X, `weights` the samples' own; empty where all are one."""
        self.index, self.n = index, columns.shape[0]
        part = columns[:, index]
        self.columns = np.asarray(part.toarray() if sp.issparse(part) else part, dtype=np.float64)
        self.sizes = np.abs(self.columns)
        self.weighted = weights[:, None] * self.columns if weights.size else self.columns
        self.inverse = _inverse(self.weighted.T @ self.columns / self.n)

    def __len__(self) -> int:
        return self.index.size

    def centre(self, columns: Any) -> np.ndarray:
        """B of shape (f, k) for k columns; zero for sparse columns, which are not centred."""
        if sp.issparse(columns) or not len(self):
            return np.zeros((len(self), columns.shape[1]))
        return self.inverse @ (self.weighted.T @ columns / self.n)

    def inverse_curvature(self, curvatures: np.ndarray) -> np.ndarray:
        """M⁻¹ for the curvatures of the samples; empty where all are one."""
        if not curvatures.size:
            return self.inverse
        return _inverse((curvatures[:, None] * self.columns).T @ self.columns / self.n)

    def orthogonal(self, slopes: np.ndarray) -> bool:
        """Return whether slopes are orthogonal to all columns, up to rounding."""
        return bool(np.all(np.abs(slopes @ self.columns) <= ORTHOGONAL * self._scale(slopes)))

    def projected(self, slopes: np.ndarray) -> np.ndarray:
        """Slopes of the squared loss, of shape (n,) or (n, k), after the step of the free coefficients that makes them
        orthogonal to F. It needs no margins, which may be so large that their rounding hides the step."""
        for _ in range(2):
            slopes = slopes - self.weighted @ (self.inverse @ (self.columns.T @ slopes) / self.n)
        return slopes

    def _scale(self, slopes: np.ndarray) -> np.ndarray:
        return np.abs(slopes) @ self.sizes + np.finfo(float).tiny

    def settle(
        self, margins: np.ndarray, slopes: np.ndarray, curvatures: np.ndarray, expand: Callable[[], float], loss: float
    ) -> tuple[np.ndarray, float]:
        """The change of the free coefficients that makes slopes orthogonal to F, and the mean loss there.

        `expand` evaluates the mean loss, slopes and curvatures at the margins, all of which are changed.
        """
        change = np.zeros(len(self))
        before = np.inf
        for _ in range(20):
            off = slopes @ self.columns
            size = float((np.abs(off) / self._scale(slopes)).max())
            if size <= 0.1 * ORTHOGONAL or size >= 0.5 * before:
                break
            step = -self.inverse_curvature(curvatures) @ off / self.n
            move = self.columns @ step
            margins += move
            there = expand()
            if not there <= loss + 1e-14 * abs(loss):
                margins -= move
                loss = expand()
                break
            change, loss, before = change + step, there, size
        return change, loss


def _inverse(matrix: np.ndarray) -> np.ndarray:
    """The pseudoinverse of a symmetric matrix, which is often a single number."""
    if matrix.size == 1:
        return np.divide(1.0, matrix, out=np.zeros((1, 1)), where=matrix > 0.0)
    return np.linalg.pinv(matrix, hermitian=True)

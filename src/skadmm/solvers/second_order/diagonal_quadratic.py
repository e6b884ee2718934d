"""Squared losses whose Hessian is diagonal: every sample sees one coefficient, as in signals.

    ½ x·Hx − q·x + constant + Σ bound_e |(D x)_e|,      H diagonal

D is A, or the plain differences along a line where A is those with each row multiplied by a number.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from skadmm.operators.line import ROUNDING, Line
from skadmm.problem.problem import Problem
from skadmm.problem.structure import fused
from skadmm.solvers.second_order.base import ridge_of
from skadmm.solvers.second_order.signal_systems import GeneralSystem, LineSystem, SignalPoint

BOUND_ROUNDING = 1e-11
"""The multiplier of a polynomial may exceed its bound by this share, which is rounding. As D x = 0 there, it changes
the dual objective by the square of that."""


@dataclass(frozen=True, eq=False)
class DiagonalQuadratic:
    """½ x·Hx − q·x + constant with H = diag(h), and the matrix D of the penalty."""

    h: np.ndarray
    """Σ wᵢ aᵢⱼ² / n of each feature, plus the ridge."""
    ridge: np.ndarray
    """The share of Ω in `h`."""
    q: np.ndarray
    """Σ wᵢ aᵢⱼ bᵢ / n."""
    constant: float
    """Σ wᵢ bᵢ² / 2n, the loss at zero."""
    A: sp.csr_array
    line: Line | None
    """The differences along a line that A is, each row times a number; None where it is something else."""

    @classmethod
    def of(cls, problem: Problem) -> DiagonalQuadratic:
        """The samples of `problem` summed up; :func:`reason_against` says whether they can be."""
        entries = problem.local.single_entries
        assert not isinstance(entries, str), "see reason_against()"
        ridge = np.broadcast_to(np.asarray(ridge_of(problem), dtype=np.float64), problem.n_features)
        h = entries.squares + ridge if ridge.any() else entries.squares
        q, constant = entries.products, entries.half_square
        return cls(h, ridge, q, constant, problem.constraint.A, problem.constraint.line)

    @cached_property
    def system(self) -> GeneralSystem | LineSystem:
        """The Newton systems."""
        return GeneralSystem(self.A, self.h) if self.line is None else LineSystem(self.line, self.h)

    @cached_property
    def explained(self) -> float:
        """q·H⁻¹q: twice the decrease of the quadratic from zero to its minimum."""
        return float(self.q @ (self.q / self.h))

    @cached_property
    def has_ridge(self) -> bool:
        """True where Ω adds to `h`."""
        return bool(self.ridge.any())

    @cached_property
    def row_scale(self) -> np.ndarray:
        """A = diag(row_scale) D."""
        return np.ones(self.A.shape[0]) if self.line is None else self.line.scale

    def value(self, x: np.ndarray) -> float:
        """The quadratic at x."""
        inner = self.h * x
        inner *= 0.5
        inner -= self.q
        return float(x @ inner) + self.constant

    def loss(self, x: np.ndarray) -> float:
        """The mean loss at x, without Ω."""
        return self.value(x) - self.omega(x)

    def omega(self, x: np.ndarray) -> float:
        """Ω at x."""
        return 0.5 * float(x @ (self.ridge * x)) if self.has_ridge else 0.0

    def gradient(self, x: np.ndarray) -> np.ndarray:
        """The gradient of the mean loss at x, without Ω."""
        result = (self.h - self.ridge) * x if self.has_ridge else self.h * x
        result -= self.q
        return result

    def multiplier(self, x: np.ndarray) -> np.ndarray:
        """The u with Dᵀu = q − Hx along a line; zero where the right side is only rounding error."""
        assert self.line is not None
        rest = self.q - self.h * x
        noise = ROUNDING * (np.abs(self.q) + self.h * np.abs(x).max())
        if np.all(np.abs(rest) <= noise):
            return np.zeros(self.A.shape[0])
        return self.line.multiplier(rest) * self.row_scale

    @cached_property
    def polynomial(self) -> SignalPoint:
        """The best polynomial along the line, with its multiplier."""
        assert self.line is not None
        root = np.sqrt(self.h)
        basis = np.linalg.qr(root[:, None] * self.line.null_space())[0]
        x = basis @ (basis.T @ (self.q / root)) / root
        u = self.multiplier(x)
        return SignalPoint(x, np.zeros(u.size), u)


@dataclass(frozen=True, eq=False)
class SignalObjective:
    """A diagonal quadratic with the penalty Σ bound_e |(D x)_e|."""

    quadratic: DiagonalQuadratic
    bound: np.ndarray
    """The largest multiplier of each row of D."""
    floor: float
    """The gap is measured against at least this share of the loss at zero. A signal that the model fits without error
    leaves an objective of rounding, which is no scale to measure by."""

    @cached_property
    def _uniform(self) -> bool:
        return bool(np.all(self.bound == self.bound[0]))

    @property
    def scale(self) -> float:
        """The smallest objective that a gap is measured against."""
        return self.floor * self.quadratic.constant

    def norm(self, v: np.ndarray) -> float:
        """Σ bound_e |v_e|."""
        return float(self.bound[0] * np.abs(v).sum()) if self._uniform else float(self.bound @ np.abs(v))

    def value(self, x: np.ndarray, v: np.ndarray) -> float:
        """The objective at x with v = D x."""
        return self.quadratic.value(x) + self.norm(v)

    def gap(self, point: SignalPoint) -> float:
        """The duality gap of a point, absolute."""
        x, v, u = point
        part = self.quadratic
        if part.line is not None:  # Dᵀu = q − Hx, more accurately than by products with D
            return max(self.norm(v) - float(u @ v), 0.0)
        dual = 0.5 * float(np.sum((part.q - part.A.T @ u) ** 2 / part.h))
        return max(self.value(x, v) - part.constant + dual, 0.0)

    def relative_gap(self, point: SignalPoint) -> float:
        """The duality gap of a point relative to its objective."""
        return self.gap(point) / max(abs(self.value(point.x, point.v)), self.scale, np.finfo(float).tiny)

    def polynomial(self) -> SignalPoint | None:
        """The minimiser, where that is a polynomial along the line; None where it is not."""
        if self.quadratic.line is None:
            return None
        flat, bound = self.quadratic.polynomial, self.bound
        if np.any(np.abs(flat.u) > bound * (1 + BOUND_ROUNDING)):
            return None
        return flat._replace(u=np.clip(flat.u, -bound, bound))

    def fused(self, point: SignalPoint) -> SignalPoint:
        """`point` with fused coefficients equal to the last bit, where rows of A join two of them without signs."""
        A = self.quadratic.A
        counts = np.diff(A.indptr)
        if counts.max() > 2 or np.any(A.sum(axis=1)[counts == 2] != 0):
            return point
        labels = fused(A, point.x)
        means = np.bincount(labels + 1, weights=point.x) / np.maximum(np.bincount(labels + 1), 1)
        x = np.where(labels < 0, 0.0, means[labels + 1])
        return point._replace(x=x, v=A @ x / self.quadratic.row_scale)


def reason_against(problem: Problem) -> str | None:
    """Why the Hessian of a problem's loss and Ω is not a positive diagonal; None when it is."""
    entries = problem.local.single_entries
    if isinstance(entries, str):
        return entries
    if entries.all_seen:
        return None
    seen = entries.squares + ridge_of(problem)
    if not np.all(seen > 0):
        j = int(np.flatnonzero(~(seen > 0))[0])
        return f"feature {j} is zero in every sample with a positive weight, and no squared ℓ2 penalises it"
    return None

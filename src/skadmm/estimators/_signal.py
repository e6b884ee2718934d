"""Signals: ½ x·Hx − q·x + alpha‖Ax‖₁ with H diagonal, by a primal-dual interior point method.

A signal has as many coefficients as observations, and its penalty matrix is banded or a graph's, so the Newton systems
(AH⁻¹Aᵀ + D) are sparse and a few dozen of them give an exact answer, where first-order steps along a line creep.

References
----------
Kim, Koh, Boyd, Gorinevsky (2009). ℓ1 trend filtering. SIAM Review 51.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg

from skadmm.problem import KKT, Problem
from skadmm.result import Result, Status
from skadmm.structure import degrees_of_freedom, fused

MOST_STEPS = 100
NEAREST = 0.99
"""A step goes at most this share of the way to the boundary."""
SMALLEST = 1e-13
"""The steps never aim at a smaller relative gap."""
INNER = (1e-6, 1e-4, 1e-3, 1e-2)
"""A multiplier further than this, relatively, inside its bounds belongs to a zero of Ax: the first that does well."""


class Signal:
    """Weighted squared loss on a table of indicators: observation i sees coefficient j(i)."""

    def __init__(self, problem: Problem) -> None:
        rows: Any = problem.rows
        weight = problem.sample_weight if problem.sample_weight.size else np.ones(problem.n_samples)
        n, d = problem.n_samples, problem.n_features
        self.A = problem.constraint.A
        ridge = float(getattr(problem.omega, "strength", 0.0))
        self.h = np.bincount(rows.indices, weights=weight, minlength=d) / n + ridge
        self.q = np.bincount(rows.indices, weights=weight * problem.target, minlength=d) / n
        self.constant = 0.5 * float(weight @ problem.target**2) / n
        self.problem = problem

    def primal(self, x: np.ndarray, alpha: float) -> float:
        """The objective."""
        return float(x @ (0.5 * self.h * x - self.q)) + self.constant + alpha * float(np.abs(self.A @ x).sum())

    def solve(self, alpha: float, tol: float) -> Result:
        """The minimiser, exactly fused, with its duality gap."""
        began = time.perf_counter()
        x, u, steps = self._interior(alpha, 0.01 * tol)
        gap = self._gap(x, u, alpha)
        for inner in INNER:
            exact = self._exact(x, u, alpha, inner)
            if exact is not None and self._gap(*exact, alpha) <= max(gap, 1e-12):
                (x, u), gap = exact, self._gap(*exact, alpha)
                break
        x = self._levelled(x)
        reached = gap <= tol
        y = self.A @ x
        stray = float(np.linalg.norm(self.h * x - self.q + self.A.T @ u))
        size = max(float(np.linalg.norm(self.A.T @ u)), 1e-8 * float(np.linalg.norm(self.q)), np.finfo(float).tiny)
        objective, seconds = self.primal(x, alpha), time.perf_counter() - began
        record = {
            "passes": float(steps), "seconds": seconds, "objective": objective, "objective_average": np.nan,
            "feasibility": 0.0, "kkt": stray / size, "gap": gap, "test_loss": np.nan,
        }  # fmt: skip
        return Result(
            x=x, y=y, dual=u, x_average=x, y_average=y,
            status=Status.SOLVED if reached else Status.STALLED,
            message=f"{steps} interior-point steps, relative duality gap {gap:.2e}",
            method="interior-point",
            settings={"alpha": alpha},
            objective=objective, feasibility=0.0, kkt=KKT(stray, 0.0, 0.0, stray / size), gap=gap,
            stopped_on="gap" if reached else None, passes=float(steps), seconds=seconds, records=[record],
        )  # fmt: skip

    def _interior(self, alpha: float, tol: float) -> tuple[np.ndarray, np.ndarray, int]:
        """Mehrotra's predictor and corrector on u = up − down, up + down = alpha; x = H⁻¹(q − Aᵀu) throughout.

        With s bounding |Ax|, the products up·(s − Ax) and down·(s + Ax) go to zero together.
        """
        A, At = self.A, sp.csr_array(self.A.T)
        G = sp.csc_array(A @ sp.diags_array(1.0 / self.h) @ At)
        m = A.shape[0]
        up, down = np.full(m, alpha / 2), np.full(m, alpha / 2)
        best, least = (self.q / self.h, np.zeros(m)), np.inf
        v = A @ best[0]
        s = np.abs(v) + (float(np.abs(v).mean()) or 1.0)
        steps, worse = 0, 0
        while steps < MOST_STEPS and worse < 4:
            steps += 1
            u = up - down
            x = (self.q - At @ u) / self.h
            v = A @ x
            gap = alpha * float(np.abs(v).sum()) - float(u @ v)
            worse = worse + 1 if gap >= least else 0
            if gap < least:
                best, least = (x, u), gap
            if gap <= max(tol, SMALLEST) * max(self.primal(x, alpha), np.finfo(float).tiny):
                break
            p, m_ = s - v, s + v
            total = up * m_ + down * p
            factor = scipy.sparse.linalg.splu(
                sp.csc_array(G + sp.diags_array(total / (4 * up * down))),
                permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True},
            )  # fmt: skip
            here = (up, down, p, m_)
            move = _direction(factor, G, here, -up * p, -down * m_)
            t = _longest(here, move)
            after = sum(float((a + t * b) @ (c + t * e)) for a, b, c, e in _products(here, move))
            mu = float(up @ p + down @ m_)
            target = mu / (2 * m) * min(1.0, max(after, 0.0) / mu) ** 3
            (_, d_up, _, dp), (_, d_down, _, dm) = _products(here, move)
            move = _direction(factor, G, here, target - up * p - dp * d_up, target - down * m_ - dm * d_down)
            t = min(1.0, NEAREST * _longest(here, move))
            if not t > 1e-12:
                break
            up, down, s = up + t * move[0], down + t * move[1], s + t * (move[2] + move[3]) / 2
            s = np.maximum(s, np.abs(A @ ((self.q - At @ (up - down)) / self.h)) * (1 + 1e-12))
        x, u = best
        return x, np.clip(u, -alpha, alpha), steps

    def _exact(self, x: np.ndarray, u: np.ndarray, alpha: float, inner: float) -> tuple[np.ndarray, np.ndarray] | None:
        """With the zeros of Ax held and the signs of the rest, the minimiser and its multipliers, from one system."""
        A = self.A
        bound = np.abs(u) >= alpha * (1 - inner)
        held = A[~bound]
        k = held.shape[0]
        sign = np.sign(u[bound])
        right = self.q - alpha * (A[bound].T @ sign)
        scale = float(self.h.max())
        system = sp.block_array(
            [[sp.diags_array(self.h), scale * held.T], [scale * held, -1e-13 * scale * sp.eye_array(k)]], format="csc"
        ) if k else sp.csc_array(sp.diags_array(self.h))  # fmt: skip
        try:
            factor = scipy.sparse.linalg.splu(system)
        except RuntimeError:
            return None
        rhs = np.concatenate([right, np.zeros(k)])
        answer = factor.solve(rhs)
        answer += factor.solve(rhs - system @ answer)
        if not np.all(np.isfinite(answer)):
            return None
        candidate = answer[: x.size]
        if np.any((A[bound] @ candidate) * sign < 0):
            return None
        multiplier = u.copy()
        multiplier[bound] = alpha * sign
        multiplier[~bound] = np.clip(scale * answer[x.size :], -alpha, alpha)
        return candidate, multiplier

    def _levelled(self, x: np.ndarray) -> np.ndarray:
        """x with fused coefficients equal to the last bit, where rows of A join two of them without signs."""
        if np.diff(self.A.indptr).max() > 2 or np.any(self.A.sum(axis=1)[np.diff(self.A.indptr) == 2] != 0):
            return x
        labels = fused(self.A, x)
        means = np.bincount(labels + 1, weights=x) / np.maximum(np.bincount(labels + 1), 1)
        return np.where(labels < 0, 0.0, means[labels + 1])

    def _gap(self, x: np.ndarray, u: np.ndarray, alpha: float) -> float:
        """The relative duality gap."""
        primal = self.primal(x, alpha)
        dual = self.constant - 0.5 * float(np.sum((self.q - self.A.T @ u) ** 2 / self.h))
        # A signal that the model fits without error leaves an objective of rounding, no scale to measure by.
        return max(primal - dual, 0.0) / max(abs(primal), 1e-6 * self.constant, np.finfo(float).tiny)

    def alpha_max(self, basis: np.ndarray) -> float:
        """The least alpha at which Ax = 0 (an upper bound where A has dependent rows); `basis` spans A's null space."""
        seen = basis * self.h[:, None]
        start = basis @ np.linalg.lstsq(basis.T @ seen, basis.T @ self.q, rcond=None)[0]
        right = self.A @ (self.q - self.h * start)
        gram = sp.csc_array(self.A @ self.A.T)
        shift = 1e-13 * float(gram.diagonal().max())
        factor = scipy.sparse.linalg.splu(sp.csc_array(gram + shift * sp.eye_array(gram.shape[0])))
        w = factor.solve(right)
        w += factor.solve(right - gram @ w)
        return float(np.abs(w).max())

    def dof(self, x: np.ndarray) -> int:
        """Degrees of freedom of a solution."""
        A = self.A
        if np.diff(A.indptr).max() <= 2:
            return degrees_of_freedom(A, x)
        return int(x.size) - int(np.count_nonzero(np.abs(A @ x) <= 1e-9 * (abs(A) @ np.abs(x))))


def _direction(factor: Any, G: Any, here: tuple[np.ndarray, ...], r1: np.ndarray, r2: np.ndarray) -> tuple[Any, ...]:
    """The Newton step (of up, down, p and m) that changes up·p by r1 and down·m by r2."""
    up, down, p, _ = here
    du = factor.solve((r1 / up - r2 / down) / 2)
    dv = -(G @ du)
    ds = (r1 + up * dv - p * du / 2) / up
    return du / 2, -du / 2, ds - dv, ds + dv


def _products(here: tuple[np.ndarray, ...], move: tuple[np.ndarray, ...]) -> list[tuple[np.ndarray, ...]]:
    return [(here[0], move[0], here[2], move[2]), (here[1], move[1], here[3], move[3])]


def _longest(here: tuple[np.ndarray, ...], move: tuple[np.ndarray, ...]) -> float:
    """The largest t ≤ 1 with every value + t · move ≥ 0."""
    t = 1.0
    for value, change in zip(here, move, strict=True):
        falling = change < 0
        if falling.any():
            t = min(t, float(np.min(-value[falling] / change[falling])))
    return t


__all__ = ["Signal"]

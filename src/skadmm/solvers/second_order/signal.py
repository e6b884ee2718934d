"""Signals: ½ x·Hx − q·x + alpha‖Ax‖₁ with H diagonal, by a primal-dual interior point method.

A signal has as many coefficients as observations, and its penalty matrix is banded or a graph's, so the Newton systems
are sparse (see ``_signal_systems.py``) and a few dozen of them give an exact answer, where first-order steps along a
line creep.

References
----------
Kim, Koh, Boyd, Gorinevsky (2009). ℓ1 trend filtering. SIAM Review 51.
"""

from __future__ import annotations

import time
from functools import cached_property
from typing import Any

import numpy as np

from skadmm import _cancel
from skadmm.operators.line import ROUNDING, Line
from skadmm.problem.kkt import KKT
from skadmm.problem.problem import Problem
from skadmm.problem.structure import fused
from skadmm.run.result import Result, Status
from skadmm.solvers.second_order.signal_systems import GeneralSystem, LineSystem, SignalPoint

MOST_STEPS = 100
MOST_CHANGES = 10
"""Of a pattern that is nearly right."""
NEGLIGIBLE = 1e-10
"""A relative gap at which rows that are not at their bounds count as zero."""
BEYOND = 1e-9
"""A multiplier this much, relatively, over its bound is on it."""
NEAREST = 0.99
"""A step goes at most this share of the way to the boundary."""
SMALLEST = 1e-13
"""The steps never aim at a smaller relative gap."""
NEAR = 1e-3
"""The relative gap from which steps are solved for, not points."""
INNER = (1e-6, 1e-4, 1e-3, 1e-2)
"""A multiplier further than this, relatively, inside its bounds belongs to a zero of Ax: the first that does well."""


class Signal:
    """Weighted squared loss on a table of indicators: observation i sees coefficient j(i).

    Parameters
    ----------
    problem : Problem
    line : Line or None
        Says that A is differences along a line. Newton systems then keep their digits at any length, and polynomials
        are known to be the solution from ``alpha_max`` on.
    """

    def __init__(self, problem: Problem, line: Line | None = None) -> None:
        rows: Any = problem.rows
        weight = problem.sample_weight if problem.sample_weight.size else np.ones(problem.n_samples)
        n, d = problem.n_samples, problem.n_features
        self.A = problem.constraint.A
        ridge = float(getattr(problem.omega, "strength", 0.0))
        self.h = np.bincount(rows.indices, weights=weight, minlength=d) / n + ridge
        self.q = np.bincount(rows.indices, weights=weight * problem.target, minlength=d) / n
        self.constant = 0.5 * float(weight @ problem.target**2) / n
        self.line = line
        self.system: Any = GeneralSystem(self.A, self.h) if line is None else LineSystem(line, self.h)

    def primal(self, x: np.ndarray, v: np.ndarray, alpha: float) -> float:
        """The objective at x, v = Ax."""
        return float(x @ (0.5 * self.h * x - self.q)) + self.constant + alpha * float(np.abs(v).sum())

    @cached_property
    def flat(self) -> SignalPoint:
        """The best polynomial along the line, and the multiplier u with Aᵀu = q − Hx there."""
        assert self.line is not None
        root = np.sqrt(self.h)
        basis = np.linalg.qr(root[:, None] * self.line.null_space())[0]
        x = basis @ (basis.T @ (self.q / root)) / root
        rest = self.q - self.h * x
        noise = ROUNDING * (np.abs(self.q) + self.h * np.abs(x).max())
        u = np.zeros(self.A.shape[0]) if np.all(np.abs(rest) <= noise) else self.line.multiplier(rest)
        return SignalPoint(x, np.zeros(u.size), u)

    @property
    def alpha_max(self) -> float:
        """The smallest alpha at which the solution is a polynomial along the line."""
        return float(np.abs(self.flat.u).max())

    def solve(self, alpha: float, tol: float) -> Result:
        """The minimiser, exactly fused, with its duality gap."""
        began = time.perf_counter()
        if self.line is not None and alpha >= self.alpha_max:
            point, steps = self.flat, 0
        else:
            point, steps = self._interior(alpha, 0.01 * tol if self.line is None else SMALLEST)
            point = self._exactly(point, alpha)
        x, y, u = self._levelled(point.x), point.v, point.u
        if x is not point.x:
            y = self.A @ x
        gap = self._gap(SignalPoint(x, y, u), alpha)
        reached = gap <= tol
        pull = self.q - self.h * x if self.line is not None else self.A.T @ u
        stray = float(np.linalg.norm(self.h * x - self.q + pull))
        size = max(float(np.linalg.norm(pull)), 1e-8 * float(np.linalg.norm(self.q)), np.finfo(float).tiny)
        objective, seconds = self.primal(x, y, alpha), time.perf_counter() - began
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

    def _interior(self, alpha: float, tol: float) -> tuple[SignalPoint, int]:
        """Mehrotra's predictor and corrector on u = up − down, up + down = alpha; Hx + Aᵀu = q and v = Ax throughout.

        With s bounding |v|, the products up·(s − v) and down·(s + v) go to zero together.
        """
        m = self.A.shape[0]
        up, down = np.full(m, alpha / 2), np.full(m, alpha / 2)
        x = self.q / self.h
        v = self.A @ x
        best, least = SignalPoint(x, v, np.zeros(m)), np.inf
        s = np.abs(v) + (float(np.abs(v).mean()) or 1.0)
        steps, worse = 0, 0
        while steps < MOST_STEPS and worse < 4:
            steps += 1
            _cancel.check_cancelled()
            u = up - down
            gap = alpha * float(np.abs(v).sum()) - float(u @ v)
            worse = worse + 1 if gap >= least else 0
            if gap < least:
                best, least = SignalPoint(x, v, u), gap
            objective = max(self.primal(x, v, alpha), np.finfo(float).tiny)
            if gap <= max(tol, SMALLEST) * objective:
                break
            # Far from the solution v falls by many digits, so the new point is solved for: its rounding is relative to
            # itself. Near it the change is solved for, because it is the change that needs its digits.
            near = gap <= NEAR * objective
            p, m_ = s - v, s + v
            e = (p / up + m_ / down) / 4
            factor = self.system.factor(e)
            here = (up, down, p, m_)

            def newton(r1: np.ndarray, r2: np.ndarray) -> tuple[SignalPoint, tuple[np.ndarray, ...]]:
                """The step, and its change of up, down, p and m, that changes up·p by r1 and down·m by r2."""
                pull = (r1 / up - r2 / down) / 2  # noqa: B023
                if near:  # noqa: B023
                    new = factor.solve(0.0, -pull)  # noqa: B023
                    dx, dv, du = new
                else:
                    new = factor.solve(self.q, v - e * u - pull)  # noqa: B023
                    dx, dv, du = new.x - x, new.v - v, new.u - u  # noqa: B023
                ds = (r1 + up * dv - p * du / 2) / up  # noqa: B023
                return SignalPoint(dx, dv, du), (du / 2, -du / 2, ds - dv, ds + dv)

            _, move = newton(-up * p, -down * m_)
            t = _longest(here, move)
            after = sum(float((a + t * b) @ (c + t * f)) for a, b, c, f in _products(here, move))
            mu = float(up @ p + down @ m_)
            target = mu / (2 * m) * min(1.0, max(after, 0.0) / mu) ** 3
            (_, d_up, _, dp), (_, d_down, _, dm) = _products(here, move)
            change, move = newton(target - up * p - dp * d_up, target - down * m_ - dm * d_down)
            t = min(1.0, NEAREST * _longest(here, move))
            if not t > 1e-12:
                break
            x, v = x + t * change.x, v + t * change.v
            up, down, s = up + t * move[0], down + t * move[1], s + t * (move[2] + move[3]) / 2
            s = np.maximum(s, np.abs(v) * (1 + 1e-12))
        return best._replace(u=np.clip(best.u, -alpha, alpha)), steps

    def _exactly(self, point: SignalPoint, alpha: float) -> SignalPoint:
        """The minimiser on the pattern of `point`, where the pattern is consistent; else `point` itself."""
        gap, sign = self._gap(point, alpha), np.sign(point.u)
        if self.line is None:
            for inner in INNER:
                exact = self._on_pattern(np.abs(point.u) >= alpha * (1 - inner), sign, alpha)
                if exact is not None and self._gap(exact, alpha) <= max(gap, 1e-12):
                    return exact
            return point
        # Multipliers of high order are smooth: near a knot many are close to alpha, and the largest v says which it is.
        size = np.abs(point.v)
        bound = size * alpha > size.max() * (alpha - np.abs(point.u))
        for pattern, changes in ((bound, 0), (_peaks(size, bound), 0), (bound, MOST_CHANGES)):
            exact = self._on_pattern(pattern, sign, alpha, changes=changes)
            if exact is not None:
                return exact
        return point._replace(v=np.where(bound, point.v, 0.0)) if gap <= NEGLIGIBLE else point

    def _on_pattern(self, bound: np.ndarray, sign: np.ndarray, alpha: float, *, changes: int = 0) -> SignalPoint | None:
        """The minimiser with Ax = 0 off `bound` and multipliers alpha · sign on it; None where it contradicts itself.

        Up to so many `changes` of the pattern: rows with the wrong sign leave it, those beyond alpha join.
        """
        for _ in range(changes + 1):
            _cancel.check_cancelled()
            exact: SignalPoint | None = self.system.held(self.q, ~bound, alpha * sign)
            if exact is None:
                return None
            wrong = bound & (exact.v * sign < 0)
            beyond = ~bound & (np.abs(exact.u) > alpha * (1 + BEYOND))
            if not wrong.any() and (self.line is None or not beyond.any()):
                return exact._replace(u=np.clip(exact.u, -alpha, alpha))
            joining = _peaks(np.abs(exact.u), beyond)
            bound = (bound & ~wrong) | joining
            sign = np.where(joining, np.sign(exact.u), sign)
        return None

    def _levelled(self, x: np.ndarray) -> np.ndarray:
        """x with fused coefficients equal to the last bit, where rows of A join two of them without signs."""
        if np.diff(self.A.indptr).max() > 2 or np.any(self.A.sum(axis=1)[np.diff(self.A.indptr) == 2] != 0):
            return x
        labels = fused(self.A, x)
        means = np.bincount(labels + 1, weights=x) / np.maximum(np.bincount(labels + 1), 1)
        return np.where(labels < 0, 0.0, means[labels + 1])

    def _gap(self, point: SignalPoint, alpha: float) -> float:
        """The relative duality gap."""
        x, v, u = point
        primal = self.primal(x, v, alpha)
        if self.line is not None:  # Aᵀu = q − Hx, better than products with A can tell
            gap = alpha * float(np.abs(v).sum()) - float(u @ v)
        else:
            gap = primal - self.constant + 0.5 * float(np.sum((self.q - self.A.T @ u) ** 2 / self.h))
        # A signal that the model fits without error leaves an objective of rounding, no scale to measure by.
        return max(gap, 0.0) / max(abs(primal), 1e-6 * self.constant, np.finfo(float).tiny)


def _peaks(size: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """In each run of neighbours in `mask`, the one where `size` is largest."""
    chosen = np.zeros(mask.size, bool)
    where = np.flatnonzero(mask)
    if where.size:
        for run in np.split(where, np.flatnonzero(np.diff(where) > 1) + 1):
            chosen[run[np.argmax(size[run])]] = True
    return chosen


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

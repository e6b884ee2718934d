"""Proximal steps first, where they can be exact: as long as they are quicker than Newton's.

Where ψ(A·) lies along paths (``_paths.py``) the problem can be minimised without splitting it: a step

    x ← prox of tψ(A·) at x − t∇f(x)

is one look at all samples and O(d). Its length t is spectral (Barzilai and Borwein 1988), long and short in turn, and
halved while the objective does not fall below the largest of the last few (Grippo et al. 1986; Wright et al. 2009). On
well-conditioned data ten to twenty such steps are all it takes, which is less than forming one XᵀX; on others they are
slow, which shows soon, and Newton steps on units go on from where they have come to.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from skadmm.backends import tasks
from skadmm.backends.local import Evaluation
from skadmm.kernels.rows import CSRRows
from skadmm.kernels.threads import one_thread
from skadmm.problem.certificate import Certificate, Certifier
from skadmm.solvers.base import Setup
from skadmm.solvers.dual_update import Point
from skadmm.solvers.second_order.chains import PathPenalty
from skadmm.solvers.second_order.line_search import ROUNDING
from skadmm.solvers.second_order.point_engine import PointEngine, ridge_of

RECENT = 5
"""A step may rise, but not above the largest of so many objectives …"""
ENOUGH = 1e-5
"""… less this share of ‖step‖² / 2t."""
MOST_HALVINGS = 30
SPAN = 4
"""The pace is measured over so many steps, but not over the first ones, which tell little. Where a certificate takes
looks of its own it is made as rarely."""
MOST_STEPS, MOST_SPARSE_STEPS = 60, 20
"""More steps than this to come, at that pace, are not worth taking. Newton steps on units read less of sparse rows."""
MOST_NONZERO = 1000
"""First steps leave many features not zero that will be zero in the end. Where there are more than this, what comes
after them is better off with the point they began from."""
LEAST_TOL = 1e-14
"""What is aimed at where no tolerance is given."""


class ProxGradient(PointEngine):
    """Proximal steps. One step is one look at all samples, or some where it has to be shortened."""

    solver_name = "proximal-gradient"
    FIXED = ("tol", "rho", "ridge", "_last")

    def __init__(self, setup: Setup, point: Point, paths: PathPenalty, evaluation: Evaluation | None = None) -> None:
        """`look` is one at the point, where somebody has taken it already."""
        self.problem, self.point, self.paths = setup.problem, point, paths
        self.tol, self.rho = setup.tol, setup.rho
        self.ridge = ridge_of(setup.problem)
        self.certifier = Certifier(setup.problem)
        self.certificate = None
        self.finished = False
        self.slow = False
        """Is it time for another method?"""
        self.steps = 0
        self.length = 0.0
        self.origin = point.x.copy()
        self.multiplier = self.rho * point.dual
        self.recent = np.full(RECENT, -np.inf)
        """The last objectives, the newest first."""
        self.objective, self.lower_bound = np.inf, -np.inf
        self.gradient = np.zeros(setup.problem.n_features)
        """Of the loss, and of Ω."""
        self.slopes: Any = np.zeros(setup.problem.n_samples)
        self.margins: Any = np.zeros(setup.problem.n_samples)
        self._last: tuple[np.ndarray, Evaluation | None] = (point.x.copy(), evaluation)
        self.measured = np.inf
        """What `optimality` said when the pace was last measured."""

    # -- what the loop sees ----------------------------------------------------------------------------------

    def advance(self, order: np.ndarray, until: float = np.inf) -> None:
        """As many steps as `order` has entries."""
        with one_thread():
            for _ in order:
                if self.finished or self.slow or self.point.clock[1] >= until:
                    return
                if not self.steps:
                    self._start()
                self._step()
                self.steps += 1
                self._step_made()
                self._judge()

    def optimality(self) -> tuple[str, float]:
        """The relative gap; where there is no certificate, the relative KKT residual."""
        if self.certifier.kind != "none":
            return "gap", Certificate(self.objective, self.lower_bound).relative
        gradient = self.gradient - self.ridge * self.point.x
        return "kkt", self.problem.kkt(self.point.x, self.point.y, self.multiplier, gradient).relative

    def evaluated_at(self, x: np.ndarray) -> Evaluation | None:
        """The last look, if it was at x."""
        at, evaluation = self._last
        return evaluation if evaluation is not None and np.array_equal(at, x) else None

    def finish(self) -> None:
        """x is exactly fused and sparse at all times; certify it."""
        if not self.steps:
            self._start()
        if not self.finished:
            self._certify()
        self.certificate = Certificate(self.objective, self.lower_bound)

    def restore(self, tables: dict[str, np.ndarray]) -> None:
        """Go on from an earlier point."""
        super().restore(tables)
        self.origin[:] = self.point.x

    # -- a step ----------------------------------------------------------------------------------------------

    def _start(self) -> None:
        """Look at the beginning; the first length from the curvature along the gradient there."""
        self.objective, self.gradient = self._evaluate_point(self.point.x)
        self.recent[0] = self.objective
        problem, steepest = self.problem, self.gradient
        self.point.clock[1] += problem.n_samples
        curvatures = problem.loss.curvature_bound * problem.backend.mean(tasks.mean_square, steepest)
        curvatures += float(steepest @ (self.ridge * steepest))
        self.length = float(steepest @ steepest) / curvatures if curvatures > 0.0 else 0.0

    def _evaluate_point(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """The objective and the smooth part's gradient."""
        evaluation = self.evaluated_at(x)
        if evaluation is None:
            evaluation = self.problem.backend.evaluate(x)
            self.point.clock[1] += self.problem.n_samples
            self._last = (x.copy(), evaluation)
        self.slopes, self.margins = evaluation.slopes, evaluation.margins
        return evaluation.loss + self.problem.penalty(x), evaluation.gradient + self.ridge * x

    def _step(self) -> None:
        x = self.point.x
        for _ in range(MOST_HALVINGS):
            if not 0.0 < self.length < np.inf:
                self.slow = True
                return
            candidate, multiplier = self.paths.prox(x - self.length * self.gradient, self.length)
            step = candidate - x
            square = float(step @ step)
            objective, gradient = self._evaluate_point(candidate)
            highest = self.recent.max() + ROUNDING * abs(self.objective)
            fell = objective <= highest - ENOUGH * square / (2.0 * self.length)
            if fell and np.isfinite(objective) and np.isfinite(gradient).all():
                break
            self.length *= 0.5
        else:
            self.length = 0.0
            self.objective, self.gradient = self._evaluate_point(x)
            self.slow = True
            return
        change = gradient - self.gradient
        along = float(step @ change)
        if along > 0.0:
            self.length = square / along if self.steps % 2 else along / float(change @ change)
        self._place(candidate, multiplier)
        self.objective, self.gradient = objective, gradient
        self.recent = np.concatenate([[objective], self.recent[:-1]])

    def _place(self, x: np.ndarray, multiplier: np.ndarray) -> None:
        self.point.x[:], self.multiplier = x, multiplier
        self.point.y[:] = self.paths.values(x)
        self.point.dual[:] = multiplier / self.rho

    def _judge(self) -> None:
        """Has it arrived, and if not, is it worth going on?"""
        due = self.steps % SPAN == 1
        if due or not self.certifier.free.size:
            self._certify()
        reached = self.optimality()[1]
        self.finished = self.tol is not None and reached <= self.tol
        if not due or self.finished:
            return
        reached = max(reached, np.finfo(float).tiny)
        pace = np.log(self.measured / reached) / SPAN
        left = np.log(reached / (LEAST_TOL if self.tol is None else self.tol))
        most = MOST_SPARSE_STEPS if isinstance(self.problem.rows, CSRRows) else MOST_STEPS
        self.slow = self.slow or (self.steps > 2 * SPAN and not left <= most * pace)
        self.measured = reached
        if self.slow and np.count_nonzero(self.point.x) > MOST_NONZERO + np.count_nonzero(self.origin):
            self._place(self.origin, np.zeros_like(self.multiplier))

    def _certify(self) -> None:
        """The best lower bound so far."""
        gradient = self.gradient - self.ridge * self.point.x
        self.point.clock[1] += self._raise_bound(self.slopes, self.margins, gradient)

"""Coordinate descent first, where A ties no feature to another: as long as it is quicker than Newton's steps on units.

Where every row of A holds one feature (the plain lasso, weighted or not) and most features stay at zero, as where there
are more of them than samples, a step

  chooses   the features that are not zero, and as many again of those that pull most against their bound;
  models    the loss to second order in the margins, and descends on the model one feature after another, each change
            carried to the samples at once, so that no Hessian is formed; in sweeps, mostly over what is not zero;
  searches  along the way, in the margins; then a model is made there, until the chosen ones hardly pull any more;
  looks     at all samples and features: objective, gradient, certificate.

Where features are much alike the sweeps are many, which shows, and Newton steps on units go on from there.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from skadmm import _cancel
from skadmm.backends.base import Evaluation
from skadmm.kernels.expansion import expand_along, margins, sum_rows
from skadmm.kernels.rows import (
    from_matrix,
    multiply,
    multiply_transposed,
    norms_squared,
    scaled_entries,
    stored_entries,
)
from skadmm.kernels.threads import one_thread
from skadmm.problem.certificate import Certificate, Certifier
from skadmm.solvers.base import Setup
from skadmm.solvers.dual_update import Point
from skadmm.solvers.second_order.chains import ChainPenalty
from skadmm.solvers.second_order.coordinate_sweeps import descend
from skadmm.solvers.second_order.line_search import ROUNDING, shorten
from skadmm.solvers.second_order.point_engine import PointEngine, ridge_of
from skadmm.solvers.second_order.working_set import by_columns

FIRST_CHOSEN, GROWTH = 100, 2
"""So many features are chosen at first; later so many times those that are not zero."""
LEFT = 0.1
"""The chosen ones have been minimised over when the largest pull among them is this share of what it was …"""
MOST_MODELS = 10
"""… or after so many models. The same share ends the descent on a model."""
SHORT_SWEEPS = 10
"""After a sweep over all chosen features come at most so many over those that are not zero."""
MOST_SWEEPS, SOLVE = 40, 250
"""More sweeps than this on one model are not worth making; or, with k features, more than k³ by this many times their
entries, which is about what Newton's exact solve would take."""
MOST_PASSES = 16
"""After so many passes, sweeps counted by the entries they read, Newton's steps have less to do than sweeps; unless an
exact solve would take longer than all that."""
ENTRIES_PER_CHUNK = 1 << 26
"""Entries read by sweeps between two moments at which a run can be stopped."""
LEAST_BEND = 1e-6
"""A model's curvature along a sample, at least, as a share of the loss's steepest: slopes are divided by it."""
LEAST_CURVATURE = 1e-12


class Chosen(NamedTuple):
    """Some features: all that are not zero, and others."""

    features: np.ndarray
    columns: Any
    """Of X, one after the other; each is a row here."""
    threshold: np.ndarray
    entries: int
    """How many there are in those."""


def violations(x: np.ndarray, gradient: np.ndarray, threshold: np.ndarray) -> np.ndarray:
    """How far each feature is from being optimal: the smallest size of a subgradient."""
    at_zero = np.maximum(np.abs(gradient) - threshold, 0.0)
    return np.where(x == 0.0, at_zero, np.abs(gradient + threshold * np.sign(x)))


class CoordinateDescent(PointEngine):
    """Coordinate descent on chosen features. One step is one look at all samples."""

    solver_name = "coordinate-descent"
    FIXED = ("tol", "rho", "ridge")

    def __init__(self, setup: Setup, point: Point, paths: ChainPenalty) -> None:
        problem = self.problem = setup.problem
        self.point, self.paths = point, paths
        self.tol, self.rho = setup.tol, setup.rho
        self.ridge = np.full(problem.n_features, ridge_of(problem))
        self.certifier = Certifier(problem)
        self.certificate = None
        self.finished = False
        self.slow = False
        """Is it time for another method?"""
        self.samples, self.columns = problem.samples(), by_columns(problem)
        n = problem.n_samples
        self.every = np.arange(n)
        self.margins, self.move = np.zeros(n), np.zeros(n)
        self.slope, self.curvatures = np.empty(n), np.empty(n)
        self.multiplier = self.rho * point.dual
        self.loss, self.objective, self.lower_bound = np.inf, np.inf, -np.inf
        self.gradient = np.zeros(problem.n_features)
        """Of the loss, and of Ω."""
        self.worst = np.inf
        """The largest pull."""
        self.evaluated = False
        self.touched = 0
        """Samples touched here."""
        self.dear = False
        """Would an exact solve take longer than many sweeps?"""

    # -- what the loop sees ----------------------------------------------------------------------------------

    def advance(self, order: np.ndarray, until: float = np.inf) -> None:
        """As many steps as `order` has entries."""
        with one_thread():
            for _ in order:
                if self.finished or self.slow or self.point.clock[1] >= until:
                    return
                if not self.evaluated:
                    self._start()
                self._step()
                self._step_made()
                self.finished = self.tol is not None and self.optimality()[1] <= self.tol

    def optimality(self) -> tuple[str, float]:
        """The relative gap; where there is no certificate, the relative KKT residual."""
        if self.certifier.kind != "none":
            return "gap", Certificate(self.objective, self.lower_bound).relative
        gradient = self.gradient - self.ridge * self.point.x
        return "kkt", self.problem.kkt(self.point.x, self.point.y, self.multiplier, gradient).relative

    def evaluated_at(self, x: np.ndarray) -> Evaluation | None:
        """The last look, if it was at x."""
        if not self.evaluated or not np.array_equal(self.point.x, x):
            return None
        return Evaluation(self.loss, self.gradient - self.ridge * x, self.slope, self.margins)

    def finish(self) -> None:
        """x is exactly sparse at all times, and certified at every look."""
        if not self.evaluated:
            self._start()
        self.certificate = Certificate(self.objective, self.lower_bound)

    def restore(self, tables: dict[str, np.ndarray]) -> None:
        """Go on from an earlier point."""
        super().restore(tables)
        self.evaluated = False

    # -- a step ----------------------------------------------------------------------------------------------

    def _start(self) -> None:
        margins(self.problem.rows, self.every, self.point.x, self.margins)
        self.loss = self._expand(0.0)
        self._evaluate_point()

    def _expand(self, t: float) -> float:
        """The mean loss so far along the move; slopes and curvatures there."""
        total = expand_along(self.samples, self.every, self.margins, self.move, t, self.slope, self.curvatures)
        return float(total) / self.problem.n_samples

    def _count(self, samples: int) -> None:
        self.point.clock[1] += samples
        self.touched += samples

    def _evaluate_point(self) -> None:
        """All features at x, where the loss and its slopes are known."""
        problem, n, x = self.problem, self.problem.n_samples, self.point.x
        self.objective = self.loss + problem.penalty(x)
        self.gradient = sum_rows(problem.rows, self.every, self.slope, problem.nnz) / n + self.ridge * x
        self._count(n)
        self.worst = float(violations(x, self.gradient, self.paths.threshold).max())
        self.point.y[:] = self.paths.values(x)
        self.multiplier = self.paths.prox(x - self.gradient, 1.0).multiplier
        self.point.dual[:] = self.multiplier / self.rho
        self.evaluated = True
        self._count(self._raise_bound(self.slope, self.margins, self.gradient - self.ridge * x))

    def _step(self) -> None:
        """Minimise over the features that pull most; then look at all."""
        before, worst = self.objective, self.worst
        chosen = self._chosen()
        gradient, left = self.gradient[chosen.features], worst
        for _ in range(MOST_MODELS):
            gradient = self._descend(chosen, gradient, LEFT * left)
            left = violations(self.point.x[chosen.features], gradient, chosen.threshold).max(initial=0.0)
            if self.slow or left <= LEFT * worst:
                break
        self._evaluate_point()
        spent = self.touched > MOST_PASSES * self.problem.n_samples and not self.dear
        idle = before - self.objective <= ROUNDING * abs(before) and self.worst >= 0.5 * worst
        self.slow = self.slow or idle or spent

    def _chosen(self) -> Chosen:
        x, threshold = self.point.x, self.paths.threshold
        pulls = violations(x, self.gradient, threshold)
        pulls[x != 0.0] = np.inf
        features = np.flatnonzero(pulls)
        most = max(FIRST_CHOSEN, GROWTH * int(np.count_nonzero(x)))
        if features.size > most:
            features = np.sort(features[np.argpartition(-pulls[features], most)[:most]])
        part = self.columns[:, features]
        columns = from_matrix(part.T if self.problem.is_sparse else np.ascontiguousarray(part.T))
        return Chosen(features, columns, threshold[features], stored_entries(columns))

    def _descend(self, chosen: Chosen, gradient: np.ndarray, goal: float) -> np.ndarray:
        """A model at x, and from x as far towards its minimiser as the objective falls; the gradient there."""
        n, x = self.problem.n_samples, self.point.x[chosen.features]
        new, sweeps, arrived = self._minimised(chosen, x, goal)
        multiply_transposed(chosen.columns, new - x, self.move)
        fell = self._search(chosen, x, new, float(gradient @ (new - x)))
        self.slow = not (arrived and fell)
        gradient = np.empty(x.size)
        multiply(chosen.columns, self.slope / n, gradient)
        # Besides the sweeps: the curvatures, the move, and this gradient.
        self._count(round(n * (sweeps + 3.0) * chosen.entries / max(self.problem.nnz, 1)))
        return gradient + self.ridge[chosen.features] * self.point.x[chosen.features]

    def _minimised(self, chosen: Chosen, x: np.ndarray, goal: float) -> tuple[np.ndarray, float, bool]:
        """Where the model at x is smallest; after how many sweeps, and whether they were enough.

        With the entries of every sample times the root of its curvature the model is one of least squares.
        """
        n, entries = self.problem.n_samples, max(chosen.entries, 1)
        root = np.sqrt(np.maximum(self.curvatures, LEAST_BEND * self.problem.loss.curvature_bound) / n)
        columns, curvature = scaled_entries(chosen.columns, root), np.empty(x.size)
        norms_squared(columns, curvature)
        ridge = self.ridge[chosen.features]
        curvature += ridge
        curvature = np.maximum(curvature, LEAST_CURVATURE * curvature.max(initial=np.finfo(float).tiny))
        new, residual = x.copy(), self.slope / (n * root)
        model = (columns, curvature, chosen.threshold, ridge, new, residual, goal, SHORT_SWEEPS)
        most, few = max(float(MOST_SWEEPS), x.size**3 / (SOLVE * entries)), max(ENTRIES_PER_CHUNK / entries, 1.0)
        self.dear = most > MOST_SWEEPS
        sweeps, arrived = 0.0, False
        while sweeps < most and not arrived:
            _cancel.check_cancelled()
            made, arrived = descend(*model, min(few, most - sweeps))
            sweeps += made
        return new, sweeps, arrived

    def _search(self, chosen: Chosen, x: np.ndarray, new: np.ndarray, smooth: float) -> bool:
        """From x towards `new`; False where that leads nowhere."""
        threshold, ridge, losses = chosen.threshold, self.ridge[chosen.features], {}

        def at(t: float) -> np.ndarray:
            return new if t == 1.0 else x + t * (new - x)

        def penalty(x: np.ndarray) -> float:
            return float(threshold @ np.abs(x)) + 0.5 * float(x @ (ridge * x))

        def merit(t: float) -> float:
            losses[t] = self._expand(t)
            return losses[t] + penalty(at(t))

        expected = smooth + float(threshold @ (np.abs(new) - np.abs(x)))
        length = shorten(merit, self.loss + penalty(x), expected)
        if length == 0.0:
            self.move[:] = 0.0
            merit(0.0)
        self.margins += length * self.move
        self.loss = losses[length]
        self.point.x[chosen.features] = at(length)
        return length > 0.0

"""Diagnostics of one point: objective, KKT residual and duality gap, from one evaluation of the samples."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from skadmm.backends.base import Evaluation
from skadmm.problem.certificate import Assessment, Certifier
from skadmm.problem.kkt import KKT
from skadmm.problem.problem import Problem


class Diagnostics(NamedTuple):
    """The objective and the optimality measures of a point (x, y) and its multiplier."""

    loss: float
    gradient: np.ndarray
    """The gradient of the mean loss at x."""
    objective: float
    """The objective at (x, y(x)) where B is invertible, else at (x, y)."""
    kkt: KKT
    gap: float
    """The relative duality gap; NaN without a certificate."""
    lower_bound: float
    """The lower bound of the optimum behind the gap; −∞ without one."""
    samples_read: int
    """The number of samples that a stopping test counts for these numbers."""
    by_solver: bool = False
    """True where the solver assessed the point itself, with more accuracy than the general evaluation has."""


class Evaluator:
    """Evaluates points of one problem for the record. The samples are not read twice for the same point: the arrays
    given are kept, and must not be changed afterwards.

    Parameters
    ----------
    problem : Problem
    known : function of x
        The solver's own evaluation of all samples at x, or None where it keeps none.
    assessed : function of x and y
        The solver's own assessment of (x, y), or None where it has none.
    """

    def __init__(
        self,
        problem: Problem,
        known: Callable[[np.ndarray], Evaluation | None],
        assessed: Callable[[np.ndarray, np.ndarray], Assessment | None],
    ) -> None:
        self.problem = problem
        self.certifier = Certifier(problem)
        self.has_y_of_x = problem.constraint.has_y_of_x
        self._known, self._assessed = known, assessed
        self._last_evaluated: tuple[tuple[np.ndarray, ...], Diagnostics] | None = None
        self._last_average: tuple[tuple[np.ndarray, ...], float] | None = None

    def at(self, x: np.ndarray, y: np.ndarray, multiplier: np.ndarray) -> Diagnostics:
        """Objective, optimality residual and gap at (x, y) with the unscaled multiplier."""
        if self._last_evaluated is not None and _same(self._last_evaluated[0], (x, y, multiplier)):
            return self._last_evaluated[1]
        diagnostics = self._by_solver(x, y) or self._evaluate(x, y, multiplier)
        self._last_evaluated = (x, y, multiplier), diagnostics
        return diagnostics

    def _by_solver(self, x: np.ndarray, y: np.ndarray) -> Diagnostics | None:
        """The solver's own assessment of a point, or None where it has none."""
        own = self._assessed(x, y)
        if own is None:
            return None
        bounds = own.certificate
        gap = bounds.relative if np.isfinite(bounds.dual) else np.nan
        return Diagnostics(own.loss, own.gradient, bounds.primal, own.kkt, gap, bounds.dual, 0, own.more_accurate)

    def _evaluate(self, x: np.ndarray, y: np.ndarray, multiplier: np.ndarray) -> Diagnostics:
        problem = self.problem
        evaluation = self._known(x)
        if evaluation is None:
            evaluation = problem.backend.evaluations.uncounted(x)
        y_of_x = problem.y_of_x(x)
        objective = evaluation.loss + problem.penalty(x, y if y_of_x is None else y_of_x)
        kkt = problem.kkt(x, y, multiplier, evaluation.gradient, evaluation.loss)
        gap, lower_bound, extra = self._bound(objective, evaluation, multiplier)
        samples_read = problem.n_samples + extra
        return Diagnostics(evaluation.loss, evaluation.gradient, objective, kkt, gap, lower_bound, samples_read)

    def _bound(self, objective: float, evaluation: Evaluation, multiplier: np.ndarray) -> tuple[float, float, int]:
        """The relative gap, the lower bound behind it, and the samples read beyond one evaluation."""
        certifier = self.certifier
        if certifier.kind == "none" or not self.has_y_of_x:
            return np.nan, -np.inf, 0
        slopes, gradient, extra = evaluation.slopes, evaluation.gradient, 0
        if certifier.free.size:
            # Slopes orthogonal to the free features need margins here; elsewhere the solver computes them itself.
            if evaluation.margins is None:
                return np.nan, -np.inf, 0
            orthogonal = certifier.orthogonal_slopes(slopes, evaluation.margins)
            if orthogonal is None:
                return np.nan, -np.inf, 0
            slopes, gradient, extra = orthogonal
        bounds = certifier.certify(objective, slopes, gradient, multiplier)
        return bounds.relative, bounds.dual, extra

    def average_objective(self, x: np.ndarray, y: np.ndarray) -> float:
        """The objective at the averages, which the end of a run does not change."""
        if self._last_evaluated is not None and _same(self._last_evaluated[0][:2], (x, y)):
            return self._last_evaluated[1].objective  # after one step the average is the point itself
        if self._last_average is None or not _same(self._last_average[0], (x, y)):
            y_of_x = self.problem.y_of_x(x)
            self._last_average = (x, y), self.problem.objective(x, y if y_of_x is None else y_of_x)
        return self._last_average[1]

    def criterion(self, diagnostics: Diagnostics) -> float:
        """The number by which points are compared: the objective, or the KKT residual where y(x) does not exist."""
        return diagnostics.objective if self.has_y_of_x else diagnostics.kkt.relative


def _same(kept: tuple[np.ndarray, ...], arrays: tuple[np.ndarray, ...]) -> bool:
    """Return whether the arrays are the ones that were kept."""
    return all(one is two or np.array_equal(one, two) for one, two in zip(kept, arrays, strict=True))

"""The record of a run: diagnostics of its points (objective, KKT residual and duality gap, from one evaluation of the
samples), the rows of its trace, the best point so far, and what callbacks see."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple, Self

import numpy as np

from skadmm.backends.base import Evaluation
from skadmm.problem.certificate import Assessment, Certifier
from skadmm.problem.kkt import KKT, kkt_residual
from skadmm.problem.problem import Problem
from skadmm.run.result import TRACE_COLUMNS, Callback, Snapshot
from skadmm.solvers.base import Engine

SAME_VALUE = 1e-9
"""Where two objectives differ by less than this, relatively, the point with the smaller KKT residual is better."""
BLOW_UP = 1e12
"""A loss this many times the objective at the start means divergence."""


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
        self.has_y_of_x = problem.constraint.B is None or problem.constraint.has_y_of_x
        self._known, self._assessed = known, assessed
        self._last_evaluated: tuple[tuple[np.ndarray, ...], Diagnostics] | None = None
        self._last_average: tuple[tuple[np.ndarray, ...], float] | None = None

    def at(self, x: np.ndarray, y: np.ndarray, multiplier: np.ndarray) -> Diagnostics:
        """Objective, optimality residual and gap at (x, y) with the unscaled multiplier."""
        if self._last_evaluated is not None and _same(self._last_evaluated[0], (x, y, multiplier)):
            return self._last_evaluated[1]
        problem, own = self.problem, self._assessed(x, y)
        if own is None:
            evaluation = self._known(x) or problem.backend.evaluations.uncounted(x)
            loss, gradient = evaluation.loss, evaluation.gradient
            y_of_x = problem.y_of_x(x)
            objective = loss + problem.penalty(x, y if y_of_x is None else y_of_x)
            kkt = kkt_residual(problem, x, y, multiplier, gradient, loss)
            gap, lower_bound, extra = self._bound(objective, evaluation, multiplier)
            samples_read = problem.n_samples + extra
            diagnostics = Diagnostics(loss, gradient, objective, kkt, gap, lower_bound, samples_read)
        else:
            bounds = own.certificate
            gap = bounds.relative if np.isfinite(bounds.dual) else np.nan
            diagnostics = Diagnostics(
                own.loss, own.gradient, bounds.primal, own.kkt, gap, bounds.dual, 0, own.more_accurate
            )
        self._last_evaluated = (x, y, multiplier), diagnostics
        return diagnostics

    def _bound(self, objective: float, evaluation: Evaluation, multiplier: np.ndarray) -> tuple[float, float, int]:
        """The relative gap, the lower bound behind it, and the samples read beyond one evaluation."""
        certifier = self.certifier
        if certifier.kind == "none" or not self.has_y_of_x:
            return np.nan, -np.inf, 0
        if not np.isfinite(objective):  # counts far away: the exponential overflows, and there are no slopes
            return np.inf, -np.inf, 0
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


class Iterate(NamedTuple):
    """A copy of where a run stands, in the user's coordinates."""

    x: np.ndarray
    y: np.ndarray
    dual: np.ndarray
    x_average: np.ndarray
    y_average: np.ndarray

    def copy(self) -> Self:
        """The same numbers in arrays of its own."""
        return self._replace(**{name: array.copy() for name, array in self._asdict().items()})


@dataclass(kw_only=True)
class History:
    """What a run has recorded; part of its checkpoint."""

    rows: list[dict[str, float]] = field(default_factory=list)
    """The trace."""
    first_objective: float = np.nan
    """The objective at the first recording."""
    last_certified: Iterate
    """The last recorded point whose objective was finite and had not blown up."""
    best_point: Iterate
    """The best recorded point; kept where there is a tolerance to meet, as the next three are."""
    best_value: float = np.inf
    """The objective of the best point, or its KKT residual where y(x) does not exist."""
    best_kkt: float = np.inf
    """The relative KKT residual of the best point."""
    best_rho: float
    """The penalty parameter ρ at the best point."""
    lower_bound: float = -np.inf
    """The largest lower bound of the optimum at a recorded point; it holds for every other point too."""

    def check(self) -> None:
        """Raise where the rows cannot be those of a recording."""
        rows = [list(row.values()) for row in self.rows if row.keys() == set(TRACE_COLUMNS)]
        if len(rows) != len(self.rows) or not all(isinstance(value, float) for row in rows for value in row):
            raise ValueError("the records do not have the columns of a trace, or hold values that are not numbers")


class Recorder:
    """Evaluates where an engine stands, and keeps the record.

    Parameters
    ----------
    method : str
        The name of the method, for callbacks.
    original : Problem
        The problem as the user gave it, without the part of y that folding Ω into ψ adds.
    problem : Problem
        The one that is evaluated.
    engine : Engine
    scale : array or None
        The engine's x is u with x = scale · u; None where it is x itself.
    test_problem : Problem or None
        Held-out data.
    callbacks : functions of a Snapshot
    """

    def __init__(
        self,
        method: str,
        original: Problem,
        problem: Problem,
        engine: Engine,
        *,
        scale: np.ndarray | None,
        test_problem: Problem | None,
        callbacks: Sequence[Callback],
    ) -> None:
        self.method, self.original, self.engine, self.scale = method, original, engine, scale
        if scale is None:
            self.evaluator = Evaluator(problem, engine.evaluated_at, engine.assessed)
        else:  # the engine's evaluations are in other coordinates
            self.evaluator = Evaluator(problem, lambda x: None, lambda x, y: None)
        self.test_problem, self.callbacks = test_problem, callbacks
        self._last: tuple[int, Iterate] | None = None
        """The last copy made, and the steps before it."""
        self._diagnosed: tuple[Iterate, float, Diagnostics] | None = None
        """The last iterate evaluated, with its rho."""
        start = self.iterate()
        self.history = History(last_certified=start, best_point=start, best_rho=engine.rho)
        self.failure: Exception | None = None
        """What a callback raised."""

    # -- where the engine stands -----------------------------------------------------------------------------

    def x(self) -> np.ndarray:
        """The engine's point in the user's coordinates; not a copy where they are the same."""
        u = self.engine.point.x
        return u if self.scale is None else self.scale * u

    def iterate(self) -> Iterate:
        """A copy of where the engine stands; the last one where it has not moved since."""
        point, x = self.engine.point, self.x()
        steps = int(point.clock[0])
        if self._last is not None and self._last[0] == steps:
            last, equal = self._last[1], np.array_equal
            if equal(last.x, x) and equal(last.y, point.y) and equal(last.dual, point.dual):
                return last
        x, y = x.copy(), point.y.copy()
        self._last = steps, Iterate(x, y, point.dual.copy(), *self._averages(steps, x, y))
        return self._last[1]

    def restart(self) -> None:
        """Forget the current iterate, because the engine is about to resume from a checkpoint."""
        self._last = self._diagnosed = None
        history = self.history  # its points are overwritten, so they must not share arrays with others
        history.last_certified, history.best_point = history.last_certified.copy(), history.best_point.copy()

    def put_back(self, iterate: Iterate) -> None:
        """Set the engine to an earlier iterate."""
        point = self.engine.point
        point.x[:] = iterate.x if self.scale is None else iterate.x / self.scale
        point.y[:], point.dual[:] = iterate.y, iterate.dual

    def _averages(self, steps: int, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The averages over the steps; the point itself before there is another, or where the method has none."""
        point = self.engine.point
        if steps == 0 or not self.engine.averages:
            return x, y
        x_sum = point.x_sum if self.scale is None else self.scale * point.x_sum
        if steps == 1 and np.array_equal(x_sum, x) and np.array_equal(point.y_sum, y):
            return x, y
        return x_sum / steps, point.y_sum / steps

    # -- recording -------------------------------------------------------------------------------------------

    def diagnose(self, iterate: Iterate) -> Diagnostics:
        """Evaluate a point."""
        rho = self.engine.rho
        if self._diagnosed is None or self._diagnosed[0] is not iterate or self._diagnosed[1] != rho:
            self._diagnosed = iterate, rho, self.evaluator.at(iterate.x, iterate.y, rho * iterate.dual)
        return self._diagnosed[2]

    def row(self, iterate: Iterate, diagnostics: Diagnostics, passes: float, seconds: float) -> dict[str, float]:
        """The row of the trace for a point and its diagnostics."""
        if iterate.x_average is iterate.x and iterate.y_average is iterate.y:
            average = diagnostics.objective
        else:
            average = self.evaluator.average_objective(iterate.x_average, iterate.y_average)
        return {
            "passes": passes,
            "seconds": seconds,
            "objective": diagnostics.objective,
            "objective_average": average,
            "feasibility": diagnostics.kkt.feasibility,
            "kkt": diagnostics.kkt.relative,
            "gap": diagnostics.gap,
            "test_loss": np.nan if self.test_problem is None else self.test_problem.loss_value(iterate.x),
        }

    def has_blown_up(self, diagnostics: Diagnostics) -> bool:
        """Return whether the objective is not a number, or far above that of the start."""
        history = self.history
        if not history.rows:
            history.first_objective = diagnostics.objective
        limit = BLOW_UP * max(1.0, abs(history.first_objective))
        return bool(np.isnan(diagnostics.objective) or diagnostics.loss > limit)

    def keep(self, row: dict[str, float], iterate: Iterate, diagnostics: Diagnostics, *, tol: float | None) -> None:
        """Add the row of a point to the trace; with a tolerance, keep the best point and the largest lower bound."""
        history = self.history
        history.last_certified = iterate
        history.rows.append(row)
        if tol is None:
            return
        known = self.evaluator.certifier.consistent(history.lower_bound, diagnostics.objective)
        history.lower_bound = max(known, diagnostics.lower_bound)
        value = self.evaluator.criterion(diagnostics)
        if self._is_better(value, diagnostics, tol):
            history.best_value, history.best_kkt = value, diagnostics.kkt.relative
            history.best_rho, history.best_point = self.engine.rho, history.last_certified

    def _is_better(self, value: float, diagnostics: Diagnostics, tol: float) -> bool:
        """Return whether a point is better than the best so far. Without a gap, a point that meets the tolerance is
        better than one that does not."""
        history, kkt = self.history, diagnostics.kkt.relative
        if np.isnan(diagnostics.gap) and (kkt <= tol) != (history.best_kkt <= tol):
            return kkt <= tol
        same = abs(value - history.best_value) <= SAME_VALUE * abs(value)
        return kkt < history.best_kkt if same else value < history.best_value

    def call_back(self, row: dict[str, float]) -> bool:
        """Call the callbacks, and return whether one of them asks to stop or has failed."""
        if not self.callbacks:
            return False
        point = self.engine.point
        y, dual = point.y[: self.original.n_split], point.dual[: self.original.n_constraints]
        arrays = {"x": self.x().copy(), "y": y.copy(), "dual": dual.copy()}
        for array in arrays.values():
            array.flags.writeable = False
        snapshot = Snapshot(
            self.method, int(point.clock[0]), row["passes"], row["seconds"],
            record=MappingProxyType(dict(row)), **arrays,
        )  # fmt: skip
        try:
            answers = [bool(callback(snapshot)) for callback in self.callbacks]
        except Exception as error:
            self.failure = error
            return True
        return any(answers)

"""The record of a run: the rows of its trace, the best point so far, and what callbacks see."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple, Self

import numpy as np

from skadmm.problem.problem import Problem
from skadmm.run.diagnostics import Diagnostics, Evaluator
from skadmm.run.result import TRACE_COLUMNS, Callback, Snapshot
from skadmm.solvers.base import Engine

SAME_VALUE = 1e-9
"""Where two objectives differ by less than this, relatively, the point with the smaller KKT residual is better."""
BLOW_UP = 1e12
"""A loss this many times the objective at the start means divergence."""


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
            last = self._last[1]
            if all(np.array_equal(*pair) for pair in ((last.x, x), (last.y, point.y), (last.dual, point.dual))):
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
        """The averages over the steps; the point itself before there is another."""
        point = self.engine.point
        if steps == 0:
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
        history.lower_bound = max(history.lower_bound, diagnostics.lower_bound)
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

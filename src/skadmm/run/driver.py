"""One run in motion: the clock, stopping, recording, callbacks, interrupts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from skadmm import _cancel, _clock
from skadmm.io.state import check_like
from skadmm.problem.certificate import Certificate, Certifier
from skadmm.problem.kkt import KKT
from skadmm.problem.problem import Problem
from skadmm.run import step_size
from skadmm.run.checkpoint import Checkpoint
from skadmm.run.progress import Progress
from skadmm.run.result import TRACE_COLUMNS, Result, Snapshot, Status
from skadmm.solvers.base import Algorithm, Engine

SLICE_SECONDS = 0.05
"""How long compiled code runs before the loop looks up: at the clock, for an interrupt, for a bad number."""
FAR_AWAY = 5.0
"""So many times longer, where rows are on a cluster: there, to look up costs the time of a message."""
LEAST_GAIN = 1e-12
"""A point recorded on the way is the answer where it is better by more than this share than the last one."""
BLOW_UP = 1e12
"""A loss this many times the starting objective means divergence."""


KEPT = ("settings", "seconds", "checking", "first_touched", "next_record", "records", "proved", "first_objective",
        "step_passes", "best_value", "best_kkt", "best_rho", "best_point", "lower_bound")  # fmt: skip
"""What a checkpoint keeps of a run, besides the engine and what the run was started with."""


class Standing(NamedTuple):
    """Where a point stands."""

    loss: float
    objective: float
    kkt: KKT
    gap: float
    lower_bound: float
    """Of the optimum, behind the gap; −∞ without one."""
    touched: int
    """Samples that had to be read for all this."""
    by_solver: bool = False
    """Did the solver assess the point itself?"""


@dataclass(frozen=True)
class Limits:
    """When a run ends, and how often it is recorded."""

    passes: float
    seconds: float
    tol: float | None
    record_every: float


class Run:
    """One run: the engine, the clock and the record."""

    def __init__(
        self,
        algorithm: Algorithm,
        engine: Engine,
        original: Problem,
        problem: Problem,
        order: Any,
        limits: Limits,
        test_problem: Problem | None,
        callbacks: list[Callable[[Snapshot], bool | None]],
        tuning: step_size.StepChoice | None,
        settings: dict[str, Any],
        checkpoint: Checkpoint | None,
        control: _cancel.RunControl,
        scale: np.ndarray | None = None,
    ) -> None:
        self.algorithm, self.engine, self.problem = algorithm, engine, problem
        self.scale = scale  # the engine's x is u, x = scale · u; everyone else sees x
        self.certifier = Certifier(problem)
        self.original = original  # what the user gave: without the part of y that folding added
        self.order, self.limits, self.test_problem, self.callbacks = order, limits, test_problem, callbacks
        self.tuning = tuning
        self.settings, self.checkpoint, self.control = settings, checkpoint, control
        self.n = problem.n_samples
        self.seconds = tuning.seconds if tuning else 0.0
        self.checking = 0  # samples touched by the algorithm's own stopping tests
        self.tuning_samples = tuning.samples_touched if tuning else 0
        self.first_touched = int(engine.point.clock[1])
        self.records: list[dict[str, float]] = []
        self.stopped_on: str | None = None
        self.failure: Exception | None = None
        self.cut_short = False
        """Did the run end in the middle of a step?"""
        self.next_record = 0.0
        self.stood: tuple[np.ndarray, Standing] | None = None
        """Where it was last evaluated, and what was found there."""
        self.gradient_seen = np.zeros(problem.n_features)
        """Of the loss, there."""
        self.averaged: tuple[np.ndarray, float] | None = None
        """The same for the averages' objective."""
        self.good = self._copy_point()
        self.proved = self.good  # the last point whose objective was seen to be sound
        self.has_y_of_x = problem.y_of_x(np.zeros(problem.n_features)) is not None
        self.best_value, self.best_kkt, self.best_rho, self.best_point = np.inf, np.inf, engine.rho, self.good
        """The measure of the best point recorded, its KKT residual, ρ there, and the point; kept where there is a
        tolerance to meet."""
        self.lower_bound = -np.inf
        """The best bound of the optimum at a point recorded, which holds for every other point too."""
        self.first_objective = np.nan
        self.step_passes = 1.0 / engine.steps_per_pass

    # -- counting ------------------------------------------------------------------------------------------

    @property
    def run_passes(self) -> float:
        """Passes of this run, without step selection."""
        return (int(self.engine.point.clock[1]) - self.first_touched + self.checking) / self.n

    @property
    def passes(self) -> float:
        """All passes: the run, what a warm start brought along, and step selection."""
        return (int(self.engine.point.clock[1]) + self.checking + self.tuning_samples) / self.n

    # -- the loop ------------------------------------------------------------------------------------------

    def loop(self, bar: Progress) -> tuple[Status, str]:
        """Run to an end; how it ended, and a sentence about it."""
        pace = 1.0  # steps in a slice; adapted to SLICE_SECONDS
        try:
            while True:
                ending = self._ending(bar)
                if ending is not None:
                    return ending
                pace = self._slice(min(self.next_record, self.limits.passes), pace)
                bar.update(self.run_passes)
                if not np.isfinite(self.engine.point.x).all():
                    return self._diverged("x is no longer finite")
                self.good = self._copy_point()
                self._keep()
        except _cancel.OutOfTime:
            self._take_back()
            return Status.TIME_LIMIT, self._out_of_time
        except (_cancel.Interrupted, KeyboardInterrupt):
            self._take_back()
            return Status.INTERRUPTED, "interrupted; x is the last good iterate"

    @property
    def _out_of_time(self) -> str:
        return f"the time limit of {self.limits.seconds:g} s was reached"

    def _ending(self, bar: Progress) -> tuple[Status, str] | None:
        """Record, where that is due; the ending, where the run has come to one."""
        over_time = self.seconds >= self.limits.seconds
        over_passes = self.run_passes >= self.limits.passes - 1e-12
        finished = self.engine.finished
        ending = None
        if self.run_passes >= self.next_record - 1e-12 or over_time or over_passes or finished:
            ending = self._record(bar)
            done = np.floor((self.run_passes + 1e-12) / self.limits.record_every)
            self.next_record = (done + 1) * self.limits.record_every
        if ending is None and finished:
            ending = self._own_ending()
        if ending is None and self.control.interrupted:
            ending = Status.INTERRUPTED, "interrupted; x is the last good iterate"
        if ending is None and over_time:
            ending = Status.TIME_LIMIT, self._out_of_time
        if ending is None and over_passes:
            made = f"the limit of {self.limits.passes:g} passes was reached"
            ending = Status.PASS_LIMIT, made if self.limits.tol is not None else f"{made}; no tol was given to stop at"
        return ending

    def _take_back(self) -> None:
        """A step was cut short: back to the last whole one."""
        self.cut_short = True
        point = self.engine.point
        for name in ("x", "y", "dual"):
            getattr(point, name)[:] = self.good[name]
        self.engine.give_up()
        if np.isfinite(point.x).all():
            self.good = self._copy_point()

    def _own_ending(self) -> tuple[Status, str]:
        """What the method says when it has finished by itself."""
        measure, reached = self.engine.optimality()
        if self.limits.tol is not None and reached <= self.limits.tol:
            return self._solved(measure, reached)
        return (
            Status.STALLED,
            "no step improves the objective any more; rounding, or an ill-posed problem, allows no more",
        )

    def _slice(self, goal: float, pace: float) -> float:
        """Some steps, on the clock; the pace for the next slice."""
        before = self.run_passes
        left = max(1, int(np.ceil((goal - before) / self.step_passes - 1e-6)))  # rounding is not a step
        clock = self.engine.point.clock
        first = int(clock[0])
        order = self.order.take(first, min(left, int(pace)))
        # Where a step costs more than it did last time the goal may come earlier: never the clock's affair.
        until = max(goal * self.n - 1e-6 + self.first_touched - self.checking, int(clock[1]) + 1)
        began = _clock.now()
        self.control.deadline = began + self.limits.seconds - self.seconds
        try:
            self.engine.advance(order, until)
        finally:
            self.control.deadline = np.inf
            spent = _clock.now() - began
            self.seconds += spent
        steps = max(1, int(clock[0]) - first)
        self.step_passes = max(1.0 / self.engine.steps_per_pass, (self.run_passes - before) / steps)
        goal_seconds = SLICE_SECONDS * (FAR_AWAY if not self.problem.backend.local_rows else 1.0)
        return min(1e9, max(1.0, steps * min(10.0, goal_seconds / max(spent, 1e-9))))

    # -- checkpoints -----------------------------------------------------------------------------------------

    def _keep(self) -> None:
        """Write a checkpoint, where one is due; always the last whole step, before it is recorded."""
        ending = (
            self.engine.finished
            or self.control.interrupted
            or self.seconds >= self.limits.seconds
            or self.run_passes >= self.limits.passes - 1e-12
        )
        if self.checkpoint is not None and (ending or self.checkpoint.due):
            told = {
                "tuning": None if self.tuning is None else asdict(self.tuning),
                "engine": self.engine.state(),
            }
            self.checkpoint.write({name: getattr(self, name) for name in KEPT} | told)

    def resume(self, state: dict[str, Any]) -> None:
        """Take up a checkpoint."""
        self.engine.resume(state["engine"])
        for name in KEPT:
            check_like(getattr(self, name), state[name], name)
            setattr(self, name, state[name])
        counts = (self.seconds, self.checking, self.first_touched, self.next_record)
        sound = all(count >= 0 for count in counts) and self.first_touched <= self.engine.point.clock[1]
        if not (sound and 0 < self.step_passes < np.inf):
            raise ValueError("a clock or a counter is not what it should be")
        rows = [list(row.values()) for row in self.records if row.keys() == set(TRACE_COLUMNS)]
        if len(rows) != len(self.records) or not all(isinstance(value, float) for row in rows for value in row):
            raise ValueError("the records are not what they should be")
        self.good = self._copy_point()
        self.problem.gradient_scale  # noqa: B018  the first recording, long past, has paid for it

    def _record(self, bar: Progress) -> tuple[Status, str] | None:
        """Evaluate where the run stands. Off the clock, except what the stopping test uses."""
        point, tol = self.engine.point, self.limits.tol
        began = _clock.now()
        x = self._in_x(point.x)
        standing = self._evaluate(x, point.y, point.dual)
        if tol is not None and not self.algorithm.certifies:
            self.seconds += _clock.now() - began
            self.checking += standing.touched
        record = self._row(x, standing)
        if not self.records:
            self.first_objective = standing.objective
        if np.isnan(standing.objective) or standing.loss > BLOW_UP * max(1.0, abs(self.first_objective)):
            return self._diverged(f"the objective went from {self.first_objective:.3g} to {standing.objective:.3g}")
        self.proved = self._copy_point()
        self._compare(standing, self.proved)
        self.records.append(record)
        bar.report(record)
        if self._call_back(record):
            return Status.STOPPED, "a callback asked to stop"
        if tol is None or self.algorithm.certifies:
            return None
        measure, reached = ("kkt", standing.kkt.relative) if np.isnan(standing.gap) else ("gap", standing.gap)
        return self._solved(measure, reached) if reached <= tol else None

    def _compare(self, standing: Standing, point: dict[str, np.ndarray]) -> None:
        """Keep the point where it is the best so far: by its objective, or where y(x) does not exist, by its KKT
        residual. Keep the best lower bound, too."""
        if self.limits.tol is not None:
            self.lower_bound = max(self.lower_bound, standing.lower_bound)
        if self.limits.tol is not None and self._criterion(standing) < self.best_value:
            self.best_value, self.best_rho, self.best_point = self._criterion(standing), self.engine.rho, point
            self.best_kkt = standing.kkt.relative

    def _criterion(self, standing: Standing) -> float:
        return standing.objective if self.has_y_of_x else standing.kkt.relative

    def _row(self, x: np.ndarray, standing: Standing) -> dict[str, float]:
        """A row of the trace."""
        point = self.engine.point
        x_average, y_average = self._averages()
        if np.array_equal(x_average, x) and np.array_equal(y_average, point.y):
            average = standing.objective
        else:
            average = self._average_objective(x_average, y_average)
        return {
            "passes": self.passes,
            "seconds": self.seconds,
            "objective": standing.objective,
            "objective_average": average,
            "feasibility": standing.kkt.feasibility,
            "kkt": standing.kkt.relative,
            "gap": standing.gap,
            "test_loss": np.nan if self.test_problem is None else self.test_problem.loss_value(x),
        }

    def _average_objective(self, x: np.ndarray, y: np.ndarray) -> float:
        """At the averages; the end of a run does not move them, so it is not asked for twice."""
        place = np.concatenate([x, y])
        if self.averaged is None or not np.array_equal(place, self.averaged[0]):
            y_of_x = self.problem.y_of_x(x)
            self.averaged = place, self.problem.objective(x, y if y_of_x is None else y_of_x)
        return self.averaged[1]

    def _solved(self, measure: str, reached: float) -> tuple[Status, str]:
        self.stopped_on = measure
        name = "KKT residual" if measure == "kkt" else "duality gap"
        return Status.SOLVED, f"the relative {name} {reached:.2e} met tol={self.limits.tol:g}"

    def _evaluate(self, x: np.ndarray, y: np.ndarray, dual: np.ndarray) -> Standing:
        """Objective, optimality residual and gap, in one look at the samples; none where it stood there before."""
        problem = self.problem
        multiplier = self.engine.rho * dual
        place = np.concatenate([x, y, multiplier])
        if self.stood is not None and np.array_equal(place, self.stood[0]):
            return self.stood[1]
        own = self.engine.assessed(x, y) if self.scale is None else None
        if own is not None:
            self.gradient_seen, bounds = own.gradient, own.certificate
            standing = Standing(own.loss, bounds.primal, own.kkt, bounds.relative, bounds.dual, 0, by_solver=True)
            self.stood = place, standing
            return standing
        evaluation: Any = self.engine.evaluated_at(x) if self.scale is None else None
        loss, gradient, slopes, margins = problem.backend.evaluate(x) if evaluation is None else evaluation
        y_of_x = problem.y_of_x(x)
        objective = loss + problem.penalty(x, y if y_of_x is None else y_of_x)
        self.gradient_seen = gradient
        kkt = problem.kkt(x, y, multiplier, gradient, loss)
        gap, lower_bound, touched = np.nan, -np.inf, self.n
        if self.certifier.kind != "none" and y_of_x is not None:
            straight: tuple[Any, np.ndarray, int] | None = (slopes, gradient, 0)
            if self.certifier.free.size:
                # Elsewhere the samples would have to be placed anew: second-order methods do that, for themselves.
                straight = None if not problem.backend.local_rows else self.certifier.orthogonal_slopes(slopes, margins)
            if straight is not None:
                bounds = self.certifier.certify(objective, straight[0], straight[1], multiplier)
                gap, lower_bound = bounds.relative, bounds.dual
                touched += straight[2]
        standing = Standing(loss, objective, kkt, gap, lower_bound, touched)
        self.stood = place, standing
        return standing

    def _diverged(self, what: str) -> tuple[Status, str]:
        self.good = self.proved
        advice = "Rescale the columns of X and the target" if self.algorithm.stepless else "Try a smaller step"
        other = "" if self.algorithm.stepless else ", or step='auto'"
        return Status.DIVERGED, f"{what}; x is the last good iterate. {advice}{other}"

    def _call_back(self, record: dict[str, float]) -> bool:
        if not self.callbacks:
            return False
        point = self.engine.point
        y, dual = point.y[: self.original.n_split], point.dual[: self.original.n_constraints]
        arrays = {"x": self._in_x(point.x).copy(), "y": y.copy(), "dual": dual.copy()}
        for array in arrays.values():
            array.flags.writeable = False
        snapshot = Snapshot(
            self.algorithm.name, int(point.clock[0]), self.passes, self.seconds,
            record=MappingProxyType(dict(record)), **arrays,
        )  # fmt: skip
        try:
            answers = [bool(callback(snapshot)) for callback in self.callbacks]
        except Exception as error:
            self.failure = error
            return True
        return any(answers)

    # -- the end -------------------------------------------------------------------------------------------

    def _in_x(self, u: np.ndarray) -> np.ndarray:
        """The engine's coordinates as the user's."""
        return u if self.scale is None else self.scale * u

    def _averages(self) -> tuple[np.ndarray, np.ndarray]:
        point = self.engine.point
        steps = int(point.clock[0])
        if steps == 0:
            return self._in_x(point.x).copy(), point.y.copy()
        return self._in_x(point.x_sum) / steps, point.y_sum / steps

    def _copy_point(self) -> dict[str, np.ndarray]:
        point = self.engine.point
        x_average, y_average = self._averages()
        return {
            "x": self._in_x(point.x).copy(),
            "y": point.y.copy(),
            "dual": point.dual.copy(),
            "x_average": x_average,
            "y_average": y_average,
        }

    def result(self, status: Status, message: str) -> Result:
        """The result, in the shape of the problem the user gave (without the part that folding added)."""
        good = self.good
        x, y = good["x"], good["y"]
        dual, standing = self._best_dual(x, y, good["dual"])
        gap = self._final_gap(standing)
        return Result(
            x=x,
            y=y[: self.original.n_split],
            dual=dual[: self.original.n_constraints],
            x_average=good["x_average"],
            y_average=good["y_average"][: self.original.n_split],
            status=status,
            message=message,
            method=self.algorithm.name,
            settings=self.settings | {"rho": self.engine.rho},
            objective=standing.objective,
            feasibility=standing.kkt.feasibility,
            kkt=standing.kkt,
            gap=gap if np.isfinite(gap) else np.nan,
            stopped_on=self.stopped_on,
            passes=self.passes,
            seconds=self.seconds,
            records=self.records,
            tuning=self.tuning,
            solver=self.engine.solver_name,
            # The engine has ended: its tables are the result's now.
            tables=self.engine.tables() | ({} if self.scale is None else {"scale": self.scale}),
        )

    def _kkt_of(self, point: dict[str, np.ndarray]) -> float:
        return self._evaluate(point["x"], point["y"], point["dual"]).kkt.relative

    def _final_gap(self, standing: Standing) -> float:
        """The relative gap of the answer: with the method's own lower bound where it has one, else the best one seen.
        The answer may be another point than the one whose gap met the tolerance."""
        if self.engine.certificate is None:
            lower_bound = max(self.lower_bound, standing.lower_bound)
            return Certificate(standing.objective, lower_bound).relative if lower_bound > -np.inf else standing.gap
        return self.engine.certificate._replace(primal=standing.objective).relative

    def _best_dual(self, x: np.ndarray, y: np.ndarray, dual: np.ndarray) -> tuple[np.ndarray, Standing]:
        """The multiplier of the answer: the method's, or the one that proves its gap where that is more optimal."""
        standing = self._evaluate(x, y, dual)
        if not self.algorithm.certifies or self.certifier.kind == "none" or not self.has_y_of_x or not y.size:
            return dual, standing
        gradient = self.gradient_seen
        scale, multiplier, _ = self.certifier.dual_point(gradient, self.engine.rho * dual, y == 0)
        other = self.problem.kkt(x, y, scale * multiplier, gradient, standing.loss)
        if other.relative < standing.kkt.relative:
            return scale * multiplier / self.engine.rho, standing._replace(kkt=other)
        return dual, standing

    def revised(self, status: Status, message: str) -> tuple[Status, str]:
        """How the run ended, now that the method has put its answer in place: that may meet the tolerance."""
        if self.limits.tol is None or status not in (Status.STALLED, Status.PASS_LIMIT):
            return status, message
        good = self.good
        dual, standing = self._best_dual(good["x"], good["y"], good["dual"])
        gap = self._final_gap(standing)
        measure, reached = ("gap", gap) if np.isfinite(gap) else ("kkt", standing.kkt.relative)
        if not reached <= self.limits.tol:  # NaN where numbers have overflowed
            return status, message
        self.good = good | {"dual": dual}
        return self._solved(measure, reached)

    def finish(self, status: Status) -> None:
        """Let the method put its answer in place, on the clock; where time has run out, or somebody waits, the last
        sound point is the answer; after a divergence all stays as it is."""
        if status is not Status.DIVERGED and not self.cut_short:
            reached = self.good
            before = self.good["x"]
            if status in (Status.TIME_LIMIT, Status.INTERRUPTED):
                self._take_back()
            else:
                began = _clock.now()
                self.engine.finish()
                self.seconds += _clock.now() - began
            if np.isfinite(self.engine.point.x).all():
                good = self.good = self._copy_point()
                if self.records and not np.array_equal(before, good["x"]):
                    self.records.append(self._row(good["x"], self._evaluate(good["x"], good["y"], good["dual"])))
            if self.stopped_on == "kkt" and self._kkt_of(self.good) > (self.limits.tol or 0.0):
                # The finishing touches have cost more than the tolerance allows.
                self.good = reached if self._kkt_of(reached) <= self._kkt_of(self.good) else self.good
            if self.stopped_on != "kkt" or self.best_kkt <= (self.limits.tol or 0.0):
                standing = self._evaluate(self.good["x"], self.good["y"], self.good["dual"])
                last = self._criterion(standing)
                # A solver that assesses its points itself has proved this one, to more digits than are compared here.
                proved = standing.by_solver and standing.gap <= (self.limits.tol or 0.0)
                if not proved and self.best_value < last - LEAST_GAIN * abs(last):
                    dual = self.best_point["dual"] * (self.best_rho / self.engine.rho)
                    self.good = self.best_point | {"dual": dual}
        self.engine.close()

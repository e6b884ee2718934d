"""The loop of a run: steps in slices, its limits and endings, interrupts and checkpoints."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from skadmm import _cancel
from skadmm.io import state as stored
from skadmm.run.checkpoint import Checkpoint
from skadmm.run.progress import Progress
from skadmm.run.recording import Recorder
from skadmm.run.result import Status
from skadmm.run.sampling import Sampler
from skadmm.run.step_size import StepChoice
from skadmm.solvers.base import Algorithm, Engine

SLICE_SECONDS = 0.05
"""How long compiled code runs before the loop checks the clock, interrupts and whether numbers are finite."""
REMOTE_FACTOR = 5.0
"""Slices are this many times longer where rows are on a cluster: there each one costs the time of a message."""


MEASURES = {"gap": "duality gap", "kkt": "KKT residual"}
"""What a tolerance is compared with, by the name that ``Result.stopped_on`` gives it."""


@dataclass(frozen=True)
class Limits:
    """When a run ends, and how often it is recorded."""

    passes: float
    """Passes over the data, step selection excluded."""
    seconds: float
    """The time limit; infinite where there is none."""
    tol: float | None
    record_every: float
    """Passes between two recordings; infinite for the start and the end only."""


class Ending(NamedTuple):
    """How a run ended."""

    status: Status
    message: str
    """A sentence about it, without its full stop."""
    stopped_on: str | None = None
    """The measure that met the tolerance; None where none did."""
    cut_short: bool = False
    """True where the run ended in the middle of a step."""


def solved(measure: str, reached: float, tol: float) -> Ending:
    """The tolerance was met."""
    return Ending(Status.SOLVED, f"the relative {MEASURES[measure]} {reached:.2e} met tol={tol:g}", measure)


def out_of_time(limits: Limits, *, cut_short: bool = False) -> Ending:
    """The time limit was reached."""
    return Ending(Status.TIME_LIMIT, f"the time limit of {limits.seconds:g} s was reached", cut_short=cut_short)


def out_of_passes(limits: Limits) -> Ending:
    """The limit of passes was reached."""
    reached = f"the limit of {limits.passes:g} passes was reached"
    return Ending(Status.PASS_LIMIT, reached if limits.tol is not None else f"{reached}; no tol was given to stop at")


def interrupted(*, cut_short: bool = False) -> Ending:
    """The user pressed Ctrl-C."""
    return Ending(Status.INTERRUPTED, "interrupted; x is the last complete iterate", cut_short=cut_short)


STALLED = Ending(
    Status.STALLED, "no step improves the objective any more, because of rounding or because the problem is ill-posed"
)
STOPPED = Ending(Status.STOPPED, "a callback stopped the run")


def stalled(limits: Limits, measure: str, reached: float) -> Ending:
    """No step improves the objective any more. Without a tolerance that is the expected end of a run."""
    if limits.tol is not None or measure not in MEASURES or not np.isfinite(reached):
        return STALLED
    message = f"no step improves the objective any more, at a relative {MEASURES[measure]} of {reached:.2e}"
    return STALLED._replace(message=f"{message}; no tol was given to stop at")


def diverged(cause: str, *, has_step: bool) -> Ending:
    """Numbers are no longer finite, or the objective has grown without bound."""
    advice = "Try a smaller step, or step='auto'" if has_step else "Rescale the columns of X and the target"
    return Ending(Status.DIVERGED, f"{cause}; x is the last finite iterate. {advice}")


@dataclass(kw_only=True)
class Counters:
    """What a run has spent so far; part of its checkpoint."""

    seconds: float
    """The time of steps, of step selection, and of the stopping tests of methods that have none of their own."""
    checking: int = 0
    """Samples read by those stopping tests."""
    first_touched: int
    """Samples that a warm start had touched before this run."""
    next_record: float = 0.0
    """Passes at which the next recording is due."""
    step_passes: float
    """Passes that a step took in the last slice."""

    def check(self, touched: int) -> None:
        """Refuse values that no run can have."""
        counts = (self.seconds, self.checking, self.first_touched, self.next_record)
        possible = all(count >= 0 for count in counts) and self.first_touched <= touched
        if not (possible and 0 < self.step_passes < np.inf):
            raise ValueError("a clock or a counter in it is negative or not finite")


class Run:
    """One run: an engine driven to an ending.

    Parameters
    ----------
    algorithm : Algorithm
    recorder : Recorder
        The recorder of the engine to drive.
    sampler : Sampler or None
        Which block each step reads; None where every step reads all blocks.
    bounds : Limits
    tuning : StepChoice or None
        The selection of the step, which counts in passes and seconds.
    settings : dict
        What the result says the run was made with.
    checkpoint : Checkpoint or None
    control : RunControl
        Notices Ctrl-C and the time limit inside a step.
    """

    def __init__(
        self,
        algorithm: Algorithm,
        recorder: Recorder,
        sampler: Sampler | None,
        bounds: Limits,
        *,
        tuning: StepChoice | None,
        settings: dict[str, Any],
        checkpoint: Checkpoint | None,
        control: _cancel.RunControl,
    ) -> None:
        self.algorithm, self.recorder, self.sampler, self.limits = algorithm, recorder, sampler, bounds
        self.tuning, self.settings, self.checkpoint, self.control = tuning, settings, checkpoint, control
        self.problem = recorder.evaluator.problem
        engine = recorder.engine
        self.counters = Counters(
            seconds=tuning.seconds if tuning else 0.0,
            first_touched=int(engine.point.clock[1]),
            next_record=np.inf if algorithm.certifies and bounds.record_every == np.inf else 0.0,
            step_passes=1.0 / engine.steps_per_pass,
        )
        self.last_finite = recorder.history.last_certified
        """The point after the last whole step, whose numbers are finite."""

    @property
    def engine(self) -> Engine:
        """The method in motion."""
        return self.recorder.engine

    # -- counting ------------------------------------------------------------------------------------------

    @property
    def touched(self) -> int:
        """Samples touched by the engine, before a warm start too."""
        return int(self.engine.point.clock[1])

    @property
    def run_passes(self) -> float:
        """Passes of this run, without step selection."""
        return (self.touched - self.counters.first_touched + self.counters.checking) / self.problem.n_samples

    @property
    def passes(self) -> float:
        """All passes: those of the run, of the runs it was started from, and of step selection."""
        selection = self.tuning.samples_touched if self.tuning else 0
        return (self.touched + self.counters.checking + selection) / self.problem.n_samples

    @property
    def _out_of_time(self) -> bool:
        return self.counters.seconds >= self.limits.seconds

    @property
    def _out_of_passes(self) -> bool:
        return self.run_passes >= self.limits.passes - 1e-12

    # -- the loop ------------------------------------------------------------------------------------------

    def loop(self, bar: Progress | None) -> Ending:
        """Run to an ending."""
        pace = 1.0  # steps per slice; adapted to SLICE_SECONDS
        self.control.listens = True
        try:
            while True:
                ending = self._ending(bar)
                if ending is not None:
                    return ending
                pace = self._slice(min(self.counters.next_record, self.limits.passes), pace)
                if bar is not None:
                    bar.update(self.run_passes)
                if not np.isfinite(self.engine.point.x).all():
                    return self._diverged("x is no longer finite")
                self.last_finite = self.recorder.iterate()
                if self.checkpoint is not None:
                    self._write_checkpoint(self.checkpoint)
        except _cancel.OutOfTime:
            self.take_back()
            return out_of_time(self.limits, cut_short=True)
        except (_cancel.Interrupted, KeyboardInterrupt):
            self.take_back()
            return interrupted(cut_short=True)
        finally:
            self.control.listens = False

    def _ending(self, bar: Progress | None) -> Ending | None:
        """Record where that is due, and return how the run ends where it has ended, else None."""
        no_time, no_passes, finished = self._out_of_time, self._out_of_passes, self.engine.finished
        ending = None
        if self.run_passes >= self.counters.next_record - 1e-12 or no_time or no_passes or finished:
            ending = self._record(bar)
            recorded = np.floor((self.run_passes + 1e-12) / self.limits.record_every)
            self.counters.next_record = (recorded + 1) * self.limits.record_every
        if ending is not None:
            return ending
        if finished:
            measure, reached = self.engine.optimality()
            return self._solved(measure, reached) or stalled(self.limits, measure, reached)
        if self.control.interrupted:
            return interrupted()
        if no_time:
            return out_of_time(self.limits)
        return out_of_passes(self.limits) if no_passes else None

    def _solved(self, measure: str, reached: float) -> Ending | None:
        """The ending, where a measure of optimality meets the tolerance."""
        tol = self.limits.tol
        return solved(measure, reached, tol) if tol is not None and reached <= tol else None

    def _diverged(self, cause: str) -> Ending:
        history = self.recorder.history
        self.last_finite = history.best_point if np.isfinite(history.best_value) else history.last_certified
        return diverged(cause, has_step=not self.algorithm.stepless)

    def take_back(self) -> None:
        """Return to the point after the last complete step, because a step was interrupted."""
        self.recorder.put_back(self.last_finite)
        self.engine.give_up()
        if np.isfinite(self.engine.point.x).all():
            self.last_finite = self.recorder.iterate()

    def _slice(self, goal: float, pace: float) -> float:
        """Take some steps, with the clock running, and return the number of steps for the next slice."""
        counters, engine = self.counters, self.engine
        before = self.run_passes
        left = max(1, int(np.ceil((goal - before) / counters.step_passes - 1e-6)))  # rounding is not a step
        clock = engine.point.clock
        first = int(clock[0])
        count = min(left, int(pace))
        order = np.zeros(count, np.int64) if self.sampler is None else self.sampler.take(first, count)
        # A step may touch more samples than the last ones did, and then the goal is reached earlier.
        goal_samples = goal * self.problem.n_samples - 1e-6 + counters.first_touched - counters.checking
        began = _cancel.now()
        self.control.deadline = began + self.limits.seconds - counters.seconds
        try:
            engine.advance(order, max(goal_samples, int(clock[1]) + 1))
        finally:
            self.control.deadline = np.inf
            spent = _cancel.now() - began
            counters.seconds += spent
        steps = max(1, int(clock[0]) - first)
        counters.step_passes = max(1.0 / engine.steps_per_pass, (self.run_passes - before) / steps)
        goal_seconds = SLICE_SECONDS * (1.0 if self.problem.backend.local_rows else REMOTE_FACTOR)
        return min(1e9, max(1.0, steps * min(10.0, goal_seconds / max(spent, 1e-9))))

    def _record(self, bar: Progress | None) -> Ending | None:
        """Evaluate the current point. The clock stands still, except where the evaluation is the stopping test."""
        recorder, tol = self.recorder, self.limits.tol
        tested = tol is not None and not self.algorithm.certifies
        began, passes = _cancel.now() if tested else 0.0, self.passes
        iterate = self.last_finite
        diagnostics = recorder.diagnose(iterate)
        if tested:
            self.counters.seconds += _cancel.now() - began
            self.counters.checking += diagnostics.samples_read
            passes = self.passes
        row = recorder.row(iterate, diagnostics, passes, self.counters.seconds)
        if recorder.has_blown_up(diagnostics):
            if self.algorithm.certifies and not self.engine.finished:
                return None  # a candidate, which the line search of the next step refuses or shortens
            first = recorder.history.first_objective
            return self._diverged(f"the objective went from {first:.3g} to {diagnostics.objective:.3g}")
        recorder.keep(row, iterate, diagnostics, tol=tol)
        if bar is not None:
            bar.report(row)
        if recorder.call_back(row):
            return STOPPED
        if not tested:
            return None
        if np.isnan(diagnostics.gap):
            return self._solved("kkt", diagnostics.kkt.relative)
        return self._solved("gap", diagnostics.gap)

    # -- checkpoints -----------------------------------------------------------------------------------------

    def _write_checkpoint(self, checkpoint: Checkpoint) -> None:
        """Write a checkpoint, where one is due: always after a whole step, before it is recorded."""
        ending = self.engine.finished or self.control.interrupted or self._out_of_time or self._out_of_passes
        if ending or checkpoint.due:
            checkpoint.write(self.state())

    def state(self) -> dict[str, Any]:
        """The content of a checkpoint."""
        return {
            "settings": self.settings,
            "tuning": None if self.tuning is None else asdict(self.tuning),
            "counters": stored.capture(self.counters),
            "history": stored.capture(self.recorder.history),
            "engine": self.engine.state(),
        }

    def resume(self, state: dict[str, Any]) -> None:
        """Resume from a checkpoint."""
        self.recorder.restart()
        self.engine.resume(state["engine"])
        stored.check_like(self.settings, state["settings"], "settings")
        self.settings = state["settings"]
        stored.restore(self.counters, state["counters"])
        stored.restore(self.recorder.history, state["history"])
        self.counters.check(self.touched)
        self.recorder.history.check()
        self.last_finite = self.recorder.iterate()
        self.problem.gradient_scale  # noqa: B018  the first recording has paid for it, long ago

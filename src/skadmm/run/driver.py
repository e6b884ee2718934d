"""The loop of a run: steps in slices, when to stop, interrupts and checkpoints."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from skadmm import _cancel, _clock
from skadmm.io import state as stored
from skadmm.run import limits
from skadmm.run.checkpoint import Checkpoint
from skadmm.run.limits import Ending
from skadmm.run.progress import Progress
from skadmm.run.recording import Recorder
from skadmm.run.sampling import Sampler
from skadmm.run.step_size import StepChoice
from skadmm.solvers.base import Algorithm, Engine

SLICE_SECONDS = 0.05
"""How long compiled code runs before the loop checks the clock, interrupts and whether numbers are finite."""
REMOTE_FACTOR = 5.0
"""Slices are this many times longer where rows are on a cluster: there each one costs the time of a message."""


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
    sampler : Sampler
        Which block each step reads.
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
        sampler: Sampler,
        bounds: limits.Limits,
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
        self.last_finite = recorder.iterate()
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

    def loop(self, bar: Progress) -> Ending:
        """Run to an ending."""
        pace = 1.0  # steps per slice; adapted to SLICE_SECONDS
        try:
            while True:
                ending = self._ending(bar)
                if ending is not None:
                    return ending
                pace = self._slice(min(self.counters.next_record, self.limits.passes), pace)
                bar.update(self.run_passes)
                if not np.isfinite(self.engine.point.x).all():
                    return self._diverged("x is no longer finite")
                self.last_finite = self.recorder.iterate()
                self._write_checkpoint()
        except _cancel.OutOfTime:
            self.take_back()
            return limits.out_of_time(self.limits, cut_short=True)
        except (_cancel.Interrupted, KeyboardInterrupt):
            self.take_back()
            return limits.interrupted(cut_short=True)

    def _ending(self, bar: Progress) -> Ending | None:
        """Record where that is due, and return how the run ends where it has ended, else None."""
        out_of_time, out_of_passes, finished = self._out_of_time, self._out_of_passes, self.engine.finished
        ending = None
        if self.run_passes >= self.counters.next_record - 1e-12 or out_of_time or out_of_passes or finished:
            ending = self._record(bar)
            recorded = np.floor((self.run_passes + 1e-12) / self.limits.record_every)
            self.counters.next_record = (recorded + 1) * self.limits.record_every
        if ending is not None:
            return ending
        if finished:
            measure, reached = self.engine.optimality()
            return self._solved(measure, reached) or limits.STALLED
        if self.control.interrupted:
            return limits.interrupted()
        if out_of_time:
            return limits.out_of_time(self.limits)
        return limits.out_of_passes(self.limits) if out_of_passes else None

    def _solved(self, measure: str, reached: float) -> Ending | None:
        """The ending, where a measure of optimality meets the tolerance."""
        tol = self.limits.tol
        return limits.solved(measure, reached, tol) if tol is not None and reached <= tol else None

    def _diverged(self, cause: str) -> Ending:
        history = self.recorder.history
        self.last_finite = history.best_point if np.isfinite(history.best_value) else history.last_certified
        return limits.diverged(cause, has_step=not self.algorithm.stepless)

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
        order = self.sampler.take(first, min(left, int(pace)))
        # A step may touch more samples than the last ones did, and then the goal is reached earlier.
        goal_samples = goal * self.problem.n_samples - 1e-6 + counters.first_touched - counters.checking
        began = _clock.now()
        self.control.deadline = began + self.limits.seconds - counters.seconds
        try:
            engine.advance(order, max(goal_samples, int(clock[1]) + 1))
        finally:
            self.control.deadline = np.inf
            spent = _clock.now() - began
            counters.seconds += spent
        steps = max(1, int(clock[0]) - first)
        counters.step_passes = max(1.0 / engine.steps_per_pass, (self.run_passes - before) / steps)
        goal_seconds = SLICE_SECONDS * (1.0 if self.problem.backend.local_rows else REMOTE_FACTOR)
        return min(1e9, max(1.0, steps * min(10.0, goal_seconds / max(spent, 1e-9))))

    def _record(self, bar: Progress) -> Ending | None:
        """Evaluate the current point. The clock stands still, except where the evaluation is the stopping test."""
        recorder, tol = self.recorder, self.limits.tol
        tested = tol is not None and not self.algorithm.certifies
        began = _clock.now()
        iterate = self.last_finite
        diagnostics = recorder.diagnose(iterate)
        if tested:
            self.counters.seconds += _clock.now() - began
            self.counters.checking += diagnostics.samples_read
        row = recorder.row(iterate, diagnostics, self.passes, self.counters.seconds)
        if recorder.has_blown_up(diagnostics):
            if self.algorithm.certifies and not self.engine.finished:
                return None  # a candidate, which the line search of the next step refuses or shortens
            first = recorder.history.first_objective
            return self._diverged(f"the objective went from {first:.3g} to {diagnostics.objective:.3g}")
        recorder.keep(row, iterate, diagnostics, tol=tol)
        bar.report(row)
        if recorder.call_back(row):
            return limits.STOPPED
        if not tested:
            return None
        if np.isnan(diagnostics.gap):
            return self._solved("kkt", diagnostics.kkt.relative)
        return self._solved("gap", diagnostics.gap)

    # -- checkpoints -----------------------------------------------------------------------------------------

    def _write_checkpoint(self) -> None:
        """Write a checkpoint, where one is due: always after a whole step, before it is recorded."""
        if self.checkpoint is None:
            return
        ending = self.engine.finished or self.control.interrupted or self._out_of_time or self._out_of_passes
        if ending or self.checkpoint.due:
            self.checkpoint.write(self.state())

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

"""solve(): the only loop. It owns the clock, stopping, recording, callbacks, interrupts."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from skadmm import _checks, stepsize
from skadmm._progress import Progress
from skadmm.algorithms import ALGORITHMS, _split
from skadmm.algorithms._base import Algorithm, Engine, Setup
from skadmm.problem import KKT, Problem, held_out
from skadmm.regularizers import SquaredL2, Zero
from skadmm.result import Result, Snapshot, Status
from skadmm.sampling import as_sampler

SLICE_SECONDS = 0.05
"""How long compiled code runs before the loop looks up: at the clock, for an interrupt, for a bad number."""
BLOW_UP = 1e12
"""An objective this many times its starting value means divergence."""

OMEGA_MODES = ("prox", "system", "fold", "subgradient")


class CallbackError(RuntimeError):
    """A callback raised. What the run had computed is in ``result``."""

    def __init__(self, message: str, result: Result) -> None:
        super().__init__(message)
        self.result = result


def solve(
    problem: Problem,
    method: str = "sa-iu-admm",
    *,
    rho: float = 0.01,
    passes: float = 30,
    step: float | str = "auto",
    batch_size: int = 1,
    sampler: Any = "uniform",
    omega_mode: str | None = None,
    tol: float | None = None,
    time_limit: float | None = None,
    record_every: float = 1.0,
    test: tuple[Any, Any] | None = None,
    x0: Any = None,
    y0: Any = None,
    dual0: Any = None,
    warm_start: Result | None = None,
    callback: Callable[[Snapshot], bool | None] | Iterable[Callable[[Snapshot], bool | None]] = (),
    random_state: Any = 0,
    verbose: int = 0,
    progress: bool | None = None,
) -> Result:
    """Minimise (1/n) Σ ℓ(aᵢ·x, bᵢ) + Ω(x) + ψ(y) subject to A x + B y = c.

    Parameters
    ----------
    problem : Problem
    method : str
        A name in ``skadmm.algorithms.ALGORITHMS``.
    rho : float
        The penalty parameter ρ.
    passes : float
        Stop after this many effective passes over the data (step selection not counted in this limit).
    step : float, "auto" or "theory"
        A length: x moves by about `step` times a gradient. "auto" selects it on a subset of 500 samples, as the
        paper does; ``Result.tuning`` tells what that cost.
    batch_size : int
        Samples of one fixed block are seen together and share one row of a table.
    sampler : "uniform", "permutation", "cyclic" or an array of block indices
    omega_mode : None, "prox", "system", "fold" or "subgradient"
        How Ω enters. By default: the method's proximal step where it has one; in the linear system for a squared ℓ2
        where the method solves one; the gradient for another smooth Ω; folded into ψ otherwise.
    tol : float or None
        Stop when the relative optimality residual is at most this; the check then counts one pass each time.
    time_limit : float or None
        Seconds, recording excluded.
    record_every : float
        Passes between recordings; recording is off the clock. 0 records the start and the end only.
    test : (X, target) or None
        Held-out data for the column ``test_loss``.
    x0, y0, dual0 : arrays or None
        Where to start: x at 0, y at y(x0), the dual at 0 by default.
    warm_start : Result or None
        An earlier result of the same method on the same problem: go on from its tables.
    callback : function or functions of a Snapshot
        Called at every recording; a true return value stops the run.
    random_state : int, Generator or None
    verbose : int
        1 shows a progress bar on a terminal.
    progress : bool or None
        Show the bar in any case, or never.

    Returns
    -------
    Result
    """
    if not isinstance(problem, Problem):
        raise TypeError(f"problem={type(problem).__name__}: it takes a skadmm.Problem")
    algorithm = ALGORITHMS[method]
    rho = _checks.number(rho, "rho", above=0)
    limits = _Limits(
        _checks.number(passes, "passes", above=0),
        np.inf if time_limit is None else _checks.number(time_limit, "time_limit", above=0),
        None if tol is None else _checks.number(tol, "tol", above=0),
        _checks.number(record_every, "record_every", least=0) or np.inf,
    )
    batch_size = min(_checks.count(batch_size, "batch_size"), problem.n_samples)
    seed = _seed(random_state)
    mode = _omega_mode(omega_mode, problem, algorithm)
    working = problem.fold() if mode == "fold" else problem
    start = _starting_point(problem, working, x0, y0, dual0)
    callbacks = _as_callbacks(callback)
    test_problem = None if test is None else _as_test(problem, test)

    context = {"rho": rho, "batch_size": batch_size, "omega_mode": mode, "seed": seed}
    tuning = None
    if warm_start is not None:
        step = _matching_step(warm_start, method, step, rho, batch_size)
    step, tuning = stepsize.resolve(step, working, algorithm, **context)
    setup = Setup(working, rho, step, batch_size, mode)
    order = as_sampler(sampler, setup.n_blocks, seed)
    engine = algorithm.start(setup, start)
    if warm_start is not None:
        engine.restore(warm_start.tables)

    settings = {"rho": rho, "step": step, "batch_size": batch_size, "omega_mode": mode, "seed": seed}
    run = _Run(algorithm, engine, problem, working, rho, order, limits, test_problem, callbacks, tuning)
    with Progress(method, passes, shown=progress, verbose=verbose) as bar:
        status, message = run.loop(bar)
    result = run.result(status, message, settings)
    if run.failure is not None:
        raise CallbackError(f"a callback raised {run.failure!r}; the run so far is in .result", result) from run.failure
    return result


@dataclass(frozen=True)
class _Limits:
    passes: float
    seconds: float
    tol: float | None
    record_every: float


class _Run:
    """One run: the engine, the clock and the record."""

    def __init__(
        self,
        algorithm: Algorithm,
        engine: Engine,
        original: Problem,
        problem: Problem,
        rho: float,
        order: Any,
        limits: _Limits,
        test_problem: Problem | None,
        callbacks: list[Callable[[Snapshot], bool | None]],
        tuning: stepsize.StepChoice | None,
    ) -> None:
        self.algorithm, self.engine, self.problem, self.rho = algorithm, engine, problem, rho
        self.original = original  # what the user gave: without the part of y that folding added
        self.order, self.limits, self.test_problem, self.callbacks = order, limits, test_problem, callbacks
        self.tuning = tuning
        self.n = problem.n_samples
        self.seconds = tuning.seconds if tuning else 0.0
        self.checking = 0  # samples touched by the algorithm's own stopping tests
        self.tuning_samples = tuning.samples_touched if tuning else 0
        self.first_touched = int(engine.point.clock[1])
        self.records: list[dict[str, float]] = []
        self.kkt = KKT(np.nan, np.nan, np.nan, np.nan)
        self.stopped_on: str | None = None
        self.failure: Exception | None = None
        self.good = self._copy_point()
        self.proved = self.good  # the last point whose objective was seen to be sound
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
        try:
            ending = self._record(bar)
            next_record = self.limits.record_every
            pace = 1.0  # steps in a slice; adapted to SLICE_SECONDS
            while ending is None:
                goal = min(next_record, self.limits.passes)
                pace = self._slice(goal, pace)
                bar.update(self.run_passes)
                if not np.isfinite(self.engine.point.x).all():
                    return self._diverged("x is no longer finite")
                self.good = self._copy_point()
                over_time = self.seconds >= self.limits.seconds
                over_passes = self.run_passes >= self.limits.passes - 1e-12
                if self.run_passes >= next_record - 1e-12 or over_time or over_passes:
                    ending = self._record(bar)
                    done = np.floor((self.run_passes + 1e-12) / self.limits.record_every)
                    next_record = (done + 1) * self.limits.record_every
                if ending is None and over_time:
                    ending = Status.TIME_LIMIT, f"the time limit of {self.limits.seconds:g} s was reached"
                if ending is None and over_passes:
                    ending = Status.PASS_LIMIT, f"the limit of {self.limits.passes:g} passes was reached"
            return ending
        except KeyboardInterrupt:
            return Status.INTERRUPTED, "interrupted; x is the last good iterate"

    def _slice(self, goal: float, pace: float) -> float:
        """Some steps, on the clock; the pace for the next slice."""
        before = self.run_passes
        left = max(1, int(np.ceil((goal - before) / self.step_passes)))
        steps = min(left, int(pace))
        order = self.order.take(int(self.engine.point.clock[0]), steps)
        began = time.perf_counter()
        self.engine.advance(order)
        spent = time.perf_counter() - began
        self.seconds += spent
        self.step_passes = max(1.0 / self.engine.steps_per_pass, (self.run_passes - before) / steps)
        return min(1e9, max(1.0, steps * min(10.0, SLICE_SECONDS / max(spent, 1e-9))))

    def _record(self, bar: Progress) -> tuple[Status, str] | None:
        """Evaluate where the run stands. Off the clock, except what the stopping test uses."""
        point, problem = self.engine.point, self.problem
        began = time.perf_counter()
        gradient = np.empty(problem.n_features)
        loss = problem.loss_and_gradient(point.x, gradient)
        y_of_x = problem.y_of_x(point.x)
        objective = loss + problem.penalty(point.x, point.y if y_of_x is None else y_of_x)
        self.kkt = problem.kkt(point.x, point.y, self.rho * point.dual, gradient)
        if self.limits.tol is not None:
            self.seconds += time.perf_counter() - began
            self.checking += self.n
        x_average, y_average = self._averages()
        y_of_average = problem.y_of_x(x_average)
        record = {
            "passes": self.passes,
            "seconds": self.seconds,
            "objective": objective,
            "objective_average": problem.objective(x_average, y_average if y_of_average is None else y_of_average),
            "feasibility": self.kkt.feasibility,
            "kkt": self.kkt.relative,
            "gap": np.nan,
            "test_loss": np.nan if self.test_problem is None else self.test_problem.loss_value(point.x),
        }
        if not self.records:
            self.first_objective = objective
        if np.isnan(objective) or loss > BLOW_UP * max(1.0, abs(self.first_objective)):
            return self._diverged(f"the objective went from {self.first_objective:.3g} to {objective:.3g}")
        self.proved = self._copy_point()
        self.records.append(record)
        bar.report(record)
        if self._call_back(record):
            return Status.STOPPED, "a callback asked to stop"
        if self.limits.tol is not None and self.kkt.relative <= self.limits.tol:
            self.stopped_on = "kkt"
            return Status.SOLVED, f"the relative KKT residual {self.kkt.relative:.2e} met tol={self.limits.tol:g}"
        return None

    def _diverged(self, what: str) -> tuple[Status, str]:
        self.good = self.proved
        return Status.DIVERGED, f"{what}; x is the last good iterate. Try a smaller step, or step='auto'"

    def _call_back(self, record: dict[str, float]) -> bool:
        if not self.callbacks:
            return False
        point = self.engine.point
        y, dual = point.y[: self.original.n_split], point.dual[: self.original.n_constraints]
        arrays = {"x": point.x.copy(), "y": y.copy(), "dual": dual.copy()}
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

    def _averages(self) -> tuple[np.ndarray, np.ndarray]:
        point = self.engine.point
        steps = int(point.clock[0])
        if steps == 0:
            return point.x.copy(), point.y.copy()
        return point.x_sum / steps, point.y_sum / steps

    def _copy_point(self) -> dict[str, np.ndarray]:
        point = self.engine.point
        x_average, y_average = self._averages()
        return {
            "x": point.x.copy(),
            "y": point.y.copy(),
            "dual": point.dual.copy(),
            "x_average": x_average,
            "y_average": y_average,
        }

    def result(self, status: Status, message: str, settings: dict[str, Any]) -> Result:
        """The result, in the shape of the problem the user gave (without the part that folding added)."""
        good = self.good
        x, y, dual = good["x"], good["y"], good["dual"]
        y_of_x = self.problem.y_of_x(x)
        objective = self.problem.objective(x, y if y_of_x is None else y_of_x)
        kkt = self.problem.kkt(x, y, self.rho * dual)
        return Result(
            x=x,
            y=y[: self.original.n_split],
            dual=dual[: self.original.n_constraints],
            x_average=good["x_average"],
            y_average=good["y_average"][: self.original.n_split],
            status=status,
            message=message,
            method=self.algorithm.name,
            settings=settings,
            objective=objective,
            feasibility=kkt.feasibility,
            kkt=kkt,
            gap=np.nan,
            stopped_on=self.stopped_on,
            passes=self.passes,
            seconds=self.seconds,
            records=self.records,
            tuning=self.tuning,
            tables={name: array.copy() for name, array in self.engine.tables().items()},
        )


def _omega_mode(asked: str | None, problem: Problem, algorithm: Algorithm) -> str:
    """How Ω enters this run; "none" when there is no Ω."""
    omega = problem.omega
    if asked is not None and asked not in OMEGA_MODES:
        raise ValueError(f"omega_mode={asked!r}: it takes one of {', '.join(map(repr, OMEGA_MODES))}, or None")
    if isinstance(omega, Zero):
        return "none"
    possible = [mode for mode in algorithm.omega if mode != "system" or isinstance(omega, SquaredL2)]
    if not omega.subdifferentiable:
        possible = [mode for mode in possible if mode != "subgradient"]
    if asked is not None:
        if asked not in possible:
            raise ValueError(
                f"omega_mode={asked!r}: {algorithm.name} can take omega={type(omega).__name__} "
                f"by {', '.join(map(repr, possible))}"
            )
        return asked
    if omega.smooth and "subgradient" in possible and "system" not in possible:
        return "subgradient"
    return possible[0]


def _starting_point(problem: Problem, working: Problem, x0: Any, y0: Any, dual0: Any) -> Any:
    d, p, m = problem.n_features, problem.n_split, problem.n_constraints
    x = np.zeros(d) if x0 is None else _checks.vector(x0, "x0", d, of="the number of columns of X")
    y = None if y0 is None else _checks.vector(y0, "y0", p, of="the length of y")
    dual = None if dual0 is None else _checks.vector(dual0, "dual0", m, of="the number of rows of A")
    if working is not problem:
        if y is not None:
            y = np.concatenate([y, x])
        if dual is not None:
            dual = np.concatenate([dual, np.zeros(d)])
    return _split.start(working, x, y, dual)


def _matching_step(earlier: Result, method: str, step: Any, rho: float, batch_size: int) -> Any:
    """The step to go on with; an error where the earlier run's tables would not fit."""
    if not isinstance(earlier, Result):
        raise TypeError(f"warm_start={type(earlier).__name__}: it takes a Result of an earlier solve")
    if earlier.status is Status.DIVERGED:
        raise ValueError("warm_start: the earlier run diverged, its tables are of no use; start from x0=result.x")
    for name, now in (("method", method), ("rho", rho), ("batch_size", batch_size)):
        then = earlier.method if name == "method" else earlier.settings[name]
        if then != now:
            raise ValueError(f"warm_start: the earlier run had {name}={then!r}, this one has {now!r}; they must agree")
    return earlier.settings["step"] if step == "auto" else step


def _as_callbacks(callback: Any) -> list[Callable[[Snapshot], bool | None]]:
    callbacks = [callback] if callable(callback) else list(callback) if isinstance(callback, Iterable) else [callback]
    for one in callbacks:
        if not callable(one):
            raise TypeError(f"callback={one!r}: it takes a function of a Snapshot, or several")
    return callbacks


def _as_test(problem: Problem, test: Any) -> Problem:
    if not isinstance(test, (tuple, list)) or len(test) != 2:
        raise TypeError(f"test={type(test).__name__}: it takes a pair (X, target)")
    return held_out(problem, *test)


def _seed(random_state: Any) -> int:
    if isinstance(random_state, (int, np.integer)) and not isinstance(random_state, bool):
        return _checks.count(random_state, "random_state", least=0)
    if random_state is None:
        return int(np.random.default_rng().integers(2**31))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    raise TypeError(f"random_state={random_state!r}: it takes an integer ≥ 0, a NumPy generator or None")

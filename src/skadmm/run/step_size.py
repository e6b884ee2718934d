"""The step size: a given number, the step of the theory, or the step that the paper's selection finds on a subset."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from skadmm import _cancel, _checks, _summary
from skadmm.problem.problem import Problem
from skadmm.run.sampling import Uniform
from skadmm.solvers import dual_update
from skadmm.solvers.base import Algorithm, Setup
from skadmm.solvers.dual_update import Point

SUBSET = 500
"""Samples that steps are tried on."""
RUNS, PASSES = 5, 5
"""Runs per candidate, and passes per run."""
BATCH_ITERATIONS = 100
"""Iterations of a method that reads all samples in every step."""
DECADES_BELOW, DECADES_ABOVE, PER_DECADE = 1, 5, 2
"""The grid around the step of the theory. The L of the theory is about a thousand times too large on common data, so
the grid reaches five decades above that step and one below it."""
USUAL_DECADE = 2
"""The selection begins with the candidates around this many decades above the step of the theory, where the best step
usually is, so that a selection that ends early has tried those."""
TIME_SHARE = 0.5
"""The selection ends early when it has taken this share of the time limit."""
CHECK_SECONDS = 0.05
"""The time limit and Ctrl-C are checked after about this many seconds."""
MAX_STEPS, MAX_TIMED_STEPS = 1024, 16
"""The maximum number of steps between two checks, without and with a time limit. Where a run diverges, its steps may
suddenly become slower."""


@dataclass(frozen=True)
class StepChoice:
    """The outcome of a selection: the candidates, the one chosen, and what it cost."""

    step: float
    """The step of the run: the best candidate, times `scale`."""
    candidates: np.ndarray
    objectives: np.ndarray
    """The mean training objective of each candidate on the subset; infinite where it diverged."""
    samples_touched: int
    seconds: float
    subset: int = 0
    """The number of samples that candidates were tried on."""
    scale: float = 1.0
    """n over the size of the subset where the step of the method grows with the number of samples, else 1."""
    at_edge: str = ""
    """"smallest" or "largest" where the best candidate is at that end of the grid, so that a better step may lie
    beyond it; empty otherwise."""
    cut_short: bool = False
    """True where the selection ended early, at its share of the time limit or at Ctrl-C."""

    def __repr__(self) -> str:
        facts = {
            "step": f"{self.step:.4g}",
            "candidates": f"{self.candidates.size} from {self.candidates.min():.4g} to {self.candidates.max():.4g}"
            if self.candidates.size
            else 0,
            "subset": self.subset,
            "seconds": f"{self.seconds:.3g}",
            "at_edge": repr(self.at_edge) if self.at_edge else None,
            "cut_short": True if self.cut_short else None,
        }
        return _summary.line("StepChoice", facts)


def candidates(algorithm: Algorithm, problem: Problem, rho: float) -> np.ndarray:
    """The grid of steps, half a decade apart, around the step of the theory."""
    exponents = np.arange(-DECADES_BELOW * PER_DECADE, DECADES_ABOVE * PER_DECADE + 1) / PER_DECADE
    return theory(algorithm, problem, rho) * 10.0**exponents


def theory(algorithm: Algorithm, problem: Problem, rho: float) -> float:
    """The step of the theory; where squares of rows overflow, the smallest positive number."""
    return max(algorithm.theory_step(problem, rho), float(np.finfo(float).tiny))


def grows_with_samples(algorithm: Algorithm, options: Mapping[str, Any]) -> bool:
    """Return whether the step of a run on n samples is n/m times the best step on m of them.

    It is for a stochastic average whose table starts at zero: a step of SA-ADMM starts from the mean of n points, so x
    moves by about 1/n of its step. With the table filled at x₀ the first steps are steps of the full gradient, too long
    after any scaling. SAGA moves from x itself, and its step has nothing to do with n.
    """
    return options.get("table") == "zero" and algorithm.gradient == "average"


def select(
    problem: Problem, algorithm: Algorithm, *, rho: float, batch_size: int, omega_mode: str, seed: int,
    options: Mapping[str, Any] | None = None, start: Point | None = None, seconds: float = np.inf,
    interrupted: Callable[[], bool] = lambda: False,
) -> StepChoice:  # fmt: skip
    """The paper's selection: each candidate is run on 500 random samples (five runs of five passes; batch methods
    once, for 100 iterations), and the one with the smallest mean training objective is chosen. With large blocks the
    subset has ten blocks. The runs begin at `start`, or at zero. After `TIME_SHARE` of the `seconds` that
    the whole run may take, or when `interrupted`, it takes the best so far, or the step of the theory where none of
    them decreased the objective."""
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(2**31,)))
    eligible: Any = problem.n_samples
    if problem.backend.local_rows and problem.sample_weight.size:
        eligible = np.flatnonzero(problem.sample_weight)
    size = min(np.size(eligible) if np.ndim(eligible) else eligible, max(SUBSET, 10 * batch_size))
    subset = problem.subset(np.sort(rng.choice(eligible, size=size, replace=False)))
    grid = candidates(algorithm, subset, rho)

    def setup_of(step: float) -> Setup:
        return Setup(subset, rho, step, min(batch_size, size), omega_mode, options=options or {})

    algorithm.start(setup_of(float(grid[0])), _starting_point(subset, start))  # compiles, before the clock runs
    began = _cancel.now()

    def ends() -> bool:
        return interrupted() or _cancel.now() - began >= TIME_SHARE * seconds

    most = MAX_TIMED_STEPS if seconds < np.inf else MAX_STEPS
    objectives, touched, cut_short = _tried(grid, setup_of, algorithm, seed, start, ends, most)
    usable = np.isfinite(objectives)
    if cut_short:  # the only candidates tried may be those that diverge
        usable &= objectives <= _objective(subset, _starting_point(subset, start))
    best = int(np.argmin(np.where(usable, objectives, np.inf)))
    scale = problem.n_samples / subset.n_samples if grows_with_samples(algorithm, options or {}) else 1.0
    if not usable.any():
        chosen, scale, edge = theory(algorithm, problem, rho), 1.0, ""
    else:
        chosen = float(grid[best]) * scale
        edge = {0: "smallest", grid.size - 1: "largest"}.get(best, "")
    return StepChoice(chosen, grid, objectives, touched, _cancel.now() - began, int(size), scale, edge, cut_short)


def _tried(
    grid: np.ndarray, setup_of: Callable[[float], Setup], algorithm: Algorithm, seed: int, start: Point | None,
    ends: Callable[[], bool], most: int,
) -> tuple[np.ndarray, int, bool]:  # fmt: skip
    """Try the candidates. Returns the mean objective of each, which is infinite where a run diverged or none was made;
    the number of samples touched; and whether `ends` stopped the trials."""
    values: list[list[float]] = [[] for _ in grid]
    usual = PER_DECADE * (DECADES_BELOW + USUAL_DECADE)
    order = sorted(range(grid.size), key=lambda index: (abs(index - usual), index))
    touched, cut_short = 0, False
    for run in range(1 if algorithm.full else RUNS):
        for index in order:
            if cut_short or not np.all(np.isfinite(values[index])):
                continue
            value, cost = _trial(setup_of(float(grid[index])), algorithm, seed + run, start, ends, most)
            touched += cost
            if value is None:
                cut_short = True
            else:
                values[index].append(value)
    return np.array([np.mean(of) if of else np.inf for of in values]), touched, cut_short


def _starting_point(problem: Problem, start: Point | None) -> Point:
    at = (np.zeros(problem.n_features), None, None) if start is None else (start.x, start.y, start.dual)
    return dual_update.start(problem, *at)


def _trial(
    setup: Setup, algorithm: Algorithm, seed: int, start: Point | None, ends: Callable[[], bool], most: int
) -> tuple[float | None, int]:
    """Make one short run. Returns its objective, None where it was stopped, and the number of samples it touched."""
    if ends():
        return None, 0
    problem = setup.problem
    point = _starting_point(problem, start)
    engine = algorithm.start(setup, point)
    steps = BATCH_ITERATIONS if algorithm.full else PASSES * setup.n_blocks
    order, pace = Uniform(setup.n_blocks, seed).take(0, steps), 1
    while order.size:
        began = _cancel.now()
        engine.advance(order[:pace])
        order = order[pace:]
        if order.size and ends():
            return None, int(point.clock[1])
        faster = min(10.0, CHECK_SECONDS / max(_cancel.now() - began, 1e-9))
        pace = min(max(1, int(pace * faster)), most)
    touched = int(point.clock[1])
    if not np.isfinite(point.x).all():
        return np.inf, touched
    value = _objective(problem, point)
    return (value if np.isfinite(value) else np.inf), touched + problem.n_samples


@np.errstate(over="ignore", invalid="ignore")  # a step that is too long may lead to where losses overflow
def _objective(problem: Problem, point: Point) -> float:
    """The objective at a point, with its own y only where none follows from x."""
    return problem.objective(point.x, point.y if problem.y_of_x(point.x) is None else None)


def resolve(
    step: float | str, problem: Problem, algorithm: Algorithm, *, rho: float, batch_size: int, omega_mode: str,
    seed: int, options: Mapping[str, Any], start: Point | None = None, seconds: float = np.inf,
    interrupted: Callable[[], bool] = lambda: False,
) -> tuple[float | None, StepChoice | None]:  # fmt: skip
    """The step as a number, None for a method that has none, and the selection behind it if there was one."""
    if not isinstance(step, str):
        return _checks.number(step, "step", above=0), None
    if step == "theory":
        return theory(algorithm, problem, rho), None
    if step != "auto":
        raise ValueError(f"step={step!r}: it takes a number > 0, 'auto' or 'theory'")
    if algorithm.stepless:
        return None, None
    choice = select(
        problem, algorithm, rho=rho, batch_size=batch_size, omega_mode=omega_mode, seed=seed, options=options,
        start=start, seconds=seconds, interrupted=interrupted,
    )  # fmt: skip
    return choice.step, choice

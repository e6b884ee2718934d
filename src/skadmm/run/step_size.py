"""The step size: a number, the one of the theory, or the paper's selection on a small subset."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from skadmm import _checks, _clock
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


def candidates(algorithm: Algorithm, problem: Problem, rho: float) -> np.ndarray:
    """The grid of steps, half a decade apart, around the step of the theory."""
    exponents = np.arange(-DECADES_BELOW * PER_DECADE, DECADES_ABOVE * PER_DECADE + 1) / PER_DECADE
    return theory(algorithm, problem, rho) * 10.0**exponents


def theory(algorithm: Algorithm, problem: Problem, rho: float) -> float:
    """The step of the theory; where squares of rows overflow, the smallest positive number."""
    return max(algorithm.theory_step(problem, rho), float(np.finfo(float).tiny))


def grows_with_samples(algorithm: Algorithm, options: Mapping[str, Any]) -> bool:
    """Is the step of a run on n samples n/m times the best one on m of them?

    It is for a stochastic average whose table starts at zero: a step of SA-ADMM starts from the mean of n points, so x
    moves by about 1/n of its step. With the table filled at x₀ the first steps are steps of the full gradient, too long
    after any scaling. SAGA moves from x itself, and its step has nothing to do with n.
    """
    return options.get("table") == "zero" and algorithm.gradient == "average"


def select(
    problem: Problem, algorithm: Algorithm, *, rho: float, batch_size: int, omega_mode: str, seed: int,
    options: Mapping[str, Any] | None = None, start: Point | None = None,
) -> StepChoice:  # fmt: skip
    """The paper's selection: each candidate is run on 500 random samples (five runs of five passes; batch methods
    once, for 100 iterations), and the one with the smallest mean training objective is chosen. With large blocks the
    subset has ten blocks. The runs begin at `start`, or at zero."""
    began = _clock.now()
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(2**31,)))
    eligible: Any = problem.n_samples
    if problem.backend.local_rows and problem.sample_weight.size:
        eligible = np.flatnonzero(problem.sample_weight)
    size = min(np.size(eligible) if np.ndim(eligible) else eligible, max(SUBSET, 10 * batch_size))
    subset = problem.subset(np.sort(rng.choice(eligible, size=size, replace=False)))
    grid = candidates(algorithm, subset, rho)
    runs = 1 if algorithm.full else RUNS
    touched = 0
    objectives = np.full(grid.size, np.inf)
    for index, step in enumerate(grid):
        setup = Setup(subset, rho, float(step), min(batch_size, size), omega_mode, options=options or {})
        values = []
        for run in range(runs):
            value, cost = _trial(setup, algorithm, seed + run, start)
            values.append(value)
            touched += cost
            if not np.isfinite(value):
                break
        objectives[index] = np.mean(values)
    finite = np.isfinite(objectives)
    best = int(np.argmin(np.where(finite, objectives, np.inf)))
    scale = problem.n_samples / subset.n_samples if grows_with_samples(algorithm, options or {}) else 1.0
    if not finite.any():
        chosen, scale, edge = theory(algorithm, problem, rho), 1.0, ""
    else:
        chosen = float(grid[best]) * scale
        edge = {0: "smallest", grid.size - 1: "largest"}.get(best, "")
    return StepChoice(chosen, grid, objectives, touched, _clock.now() - began, int(size), scale, edge)


def _trial(setup: Setup, algorithm: Algorithm, seed: int, start: Point | None) -> tuple[float, int]:
    """One short run: the objective it reached, and the samples it touched."""
    problem = setup.problem
    at = (np.zeros(problem.n_features), None, None) if start is None else (start.x, start.y, start.dual)
    point = dual_update.start(problem, *at)
    engine = algorithm.start(setup, point)
    steps = BATCH_ITERATIONS if algorithm.full else PASSES * setup.n_blocks
    engine.advance(Uniform(setup.n_blocks, seed).take(0, steps))
    touched = int(point.clock[1])
    if not np.isfinite(point.x).all():
        return np.inf, touched
    y = point.y if problem.y_of_x(point.x) is None else None
    value = problem.objective(point.x, y)
    return (value if np.isfinite(value) else np.inf), touched + problem.n_samples


def resolve(
    step: float | str, problem: Problem, algorithm: Algorithm, *, rho: float, batch_size: int, omega_mode: str,
    seed: int, options: Mapping[str, Any], start: Point | None = None,
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
        start=start,
    )  # fmt: skip
    return choice.step, choice

"""One cell: choose the step, run the method, keep what was recorded."""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from skadmm import _cancel
from skadmm.paper.optimum import find_optimum
from skadmm.paper.prepare import Source, graph_of, halves_of, problem_of
from skadmm.paper.settings import BEYOND, WITH_TABLE, Cell, Settings, cell_settings, problem_settings
from skadmm.paper.store import Store, save_json, save_run
from skadmm.paper.versions import source_digest
from skadmm.problem.problem import Problem
from skadmm.run import driver
from skadmm.run import solve as run
from skadmm.run.result import TRACE_COLUMNS, Result

if TYPE_CHECKING:
    import pandas as pd

TIME_COLUMNS = ("seconds", "selection_seconds")
"""What a second run of the same cell will not repeat."""
WARM_METHOD = "opg-admm"
WARM_PASSES = 1.0
REHEARSAL_SAMPLES, REHEARSAL_PASSES = 2000, 3.0
"""A short run before the measured one, so that compilation is not timed."""


@contextlib.contextmanager
def by_steps_not_by_clock() -> Iterator[None]:
    """Check for recordings after numbers of steps that do not depend on their speed.

    Every run then records at the same steps.
    """
    usual = driver.SLICE_SECONDS
    driver.SLICE_SECONDS = math.inf
    try:
        yield
    finally:
        driver.SLICE_SECONDS = usual


def one_thread() -> None:
    """Ask the numerical libraries of processes started from here for one thread each."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
        os.environ[name] = "1"


def run_cell(settings: Settings, store: Store, source: Source, cell: Cell) -> None:
    """Run one cell and save it."""
    import pandas as pd

    problem = problem_of(settings, store, source, cell.repeat, cell.matrix, cell.problem)
    half = halves_of(settings, store, source, cell.repeat)
    known = cell_settings(settings, cell, source.sha256)
    options: dict[str, Any] = {
        "rho": settings.rho,
        "batch_size": settings.batch_size[cell.data],
        "random_state": 1000 * settings.seed + cell.repeat,
    }
    recorded: dict[str, Any] = {
        "record_every": settings.record_every[cell.data],
        "test": (half.X_test, half.target_test),
    }
    passes = settings.passes[cell.data]
    meta: dict[str, Any] = {"settings": known, "sources": source_digest()}
    _rehearse(problem, cell.method, options)
    began = time.process_time()
    with by_steps_not_by_clock(), _cancel.processor_time():
        if cell.variant == "restored":
            frame = _restored(problem, cell.method, passes, options, recorded)
        elif cell.method in BEYOND:  # blocks and ρ of the paper mean nothing to methods beyond it
            try:
                result = run.solve(
                    problem, cell.method, passes=passes, random_state=options["random_state"], **recorded
                )
                frame = _recordings(result, problem.n_samples)
            except ValueError as refusal:  # it does not take this problem: that is an outcome, not a failure
                frame, meta["refused"] = pd.DataFrame(), str(refusal)
        else:
            own = _table("zero" if cell.variant == "zero+n" else "x0") if cell.method in WITH_TABLE else {}
            result = run.solve(problem, cell.method, passes=passes, **options, **recorded, **own)
            frame = _recordings(result, problem.n_samples)
    meta["processor_seconds"] = time.process_time() - began
    save_run(store.cell_path(cell, known), frame, meta)


def _table(start: str) -> dict[str, Any]:
    """The start of the table as an option of solve(): Algorithm 1 has "x0", whatever the default is."""
    return {"options": {"table": start}}


def _rehearse(problem: Problem, method: str, options: dict[str, Any]) -> None:
    """Have the kernels of this problem and method compiled."""
    few = problem.subset(np.arange(0, problem.n_samples, max(1, problem.n_samples // REHEARSAL_SAMPLES)))
    asked = {} if method in BEYOND else options
    with contextlib.suppress(ValueError):  # the run itself reports a refusal
        run.solve(few, method, step="theory", passes=REHEARSAL_PASSES, **asked)


def run_graph(settings: Settings, store: Store, source: Source, repeat: int) -> None:
    """Find the graph of one training half and save it."""
    graph_of(settings, store, source, repeat)


def run_optimum(settings: Settings, store: Store, source: Source, cell: Cell) -> None:
    """Find the smallest objective of a cell's problem and save it."""
    problem = problem_of(settings, store, source, cell.repeat, cell.matrix, cell.problem)
    with by_steps_not_by_clock():
        found = find_optimum(problem)
    save_json(store.optimum_path(problem_settings(settings, cell, source.sha256)), found)


def _recordings(result: Result, n: int) -> pd.DataFrame:
    """The trace without step selection, which has columns of its own."""
    tuning = result.tuning
    selection_passes = tuning.samples_touched if tuning else 0
    frame = result.trace.loc[:, list(TRACE_COLUMNS)].copy()
    frame["passes"] = (frame["passes"] - selection_passes / n).round(9)
    frame["seconds"] -= tuning.seconds if tuning else 0.0
    frame.insert(0, "record", range(len(frame)))
    step = result.settings["step"]
    frame["step"] = np.nan if step is None else float(step)  # a method may have none
    frame["step_scale"] = tuning.scale if tuning else 1.0
    frame["selection_samples"] = tuning.subset if tuning else 0
    frame["train_samples"] = n
    frame["step_at_edge"] = tuning.at_edge if tuning else ""
    frame["selection_passes"] = selection_passes / n
    frame["selection_seconds"] = tuning.seconds if tuning else 0.0
    frame["status"] = str(result.status)
    return frame


def _restored(
    problem: Problem, method: str, passes: float, options: dict[str, Any], recorded: dict[str, Any]
) -> pd.DataFrame:
    """What restores a stochastic average method on many samples, with its table filled at the start as in Algorithm 1.

    The table, filled at x₀ = 0, makes the first steps full-gradient steps of length 1/L: an L small enough to be fast
    later overshoots at once, so selection on a subset settles for one that is too large. Here one pass of opg-admm
    finds a start, the step is selected from there, and grows with the number of samples behind each entry: n over the
    size of the subset.
    """
    import pandas as pd

    n = problem.n_samples
    warm = run.solve(problem, WARM_METHOD, passes=WARM_PASSES, **options, **recorded)
    before = _recordings(warm, n)
    from_there = options | _table("x0") | {"x0": warm.x, "y0": warm.y, "dual0": warm.dual}
    chosen = run.solve(problem, method, passes=1e-9, record_every=0, **from_there)
    assert chosen.tuning is not None
    step = chosen.tuning.step * n / chosen.tuning.subset
    result = run.solve(problem, method, step=step, passes=max(1e-9, passes - WARM_PASSES), **from_there, **recorded)
    after = _recordings(result, n)
    after["passes"] = (after["passes"] + before["passes"].iloc[-1]).round(9)
    after["seconds"] += before["seconds"].iloc[-1]
    selection = _recordings(chosen, n)
    for name in ("selection_passes", "selection_seconds"):
        after[name] = before[name].iloc[0] + selection[name].iloc[0]
        before[name] = after[name].iloc[0]
    after["step_scale"] = n / chosen.tuning.subset
    after["step_at_edge"] = chosen.tuning.at_edge
    after["selection_samples"] = chosen.tuning.subset
    for name in ("step", "step_scale", "step_at_edge", "selection_samples", "status"):
        before[name] = after[name].iloc[0]
    joined = pd.concat([before, after.iloc[1:]], ignore_index=True)
    joined["record"] = range(len(joined))
    return joined

"""Run what is not there yet: in parallel processes of one thread each, with an estimate of the time left."""

from __future__ import annotations

import concurrent.futures
import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from skadmm.paper import execute
from skadmm.paper.prepare import Source
from skadmm.paper.settings import Cell, Settings, cell_settings, cells, problem_settings, split_settings
from skadmm.paper.store import Store

PATIENCE = 1
"""Tasks handed to the pool beyond the number of workers: few, so that an interrupt has little to wait for."""


@dataclass(frozen=True)
class Task:
    """One thing to do in a worker; `kind` is "graph", "optimum" or "run"."""

    kind: str
    source: Source
    cell: Cell

    @property
    def label(self) -> str:
        """What a progress line shows."""
        what = self.cell.method if self.kind == "run" else self.kind
        if self.kind == "run" and self.cell.variant != "paper":
            what += f", {self.cell.variant}"
        where = "" if self.kind == "graph" else f" {self.cell.matrix} {self.cell.problem}"
        return f"{self.cell.data}{where} #{self.cell.repeat + 1}: {what}"

    @property
    def alike(self) -> tuple[str, ...]:
        """Tasks that should take about as long."""
        return self.kind, self.cell.data, self.cell.problem, self.cell.method, self.cell.variant


@dataclass
class Failure:
    """A task that raised; it is tried again by the next run."""

    task: Task
    error: str


@dataclass
class Clock:
    """How long tasks took, and so how long the rest will."""

    total: int
    jobs: int
    began: float = field(default_factory=time.perf_counter)
    spent: dict[tuple[str, ...], list[float]] = field(default_factory=dict)
    done: int = 0

    def finished(self, task: Task, seconds: float) -> None:
        """Note one task."""
        self.done += 1
        self.spent.setdefault(task.alike, []).append(seconds)

    def left(self, waiting: Iterable[Task]) -> float:
        """Seconds until the rest is done: like tasks as before, others as the average of their data set or of all."""
        every = [seconds for times in self.spent.values() for seconds in times]
        if not every:
            return float("nan")
        overall = sum(every) / len(every)
        by_data: dict[str, list[float]] = {}
        for key, times in self.spent.items():
            by_data.setdefault(key[1], []).extend(times)
        total = 0.0
        for task in waiting:
            alike = self.spent.get(task.alike) or by_data.get(task.cell.data)
            total += sum(alike) / len(alike) if alike else overall
        return total / self.jobs


Progress = Callable[[Task, Clock, float], None]
"""Called with each finished task, the clock and the estimate of the seconds left."""


def missing_tasks(settings: Settings, store: Store, sources: dict[str, Source]) -> tuple[list[Task], list[Task]]:
    """What is not there yet: the graphs, and then the runs and optima that need them."""
    graphs: dict[tuple[str, int], Task] = {}
    rest: list[Task] = []
    asked: set[Path] = set()
    for cell in cells(settings):
        source = sources[cell.data]
        known_split = split_settings(settings, cell.data, cell.repeat, source.sha256)
        if not store.graph_path(known_split).is_file():
            graphs.setdefault((cell.data, cell.repeat), Task("graph", source, cell))
        optimum = store.optimum_path(problem_settings(settings, cell, source.sha256))
        if settings.optimum and not optimum.is_file() and optimum not in asked:
            asked.add(optimum)
            rest.append(Task("optimum", source, cell))
        if not store.cell_path(cell, cell_settings(settings, cell, source.sha256)).is_file():
            rest.append(Task("run", source, cell))
    return list(graphs.values()), rest


def perform(settings: Settings, store: Store, task: Task) -> float:
    """Do one task; the seconds it took."""
    began = time.perf_counter()
    if task.kind == "graph":
        execute.run_graph(settings, store, task.source, task.cell.repeat)
    elif task.kind == "optimum":
        execute.run_optimum(settings, store, task.source, task.cell)
    else:
        execute.run_cell(settings, store, task.source, task.cell)
    return time.perf_counter() - began


def run_missing(
    settings: Settings, store: Store, sources: dict[str, Source], *, jobs: int = 1, progress: Progress | None = None
) -> list[Failure]:
    """Run everything that is not there yet; what failed is returned, and the rest is run anyway."""
    graphs, rest = missing_tasks(settings, store, sources)
    clock = Clock(len(graphs) + len(rest), jobs)
    failures: list[Failure] = []
    do = _in_this_process if jobs == 1 else _in_processes
    for now, later in ((graphs, rest), (rest, [])):
        do(settings, store, now, later, clock, failures, progress)
    return failures


def _in_this_process(
    settings: Settings, store: Store, tasks: list[Task], later: list[Task], clock: Clock, failures: list[Failure],
    progress: Progress | None,
) -> None:  # fmt: skip
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1):
        for index, task in enumerate(tasks):
            try:
                seconds = perform(settings, store, task)
            except Exception as error:
                failures.append(Failure(task, f"{type(error).__name__}: {error}"))
                continue
            clock.finished(task, seconds)
            if progress is not None:
                progress(task, clock, clock.left(tasks[index + 1 :] + later))


def _in_processes(
    settings: Settings, store: Store, tasks: list[Task], later: list[Task], clock: Clock, failures: list[Failure],
    progress: Progress | None,
) -> None:  # fmt: skip
    if not tasks:
        return
    execute.one_thread()  # inherited by the workers, before they load any library
    waiting = list(tasks)
    running: dict[concurrent.futures.Future[float], Task] = {}
    pool = concurrent.futures.ProcessPoolExecutor(
        clock.jobs, mp_context=multiprocessing.get_context("spawn"), initializer=_start_worker
    )
    try:
        while waiting or running:
            while waiting and len(running) < clock.jobs + PATIENCE:
                task = waiting.pop(0)
                running[pool.submit(perform, settings, store, task)] = task
            done, _ = concurrent.futures.wait(running, return_when=concurrent.futures.FIRST_COMPLETED)
            for future in done:
                task = running.pop(future)
                error = future.exception()
                if error is not None:
                    failures.append(Failure(task, f"{type(error).__name__}: {error}"))
                    if isinstance(error, concurrent.futures.process.BrokenProcessPool):
                        raise error
                    continue
                clock.finished(task, future.result())
                if progress is not None:
                    progress(task, clock, clock.left([*running.values(), *waiting, *later]))
    except BaseException:
        for process in list((pool._processes or {}).values()):
            process.terminate()
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    pool.shutdown()


def _start_worker() -> None:
    """A worker whose parent was killed ends too, instead of waiting for work without end."""

    def watch(parent: Any) -> None:
        parent.join()
        os._exit(1)

    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=watch, args=(parent,), daemon=True).start()

"""Several steps in one question: the point travels to the rows.

Steps that follow each other on blocks of one worker need nobody in between. All that they start from is sent there,
the same kernels take them, and what they changed comes back: the iterates are those of asking for one step at a time.
The sender's own arrays stay as they are until the answer is there, so a run whose answer is lost is asked for again.
"""

from __future__ import annotations

import copy
import time
from typing import Any, NamedTuple

import numpy as np

from skadmm.backends.dask.worker import Held, refresh
from skadmm.backends.tasks import Lost
from skadmm.solvers.base import x_and_dual_update
from skadmm.solvers.dual_update import Point


class Machine(NamedTuple):
    """What a step needs and no step changes: sent to each worker once."""

    rule: Any
    """Without the arrays that a run brings along."""
    split: Any
    theta: float
    n: int
    """The number of samples."""


class Run(NamedTuple):
    """Some steps in a row, and all that they start from."""

    machine: int
    """The number of the machine that takes them."""
    point: Point
    sums: list[np.ndarray]
    """The rule's arrays of ``sums_of``."""
    tables: list[np.ndarray]
    """Those that have a row for each block (``rule.by_block``): the rows of the blocks of this run."""
    pieces: list[tuple[int, int, int]]
    """Where each block of this run is: in which of the blocks asked, from where to where."""
    seen: list[int]
    """The number under which each was last seen."""
    order: list[int]
    """Which of them each step refreshes."""
    numbers: list[int]
    """The number of each step's point."""
    seconds: float
    """No step is begun after so many, but the first."""


class Taken(NamedTuple):
    """What a run has changed."""

    steps: int
    point: Point
    sums: list[np.ndarray]
    points: np.ndarray
    """Where each block of the run was last seen."""


def sums_of(rule: Any) -> tuple[str, ...]:
    """The arrays of a rule that a run takes along as they are; slopes stay with their rows."""
    return tuple(name for name in rule.memory if name not in (*rule.by_block, "slopes"))


def machine_of(rule: Any, split: Any, theta: float, n: int) -> Machine:
    """The machine of a method."""
    brought = {name: np.empty(0) for name in (*sums_of(rule), *rule.by_block)}
    return Machine(rule._replace(**brought), split, theta, n)


def is_known_everywhere(part: Any) -> bool:
    """Is all of it of this package? The meaning of a user's own penalty may be known here only."""
    if not isinstance(part, tuple):
        return True
    return type(part).__module__.split(".")[0] == __package__.split(".")[0] and all(map(is_known_everywhere, part))


def use_change(rule: Any, n: int, k: int, x: np.ndarray, newest: np.ndarray, change: np.ndarray) -> None:
    """The gradients of block k, seen again at x, have changed by so much in sum."""
    if rule.reads == "corrected":
        rule.grad[:] = rule.grad_bar + rule.scale * change
    rule.grad_bar[:] += change / n
    if rule.reads == "average":
        rule.x_bar[:] += rule.share[k] * (x - newest)  # `move` will take the block for seen at the newest x


def take_steps(several: list[Held], run: Run, machine: Machine | None) -> Any:
    """The steps of a run, on a worker; Missing where it does not know the machine and none is sent.

    The machine is kept in the memory of the first of the blocks. It has arrays to scribble in, so while it is at work
    it is not there for another.
    """
    begun = time.perf_counter()
    memory = several[0].memory
    number, kept = memory.pop("machine", (0, None))
    if machine is not None:
        kept = copy.deepcopy(machine)  # what was sent may not be written to
    elif number != run.machine:
        return Lost()
    point, sums, tables = copy.deepcopy((run.point, run.sums, run.tables))
    names = (*sums_of(kept.rule), *kept.rule.by_block)
    rule = kept.rule._replace(**dict(zip(names, (*sums, *tables), strict=True)))
    seen = list(run.seen)
    steps = 0
    for k, new in zip(run.order, run.numbers, strict=True):
        if steps and time.perf_counter() - begun >= run.seconds:
            break
        at, start, stop = run.pieces[k]
        x = point.x.copy()
        held = several[at]
        change = refresh(held.samples, held.memory, (start, stop), (seen[k], rule.points[k]), (new, x))
        use_change(rule, kept.n, k, x, point.x, change)
        point.clock[1] += stop - start
        x_and_dual_update(rule, kept.split, point, kept.theta, k)
        rule.points[k] = x
        seen[k] = new
        steps += 1
    memory["machine"] = (run.machine, kept)
    return Taken(steps, point, sums, rule.points)

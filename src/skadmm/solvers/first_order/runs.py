"""Several steps in one request: the point is sent to the rows.

Steps that follow each other on blocks of one worker need no messages in between. All that they start from is sent to
the worker, the same kernels take the steps, and what they changed is sent back, so the iterates are those of one
request per step. The sender's arrays do not change before the response has come, so a lost request can be repeated.
"""

from __future__ import annotations

import copy
import time
from typing import Any, NamedTuple

import numpy as np

from skadmm.backends.tasks import Lost
from skadmm.backends.worker import Held, refresh
from skadmm.solvers.base import x_and_dual_update
from skadmm.solvers.dual_update import Point


class FixedParts(NamedTuple):
    """The parts of a method that no step changes; they are sent to each worker once."""

    rule: Any
    """The rule, without the arrays that are part of a request."""
    split: Any
    theta: float
    n: int
    """The number of samples."""


class StepsRequest(NamedTuple):
    """Consecutive steps, and everything that they start from."""

    parts_number: int
    """The number by which the worker identifies the fixed parts."""
    point: Point
    sums: list[np.ndarray]
    """The rule's arrays of ``sums_of``."""
    tables: list[np.ndarray]
    """The rule's arrays with a row per block (``rule.by_block``): the rows of the blocks of this request."""
    pieces: list[tuple[int, int, int]]
    """Where each block of this request is: in which of the worker's blocks, from which row to which."""
    seen: list[int]
    """The number of the point at which each block was last evaluated."""
    order: list[int]
    """The block that each step evaluates, as an index into the blocks of the request."""
    numbers: list[int]
    """The number of each step's point."""
    seconds: float
    """No step but the first begins after this time."""


class StepsResponse(NamedTuple):
    """What the steps have changed."""

    steps: int
    point: Point
    sums: list[np.ndarray]
    points: np.ndarray
    """The point at which each block of the request was last evaluated."""


def sums_of(rule: Any) -> tuple[str, ...]:
    """The arrays of a rule that a request contains as a whole; slopes stay with their rows."""
    return tuple(name for name in rule.memory if name not in (*rule.by_block, "slopes"))


def fixed_parts_of(rule: Any, split: Any, theta: float, n: int) -> FixedParts:
    """The fixed parts of a method."""
    brought = {name: np.empty(0) for name in (*sums_of(rule), *rule.by_block)}
    return FixedParts(rule._replace(**brought), split, theta, n)


def is_known_everywhere(part: Any) -> bool:
    """Return whether all of it is defined in this package; a user's penalty may be defined in this process only."""
    if not isinstance(part, tuple):
        return True
    return type(part).__module__.split(".")[0] == __package__.split(".")[0] and all(map(is_known_everywhere, part))


def use_change(rule: Any, n: int, k: int, x: np.ndarray, newest: np.ndarray, change: np.ndarray) -> None:
    """Update the rule for block k, whose sum of gradients has changed by `change` since its last evaluation."""
    rule.visited[k] = True
    if rule.reads == "corrected":
        rule.grad[:] = rule.grad_bar + rule.scale * change
    rule.grad_bar[:] += change / n
    if rule.reads == "average":
        rule.x_bar[:] += rule.share[k] * (x - newest)  # x_update takes the block as evaluated at the newest x


def take_steps(several: list[Held], request: StepsRequest, parts: FixedParts | None) -> StepsResponse | Lost:
    """Take the steps of a request, on a worker; Lost where it does not know the fixed parts and none are sent.

    The fixed parts are kept in the memory of the first of the blocks. They hold work arrays, so they are taken out of
    the memory while they are in use.
    """
    begun = time.perf_counter()
    memory = several[0].memory
    number, kept = memory.pop("fixed parts", (0, None))
    if parts is not None:
        kept = copy.deepcopy(parts)  # arrays that were received may be read-only
    elif number != request.parts_number:
        return Lost()
    point, sums, tables = copy.deepcopy((request.point, request.sums, request.tables))
    names = (*sums_of(kept.rule), *kept.rule.by_block)
    rule = kept.rule._replace(**dict(zip(names, (*sums, *tables), strict=True)))
    seen = list(request.seen)
    steps = 0
    for k, new in zip(request.order, request.numbers, strict=True):
        if steps and time.perf_counter() - begun >= request.seconds:
            break
        at, start, stop = request.pieces[k]
        x = point.x.copy()
        held = several[at]
        old = (seen[k], rule.points[k]) if rule.visited[k] else None
        change = refresh(held.samples, held.memory, (start, stop), old, (new, x))
        use_change(rule, kept.n, k, x, point.x, change)
        point.clock[1] += stop - start
        x_and_dual_update(rule, kept.split, point, kept.theta, k)
        rule.points[k] = x
        seen[k] = new
        steps += 1
    memory["fixed parts"] = (request.parts_number, kept)
    return StepsResponse(steps, point, sums, rule.points)

"""The engine of the first-order methods: one compiled loop for all rules."""

from __future__ import annotations

from typing import Any

import numpy as np

from skadmm.backends import Evaluation
from skadmm.kernels.compile import kernel
from skadmm.problem.certificate import Assessment, Certificate
from skadmm.solvers import dual_update
from skadmm.solvers.base import BY_GRADIENT, Setup, couple_at_start, init_table, update_gradient, x_and_dual_update
from skadmm.solvers.dual_update import Point
from skadmm.solvers.first_order import blockwise, table_start

PARTS_OF_TABLE = 64
"""The number of parts in which a table is filled; between two parts a run can be stopped."""


@kernel
def _advance(rule, samples, split, point, theta, order, until, fill):
    """Take a step for each block in `order`, up to a number of samples; with `fill`, fill their part of the tables
    instead. Both are one loop, because the gradient's code is long and compiled where it is called. Returns the number
    of samples touched."""
    touched = 0
    for k in order:
        if not fill and point.clock[1] >= until:
            break
        count = init_table(rule, samples, point, k) if fill else BY_GRADIENT
        if count == BY_GRADIENT:
            count = update_gradient(rule, samples, point, k)
        touched += count
        if not fill:
            point.clock[1] += count
            x_and_dual_update(rule, split, point, theta, k)
    return touched


class CompiledSteps:
    """Steps on rows that compiled code can read: all steps in one kernel."""

    def __init__(self, rule: Any, setup: Setup, split: Any, point: Point, theta: float) -> None:
        self._rule, self._samples = rule, setup.problem.samples(setup.batch_size)
        self._split, self._point, self._theta = split, point, theta
        self._n_blocks, self._problem, self._batch_size = setup.n_blocks, setup.problem, setup.batch_size
        self.take(np.empty(0, np.int64), 0.0)  # compiles, so that no clock runs meanwhile

    def init_table(self) -> int:
        """Fill the tables, some blocks at a time; the number of samples touched."""
        couple_at_start(self._split, self._point, self._theta)
        if getattr(self._rule, "reads", "") in ("average", "corrected"):
            table_start.start_at(self._rule, self._point.x)
        rows_per_chunk = -(-self._n_blocks // PARTS_OF_TABLE)
        touched = 0
        for first in range(0, self._n_blocks, rows_per_chunk):
            self._problem.backend.between_chunks()
            chunk = np.arange(first, min(first + rows_per_chunk, self._n_blocks))
            touched += self._advance(chunk, np.inf, True)
        return touched

    def take(self, order: np.ndarray, until: float) -> None:
        """One step for each block in `order`."""
        self._problem.backend.between_chunks()
        self._problem.backend.prefetch(order, self._batch_size)
        self._advance(order, until, False)

    def _advance(self, order: np.ndarray, until: float, fill: bool) -> int:
        return _advance(self._rule, self._samples, self._split, self._point, self._theta, order, until, fill)


def steps_of(rule: Any, setup: Setup) -> Any:
    """How this problem's rows are read: in one kernel, or block by block where they are elsewhere, or very many."""
    problem, reads = setup.problem, getattr(rule, "reads", "")
    if problem.backend.local_rows and (reads != "all" or problem.n_samples <= problem.rows_per_chunk):
        return CompiledSteps
    return blockwise.STEPS[reads]


class FirstOrderEngine:
    """A rule in motion: the compiled loop of gradient update, x-update, and y and dual updates."""

    solver_name = ran = ""
    reason = ""

    def __init__(self, rule: Any, setup: Setup, point: Point, *, linearised: bool, full: bool = False) -> None:
        self.rule = rule
        self.point = point
        self.steps_per_pass = 1 if full else setup.n_blocks
        self.averages = True
        split = dual_update.build(setup.problem, setup.rho)
        self._steps: Any = steps_of(rule, setup)(rule, setup, split, point, 1.0 if linearised else 0.0)
        self._fresh = True
        self.rho = setup.rho
        self.finished = False
        self.certificate: Certificate | None = None

    def optimality(self) -> tuple[str, float]:
        """Raise always, because the methods measure no optimality themselves."""
        return "kkt", np.inf

    def evaluated_at(self, x: np.ndarray) -> Evaluation | None:
        """Return None, because no evaluation is kept."""
        return None

    def assessed(self, x: np.ndarray, y: np.ndarray) -> Assessment | None:
        """Return None, because the general evaluation is as accurate."""
        return None

    def finish(self) -> None:
        """The last iterate is the solution."""

    def give_up(self) -> None:
        """The last iterate is the solution."""

    def close(self) -> None:
        """Do nothing, because there is nothing to release."""

    def advance(self, order: np.ndarray, until: float = np.inf) -> None:
        """Take one step for each block index in `order`; the first call also fills the tables."""
        if self._fresh:
            self.point.clock[1] += self._steps.init_table()
            self._fresh = False
        self._steps.take(order, float(until))

    def tables(self) -> dict[str, np.ndarray]:
        """The rule's arrays and the running sums, by name."""
        arrays = {f"rule.{name}": getattr(self.rule, name) for name in getattr(self.rule, "memory", ())}
        return arrays | {name: getattr(self.point, name) for name in self.point._fields}

    def restore(self, tables: dict[str, np.ndarray]) -> None:
        """Restore the tables of an earlier run."""
        for name, array in self.tables().items():
            if name not in tables or tables[name].shape != array.shape:
                raise ValueError(f"warm_start: the earlier run has no matching table {name!r}")
            array[...] = tables[name]
        self._fresh = not self.point.clock.any()  # a run that never touched a sample has no memory yet

    def state(self) -> dict[str, Any]:
        """The tables."""
        return dict(self.tables())

    def resume(self, state: dict[str, Any]) -> None:
        """Restore the tables."""
        self.restore(state)

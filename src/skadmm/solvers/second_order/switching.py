"""One solver after another: each runs until it is slow, the next goes on from its point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from skadmm.backends.base import Evaluation
from skadmm.problem.certificate import Assessment, Certificate
from skadmm.problem.problem import Problem
from skadmm.solvers.base import Setup
from skadmm.solvers.dual_update import Point
from skadmm.solvers.second_order.base import SecondOrderSolver, SolverEngine


class Entry(NamedTuple):
    """A solver, and the settings with which it runs."""

    solver: type[SecondOrderSolver[Any]]
    config: Any = None
    """The solver's Config; None takes the defaults."""


class Switching:
    """Several solvers on one problem and one point; one of them is running."""

    def __init__(self, setup: Setup, point: Point, solvers: Sequence[Entry]) -> None:
        """`solvers` in the order in which they take over from each other."""
        self.setup, self.solvers = setup, tuple(solvers)
        self.reason = ""
        """Why these solvers run, in words."""
        self.number = 0
        """The index of the solver that is running."""
        self.running = self._engine(0, point, setup.rho)

    def _engine(self, number: int, point: Point, rho: float) -> SolverEngine[Any]:
        solver, config = self.solvers[number]
        return solver.engine(self.setup, point, config, rho)

    def _switch_to(self, number: int) -> None:
        """Start another solver from the point and ρ of the running one."""
        self.running = self._engine(number, self.running.point, self.running.rho)
        self.number = number

    @property
    def point(self) -> Point:
        """Where the running solver stands."""
        return self.running.point

    @property
    def solver_name(self) -> str:
        """The solvers that have run so far."""
        return ", then ".join(entry.solver.name for entry in self.solvers[: self.number + 1])

    @property
    def steps_per_pass(self) -> int:
        """Of the running solver."""
        return self.running.steps_per_pass

    @property
    def finished(self) -> bool:
        """Has the running solver met the tolerance, or can it do no more?"""
        return self.running.finished

    @property
    def certificate(self) -> Certificate | None:
        """Bounds of the optimum."""
        return self.running.certificate

    @property
    def rho(self) -> float:
        """The penalty parameter now."""
        return self.running.rho

    def optimality(self) -> tuple[str, float]:
        """As the running solver measures it."""
        return self.running.optimality()

    def advance(self, order: np.ndarray, until: float = np.inf) -> None:
        """At most as many steps as `order` has entries, of each solver as long as it is not slow."""
        first = int(self.point.clock[0])
        self.running.advance(order, until)
        while self.number + 1 < len(self.solvers) and self.running.slow:
            self.running.give_up()
            self.running.close()
            self._switch_to(self.number + 1)
            self.running.advance(order[int(self.point.clock[0]) - first :], until)

    def follow(self, problem: Problem) -> None:
        """Go on with `problem`, which differs in the strength of ψ alone: with the first solver again."""
        self.setup = replace(self.setup, problem=problem)
        if self.number == 0:
            self.running.follow(problem)
        else:
            self.running.close()
            self._switch_to(0)

    def last_loss(self) -> float:
        """The mean loss where the running solver stands."""
        return self.running.last_loss()

    def evaluated_at(self, x: np.ndarray) -> Evaluation | None:
        """As the running solver keeps it."""
        return self.running.evaluated_at(x)

    def assessed(self, x: np.ndarray, y: np.ndarray) -> Assessment | None:
        """As the running solver knows it."""
        return self.running.assessed(x, y)

    def finish(self) -> None:
        """The solution of the running solver."""
        self.running.finish()

    def give_up(self) -> None:
        """The last sound point of the running solver."""
        self.running.give_up()

    def close(self) -> None:
        """Release what others keep for the running solver."""
        self.running.close()

    def state(self) -> dict[str, Any]:
        """Which solver is running, and its state."""
        return {"number": self.number, "engine": self.running.state()}

    def resume(self, state: dict[str, Any]) -> None:
        """Go on from a checkpoint."""
        number = state["number"]
        if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < len(self.solvers):
            raise ValueError("'number' is not what it should be")
        if number != self.number:
            self._switch_to(number)
        self.running.resume(state["engine"])

    def tables(self) -> dict[str, np.ndarray]:
        """The point and ρ, for a warm start."""
        return self.running.tables()

    def restore(self, tables: dict[str, np.ndarray]) -> None:
        """Start from the point of an earlier run, with the first solver."""
        self.running.restore(tables)

"""One solver after another: each runs until it says that it is slow, the next goes on from its point."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from skadmm.backends.base import Evaluation
from skadmm.problem.certificate import Assessment, Certificate
from skadmm.solvers.base import Engine
from skadmm.solvers.dual_update import Point


class FirstEngine(Engine, Protocol):
    """A solver that knows when to give way."""

    @property
    def slow(self) -> bool:
        """Would another solver be faster, or has this one come to its end without meeting the tolerance?"""


class Switching:
    """The engine that is running, of several."""

    def __init__(self, first: FirstEngine, *later: tuple[str, Callable[[float], Any]]) -> None:
        """`later` are the names of the next engines, and what makes them from the penalty parameter ρ of the one
        before; all share one point."""
        self.point: Point = first.point
        self._names = [first.solver_name, *(name for name, _ in later)]
        self._later = [make for _, make in later]
        self._number = 0
        self._now: Any = first

    @property
    def solver_name(self) -> str:
        """Those that have run so far."""
        return ", then ".join(self._names[: self._number + 1])

    @property
    def steps_per_pass(self) -> int:
        """Of the running one."""
        return self._now.steps_per_pass

    @property
    def finished(self) -> bool:
        """Is the running one?"""
        return self._now.finished

    @property
    def certificate(self) -> Certificate | None:
        """Bounds of the optimum."""
        return self._now.certificate

    @property
    def rho(self) -> float:
        """The penalty parameter now."""
        return self._now.rho

    def optimality(self) -> tuple[str, float]:
        """As the running one measures it."""
        return self._now.optimality()

    def advance(self, order: np.ndarray, until: float = np.inf) -> None:
        """Steps; each solver's as long as it does not give way."""
        first = int(self.point.clock[0])
        self._now.advance(order, until)
        while self._number < len(self._later) and self._now.slow:
            self._now.give_up()
            self._now.close()
            self._turn_to(self._number + 1, self._now.rho)
            self._now.advance(order[int(self.point.clock[0]) - first :], until)

    def _turn_to(self, number: int, rho: float) -> None:
        self._number = number
        self._now = self._later[number - 1](rho)

    def evaluated_at(self, x: np.ndarray) -> Evaluation | None:
        """As the running one keeps it."""
        return self._now.evaluated_at(x)

    def assessed(self, x: np.ndarray, y: np.ndarray) -> Assessment | None:
        """As the running one knows it."""
        return self._now.assessed(x, y)

    def finish(self) -> None:
        """The running one's answer."""
        self._now.finish()

    def give_up(self) -> None:
        """The running one's last sound point."""
        self._now.give_up()

    def close(self) -> None:
        """The running one's."""
        self._now.close()

    def state(self) -> dict[str, Any]:
        """Which one is running, and all of it."""
        return {"number": self._number, "engine": self._now.state()}

    def resume(self, state: dict[str, Any]) -> None:
        """Go on from a checkpoint."""
        number = state["number"]
        if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number <= len(self._later):
            raise ValueError("'number' is not what it should be")
        if number:
            self._turn_to(number, self._now.rho)
        self._now.resume(state["engine"])

    def tables(self) -> dict[str, np.ndarray]:
        """The running one's."""
        return self._now.tables()

    def restore(self, tables: dict[str, np.ndarray]) -> None:
        """Go on from an earlier run's point, with the first method again."""
        self._now.restore(tables)


class Alone(Switching):
    """An engine that stops when it is slow, without anybody to take over."""

    @property
    def finished(self) -> bool:
        """Has it arrived, or given up?"""
        return self._now.finished or self._now.slow

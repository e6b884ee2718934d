"""One method after another: the first runs until it says that it is slow, the second goes on from its point."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from skadmm.algorithms._base import Engine
from skadmm.algorithms._split import Point
from skadmm.blocks.local import Look
from skadmm.certificate import Certificate


class FirstEngine(Engine, Protocol):
    """A method that knows when to give way."""

    slow: bool


class Relay:
    """The engine of two that is running."""

    def __init__(self, first: FirstEngine, second: Callable[[], Engine]) -> None:
        self.point: Point = first.point
        self._first, self._second = first, second
        self._now: Engine = first

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
        """Steps; the first method's as long as it does not give way."""
        before = int(self.point.clock[0])
        self._now.advance(order, until)
        if self._now is self._first and self._first.slow:
            self._now = self._second()
            made = int(self.point.clock[0]) - before
            self._now.advance(order[made:], until)

    def looked_at(self, x: np.ndarray) -> Look | None:
        """As the running one keeps it."""
        return self._now.looked_at(x)

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
        return {"first": self._now is self._first, "engine": self._now.state()}

    def resume(self, state: dict[str, Any]) -> None:
        """Go on from a checkpoint."""
        if not isinstance(state["first"], bool):
            raise ValueError("'first' is not what it should be")
        if not state["first"]:
            self._now = self._second()
        self._now.resume(state["engine"])

    def tables(self) -> dict[str, np.ndarray]:
        """The running one's."""
        return self._now.tables()

    def restore(self, tables: dict[str, np.ndarray]) -> None:
        """Go on from an earlier run's point, with the first method again."""
        self._now.restore(tables)

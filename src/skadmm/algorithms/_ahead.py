"""A step asked for all at once, on the guess that it will be taken whole.

Between the engine and looks that are slow to answer: what the engine will ask next, if it takes the step as it is,
comes with the answer to its first question and is kept for it here. Where the step is shortened, questions are asked.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from skadmm.algorithms._looks import HARD_MOVE, HARD_SHARE
from skadmm.algorithms._stages import Stage


class Guess(NamedTuple):
    """What is known of the end of a step."""

    join: Any = None
    """The answers, of a stage; and of a look at all samples:"""
    settle: Any = None
    renew: Any = None
    stale: float | None = None
    """Which curvatures were brought up to date in it."""
    far: int | None = None
    """How many margins moved far."""


class Ahead:
    """Answers for `looks`, of n samples."""

    def __init__(self, looks: Any, n: int) -> None:
        self._looks, self._n = looks, n
        self._stage: Stage | None = None
        self._wanted: Any = None
        self._guess, self._taken = Guess(), Guess()
        """Of the step that is being looked at; and of the one that was taken whole, if it was."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._looks, name)

    def restart(self) -> None:
        """Nothing is known any more."""
        self._guess = self._taken = Guess()
        self._looks.restart()

    def begin(self, stage: Stage | None, x: np.ndarray | None, ahead: Any = None) -> None:
        """Turn to some samples; of a stage, are they new; of all, which curvatures are stale: None where no Hessian
        will be wanted."""
        self._stage, self._wanted = stage, ahead
        self._guess = self._taken = Guess()
        self._looks.tell("begin", stage, x)

    def along(self, step: np.ndarray | None, t: float) -> float:
        """Σ of the losses at t times the step: at its end, for that is what is asked first."""
        return self._ask(step, both=False)[1]

    def ends(self, step: np.ndarray) -> tuple[float, float]:
        """Σ of the losses at both ends of a step."""
        return self._ask(step, both=True)

    def _ask(self, step: np.ndarray | None, both: bool) -> tuple[float, float]:
        if self._stage is not None:
            start, end, *sums = self._looks.stage_ahead(step, self._wanted)
            self._guess = Guess(join=tuple(sums))
        else:
            start, end, gradient, largest, H, far = self._looks.look_ahead(step, both, self._wanted)
            self._guess = Guess(settle=(gradient, largest), renew=(H, 0.0), stale=self._wanted, far=int(far))
        return start, end

    def join(self, length: float, new: bool) -> Any:
        """The step of a stage has been taken."""
        if length != 1.0:
            return self._looks.join(length, new)
        self._looks.tell("stage_taken")
        return self._guess.join

    def settle(self, length: float) -> Any:
        """A step of all samples has been taken."""
        if length != 1.0:
            return self._looks.settle(length)
        self._taken = self._guess
        self._looks.tell("look_taken")
        return self._guess.settle

    def renew(self, stale: float, afresh: bool) -> Any:
        """The change of H."""
        if afresh or self._taken.stale != stale:
            return self._looks.renew(stale, afresh)
        self._looks.tell("renewed", stale)
        answer, self._taken = self._taken.renew, self._taken._replace(renew=None, stale=None)
        return answer

    def hard_threshold(self) -> float:
        """What the margins of hard rows moved by more than."""
        far = self._taken.far
        if far is None or far > HARD_SHARE * self._n:
            return float(self._looks.hard_threshold())
        return HARD_MOVE if far > 0 else np.inf

    def hard_begin(self, threshold: float) -> int:
        """Turn to the hard rows."""
        far = self._taken.far
        if far is None or threshold != HARD_MOVE:
            return int(self._looks.hard_begin(threshold))
        self._looks.tell("hard_begin", threshold)
        return far

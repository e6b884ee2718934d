"""A step asked for all at once, on the guess that it will be taken whole.

Between the engine and looks that are slow to answer: what the engine will ask next, if it takes the step as it is,
comes with the answer to its first question and is kept for it here. Where the step is shortened, questions are asked.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from skadmm.oracle.batches import GrowingBatch
from skadmm.oracle.local import LARGE_SHIFT, LARGE_SHIFT_SHARE


class SpeculativeOracle:
    """Answers for `looks`, of n samples."""

    def __init__(self, oracle: Any, n: int) -> None:
        self._looks, self._n = oracle, n
        self._batch: GrowingBatch | None = None
        self._new: bool = False
        self._stale: float | None = None
        """What was said at the beginning of the step."""
        self._forget()

    def _forget(self) -> None:
        self._sums: Any = None
        """What ``join`` or ``settle`` will say, if all of the step is taken …"""
        self._H: Any = None
        """… and ``renew`` …"""
        self._far: int | None = None
        """… and how many margins will have moved far."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._looks, name)

    def restart(self) -> None:
        """Nothing is known any more."""
        self._forget()
        self._looks.restart()

    def begin(
        self, batch: GrowingBatch | None, x: np.ndarray | None, new: bool = False, stale: float | None = None
    ) -> None:
        """Turn to the samples of a stage: are they new? Or to all: which curvatures are stale? None where no Hessian
        will be wanted."""
        self._forget()
        self._batch, self._new, self._stale = batch, new, stale
        self._looks.tell("begin", batch, x)

    def along(self, step: np.ndarray | None, t: float) -> float:
        """Σ of the losses at the end of a step, or where the samples are if there is none."""
        if step is not None and t != 1.0:
            raise ValueError(f"the first question is about the whole step, not {t} of it")
        return self._ask(step, both=False)[1]

    def ends(self, step: np.ndarray) -> tuple[float, float]:
        """Σ of the losses at both ends of a step."""
        return self._ask(step, both=True)

    def _ask(self, step: np.ndarray | None, both: bool) -> tuple[float, float]:
        if self._batch is not None:
            start, end, *sums = self._looks.batch_ahead(step, self._new)
        else:
            start, end, *sums, H, far = self._looks.evaluate_ahead(step, both, self._stale)
            self._H, self._far = None if self._stale is None else H, int(far)
        self._sums = tuple(sums)
        return start, end

    def join(self, length: float, new: bool) -> Any:
        """The step of a stage has been taken."""
        sums, self._sums = self._sums, None
        if length != 1.0:
            return self._looks.join(length, new)
        self._looks.tell("batch_taken")
        return sums

    def settle(self, length: float) -> Any:
        """A step of all samples has been taken."""
        sums, self._sums = self._sums, None
        if length != 1.0:
            self._forget()
            return self._looks.settle(length)
        self._looks.tell("evaluation_taken")
        return sums

    def renew(self, stale: float, afresh: bool) -> Any:
        """The change of H."""
        H, self._H = self._H, None
        if H is None or afresh or stale != self._stale:
            return self._looks.renew(stale, afresh)
        self._looks.tell("renewed", stale)
        return H, 0.0

    def large_shift_threshold(self) -> float:
        """What the margins of hard rows moved by more than."""
        if self._far is None or self._far > LARGE_SHIFT_SHARE * self._n:
            return float(self._looks.large_shift_threshold())
        return LARGE_SHIFT if self._far > 0 else np.inf

    def large_shift_begin(self, threshold: float) -> int:
        """Turn to the hard rows."""
        if self._far is None or threshold != LARGE_SHIFT:
            return int(self._looks.large_shift_begin(threshold))
        self._looks.tell("large_shift_begin", threshold)
        return self._far

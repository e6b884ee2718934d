"""A step computed in one request, assuming that it will be taken whole.

This oracle stands between a solver and a slow oracle. The response to the first request of a step also contains what
the solver will request next if it takes the whole step, and is kept here. Where the step is shortened, the slow oracle
gets another request.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from skadmm.oracle.base import (
    LARGE_SHIFT,
    LARGE_SHIFT_SHARE,
    MOST_SHIFTED,
    BatchSums,
    CurvatureChange,
    Ends,
    FullSums,
    MarginsAndSlopes,
    ShiftAlong,
    ShiftSums,
    SinglePass,
)
from skadmm.oracle.batches import GrowingBatch
from skadmm.problem.free_columns import FreeColumns


class SpeculativeOracle:
    """An oracle that saves requests to a slow oracle over n samples."""

    def __init__(self, oracle: SinglePass, n: int) -> None:
        self._slow = oracle
        self.large_shifts = SpeculativeLargeShifts(oracle, n)
        self._batch: GrowingBatch | None = None
        self._new: bool = False
        self._stale: float | None = None
        """The arguments of ``begin``."""
        self._forget()

    def _forget(self) -> None:
        self._batch_sums: BatchSums | None = None
        """What ``join`` will return if the whole step is taken."""
        self._full_sums: FullSums | None = None
        """What ``settle`` will return if the whole step is taken."""
        self._H: Any = None
        """What ``renew`` will return if the whole step is taken."""
        self.large_shifts.expected = None

    @property
    def free_columns(self) -> FreeColumns:
        """The free columns of the slow oracle."""
        return self._slow.free_columns

    # -- a step --------------------------------------------------------------------------------------------------

    def begin(
        self, batch: GrowingBatch | None, x: np.ndarray | None, new: bool = False, stale: float | None = None
    ) -> None:
        """Choose the samples; `new` and `stale` say what the first request has to compute."""
        self._forget()
        self._batch, self._new, self._stale = batch, new, stale
        self._slow.begin(batch, x)

    def along(self, step: np.ndarray | None, t: float) -> float:
        """Σ of the losses at the end of a step, or where the samples are if there is none."""
        if step is not None and t != 1.0:
            raise ValueError(f"t={t}: the first request of a step takes 1, the whole step")
        return self._request(step, both=False).end

    def ends(self, step: np.ndarray) -> Ends:
        """Σ of the losses at both ends of a step."""
        return self._request(step, both=True)

    def losses(self, t: float) -> float:
        """Σ of the losses at another t of the same step."""
        return self._slow.losses(t)

    def _request(self, step: np.ndarray | None, both: bool) -> Ends:
        if self._batch is not None:
            ends, self._batch_sums = self._slow.batch_ahead(step, self._new)
            return ends
        ends, self._full_sums, H, self.large_shifts.expected = self._slow.evaluate_ahead(step, both, self._stale)
        self._H = None if self._stale is None else H
        return ends

    def join(self, length: float, new: bool) -> BatchSums:
        """Take the step of a batch."""
        sums, self._batch_sums = self._batch_sums, None
        if length != 1.0 or sums is None:
            return self._slow.join(length, new)
        self._slow.batch_taken()
        return sums

    def settle(self, length: float) -> FullSums:
        """Take a step of all samples."""
        sums, self._full_sums = self._full_sums, None
        if length != 1.0 or sums is None:
            self._forget()
            return self._slow.settle(length)
        self._slow.evaluation_taken()
        return sums

    def renew(self, stale: float, afresh: bool) -> CurvatureChange:
        """The change of Σ h a aᵀ."""
        H, self._H = self._H, None
        if H is None or afresh or stale != self._stale:
            return self._slow.renew(stale, afresh)
        self._slow.renewed(stale)
        return CurvatureChange(H, 0.0)

    # -- the certificate, and storage ------------------------------------------------------------------------------

    def conjugate(self, scale: float) -> float:
        """Σ w ℓ*(scale θ / w)."""
        return self._slow.conjugate(scale)

    def margins_and_slopes(self) -> MarginsAndSlopes | None:
        """The margins and slopes of the slow oracle."""
        return self._slow.margins_and_slopes()

    def state(self) -> dict[str, Any]:
        """The state of the slow oracle; between two steps nothing is kept here."""
        return self._slow.state()

    def resume(self, state: dict[str, Any]) -> bool:
        """Let the slow oracle restore its state."""
        return self._slow.resume(state)

    def restart(self) -> None:
        """Forget all samples."""
        self._forget()
        self._slow.restart()

    def close(self) -> None:
        """Release everything, because the run has ended."""
        self._slow.close()


class SpeculativeLargeShifts:
    """The large-shift samples of a slow oracle, whose number often comes with the response to the step."""

    def __init__(self, oracle: SinglePass, n: int) -> None:
        self._slow, self._limit, self._most = oracle, LARGE_SHIFT_SHARE * n, MOST_SHIFTED * n
        self.expected: int | None = None
        """The number of margins that the step shifts by more than LARGE_SHIFT if it is taken whole."""

    def threshold(self) -> float:
        """The shift above which a sample is a large-shift sample; ∞ where there are none."""
        if self.expected is None or self.expected > self._limit:
            return self._slow.large_shifts.threshold()
        return LARGE_SHIFT if self.expected > 0 else np.inf

    def curved(self, limit: float) -> float:
        """The curvature above which the samples with large shifts are few; 0 where there is no such curvature."""
        few = self.expected is not None and self.expected <= self._most
        return 0.0 if few else self._slow.large_shifts.curved(limit)

    def begin(self, threshold: float, count: int | None = None, curvature: float = -1.0) -> int:
        """Copy the samples."""
        known = self.expected if threshold == LARGE_SHIFT and curvature < 0.0 else None
        return self._slow.large_shifts.begin(threshold, count if known is None else known, curvature)

    def along(self, step: np.ndarray) -> ShiftAlong:
        """Sums of the losses of the copied samples along a step."""
        return self._slow.large_shifts.along(step)

    def losses(self, t: float) -> float:
        """Σ of the losses of the copied samples at t times the step."""
        return self._slow.large_shifts.losses(t)

    def move(self, length: float) -> ShiftSums:
        """Take the step."""
        return self._slow.large_shifts.move(length)

    def end(self) -> None:
        """Drop the copies."""
        self._slow.large_shifts.end()

"""The oracle over rows on a cluster: every block has one on its worker, and their sums are added up.

How requests are sent, and what happens when a worker is lost, is in ``channel.py``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from skadmm.oracle.base import (
    CURVED,
    LARGE_SHIFT,
    LARGE_SHIFT_SHARE,
    MOST_SHIFTED,
    Ahead,
    BatchSums,
    CurvatureChange,
    Ends,
    FullSums,
    ShiftAlong,
    ShiftSums,
)
from skadmm.oracle.batches import GrowingBatch
from skadmm.oracle.channel import Channel, Cluster, KeptBeside, KeptOnWorkers, RemoteFreeColumns
from skadmm.oracle.large_shifts import LocalLargeShifts
from skadmm.oracle.single_pass import SinglePassOracle

EDGES = 256
"""The number of thresholds tried in one round of the search for a threshold over values on several workers."""


def large_shifts(oracle: SinglePassOracle) -> LocalLargeShifts:
    """The large-shift samples of a block's oracle."""
    return oracle.large_shifts


class RemoteOracle:
    """Asks the oracles of all blocks, and adds up."""

    def __init__(self, backend: Cluster, checkpoint: KeptBeside | None = None) -> None:
        self._channel = Channel(backend, SinglePassOracle)
        self._keeping = KeptOnWorkers(self._channel, checkpoint)
        self.large_shifts = RemoteLargeShifts(self._channel)
        self.free_columns = RemoteFreeColumns(self._channel)

    # -- storage -------------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """The name under which the workers keep their state next to the checkpoint; empty where they could not."""
        if self._channel.waiting:
            self._channel.tell(LocalLargeShifts.end, part=large_shifts)
        return self._keeping.state()

    def resume(self, state: dict[str, Any]) -> bool:
        """Let the workers read what they have kept, and return whether they could."""
        return self._keeping.resume(state)

    def restart(self) -> None:
        """Create a new oracle for every block."""
        self._channel.restart()

    def close(self) -> None:
        """Let the workers drop the run."""
        self._channel.close()

    # -- a step --------------------------------------------------------------------------------------------------

    def begin(
        self, batch: GrowingBatch | None, x: np.ndarray | None, new: bool = False, stale: float | None = None
    ) -> None:
        """Choose the samples; sent with the next request."""
        self._channel.tell(SinglePassOracle.begin, batch, x)

    def along(self, step: np.ndarray | None, t: float) -> float:
        """Σ of the losses at t times a step."""
        return float(self._channel.ask(SinglePassOracle.along, step, t))

    def ends(self, step: np.ndarray) -> Ends:
        """Σ of the losses at both ends of a step."""
        return Ends(*self._channel.ask(SinglePassOracle.ends, step))

    def losses(self, t: float) -> float:
        """Σ of the losses at another t."""
        return float(self._channel.ask(SinglePassOracle.losses, t))

    def join(self, length: float, new: bool) -> BatchSums:
        """Take the step of a batch."""
        return BatchSums(*self._channel.ask(SinglePassOracle.join, length, new))

    def settle(self, length: float) -> FullSums:
        """Take the step of all samples."""
        return FullSums(*self._channel.ask(SinglePassOracle.settle, length))

    def renew(self, stale: float, afresh: bool) -> CurvatureChange:
        """Bring Σ h a aᵀ up to date."""
        return CurvatureChange(*self._channel.ask(SinglePassOracle.renew, stale, afresh))

    def batch_ahead(self, step: np.ndarray | None, new: bool) -> tuple[Ends, BatchSums]:
        """All of a batch's step in one request."""
        ends, sums = self._channel.ask(SinglePassOracle.batch_ahead, step, new)
        return Ends(*ends), BatchSums(*sums)

    def batch_taken(self) -> None:
        """Take the step of the batch whole; sent with the next request."""
        self._channel.tell(SinglePassOracle.batch_taken)

    def evaluate_ahead(self, step: np.ndarray | None, both: bool, stale: float | None) -> Ahead:
        """All of a step of all samples in one request."""
        ends, sums, H, count = self._channel.ask(SinglePassOracle.evaluate_ahead, step, both, stale)
        return Ahead(Ends(*ends), FullSums(*sums), H, int(count))

    def evaluation_taken(self) -> None:
        """Take the step of all samples whole; sent with the next request."""
        self._channel.tell(SinglePassOracle.evaluation_taken)

    def renewed(self, stale: float) -> None:
        """Record that H has been brought up to date; sent with the next request."""
        self._channel.tell(SinglePassOracle.renewed, stale)

    def conjugate(self, scale: float) -> float:
        """Σ w ℓ*(scale θ / w)."""
        return float(self._channel.ask(SinglePassOracle.conjugate, scale))

    def margins_and_slopes(self) -> None:
        """None: the margins and slopes stay on the workers."""
        return


class RemoteLargeShifts:
    """The large-shift samples of all blocks."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    def threshold(self) -> float:
        """The shift above which a sample is a large-shift sample, found by a search with a few rounds of counting."""
        limit = int(LARGE_SHIFT_SHARE * self._channel.n)
        low = LARGE_SHIFT
        if self._count(np.array([low]))[0] <= limit:
            return low
        high = float(self._channel.ask(LocalLargeShifts.largest, part=large_shifts))
        while np.nextafter(low, np.inf) < high:
            edges = np.unique(np.linspace(low, high, EDGES + 2)[1:-1])
            edges = edges[(edges > low) & (edges < high)]
            if edges.size == 0:
                break
            few = self._count(edges) <= limit
            at = int(np.argmax(few)) if few.any() else edges.size
            high = float(edges[at]) if at < edges.size else high
            low = float(edges[at - 1]) if at > 0 else low
        return high

    def _count(self, edges: np.ndarray) -> np.ndarray:
        return self._channel.ask(LocalLargeShifts.count, edges, part=large_shifts)

    def curved(self, limit: float) -> float:
        """The curvature above which the samples with large shifts are few; 0 where there is no such curvature."""
        if self._count(np.array([LARGE_SHIFT]))[0] <= MOST_SHIFTED * self._channel.n:
            return 0.0
        level = CURVED * float(self._channel.ask(LocalLargeShifts.max_curvature, part=large_shifts))
        count = int(self._channel.ask(LocalLargeShifts.count_curved, level, part=large_shifts)) if level > 0.0 else 0
        return level if 0 < count <= limit else 0.0

    def begin(self, threshold: float, count: int | None = None, curvature: float = -1.0) -> int:
        """Copy the samples on each worker; returns their number, which takes a request unless `count` is given."""
        if count is None:
            return int(self._channel.ask(LocalLargeShifts.begin, threshold, None, curvature, part=large_shifts))
        self._channel.tell(LocalLargeShifts.begin, threshold, None, curvature, part=large_shifts)
        return count

    def along(self, step: np.ndarray) -> ShiftAlong:
        """Sums of the losses of the copied samples along a step."""
        return ShiftAlong(*self._channel.ask(LocalLargeShifts.along, step, part=large_shifts))

    def losses(self, t: float) -> float:
        """Σ of the losses of the copied samples at t times the step."""
        return float(self._channel.ask(LocalLargeShifts.losses, t, part=large_shifts))

    def move(self, length: float) -> ShiftSums:
        """Take the step."""
        return ShiftSums(*self._channel.ask(LocalLargeShifts.move, length, part=large_shifts))

    def end(self) -> None:
        """Do nothing: the next ``begin`` of a step drops the copies."""

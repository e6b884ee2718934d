"""The oracle over samples whose loss joins several margins: exact Hessians of k × k blocks per sample."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from skadmm.kernels.coupled_hessian import sum_coupled_outer
from skadmm.kernels.expansion import SCALAR_WORK, expand_along, in_parts
from skadmm.kernels.samples import Samples
from skadmm.oracle.base import BatchSums, CurvatureChange, ShiftAlong, ShiftSums
from skadmm.oracle.local import LocalOracle


class CoupledOracle(LocalOracle):
    """Samples of several outputs in this process. A curvature is the h of diag(h) − h hᵀ / Σ h."""

    def __init__(self, samples: Samples, rows_per_chunk: int, between: Callable[[], None]) -> None:
        super().__init__(samples, 0, rows_per_chunk, between)
        self.outputs: int = samples.rows.outputs
        self.large_shifts: Any = NoLargeShifts()

    def losses(self, t: float) -> float:
        """Σ of the losses at t times the step, with slopes and curvatures there."""
        scalars, k = self.scalars, self.outputs

        def part(some: np.ndarray) -> float:
            index = (some[:, None] * k + np.arange(k)).ravel()
            return float(expand_along(self.samples, index, scalars.z, self._move, t, scalars.slope, scalars.curvatures))

        return float(sum(in_parts(part, range(self.size // k), SCALAR_WORK * self.size)))

    def join(self, length: float, new: bool) -> BatchSums:
        """Raise always: growing batches need a loss of one margin per sample."""
        raise ValueError("the loss joins several margins of a sample: growing batches take a loss of one margin")

    def renew(self, stale: float, afresh: bool) -> CurvatureChange:
        """The change of Σ h a aᵀ over samples one of whose curvatures changed by more than `stale`."""
        scalars, rows, k = self.scalars, self.samples.rows, self.outputs
        squares: Any = 0.0
        if afresh:
            scalars.used_curvatures[:] = 0.0
            squares = self.reader.sum_squares()
        change = np.abs(scalars.curvatures - scalars.used_curvatures).reshape(-1, k).max(axis=1)
        index = np.flatnonzero(change > stale)
        if index.size == 0:
            return CurvatureChange(0.0, squares)
        work, chunk = self.reader.products(index) * k, self.reader.chunk_size(index)
        H = sum_coupled_outer(rows, index, scalars.curvatures, work, chunk, self.reader.between)
        if not afresh and scalars.used_curvatures.any():
            H -= sum_coupled_outer(rows, index, scalars.used_curvatures, work, chunk, self.reader.between)
        places = (index[:, None] * k + np.arange(k)).ravel()
        scalars.used_curvatures[places] = scalars.curvatures[places]
        return CurvatureChange(H, squares)


class NoLargeShifts:
    """Large shifts of an oracle that has none: no samples take steps of their own."""

    def threshold(self) -> float:
        """Return infinity: no sample is a large-shift sample."""
        return np.inf

    def curved(self, limit: float) -> float:
        """Return 0: there are no large-shift samples."""
        return 0.0

    def begin(self, threshold: float, count: int | None = None, curvature: float = -1.0) -> int:
        """Return 0: no samples are copied."""
        return 0

    def along(self, step: np.ndarray) -> ShiftAlong:
        """Sums over no samples."""
        return ShiftAlong(0.0, 0.0, 0.0, 0.0, 0.0)

    def losses(self, t: float) -> float:
        """The sum of no losses."""
        return 0.0

    def move(self, length: float) -> ShiftSums:
        """Changes by no samples."""
        return ShiftSums(np.zeros(()), np.zeros(()))

    def end(self) -> None:
        """Do nothing: no samples were copied."""

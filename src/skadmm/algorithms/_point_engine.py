"""What engines share whose memory is a point, ρ and a multiplier, and whose other numbers are plain attributes."""

from typing import Any

import numpy as np

from skadmm.algorithms import _state
from skadmm.algorithms._split import Point
from skadmm.blocks.local import Look
from skadmm.certificate import Certificate


class PointEngine:
    """Checkpoints and warm starts of such an engine; its steps are its own."""

    steps_per_pass = 1
    point: Point
    rho: float
    multiplier: np.ndarray
    certificate: Certificate | None

    def looked_at(self, x: np.ndarray) -> Look | None:
        """Nothing is kept in that form."""
        return None

    def give_up(self) -> None:
        """The point after the last step."""

    def state(self) -> dict[str, Any]:
        """All numbers and arrays of the engine."""
        return _state.capture(self)

    def resume(self, state: dict[str, Any]) -> None:
        """Go on from a checkpoint."""
        _state.restore(self, state)
        self.certificate = None if self.certificate is None else Certificate(*self.certificate)

    def tables(self) -> dict[str, np.ndarray]:
        """The point, and ρ."""
        return _state.point_tables(self.point, self.rho)

    def restore(self, tables: dict[str, np.ndarray]) -> None:
        """Go on from an earlier point."""
        self.rho = _state.take_point(self.point, tables)
        self.multiplier = self.rho * self.point.dual

"""What engines share whose memory is a point, ρ and a multiplier, and whose other numbers are plain attributes."""

from typing import Any

import numpy as np

from skadmm.backends.base import Evaluation
from skadmm.io import state as stored
from skadmm.problem.certificate import Assessment, Certificate, Certifier
from skadmm.problem.problem import Problem
from skadmm.regularizers import SquaredL2
from skadmm.solvers.dual_update import Point
from skadmm.solvers.state import point_tables, take_point


def ridge_of(problem: Problem) -> Any:
    """The strength of a squared ℓ2 that Ω is, a vector where it has weights; 0 where it is none."""
    omega = problem.omega
    if not isinstance(omega, SquaredL2):
        return 0.0
    return omega.strength * omega.weights if omega.weights.size else omega.strength


class PointEngine:
    """Checkpoints, warm starts and bounds of such an engine; its steps are its own."""

    solver_name: str
    steps_per_pass = 1
    point: Point
    rho: float
    multiplier: np.ndarray
    certificate: Certificate | None
    certifier: Certifier
    objective: float
    lower_bound: float

    def evaluated_at(self, x: np.ndarray) -> Evaluation | None:
        """Nothing is kept in that form."""
        return None

    def assessed(self, x: np.ndarray, y: np.ndarray) -> Assessment | None:
        """The general evaluation is as good."""
        return None

    def give_up(self) -> None:
        """The point after the last step."""

    def close(self) -> None:
        """Nobody keeps anything."""

    def state(self) -> dict[str, Any]:
        """All numbers and arrays of the engine."""
        return stored.capture(self)

    def resume(self, state: dict[str, Any]) -> None:
        """Go on from a checkpoint."""
        stored.restore(self, state)
        self.certificate = None if self.certificate is None else Certificate(*self.certificate)

    def tables(self) -> dict[str, np.ndarray]:
        """The point, and ρ."""
        return point_tables(self.point, self.rho)

    def restore(self, tables: dict[str, np.ndarray]) -> None:
        """Go on from an earlier point."""
        self.rho = take_point(self.point, tables)
        self.multiplier = self.rho * self.point.dual

    def _step_made(self) -> None:
        """Count it, and take it into the averages."""
        self.point.clock[0] += 1
        self.point.x_sum[:] += self.point.x
        self.point.y_sum[:] += self.point.y

    def _raise_bound(
        self, slopes: np.ndarray, margins: np.ndarray, gradient: np.ndarray, slack: np.ndarray | None = None
    ) -> int:
        """The best lower bound so far, with that of these slopes and their gradient; how many samples it touched."""
        touched = 0
        if self.certifier.kind == "none":
            return touched
        if self.certifier.free.size:
            straight = self.certifier.orthogonal_slopes(slopes, margins)
            if straight is None:
                return touched
            slopes, gradient, touched = straight
        bounds = self.certifier.certify(self.objective, slopes, gradient, self.multiplier, slack)
        self.lower_bound = max(self.lower_bound, bounds.dual)
        return touched

"""What the wrappers of other packages share."""

import warnings
from typing import Any

import numpy as np

from benchmark_utils.problem import structure_of


class EnoughError(Exception):
    """Ends a run of a package whose callback cannot."""


def next_tolerance(tolerance: float) -> float:
    """From loose to tight: 0.1 first, then half a decade at a time."""
    return 0.1 if tolerance > 1 else max(tolerance / 10**0.5, 1e-14)


def soft(v: np.ndarray, bound: float) -> np.ndarray:
    """The proximal step of bound·‖·‖₁."""
    return v - np.clip(v, -bound, bound)


class Estimator:
    """An estimator in scikit-learn's manner where A = I, fitted to tighter and tighter tolerances."""

    sampling_strategy = "tolerance"
    structures = ("identity",)
    """What A may be."""
    unit = 1.0
    """What the estimator's tolerance is measured in."""
    model: Any
    X: Any
    target: np.ndarray

    def skip(self, X: Any, target: Any, loss: str, A: Any, strength: float) -> tuple[bool, str | None]:
        return (False, None) if structure_of(A) in self.structures else (True, f"A is not {self.structures[0]}")

    def warm_up(self) -> None:
        self.run(1e-6)  # tight: some packages compile their inner solvers only when they are reached

    def get_next(self, tolerance: float) -> float:
        return next_tolerance(tolerance)

    def run(self, tolerance: float) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.model.set_params(tol=min(tolerance, 1.0) * self.unit).fit(self.X, self.target)

    def get_result(self) -> dict[str, np.ndarray]:
        return {"x": np.ravel(self.model.coef_).astype(float)}

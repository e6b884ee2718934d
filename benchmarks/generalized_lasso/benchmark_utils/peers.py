"""What the wrappers of other packages share."""

import numpy as np


class EnoughError(Exception):
    """Ends a run of a package whose callback cannot."""


def next_tolerance(tolerance: float) -> float:
    """From loose to tight: 0.1 first, then half a decade at a time."""
    return 0.1 if tolerance > 1 else max(tolerance / 10**0.5, 1e-14)


def soft(v: np.ndarray, bound: float) -> np.ndarray:
    """The proximal step of bound·‖·‖₁."""
    return v - np.clip(v, -bound, bound)

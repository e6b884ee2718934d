"""Backtracking along a step, which the second-order solvers share."""

from collections.abc import Callable

SHORTEST = 2.0**-20
"""The smallest length that is tried."""
SUFFICIENT_DECREASE = 1e-4
"""The share of the expected decrease that a step must reach (Armijo 1966)."""
ROUNDING = 1e-14
"""Objectives closer than this, relatively, are the same."""


def shorten(merit: Callable[[float], float], start: float, expected: float = 0.0) -> float:
    """The first of 1, ½, ¼, … at which `merit` has decreased enough from `start`, its value at 0; 0 if none has.

    `expected` is the predicted change of `merit` at length 1.
    """
    length = 1.0
    while length >= SHORTEST:
        if merit(length) <= start + SUFFICIENT_DECREASE * length * min(expected, 0.0) + ROUNDING * abs(start):
            return length
        length *= 0.5
    return 0.0

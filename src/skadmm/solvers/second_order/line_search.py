"""How far to go along a step, and when to stop trying: what the second-order engines share."""

from collections.abc import Callable

SHORTEST = 2.0**-20
ROUNDING = 1e-14
"""Objectives closer than this, relatively, are the same."""
MOST_REFUSALS = 6
"""So many steps refused in a row mean that rounding, or the inner sweeps, allow no more."""


def shorten(merit: Callable[[float], float], start: float, expected: float = 0.0) -> float:
    """The first of 1, ½, ¼, … at which `merit` has fallen enough from `start`, its value at 0; 0 if none has."""
    length = 1.0
    while length >= SHORTEST:
        if merit(length) <= start + 1e-4 * length * min(expected, 0.0) + ROUNDING * abs(start):
            return length
        length *= 0.5
    return 0.0

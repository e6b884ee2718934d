"""Backtracking along a step, which the second-order solvers share."""

from collections.abc import Callable

SHORTEST = 2.0**-20
"""The smallest length that is tried."""
SUFFICIENT_DECREASE = 1e-4
"""The share of the expected decrease that a step must reach (Armijo 1966)."""
FASTER = 0.6
"""A step is lengthened where the decrease exceeds this share of what the slope at 0 predicts.

It is ½ for a quadratic with its minimum at length 1. Twice the length decreases a quadratic further from ⅔ on, and
functions with decreasing curvature from a little less on. Each length tried costs an evaluation of all samples."""
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


def lengthen(merit: Callable[[float], float], start: float, expected: float, longest: float) -> float:
    """The best of 1, 2, 4, … up to `longest`, as far as `merit` decreases, where it decreases faster than a quadratic.

    A quadratic model whose minimum is at length 1 predicts half of `expected`, the change of `merit` by its slope at 0.
    On the tail of a loss, where curvature decreases along the step, the decrease is larger and the step too short.
    """
    length = 1.0
    if start - merit(length) <= FASTER * max(-expected, 0.0):
        return length
    while 2.0 * length <= longest and merit(2.0 * length) < merit(length) - ROUNDING * abs(start):
        length *= 2.0
    return length

"""Backtracking along a step, which the second-order solvers share, and the objective along a step of an oracle."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from skadmm.oracle import SampleOracle

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


class Found(NamedTuple):
    """Where a search has ended."""

    length: float
    """The length taken."""
    losses: float
    """The sum of the losses there."""
    point: np.ndarray
    decrease: float
    """The relative decrease of the objective."""


class SampledObjective:
    """The mean loss on the `size` samples that an oracle has chosen, plus the penalty, along a step that is not zero.

    After a search, the oracle's slopes and curvatures are those of the point found.
    """

    def __init__(
        self,
        oracle: SampleOracle,
        penalty: Callable[[np.ndarray], float],
        size: int,
        start: np.ndarray,
        candidate: np.ndarray,
    ) -> None:
        self._oracle, self._penalty, self._size = oracle, penalty, size
        self._start, self._candidate, self._step = start, candidate, candidate - start
        self._at_start, self._at_end = penalty(start), penalty(candidate)
        self._losses: dict[float, float] = {}
        self._values: dict[float, float] = {}
        self._last = 1.0
        """The length at which the oracle was last asked."""

    def search(self) -> Found:
        """The first of 1, ½, ¼, … at which the objective has decreased, where it is not known at the start."""
        before, self._losses[1.0] = self._oracle.ends(self._step)
        start = before / self._size + self._at_start
        return self._end(self._shorten(start, 0.0), start)

    def search_from(self, start: float, gradient: np.ndarray, longest: float) -> Found:
        """The same from a known objective and gradient; a step may be lengthened up to `longest` times."""
        expected = float(gradient @ self._step) + self._at_end - self._at_start
        self._losses[1.0] = self._oracle.along(self._step, 1.0)
        length = self._shorten(start, expected)
        return self._end(lengthen(self._value, start, expected, longest) if length == 1.0 else length, start)

    def _value(self, t: float) -> float:
        if t not in self._losses:
            self._losses[t], self._last = self._oracle.losses(t), t
        if t not in self._values:
            penalty = self._at_end if t == 1.0 else self._penalty(self._start + t * self._step)
            self._values[t] = self._losses[t] / self._size + penalty
        return self._values[t]

    def _shorten(self, start: float, expected: float) -> float:
        length = shorten(self._value, start, expected)
        if length == 0.0:
            self._value(0.0)
        return length

    def _end(self, length: float, start: float) -> Found:
        if self._last != length:  # slopes and curvatures are those of the last length tried
            self._losses[length] = self._oracle.losses(length)
        point = self._candidate if length == 1.0 else self._start + length * self._step
        decrease = (start - self._values[length]) / max(abs(start), np.finfo(float).tiny)
        return Found(length, self._losses[length], point, decrease)

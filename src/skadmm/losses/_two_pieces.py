"""Losses of two straight pieces that meet in a kink of value zero: quantile, absolute, hinge."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from skadmm.kernels.compile import jitable
from skadmm.losses._base import ROUNDING, Pieces, define


def define_two_pieces(
    cls: type, *, kink: Callable[..., Any], lower: Callable[..., Any], upper: Callable[..., Any]
) -> None:
    """Make `cls` a loss that is lower·(z − kink) below its kink and upper·(z − kink) above, lower ≤ 0 ≤ upper.

    The three are functions of the loss and of the target b, in Numba's subset of Python. The derivative at the kink is
    the subgradient 0.
    """
    at, left, right = jitable(kink), jitable(lower), jitable(upper)

    def value(loss, z, b):
        r = z - at(loss, b)
        return left(loss, b) * r if r < 0.0 else right(loss, b) * r

    def derivative(loss, z, b):
        r = z - at(loss, b)
        if r == 0.0:
            return 0.0
        return left(loss, b) if r < 0.0 else right(loss, b)

    def curvature(loss, z, b):
        return 0.0

    def conjugate(loss, theta, b):
        low, high = left(loss, b), right(loss, b)
        if theta < low - ROUNDING or theta > high + ROUNDING:
            return math.inf
        return min(max(theta, low), high) * at(loss, b)

    def envelope_slope(loss, v, b, step):
        return min(max((v - at(loss, b)) / step, left(loss, b)), right(loss, b))

    def envelope_curvature(loss, v, b, step):
        return 1.0 / step if left(loss, b) <= (v - at(loss, b)) / step <= right(loss, b) else 0.0

    def pieces(loss, targets):
        values = targets.tolist()
        return Pieces(*(np.array([number(loss, b) for b in values], dtype=float) for number in (kink, lower, upper)))

    cls.pieces = pieces  # type: ignore[attr-defined]
    define(
        cls, value=value, derivative=derivative, curvature=curvature, conjugate=conjugate,
        envelope_slope=envelope_slope, envelope_curvature=envelope_curvature,
    )  # fmt: skip

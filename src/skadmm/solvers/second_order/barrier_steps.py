"""Newton steps of the interior point solver for signals, without their linear systems: each function is one pass.

With s bounding |v|, the multipliers `up` and `down` and the slacks s − v and s + v stay positive, and the products
up·(s − v) and down·(s + v) go to zero together. A signal has up to millions of rows; NumPy would write and read a
temporary array of that length for each operation.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skadmm.kernels.compile import kernel


class Iterate(NamedTuple):
    """The variables that stay positive, or a change of them."""

    up: np.ndarray
    down: np.ndarray
    above: np.ndarray
    """s − v."""
    below: np.ndarray
    """s + v."""


class Products(NamedTuple):
    """By how much a step changes up·(s − v) and down·(s + v), to first order."""

    first: np.ndarray
    second: np.ndarray


@kernel
def start(up, down, s, v, here, wanted, e):
    """Fill the iterate, E of its Newton system, and the products of the predictor: all to zero. Returns their sum."""
    for i in range(v.size):
        above, below = s[i] - v[i], s[i] + v[i]
        here.up[i], here.down[i], here.above[i], here.below[i] = up[i], down[i], above, below
        e[i] = (above / up[i] + below / down[i]) / 4.0
    total = 0.0
    for i in range(here.up.size):
        first, second = here.up[i] * here.above[i], here.down[i] * here.below[i]
        wanted.first[i], wanted.second[i] = -first, -second
        total += first + second
    return total


@kernel
def to_target(here, move, target, wanted):
    """The products of the corrector: all to `target`, less the second-order term of the predictor."""
    for i in range(here.up.size):
        wanted.first[i] = target - here.up[i] * here.above[i] - move.above[i] * move.up[i]
        wanted.second[i] = target - here.down[i] * here.below[i] - move.below[i] * move.down[i]


@kernel
def to_centre(here, move, t, target, least, most, wanted):
    """Add what brings the products after a step of length t between `least` and `most` times their target."""
    low, high = least * target, most * target
    for i in range(here.up.size):
        first = (here.up[i] + t * move.up[i]) * (here.above[i] + t * move.above[i])
        second = (here.down[i] + t * move.down[i]) * (here.below[i] + t * move.below[i])
        wanted.first[i] += max(min(max(first, low), high) - first, -high)
        wanted.second[i] += max(min(max(second, low), high) - second, -high)


@kernel
def right_side(here, wanted, v, e, near, out):
    """b of the Newton system: of the change where `near`, otherwise of the point."""
    for i in range(v.size):
        right = (wanted.first[i] / here.up[i] - wanted.second[i] / here.down[i]) / 2.0
        out[i] = -right if near else v[i] - e[i] * (here.up[i] - here.down[i]) - right


@kernel
def directions(here, wanted, v, near, dv, du, move):
    """The move that belongs to a solution of the Newton system, and the largest t ≤ 1 that keeps all positive.

    `dv` and `du` are a point unless `near`, and become changes.
    """
    t = 1.0
    for i in range(v.size):
        if not near:
            dv[i] -= v[i]
            du[i] -= here.up[i] - here.down[i]
        ds = (wanted.first[i] + here.up[i] * dv[i] - here.above[i] * du[i] / 2.0) / here.up[i]
        up, above, below = du[i] / 2.0, ds - dv[i], ds + dv[i]
        move.up[i], move.down[i], move.above[i], move.below[i] = up, -up, above, below
        if here.up[i] + t * up < 0.0:
            t = -here.up[i] / up
        if here.down[i] - t * up < 0.0:
            t = here.down[i] / up
        if here.above[i] + t * above < 0.0:
            t = -here.above[i] / above
        if here.below[i] + t * below < 0.0:
            t = -here.below[i] / below
    return t


@kernel
def products_after(here, move, t):
    """The sum of the products after a step of length t."""
    total = 0.0
    for i in range(here.up.size):
        total += (here.up[i] + t * move.up[i]) * (here.above[i] + t * move.above[i])
        total += (here.down[i] + t * move.down[i]) * (here.below[i] + t * move.below[i])
    return total


@kernel
def take(t, change, move, v, up, down, s):
    """Take a step of length t; `change` is the change of v."""
    for i in range(v.size):
        v[i] += t * change[i]
        up[i] += t * move.up[i]
        down[i] += t * move.down[i]
        s[i] = max(s[i] + t * (move.above[i] + move.below[i]) / 2.0, abs(v[i]) * (1.0 + 1e-12))

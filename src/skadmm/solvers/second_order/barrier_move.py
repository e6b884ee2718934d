"""A step of a primal-dual interior point method on |v| ≤ s: predictor, corrector, correction towards the centre.

The solvers of signals differ in their linear systems only, which are an argument here.

References
----------
Mehrotra (1992). On the implementation of a primal-dual interior point method. SIAM Journal on Optimization 2.
Gondzio (1996). Multiple centrality corrections in a primal-dual method for linear programming. Computational
Optimization and Applications 6.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from skadmm.solvers.second_order import barrier_steps
from skadmm.solvers.second_order.signal_systems import SignalPoint


@dataclass(frozen=True, kw_only=True)
class MoveConfig:
    """Settings of a step."""

    boundary_share: float = 0.99
    """A step goes at most this share of the way to the boundary."""
    smallest_length: float = 1e-12
    """A step that must be shorter than this ends the run."""
    corrected_below: float = 0.9
    """A step that could go less than this share of its way is corrected towards the centre (Gondzio 1996)."""
    look_ahead: float = 0.3
    """The correction is computed from the products after a step that is longer by this."""
    centre: tuple[float, float] = (0.1, 10.0)
    """Products outside these multiples of their target are corrected."""


class Iterate(Protocol):
    """The variables of an interior point method, as its state keeps them."""

    x: np.ndarray
    v: np.ndarray
    up: np.ndarray
    down: np.ndarray
    s: np.ndarray


class System(NamedTuple):
    """The Newton systems of a step."""

    factor: Callable[[np.ndarray], Solve]
    """The solver of the system with this E."""
    near: bool
    """True where systems are solved for changes. Far from the solution v decreases by many orders of magnitude, so they
    are solved for the new point, whose rounding error is relative to itself. Near the solution they are solved for
    the change, which has to be accurate."""


class Solve(Protocol):
    """Solves the Newton system with b on the right side."""

    def __call__(self, b: np.ndarray, *, refine: bool) -> SignalPoint:
        """x, v and the multipliers of v; refined only where `refine`."""
        ...


def move(state: Iterate, system: System, config: MoveConfig) -> float:
    """Move the iterate by one step, and return its length; 0 where it would be too short, and nothing has moved."""
    v, near = state.v, system.near
    here, move, other = (barrier_steps.Iterate(*np.empty((4, v.size))) for _ in range(3))
    wanted = barrier_steps.Products(*np.empty((2, v.size)))
    e, right = np.empty((2, v.size))
    mu = barrier_steps.start(state.up, state.down, state.s, v, here, wanted, e)
    solve = system.factor(e)

    def newton(direction: barrier_steps.Iterate, *, refine: bool = True) -> tuple[SignalPoint, float]:
        """The step that changes the products as wanted, and how far it may go."""
        barrier_steps.right_side(here, wanted, v, e, near, right)
        found = solve(right, refine=refine)
        return found, barrier_steps.directions(here, wanted, v, near, found.v, found.u, direction)

    _, reach = newton(move, refine=False)  # it is only measured
    after = barrier_steps.products_after(here, move, reach)
    target = mu / (2 * v.size) * min(1.0, max(after, 0.0) / mu) ** 3
    barrier_steps.to_target(here, move, target, wanted)
    change, reach = newton(move)
    if reach < config.corrected_below:
        barrier_steps.to_centre(here, move, min(1.0, reach + config.look_ahead), target, *config.centre, wanted)
        corrected, farther = newton(other)
        if farther > reach:
            change, reach, move = corrected, farther, other
    t = min(1.0, config.boundary_share * reach)
    if not t > config.smallest_length:
        return 0.0
    state.x = state.x + t * (change.x if near else change.x - state.x)
    state.v, state.up, state.down, state.s = v.copy(), state.up.copy(), state.down.copy(), state.s.copy()
    barrier_steps.take(t, change.v, move, state.v, state.up, state.down, state.s)
    return t

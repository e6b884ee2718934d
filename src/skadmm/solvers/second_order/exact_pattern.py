"""From a point close to the minimiser of a signal to the minimiser itself, by the rows of D x that are zero there.

With the zeros of D x known, and the signs of the rest, the minimiser solves one linear system.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skadmm import _cancel
from skadmm.solvers.second_order.diagonal_quadratic import SignalObjective
from skadmm.solvers.second_order.signal_systems import SignalPoint


@dataclass(frozen=True)
class PatternConfig:
    """Settings of the search for the zeros of D x."""

    max_changes: int = 10
    """The maximum number of changes of a pattern."""
    negligible_gap: float = 1e-10
    """The relative gap at which rows whose multipliers are not at their bounds count as zero."""
    bound_rounding: float = 1e-9
    """A multiplier above its bound by no more than this share is on it."""
    inside: tuple[float, ...] = (1e-6, 1e-4, 1e-3, 1e-2)
    """A multiplier inside its bounds by more than this share belongs to a zero of D x. The values are tried in turn,
    and the first that gives a good enough point is taken."""
    good_gap: float = 1e-12
    """A relative gap that is good enough in any case."""


def exact_minimiser(objective: SignalObjective, point: SignalPoint, config: PatternConfig) -> SignalPoint:
    """The minimiser on the pattern of `point`, where the pattern is consistent; otherwise `point` itself."""
    if objective.quadratic.line is None:
        return _on_a_graph(objective, point, config)
    # Multipliers of high order are smooth: near a knot many are close to their bounds, and the largest v is the knot.
    size, bound = np.abs(point.v), objective.bound
    active = size * bound > size.max() * (bound - np.abs(point.u))
    sign = np.sign(point.u)
    for pattern, changes in ((active, 0), (_peaks(size, active), 0), (active, config.max_changes)):
        exact = _on_pattern(objective, pattern, sign, config, changes)
        if exact is not None:
            return exact
    negligible = objective.relative_gap(point) <= config.negligible_gap
    return point._replace(v=np.where(active, point.v, 0.0)) if negligible else point


def _on_a_graph(objective: SignalObjective, point: SignalPoint, config: PatternConfig) -> SignalPoint:
    gap, sign = objective.relative_gap(point), np.sign(point.u)
    for inside in config.inside:
        active = np.abs(point.u) >= objective.bound * (1 - inside)
        exact = _on_pattern(objective, active, sign, config, changes=0)
        if exact is not None and objective.relative_gap(exact) <= max(gap, config.good_gap):
            return exact
    return point


def _on_pattern(
    objective: SignalObjective, active: np.ndarray, sign: np.ndarray, config: PatternConfig, changes: int
) -> SignalPoint | None:
    """The minimiser with D x = 0 off `active` and multipliers bound · sign on it; None where that is inconsistent.

    The pattern is changed up to `changes` times: rows with the wrong sign leave it, those above their bound join it.
    """
    quadratic, bound = objective.quadratic, objective.bound
    for _ in range(changes + 1):
        _cancel.check_cancelled()
        exact = quadratic.system.with_zeros(quadratic.q, ~active, bound * sign)
        if exact is None:
            return None
        wrong = active & (exact.v * sign < 0)
        beyond = ~active & (np.abs(exact.u) > bound * (1 + config.bound_rounding))
        if not wrong.any() and (quadratic.line is None or not beyond.any()):
            return exact._replace(u=np.clip(exact.u, -bound, bound))
        joining = _peaks(np.abs(exact.u), beyond)
        active = (active & ~wrong) | joining
        sign = np.where(joining, np.sign(exact.u), sign)
    return None


def _peaks(size: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """In each run of neighbours in `mask`, the one where `size` is largest."""
    chosen = np.zeros(mask.size, bool)
    where = np.flatnonzero(mask)
    if where.size:
        for run in np.split(where, np.flatnonzero(np.diff(where) > 1) + 1):
            chosen[run[np.argmax(size[run])]] = True
    return chosen

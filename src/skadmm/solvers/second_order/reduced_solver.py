"""What solvers share that take Newton steps on few coordinates and ask the reduced oracle (``oracle/reduced.py``) about
the samples.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np

from skadmm.io.state import transient
from skadmm.oracle import ReducedOracle
from skadmm.problem.free_columns import orthogonal
from skadmm.solvers.second_order.base import OracleSolver, OracleState
from skadmm.solvers.second_order.line_search import shorten

TINY = float(np.finfo(float).tiny)
"""The smallest normal number."""


@dataclass(frozen=True)
class DampingConfig:
    """Settings of the damping of models."""

    damping: float = 1e-6
    """The first value of τ. The diagonal of H is increased by τ times its value at the loss's maximum curvature."""
    min_damping: float = 1e-12
    """The smallest value of τ."""
    damping_decrease: float = 0.1
    """The factor of τ after a full step."""
    damping_increase: float = 8.0
    """The factor of τ after a shortened step."""
    damping_increase_refused: float = 1000.0
    """The factor of τ after a step that was shortened below `short_length` or refused."""
    short_length: float = 0.01
    """See `damping_increase_refused`."""

    def after(self, damping: float, length: float) -> float:
        """τ after a step of this length."""
        if length == 1.0:
            factor = self.damping_decrease
        else:
            factor = self.damping_increase if length > self.short_length else self.damping_increase_refused
        return max(damping * factor, self.min_damping)

    def diagonal(self, damping: float, metric: np.ndarray) -> np.ndarray:
        """What τ adds to the diagonal of H, whose values at the loss's maximum curvature are `metric`."""
        # A coordinate on which no sample depends is held by the penalty, but needs some curvature.
        unseen = self.min_damping * max(float(metric.max()), 1.0)
        return np.where(metric > 0.0, damping * metric, unseen)


@dataclass(kw_only=True)
class ReducedState(OracleState):
    """State of a solver that asks the reduced oracle."""

    gradient: np.ndarray
    """The gradient of the mean loss at x."""
    damping: float
    """τ, see the Config."""
    improvement: float = 1.0
    """The relative improvement of the objective in the last step."""
    loss: float = np.nan
    """The sum of the samples' losses at x."""
    refusals: int = 0
    """Steps in a row that were refused."""
    sampled: bool = False
    """True where the loss, the gradient and what the oracle keeps for the samples are those of ``point.x``."""
    evaluated: bool = False
    """True where all fields above are those of ``point.x``."""
    oracle: ReducedOracle = transient()
    """Margins, slopes and curvatures of the samples, wherever they are kept; a checkpoint stores it separately."""


class Searched(NamedTuple):
    """Where a line search ended."""

    length: float
    """The share of the step that was taken."""
    loss: float
    """The sum of the samples' losses there."""
    improvement: float
    """The relative improvement of the objective."""


R = TypeVar("R", bound=ReducedState)


class ReducedSolver(OracleSolver[R]):
    """A solver that takes Newton steps on few coordinates, over samples that may be on workers."""

    def _forget(self, state: R) -> None:
        """Nothing is known at the point; its samples are placed again."""
        state.sampled = state.evaluated = False

    def loss_gradient(self, state: R) -> np.ndarray:
        """The gradient at the last evaluation."""
        return state.gradient

    def warm_start(self, state: R) -> None:
        """Start from an earlier point."""
        super().warm_start(state)
        self._forget(state)

    def _sample(self, state: R, loss: float, length: float) -> None:
        """Take so much of the step: the gradient at x, where the total loss is known."""
        n = self.problem.n_samples
        state.gradient = state.oracle.settle(length) / n
        state.loss, state.sampled = loss, True
        state.point.clock[1] += n

    def _find_length(self, state: R, step: np.ndarray, candidate: np.ndarray) -> Searched:
        """Move x towards the candidate, as far as the objective decreases; `step` is the same on the coordinates."""
        n, x, oracle = self.problem.n_samples, state.point.x.copy(), state.oracle
        before, penalties = state.objective, {1.0: self.problem.penalty(candidate)}
        expected = float(state.gradient @ (candidate - x)) + penalties[1.0] - (before - state.loss / n)
        losses: dict[float, float] = {}

        def at(t: float) -> np.ndarray:
            return candidate if t == 1.0 else x + t * (candidate - x)

        def merit(t: float) -> float:
            losses[t] = oracle.losses(t) if losses else oracle.along(step, t)
            if t not in penalties:
                penalties[t] = self.problem.penalty(at(t))
            return losses[t] / n + penalties[t]

        length = shorten(merit, before, expected)
        if length == 0.0:
            merit(0.0)
        state.point.x[:] = at(length)
        after = losses[length] / n + penalties[length]
        return Searched(length, losses[length], max(before - after, 0.0) / max(abs(after), TINY))

    def _improve_bound(self, state: R, slack: np.ndarray | None = None) -> None:
        """The best lower bound so far; `slack` marks rows of A on which the multiplier may be corrected."""
        if self.certifier.kind == "none":
            return
        n, oracle, gradient = self.problem.n_samples, state.oracle, state.gradient
        if self.certifier.free.size:
            total = orthogonal(oracle.free_columns, self.certifier.free)
            if total is None:
                return
            gradient = total / n
            state.point.clock[1] += 2 * n
        bounds = self.certifier.bounds(
            state.objective, lambda scale: oracle.conjugate(scale) / n, gradient, state.multiplier, slack
        )
        state.lower_bound = max(state.lower_bound, bounds.dual)

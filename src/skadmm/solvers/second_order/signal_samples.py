"""Samples under losses of two straight pieces, each of which sees one coefficient, and their part in Newton systems.

With a width of its own for every |a_i x_j(i) − k_i|, the multiplier of a sample follows from x. Samples are eliminated
from the system of a step, which leaves a diagonal matrix in place of the Hessian: the system of a signal under the
squared loss, solved in linear time (``signal_systems.py``).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skadmm.operators.line import Line
from skadmm.problem.problem import Problem
from skadmm.solvers.second_order.signal_systems import LineSystem, SignalPoint

MAX_PRECISION = 1e150
"""The largest weight of a sample in a Newton system."""


class PiecewiseSamples(NamedTuple):
    """The samples with a positive weight, each of which sees one coefficient."""

    feature: np.ndarray
    """The coefficient that each sees."""
    value: np.ndarray
    """a_i."""
    kink: np.ndarray
    """k_i, the margin of the kink."""
    lower: np.ndarray
    """The slope below the kink, times the weight of the sample."""
    upper: np.ndarray
    """The slope above the kink."""
    constant: float
    """The mean loss of samples that see no coefficient."""

    @classmethod
    def of(cls, problem: Problem) -> PiecewiseSamples:
        """The samples of `problem`."""
        entries, pieces = problem.local.single_entries, problem.loss.pieces
        assert not isinstance(entries, str), "every sample must see one coefficient"
        assert pieces is not None, "the loss must consist of two straight pieces"
        kink, lower, upper = pieces(problem.target)
        share = (problem.sample_weight if problem.sample_weight.size else np.ones(kink.size)) / kink.size
        lower, upper = share * lower, share * upper
        blind = np.ones(kink.size, bool)
        blind[entries.sample[entries.value != 0.0]] = False
        constant = float(np.sum(np.maximum(-lower * kink, -upper * kink)[blind]))
        used = (entries.value != 0.0) & (share[entries.sample] > 0.0)
        i = entries.sample[used]
        return cls(entries.feature[used], entries.value[used], kink[i], lower[i], upper[i], constant)

    def sums(self, slopes: np.ndarray, d: int) -> np.ndarray:
        """Σ a_i θ_i of each coefficient."""
        return np.bincount(self.feature, weights=self.value * slopes, minlength=d)

    def loss(self, x: np.ndarray) -> float:
        """The mean loss at x."""
        r = self.value * x[self.feature] - self.kink
        return float(np.sum(np.maximum(self.lower * r, self.upper * r))) + self.constant


class EliminatedSystem:
    """The Newton system R x + Sᵀθ + Dᵀu = q, (S x − k, D x) − E (θ, u) = b for one E, with the samples eliminated."""

    def __init__(self, samples: PiecewiseSamples, line: Line, ridge: np.ndarray, e: np.ndarray) -> None:
        n = samples.kink.size
        self.samples = samples
        with np.errstate(over="ignore", divide="ignore"):
            self.precision = np.minimum(1.0 / e[:n], MAX_PRECISION)
        self.h = ridge + samples.sums(samples.value * self.precision, ridge.size)
        """The diagonal matrix in place of the Hessian."""
        self.factor = LineSystem(line, self.h).factor(e[n:])

    def solve(self, q: np.ndarray, b: np.ndarray, *, near: bool, refine: bool = True) -> SignalPoint:
        """x, (S x − k, D x) and (θ, u); the system without k, that of a change, where `near`."""
        samples, n = self.samples, self.samples.kink.size
        kink = 0.0 if near else samples.kink
        right = q + samples.sums(self.precision * (b[:n] + kink), q.size)
        x, v, u = self.factor.solve(right, b[n:], refine=refine)
        r = samples.value * x[samples.feature] - kink
        return SignalPoint(x, np.concatenate([r, v]), np.concatenate([self.precision * (r - b[:n]), u]))


__all__ = ["EliminatedSystem", "PiecewiseSamples"]

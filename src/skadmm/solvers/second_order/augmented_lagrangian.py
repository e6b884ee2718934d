"""The augmented Lagrangian of a problem as a function of x (and y), and Newton steps that minimise it.

With y split off by K v + k = s (v is x; where B is not −I, x and y together, and A x + B y = c are rows with s = 0),

    φ(v) = f(x) + min over s of g(s) + (σ/2)‖K v + k − s + u/σ‖² + (κ/2)‖v − v₀‖²_M

is convex and differentiable, with a semismooth gradient: its second derivative is H_f + σKᵀ(I − J)K + κM, J the
Jacobian of the prox of g (``regularizers/_envelope.py``). A Newton step with a line search reads all samples and
factorises a matrix of the size of v.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg

from skadmm import _cancel
from skadmm.kernels.expansion import add_squares, expand, expand_along, margins, sum_outer, sum_rows
from skadmm.problem.problem import Problem
from skadmm.solvers.second_order.line_search import ROUNDING
from skadmm.solvers.second_order.split_penalty import Gradient, SplitPenalty, SplitState


@dataclass(frozen=True)
class NewtonConfig:
    """Settings of Newton steps on the augmented Lagrangian."""

    min_curvature: float = 1e-6
    """The smallest curvature of a column, as a share of the median, when rows of the constraint are weighted."""
    first_damping: float = 1e-9
    """The first value of τ, the share by which the diagonal of the Newton matrix is increased. τ grows after a short
    step and shrinks after a long one."""
    min_damping: float = 1e-13
    """The smallest value of τ."""
    max_damping: float = 1e3
    """The largest value of τ."""
    max_trials: int = 30
    """The maximum number of points tried in one line search."""
    slope_left: float = 0.1
    """A line search ends where the slope has fallen to this share."""
    short_step: float = 1e-2
    """A step shorter than this increases the damping."""


@dataclass(kw_only=True)
class LagrangianState(SplitState):
    """The variables of the augmented Lagrangian, and the samples at v."""

    damping: float
    """τ, the share by which the diagonal of the Newton matrix is increased."""
    margins: np.ndarray
    """aᵢ·x of each sample."""
    slopes: np.ndarray
    """ℓ' of each sample."""
    curvatures: np.ndarray
    """ℓ'' of each sample."""
    loss: float = np.inf
    """The mean loss."""


class NewtonStep(NamedTuple):
    """The outcome of a Newton step."""

    length: float
    """The share of the step that was made; 0 where none decreased φ."""
    minimised: bool
    """True where φ is at its minimum up to rounding."""


class AugmentedLagrangian(SplitPenalty):
    """φ of one problem."""

    def __init__(self, problem: Problem, ridge: Any, config: NewtonConfig) -> None:
        self.samples, self.every = problem.samples(), np.arange(problem.n_samples)
        squares = np.zeros(problem.n_features)
        add_squares(problem.rows, self.every, squares)
        super().__init__(problem, ridge, squares, config.min_curvature)
        self.config = config

    def init(self, x: np.ndarray, y: np.ndarray, multiplier: np.ndarray, kappa: float) -> LagrangianState:
        """The state at x and y, with the multiplier of A x + B y = c; reads no samples."""
        n, v = self.problem.n_samples, np.concatenate([x, y])[: self.K.shape[1]]
        return LagrangianState(
            v=v, u=self.u_of(multiplier), centre=v.copy(), kappa=kappa, damping=self.config.first_damping,
            margins=np.zeros(n), slopes=np.empty(n), curvatures=np.empty(n),
        )  # fmt: skip

    # -- the samples -------------------------------------------------------------------------------

    def evaluate(self, state: LagrangianState) -> None:
        """The samples at v."""
        margins(self.problem.rows, self.every, state.v[: self.problem.n_features], state.margins)
        total = expand(self.samples, self.every, state.margins, state.slopes, state.curvatures)
        state.loss = float(total) / self.problem.n_samples

    def loss_gradient(self, state: LagrangianState) -> np.ndarray:
        """The gradient of the mean loss at v's x."""
        return sum_rows(self.problem.rows, self.every, state.slopes, self.problem.nnz) / self.problem.n_samples

    # -- a Newton step ---------------------------------------------------------------------------------------

    def newton_step(self, state: LagrangianState, gradient: Gradient) -> NewtonStep:
        """One damped Newton step from v, as far as φ decreases; counts as one evaluation of all samples."""
        _cancel.check_cancelled()
        step = self.solve(state, self.matrix(state, gradient.w), gradient.total)
        return self._search(state, step, float(gradient.total @ step))

    def matrix(self, state: LagrangianState, w: np.ndarray | None) -> np.ndarray:
        """The second derivative of φ; without the envelope's where `w` is None."""
        problem, d, n = self.problem, self.problem.n_features, self.problem.n_samples
        matrix = np.zeros((state.v.size, state.v.size))
        curved = np.flatnonzero(state.curvatures)
        if curved.size:
            per_row = problem.nnz / n if problem.is_sparse else d
            matrix[:d, :d] = sum_outer(problem.rows, curved, state.curvatures / n, 0.5 * curved.size * per_row**2)
        if w is not None:
            matrix += (self.Kt @ (self.envelope(state, w) @ self.K)).toarray()
        diagonal = np.einsum("ii->i", matrix)
        diagonal[:d] += self.ridge
        diagonal += state.kappa * self.metric
        return matrix

    def solve(self, state: LagrangianState, matrix: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        """−(matrix + τ diag)⁻¹ gradient, scaled so that the diagonal is one; zero where numbers are not finite."""
        diagonal = np.diag(matrix)
        unit = 1.0 / np.sqrt(np.maximum(diagonal, 1e-300 + 1e-14 * self.metric))
        scaled = unit[:, None] * matrix * unit
        if not (np.isfinite(scaled).all() and np.isfinite(gradient).all()):
            return np.zeros_like(gradient)
        tau = state.damping
        while True:
            damped = scaled + tau * np.eye(unit.size)
            factor, failed = scipy.linalg.lapack.dpotrf(damped, lower=1, overwrite_a=0)
            if not failed:
                right = -unit * gradient
                step = scipy.linalg.cho_solve((factor, True), right, check_finite=False)
                step += scipy.linalg.cho_solve((factor, True), right - damped @ step, check_finite=False)
                if np.isfinite(step).all():
                    return unit * step
            tau = max(100.0 * tau, 1e-14)

    def _search(self, state: LagrangianState, step: np.ndarray, slope: float) -> NewtonStep:
        """Search along the step until the slope of φ, which is convex, has fallen to a tenth; take the whole step where
        φ still decreases at its end."""
        n, d, config = self.problem.n_samples, self.problem.n_features, self.config
        change = np.zeros(n)
        margins(self.problem.rows, self.every, step[:d], change)
        before = self.merit(state, state.v, state.loss)
        slope = min(slope, 0.0)
        low, high, middle, loss = 0.0, np.inf, 1.0, state.loss
        for _ in range(config.max_trials):
            length = middle
            trial = state.v + length * step
            loss = self._expand(state, change, length)
            here = self._slope_along(state, trial, step, change)
            if not (np.isfinite(here) and np.isfinite(loss)) or here > config.slope_left * abs(slope):
                high = length
            elif here < -config.slope_left * abs(slope) and high < np.inf:
                low = length
            else:
                break
            middle = 0.5 * (low + high)
        if not self.merit(state, trial, loss) <= before + ROUNDING * abs(before):
            length, trial = 0.0, state.v
            loss = self._expand(state, change, 0.0)
        state.v = trial.copy()
        state.margins += length * change
        state.loss = loss
        if length >= config.short_step:
            state.damping = max(0.1 * state.damping, config.min_damping)
        else:
            state.damping = min(max(100.0 * state.damping, 1e-8), config.max_damping)
        return NewtonStep(length, length == 0.0 or -slope <= ROUNDING * max(abs(before), np.finfo(float).tiny))

    def _expand(self, state: LagrangianState, change: np.ndarray, length: float) -> float:
        """The mean loss at the margins plus `length` times their change; slopes and curvatures there."""
        total = expand_along(
            self.samples, self.every, state.margins, change, length, state.slopes, state.curvatures
        )  # fmt: skip
        return float(total) / self.problem.n_samples

    def _slope_along(self, state: LagrangianState, v: np.ndarray, step: np.ndarray, change: np.ndarray) -> float:
        """The derivative of φ at v along the step; the slopes of the samples are those at v, `change` is that of their
        margins along the step."""
        d, n = self.problem.n_features, self.problem.n_samples
        w = self.shifted(state, v)
        t = self.penalty_parameter(state) * (w - self.prox(state, w))
        smooth = float(state.slopes @ change) / n + float(v[:d] @ (self.ridge * step[:d]))
        near = state.kappa * float((self.metric * (v - state.centre)) @ step)
        return smooth + float(t @ (self.K @ step)) + near

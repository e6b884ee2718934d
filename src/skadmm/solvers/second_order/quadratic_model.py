"""The quadratic model of the mean loss, and its minimisation with ψ by sweeps of ADMM.

    minimise over x, y   ½ x·H x − q·x + (τ/2)‖x − centre‖²_D + ψ(y)   subject to   A x + B y = c

One sweep is an x-step with the inverse of H + τD + ρAᵀA, then the y and dual updates every method shares.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg

from skadmm.kernels.compile import kernel
from skadmm.kernels.expansion import mirror
from skadmm.kernels.rows import copy_into
from skadmm.oracle import ModelSums
from skadmm.problem.problem import Problem
from skadmm.solvers import dual_update
from skadmm.solvers.dual_update import Point, couple, y_dual_update


@dataclass(frozen=True)
class ModelConfig:
    """Settings of the sweeps."""

    relaxation: float = 1.6
    """Over-relaxation of the y and dual updates."""
    first_share: float = 1e-3
    """The first ρ makes the curvature of the penalty term this share of the loss's; residuals balance it later."""
    balance: float = 2.0
    """ρ is changed when √(primal residual / dual residual) is larger than this, or smaller than its inverse."""
    max_change: float = 10.0
    """The largest factor by which ρ is changed at once."""
    restless: float = 0.1
    """A relative primal residual above this, while y does not move, means that ρ is too small."""
    max_share: float = 100.0
    """Where ρ is increased for that reason, the penalty term's curvature stays below this many times the loss's."""
    widest_share: float = 1e16
    """The curvature of the penalty term is always between the loss's divided by this and this many times the loss's."""
    rounding: float = 1e-13
    """Residuals below this share of x are rounding, and count as zero."""


@dataclass
class ModelState:
    """What is kept from one model to the next, in addition to the point."""

    rho: float
    """The penalty parameter."""
    started: bool
    """True once ρ has been chosen, by the user or from the first model."""
    even_rho: float
    """The ρ at which the curvature of the penalty term equals the loss's, on average."""


class Residuals(NamedTuple):
    """Where the sweeps ended: how many, and the relative primal and dual residuals."""

    sweeps: int
    primal: float
    dual: float
    rounded: bool
    """Whether the residuals are rounding errors of the terms that cancel in x. Where x becomes zero, residuals relative
    to x do not show that."""

    @property
    def worst(self) -> float:
        """The larger of the two."""
        return max(self.primal, self.dual)


@kernel
def _sweep(inverse, right, split, point, rho, limit, tolerance, rounding, y_before, dual_before, scratch):
    couple(split, point, 0.0)
    primal, dual, rounded = 0.0, 0.0, True
    done = 0
    cancels = 0.0
    for j in range(right.size):
        cancels += (inverse[j, j] * right[j]) ** 2
    for _ in range(limit):
        copy_into(point.y, y_before)
        copy_into(point.dual, dual_before)
        for j in range(right.size):
            scratch[j] = right[j] - rho * point.coupling[j]
        for j in range(right.size):
            row, total = inverse[j], 0.0
            for k in range(right.size):
                total += row[k] * scratch[k]
            point.x[j] = total
        y_dual_update(split, point, 0.0)
        done += 1
        y_move, dual_move, y_size, dual_size = 0.0, 0.0, 1e-300, 1e-300
        for e in range(point.y.size):
            y_move += (point.y[e] - y_before[e]) ** 2
            y_size += point.y[e] ** 2
        for e in range(point.dual.size):
            dual_move += (point.dual[e] - dual_before[e]) ** 2
            dual_size += point.dual[e] ** 2
        # The dual moves by the primal residual; the dual residual is ρ times a move of y. While y is zero there is
        # nothing to compare with but the residual itself.
        noise = 0.0
        for j in range(point.x.size):
            noise += point.x[j] ** 2
        rounded = max(dual_move, y_move) <= rounding * (noise + cancels)
        noise *= rounding
        primal = np.sqrt(dual_move / max(y_size, dual_move)) if dual_move > noise else 0.0
        dual = np.sqrt(y_move / dual_size) if y_move > noise else 0.0
        if primal <= tolerance and dual <= tolerance:
            break
    return done, primal, dual, rounded


class ModelSolver:
    """Sweeps on quadratic models of one problem; y, the dual and ρ go from one model to the next.

    `adaptive` lets the sweeps change ρ.
    """

    def __init__(self, problem: Problem, config: ModelConfig, rho: float, *, adaptive: bool) -> None:
        self.config, self.adaptive = config, adaptive
        constraint = problem.constraint
        self._squares_of_A = constraint.sum_of_squares or 1.0
        self._gram = (constraint.A.T @ constraint.A).toarray() if constraint.n_constraints else None
        self.split = dual_update.build(problem, rho, config.relaxation)
        self._buffers = (
            np.empty(problem.n_split),
            np.empty(problem.n_constraints),
            np.empty(problem.n_features),
        )

    def reweighted(self, problem: Problem) -> ModelSolver:
        """The same sweeps for a problem that differs in the strength of ψ alone."""
        other = copy.copy(self)
        other.split = self.split._replace(psi=problem.psi)
        return other

    def minimise(
        self,
        state: ModelState,
        point: Point,
        H: np.ndarray,
        q: np.ndarray,
        centre: np.ndarray,
        damping: np.ndarray,
        limit: int,
        tolerance: float,
    ) -> Residuals:
        """`point` ← an approximate minimiser, started from its y and dual. `damping` is the diagonal of τD."""
        split = self.split
        if self._gram is None:
            limit = 1
        else:
            curvature = max(float(np.trace(H) + damping.sum()), 1e-12)
            state.even_rho = curvature / self._squares_of_A
            if not state.started:
                state.started = True
                _set_rho(state, point, self.config.first_share * state.even_rho)
            split = split._replace(rho=state.rho)
        right = q + damping * centre
        inverse = self._inverse(H, damping, state.rho)
        rounding = self.config.rounding**2 * self._squares_of_A / max(q.size, 1)
        residuals = Residuals(
            *_sweep(inverse, right, split, point, state.rho, limit, tolerance, rounding, *self._buffers)
        )
        if self._gram is not None and self.adaptive:
            self._balance(state, point, residuals)
        return residuals

    def _inverse(self, H: np.ndarray, damping: np.ndarray, rho: float) -> np.ndarray:
        """(H + τD + ρAᵀA)⁻¹, with more damping where the matrix is not positive definite because of rounding."""
        matrix = H.copy() if self._gram is None else H + rho * self._gram
        diagonal = np.einsum("ii->i", matrix)
        diagonal += damping
        extra = 1e-14 * max(float(diagonal.max()), np.finfo(float).tiny)
        while True:
            factor, failed = scipy.linalg.lapack.dpotrf(matrix, lower=0)
            if not failed:
                inverse, failed = scipy.linalg.lapack.dpotri(factor, lower=0, overwrite_c=1)
            if not failed:
                inverse = inverse.T  # by rows, as the other matrices that kernels see
                mirror(inverse)
                return inverse
            diagonal += extra
            extra *= 100.0

    def _balance(self, state: ModelState, point: Point, residuals: Residuals) -> None:
        """Bring the two residuals together."""
        config = self.config
        if residuals.primal == 0 or residuals.rounded:
            return
        if residuals.dual == 0:
            # y does not move. At zero, below its threshold λ/ρ, it needs a larger ρ; near the end that is not needed.
            share = config.max_share * state.even_rho / state.rho
            restless = residuals.primal > config.restless and share > 1.0
            change = min(config.max_change, share) if restless else 1.0
        else:
            change = float(np.sqrt(residuals.primal / residuals.dual))
        if not 1 / config.balance < change < config.balance:
            rho = state.rho * min(max(change, 1 / config.max_change), config.max_change)
            least, most = state.even_rho / config.widest_share, state.even_rho * config.widest_share
            _set_rho(state, point, min(max(rho, least), most))


class SummedModel:
    """The models that sums over samples make of the mean loss, with a ridge, and sweeps on them."""

    def __init__(self, problem: Problem, config: ModelConfig, rho: float, ridge: Any, *, adaptive: bool) -> None:
        self.ridge = ridge
        self.sweeps = ModelSolver(problem, config, rho, adaptive=adaptive)
        bound = problem.loss.curvature_bound
        self._curvature_scale = bound if np.isfinite(bound) else problem.typical_curvature

    def reweighted(self, problem: Problem) -> SummedModel:
        """The same models for a problem that differs in the strength of ψ alone."""
        other = copy.copy(self)
        other.sweeps = self.sweeps.reweighted(problem)
        return other

    def mean(self, sums: ModelSums) -> tuple[np.ndarray, np.ndarray]:
        """H and q of the mean loss; H includes the ridge."""
        H = sums.H / sums.seen
        np.einsum("ii->i", H)[:] += self.ridge
        return H, sums.q / sums.seen

    def metric(self, sums: ModelSums) -> np.ndarray:
        """The diagonal D that damping is measured in: a bound of H's, and 1 for features that no sample has."""
        metric = self._curvature_scale * sums.squares / sums.seen
        metric[metric == 0.0] = 1.0
        return metric

    def curved_share(self, sums: ModelSums) -> float:
        """The share of its maximum curvature that the loss has at the samples."""
        curved = float(np.trace(sums.H)) / (sums.seen * float(self.metric(sums).sum()))
        return min(max(curved, 0.0), 1.0)

    def minimise(
        self,
        sums: ModelSums,
        state: ModelState,
        point: Point,
        centre: np.ndarray,
        tau: float,
        limit: int,
        tolerance: float,
        rounds: int,
    ) -> float:
        """Rounds of sweeps on the model with the damping τ towards the centre, with ρ balanced between them, as long as
        they miss the tolerance. Returns the larger of the relative residuals where they ended."""
        damping = tau * self.metric(sums)
        H, q = self.mean(sums)
        for _ in range(rounds):
            residuals = self.sweeps.minimise(state, point, H, q, centre, damping, limit, tolerance)
            if residuals.worst <= tolerance:
                break
        return float(residuals.worst)


def _set_rho(state: ModelState, point: Point, rho: float) -> None:
    """Set ρ, and keep the multiplier ρ·dual."""
    point.dual[:] *= state.rho / rho
    state.rho = rho

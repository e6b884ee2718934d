"""The augmented Lagrangian of a problem but for the loss: its penalty on rows K v + k.

With y split off by K v + k = s (v is x; where B is not −I, x and y together, and A x + B y = c are rows with s = 0),
the penalty becomes a Moreau envelope with a σ for each row. All that it needs of the samples are sums over them, so
they may be elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from skadmm.problem.problem import Problem
from skadmm.regularizers._envelope import envelope_curvature, parts_of, prox_with_steps


@dataclass(kw_only=True)
class SplitState:
    """The variables of the augmented Lagrangian."""

    v: np.ndarray
    """x, or x and y where B is not −I."""
    u: np.ndarray
    """The multiplier of K v + k = s."""
    centre: np.ndarray
    """The centre v₀."""
    kappa: float
    """κ, the weight of the distance from v₀."""
    sigma: float = 1.0
    """σ, relative to the weights of the rows."""


class Gradient(NamedTuple):
    """The gradient of φ at v, and its parts."""

    w: np.ndarray
    """K v + k + u/σ."""
    s: np.ndarray
    """The minimiser over s, the prox of g at w."""
    t: np.ndarray
    """σ(w − s), a subgradient of g at s."""
    smooth: np.ndarray
    """The gradient of the loss and the ridge."""
    coupling: np.ndarray
    """Kᵀt."""
    total: np.ndarray
    """The whole gradient, with that of the distance from v₀."""


def _inverse_reach(matrix: Any, curvature: np.ndarray) -> np.ndarray:
    """1 / Σ_j a_ej²/curvature_j for each row e; the median for rows of zeros."""
    reach = np.asarray((matrix.multiply(matrix) @ sp.diags_array(1.0 / curvature)).sum(axis=1)).ravel()
    seen = reach > 0.0
    inverse = np.full(reach.size, 1.0 / float(np.median(reach[seen])) if seen.any() else 1.0)
    inverse[seen] = 1.0 / reach[seen]
    return inverse


class SplitPenalty:
    """The rows K v + k of a problem, their weights, and the envelope of the penalty on them."""

    def __init__(self, problem: Problem, ridge: Any, squares: np.ndarray, min_curvature: float) -> None:
        """`squares` is Σ a² of each feature; columns have at least `min_curvature` times the median curvature when
        rows are weighted."""
        self.problem, self.ridge = problem, ridge
        n, d, p = problem.n_samples, problem.n_features, problem.n_split
        constraint = problem.constraint
        if constraint.B is None:
            self.K, self.offset = constraint.A, -constraint.c
        else:
            pick = sp.hstack([sp.csr_array((p, d)), sp.eye_array(p)], format="csr")
            equal = sp.hstack([constraint.A, constraint.B], format="csr")
            self.K = sp.csr_array(sp.vstack([pick, equal], format="csr"))
            self.offset = np.concatenate([np.zeros(p), -constraint.c])
        self.Kt = sp.csr_array(self.K.T)
        self.parts = parts_of(problem.psi, p)
        self.metric = np.zeros(self.K.shape[1])
        """The metric M, in which columns of different scales have the same weight."""
        self.metric[:d] = problem.typical_curvature * squares / n + ridge
        self.weight = self._row_weights(min_curvature)
        """The σ of each row is this times the σ of the state."""
        self.metric += np.asarray((sp.diags_array(self.weight) @ self.K.multiply(self.K)).sum(axis=0)).ravel()
        self.metric[self.metric == 0.0] = 1.0

    def _row_weights(self, min_curvature: float) -> np.ndarray:
        """For each row of K the σ at which its curvature is that of the loss; equal over a part of g that is not
        separable. With these weights columns and rows of any scale are treated alike."""
        constraint, d = self.problem.constraint, self.problem.n_features
        known = self.metric[:d][self.metric[:d] > 0.0]
        smallest = min_curvature * (float(np.median(known)) if known.size else 1.0)
        weight = _inverse_reach(constraint.A, np.maximum(self.metric[:d], smallest))
        if constraint.B is not None:
            # y has no curvature of its own, so it takes that of the rows in which it occurs.
            of_y = np.asarray((sp.diags_array(weight) @ constraint.B.multiply(constraint.B)).sum(axis=0)).ravel()
            weight = np.concatenate([of_y, weight])
        for part in self.parts:
            if not part.reg.separable:
                weight[part.where] = np.exp(np.mean(np.log(weight[part.where])))
        return weight

    def u_of(self, multiplier: np.ndarray) -> np.ndarray:
        """The multiplier of K v + k = s from that of A x + B y = c."""
        constraint = self.problem.constraint
        return multiplier.copy() if constraint.B is None else np.concatenate([-constraint.Bt(multiplier), multiplier])

    def multiplier_of(self, u: np.ndarray) -> np.ndarray:
        """The multiplier of A x + B y = c from that of K v + k = s."""
        return u.copy() if self.problem.constraint.B is None else u[self.problem.n_split :].copy()

    def penalty_parameter(self, state: SplitState) -> np.ndarray:
        """σ of each row."""
        return state.sigma * self.weight

    def shifted(self, state: SplitState, v: np.ndarray) -> np.ndarray:
        """w = K v + k + u/σ."""
        return self.K @ v + self.offset + state.u / self.penalty_parameter(state)

    def prox(self, state: SplitState, w: np.ndarray) -> np.ndarray:
        """The minimiser s of g(s) + (σ/2)‖w − s‖²; 0 on the rows of A x + B y = c."""
        s, steps = np.zeros_like(w), 1.0 / self.penalty_parameter(state)
        for part in self.parts:
            s[part.where] = prox_with_steps(part.reg, w[part.where], steps[part.where])
        return s

    def merit(self, state: SplitState, v: np.ndarray, loss: float) -> float:
        """φ(v) less a constant."""
        d, p = self.problem.n_features, self.problem.n_split
        w, sigma = self.shifted(state, v), self.penalty_parameter(state)
        s = self.prox(state, w)
        away = v - state.centre
        psi = self.problem.psi_value(s[:p]) if p else 0.0
        split = 0.5 * float((w - s) @ (sigma * (w - s)))
        near = 0.5 * state.kappa * float(away @ (self.metric * away))
        return loss + 0.5 * float(v[:d] @ (self.ridge * v[:d])) + psi + split + near

    def gradient(self, state: SplitState, loss_gradient: np.ndarray) -> Gradient:
        """The gradient of φ at v, from that of the loss."""
        d, w = self.problem.n_features, self.shifted(state, state.v)
        s = self.prox(state, w)
        t = self.penalty_parameter(state) * (w - s)
        smooth = np.zeros_like(state.v)
        smooth[:d] = loss_gradient + self.ridge * state.v[:d]
        coupling = self.Kt @ t
        total = smooth + coupling + state.kappa * self.metric * (state.v - state.centre)
        return Gradient(w, s, t, smooth, coupling, total)

    def size(self, gradient: np.ndarray) -> float:
        """The norm of a gradient in which columns of different scales have the same weight."""
        return float(np.sqrt(np.sum(gradient**2 / self.metric)))

    def residual(self, state: SplitState, s: np.ndarray) -> float:
        """‖K v + k − s‖ with the weights of the rows, in the scale of :meth:`size`."""
        left = self.K @ state.v + self.offset - s
        return float(np.sqrt(left @ (self.weight * left)))

    def envelope(self, state: SplitState, w: np.ndarray) -> sp.csr_array:
        """σ(I − J) of all rows."""
        steps = 1.0 / self.penalty_parameter(state)
        blocks = [envelope_curvature(part.reg, w[part.where], steps[part.where]) for part in self.parts]
        equal = w.size - self.problem.n_split
        if equal:
            blocks.append(sp.eye_array(equal, format="csr"))
        whole = sp.block_diag(blocks, format="csr") if blocks else sp.csr_array((0, 0))
        return sp.csr_array(sp.diags_array(self.penalty_parameter(state)) @ whole)

"""The method of multipliers for many features: Newton steps by conjugate gradients, over rows that may be on workers.

As in ``multipliers.py`` Newton steps minimise the augmented Lagrangian φ, and then the multiplier u becomes
σ(w − prox(w)), a subgradient of ψ. No matrix of the size of x is formed. Of the second derivative

    H = H_f + σKᵀ(I − J)K + κM

the penalty's part is sparse, and the loss's is applied where the rows are (``oracle/reduced.py``): a product with it
is one request, which carries one number per feature each way. The sparse part, with the diagonal of H_f, is factorised
and preconditions the conjugate gradients; what is left of H_f has about the rank of the features that are not zero or
tied, so few products are enough. The penalty may have any rows of A and any groups, also groups that share features.

References
----------
Rockafellar, R. T. (1976). Augmented Lagrangians and applications of the proximal point algorithm in convex programming.
Li, X., Sun, D. and Toh, K.-C. (2018). A highly efficient semismooth Newton augmented Lagrangian method for solving
lasso problems. SIAM Journal on Optimization 28.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from skadmm import _cancel
from skadmm.operators.row_correction import factor_work, gram_work, symmetric_factor
from skadmm.oracle import ReducedOracle, reduced_oracle_for
from skadmm.problem.problem import COUPLED, Problem
from skadmm.regularizers._envelope import can_differentiate
from skadmm.solvers.base import Setup
from skadmm.solvers.dual_update import Point
from skadmm.solvers.second_order.base import ridge_of
from skadmm.solvers.second_order.line_search import ROUNDING, shorten
from skadmm.solvers.second_order.multiplier_updates import UpdateConfig
from skadmm.solvers.second_order.reduced_solver import TINY, ReducedSolver, ReducedState
from skadmm.solvers.second_order.split_penalty import Gradient, SplitPenalty, SplitState

MAX_SHARE = 64
"""The maximum number of multiplications that AᵀA may take, for each entry of A and each feature."""
Product = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class MultipliersCGConfig(UpdateConfig):
    """Settings of the method of multipliers by conjugate gradients."""

    min_curvature: float = 1.0
    """The smallest curvature of a column, as a share of the median, when rows of the constraint are weighted."""
    inner_tolerance: float = 0.3
    """The multiplier changes when the gradient of φ has fallen to this share of the constraint's residual."""
    max_idle: int = 40
    """The solver stops after this many changes of the multiplier without a better measure of optimality."""
    max_products: int = 500
    """The maximum number of products with H_f in one Newton step."""
    product_tolerance: float = 0.1
    """Conjugate gradients end when the residual has fallen to this share, or to what φ's gradient has to fall to."""
    max_factor_work: float = 1e10
    """The maximum number of multiplications in a factorisation of the preconditioner; beyond, it is its diagonal."""


@dataclass(kw_only=True)
class MultipliersCGState(ReducedState):
    """State of the method of multipliers by conjugate gradients."""

    split: SplitState
    """The variables of φ."""
    first_size: float = 0.0
    """The size of the loss gradient at the start, against which later gradients are measured."""
    last_residual: float = np.inf
    """The residual of the constraint at the last change of the multiplier."""
    newton_steps: int = 0
    """Newton steps since the multiplier last changed."""
    minimised: bool = False
    """True where φ is at its minimum up to rounding."""
    started: bool = False
    """True once σ has been chosen."""
    reached: float = np.inf
    """The best measure of optimality so far."""
    idle: int = 0
    """Changes of the multiplier since the measure of optimality last improved."""


class MultipliersCG(ReducedSolver[MultipliersCGState]):
    """The method of multipliers by conjugate gradients. A step is one Newton step; each product with the Hessian of the
    loss counts as one evaluation of all samples."""

    name = "multipliers-cg"
    summary = "The method of multipliers with Newton steps by conjugate gradients, for many features and any penalty"
    Config: ClassVar[type[Any]] = MultipliersCGConfig
    config: MultipliersCGConfig

    def __init__(self, setup: Setup, config: MultipliersCGConfig | None = None) -> None:
        super().__init__(setup, config)
        self.ridge = ridge_of(setup.problem) if setup.omega_mode == "system" else 0.0
        single = np.diff(setup.problem.constraint.A.indptr) == 1
        self.single_rows = np.flatnonzero(single & (setup.problem.constraint.c == 0.0))
        """The rows of A that hold one feature, which is zero where they are."""
        self.phi: SplitPenalty
        """φ but for the loss; made in the first step, because it takes a sum over the samples."""

    @classmethod
    def applies(cls, problem: Problem) -> str | None:
        """ψ must be finite, its prox have a derivative, and y follow from x."""
        if problem.is_coupled:
            return COUPLED
        if not (problem.backend.local_rows or problem.backend.block_memory):
            return f"it {problem.lacks_local_rows()}"
        if problem.constraint.B is not None:
            return "it takes no B"
        if not problem.n_split:
            return "it takes problems with a psi"
        if not problem.psi.subdifferentiable:
            return f"psi={type(problem.psi).__name__} is a constraint"
        A = problem.constraint.A
        if gram_work(A) > MAX_SHARE * (A.nnz + problem.n_features):
            return "rows of A have too many entries for a sparse factorisation"
        if not can_differentiate(problem.psi, problem.n_split):
            return f"psi={type(problem.psi).__name__} has no derivative of its prox at this size"
        return None

    def init(self, point: Point, rho: float) -> MultipliersCGState:
        """The state before the first evaluation."""
        return self._at(point, rho, reduced_oracle_for(self.problem.backend, self.setup.checkpoint))

    def _at(self, point: Point, rho: float, oracle: ReducedOracle) -> MultipliersCGState:
        """The state at a point of which nothing is known."""
        multiplier = rho * point.dual
        return MultipliersCGState(
            point=point, rho=rho, multiplier=multiplier.copy(), gradient=np.zeros(self.problem.n_features), damping=0.0,
            split=SplitState(v=point.x.copy(), u=multiplier, centre=point.x.copy(), kappa=self.config.first_kappa),
            oracle=oracle,
        )  # fmt: skip

    def warm_start(self, state: MultipliersCGState) -> None:
        """Start from an earlier point."""
        super().warm_start(state)
        state.split = self._at(state.point, state.rho, state.oracle).split
        state.started = False

    def follow(self, state: MultipliersCGState, problem: Problem) -> MultipliersCGState:
        """Start from the last solution, with the samples there, and from its σ and multiplier."""
        state.point.dual[:] *= self.dual_ratio(problem)
        after = self._at(state.point, state.rho, state.oracle)
        after.split.sigma, after.first_size, after.started = state.split.sigma, state.first_size, state.started
        after.sampled = state.sampled and bool(np.array_equal(state.split.v, state.point.x))
        after.loss, after.gradient = state.loss, state.gradient
        return after

    def _step(self, state: MultipliersCGState) -> None:
        """Change the multiplier while the gradient of φ is small enough; then take a Newton step."""
        self._prepare(state)
        if not state.started:
            self._start(state)
        gradient = self._change_multiplier(state)
        if gradient is not None:
            self._newton_step(state, gradient)

    def finish(self, state: MultipliersCGState) -> None:
        """The last point, exactly zero where y is."""
        self._whole(state, self._finish)

    def _finish(self, state: MultipliersCGState) -> None:
        self._prepare(state)
        if not state.evaluated:
            self._measure(state, self._gradient(state))
        A, before, x = self.problem.constraint.A, state.objective, state.point.x.copy()
        zero = self.single_rows[state.point.y[self.single_rows] == 0.0]
        x[A.indices[A.indptr[zero]]] = 0.0
        if np.array_equal(x, state.point.x):
            return
        kept = state.point.x.copy(), state.loss, state.gradient
        self._place(state, x)
        state.objective = state.loss / self.problem.n_samples + self.problem.penalty(x)
        allowed = 0.0 if self.tol is None or state.lower_bound == -np.inf else self.tol * abs(state.lower_bound)
        if state.objective <= max(before * (1.0 + ROUNDING), state.lower_bound + allowed):
            state.split.v = x
            state.point.x[:] = x
        else:
            state.objective, state.sampled = before, False
            _, state.loss, state.gradient = kept

    def last_loss(self, state: MultipliersCGState) -> float:
        """The mean loss at x."""
        return state.loss / self.problem.n_samples

    # -- a step ----------------------------------------------------------------------------------------------

    def _place(self, state: MultipliersCGState, x: np.ndarray) -> None:
        """Evaluate all samples at x."""
        self._sample(state, state.oracle.place(x), 0.0)
        state.evaluated = False

    def _prepare(self, state: MultipliersCGState) -> None:
        """Compute what the steps need of the samples: a sum over them, and an evaluation at v."""
        if not hasattr(self, "phi"):
            self.phi = SplitPenalty(self.problem, self.ridge, state.oracle.squares, self.config.min_curvature)
        if not state.sampled:
            self._place(state, state.split.v)

    def _start(self, state: MultipliersCGState) -> None:
        """Choose the first σ: that for which the thresholds of the prox are of the size of K v after a step on the
        loss."""
        phi, split, config = self.phi, state.split, self.config
        state.first_size = phi.size(state.gradient)
        diagonal = self._diagonal(state)
        step = self._solve(state, lambda v: v / diagonal, None, state.gradient + self.ridge * split.v, 0.1, 20)
        size = float(np.linalg.norm(phi.weight * (phi.K @ (split.v + step) + phi.offset)))
        bound = self.problem.psi.lipschitz(self.problem.n_split)
        known = 0.0 < bound < np.inf and size > 0.0
        split.sigma = float(np.clip(bound / size, config.min_sigma, 1.0)) if known else 1.0
        state.started = True

    def _gradient(self, state: MultipliersCGState) -> Gradient:
        return self.phi.gradient(state.split, state.gradient)

    def _change_multiplier(self, state: MultipliersCGState) -> Gradient | None:
        """Change the multiplier until φ has to be minimised further. Returns the gradient of φ, or None where the run
        has ended."""
        gradient = self._gradient(state)
        for _ in range(self.config.max_changes):
            if not state.minimised and self.phi.size(gradient.total) > self._enough(state, gradient):
                break
            self._take_multiplier(state, gradient)
            if state.finished or state.stalled:
                return None
            gradient = self._gradient(state)
        return gradient

    def _enough(self, state: MultipliersCGState, gradient: Gradient) -> float:
        """The size of φ's gradient at which the multiplier changes."""
        phi = self.phi
        scale = max(phi.size(gradient.smooth), phi.size(gradient.coupling), 1e-10 * state.first_size, 1e-300)
        residual = phi.residual(state.split, gradient.s)
        return self.config.enough(residual, scale)

    def _take_multiplier(self, state: MultipliersCGState, gradient: Gradient) -> None:
        """u ← σ(w − s); then update σ, κ and v₀."""
        split, config = state.split, self.config
        residual = self.phi.residual(split, gradient.s)
        self._measure(state, gradient)
        split.u, split.centre, state.minimised = gradient.t, split.v.copy(), False
        split.kappa = config.next_kappa(split.kappa)
        split.sigma = config.next_sigma(split.sigma, state.newton_steps, residual, state.last_residual)
        state.newton_steps, state.last_residual = 0, residual
        reached = self.optimality(state)[1]
        state.idle = 0 if reached < 0.9 * state.reached else state.idle + 1
        state.reached = min(state.reached, reached)
        state.finished = self.tol is not None and reached <= self.tol
        state.stalled = not state.finished and state.idle >= config.max_idle

    def _show(self, state: MultipliersCGState, gradient: Gradient) -> None:
        """Put v into the point, with its objective and the multiplier of φ's gradient there."""
        problem, point = self.problem, state.point
        point.x[:], point.y[:] = state.split.v, gradient.s
        state.multiplier = gradient.t
        point.dual[:] = state.multiplier / state.rho
        state.objective = state.loss / problem.n_samples + problem.penalty(point.x)

    def _measure(self, state: MultipliersCGState, gradient: Gradient) -> None:
        """The objective and the certificate at v."""
        self._show(state, gradient)
        self._improve_bound(state, gradient.s == 0.0)
        state.evaluated = True

    # -- a Newton step ---------------------------------------------------------------------------------------

    def _newton_step(self, state: MultipliersCGState, gradient: Gradient) -> None:
        """One Newton step from v, as far as φ decreases."""
        n, phi, split, oracle = self.problem.n_samples, self.phi, state.split, state.oracle
        curvature = sp.csr_array(phi.Kt @ (phi.envelope(split, gradient.w) @ phi.K))
        size = phi.size(gradient.total)
        share = min(self.config.product_tolerance, 0.3 * self._enough(state, gradient) / max(size, TINY))
        step = self._solve(
            state, self._preconditioner(state, curvature), curvature, gradient.total, max(share, 1e-6),
            self.config.max_products,
        )  # fmt: skip
        slope = min(float(gradient.total @ step), 0.0)
        before, start = phi.merit(split, split.v, state.loss / n), split.v
        losses: dict[float, float] = {}

        def merit(t: float) -> float:
            losses[t] = oracle.losses(t) if losses else oracle.along(step, t)
            return phi.merit(split, start + t * step, losses[t] / n)

        length = shorten(merit, before, slope)
        if length == 0.0:
            merit(0.0)
        split.v = start + length * step
        self._sample(state, losses[length], length)
        self._show(state, self._gradient(state))
        state.evaluated = False
        state.newton_steps += 1
        state.minimised = length == 0.0 or -slope <= ROUNDING * max(abs(before), TINY)
        state.refusals = 0 if length > 0.0 else state.refusals + 1
        state.stalled = state.refusals >= self.config.max_refusals

    def _diagonal(self, state: MultipliersCGState) -> np.ndarray:
        """An estimate of the diagonal of H_f, and the other diagonal terms of H."""
        own = self.problem.typical_curvature * state.oracle.squares / self.problem.n_samples
        return own + self.ridge + state.split.kappa * self.phi.metric

    def _preconditioner(self, state: MultipliersCGState, curvature: sp.csr_array) -> Product:
        """v ↦ P⁻¹v, P the penalty's part of H and the diagonal of the loss's."""
        matrix = sp.csr_array(curvature + sp.diags_array(self._diagonal(state)))
        _cancel.check_cancelled()
        factor = symmetric_factor(matrix) if factor_work(matrix) <= self.config.max_factor_work else None
        if factor is not None:
            return factor.solve
        diagonal = matrix.diagonal()
        return lambda v: v / diagonal

    def _solve(
        self, state: MultipliersCGState, preconditioned: Product, curvature: sp.csr_array | None, gradient: np.ndarray,
        share: float, limit: int,
    ) -> np.ndarray:  # fmt: skip
        """−H⁻¹ gradient by conjugate gradients, until the residual has fallen to a share; without the penalty's part of
        H where `curvature` is None."""
        n, oracle, held = self.problem.n_samples, state.oracle, self.ridge + state.split.kappa * self.phi.metric
        step, residual = np.zeros_like(gradient), -gradient
        z = preconditioned(residual)
        direction, size = z, float(residual @ z)
        goal = share**2 * size
        for _ in range(limit):
            if not size > max(goal, 0.0):
                break
            _cancel.check_cancelled()
            product = oracle.curved(direction) / n + held * direction
            state.point.clock[1] += n
            if curvature is not None:
                product += curvature @ direction
            length = size / float(direction @ product)
            step = step + length * direction
            residual = residual - length * product
            z = preconditioned(residual)
            before, size = size, float(residual @ z)
            direction = z + (size / before) * direction
        return step

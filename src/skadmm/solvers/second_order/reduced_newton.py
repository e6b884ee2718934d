"""Newton steps on clusters of features, for problems with many features.

Where every row of A has one entry or two, a point x has a pattern: the rows with (Ax)_e = 0 tie features to each other
or to zero, and what is left free are a few clusters, each with one coordinate. A step

  opens      the rows whose multipliers the subgradient of minimum norm leaves at their bounds (``opening.py``), so that
             new clusters appear;
  contracts  X to the clusters, one column each, and expands the loss to second order there, where the rows are
             (``oracle/reduced.py``);
  minimises  this model with its ℓ1 terms (``reduced_model.py``), which closes rows again;
  searches   along the step, in the margins;
  evaluates  all samples: objective, gradient, the subgradient of minimum norm (``min_norm_subgradient.py``) and with it
             a dual point.

All features start at zero and tied; the number of clusters grows towards that of the solution, and nothing of the size
of d² is ever formed.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np

from skadmm.oracle import ReducedOracle, reduced_oracle_for
from skadmm.oracle.reduced import Contraction
from skadmm.oracle.reduced_hessian import HessianConfig, feature_keys
from skadmm.problem.problem import COUPLED, Problem
from skadmm.solvers.base import Setup
from skadmm.solvers.dual_update import Point
from skadmm.solvers.second_order import l1_rows
from skadmm.solvers.second_order.base import ridge_of
from skadmm.solvers.second_order.l1_rows import ShortRows
from skadmm.solvers.second_order.min_norm_subgradient import SubgradientConfig, minimise_norm
from skadmm.solvers.second_order.opening import Clusters, Opening, OpeningConfig
from skadmm.solvers.second_order.polish import NEGLIGIBLE, nearest_with_pattern, without_traces
from skadmm.solvers.second_order.reduced_model import ReducedModel
from skadmm.solvers.second_order.reduced_solver import DampingConfig, ReducedSolver, ReducedState


@dataclass(frozen=True)
class ReducedNewtonConfig(SubgradientConfig, OpeningConfig, HessianConfig, DampingConfig):
    """Settings of the reduced Newton solver."""

    model_rounds: int = 2
    """Rounds of coordinate descent and exact solve on one model."""
    model_sweeps: int = 20
    """Sweeps of coordinate descent in a round."""
    min_improvement: float = 1e-13
    """A step that improves the objective by less than this share is refused."""
    max_refusals: int = 6
    """The solver stops after this many refused steps in a row."""
    max_steps: int = 50
    """The number of steps after which another solver may take over; where this one is fast it needs fewer."""
    last_improvement: float = 0.0
    """Finish after a full step that improves the objective by at most this share, without a certificate: steps improve
    by less and less, fast, so this is enough for cross-validation. 0: finish at the tolerance, certified."""
    next_improvement: float = 3.0
    """Finish also where the next step would improve by at most `last_improvement` divided by this, if improvements keep
    decreasing as in the last two steps."""

    @classmethod
    def uncertified(cls, last_improvement: float) -> Self:
        """Settings for cross-validation, with less work on multipliers and on H than a certificate needs."""
        return cls(
            last_improvement=last_improvement, settled_improvement=last_improvement, rough_sweeps=4, min_idle=1e-2
        )


@dataclass(kw_only=True)
class ReducedNewtonState(ReducedState):
    """State of the reduced Newton solver."""

    residual: np.ndarray
    """The subgradient of the objective that the multiplier gives: zero at a solution."""
    tied: np.ndarray
    """Which rows of A have (Ax)_e = 0."""
    decrease: float = np.inf
    """The number compared with ``last_improvement``: the improvement, or the one expected of the next step."""
    full_step: bool = False
    """True where the last step reached the minimiser of its model."""


class ReducedNewton(ReducedSolver[ReducedNewtonState]):
    """Newton steps on clusters. A step is one evaluation of all samples."""

    name = "reduced-newton"
    summary = "Newton steps on the clusters of equal features that a point is made of"
    Config: ClassVar[type[Any]] = ReducedNewtonConfig
    config: ReducedNewtonConfig

    def __init__(self, setup: Setup, config: ReducedNewtonConfig | None = None) -> None:
        super().__init__(setup, config)
        problem = setup.problem
        self.ridge = ridge_of(problem)
        self.penalty = ShortRows(problem)

    @classmethod
    def applies(cls, problem: Problem) -> str | None:
        """The penalty must be an ℓ1 norm of rows with one entry or two."""
        if problem.is_coupled:
            return COUPLED
        if not (problem.backend.local_rows or problem.backend.block_memory):
            return f"it {problem.lacks_local_rows()}"
        return l1_rows.reason_against_rows(problem)

    def init(self, point: Point, rho: float) -> ReducedNewtonState:
        """The state before the first evaluation; the columns are prepared here, before the clock runs."""
        oracle = reduced_oracle_for(self.problem.backend, self.setup.checkpoint)
        oracle.prepare()
        return self._at(point, rho, oracle)

    def _at(self, point: Point, rho: float, oracle: ReducedOracle) -> ReducedNewtonState:
        """The state at a point of which nothing is known."""
        d = self.problem.n_features
        return ReducedNewtonState(
            point=point, rho=rho, multiplier=rho * point.dual, gradient=np.zeros(d), residual=np.zeros(d),
            tied=np.ones(self.problem.n_constraints, bool), damping=self.config.damping, oracle=oracle,
        )  # fmt: skip

    def _step(self, state: ReducedNewtonState) -> None:
        """Open rows, minimise the model on the clusters and search along the step."""
        if not state.evaluated:
            self._start(state)
        clusters = self._open(state)
        if clusters.size:
            self._newton_step(state, clusters)
        else:
            state.refusals += 1
            state.improvement = state.decrease = 0.0
            self._sample(state, state.oracle.losses(0.0), 0.0)
            self._evaluate(state)
        state.stalled = state.refusals == self.config.max_refusals
        state.finished = self.tol is not None and self.optimality(state)[1] <= self.tol

    def optimality(self, state: ReducedNewtonState) -> tuple[str, float]:
        """The relative gap; without certificates the improvement of the last step, as a share of the tolerance's."""
        if not self.config.last_improvement:
            return super().optimality(state)
        tol = self.config.last_improvement if self.tol is None else self.tol
        return "decrease", tol * state.decrease / self.config.last_improvement if state.full_step else np.inf

    def slow(self, state: ReducedNewtonState) -> bool:
        """Return whether the solver has stopped, or made more steps than it needs where it is fast, before it met the
        tolerance."""
        ended = state.stalled or (state.steps >= self.config.max_steps and not state.finished)
        return ended and self.tol is not None and self.optimality(state)[1] > self.tol

    def finish(self, state: ReducedNewtonState) -> None:
        """Certify x, which is exactly fused and sparse at all times, where that has not been done."""
        self._whole(state, self._conclude)

    def _conclude(self, state: ReducedNewtonState) -> None:
        if not state.evaluated:
            self._start(state)
        if self.config.last_improvement:
            return
        if self.tol is None or self.optimality(state)[1] > self.tol:
            self._certify(state, thorough=True)
        if self.tol is not None:
            self._remove_traces(state, self.tol)

    def _remove_traces(self, state: ReducedNewtonState, tol: float) -> None:
        """Set entries of Ax to zero that are too small to matter, where the result meets the tolerance as well."""
        before, limit = state.point.x.copy(), max(tol, self.optimality(state)[1])
        allowed = tol * self.certifier.size(state.objective)
        objective = state.objective + NEGLIGIBLE * allowed
        for simpler in without_traces(self.problem, state.point.y, partial(self._curvature_bound, state), allowed):
            self._move(state, nearest_with_pattern(self.problem, before, simpler))
            if state.objective <= objective and self.optimality(state)[1] <= limit:
                return
            self._move(state, before)

    def _move(self, state: ReducedNewtonState, x: np.ndarray) -> None:
        """Evaluate the samples and the problem at x."""
        state.point.x[:] = x
        self._sample(state, state.oracle.place(x), 0.0)
        self._evaluate(state)

    def _curvature_bound(
        self, state: ReducedNewtonState, labels: np.ndarray, factors: np.ndarray, size: int
    ) -> np.ndarray:
        """An estimate of the curvature along each cluster's coordinate that is seldom too small."""
        clusters = Clusters(labels, factors, size)
        each = self.problem.typical_curvature * state.oracle.squares / self.problem.n_samples + self.ridge
        return np.bincount(labels[labels >= 0], minlength=size) * clusters.squared_sums(each)

    def reweighted(self, problem: Problem) -> Self:
        """The same solver for another strength of ψ, with what is known of A."""
        other = copy.copy(self)
        other.setup, other.problem = replace(self.setup, problem=problem), problem
        other.certifier, other.penalty = self.certifier.reweighted(problem), self.penalty.reweighted(problem)
        return other

    def follow(self, state: ReducedNewtonState, problem: Problem) -> ReducedNewtonState:
        """Start from the last solution, with its Hessian and the samples there."""
        state.point.dual[:] *= self.dual_ratio(problem)
        after = self._at(state.point, state.rho, state.oracle)
        after.sampled, after.loss, after.gradient = state.sampled, state.loss, state.gradient
        return after

    # -- a step ----------------------------------------------------------------------------------------------

    def _start(self, state: ReducedNewtonState) -> None:
        if state.sampled:
            self._evaluate(state)
        else:
            self._move(state, state.point.x)

    def _evaluate(self, state: ReducedNewtonState) -> None:
        """The whole problem at x, where the samples are known."""
        problem, penalty, point = self.problem, self.penalty, state.point
        x = point.x
        state.objective = state.loss / problem.n_samples + problem.penalty(x)
        y = penalty.values(x)
        point.y[:] = y
        state.tied = y == 0.0
        beta = np.clip(state.multiplier, -penalty.strengths, penalty.strengths)
        beta[~state.tied] = (penalty.strengths * np.sign(y))[~state.tied]
        residual = state.gradient + self.ridge * x + penalty.transposed @ beta
        if not self._settled(state):
            minimise_norm(penalty, state.tied, beta, residual, state.improvement, self.config)
        state.multiplier, state.residual = beta, residual
        point.dual[:] = beta / state.rho
        state.evaluated = True
        if self.tol is not None and not self.config.last_improvement:
            self._certify(state)

    def _settled(self, state: ReducedNewtonState) -> bool:
        """Return whether the solver ends without a certificate, so that no multipliers are needed."""
        return state.full_step and state.decrease <= self.config.last_improvement

    def _open(self, state: ReducedNewtonState) -> Clusters:
        """The clusters once the rows with the largest violation are open."""
        opening = Opening(self.penalty, state.point.x, state.tied, state.multiplier, state.residual, self.config)
        if state.improvement > self.config.settled_improvement and not state.refusals:
            # While the subgradient is inaccurate, so are the sets that it joins; single features are opened instead.
            clusters = opening.by_feature()
            if clusters.size:
                return clusters
        return opening.by_connected_set()

    def _newton_step(self, state: ReducedNewtonState, clusters: Clusters) -> None:
        x, config, start = state.point.x, self.config, clusters.coordinates(state.point.x)
        contraction = Contraction(*clusters, clusters.sums(feature_keys(x.size)))
        H = state.oracle.contract(contraction, state.improvement, config)
        H /= self.problem.n_samples
        self._damp(state, H, clusters)
        gradient = clusters.sums(state.gradient + self.ridge * x)
        model = ReducedModel(H, gradient, start, *self.penalty.on_clusters(*clusters))
        u = model.minimise(config.model_rounds, config.model_sweeps)
        self._search(state, u - start, clusters.expanded(u))

    def _damp(self, state: ReducedNewtonState, H: np.ndarray, clusters: Clusters) -> None:
        """Add the curvature of Ω and the damping to the diagonal of H."""
        diagonal = np.einsum("ii->i", H)
        diagonal += clusters.squared_sums(np.full(self.problem.n_features, self.ridge))
        metric = self.problem.typical_curvature * clusters.squared_sums(state.oracle.squares) / self.problem.n_samples
        diagonal += self.config.diagonal(state.damping, metric)

    def _search(self, state: ReducedNewtonState, step: np.ndarray, candidate: np.ndarray) -> None:
        """Move from x towards the candidate, as far as the objective decreases; then evaluate there."""
        config = self.config
        length, loss, improvement = self._find_length(state, step, candidate)
        if config.last_improvement:  # known before the evaluation, which may then be short
            state.decrease = improvement
            if state.full_step and improvement < state.improvement:
                state.decrease *= min(1.0, config.next_improvement * improvement / state.improvement)
            state.full_step, state.improvement = length == 1.0, improvement
        self._sample(state, loss, length)
        self._evaluate(state)
        state.improvement = improvement
        state.damping = config.after(state.damping, length)
        state.refusals = 0 if state.improvement > config.min_improvement else state.refusals + 1

    def _certify(self, state: ReducedNewtonState, *, thorough: bool = False) -> None:
        """The best lower bound so far. The cheap one corrects β on the rows with one entry only."""
        self._improve_bound(state, state.tied if thorough or self.certifier.kind != "l1" else None)

"""SAN-ADMM: stochastic average Newton ADMM, the second-order member of the family.

SA-ADMM replaces ℓᵢ by its linearisation at x_τᵢ plus (L/2)‖x − x_τᵢ‖². For a linear model the natural surrogate is of
second order in the margin zᵢ = aᵢ·x_τᵢ:

    ℓᵢ(x) ≈ ℓ(zᵢ) + ℓ'(zᵢ)(aᵢ·x − zᵢ) + ½ hᵢ (aᵢ·x − zᵢ)²,      hᵢ = ℓ''(zᵢ)

Its average needs only H̄ = (1/n) Σ hᵢ aᵢaᵢᵀ and q̄ = (1/n) Σ (hᵢzᵢ − ℓ'(zᵢ)) aᵢ: three numbers per sample and d², no
table of iterates. A step evaluates some samples, then minimises the average and ψ by sweeps of ADMM
(``quadratic_model.py``).

Which samples:
  growing        The first pass in growing batches, each as large as all before it; the average is over the samples seen
                 so far. The rows of a batch are spread over the data, so sorted data do no harm.
  full           From then on all samples, at the same point, so the objective, its gradient and the duality gap are
                 exact. Where the outer products of all samples would cost more than evaluations, the batches end at
                 two thousand samples per feature: their H differs from that of all by a few percent, and every step
                 reduces the distance to the solution by that factor. Steps that do not are followed by the whole H.
  large shifts   After a full evaluation, the few samples whose margins moved most take several steps of their own.
                 Samples with rare features move along the loss's tail by one unit of margin per step, and steps on few
                 samples cost little.

Margins are linear along a segment, so every evaluation carries an exact line search from the last point accepted, at
the price of scalars only: a step that increases the objective is shortened, and more damping follows.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np

from skadmm.backends.base import Evaluation
from skadmm.oracle import LostMemory, oracle_for
from skadmm.oracle.batches import first_pass
from skadmm.oracle.large_shifts import LargeShiftMerit, copy_large_shifts
from skadmm.problem.certificate import Assessment, Certificate
from skadmm.problem.free_columns import orthogonal
from skadmm.problem.kkt import kkt_residual
from skadmm.problem.problem import Problem
from skadmm.regularizers import Stacked
from skadmm.solvers.base import Setup
from skadmm.solvers.dual_update import Point
from skadmm.solvers.second_order.base import OracleSolver, ridge_of
from skadmm.solvers.second_order.line_search import SampledObjective, shorten
from skadmm.solvers.second_order.newton_admm_state import NewtonADMMConfig, NewtonADMMState
from skadmm.solvers.second_order.polish import (
    NEGLIGIBLE,
    better_polished,
    diagonal_on_clusters,
    polished,
    without_traces,
)
from skadmm.solvers.second_order.quadratic_model import ModelState, SummedModel

MAX_FEATURES = 5000
"""The largest number of features for which a dense d × d matrix is formed and inverted."""

LIKELY = 2.0
"""A certificate is computed where the gap that is expected is at most this many times the tolerance."""


class NewtonADMM(OracleSolver[NewtonADMMState]):
    """SAN-ADMM. A step evaluates one growing batch, or all samples."""

    name = "newton-admm"
    summary = "Second-order models of the loss, minimised with ψ by sweeps of ADMM"
    Config: ClassVar[type[Any]] = NewtonADMMConfig
    config: NewtonADMMConfig

    def __init__(self, setup: Setup, config: NewtonADMMConfig | None = None) -> None:
        super().__init__(setup, config)
        problem, config = setup.problem, self.config
        ridge = ridge_of(problem) if setup.omega_mode == "system" else 0.0
        self.folded = setup.omega_mode == "fold"
        adaptive = not setup.rho_given if config.adapt_rho is None else config.adapt_rho
        self.model = SummedModel(problem, config, setup.rho, ridge, adaptive=adaptive)
        whole = setup.warm or problem.is_coupled  # no growing batches
        sizes = problem.n_samples, problem.n_features, problem.nnz
        self.batches = [] if whole else first_pass(*sizes, config)

    @classmethod
    def applies(cls, problem: Problem) -> str | None:
        """d² numbers must fit, and sweeps must be able to take the problem."""
        if problem.n_features > MAX_FEATURES:
            return f"{problem.n_features} features are more than a dense second-order model can hold ({MAX_FEATURES})"
        return _reason_against_sweeps(problem)

    # -- what the engine sees --------------------------------------------------------------------------------

    def init(self, point: Point, rho: float) -> NewtonADMMState:
        """The state before the first evaluation."""
        d = self.problem.n_features
        return NewtonADMMState(
            point=point, rho=rho, multiplier=rho * point.dual, anchor=point.x.copy(), place=point.x.copy(),
            gradient=np.zeros(d), H=np.zeros((d, d)), q=np.zeros(d), squares=np.zeros(d), tau=self.config.first_damping,
            model=ModelState(rho, self.setup.rho_given, rho),
            oracle=oracle_for(self.problem.backend, self.setup.checkpoint),
        )  # fmt: skip

    def _step(self, state: NewtonADMMState) -> None:
        """Evaluate a growing batch, or all samples after the last batch."""
        if state.batch < len(self.batches):
            self._growing_step(state)
        elif self.config.stop_on_model:
            self._model_step(state)
        else:
            self._full_step(state)

    def slow(self, state: NewtonADMMState) -> bool:
        """Return whether the solver has stopped, or made more evaluations than it needs where it is fast, before it met
        the tolerance."""
        if self.tol is None or not (state.stalled or state.full_evaluations >= self.config.many_evaluations):
            return False
        return not ((state.finished or state.stalled) and self.optimality(state)[1] <= self.tol)

    def optimality(self, state: NewtonADMMState) -> tuple[str, float]:
        """The relative gap at the anchor; where there is no certificate, the relative KKT residual."""
        if self.config.stop_on_model:
            return "decrease", state.predicted_decrease
        if self.certifier.kind != "none":
            return "gap", self.certifier.pair(state.objective, state.lower_bound).relative
        return "kkt", min(residual for residual, _ in self._residuals(state))

    def _residuals(self, state: NewtonADMMState) -> list[tuple[float, np.ndarray]]:
        """The relative KKT residual at the anchor with the y of the last sweep, and with y(x): a polished x has the
        pattern of the solution exactly, while sweeps still move y."""
        loss, exact = self.last_loss(state), self.problem.exact_split(state.anchor)
        gradient = state.gradient if state.refined is None else state.refined.gradient
        return [
            (kkt_residual(self.problem, state.anchor, y, state.multiplier, gradient, loss).relative, y)
            for y in (state.point.y, exact)
            if y is not None
        ]

    def _answer(self, state: NewtonADMMState) -> None:
        """Put the anchor into the point; without a certificate also the y with the smaller KKT residual, unless that of
        the sweeps, whose zeros are exact, meets the tolerance too."""
        state.point.x[:] = state.anchor
        if self.certifier.kind == "none":
            residuals = self._residuals(state)
            if self.tol is None or residuals[0][0] > self.tol:
                state.point.y[:] = min(residuals, key=lambda pair: pair[0])[1]
        state.answered = True

    def last_loss(self, state: NewtonADMMState) -> float:
        """The mean loss at the anchor, which was evaluated."""
        return state.objective - self.problem.penalty(state.anchor)

    def certificate(self, state: NewtonADMMState) -> Certificate | None:
        """Bounds of the optimum, once the solution is known."""
        return self.certifier.pair(state.objective, state.lower_bound) if state.answered else None

    def evaluated_at(self, state: NewtonADMMState, x: np.ndarray) -> Evaluation | None:
        """The last evaluation of all samples, if it was at x and their slopes are in this process."""
        if state.refined is not None:
            return state.refined if np.array_equal(x, state.anchor) else None
        if not (state.placed and np.array_equal(x, state.place)):
            return None
        known = state.oracle.margins_and_slopes()
        return None if known is None else Evaluation(state.loss, state.gradient, known.slopes, known.margins)

    def assessed(self, state: NewtonADMMState, x: np.ndarray, y: np.ndarray) -> Assessment | None:
        """The solution, where its certificate meets the tolerance; the record need not certify it again."""
        if not (state.answered and state.certified and np.array_equal(x, state.anchor)):
            return None
        here = self.evaluated_at(state, x)
        bounds = self.certifier.pair(state.objective, state.lower_bound)
        if here is None or self.tol is None or not bounds.relative <= self.tol:
            return None
        kkt = kkt_residual(self.problem, x, y, state.multiplier, here.gradient, here.loss)
        return Assessment(here.loss, here.gradient, kkt, bounds, more_accurate=False)

    def finish(self, state: NewtonADMMState) -> None:
        """Accept or refuse the last candidate, make the solution exactly fused and sparse, and certify it."""
        if self.config.polish_answer:
            self._whole(state, self._last_evaluation)
        elif not (state.finished or state.stalled):
            self._whole(state, self._conclude)
        if self.config.stop_on_model:
            state.answered = True
        else:
            self._answer(state)

    def give_up(self, state: NewtonADMMState) -> None:
        """The last point that a line search accepted."""
        state.point.x[:] = state.anchor

    def warm_start(self, state: NewtonADMMState) -> None:
        """Start from an earlier point, which needs no first pass in batches."""
        super().warm_start(state)
        state.model.rho, state.model.started = state.rho, True
        state.anchor[:] = state.point.x
        state.batch = len(self.batches)

    # -- another strength ------------------------------------------------------------------------------------

    def reweighted(self, problem: Problem) -> Self:
        """The same solver for another strength of ψ: what depends on the data and on A is kept."""
        other = copy.copy(self)
        other.setup, other.problem = replace(self.setup, problem=problem), problem
        other.certifier, other.model = self.certifier.reweighted(problem), self.model.reweighted(problem)
        return other

    def follow(self, state: NewtonADMMState, problem: Problem) -> NewtonADMMState:
        """Continue with margins, curvatures and model. The model is exact at the last solution, so the first candidate
        for the new strength needs no evaluation of samples."""
        if state.full_evaluations == 0:
            state.oracle.close()
            return super().follow(state, problem)
        loss = state.objective - problem.penalty(state.anchor)
        state.objective, state.lower_bound = loss + self.problem.penalty(state.anchor), -np.inf
        state.finished = state.stalled = state.answered = False
        state.refusals, state.full_evaluations, state.predicted_decrease = 0, 1, np.inf
        state.refined = None
        state.point.dual[:] *= self.problem.psi.strength / problem.psi.strength  # inside its new bounds
        state.stale = self.config.stale_curvature * state.max_curvature
        try:
            self._renew(state)
            self._minimise_exactly(state)
        except LostMemory:  # the next step builds the model
            state.oracle.restart()
            self._forget(state)
        return state

    # -- steps -----------------------------------------------------------------------------------------------

    def _forget(self, state: NewtonADMMState) -> None:
        """The first pass starts again from the current point; after it all samples are evaluated again, and the model
        is built from zero."""
        state.placed, state.seen = False, 0
        if state.batch < len(self.batches):
            state.batch = 0
            for sums in (state.H, state.q, state.squares):
                sums[:] = 0.0

    def _growing_step(self, state: NewtonADMMState) -> None:
        """A batch of the first pass: new samples join the average; those of the first batch are expanded again."""
        config = self.config
        batch = self.batches[state.batch]
        size = batch.size(self.problem.n_samples)
        new = state.batch == 0 or state.batch >= config.first_evaluations
        state.oracle.begin(batch, state.anchor, new=new)
        length, _ = self._search(state, size)
        H, q, squares, max_curvature = state.oracle.join(length, new)
        state.max_curvature = max(state.max_curvature, float(max_curvature))
        if new:
            state.seen += size
            state.squares += squares
        state.H += H
        state.q += q
        state.batch += 1
        self._minimise(state, config.batch_damping / state.seen, config.batch_sweeps, config.batch_tolerance)

    def _full_step(self, state: NewtonADMMState) -> None:
        """All samples at one point: exact objective, gradient and gap; then the model, then the large shifts."""
        config = self.config
        length = self._full_evaluation(state)
        if self._may_be_solved(state):
            self._certify(state)
        self._count_refusals(state, length)
        state.finished = self.tol is not None and self.optimality(state)[1] <= self.tol
        if state.finished or state.stalled:
            self._answer(state)
            return
        self._update_model(state, length)
        self._damp(state, length, 8.0 if length > 0.1 else 64.0)
        limit = min(config.full_sweeps * state.full_evaluations, config.max_sweeps)
        tolerance = max(config.full_tolerance * 0.1**state.full_evaluations, config.min_tolerance)
        self._minimise(state, state.tau, limit, tolerance, rounds=self._rounds(limit))
        if length > 0.1 and config.revisit_large_shifts and state.seen == self.problem.n_samples:
            self._revisit_large_shifts(state, limit, tolerance)
        self._polish(state)

    def _model_step(self, state: NewtonADMMState) -> None:
        """An evaluation of all samples, and the model's minimiser; finished when the model predicts no decrease."""
        problem = self.problem
        length = self._full_evaluation(state)
        self._update_model(state, length)
        self._count_refusals(state, length)
        self._damp(state, length, 8.0)
        settled = self._minimise_exactly(state)
        step = state.point.x - state.anchor
        change = float(state.gradient @ step) + 0.5 * float(step @ (state.H @ step)) / state.seen
        decrease = problem.penalty(state.anchor) - problem.penalty(state.point.x) - change
        state.predicted_decrease = abs(decrease) / max(abs(state.objective), np.finfo(float).tiny)
        # A step that is short because of its damping says nothing about what is left.
        settled = settled and state.tau <= self.config.max_end_damping
        state.finished = settled and self.tol is not None and state.predicted_decrease <= self.tol

    def _may_be_solved(self, state: NewtonADMMState) -> bool:
        """Return whether a certificate is worth its passes: the objective decreased little in the last step and, where
        the penalty is a ridge alone, the gap, which is Σ slope²/(2 ridge) then, is small."""
        if self.tol is None or not state.decrease <= self.config.certify_below * np.sqrt(self.tol):
            return False
        if self.problem.n_split > 0:
            return True
        ridge = np.broadcast_to(self.model.ridge, state.anchor.shape)
        held = ridge > 0.0
        slope = (state.gradient + ridge * state.anchor)[held]
        gap = 0.5 * float(np.sum(slope**2 / ridge[held]))
        return self.certifier.pair(state.objective, state.objective - gap).relative <= LIKELY * self.tol

    def _count_refusals(self, state: NewtonADMMState, length: float) -> None:
        state.refusals = 0 if length > 0.0 else state.refusals + 1
        state.stalled = state.refusals == self.config.max_refusals

    def _damp(self, state: NewtonADMMState, length: float, factor: float) -> None:
        """Less damping after a whole step, `factor` times as much after a shortened one."""
        if length >= 1.0:
            state.tau = max(state.tau / 3.0, self.config.min_damping)
        else:
            state.tau = max(factor * state.tau, self.config.raised_damping * self.model.curved_share(state))

    # -- the end ---------------------------------------------------------------------------------------------

    def _conclude(self, state: NewtonADMMState) -> None:
        """Evaluate the last candidate, and certify."""
        self._full_evaluation(state, last=True)
        if not self.config.stop_on_model:
            self._certify(state)

    def _last_evaluation(self, state: NewtonADMMState) -> None:
        """Evaluate the last candidate where that has not been done, certify, and refine."""
        over = state.finished or state.stalled
        seen = state.placed and (over or np.array_equal(state.anchor, self._candidate(state)))
        if state.full_evaluations == 0 or not seen:
            self._full_evaluation(state, last=True)
        self._certify(state)
        if state.seen == 0:
            self._renew(state)
        self._centre(state)
        H, q = self.model.mean(state)
        x, y = state.anchor, state.point.y
        for candidate in polished(self.problem, x, y, H, q):
            if np.array_equal(candidate, x) or self._refine(state, candidate):
                break
        if self.tol is not None:
            self._remove_traces(state, H, q, self.tol)

    def _remove_traces(self, state: NewtonADMMState, H: np.ndarray, q: np.ndarray, tol: float) -> None:
        """Set entries of y to zero that are too small to matter, and what they tie in x, where the result meets the
        tolerance as well."""
        problem, y = self.problem, state.point.y
        exact = problem.exact_split(state.anchor)
        if exact is None:
            return
        values = np.where(y == 0.0, 0.0, exact)
        y[values == 0.0] = 0.0
        allowed, limit = tol * self.certifier.size(state.objective), max(tol, self.optimality(state)[1])
        before = state.anchor, state.objective, state.refined, y.copy()
        for simpler in without_traces(problem, values, partial(diagonal_on_clusters, H), allowed):
            for candidate in polished(problem, state.anchor, simpler, H, q):
                if self._refine(state, candidate, NEGLIGIBLE * allowed):
                    y[simpler == 0.0] = 0.0
                    if self.optimality(state)[1] <= limit:
                        return
                    state.anchor, state.objective, state.refined, y[:] = before

    def _refine(self, state: NewtonADMMState, x: np.ndarray, slack: float = 0.0) -> bool:
        """Move the answer to `x` where the objective is larger there by at most `slack`; returns whether it was."""
        self._touch(state, self.problem.n_samples)
        evaluation = self.problem.backend.evaluate(x)
        objective = evaluation.loss + self.problem.penalty(x)
        moved = bool(objective <= state.objective + slack)
        if moved:
            state.anchor, state.objective, state.refined = x, objective, evaluation
        return moved

    # -- parts of a step -------------------------------------------------------------------------------------

    def _full_evaluation(self, state: NewtonADMMState, last: bool = False) -> float:
        """Line search over all samples from the anchor to the candidate; objective and gradient where it ends."""
        n = self.problem.n_samples
        state.place[:] = np.nan  # in case the evaluation is interrupted
        share, max_curvature = self.config.stale_curvature * 0.1**state.full_evaluations, state.max_curvature
        state.stale = share * max_curvature
        renews = max_curvature > 0.0 and state.seen == n and not (last or self._expects_the_end(state))
        state.oracle.begin(None, None if state.placed else state.anchor, stale=state.stale if renews else None)
        length, loss = self._search(state, n, state.gradient if state.full_evaluations else None)
        state.objective = loss / n + self.problem.penalty(state.anchor)
        gradient, max_curvature_now = state.oracle.settle(length)
        state.gradient, state.max_curvature, state.placed = gradient / n, float(max_curvature_now), True
        if max_curvature == 0.0:
            state.stale = share * state.max_curvature
        state.place[:], state.loss = state.anchor, loss / n
        state.full_evaluations += 1
        return length

    def _expects_the_end(self, state: NewtonADMMState) -> bool:
        """Return whether the next evaluation of all samples is expected to be the last. The next decrease of the
        objective is about the square of this one, unless steps are refused."""
        if self.tol is None or state.full_evaluations == 0 or state.refusals > 0:
            return False
        return state.decrease <= np.sqrt(self.tol)

    def _update_model(self, state: NewtonADMMState, length: float) -> None:
        """The model at the anchor: with the H of a part of the samples as long as that gives fast steps."""
        slow = length < 1.0 or state.decrease > self.config.slow_decrease * state.decrease_before
        if state.seen in (0, self.problem.n_samples) or slow:
            self._renew(state)
            return
        if state.full_evaluations > 1:  # the first evaluation ends a step without the gradient of all samples
            state.decrease_before = state.decrease
        self._centre(state)

    def _renew(self, state: NewtonADMMState) -> None:
        """A model of second order at the anchor, where all samples have just been evaluated."""
        n = self.problem.n_samples
        afresh = state.seen < n  # after a warm start, and after batches of a part of the samples
        H, squares = state.oracle.renew(state.stale, afresh)
        if afresh:
            state.H[:], state.squares[:], state.seen = 0.0, squares, n
        state.H += H
        self._centre(state)

    def _centre(self, state: NewtonADMMState) -> None:
        """Set the model's gradient at the anchor to that of the loss."""
        state.q = state.H @ state.anchor - state.seen * state.gradient

    def _polish(self, state: NewtonADMMState) -> None:
        """The candidate with y's pattern, exact on it, where the model finds that better."""
        if not self.folded:
            x = state.point.x
            x[:] = better_polished(self.problem, x, state.point.y, *self.model.mean(state), self.model.ridge)

    def _revisit_large_shifts(self, state: NewtonADMMState, limit: int, tolerance: float) -> None:
        """Steps on the few samples whose margins moved most, the others by their expansions."""
        shifts, config, problem = state.oracle.large_shifts, self.config, self.problem
        few = min(config.curved_share * problem.n_samples, config.curved_entries / problem.n_features)
        copied = copy_large_shifts(shifts, few)
        if copied is None:
            return
        if copied.curved:
            self._large_shift_steps(state, copied.number, limit, tolerance)
        elif copied.number > 0:
            self._large_shift_steps(state, copied.number, config.large_shift_sweeps, tolerance)
        shifts.end()

    def _large_shift_steps(self, state: NewtonADMMState, count: int, limit: int, tolerance: float) -> None:
        config, shifts, x = self.config, state.oracle.large_shifts, state.anchor.copy()
        for _ in range(config.large_shift_rounds):
            step = self._candidate(state) - x
            self._touch(state, count)
            merit = LargeShiftMerit(shifts, state, x, step, self.problem.penalty)
            length = shorten(merit, merit(0.0))
            x += length * step
            H, q = shifts.move(length)
            state.q += q
            state.H += H
            self._minimise(state, state.tau, limit, tolerance, centre=x)
            if length * merit.longest < config.settled_move:
                break

    def _candidate(self, state: NewtonADMMState) -> np.ndarray:
        """The newest x; where Ω was folded, its own copy of x, which is exactly sparse and inside constraints."""
        return state.point.y[-self.problem.n_features :] if self.folded else state.point.x

    def _search(self, state: NewtonADMMState, size: int, gradient: np.ndarray | None = None) -> tuple[float, float]:
        """Search from the anchor towards the candidate, as far as the objective on the `size` chosen samples decreases.

        Returns the length taken and the sum of the losses there; slopes and curvatures are those of that point.
        """
        candidate = self._candidate(state).copy()
        step = candidate - state.anchor
        self._touch(state, size)
        state.decrease = 0.0
        if not step.any():
            return 1.0, state.oracle.along(None, 0.0)
        state.certified = False
        along = SampledObjective(state.oracle, self.problem.penalty, size, state.anchor, candidate)
        if gradient is None:
            found = along.search()
        else:
            found = along.search_from(state.objective, gradient, self.config.longest_step)
        state.decrease, state.anchor = found.decrease, found.point
        return found.length, found.losses

    def _minimise(
        self,
        state: NewtonADMMState,
        tau: float,
        limit: int,
        tolerance: float,
        centre: np.ndarray | None = None,
        rounds: int = 1,
    ) -> None:
        """Sweeps on the model, damped towards the centre."""
        state.certified = False
        self._sweep(state, state.anchor if centre is None else centre, tau, limit, tolerance, rounds)

    def _minimise_exactly(self, state: NewtonADMMState) -> bool:
        """Make sweeps until the model's minimiser is found, with ρ balanced between them; returns whether it was."""
        config = self.config
        limit, tolerance, rounds = config.full_sweeps, config.exact_tolerance, config.exact_rounds
        residual = self._sweep(state, state.anchor, state.tau, limit, tolerance, rounds)
        self._polish(state)
        return residual <= tolerance

    def _sweep(
        self, state: NewtonADMMState, centre: np.ndarray, tau: float, limit: int, tolerance: float, rounds: int
    ) -> float:
        """Make rounds of sweeps on the model, and return the larger of the relative residuals where they ended."""
        residual = self.model.minimise(state, state.model, state.point, centre, tau, limit, tolerance, rounds)
        state.rho, state.multiplier = state.model.rho, state.model.rho * state.point.dual
        return residual

    def _rounds(self, limit: int) -> int:
        """The number of rounds of `limit` sweeps on the model of all samples that `small_model` allows."""
        d, config = self.problem.n_features, self.config
        work = limit * (d**2 + self.problem.constraint.A.nnz) + d**3
        return int(max(1, min(config.exact_rounds, config.small_model / work)))

    def _certify(self, state: NewtonADMMState) -> None:
        """The best lower bound so far, from the slopes at the anchor and the newest multiplier."""
        if state.certified:
            return
        n, oracle, gradient = self.problem.n_samples, state.oracle, state.gradient
        if self.certifier.free.size:
            total = orthogonal(oracle.free_columns, self.certifier.free)
            self._touch(state, 2 * n)
            if total is None:
                return
            gradient = total / n
        bounds = self.certifier.bounds(
            state.objective, lambda scale: oracle.conjugate(scale) / n, gradient, state.multiplier, state.point.y == 0
        )
        state.lower_bound, state.certified = max(state.lower_bound, bounds.dual), True

    def _touch(self, state: NewtonADMMState, samples: int) -> None:
        state.point.clock[1] += samples


def _reason_against_sweeps(problem: Problem) -> str | None:
    """Why ADMM's sweeps on a model cannot take a problem, which leaves the method of multipliers."""
    if problem.constraint.B is not None and not problem.constraint.has_y_of_x:
        return "B is not invertible"
    psi = problem.psi.first if isinstance(problem.psi, Stacked) else problem.psi  # a folded Ω may be a constraint
    if not psi.subdifferentiable:
        return f"psi={type(problem.psi).__name__} is a constraint (give it as omega)"
    return None

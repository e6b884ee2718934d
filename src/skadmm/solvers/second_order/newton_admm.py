"""SAN-ADMM: stochastic average Newton ADMM, the second-order member of the family.

SA-ADMM replaces ℓᵢ by its linearisation at x_τᵢ plus (L/2)‖x − x_τᵢ‖². For a linear model the natural surrogate is of
second order in the margin zᵢ = aᵢ·x_τᵢ:

    ℓᵢ(x) ≈ ℓ(zᵢ) + ℓ'(zᵢ)(aᵢ·x − zᵢ) + ½ hᵢ (aᵢ·x − zᵢ)²,      hᵢ = ℓ''(zᵢ)

Its average needs only H̄ = (1/n) Σ hᵢ aᵢaᵢᵀ and q̄ = (1/n) Σ (hᵢzᵢ − ℓ'(zᵢ)) aᵢ: three scalars a sample and d², no table
of iterates. A step looks at some samples, then minimises the average and ψ by sweeps of ADMM (``_model.py``).

Which samples:
  growing   The first pass in stages, each as large as all before it; the average is over the samples seen so far. The
            rows of a stage are spread over the data, so sorted data do no harm.
  full      From then on all samples, at the same point, so the objective, its gradient and the duality gap are exact.
  hard      After a full look, the few samples whose margins moved most are looked at again on their own, several
            times: rare features creep along the loss's tail by one unit of margin a step, and that costs little here.

Margins are linear along a segment, so every look carries an exact line search from the last point accepted, at the
price of scalars only: a step that makes things worse is cut back, and more damping follows.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from skadmm.backends import Evaluation, FileBackend
from skadmm.io import state as stored
from skadmm.kernels.threads import one_thread
from skadmm.oracle import batches
from skadmm.oracle.local import LocalOracle
from skadmm.oracle.remote import LostMemory, RemoteOracle
from skadmm.oracle.single_pass import FileOracle
from skadmm.oracle.speculative import SpeculativeOracle
from skadmm.problem.certificate import Assessment, Certificate, Certifier
from skadmm.problem.problem import Problem
from skadmm.solvers.base import Setup
from skadmm.solvers.dual_update import Point
from skadmm.solvers.second_order.line_search import MOST_REFUSALS, shorten
from skadmm.solvers.second_order.point_engine import ridge_of
from skadmm.solvers.second_order.polish import polished
from skadmm.solvers.second_order.quadratic_model import ModelSolver
from skadmm.solvers.state import point_tables, take_point

FIRST_EVALUATIONS = 3
SETTLED_MOVE = 0.1
"""Hard rows are left alone once none of their margins moves by more."""
BATCH_SWEEPS, BATCH_TOLERANCE, BATCH_DAMPING = 10, 1e-4, 1.0
"""In the first pass: sweeps a model, where they may end, and τ times the samples seen."""
FULL_SWEEPS, MOST_SWEEPS = 150, 3000
FULL_TOLERANCE, LEAST_TOLERANCE = 1e-5, 1e-12
FULL_DAMPING, LEAST_DAMPING, RAISED_DAMPING = 1e-6, 1e-12, 1e-4
LARGE_SHIFT_ROUNDS, LARGE_SHIFT_SWEEPS = 3, 20
"""So many looks at the hard rows, and sweeps after each."""
MANY_EVALUATIONS = 25
"""Where it is fast it takes fewer full looks than this; another solver may take over then."""
STALE_CURVATURE = 0.01
"""Curvature is brought up to date where it changed by more than this share of its largest value; a tenth of it at each
further full look."""
HOPEFUL = 100.0
"""A gap is worth asking for when the objective last fell by no more than so many times √tol: steps are Newton's, so the
next fall is about the square of this one."""


class NewtonADMM:
    """SAN-ADMM in motion. ``point.x`` is the newest candidate, ``anchor`` the last point a line search accepted."""

    solver_name = "newton-admm"
    steps_per_pass = 1
    FIXED = ("tol", "ridge", "folded", "batches", "_refined")

    def __init__(self, setup: Setup, point: Point) -> None:
        problem = self.problem = setup.problem
        self.point = point
        self.tol = setup.tol
        self.ridge = ridge_of(problem) if setup.omega_mode == "system" else 0.0
        self.folded = setup.omega_mode == "fold"
        self.solver = ModelSolver(problem, point, setup.rho, adaptive=not setup.rho_given)
        self.certifier = Certifier(problem)
        self.certificate: Certificate | None = None
        self.finished = False
        self.stalled = False
        self.refusals = 0
        n, d = problem.n_samples, problem.n_features
        self.oracle = oracle_of(problem, setup.checkpoint)
        plan = [] if setup.warm else batches.plan(n, d, problem.nnz)
        self.batches = plan[:1] * (FIRST_EVALUATIONS - 1) + plan
        self.batch, self.full_evaluations, self.seen = 0, 0, 0
        self.placed = False
        """Do the samples know their margins at the anchor?"""
        self.place, self.loss = point.x.copy(), np.inf
        """Where all of them were last looked at, and their mean loss there."""
        self._refined: Evaluation | None = None
        """At the anchor, where the end has refined it."""
        self.anchor = point.x.copy()
        self.objective = np.inf
        """At the anchor, over all samples; known from the first full look on."""
        self.fall = 0.0
        """By how much the objective fell in the last line search, relatively."""
        self.gradient = np.zeros(d)
        self.max_curvature, self.stale = 0.0, 0.0
        """The largest curvature seen of late; and by how much one must change to be brought up to date in H."""
        self.lower_bound, self.certified = -np.inf, False
        """The best so far; is it that of the anchor and the multiplier now?"""
        self.H, self.q, self.squares = np.zeros((d, d)), np.zeros(d), np.zeros(d)
        self.tau = FULL_DAMPING
        self.full_sweeps, self.revisits_large_shifts = FULL_SWEEPS, True

    # -- what the loop sees ----------------------------------------------------------------------------------

    @property
    def rho(self) -> float:
        """The penalty parameter now."""
        return self.solver.rho

    @property
    def slow(self) -> bool:
        """Has it come to its end, or made more steps than it takes where it is fast, short of the tolerance?"""
        if self.tol is None or not (self.stalled or self.full_evaluations >= MANY_EVALUATIONS):
            return False
        return not (self.finished and self.optimality()[1] <= self.tol)

    def optimality(self) -> tuple[str, float]:
        """The relative gap at the anchor; where there is no certificate, the relative KKT residual."""
        if self.certifier.kind != "none":
            return "gap", Certificate(self.objective, self.lower_bound).relative
        loss = self.objective - self.problem.penalty(self.anchor)
        kkt = self.problem.kkt(self.anchor, self.point.y, self.solver.multiplier(), self.gradient, loss)
        return "kkt", kkt.relative

    def advance(self, order: np.ndarray, until: float = np.inf) -> None:
        """As many steps as `order` has entries; which samples they look at is the schedule's own affair."""
        with one_thread():
            for _ in order:
                if self.finished or self.point.clock[1] >= until:
                    return
                self._whole(self._growing_step if self.batch < len(self.batches) else self._full_step)
                self.point.clock[0] += 1
                self.point.x_sum[:] += self.point.x
                self.point.y_sum[:] += self.point.y

    def _whole(self, step: Callable[[], Any]) -> None:
        """A step; where a worker has lost its memory meanwhile, the first pass begins anew from where it has come to,
        and after it all samples are placed anew and the model built afresh."""
        try:
            step()
        except LostMemory:
            self.oracle.restart()
            self._forget()
            self._whole(step)

    def _forget(self) -> None:
        """The samples know nothing any more."""
        self.placed, self.seen = False, 0
        if self.batch < len(self.batches):
            self.batch = 0
            for part in (self.H, self.q, self.squares):
                part[:] = 0.0

    def assessed(self, x: np.ndarray, y: np.ndarray) -> Assessment | None:
        """The general evaluation is as good."""
        return None

    def evaluated_at(self, x: np.ndarray) -> Evaluation | None:
        """The last look at all samples, if it was at x and they are here."""
        if self._refined is not None:
            return self._refined if np.array_equal(x, self.anchor) else None
        if not (self.oracle.here and self.placed and np.array_equal(x, self.place)):
            return None
        self.oracle.large_shift_end()
        return Evaluation(self.loss, self.gradient, self.oracle.slope, self.oracle.z)

    def finish(self) -> None:
        """Accept or refuse the last candidate, make the answer exactly fused and sparse, and certify it."""
        self._whole(self._last_evaluation)

    def _last_evaluation(self) -> None:
        with one_thread():
            seen = self.placed and (self.finished or np.array_equal(self.anchor, self._candidate()))
            if self.full_evaluations == 0 or not seen:
                self._full_evaluation(last=True)
            self._certify()
            if self.seen < self.problem.n_samples:
                self._renew()
            self._centre()
            refined = polished(self.problem, self.anchor, self.point.y, self._mean_H(), self.q / self.seen)
        if refined is not None and not np.array_equal(refined, self.anchor):
            self._touch(self.problem.n_samples)
            evaluation = self.problem.backend.evaluate(refined)
            objective = evaluation.loss + self.problem.penalty(refined)
            if objective <= self.objective:
                self.anchor, self.objective, self._refined = refined, objective, evaluation
        self.point.x[:] = self.anchor
        self.certificate = Certificate(self.objective, self.lower_bound)

    def give_up(self) -> None:
        """The last point that a line search accepted."""
        self.point.x[:] = self.anchor

    def close(self) -> None:
        """Workers may forget the samples' scalars."""
        if not self.problem.backend.local_rows:
            self.oracle.close()

    def state(self) -> dict[str, Any]:
        """All numbers and arrays of the engine and of its model."""
        return {
            "engine": stored.capture(self), "solver": stored.capture(self.solver), "oracle": self.oracle.state()
        }  # fmt: skip

    def resume(self, state: dict[str, Any]) -> None:
        """Go on from a checkpoint."""
        self.solver.resume_from(float(state["solver"]["rho"]))
        stored.restore(self.solver, state["solver"])
        stored.restore(self, state["engine"])
        if not self.oracle.resume(state["oracle"]):
            self._forget()
        self.certificate = None if self.certificate is None else Certificate(*self.certificate)

    def tables(self) -> dict[str, np.ndarray]:
        """The point alone: a model is quickly built anew."""
        return point_tables(self.point, self.rho)

    def restore(self, tables: dict[str, np.ndarray]) -> None:
        """Go on from an earlier point: it needs no first pass."""
        self.solver.resume_from(take_point(self.point, tables))
        self.anchor[:] = self.point.x
        self.batch = len(self.batches)

    # -- steps -----------------------------------------------------------------------------------------------

    def _growing_step(self) -> None:
        """A stage of the first pass: new samples join the average; those of the first stage are expanded anew."""
        batch = self.batches[self.batch]
        size = batch.size(self.problem.n_samples)
        new = self.batch == 0 or self.batch >= FIRST_EVALUATIONS
        self.oracle.begin(batch, self.anchor, new=new)
        length, _ = self._search(size)
        H, q, squares, largest = self.oracle.join(length, new)
        self.max_curvature = max(self.max_curvature, float(largest))
        if new:
            self.seen += size
            self.squares += squares
        self.H += H
        self.q += q
        self.batch += 1
        self._minimise(BATCH_DAMPING / self.seen, BATCH_SWEEPS, BATCH_TOLERANCE)

    def _full_step(self) -> None:
        """All samples at one point: exact objective, gradient and gap; then the model, then the hard rows."""
        length = self._full_evaluation()
        if self.tol is not None and self.fall <= HOPEFUL * np.sqrt(self.tol):
            self._certify()
        self.refusals = 0 if length > 0.0 else self.refusals + 1
        self.stalled = self.refusals == MOST_REFUSALS
        self.finished = self.stalled or (self.tol is not None and self.optimality()[1] <= self.tol)
        if self.finished:
            self.point.x[:] = self.anchor
            self.certificate = Certificate(self.objective, self.lower_bound)
            return
        self._renew()
        if length == 1.0:
            self.tau = max(self.tau / 3.0, LEAST_DAMPING)
        else:
            self.tau = max((8.0 if length > 0.1 else 64.0) * self.tau, RAISED_DAMPING)
        limit = min(self.full_sweeps * self.full_evaluations, MOST_SWEEPS)
        tolerance = max(FULL_TOLERANCE * 0.1**self.full_evaluations, LEAST_TOLERANCE)
        self._minimise(self.tau, limit, tolerance)
        if length > 0.1 and self.revisits_large_shifts:
            self._revisit_large_shifts(tolerance)
        self._polish()

    def _polish(self) -> None:
        """The candidate with y's pattern, exact on it, where the model likes that better."""
        x, H, q = self.point.x, self._mean_H(), self.q / self.seen
        refined = polished(self.problem, x, self.point.y, H, q)
        if refined is None or self.folded:
            return

        def value(v: np.ndarray) -> float:
            return float(v @ (0.5 * (H @ v) - q)) + self.problem.penalty(v) - 0.5 * float(v @ (self.ridge * v))

        if value(refined) <= value(x):
            x[:] = refined

    def _full_evaluation(self, last: bool = False) -> float:
        """Line search over all samples from the anchor to the candidate; objective and gradient where it ends."""
        n = self.problem.n_samples
        self.place[:] = np.nan  # should it be cut short
        share, max_curvature = STALE_CURVATURE * 0.1**self.full_evaluations, self.max_curvature
        self.stale = share * max_curvature
        renews = max_curvature > 0.0 and self.seen == n and not (last or self._expects_the_end())
        self.oracle.begin(None, None if self.placed else self.anchor, stale=self.stale if renews else None)
        length, loss = self._search(n, self.gradient if self.full_evaluations else None)
        self.objective = loss / n + self.problem.penalty(self.anchor)
        gradient, largest = self.oracle.settle(length)
        self.gradient, self.max_curvature, self.placed = gradient / n, float(largest), True
        if max_curvature == 0.0:
            self.stale = share * self.max_curvature
        self.place[:], self.loss = self.anchor, loss / n
        self.full_evaluations += 1
        return length

    def _expects_the_end(self) -> bool:
        """Will the next look at all samples be the last? The next fall of the objective is about the square of this one
        where steps are taken at all."""
        if self.tol is None or self.full_evaluations == 0 or self.refusals > 0:
            return False
        return self.fall <= np.sqrt(self.tol)

    def _renew(self) -> None:
        """A model of second order at the anchor, where all samples have just been looked at."""
        n = self.problem.n_samples
        afresh = self.seen < n  # a warm start comes without a model
        H, squares = self.oracle.renew(self.stale, afresh)
        if afresh:
            self.H[:], self.squares[:], self.seen = 0.0, squares, n
        self.H += H
        self._centre()

    def _centre(self) -> None:
        """The model's slope at the anchor is the loss's own."""
        self.q = self.H @ self.anchor - self.problem.n_samples * self.gradient

    def _revisit_large_shifts(self, tolerance: float) -> None:
        """Again and again the few samples whose margins moved most, the others by their expansions."""
        threshold = self.oracle.large_shift_threshold()
        if threshold == np.inf:
            return
        count = self.oracle.large_shift_begin(threshold)
        if count > 0:
            self._hard_steps(int(count), tolerance)
        self.oracle.large_shift_end()

    def _hard_steps(self, count: int, tolerance: float) -> None:
        x = self.anchor.copy()
        for _ in range(LARGE_SHIFT_ROUNDS):
            step = self._candidate() - x
            self._touch(count)
            merit, reach = self._hard_merit(x, step)
            length = shorten(merit, merit(0.0))
            x += length * step
            H, q = self.oracle.large_shift_move(length)
            self.q += q
            self.H += H
            self._minimise(self.tau, LARGE_SHIFT_SWEEPS, tolerance, centre=x)
            if length * reach < SETTLED_MOVE:
                break

    def _hard_merit(self, x: np.ndarray, step: np.ndarray) -> tuple[Callable[[float], float], float]:
        """Along a step: the whole model, with the hard rows' quadratics exchanged for their true losses."""
        rise, bow = float(step @ (self.H @ x - self.q)), float(step @ (self.H @ step))
        tilt, curvatures, start, end, reach = self.oracle.large_shift_along(step)
        known = {0.0: start, 1.0: end}

        def merit(t: float) -> float:
            others = (rise - tilt) * t + 0.5 * (bow - curvatures) * t * t
            true = (known[t] if t in known else self.oracle.large_shift_losses(t)) - start
            return (others + true) / self.seen + self.problem.penalty(x + t * step)

        return merit, float(reach)

    # -- parts of a step -------------------------------------------------------------------------------------

    def _candidate(self) -> np.ndarray:
        """The newest x; where Ω was folded, its own copy of x, which is exactly sparse and inside constraints."""
        return self.point.y[-self.problem.n_features :] if self.folded else self.point.x

    def _search(self, size: int, gradient: np.ndarray | None = None) -> tuple[float, float]:
        """From the anchor towards the candidate, as far as the objective on the `size` samples looked at falls.

        Returns the length taken and the sum of the losses there; slopes and curvatures are those of that point.
        """
        candidate = self._candidate().copy()
        step = candidate - self.anchor
        self._touch(size)
        self.fall = 0.0
        if not step.any():
            return 1.0, self.oracle.along(None, 0.0)
        self.certified = False
        penalty, there = self.problem.penalty(self.anchor), self.problem.penalty(candidate)
        losses: dict[float, float] = {}
        values: dict[float, float] = {}
        if gradient is None:
            expected = 0.0
            before, losses[1.0] = self.oracle.ends(step)
            start = before / size + penalty
        else:
            start = self.objective
            expected = float(gradient @ step) + there - penalty
            losses[1.0] = self.oracle.along(step, 1.0)

        def merit(t: float) -> float:
            if t not in losses:
                losses[t] = self.oracle.losses(t)
            values[t] = losses[t] / size + (there if t == 1.0 else self.problem.penalty(self.anchor + t * step))
            return values[t]

        length = shorten(merit, start, expected)
        if length == 0.0:
            merit(0.0)
        self.fall = (start - values[length]) / max(abs(start), np.finfo(float).tiny)
        self.anchor = candidate if length == 1.0 else self.anchor + length * step
        return length, losses[length]

    def _minimise(self, tau: float, limit: int, tolerance: float, centre: np.ndarray | None = None) -> None:
        metric = self.problem.loss.curvature_bound * self.squares / self.seen
        metric[metric == 0.0] = 1.0
        self.certified = False
        y_sum = self.point.y_sum.copy()  # counts steps, not sweeps
        centre = self.anchor if centre is None else centre
        self.solver.minimise(self._mean_H(), self.q / self.seen, centre, tau * metric, limit, tolerance)
        self.point.y_sum[:] = y_sum

    def _mean_H(self) -> np.ndarray:
        H = self.H / self.seen
        np.einsum("ii->i", H)[:] += self.ridge
        return H

    def _certify(self) -> None:
        """The best lower bound so far, from the slopes at the anchor and the newest multiplier."""
        if self.certified:
            return
        gradient = self.gradient
        if self.certifier.free.size:
            straight = self.certifier.orthogonal(self.oracle)
            self._touch(2 * self.problem.n_samples)
            if straight is None:
                return
            gradient = straight / self.problem.n_samples
        bounds = self.certifier.certify(
            self.objective, self.oracle, gradient, self.solver.multiplier(), self.point.y == 0
        )
        self.lower_bound, self.certified = max(self.lower_bound, bounds.dual), True

    def _touch(self, samples: int) -> None:
        self.point.clock[1] += samples


def oracle_of(problem: Problem, checkpoint: Any) -> Any:
    """What asks the samples, wherever they live; those that are far away, of which all is asked at once."""
    backend = problem.backend
    if not backend.local_rows:
        return SpeculativeOracle(RemoteOracle(backend, checkpoint), problem.n_samples)
    if isinstance(backend, FileBackend):
        return SpeculativeOracle(
            FileOracle(problem.samples(), backend.folder, problem.rows_per_chunk), problem.n_samples
        )
    return LocalOracle(problem.samples(), 0, problem.rows_per_chunk)

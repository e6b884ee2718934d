"""One second-order engine along a whole path: from one strength to the next it keeps margins, curvature and model.

The model is exact at the last solution, so the first candidate for a new strength costs no look at the samples at all.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skadmm.kernels.threads import one_thread
from skadmm.problem.problem import Problem
from skadmm.regularizers import SquaredL2, Zero, with_strength
from skadmm.run import memory
from skadmm.run.result import Status
from skadmm.solvers import ALGORITHMS, dual_update
from skadmm.solvers.base import Setup
from skadmm.solvers.second_order import l1_rows
from skadmm.solvers.second_order.newton_admm import (
    FULL_SWEEPS,
    LEAST_DAMPING,
    MOST_REFUSALS,
    RAISED_DAMPING,
    STALE_CURVATURE,
    NewtonADMM,
)
from skadmm.solvers.select import SOME, few_at_once, refusal

FIRST_RHO = 0.01
MOST_ROUNDS, SETTLED = 10, 1e-6
"""Of sweeps on one model, and the relative residuals at which they end."""
MOST_EVALUATIONS = 20
"""At one strength, without a certificate."""


class Solution(NamedTuple):
    """One point of a path."""

    x: np.ndarray
    loss: float
    reached: float
    """The relative duality gap, or the relative KKT residual where there is no certificate."""
    status: Status
    y: np.ndarray | None = None
    """The solver's own Ax, whose zeros are exact."""
    passes: float = 0.0
    """Passes over the data at this strength; 0 where nobody counted."""


def can_follow(problem: Problem) -> bool:
    """Is keeping one engine with a dense Hessian from strength to strength a gain?

    It is where there are few features, or where solve() would take such an engine too. Where solve() works on units or
    on sets of features, separate solves are faster and take no memory of size d².
    """
    if (
        not problem.backend.local_rows
        or not isinstance(problem.omega, (Zero, SquaredL2))
        or refusal(problem) is not None
    ):
        return False
    return problem.n_features < SOME or not (few_at_once(problem) or l1_rows.has_short_rows(problem))


class PathEngine:
    """Solves `problem` for one strength of ψ after another.

    Without `certify` a strength is done when the model at a point just looked at promises a fall of the objective by
    less than tol, relatively; the model's minimiser is then taken unseen. That spares half the looks.
    """

    def __init__(self, problem: Problem, tol: float, passes: float, *, certify: bool = True) -> None:
        self.problem = problem
        mode = "system" if isinstance(problem.omega, SquaredL2) else "none"
        setup = Setup(self.problem, FIRST_RHO, 1.0, 1, mode, rho_given=False, tol=tol)
        memory.check(setup, ALGORITHMS["san-admm"], None)
        start = dual_update.start(self.problem, np.zeros(problem.n_features), None, None)
        self.engine = NewtonADMM(setup, start)
        self.limit = (passes if certify else min(passes, MOST_EVALUATIONS)) * problem.n_samples
        self.fresh = True
        self.certify, self.tol = certify, tol
        self.promise = np.inf

    def __call__(self, alpha: float) -> Solution:
        """The solution at strength `alpha`, starting from the last one."""
        engine, problem = self.engine, self.problem
        touched = int(engine.point.clock[1])
        with one_thread():
            self._set_strength(alpha)
            while not engine.finished and int(engine.point.clock[1]) - touched < self.limit:
                if engine.batch < len(engine.batches):
                    engine._growing_step()
                elif self.certify:
                    engine._full_step()
                else:
                    self._promising_step()
            if not engine.finished:
                engine._full_evaluation()
            if not engine.finished and self.certify:
                engine._certify()
        self.fresh = False
        x = engine.anchor if self.certify else engine.point.x
        reached = float(engine.optimality()[1]) if self.certify else self.promise
        status = Status.SOLVED if reached <= self.tol else Status.STALLED if engine.stalled else Status.PASS_LIMIT
        loss = engine.objective - self.problem.penalty(engine.anchor)
        passes = (int(engine.point.clock[1]) - touched) / problem.n_samples
        return Solution(x.copy(), loss, reached, status, engine.point.y.copy(), passes)

    def _promising_step(self) -> None:
        """A look, and the model's minimiser; finished when that promises next to nothing."""
        engine, problem = self.engine, self.problem
        length = engine._full_evaluation()
        engine._renew()
        engine.refusals = 0 if length > 0.0 else engine.refusals + 1
        engine.stalled = engine.refusals == MOST_REFUSALS
        engine.tau = max(engine.tau / 3.0, LEAST_DAMPING) if length == 1.0 else max(8.0 * engine.tau, RAISED_DAMPING)
        settled = self._minimise_model()
        step = engine.point.x - engine.anchor
        change = float(engine.gradient @ step) + 0.5 * float(step @ (engine.H @ step)) / engine.seen
        fall = problem.penalty(engine.anchor) - problem.penalty(engine.point.x) - change
        self.promise = abs(fall) / max(abs(engine.objective), np.finfo(float).tiny)
        engine.finished = engine.stalled or (settled and self.promise <= self.tol)

    def _set_strength(self, alpha: float) -> None:
        engine, problem = self.engine, self.problem
        before = problem.psi.strength
        loss = engine.objective - problem.penalty(engine.anchor)
        problem = self.problem = problem.replace(psi=with_strength(problem.psi, alpha))
        engine.problem = engine.solver.problem = engine.certifier.problem = problem
        engine.solver._split = engine.solver._split._replace(psi=problem.psi)
        if self.fresh:
            return
        engine.objective = loss + problem.penalty(engine.anchor)
        engine.lower_bound = -np.inf
        engine.certificate = None
        engine.finished, engine.stalled, engine.refusals, engine.full_evaluations = False, False, 0, 1
        engine.point.dual[:] *= alpha / before  # inside its new bounds
        engine.stale = STALE_CURVATURE * engine.max_curvature
        engine._renew()
        self._minimise_model()

    def _minimise_model(self) -> bool:
        """Sweeps until the model's minimiser is found, ρ balanced in between; was it?"""
        engine = self.engine
        metric = self.problem.loss.curvature_bound * engine.squares / engine.seen
        damping = engine.tau * np.where(metric == 0.0, 1.0, metric)
        H, q = engine._mean_H(), engine.q / engine.seen
        for _ in range(MOST_ROUNDS):
            residuals = engine.solver.minimise(H, q, engine.anchor, damping, FULL_SWEEPS, SETTLED)
            if residuals.worst <= SETTLED:
                break
        engine._polish()
        return bool(residuals.worst <= SETTLED)

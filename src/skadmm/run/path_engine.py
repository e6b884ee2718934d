"""One solver along a whole path: from one strength to the next it keeps margins, curvature and model.

The model is exact at the last solution, so the first candidate for a new strength needs no evaluation of samples.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skadmm.problem.problem import Problem
from skadmm.regularizers import SquaredL2, Zero, with_strength
from skadmm.run import memory
from skadmm.run.result import Status
from skadmm.solvers import ALGORITHMS, dual_update
from skadmm.solvers.base import Setup
from skadmm.solvers.second_order import l1_rows
from skadmm.solvers.second_order.base import SolverEngine
from skadmm.solvers.second_order.newton_admm import NewtonADMM, NewtonADMMConfig, NewtonADMMState
from skadmm.solvers.select import CONFIG, few_at_once, refusal

FIRST_RHO = 0.01
MAX_EVALUATIONS = 20
"""Of all samples at one strength, without a certificate."""
ONE_STEP = np.zeros(1, np.int64)


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

    It is where there are few features, or where solve() would take such an engine too. Where solve() works on clusters
    or on sets of features, separate solves are faster and take no memory of size d².
    """
    if (
        not problem.backend.local_rows
        or not isinstance(problem.omega, (Zero, SquaredL2))
        or refusal(problem) is not None
    ):
        return False
    return problem.n_features < CONFIG.some_features or not (few_at_once(problem) or l1_rows.has_short_rows(problem))


class PathEngine:
    """Solves `problem` for one strength of ψ after another.

    Without `certify` a strength is done when the model at a point just evaluated predicts a relative decrease of the
    objective below tol; the model's minimiser is then taken without an evaluation. That saves half of them.
    """

    def __init__(self, problem: Problem, tol: float, passes: float, *, certify: bool = True) -> None:
        self.problem, self.tol = problem, tol
        self.config = NewtonADMMConfig(polish_answer=False, stop_on_model=not certify)
        self.limit = (passes if certify else min(passes, MAX_EVALUATIONS)) * problem.n_samples
        self.engine: SolverEngine[NewtonADMMState] | None = None
        memory.check(self._setup(problem), ALGORITHMS["san-admm"], None)

    def _setup(self, problem: Problem) -> Setup:
        mode = "system" if isinstance(problem.omega, SquaredL2) else "none"
        return Setup(problem, FIRST_RHO, 1.0, 1, mode, rho_given=False, tol=self.tol)

    def _at(self, problem: Problem) -> SolverEngine[NewtonADMMState]:
        """The engine at the start of `problem`, from where the last strength ended."""
        if self.engine is None:
            start = dual_update.start(problem, np.zeros(problem.n_features), None, None)
            self.engine = SolverEngine(NewtonADMM(self._setup(problem), self.config), start)
        else:
            self.engine.follow(problem)
        return self.engine

    def __call__(self, alpha: float) -> Solution:
        """The solution at strength `alpha`, starting from the last one."""
        problem = self.problem.replace(psi=with_strength(self.problem.psi, alpha))
        engine = self._at(problem)
        touched = int(engine.point.clock[1])
        while not engine.finished and int(engine.point.clock[1]) - touched < self.limit:
            engine.advance(ONE_STEP)
        engine.finish()
        state = engine.current
        reached = float(engine.optimality()[1])
        status = Status.SOLVED if reached <= self.tol else Status.STALLED if state.stalled else Status.PASS_LIMIT
        loss = state.objective - problem.penalty(state.anchor)
        passes = (int(engine.point.clock[1]) - touched) / problem.n_samples
        return Solution(state.point.x.copy(), loss, reached, status, state.point.y.copy(), passes)

"""Path following: the solver of a problem is taken from one strength of ψ to the next.

Each strength starts where the last one ended. The running solver keeps what stays valid (``SecondOrderSolver.follow``):
margins and gradients, for some of them Gram matrices or second-order models too, so that the first candidate for a new
strength needs no evaluation of samples.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np

from skadmm.problem.certificate import ZERO_OBJECTIVE
from skadmm.problem.problem import Problem
from skadmm.regularizers import SquaredL2, Zero, with_strength
from skadmm.run import memory
from skadmm.run.result import Result, Status
from skadmm.run.solve import solve
from skadmm.solvers import ALGORITHMS, SOLVERS, dual_update, select
from skadmm.solvers.base import Setup
from skadmm.solvers.registry import Solvers
from skadmm.solvers.second_order.newton_admm import NewtonADMM, NewtonADMMConfig
from skadmm.solvers.second_order.reduced_newton import ReducedNewton, ReducedNewtonConfig
from skadmm.solvers.second_order.stretch import Accuracy

FIRST_RHO = 0.01
MAX_EVALUATIONS = 20
"""The limit of passes at one strength where `certify` is False."""
SMOOTH_PROBLEMS = 20
"""A loss with kinks is solved as a sequence of at most this many smooth problems, each with MAX_EVALUATIONS passes."""
ROUGH, MAX_ROUGH, NULL_SHARES = 1000.0, 1e-3, (30.0, 100.0)
"""Accuracy where `certify` is False. The gap relative to the objective may be ROUGH times tol, but at most MAX_ROUGH
unless tol is larger. Relative to the scale of the loss it lies between the two NULL_SHARES times tol."""
LAST_IMPROVEMENT, MAX_IMPROVEMENT = 300.0, 3e-4
"""Newton steps on clusters, which converge superlinearly, also stop after a step that improves the objective by less
than LAST_IMPROVEMENT times tol, at most MAX_IMPROVEMENT, of it. The suboptimality is a small part of that step."""
ONE_STEP = np.zeros(1, np.int64)
STRETCH = 25
"""The number of strengths that a solver may solve together."""


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
    """Passes over the data at this strength."""


@dataclass(frozen=True)
class Goal:
    """The accuracy to which each strength is solved."""

    tol: float
    passes: float
    certify: bool = True
    """False where strengths are solved to a lower accuracy, see :meth:`at`."""

    @property
    def limit(self) -> float:
        """The limit of passes at one strength."""
        return self.passes if self.certify else min(self.passes, MAX_EVALUATIONS)

    def at(self, null: float, objective: float) -> float:
        """The relative gap to reach at a strength with this objective, `null` the scale of the loss.

        Without a certificate the gap may be :meth:`rough` of the objective, between 30 tol and 100 tol of `null`:
        enough for held-out losses, whose standard errors are many times this.
        """
        if self.certify:
            return self.tol
        if objective <= 0.0:
            return self.rough(NULL_SHARES[1], MAX_ROUGH)
        least, most = (share * self.tol * null / objective for share in NULL_SHARES)
        return max(min(self.rough(ROUGH, MAX_ROUGH), most), least, self.tol)

    def accuracy(self, problem: Problem) -> Accuracy:
        """The accuracy for all strengths, as solvers take it."""
        null = problem.scales().loss
        if self.certify:
            return Accuracy(self.tol, 0.0, np.inf, ZERO_OBJECTIVE * null)
        least, most = (share * self.tol * null for share in NULL_SHARES)
        return Accuracy(self.rough(ROUGH, MAX_ROUGH), least, most, ZERO_OBJECTIVE * null)

    def rough(self, factor: float, largest: float) -> float:
        """`factor` times tol, but at most `largest`, and at least tol."""
        return max(self.tol, min(factor * self.tol, largest))


def _setup(problem: Problem, tol: float) -> Setup:
    mode = "system" if isinstance(problem.omega, SquaredL2) else "none"
    return Setup(problem, FIRST_RHO, 1.0, 1, mode, rho_given=False, tol=tol)


def check_memory(problem: Problem, goal: Goal, count: int, limit: float | None) -> None:
    """Refuse a path of `count` strengths that does not fit into memory, with the numbers, before it is computed."""
    kept = {f"{count} solutions": memory.FLOAT * 2.0 * count * problem.n_features}
    memory.check(_setup(problem, goal.tol), ALGORITHMS["san-admm"], limit, kept, what="the path")


def can_follow(problem: Problem, method: str) -> bool:
    """Can a second-order solver be taken from strength to strength?"""
    if method in SOLVERS:
        return isinstance(problem.omega, (Zero, SquaredL2)) and SOLVERS[method].reason_against(problem) is None
    if method not in ("auto", "san-admm") or not isinstance(problem.omega, (Zero, SquaredL2)):
        return False
    return problem.backend.local_rows and select.refusal(problem) is None


class Following:
    """Solves `problem` for one strength of ψ after another, each started from the last one."""

    def __init__(self, problem: Problem, goal: Goal, method: str = "auto", start: np.ndarray | None = None) -> None:
        self.problem, self.goal, self.method = problem, goal, method
        self.first = np.zeros(problem.n_features) if start is None else start
        """Where the first strength starts."""
        self.engine: select.Running | None = None
        self.solvers: Solvers = ()
        newton = NewtonADMMConfig(polish_answer=False, stop_on_model=not goal.certify)
        self.configs: dict[str, Any] = {NewtonADMM.name: newton}
        if not goal.certify:
            last = goal.rough(LAST_IMPROVEMENT, MAX_IMPROVEMENT)
            self.configs[ReducedNewton.name] = ReducedNewtonConfig.uncertified(last)
        self.tol = goal.at(1.0, 1.0)
        """The accuracy of the next strength."""
        self.resumable = True
        """Does the engine stand at the last solution returned? Not amid strengths that were solved at once."""

    def _setup(self, problem: Problem) -> Setup:
        return _setup(problem, self.tol)

    def _at(self, problem: Problem) -> select.Running:
        """The engine at the start of `problem`: the running one, or another where the table says so."""
        setup, engine = self._setup(problem), self.engine
        point = dual_update.start(problem, self.first.copy(), None, None) if engine is None else engine.point
        if self.method in SOLVERS:
            solvers: Solvers = (SOLVERS[self.method],)
        elif self.solvers and self.solvers[0] in select.FOR_ALL_STRENGTHS:
            solvers = self.solvers
        else:
            solvers, _ = select.solvers_for(setup, point, following=True)
        if engine is not None and solvers == self.solvers:
            engine.follow(problem, self.tol)
            return engine
        if engine is not None:
            engine.close()
        return self._begin(solvers, problem, point)

    def _begin(self, solvers: Solvers, problem: Problem, point: Any) -> select.Running:
        """The engine of these solvers at the start of `problem`."""
        setup, self.solvers = self._setup(problem), solvers
        if self.method in SOLVERS:
            self.engine = solvers[0].engine(setup, point, self.configs.get(self.method))
        else:
            self.engine = select.start(setup, point, solvers, self.configs)
        return self.engine

    def along(self, alphas: np.ndarray) -> Iterator[Solution]:
        """The solutions at decreasing strengths: many at once where the solver can, one by one where it cannot."""
        at = 0
        while at < alphas.size:
            problem = with_new_strength(self.problem, float(alphas[at]))
            engine = self._at(problem)
            stretch = engine.follow_many(alphas[at : at + STRETCH], self.goal.accuracy(problem))
            if stretch is None or stretch.losses.size == 0:
                yield self._solved(engine, problem)
                at += 1
                continue
            at += stretch.losses.size
            self._aim(engine.setup.problem, float(stretch.losses[-1]), engine)
            for k, (x, loss, gap, touched) in enumerate(zip(*stretch, strict=True)):
                self.resumable = k == stretch.losses.size - 1
                passes = float(touched) / problem.n_samples
                yield Solution(x, float(loss), float(gap), Status.SOLVED, None, passes)

    def state(self) -> dict[str, Any]:
        """Which solvers run, at which strength, and the state of the running one."""
        if self.engine is None:
            return {"tol": self.tol, "engine": None}
        return {
            "tol": self.tol,
            "strength": float(self.engine.setup.problem.psi.strength),
            "solvers": [solver.name for solver in self.solvers],
            "engine": self.engine.state(),
        }

    def resume(self, state: dict[str, Any]) -> None:
        """Continue from the solution at which :meth:`state` was called."""
        self.tol = float(state["tol"])
        if state["engine"] is None:
            return
        problem = with_new_strength(self.problem, float(state["strength"]))
        point = dual_update.start(problem, np.zeros(problem.n_features), None, None)
        self._begin(tuple(SOLVERS[name] for name in state["solvers"]), problem, point).resume(state["engine"])

    def _aim(self, problem: Problem, loss: float, engine: select.Running) -> None:
        """Set the accuracy of the next strength, whose objective is no larger than the one here."""
        if not self.goal.certify:
            self.tol = self.goal.at(problem.scales().loss, loss + problem.penalty(engine.point.x))

    def _solved(self, engine: select.Running, problem: Problem) -> Solution:
        """Run the solver at one strength and return its solution."""
        touched = int(engine.point.clock[1])
        limit = self.goal.limit if problem.loss.smooth else min(SMOOTH_PROBLEMS * self.goal.limit, self.goal.passes)
        until = touched + limit * problem.n_samples
        while not engine.finished and engine.point.clock[1] < until:
            engine.advance(ONE_STEP, until)
        engine.finish()
        if not np.isfinite(engine.point.x).all():
            return self._afresh(problem)
        reached = float(engine.optimality()[1])
        status = Status.PASS_LIMIT
        if reached <= self.tol:
            status = Status.SOLVED
        elif engine.finished:
            status = Status.STALLED
        loss = engine.last_loss()
        self._aim(problem, loss, engine)
        passes = (int(engine.point.clock[1]) - touched) / problem.n_samples
        return Solution(engine.point.x.copy(), loss, reached, status, engine.point.y.copy(), passes)

    def _afresh(self, problem: Problem) -> Solution:
        """Solve by a separate solve() where the running solver has diverged; the next strength starts a new solver."""
        if self.engine is not None:
            self.engine.close()
        self.engine, self.solvers = None, ()
        options = {"tol": self.tol, "passes": self.goal.passes, "method": self.method, "record_every": 0}
        return Separately(problem, options, self.first)(problem.psi.strength)


class Follower(Protocol):
    """Solves one problem for decreasing strengths of ψ."""

    @property
    def resumable(self) -> bool:
        """Is the state that of the last solution returned?"""

    def along(self, alphas: np.ndarray) -> Iterator[Solution]:
        """The solutions, each computed when it is asked for."""

    def state(self) -> dict[str, Any]:
        """All that the next strength needs, for a checkpoint."""

    def resume(self, state: dict[str, Any]) -> None:
        """Continue from a checkpoint: the next strength is the one after it."""


class Separately:
    """Solves each strength by a separate solve() that starts from the previous result."""

    def __init__(self, problem: Problem, options: dict[str, Any], start: np.ndarray | None = None) -> None:
        self.problem, self.options, self.first = problem, options, start
        self.last: Result | None = None
        self.resumable = True

    def along(self, alphas: np.ndarray) -> Iterator[Solution]:
        """The solutions at these strengths."""
        return map(self, map(float, alphas))

    def state(self) -> dict[str, Any]:
        """The last result, with the tables from which the next solve starts."""
        return {"last": self.last, "tables": {} if self.last is None else self.last.tables}

    def resume(self, state: dict[str, Any]) -> None:
        """Continue after a result."""
        last = state["last"]
        if last is not None and not isinstance(last, Result):
            raise ValueError("'last' is not a result")
        self.last = None if last is None else replace(last, tables=dict(state["tables"]))

    def __call__(self, alpha: float) -> Solution:
        """The solution at strength `alpha`."""
        problem = with_new_strength(self.problem, alpha)
        first = {"x0": self.first} if self.last is None and self.first is not None else {}
        result = solve(problem, **({"warm_start": self.last} | first | self.options))
        self.last = None if result.status is Status.DIVERGED else result
        loss = result.objective - problem.penalty(result.x)
        return Solution(result.x, loss, reached(result), result.status, result.y, result.passes)


class Certified:
    """A follower that calls solve() with the remaining passes where a strength does not reach the tolerance."""

    def __init__(self, follower: Following) -> None:
        self.follower = follower

    @property
    def resumable(self) -> bool:
        """As the follower says."""
        return self.follower.resumable

    def state(self) -> dict[str, Any]:
        """That of the follower."""
        return self.follower.state()

    def resume(self, state: dict[str, Any]) -> None:
        """As the follower does."""
        self.follower.resume(state)

    def along(self, alphas: np.ndarray) -> Iterator[Solution]:
        """The solutions at these strengths."""
        goal = self.follower.goal
        for alpha, solution in zip(alphas, self.follower.along(alphas), strict=True):
            left = goal.passes - solution.passes
            if solution.status is Status.SOLVED or left <= 0.0:
                yield solution
                continue
            options = {"tol": goal.tol, "passes": left, "record_every": 0}
            other = Separately(self.follower.problem, options, self.follower.first)(float(alpha))
            yield other if other.status is Status.SOLVED else solution


def with_new_strength(problem: Problem, alpha: float) -> Problem:
    """`problem` with ψ of another strength."""
    return problem.replace(psi=with_strength(problem.psi, alpha))


def reached(result: Result) -> float:
    """The relative gap a result ended with, or the relative KKT residual where there is none."""
    return float(result.kkt.relative if np.isnan(result.gap) else result.gap)

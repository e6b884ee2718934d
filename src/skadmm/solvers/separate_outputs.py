"""Several outputs that no term joins, one after the other.

The problem is a sum over outputs. The solution of each is found by the solvers that ``select.py`` chooses for it, and
the sums of objectives and of lower bounds give the duality gap of the whole. A Newton matrix then has the order of the
features of one output, and an output that is difficult does not slow down the others.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from skadmm import _cancel
from skadmm.problem import separation
from skadmm.problem.certificate import Certifier
from skadmm.problem.problem import Problem
from skadmm.solvers import dual_update, select
from skadmm.solvers.base import Setup
from skadmm.solvers.dual_update import Point
from skadmm.solvers.registry import register_solver
from skadmm.solvers.second_order.base import SecondOrderSolver, SolverState

ONE_STEP = np.zeros(1, np.int64)


@dataclass(frozen=True)
class SeparateOutputsConfig:
    """Settings of the solution output by output."""

    tol_share: float = 0.9
    """Every output is solved to this share of the relative gap of the whole."""
    stricter: float = 0.1
    """Where the gap of the whole misses its tolerance, outputs are solved again to this share of the last tolerance."""
    max_rounds: int = 3
    """The number of times that every output is solved at most."""
    max_passes: float = 1000.0
    """The maximum number of passes over the samples of one output in a round."""


@dataclass(kw_only=True)
class SeparateOutputsState(SolverState):
    """State of the solution output by output. ``point`` has the solutions found so far."""

    number: int = 0
    """The output that is next."""
    rounds: int = 0
    """The number of times that every output has been solved."""
    objectives: np.ndarray
    """The objective of each output; infinite before it is solved."""
    lower_bounds: np.ndarray
    """The lower bound of the optimum of each output; −∞ where there is none."""
    rhos: np.ndarray
    """The penalty parameter of each output at its last solution."""
    ran: tuple[str, ...] = ()
    """The solvers that have run for outputs, each once, in the order of their first use."""


@register_solver
class SeparateOutputs(SecondOrderSolver[SeparateOutputsState]):
    """One output after the other. A step solves one of them."""

    name = "separate-outputs"
    summary = "Several outputs that no term joins, each by the solvers that it gets alone"
    Config: ClassVar[type[Any]] = SeparateOutputsConfig
    config: SeparateOutputsConfig

    def __init__(self, setup: Setup, config: SeparateOutputsConfig | None = None) -> None:
        super().__init__(setup, config)
        self.outputs = separation.outputs_apart(setup.problem)
        self.gapped = all(Certifier(output.problem).kind != "none" for output in self.outputs)
        """True where every output has a certificate."""

    @classmethod
    def applies(cls, problem: Problem) -> str | None:
        """A sum over several outputs."""
        return separation.reason_against(problem)

    def init(self, point: Point, rho: float) -> SeparateOutputsState:
        """The state before the first output is solved."""
        k = len(self.outputs)
        return SeparateOutputsState(
            point=point, rho=rho, multiplier=rho * point.dual, objectives=np.full(k, np.inf),
            lower_bounds=np.full(k, -np.inf), rhos=np.full(k, rho),
        )  # fmt: skip

    def ran(self, state: SeparateOutputsState) -> str:
        """The name, with the solvers of the outputs."""
        return f"{self.name} ({'; '.join(state.ran)})" if state.ran else self.name

    def step(self, state: SeparateOutputsState) -> None:
        """Solve the next output; after the last one, decide whether the whole meets the tolerance."""
        _cancel.check_cancelled()
        number = state.number
        self._solve(state, number)
        state.objective, state.lower_bound = float(state.objectives.sum()), float(state.lower_bounds.sum())
        state.number = (number + 1) % len(self.outputs)
        if state.number == 0:
            state.rounds += 1
            state.finished = self.tol is not None and self.optimality(state)[1] <= self.tol
            again = self.tol is not None and state.rounds < self.config.max_rounds
            state.stalled = not (state.finished or again)

    def finish(self, state: SeparateOutputsState) -> None:
        """Nothing: the answer of each output is finished."""

    def optimality(self, state: SeparateOutputsState) -> tuple[str, float]:
        """The relative gap of the whole, or its relative KKT residual where an output has no certificate."""
        if self.gapped:
            return "gap", self.certifier.pair(state.objective, state.lower_bound).relative
        point = state.point
        return "kkt", self.problem.kkt(point.x, point.y, state.multiplier).relative

    def last_loss(self, state: SeparateOutputsState) -> float:
        """The mean loss at the solutions found so far."""
        return self.problem.loss_value(state.point.x)

    def _tol(self, state: SeparateOutputsState) -> float | None:
        """The tolerance of an output in this round."""
        return None if self.tol is None else self.config.tol_share * self.config.stricter**state.rounds * self.tol

    def _solve(self, state: SeparateOutputsState, number: int) -> None:
        """Solve one output from its part of the point, and put the solution there."""
        problem, features, rows = self.outputs[number]
        point = state.point
        setup = replace(self.setup, problem=problem, tol=self._tol(state), solver="", options={}, checkpoint=None)
        scale = state.rho / state.rhos[number]
        start = dual_update.start(problem, point.x[features], point.y[rows], scale * point.dual[rows])
        solvers, _ = select.solvers_for(setup, start)
        engine = select.start(setup, start, solvers, rho=float(state.rhos[number]))
        limit = self.config.max_passes * problem.n_samples
        while not engine.finished and engine.point.clock[1] < limit:
            engine.advance(ONE_STEP)
        engine.finish()
        engine.close()
        found = engine.point
        point.x[features], point.y[rows] = found.x, found.y
        point.dual[rows] = (engine.rho / state.rho) * found.dual
        state.multiplier[rows] = engine.rho * found.dual
        state.rhos[number] = engine.rho
        state.objectives[number] = problem.objective(found.x)
        bounds = engine.certificate
        if bounds is not None:
            state.lower_bounds[number] = max(state.lower_bounds[number], bounds.dual)
        point.clock[1] += int(found.clock[1]) + problem.n_samples
        if engine.solver_name not in state.ran:
            state.ran = (*state.ran, engine.solver_name)

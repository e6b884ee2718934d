"""Engine classes that are not yet written as :class:`SecondOrderSolver`, as the registry and selection see solvers.

To be deleted once NewtonADMM, ReducedNewton and WorkingSet are: ``registry.py`` and ``select.py`` import the classes
under the names used here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from skadmm.problem.problem import Problem
from skadmm.regularizers import Stacked
from skadmm.solvers.base import Setup
from skadmm.solvers.dual_update import Point
from skadmm.solvers.second_order import newton_admm, reduced_newton, working_set

LARGEST = 5000
"""The largest number of features for which a dense d × d matrix is formed and inverted at once."""


@dataclass(frozen=True)
class NoConfig:
    """No settings."""


@dataclass(frozen=True)
class EngineClass:
    """An engine class with what a solver class has."""

    make: Callable[[Setup, Point], Any]
    name: str
    summary: str
    applies: Callable[[Problem], str | None]
    Config: type[Any] = NoConfig

    def alone(self, config: Any) -> Any:
        """The settings with which the solver runs when no other solver can take over from it."""
        return config

    def engine(self, setup: Setup, point: Point, config: Any = None, rho: float | None = None) -> Any:
        """The engine at `point`, with the penalty parameter of the setup."""
        return self.make(setup, point)


def without_sweeps(problem: Problem) -> str | None:
    """Why ADMM's sweeps on a model cannot take a problem, which leaves the method of multipliers."""
    if problem.y_of_x(np.zeros(problem.n_features)) is None:
        return "B is not invertible"
    psi = problem.psi.first if isinstance(problem.psi, Stacked) else problem.psi  # a folded Ω may be a constraint
    if not psi.subdifferentiable:
        return f"psi={type(problem.psi).__name__} is a constraint (give it as omega)"
    return None


def _newton_admm(problem: Problem) -> str | None:
    if problem.n_features > LARGEST:
        return f"{problem.n_features} features are more than a dense second-order model can hold ({LARGEST})"
    return without_sweeps(problem)


def _working_set(problem: Problem) -> str | None:
    if problem.backend.local_rows and working_set.applies(problem):
        return None
    return "psi must be an ℓ1 norm with a row of A for every feature alone, without omega, B and c"


NewtonADMM: Any = EngineClass(
    newton_admm.NewtonADMM, newton_admm.NewtonADMM.solver_name,
    "Second-order models of the loss, minimised with ψ by sweeps of ADMM", _newton_admm,
)  # fmt: skip
ReducedNewton: Any = EngineClass(
    reduced_newton.ReducedNewton, reduced_newton.ReducedNewton.solver_name,
    "Newton steps on the clusters of equal features that a point is made of", reduced_newton.reason_against,
)  # fmt: skip
WorkingSet: Any = EngineClass(
    working_set.WorkingSet, working_set.WorkingSet.solver_name,
    "Second-order models over a growing set of features", _working_set,
)  # fmt: skip

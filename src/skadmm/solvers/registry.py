"""The second-order solvers behind san-admm: what each is called, what it takes, and how it starts.

``solve(problem)`` chooses among them (``newton.py``) and hands over from one to the next; ``solve(problem, name)`` runs
one alone. ``Result.solver`` tells which ran.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from skadmm._names import Registry
from skadmm.problem.problem import Problem
from skadmm.solvers.base import Engine, Setup
from skadmm.solvers.dual_update import Point


@dataclass(frozen=True)
class Solver:
    """A second-order solver."""

    name: str
    summary: str
    applies: Callable[[Problem], str | None] = field(repr=False)
    """Why it cannot take a problem; None when it can."""
    start: Callable[[Setup, Point], Engine] = field(repr=False)


SOLVERS: Registry[Solver] = Registry("method")


def register_solver(solver: Solver) -> Solver:
    """Make a solver known by its name."""
    return SOLVERS.add(solver.name, solver)


def start_alone(setup: Setup, point: Point) -> Engine:
    """The solver that ``setup.solver`` names, alone; an error with its reason where it cannot take the problem."""
    solver = SOLVERS[setup.solver]
    reason = solver.applies(setup.problem)
    if reason is not None:
        others = [repr(other.name) for _, other in SOLVERS.items() if other.applies(setup.problem) is None]
        takes = f"; this problem can be given to {', '.join(others)}" if others else ""
        raise ValueError(f"method={solver.name!r} cannot take this problem: {reason}{takes}")
    return solver.start(setup, point)

"""The second-order solvers by name, and how one runs alone.

``solve(problem)`` chooses among them (``select.py``) and may switch from one to the next; ``solve(problem, name)`` runs
one alone. ``Result.solver`` names those that ran.
"""

from collections.abc import Mapping
from typing import Any, TypeVar

from skadmm._names import Registry
from skadmm.solvers.base import Engine, Setup
from skadmm.solvers.dual_update import Point
from skadmm.solvers.second_order.base import SecondOrderSolver, config_from
from skadmm.solvers.second_order.block_descent import BlockDescent
from skadmm.solvers.second_order.block_newton import BlockNewton
from skadmm.solvers.second_order.chain_descent import ChainDescent
from skadmm.solvers.second_order.conic import Conic
from skadmm.solvers.second_order.coordinate_descent import CoordinateDescent
from skadmm.solvers.second_order.graph_trend import GraphTrendADMM
from skadmm.solvers.second_order.interior_point import InteriorPoint
from skadmm.solvers.second_order.limited_memory import LimitedMemory
from skadmm.solvers.second_order.multipliers import Multipliers
from skadmm.solvers.second_order.multipliers_cg import MultipliersCG
from skadmm.solvers.second_order.newton_admm import NewtonADMM
from skadmm.solvers.second_order.output_descent import OutputDescent
from skadmm.solvers.second_order.output_sweeps import OutputSweeps
from skadmm.solvers.second_order.prox_gradient import ProxGradient
from skadmm.solvers.second_order.reduced_newton import ReducedNewton
from skadmm.solvers.second_order.row_interior_point import RowInteriorPoint
from skadmm.solvers.second_order.signal_interior_point import SignalInteriorPoint
from skadmm.solvers.second_order.signal_newton import SignalNewton
from skadmm.solvers.second_order.tied_set import TiedSet
from skadmm.solvers.second_order.working_set import WorkingSet

SOLVERS: Registry[type[SecondOrderSolver[Any]]] = Registry("method", "solvers")
T = TypeVar("T", bound=type[SecondOrderSolver[Any]])
Solvers = tuple[type[SecondOrderSolver[Any]], ...]
"""Solvers in the order in which they take over from each other."""
FOR_KINKS = "dual-proximal"
"""The solver of losses that are not differentiable. It imports ``select.py``: the smooth problems that it solves get
their solvers from the table."""
BY_OUTPUT = "separate-outputs"
"""The solver of several outputs that no term joins. It imports ``select.py`` too."""


def register_solver(solver: T) -> T:
    """Make a class of second-order solvers known by its name; can be used as a decorator.

    Parameters
    ----------
    solver : subclass of SecondOrderSolver
        The class; its attribute ``name`` must be new.

    Returns
    -------
    type
        The same class.

    See Also
    --------
    skadmm.solvers.SecondOrderSolver : The base class.

    Examples
    --------
    A name can be taken once:

    >>> from skadmm import SOLVERS
    >>> from skadmm.solvers import register_solver
    >>> try:
    ...     register_solver(SOLVERS["newton-admm"])
    ... except ValueError as error:
    ...     print(error)
    method 'newton-admm' is already registered
    """
    SOLVERS.add(solver.name, solver)
    return solver


register_solver(InteriorPoint)
register_solver(ChainDescent)
register_solver(GraphTrendADMM)
register_solver(SignalNewton)
register_solver(SignalInteriorPoint)
register_solver(NewtonADMM)
register_solver(ReducedNewton)
register_solver(BlockDescent)
register_solver(BlockNewton)
register_solver(OutputDescent)
register_solver(OutputSweeps)
register_solver(CoordinateDescent)
register_solver(ProxGradient)
register_solver(WorkingSet)
register_solver(Multipliers)
register_solver(MultipliersCG)
register_solver(RowInteriorPoint)
register_solver(Conic)
register_solver(TiedSet)
register_solver(LimitedMemory)


def settled_options(name: str, given: Mapping[str, Any] | None) -> dict[str, Any]:
    """Check the options of a second-order solver.

    Parameters
    ----------
    name : str
        A name in ``skadmm.SOLVERS``.
    given : mapping or None
        Values for fields of the solver's Config.

    Returns
    -------
    dict
        The options that were given, once they have been checked; a field left out takes its default.

    See Also
    --------
    skadmm.solve : Takes them as its argument `options`.

    Examples
    --------
    >>> from skadmm.solvers import settled_options
    >>> settled_options("reduced-newton", {"first_opened": 50})
    {'first_opened': 50}
    """
    if given is not None and not isinstance(given, Mapping):
        raise TypeError(f"options={given!r}: it takes a dictionary of the solver's own settings, or None")
    options = dict(given or {})
    config_from(SOLVERS[name], options)
    return options


def start_alone(setup: Setup, point: Point) -> Engine:
    """The solver that ``setup.solver`` names, alone, with the settings in ``setup.options``; an error with its reason
    where it cannot take the problem."""
    solver = SOLVERS[setup.solver]
    reason = solver.reason_against(setup.problem)
    if reason is not None:
        others = [repr(name) for name, other in SOLVERS.items() if other.reason_against(setup.problem) is None]
        takes = f"; this problem can be given to {', '.join(others)}" if others else ""
        raise ValueError(f"method={solver.name!r} cannot take this problem: {reason}{takes}")
    return solver.engine(setup, point, solver.alone(config_from(solver, setup.options)))

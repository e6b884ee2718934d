"""The solvers that take over where all those of a row of the table (``select.py``) have stalled."""

from __future__ import annotations

from skadmm.problem.problem import Problem
from skadmm.solvers import situation
from skadmm.solvers.base import Setup
from skadmm.solvers.registry import BY_OUTPUT, SOLVERS, Solvers
from skadmm.solvers.second_order import conic_terms
from skadmm.solvers.second_order.conic import INSTALL, Conic
from skadmm.solvers.second_order.interior_point import InteriorPoint
from skadmm.solvers.second_order.multipliers import Multipliers
from skadmm.solvers.second_order.newton_admm import NewtonADMM
from skadmm.solvers.second_order.reduced_newton import ReducedNewton
from skadmm.solvers.second_order.row_interior_point import RowInteriorPoint
from skadmm.solvers.second_order.tied_set import TiedSet
from skadmm.solvers.second_order.working_set import WorkingSet


def rescuers(setup: Setup, solvers: Solvers) -> Solvers:
    """The solvers that take over where all of `solvers` have stalled short of the tolerance."""
    problem = setup.problem
    if setup.tol is None or not problem.loss.smooth or SOLVERS[BY_OUTPUT] in solvers:
        return ()
    small = problem.n_features <= situation.CONFIG.last_resort
    if small and not {Multipliers, InteriorPoint} & {*solvers} and Multipliers.applies(problem) is None:
        # Clusters of columns of very different scales converge slowly; a dense model does not depend on scales.
        dense = (NewtonADMM,) if ReducedNewton in solvers and NewtonADMM.applies(problem) is None else ()
        return (*dense, Multipliers, *last_resorts(problem, (*solvers, Multipliers)))
    return last_resorts(problem, solvers)


def last_resorts(problem: Problem, solvers: Solvers) -> Solvers:
    """The solvers that take over where all others have stalled: an active set of ties, or a conic programme where the
    problem is small, and Newton steps from its solution; an interior point method where the problem is large and its
    samples are few."""
    if problem.is_coupled:
        dense = (NewtonADMM,) if NewtonADMM.applies(problem) is None else ()
        return (Conic, *dense) if Conic not in solvers and Conic.applies(problem) is None else ()
    if Multipliers in solvers:
        tied = (TiedSet,) if TiedSet.applies(problem) is None else ()
        return (*tied, Conic, Multipliers) if Conic.applies(problem) is None else tied
    if RowInteriorPoint in solvers:
        return (WorkingSet,) if WorkingSet.applies(problem) is None else ()
    graph = ReducedNewton in solvers and problem.n_features > situation.CONFIG.last_resort
    return (RowInteriorPoint,) if graph and RowInteriorPoint.applies(problem) is None else ()


def missing_last_resort(problem: Problem) -> str:
    """Advice to install a solver that could continue where a run has stalled; empty where none could."""
    missing = not conic_terms.is_installed() and problem.backend.local_rows and Conic.too_large(problem) is None
    return f"a conic solver could continue from here: {INSTALL}" if missing else ""

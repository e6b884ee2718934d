"""The methods, one file each; importing a file registers what it holds."""

from skadmm.solvers import dual_proximal, select, separate_outputs
from skadmm.solvers.base import ALGORITHMS, Algorithm, Engine, Setup
from skadmm.solvers.first_order import asvrg, batch, exact, online, opg, rda, sa, saga, stoc, svrg
from skadmm.solvers.registry import SOLVERS, register_solver, settled_options
from skadmm.solvers.second_order.base import SecondOrderSolver

__all__ = [
    "ALGORITHMS",
    "SOLVERS",
    "Algorithm",
    "Engine",
    "SecondOrderSolver",
    "Setup",
    "asvrg",
    "batch",
    "dual_proximal",
    "exact",
    "online",
    "opg",
    "rda",
    "register_solver",
    "sa",
    "saga",
    "select",
    "separate_outputs",
    "settled_options",
    "stoc",
    "svrg",
]

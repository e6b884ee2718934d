"""The methods, one file each; importing a file registers what it holds."""

from skadmm.solvers import select
from skadmm.solvers.base import ALGORITHMS, Algorithm, Engine, Setup
from skadmm.solvers.first_order import asvrg, batch, exact, online, opg, rda, sa, saga, stoc, svrg
from skadmm.solvers.registry import SOLVERS, Solver

__all__ = [
    "ALGORITHMS",
    "SOLVERS",
    "Algorithm",
    "Engine",
    "Setup",
    "Solver",
    "asvrg",
    "batch",
    "exact",
    "online",
    "opg",
    "rda",
    "sa",
    "saga",
    "select",
    "stoc",
    "svrg",
]

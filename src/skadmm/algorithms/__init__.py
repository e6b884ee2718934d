"""The methods, one file each; importing a file registers what it holds."""

from skadmm.algorithms import asvrg, batch, exact, newton, online, opg, rda, sa, saga, stoc, svrg
from skadmm.algorithms._base import ALGORITHMS, Algorithm, Engine, Setup
from skadmm.algorithms._solvers import SOLVERS, Solver

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
    "newton",
    "online",
    "opg",
    "rda",
    "sa",
    "saga",
    "stoc",
    "svrg",
]

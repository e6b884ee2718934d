"""The methods, one file each; importing a file registers what it holds."""

from skadmm.algorithms import asvrg, batch, exact, newton, online, opg, rda, sa, saga, stoc, svrg
from skadmm.algorithms._base import ALGORITHMS, Algorithm, Engine, Setup

__all__ = [
    "ALGORITHMS",
    "Algorithm",
    "Engine",
    "Setup",
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

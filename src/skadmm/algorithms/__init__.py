"""The methods, one file each; importing a file registers what it holds."""

from skadmm.algorithms import batch, exact, newton, online, opg, rda, sa, stoc
from skadmm.algorithms._base import ALGORITHMS, Algorithm, Engine, Setup

__all__ = [
    "ALGORITHMS",
    "Algorithm",
    "Engine",
    "Setup",
    "batch",
    "exact",
    "newton",
    "online",
    "opg",
    "rda",
    "sa",
    "stoc",
]

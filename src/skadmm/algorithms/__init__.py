"""The methods, one file each; importing a file registers what it holds."""

from skadmm.algorithms import batch, exact, online, opg, rda, sa, san, stoc
from skadmm.algorithms._base import ALGORITHMS, Algorithm, Engine, Setup

__all__ = ["ALGORITHMS", "Algorithm", "Engine", "Setup", "batch", "exact", "online", "opg", "rda", "sa", "san", "stoc"]

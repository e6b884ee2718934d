"""Stochastic ADMM for structured-sparse learning.

minimise over x, y   (1/n) Σ ℓ(aᵢ·x, bᵢ) + Ω(x) + ψ(y)   subject to   A x + B y = c
"""

from skadmm._version import __version__
from skadmm.algorithms import ALGORITHMS
from skadmm.compare import compare
from skadmm.problem import KKT, Problem
from skadmm.result import Result, Snapshot, Status
from skadmm.run import CallbackError, solve

__all__ = [
    "ALGORITHMS",
    "KKT",
    "CallbackError",
    "Problem",
    "Result",
    "Snapshot",
    "Status",
    "__version__",
    "compare",
    "solve",
]

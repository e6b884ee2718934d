"""Stochastic ADMM for structured-sparse learning.

minimise over x, y   (1/n) Σ ℓ(aᵢ·x, bᵢ) + Ω(x) + ψ(y)   subject to   A x + B y = c
"""

from typing import Any

from skadmm._version import __version__
from skadmm.algorithms import ALGORITHMS, SOLVERS
from skadmm.checkpoint import CheckpointError
from skadmm.compare import compare
from skadmm.path import Path, alpha_max, path
from skadmm.problem import KKT, Problem
from skadmm.result import Result, Snapshot, Status
from skadmm.run import CallbackError, solve

# scikit-learn takes a while to import: only what needs it does.
_ESTIMATORS = (
    "FusedLassoClassifier",
    "FusedLassoClassifierCV",
    "FusedLassoRegressor",
    "FusedLassoRegressorCV",
    "GeneralizedLassoClassifier",
    "GeneralizedLassoClassifierCV",
    "GeneralizedLassoRegressor",
    "GeneralizedLassoRegressorCV",
    "GroupLassoClassifier",
    "GroupLassoClassifierCV",
    "GroupLassoRegressor",
    "GroupLassoRegressorCV",
    "TrendFilter",
    "TrendFilterCV",
)
_PERSISTENCE = ("ModelFileError", "load")


def __getattr__(name: str) -> Any:
    if name in _ESTIMATORS:
        from skadmm import estimators

        return getattr(estimators, name)
    if name in _PERSISTENCE:
        from skadmm import persistence

        return getattr(persistence, name)
    raise AttributeError(f"module 'skadmm' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)


__all__ = [  # noqa: PLE0604
    "ALGORITHMS",
    "SOLVERS",
    "KKT",
    "CallbackError",
    "CheckpointError",
    "Path",
    "Problem",
    "Result",
    "Snapshot",
    "Status",
    "__version__",
    "alpha_max",
    "compare",
    "path",
    "solve",
    *_ESTIMATORS,
    *_PERSISTENCE,
]

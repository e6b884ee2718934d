"""Stochastic ADMM for structured-sparse learning.

minimise over x, y   (1/n) Σ ℓ(aᵢ·x, bᵢ) + Ω(x) + ψ(y)   subject to   A x + B y = c
"""

import importlib
import warnings
from typing import TYPE_CHECKING, Any

from skadmm._version import __version__

if TYPE_CHECKING:
    from skadmm import backends as backends
    from skadmm import datasets as datasets
    from skadmm import estimators as estimators
    from skadmm import losses as losses
    from skadmm import operators as operators
    from skadmm import paper as paper
    from skadmm import plotting as plotting
    from skadmm import regularizers as regularizers
    from skadmm import solvers as solvers
    from skadmm.estimators import (
        FusedLassoClassifier,
        FusedLassoClassifierCV,
        FusedLassoRegressor,
        FusedLassoRegressorCV,
        GeneralizedLassoClassifier,
        GeneralizedLassoClassifierCV,
        GeneralizedLassoRegressor,
        GeneralizedLassoRegressorCV,
        GroupLassoClassifier,
        GroupLassoClassifierCV,
        GroupLassoRegressor,
        GroupLassoRegressorCV,
        TrendFilter,
        TrendFilterCV,
    )
    from skadmm.estimators.loading import load
    from skadmm.estimators.persistence import ModelFileError
    from skadmm.problem.exact_trend import exact_trend_gap
    from skadmm.problem.kkt import KKT
    from skadmm.problem.problem import Problem
    from skadmm.run.checkpoint import CheckpointError
    from skadmm.run.compare import compare
    from skadmm.run.path import Path, alpha_max, path
    from skadmm.run.result import Result, Snapshot, Status
    from skadmm.run.solve import CallbackError, solve
    from skadmm.run.total_variation import denoise_line
    from skadmm.solvers import ALGORITHMS, SOLVERS

__all__ = [
    "ALGORITHMS",
    "KKT",
    "SOLVERS",
    "CallbackError",
    "CheckpointError",
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
    "ModelFileError",
    "Path",
    "Problem",
    "Result",
    "Snapshot",
    "Status",
    "TrendFilter",
    "TrendFilterCV",
    "__version__",
    "alpha_max",
    "compare",
    "denoise_line",
    "exact_trend_gap",
    "load",
    "path",
    "solve",
]

# Numba, SciPy, pandas and scikit-learn take a second to import together. A name is imported when it is first used.
_MODULES = {
    "ALGORITHMS": "solvers",
    "SOLVERS": "solvers",
    "CallbackError": "run.solve",
    "CheckpointError": "run.checkpoint",
    "KKT": "problem.kkt",
    "ModelFileError": "estimators.persistence",
    "Path": "run.path",
    "Problem": "problem.problem",
    "Result": "run.result",
    "Snapshot": "run.result",
    "Status": "run.result",
    "alpha_max": "run.path",
    "compare": "run.compare",
    "denoise_line": "run.total_variation",
    "exact_trend_gap": "problem.exact_trend",
    "load": "estimators.loading",
    "path": "run.path",
    "solve": "run.solve",
}
"""The module that defines each public name; names that are not listed are estimators."""
_PACKAGES = ("backends", "datasets", "estimators", "io", "kernels", "losses", "operators", "oracle", "paper",
             "plotting", "problem", "regularizers", "run", "solvers")  # fmt: skip
_RENAMED = {"algorithms": "solvers", "blocks": "backends", "data": "datasets", "experiments": "paper",
            "theory": "paper.theory"}  # fmt: skip
"""Names of version 0.1, which still work as attributes of ``skadmm``, with a warning."""

if not TYPE_CHECKING:  # type checkers would take every name for known

    def __getattr__(name: str) -> Any:
        if name in _PACKAGES:
            return importlib.import_module(f"skadmm.{name}")
        if name in _RENAMED:
            now = f"skadmm.{_RENAMED[name]}"
            warnings.warn(f"skadmm.{name} is now {now}", DeprecationWarning, stacklevel=2)
            return importlib.import_module(now)
        if name not in __all__:
            raise AttributeError(f"module 'skadmm' has no attribute {name!r}")
        value = getattr(importlib.import_module(f"skadmm.{_MODULES.get(name, 'estimators')}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted([*__all__, *_PACKAGES])

"""Stochastic ADMM for structured-sparse learning.

minimise over x, y   (1/n) Σ ℓ(aᵢ·x, bᵢ) + Ω(x) + ψ(y)   subject to   A x + B y = c
"""

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from skadmm._version import __version__

if TYPE_CHECKING:
    from skadmm import algorithms as algorithms
    from skadmm import blocks as blocks
    from skadmm import data as data
    from skadmm import estimators as estimators
    from skadmm import experiments as experiments
    from skadmm import losses as losses
    from skadmm import operators as operators
    from skadmm import plotting as plotting
    from skadmm import regularizers as regularizers
    from skadmm import theory as theory
    from skadmm.algorithms import ALGORITHMS, SOLVERS
    from skadmm.checkpoint import CheckpointError
    from skadmm.compare import compare
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
    from skadmm.path import Path, alpha_max, path
    from skadmm.persistence import ModelFileError, load
    from skadmm.problem import KKT, Problem
    from skadmm.result import Result, Snapshot, Status
    from skadmm.run import CallbackError, solve

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
    "load",
    "path",
    "solve",
]

# Numba, SciPy, pandas and scikit-learn take a second to import together. A name is imported when it is first used.
_HOMES = {
    "ALGORITHMS": "algorithms",
    "SOLVERS": "algorithms",
    "CallbackError": "run",
    "CheckpointError": "checkpoint",
    "KKT": "problem",
    "ModelFileError": "persistence",
    "Path": "path",
    "Problem": "problem",
    "Result": "result",
    "Snapshot": "result",
    "Status": "result",
    "alpha_max": "path",
    "compare": "compare",
    "load": "persistence",
    "path": "path",
    "solve": "run",
}
"""The module that defines each public name; names that are not listed are estimators."""
_SUBMODULES = ("algorithms", "blocks", "certificate", "checkpoint", "constraint", "data", "estimators", "experiments",
               "kernels", "losses", "operators", "persistence", "plotting", "problem", "regularizers", "result", "run",
               "sampling", "stepsize", "structure", "theory")  # fmt: skip


class _Package(ModuleType):
    """Importing the submodule ``skadmm.path`` binds it to the name `path` here, where users expect the function."""

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, ModuleType) and _HOMES.get(name) == name:
            value = getattr(value, name)
        super().__setattr__(name, value)


if not TYPE_CHECKING:  # type checkers would take every name for known

    def __getattr__(name: str) -> Any:
        if name in _SUBMODULES:
            return importlib.import_module(f"skadmm.{name}")
        if name not in __all__:
            raise AttributeError(f"module 'skadmm' has no attribute {name!r}")
        value = getattr(importlib.import_module(f"skadmm.{_HOMES.get(name, 'estimators')}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted([*__all__, *_SUBMODULES])


sys.modules[__name__].__class__ = _Package

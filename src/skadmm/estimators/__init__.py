"""The scikit-learn interface: classifiers and regressors with structured sparsity, their paths and cross-validation."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from skadmm.estimators._graphs import FeatureGraph
    from skadmm.estimators.fused import (
        FusedLassoClassifier,
        FusedLassoClassifierCV,
        FusedLassoRegressor,
        FusedLassoRegressorCV,
    )
    from skadmm.estimators.generalized import (
        GeneralizedLassoClassifier,
        GeneralizedLassoClassifierCV,
        GeneralizedLassoRegressor,
        GeneralizedLassoRegressorCV,
    )
    from skadmm.estimators.group import (
        GroupLassoClassifier,
        GroupLassoClassifierCV,
        GroupLassoRegressor,
        GroupLassoRegressorCV,
    )
    from skadmm.estimators.trend import TrendFilter, TrendFilterCV

    ESTIMATORS: dict[str, Any]

__all__ = [
    "ESTIMATORS",
    "FeatureGraph",
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
]

# scikit-learn is slow to import: a class is imported when it is first used.
_MODULES = {
    "FeatureGraph": "_graphs",
    "TrendFilter": "trend",
    "TrendFilterCV": "trend",
} | {
    f"{family}Lasso{kind}": family.lower()
    for family in ("Fused", "Generalized", "Group")
    for kind in ("Classifier", "Regressor", "ClassifierCV", "RegressorCV")
}


if not TYPE_CHECKING:  # with it, type checkers would accept every name

    def __getattr__(name: str) -> Any:
        if name == "ESTIMATORS":
            value: Any = {known: __getattr__(known) for known in _MODULES if known != "FeatureGraph"}
        elif name in _MODULES:
            value = getattr(importlib.import_module(f"skadmm.estimators.{_MODULES[name]}"), name)
        else:
            raise AttributeError(f"module 'skadmm.estimators' has no attribute {name!r}")
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted(__all__)

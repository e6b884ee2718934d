"""The scikit-learn face: classifiers and regressors with structured sparsity, their paths and cross-validation."""

from typing import Any

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

ESTIMATORS: dict[str, Any] = {
    cls.__name__: cls
    for cls in (
        FusedLassoClassifier,
        FusedLassoRegressor,
        FusedLassoClassifierCV,
        FusedLassoRegressorCV,
        GeneralizedLassoClassifier,
        GeneralizedLassoRegressor,
        GeneralizedLassoClassifierCV,
        GeneralizedLassoRegressorCV,
        GroupLassoClassifier,
        GroupLassoRegressor,
        GroupLassoClassifierCV,
        GroupLassoRegressorCV,
        TrendFilter,
        TrendFilterCV,
    )
}
"""Every estimator, by its name."""

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

"""Regression: one target of numbers, its mean taken off where there is an intercept."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import RegressorMixin

from skadmm.backends import is_dask
from skadmm.estimators._base import StructuredModel
from skadmm.estimators._large import mean_of


class Regression(RegressorMixin, StructuredModel):
    """What the estimators of numbers share."""

    def _losses(self) -> tuple[str, ...]:
        return ("squared", "huber")

    def _read(self, X: Any, y: Any, sample_weight: Any, **checks: Any) -> tuple[Any, Any, np.ndarray | None]:
        return self._table(X, y, sample_weight, y_numeric=True, **checks)

    def _targets(self, y: Any, sample_weight: np.ndarray | None) -> list[np.ndarray]:
        y = y if is_dask(y) else np.asarray(y, dtype=np.float64)
        # The intercept may as well begin at the mean: a constant target then leaves nothing to fit.
        self._offset = mean_of(y, sample_weight) if self._intercept_and_scaling()[0] else 0.0
        return [y - self._offset]

    def _assign(self, coefs: np.ndarray, intercepts: np.ndarray) -> None:
        self.coef_, self.intercept_ = coefs[0], float(intercepts[0]) + self._offset

    def predict(self, X: Any) -> np.ndarray:
        """The predicted targets.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self._scores(X)

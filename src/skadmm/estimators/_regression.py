"""Regression: one target of numbers, centred where there is an intercept and the loss allows it."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import RegressorMixin

from skadmm.backends import is_dask
from skadmm.estimators import _losses
from skadmm.estimators._base import StructuredModel
from skadmm.estimators._large import mean_of


class Regression(RegressorMixin, StructuredModel):
    """What the estimators of numbers share."""

    def _checked_loss(self) -> Any:
        return _losses.checked_loss(self.loss, labels=False)

    def _read(self, X: Any, y: Any, sample_weight: Any, **checks: Any) -> tuple[Any, Any, np.ndarray | None]:
        return self._table(X, y, sample_weight, y_numeric=True, **checks)

    def _targets(self, y: Any, sample_weight: np.ndarray | None) -> list[np.ndarray]:
        y = y if is_dask(y) else np.asarray(y, dtype=np.float64)
        # Centred targets start the intercept at their mean: a constant target then leaves nothing to fit.
        centred = self._intercept_and_scaling()[0] and _losses.depends_on_residual(self._checked_loss())
        self._offset = mean_of(y, sample_weight) if centred else 0.0
        return [y - self._offset]

    def _assign(self, coefs: np.ndarray, intercepts: np.ndarray) -> None:
        self.coef_, self.intercept_ = coefs[0], float(intercepts[0]) + self._offset

    def _as_scores(self, margins: np.ndarray) -> np.ndarray:
        """Margins of shape (models, rows, problems) as ``_scores`` returns them: one problem, the offset added."""
        return margins[..., 0] + self._offset

    def predict(self, X: Any) -> np.ndarray:
        """The predicted targets: the margins x·coef + intercept, or the mean that the loss defines at them.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        mean = _losses.mean_of(self.loss)
        margins = self._scores(X)
        return margins if mean is None else mean(margins)

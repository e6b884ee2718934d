"""Regression: one target of numbers, centred where there is an intercept and the loss allows it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.base import RegressorMixin
from sklearn.utils.validation import _check_sample_weight, column_or_1d

from skadmm._types import TableLike, Values
from skadmm.backends import is_dask
from skadmm.backends.named_columns import row_weights, stored_target
from skadmm.backends.tables import check_range
from skadmm.estimators import _losses
from skadmm.estimators._base import SeveralOutputs, StructuredModel, known_keywords
from skadmm.estimators._large import mean_of
from skadmm.estimators._large_numbers import MAX_SIZE, refuse_large_numbers


def _check_numbers(y: Any, estimator: str) -> None:
    """Raise where targets are texts, dates or other objects; scikit-learn's message would not name y."""
    if sp.issparse(y):
        raise TypeError(f"y is a sparse array of shape {y.shape}: it takes a dense one, y.toarray()")
    if isinstance(y, np.ndarray):
        kind = y.dtype.kind
    elif is_dask(y) or not (hasattr(y, "dtype") or hasattr(y, "dtypes")):
        return
    else:
        y = np.asarray(y)
        kind = y.dtype.kind
    if kind in "mM":
        raise ValueError(f"y has dtype {y.dtype}: {estimator} takes numbers")
    if kind != "O":
        return
    missing = np.asarray(pd.isna(y)).reshape(len(y), -1).any(axis=1)
    if missing.any():
        count, first = int(missing.sum()), int(missing.argmax())
        raise ValueError(f"y has {count} missing values, the first in row {first}: leave out these rows")
    for value in y.ravel():
        try:
            float(value)
        except (TypeError, ValueError):
            raise ValueError(_not_numbers(value, estimator)) from None


def _not_numbers(value: Any, estimator: str) -> str:
    hint = "; for classes use the estimator with Classifier in place of Regressor in its name"
    return f"y holds {value!r}, which is not a number: {estimator} takes numbers{hint}"


class Regression(RegressorMixin, StructuredModel):
    """The base class of the regressors."""

    def _checked_loss(self) -> Any:
        return _losses.checked_loss(self.loss, labels=False)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = self._takes_several()
        return tags

    def _takes_several(self) -> bool:
        """Return whether y may have several columns."""
        return isinstance(self, SeveralOutputs)

    def _read(self, X: Any, y: Any, sample_weight: Any, **checks: Any) -> tuple[Any, Any, np.ndarray | None]:
        several = {"multi_output": True} if self._takes_several() else {}
        _check_numbers(y, type(self).__name__)
        self._keep_output_names(y)
        X, y, sample_weight = self._table(X, y, sample_weight, y_numeric=True, **(several | checks))
        if getattr(y, "ndim", 1) == 2 and y.shape[1] == 1 and not is_dask(y):
            y = y[:, 0]
        if not is_dask(y):
            if np.asarray(y).dtype.kind not in "fiub":
                raise ValueError(_not_numbers(np.ravel(y)[0].item(), type(self).__name__))
            check_range(np.asarray(y), self._checked_loss(), "y")
            numbers = np.asarray(y, dtype=np.float64)
            if not np.vdot(numbers, numbers) < MAX_SIZE**2:
                refuse_large_numbers(numbers, what="y")
        return X, y, sample_weight

    def _keep_output_names(self, y: Any) -> None:
        """``output_names_``, the names of the columns of y; no such attribute where it has one column or no names."""
        columns = getattr(y, "column_names", getattr(y, "columns", ()))  # those of pyarrow, or of other tables
        names = [str(name) for name in columns]
        self.__dict__.pop("output_names_", None)
        unnamed = names == [str(k) for k in range(len(names))]
        if len(names) > 1 and len(set(names)) == len(names) and not unnamed:
            self.output_names_ = names

    def _targets(self, y: Any, sample_weight: np.ndarray | None) -> list[np.ndarray]:
        y = y if is_dask(y) else np.asarray(y, dtype=np.float64)
        # Targets are centred, so that the intercept starts at their mean and a constant target is fitted exactly.
        centred = self._intercept_and_scaling()[0] and self._checked_loss().residual
        self._offset: Any = 0.0
        if centred and not is_dask(y) and y.ndim == 2:
            self._offset = np.average(y, axis=0, weights=sample_weight)
        elif centred:
            self._offset = mean_of(y, sample_weight)
        return [y - self._offset]

    def _assign(self, coefs: np.ndarray, intercepts: np.ndarray) -> None:
        if len(coefs) == 1:
            self.coef_, self.intercept_ = coefs[0], float(intercepts[0]) + self._offset
        else:
            self.coef_, self.intercept_ = coefs, intercepts + self._offset

    def _as_scores(self, margins: np.ndarray) -> np.ndarray:
        """Margins of shape (models, rows, outputs) as ``_scores`` returns them, the offset added."""
        return (margins[..., 0] if margins.shape[2] == 1 else margins) + self._offset

    @known_keywords
    def predict(self, X: TableLike, offset: Values | None = None) -> np.ndarray:
        """The predicted targets: the margins x·coef + intercept, or the mean that the loss defines at them.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (n_samples, n_features)
        offset : array of shape (n_samples,) or (n_samples, n_outputs), number, or names of columns of a table, optional
            Added to the margins, as in :meth:`fit`; names are those of columns of a table on disk. A model that was
            fitted with an offset warns where it gets none here; 0.0 says that none is meant.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
        """
        mean = _losses.mean_of(self.loss)
        margins = self._scores(X)
        offset = self._offset_or_zero(offset, "predict")
        if offset is not None:
            outputs = 1 if margins.ndim == 1 else margins.shape[1]
            numbers = _losses.prediction_offset(X, offset, margins.shape[0], outputs)
            margins = margins if numbers is None else margins + numbers
        return margins if mean is None else mean(margins)

    @known_keywords
    def score(
        self, X: TableLike, y: Values | None, sample_weight: Values | None = None, offset: Values | None = None
    ) -> float:
        """D², the share of the deviance explained, under the loss of the model; R² for the squared loss. With several
        outputs it is the mean of theirs.

        1 − Σ ℓ(model) / Σ ℓ(constant), where the constant is the best one for these targets: their mean for the
        squared, Poisson, gamma and Tweedie losses, their quantile for the quantile loss. It is at most 1, and negative
        for a model that is worse than the constant.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (n_samples, n_features), or path of a table
        y : array of shape (n_samples,) or (n_samples, n_outputs), or names of columns of that table
        sample_weight : array of shape (n_samples,), or name of a column, optional
        offset : array of shape (n_samples,) or (n_samples, n_outputs), number, or names of columns of a table, optional
            Added to the margins of the model and to the constant, as in :meth:`predict`.

        Returns
        -------
        float
        """
        loss = self._checked_loss()
        y = stored_target(X, y)
        weight = None if sample_weight is None else row_weights(X, sample_weight, y)
        offset = self._offset_or_zero(offset, "score")
        if loss.gaussian and offset is None:
            return float(super().score(X, y, weight))
        margins = np.asarray(self._scores(X), dtype=np.float64)
        y = np.asarray(y)
        target = np.asarray(y if y.ndim == 2 and margins.ndim == 2 else column_or_1d(y), dtype=np.float64)
        check_range(target, loss, "y")
        if weight is not None:
            weight = _check_sample_weight(weight, target, dtype=np.float64)
        if offset is not None:
            outputs = 1 if target.ndim == 1 else target.shape[1]
            numbers = _losses.prediction_offset(X, offset, target.shape[0], outputs)
            target = _losses.offset_target(loss, target, numbers)
        of, columns = _losses.loss_of(loss, target), target.T if target.ndim == 2 else [target]
        shares = [
            _losses.explained(of, np.ascontiguousarray(b), np.ascontiguousarray(z), weight)
            for b, z in zip(columns, margins.T if target.ndim == 2 else [margins], strict=True)
        ]
        return float(np.mean(shares))

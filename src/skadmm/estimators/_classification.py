"""Classification: two classes as −1 and +1, more of them one against the rest under one shared penalty."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy.special import log_softmax, softmax
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from skadmm._types import TableLike, Values
from skadmm.backends import is_dask
from skadmm.backends.named_columns import computed, row_weights, stored_target
from skadmm.estimators._available import available_where
from skadmm.estimators._base import SeveralOutputs, StructuredModel, known_keywords
from skadmm.estimators._large import LargeTable, classes_of
from skadmm.estimators._losses import checked_loss, class_probabilities, mean_of, prediction_offset
from skadmm.losses import Logistic, Multinomial

MULTI_CLASS = ("ovr", "multinomial")
"""More than two classes: one against the rest, or one model of all."""


def _check_probabilities(estimator: Any) -> None:
    if mean_of(estimator.loss) is None:
        raise AttributeError(
            f"{type(estimator).__name__} has no probabilities with loss={estimator.loss!r}: they need a loss with a "
            "method `mean`, such as 'logistic'"
        )


class SeveralClasses(SeveralOutputs):
    """A family of classifiers that can fit one model to all classes."""

    multi_class: Any
    loss: Any

    def _multi_class(self) -> str:
        if self.multi_class not in MULTI_CLASS:
            raise ValueError(f"multi_class={self.multi_class!r}: it takes one of {', '.join(map(repr, MULTI_CLASS))}")
        if self.multi_class == "multinomial" and not isinstance(checked_loss(self.loss, labels=True), Logistic):
            raise ValueError(f"multi_class='multinomial' takes loss='logistic', not loss={self.loss!r}")
        return str(self.multi_class)


def _check_present(y: Any) -> None:
    """Raise where classes that are texts or objects are missing; scikit-learn's message would not name y."""
    if getattr(y, "ndim", None) != 1 or getattr(y.dtype, "kind", "O") not in "OT" or is_dask(y):
        return
    missing = np.asarray(pd.isna(y))
    if missing.any():
        count, first = int(missing.sum()), int(missing.argmax())
        raise ValueError(f"y has {count} missing classes, the first in row {first}: leave out these rows")
    labels = np.asarray(y)
    if pd.api.types.infer_dtype(labels) not in ("mixed", "mixed-integer"):
        return
    odd = next((label for label in labels if not isinstance(label, str)), None)
    if any(isinstance(label, str) for label in labels):
        raise TypeError(f"y mixes texts with other values such as {odd!r}: it takes classes of one type")


def _check_whole(labels: np.ndarray, estimator: str) -> None:
    """Raise where numbers are no classes because one of them is not whole; scikit-learn's message would not name y."""
    if labels.dtype.kind != "f" or labels.ndim != 1:
        return
    odd = np.flatnonzero(labels != np.floor(labels))
    if odd.size:
        raise ValueError(
            f"y holds {labels[odd[0]]:g}. Unknown label type: continuous: {estimator} takes whole numbers, booleans or "
            "texts as classes; for other numbers use the estimator with Regressor in place of Classifier in its name"
        )


class Classification(ClassifierMixin, StructuredModel):
    """The base class of the classifiers."""

    class_weight: Any

    def _checked_loss(self) -> Any:
        loss = checked_loss(self.loss, labels=True)
        return Multinomial() if self._joint else loss

    def _read(self, X: Any, y: Any, sample_weight: Any, **checks: Any) -> tuple[Any, Any, np.ndarray | None]:
        _check_present(y)
        X, y, sample_weight = self._table(X, y, sample_weight, **checks)
        if isinstance(X, LargeTable):
            self.classes_ = classes_of(y, sample_weight)
            _check_whole(self.classes_, type(self).__name__)
            self._check_classes()
            return X, y, self._class_weighted(y, sample_weight)
        _check_whole(y, type(self).__name__)
        check_classification_targets(y)
        # A row with the weight zero is left out, and so is a class that only occurs in such rows.
        self.classes_ = np.unique(y if sample_weight is None else y[sample_weight > 0])
        self._check_classes()
        return X, y, self._class_weighted(y, sample_weight)

    def _check_classes(self) -> None:
        if self.classes_.size < 2:
            raise ValueError(
                f"y has only one class, {self.classes_.tolist()[0]!r}: {type(self).__name__} takes two or more classes"
            )

    def _class_weighted(self, y: Any, sample_weight: np.ndarray | None) -> np.ndarray | None:
        if self.class_weight is None:
            return sample_weight
        here = computed(y)
        by_class = compute_sample_weight(self.class_weight, here)
        if not np.all(by_class >= 0):
            raise ValueError(f"class_weight={self.class_weight!r}: it takes weights ≥ 0")
        if sample_weight is not None and is_dask(sample_weight):
            return by_class * computed(sample_weight)
        return by_class if sample_weight is None else by_class * sample_weight

    @property
    def _joint(self) -> bool:
        """Return whether one multinomial model is fitted to more than two classes."""
        return self._multi_class() == "multinomial" and self.classes_.size > 2

    def _multi_class(self) -> str:
        """`multi_class`, checked; a family without it fits one model per class."""
        return "ovr"

    def _targets(self, y: Any, sample_weight: np.ndarray | None) -> list[np.ndarray]:
        if self._joint:
            members = np.asarray(y)[:, None] == self.classes_
            members[~members.any(axis=1), 0] = True  # a row of weight zero, on disk, whose class is left out
            return [members.astype(np.float64)]
        positive = self.classes_[1:] if self.classes_.size == 2 else self.classes_
        return [np.where(y == label, 1.0, -1.0) for label in positive]

    def _assign(self, coefs: np.ndarray, intercepts: np.ndarray) -> None:
        # Adding a number to all intercepts of a multinomial model changes nothing, so they are given the mean zero.
        self.coef_, self.intercept_ = coefs, intercepts - intercepts.mean() if self._joint else intercepts

    def _as_scores(self, margins: np.ndarray) -> np.ndarray:
        """Margins of shape (models, rows, problems) as ``_scores`` returns them."""
        return margins

    @known_keywords
    def decision_function(self, X: TableLike, offset: Values | None = None) -> np.ndarray:
        """The margins. With two classes a positive margin means the second class; otherwise each class has a column.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (n_samples, n_features)
        offset : array of shape (n_samples,) or (n_samples, n_outputs), number, or names of columns of a table, optional
            Added to the margins, as in :meth:`fit`; names are those of columns of a table on disk. A model that was
            fitted with an offset warns where it gets none here; 0.0 says that none is meant.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        scores = self._scores(X)
        offset = self._offset_or_zero(offset, "decision_function")
        numbers = None if offset is None else prediction_offset(X, offset, *scores.shape, classes=True)
        if numbers is not None:
            scores = scores + (numbers if numbers.ndim == 2 else numbers[:, None])
        return scores[:, 0] if scores.shape[1] == 1 else scores

    @known_keywords
    def predict(self, X: TableLike, offset: Values | None = None) -> np.ndarray:
        """The predicted classes.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (n_samples, n_features)
        offset : array of shape (n_samples,) or (n_samples, n_outputs), number, or names of columns of a table, optional
            Added to the margins, as in :meth:`fit`; names are those of columns of a table on disk. A model that was
            fitted with an offset warns where it gets none here; 0.0 says that none is meant.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        scores = self.decision_function(X, self._offset_or_zero(offset, "predict"))
        index = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[index]

    @known_keywords
    def score(
        self, X: TableLike, y: Values | None, sample_weight: Values | None = None, offset: Values | None = None
    ) -> float:
        """The accuracy: the share of rows whose predicted class is right.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (n_samples, n_features), or path of a table
        y : array of shape (n_samples,), or name of a column of that table
        sample_weight : array of shape (n_samples,), or name of a column, optional
        offset : array of shape (n_samples,) or (n_samples, n_outputs), number, or names of columns of a table, optional
            Added to the margins, as in :meth:`fit`; names are those of columns of a table on disk. A model that was
            fitted with an offset warns where it gets none here; 0.0 says that none is meant.

        Returns
        -------
        float
        """
        y = stored_target(X, y)
        _check_present(y)
        weight = None if sample_weight is None else row_weights(X, sample_weight, y)
        offset = self._offset_or_zero(offset, "score")
        if offset is None:
            return float(super().score(X, y, weight))
        return float(accuracy_score(y, self.predict(X, offset), sample_weight=weight))

    @available_where(_check_probabilities)
    @known_keywords
    def predict_proba(self, X: TableLike, offset: Values | None = None) -> np.ndarray:
        """The probability of each class. With one model per class the probabilities are scaled to add up to one.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (n_samples, n_features)
        offset : array of shape (n_samples,) or (n_samples, n_outputs), number, or names of columns of a table, optional
            Added to the margins, as in :meth:`fit`; names are those of columns of a table on disk. A model that was
            fitted with an offset warns where it gets none here; 0.0 says that none is meant.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        probability: Any = mean_of(self.loss)
        scores = self.decision_function(X, self._offset_or_zero(offset, "predict_proba"))
        if scores.ndim == 1:
            return class_probabilities(self.loss, scores)
        if self._joint:
            return np.asarray(softmax(scores, axis=1))
        shares = probability(scores)
        total = shares.sum(axis=1, keepdims=True)
        return np.where(total > 0, shares / np.where(total > 0, total, 1.0), 1.0 / scores.shape[1])

    @available_where(_check_probabilities)
    @known_keywords
    def predict_log_proba(self, X: TableLike, offset: Values | None = None) -> np.ndarray:
        """The logarithm of :meth:`predict_proba`.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (n_samples, n_features)
        offset : array of shape (n_samples,) or (n_samples, n_outputs), number, or names of columns of a table, optional
            Added to the margins, as in :meth:`fit`; names are those of columns of a table on disk. A model that was
            fitted with an offset warns where it gets none here; 0.0 says that none is meant.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        check_is_fitted(self)
        offset = self._offset_or_zero(offset, "predict_log_proba")
        if self._joint:
            return np.asarray(log_softmax(self.decision_function(X, offset), axis=1))
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X, offset))

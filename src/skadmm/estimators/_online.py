"""partial_fit: one pass of an online method over each batch."""

from __future__ import annotations

import reprlib
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.multiclass import check_classification_targets

from skadmm._types import TableLike, Values
from skadmm.backends import as_rows
from skadmm.estimators._available import available_where
from skadmm.estimators._base import StructuredModel, known_keywords
from skadmm.estimators._classification import Classification, SeveralClasses
from skadmm.estimators._large import refuse_large
from skadmm.estimators._large_numbers import refuse_large_numbers
from skadmm.estimators._prepared import Prepared
from skadmm.estimators._regression import Regression
from skadmm.problem.problem import Problem, on_samples
from skadmm.run.result import Result
from skadmm.run.solve import solve

ONE_PASS = "opg-admm"
"""The method of partial_fit, which keeps only x, y and the dual from one batch to the next."""
FEW = 50
"""With fewer samples than this in the first batch, the step size is that of the theory and is not selected by trial."""


ONLY_FIT = {
    "positive": False, "bounds": None, "monotone": None, "adaptive": False, "relax": False,
    "categorical_features": None,
}  # fmt: skip
"""Options that need exact constraints or all the data, and the values with which partial_fit is available."""


def _check_batches(estimator: Any) -> None:
    """Raise where a parameter excludes partial_fit."""
    refused = f"{type(estimator).__name__} has no attribute 'partial_fit' with"
    for name, allowed in ONLY_FIT.items():
        value = getattr(estimator, name, None)
        if value is not None and value is not False:
            raise AttributeError(
                f"{refused} {name}={reprlib.repr(value)}: partial_fit is approximate and takes {name}={allowed}; fit "
                "takes this option"
            )
    if isinstance(estimator, SeveralClasses) and estimator.multi_class == "multinomial":
        raise AttributeError(
            f"{refused} multi_class='multinomial': partial_fit fits one model per class and takes multi_class='ovr'; "
            "fit takes this option"
        )


class _Going(StructuredModel):
    """The part of partial_fit that classification and regression share."""

    _online: tuple[Prepared, list[Result], list[float]]
    """The state between batches: penalty and scale of the first batch, a result and a step size for each problem."""

    def _one_pass(self, X: Any, y: Any, sample_weight: np.ndarray | None) -> None:
        if self.with_offset_:
            raise ValueError(
                f"this {type(self).__name__} was fitted with an offset, which partial_fit does not take: use fit, or "
                "partial_fit on a clone"
            )
        targets = self._targets(y, sample_weight)
        if targets[0].ndim == 2:
            raise ValueError(f"y has {targets[0].shape[1]} columns: partial_fit takes one; fit takes several")
        if hasattr(self, "_online"):
            prepared, results, steps = self._online
            refuse_large_numbers(X, self._column_names())  # those of the first batch are checked with its scale
            prepared = prepared._replace(design=prepared.design.on(X))
            starts: list[dict[str, Any]] = [
                {"warm_start": result, "step": step} for result, step in zip(results, steps, strict=True)
            ]
        else:
            prepared = self._prepare(X, sample_weight)
            starts = [{"step": "auto" if X.shape[0] >= FEW else "theory"} for _ in targets]
            if hasattr(self, "coef_"):
                rows, numbers = np.atleast_2d(self.coef_), np.atleast_1d(self.intercept_)
                for start, row, number in zip(starts, rows, numbers, strict=True):
                    start["x0"] = prepared.design.scaled(row, float(number) - getattr(self, "_offset", 0.0))
        results = []
        for target, start in zip(targets, starts, strict=True):
            problem = _batch_problem(prepared, target, sample_weight, float(self.alpha))
            results.append(
                solve(problem, ONE_PASS, passes=1, sampler="permutation", record_every=0, random_state=self._seed(),
                      **start)
            )  # fmt: skip
        steps = [result.settings["step"] for result in results]
        rounds = getattr(self, "n_iter_", 0) if hasattr(self, "_online") else 0
        bare = prepared._replace(design=prepared.design._replace(X=None), sample_weight=None)
        self._online = (bare, results, steps)
        self._take(prepared, results)
        self.__dict__.pop("n_samples_fit_", None)  # it is that of one batch
        if prepared.penalty.groups is None:
            # After one pass x is fused only approximately; y is fused exactly.
            tied = [result.y == 0 if result.y.size else None for result in results]
            self._structure(prepared, results, self._parts(prepared, results), tied)
        self.n_iter_ = int(np.max(rounds)) + 1


class OnlineRegression(Regression, _Going):
    """Regression that also learns batch by batch."""

    @available_where(_check_batches)
    @known_keywords
    def partial_fit(self, X: TableLike, y: Values | None, sample_weight: Values | None = None) -> Self:
        """One pass of opg-admm over a batch, starting from the current model.

        The graph, the scale of the columns and the step are those of the first batch. The result is approximate:
        without all the data there is no duality gap.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,), optional

        Returns
        -------
        self
        """
        self._check_parameters()
        fresh = not (hasattr(self, "_online") or hasattr(self, "coef_"))
        refuse_large(X, "partial_fit")
        X, y, sample_weight = self._read(X, y, sample_weight, reset=fresh, ensure_min_samples=1)
        self._one_pass(X, y, sample_weight)
        return self

    def _targets(self, y: Any, sample_weight: np.ndarray | None) -> list[np.ndarray]:
        if hasattr(self, "_online"):  # the mean of the first batch is used for all batches
            return [np.asarray(y, dtype=np.float64) - self._offset]
        return super()._targets(y, sample_weight)


class OnlineClassification(Classification, _Going):
    """Classification that also learns batch by batch."""

    @available_where(_check_batches)
    @known_keywords
    def partial_fit(
        self, X: TableLike, y: Values | None, classes: ArrayLike | None = None, sample_weight: Values | None = None
    ) -> Self:
        """One pass of opg-admm over a batch, starting from the current model.

        The graph, the scale of the columns and the step are those of the first batch. The result is approximate:
        without all the data there is no duality gap.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        classes : array, optional
            All classes that will occur; needed in the first call, unless the model was fitted before.
        sample_weight : array of shape (n_samples,), optional

        Returns
        -------
        self
        """
        self._check_parameters()
        fresh = not (hasattr(self, "_online") or hasattr(self, "coef_"))
        refuse_large(X, "partial_fit")
        X, y, sample_weight = self._table(X, y, sample_weight, reset=fresh, ensure_min_samples=1)
        check_classification_targets(y)
        if fresh:
            if classes is None:
                raise ValueError(
                    "classes=None: classes must be given in the first call of partial_fit, all that occur, such as "
                    f"classes={np.unique(np.asarray(y)).tolist()}"
                )
            self.classes_ = np.unique(classes)
            if self.classes_.size < 2:
                raise ValueError(f"classes={classes!r} holds only one class: it takes two or more")
        elif classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise ValueError(f"classes={classes!r} is not the same as in the first call, {self.classes_.tolist()}")
        strange = np.setdiff1d(np.asarray(y), self.classes_)
        if strange.size:
            raise ValueError(f"y holds {strange.tolist()[0]!r}, which is not among classes, {self.classes_.tolist()}")
        if isinstance(self.class_weight, str):
            raise ValueError(
                f"class_weight={self.class_weight!r} needs all the data: for partial_fit it takes None or a dict"
            )
        self._one_pass(X, y, self._class_weighted(y, sample_weight))
        return self


def _batch_problem(prepared: Prepared, target: np.ndarray, sample_weight: np.ndarray | None, alpha: float) -> Problem:
    """The problem of one batch, in which some of the classes may be missing."""
    empty = np.zeros((2, prepared.design.width))
    blank = prepared._replace(design=prepared.design._replace(X=empty), sample_weight=None)
    rows, _ = as_rows(prepared.design.X)
    any_targets = np.array([-1.0, 1.0]) if prepared.loss.labels else np.ones(2)  # these are in the range of every loss
    return on_samples(blank.problem(any_targets, alpha), rows, target, sample_weight)

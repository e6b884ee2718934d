"""Choosing alpha: a warm-started path in every fold, or an information criterion on one path."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.model_selection import check_cv
from sklearn.utils.parallel import Parallel, delayed

from skadmm import _checks
from skadmm.backends import as_rows
from skadmm.estimators import _splitters  # noqa: F401  registers how they are stored
from skadmm.estimators._base import Prepared, StructuredModel
from skadmm.estimators._callbacks import Tasks, with_callbacks
from skadmm.estimators._design import assembled, spread
from skadmm.estimators._large import refuse_large
from skadmm.estimators._progress import Counter
from skadmm.losses import deviance
from skadmm.problem.problem import on_samples
from skadmm.run.follow import reached
from skadmm.run.path import Path, alpha_grid, alpha_max, checked_alphas, path
from skadmm.solvers import SOLVERS

SELECTIONS = ("min", "1se", "aic", "bic")


class CrossValidated(StructuredModel):
    """Fits a decreasing grid of alphas in every fold, chooses one, and fits all the data with it."""

    alphas: Any
    eps: Any
    cv: Any
    selection: Any
    n_jobs: Any

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Choose alpha, and fit the model with it.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,), optional
            A weight k means the same as k copies of the row, in the fit and in the held-out loss.

        Returns
        -------
        self
        """
        self._check_parameters()
        if self.selection not in SELECTIONS:
            raise ValueError(f"selection={self.selection!r}: it takes one of {', '.join(map(repr, SELECTIONS))}")
        refuse_large(X, "cross-validation")
        X, y, sample_weight = self._read(X, y, sample_weight)
        for name in ("criterion_", "cv_losses_", "cv_mean_", "cv_se_"):  # of an earlier fit with another selection
            self.__dict__.pop(name, None)
        prepared = self._prepare(X, sample_weight)
        targets = self._targets(y, sample_weight)
        self.alphas_ = self._grid(prepared, targets)
        if self.selection in ("aic", "bic"):
            chosen = self._by_criterion(prepared, targets, X, y)
        else:
            chosen = self._by_folds(prepared, targets, X, y, sample_weight)
        results = [self._solve(prepared, target, float(self.alphas_[chosen]), None) for target in targets]
        self.alpha_ = float(self.alphas_[chosen])
        self._take(prepared, results)
        self._warn_if_short(results)
        return self

    def _grid(self, prepared: Prepared, targets: list[np.ndarray]) -> np.ndarray:
        if not isinstance(self.alphas, (int, np.integer)) or isinstance(self.alphas, bool):
            return checked_alphas(self.alphas)
        count = _checks.count(self.alphas, "alphas")
        if prepared.penalty.A.shape[0] == 0:
            return np.ones(1)
        top = max(self._alpha_max(prepared, target) for target in targets)
        return alpha_grid(top, count, self.eps)

    def _by_criterion(self, prepared: Prepared, targets: list[np.ndarray], X: Any, y: Any) -> int:
        tasks = Tasks(self, len(targets), X, y)
        self.criterion_ = np.zeros(self.alphas_.size)
        with Counter("path", len(targets) * self.alphas_.size, self.verbose) as counter:
            for target in targets:
                with tasks.task("path"):
                    answer = self._path(prepared, target, self.alphas_, lambda *_: counter.step())
                self.criterion_ += getattr(answer, self.selection)
        tasks.close()
        return int(np.argmin(self.criterion_))

    def _by_folds(
        self, prepared: Prepared, targets: list[np.ndarray], X: Any, y: Any, sample_weight: np.ndarray | None
    ) -> int:
        # Threads must not draw from one generator: the order of their draws would change from fit to fit.
        folds = [(train, test, _own(prepared.random_state)) for train, test in self._splitter(y).split(X, y)]
        tasks = Tasks(self, len(folds), X, y)

        def one(train: np.ndarray, test: np.ndarray, state: Any, counter: Counter) -> np.ndarray:
            weight = None if sample_weight is None else sample_weight[train]
            held_weight = None if sample_weight is None else sample_weight[test]
            fold, held_out = self._fold(prepared._replace(random_state=state), X[train], X[test], weight)
            rows, _ = as_rows(held_out)
            total = np.zeros(self.alphas_.size)
            for target in targets:
                answer = self._path(fold, target[train], self.alphas_, lambda *_: counter.step(), certify=False)
                held = on_samples(fold.problem(target[train], 1.0), rows, target[test], held_weight)
                total += [held.loss_value(x) for x in answer.x]
            return total

        with Counter("folds × alphas", len(folds) * len(targets) * self.alphas_.size, self.verbose) as counter:
            if self.n_jobs in (None, 1):
                losses = []
                for fold in folds:
                    with tasks.task("fold"):
                        losses.append(one(*fold, counter))
            else:
                # Threads: the compiled work lets go of the interpreter's lock, and the data need no copies.
                losses = Parallel(n_jobs=self.n_jobs, prefer="threads")(delayed(one)(*fold, counter) for fold in folds)
        tasks.close()
        self.cv_losses_ = np.array(losses).T
        self.cv_mean_ = self.cv_losses_.mean(axis=1)
        self.cv_se_ = self.cv_losses_.std(axis=1, ddof=1) / np.sqrt(len(folds)) if len(folds) > 1 else 0 * self.cv_mean_
        best = int(np.argmin(self.cv_mean_))
        if self.selection == "min":
            return best
        # The strongest penalty whose loss is within one standard error of the smallest.
        return int(np.flatnonzero(self.cv_mean_ <= self.cv_mean_[best] + self.cv_se_[best])[0])

    def _splitter(self, y: Any) -> Any:
        return check_cv(self.cv, y, classifier=is_classifier(self))

    def _trend(self, prepared: Prepared) -> Any:
        """What the penalty matrix, with its columns for the intercept, is known to be."""
        return None

    def _alpha_max(self, prepared: Prepared, target: np.ndarray) -> float:
        return alpha_max(prepared.problem(target, 1.0), self._trend(prepared))

    def _path(
        self, prepared: Prepared, target: np.ndarray, alphas: np.ndarray, callback: Any, *, certify: bool = True
    ) -> Path:
        if prepared.penalty.A.shape[0] == 0:  # nothing to penalise: one answer for every alpha
            result = self._solve(prepared, target, 0.0, None)
            same = np.ones(alphas.size)
            loss, dof = result.objective, result.x.size
            if prepared.ridge > 0:
                part = result.x[: prepared.design.scale.size]
                loss -= 0.5 * prepared.ridge * float(part @ part)
            return Path(
                alphas, np.outer(same, result.x), loss * same, (dof * same).astype(int), reached(result) * same,
                [str(result.status)] * alphas.size, target.size, deviance(prepared.loss, loss, target.size) * same,
            )  # fmt: skip
        stochastic = self.method not in ("auto", "san-admm", *SOLVERS)
        options = {"random_state": prepared.random_state} if stochastic else {}
        return path(
            prepared.problem(target, 1.0), alphas, tol=float(self.tol), passes=float(self.max_passes),
            method=self.method, callback=callback, certify=certify, dof=certify, **options,
        )  # fmt: skip

    def _fold(self, prepared: Prepared, part: Any, test: Any, weight: np.ndarray | None) -> tuple[Prepared, Any]:
        """A fold's own table and penalty, and the held-out rows on the same scale."""
        scale = spread(part, weight) if self._intercept_and_scaling()[1] else prepared.design.scale
        intercept = prepared.design.intercept
        penalty = prepared.penalty
        if isinstance(getattr(self, "graph", None), str):  # learnt from the rows, so every fold learns its own
            penalty = self._penalty(part, getattr(self, "feature_names_in_", None))
        fold = prepared._replace(design=assembled(part, scale, intercept), penalty=penalty, sample_weight=weight)
        return fold, assembled(test, scale, intercept).X


def _own(random_state: Any) -> Any:
    """A generator of its own drawn from `random_state`; a seed stays as it is."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31))
    if isinstance(random_state, np.random.Generator):
        return np.random.default_rng(random_state.integers(2**63))
    return random_state

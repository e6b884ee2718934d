"""Choosing alpha and l1_ratio: a warm-started path in every fold, or an information criterion on one path."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from sklearn.base import is_classifier
from sklearn.model_selection import check_cv
from sklearn.utils.parallel import Parallel, delayed

from skadmm import _checks
from skadmm._types import TableLike, Values
from skadmm.backends import as_rows
from skadmm.estimators import _splitters  # noqa: F401  registers how they are stored
from skadmm.estimators._base import StructuredModel
from skadmm.estimators._callbacks import Tasks, with_callbacks
from skadmm.estimators._checkpoint import NoCheckpoint, search_checkpoint
from skadmm.estimators._design import build_design
from skadmm.estimators._large import LargeTable, large_design, products, table_scores
from skadmm.estimators._prepared import Prepared
from skadmm.estimators._progress import Counter
from skadmm.estimators._search import (
    Judge,
    Split,
    at_ratio,
    check_classes,
    check_search,
    given_weights,
    masked,
    ratios_of,
    routed,
    routing,
    splits,
)
from skadmm.losses import deviance
from skadmm.problem.problem import on_samples
from skadmm.run.checkpoint import Keeper
from skadmm.run.follow import reached
from skadmm.run.path import Path, alpha_grid, alpha_max, checked_alphas, path
from skadmm.solvers import SOLVERS

if TYPE_CHECKING:
    from sklearn.utils.metadata_routing import MetadataRouter

OF_A_SEARCH = (
    "alphas_", "alpha_", "criterion_", "cv_losses_", "cv_scores_", "cv_mean_", "cv_se_", "l1_ratio_", "path_",
    "coefs_path_", "coef_", "intercept_", "result_", "n_iter_", "dof_", "clusters_", "n_clusters_", "active_groups_",
    "penalized_coef_", "standard_errors_", "latent_coef_", "n_samples_fit_",
)  # fmt: skip
"""Fitted attributes that a fit with other parameters may not set again."""


class Candidate(NamedTuple):
    """The model with one `l1_ratio`, and its grid."""

    model: Any
    prepared: Prepared
    alphas: np.ndarray


class Table(NamedTuple):
    """The samples of a search."""

    X: Any
    y: np.ndarray
    """The targets as given, in this process."""
    targets: list[Any]
    sample_weight: np.ndarray | None
    offset: np.ndarray | None = None
    """The offsets of the rows, which are part of the targets in fits and not part of held-out margins."""


class Tracking(NamedTuple):
    """What follows the course of a path."""

    counter: Counter
    keeper: Keeper | None = None
    """Stores the path while it runs."""
    dof: Callable[[Any], float] | None = None
    """Counts degrees of freedom in another way."""


class CrossValidated(StructuredModel):
    """Fits a decreasing grid of alphas in every fold, chooses one, and fits all the data with it."""

    alphas: Any
    eps: Any
    cv: Any
    selection: Any
    scoring: Any
    refit: Any
    n_jobs: Any
    checkpoint: Any

    @with_callbacks
    def fit(
        self,
        X: TableLike,
        y: Values | None = None,
        sample_weight: Values | None = None,
        offset: Values | None = None,
        drop: str | Sequence[str] | None = None,
        **params: Any,
    ) -> Self:
        """Choose alpha (and l1_ratio, where it is a list), and fit the model with it.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (n_samples, n_features), path, LazyFrame or Dask collection
            A path is that of a folder of blocks, of a Parquet, CSV, svmlight or npy file, or of a folder of Parquet
            files, which stay on disk; an npz file is read into memory.
        y : array of shape (n_samples,) or (n_samples, n_outputs), str, or list of str
            Names of columns where X is a path or a LazyFrame; None then means the last column, or the targets of the
            folder of blocks.
        sample_weight : array of shape (n_samples,), or str, optional
            A weight k means the same as k copies of the row, in the fit and in the held-out loss.
        offset : array of shape (n_samples,) or (n_samples, n_outputs), str, or list of str, optional
            Known numbers that are added to the margins x·coef + intercept: for counts under exposure, its logarithm.
        drop : str or list of str, optional
            Columns of a table on disk that are not features, such as identifiers or dates. Of tables on disk, `predict`
            and `score` ignore columns that the model was not fitted on, so that they need no such list. Of a DataFrame
            in memory, whose other columns they refuse, give ``X.drop(columns=...)``, there too.
        **params : groups, or other metadata
            ``groups`` goes to the splitter `cv`, such as GroupKFold. With
            ``sklearn.set_config(enable_metadata_routing=True)`` metadata go where they were requested.

        Returns
        -------
        self
        """
        self._check_parameters()
        check_search(self)
        metadata, judge = routed(self, sample_weight, params)
        given, y, weight, offset = self._rows(X, y, sample_weight, offset, drop)
        X, y, sample_weight = self._read(given, y, weight)
        judge = judge.weighing(given_weights(X, given, weight, sample_weight))
        targets = self._offset_targets(X, self._targets(y, sample_weight), offset)
        offset = None if offset is None else self._output_offset(X, targets, offset)
        table = Table(X, np.asarray(y), targets, sample_weight, offset)
        candidates = self._candidates(table)
        by_criterion = self.selection in ("aic", "bic")
        state = candidates[0].prepared.random_state
        folds = [] if by_criterion else list(splits(self._splitter(table.y), X, table.y, metadata, state))
        if is_classifier(self) and not (judge.scorer is not None and candidates[0].prepared.loss.coupled):
            check_classes(self, table.y, sample_weight, folds)
        for name in OF_A_SEARCH:  # only here: where data are refused, the earlier fit is kept
            self.__dict__.pop(name, None)
        first = partial(candidates[0].prepared.problem, targets[0], 1.0)
        with search_checkpoint(self, first, targets, folds) as kept:
            grids = kept.grids([candidate.alphas for candidate in candidates])
            candidates = [one._replace(alphas=grid) for one, grid in zip(candidates, grids, strict=True)]
            self._choose(candidates, table, folds, judge, kept)
        return self

    def _choose(
        self, candidates: list[Candidate], table: Table, folds: list[Split], judge: Judge, kept: NoCheckpoint
    ) -> None:
        """Choose alpha and l1_ratio among the candidates, and fit the model with them."""
        several = ratios_of(self)[1]
        if self.selection in ("aic", "bic"):
            scores, paths = self._by_criterion(candidates, table, kept)
            best = chosen = int(scores.argmin())
            self.criterion_ = scores if several else scores[0]
        else:
            best, chosen = self._by_folds(candidates, table, folds, judge, kept)
            paths = [[] for _ in candidates]
        row, column = divmod(chosen, candidates[0].alphas.size)
        grids = np.array([candidate.alphas for candidate in candidates])
        self.alphas_, self.alpha_ = grids if several else grids[0], float(grids[row, column])
        if several:
            self.l1_ratio_ = float(candidates[row].model.l1_ratio)
        self._warn_at_end(candidates[row], best % grids.shape[1], table)
        if self.refit:
            self._refit(candidates[row], column, table, paths[row], kept)

    # -- the search --------------------------------------------------------------------------------------------

    def _candidates(self, table: Table) -> list[Candidate]:
        """The model at each `l1_ratio`, with its penalty and its grid."""
        candidates: list[Candidate] = []
        for ratio in ratios_of(self)[0]:
            # Methods of this class on a copy of the model: they find its l1_ratio, and what its family defines.
            first = candidates[0].prepared if candidates else None
            candidates.append(CrossValidated._candidate(at_ratio(self, ratio), table, first))
        for name in ("graph_", "groups_", "group_names_", "adaptive_weights_"):
            value = vars(candidates[0].model).get(name)
            self.__dict__.pop(name, None)
            if value is not None:
                setattr(self, name, value)
        return candidates

    def _candidate(self, table: Table, first: Prepared | None) -> Candidate:
        """This model with its penalty and its grid; `first` is another candidate, whose table it shares."""
        if first is None:
            prepared = self._prepare(table.X, table.sample_weight)
        else:
            prepared = first._replace(penalty=self._penalty(table.X, self._column_names()), plain=None)
        prepared = self._adapted(prepared, table.targets)
        return Candidate(self, prepared, self._grid(prepared, table.targets))

    def _grid(self, prepared: Prepared, targets: list[Any]) -> np.ndarray:
        if not isinstance(self.alphas, (int, np.integer)) or isinstance(self.alphas, bool):
            if np.ndim(self.alphas) != 1:
                raise ValueError(
                    f"alphas={self.alphas!r}: it takes the number of alphas, an integer ≥ 1, or a sequence of them"
                )
            return checked_alphas(self.alphas)
        count = _checks.count(self.alphas, "alphas")
        if prepared.penalty.A.shape[0] == 0:
            return np.ones(1)
        top = max(self._alpha_max(prepared, target) for target in targets)
        return alpha_grid(top, count, self.eps)

    def _by_criterion(
        self, candidates: list[Candidate], table: Table, kept: NoCheckpoint
    ) -> tuple[np.ndarray, list[list[Path]]]:
        """AIC or BIC by l1_ratio and alpha, and the paths."""
        count = sum(candidate.alphas.size for candidate in candidates) * len(table.targets)
        tasks = Tasks(self, len(candidates) * len(table.targets), table.X, table.y)
        scores: list[Any] = []
        paths: list[list[Path]] = []
        with Counter("l1_ratios × alphas", count, self.verbose) as counter:
            for number, candidate in enumerate(candidates):
                paths.append([])
                for k, target in enumerate(table.targets):
                    track = Tracking(counter, kept.path(number, "whole", k))
                    with tasks.task("path"):
                        paths[-1].append(
                            CrossValidated._whole_path(candidate.model, candidate, target, track, certify=True)
                        )
                scores.append(sum(getattr(one, self.selection) for one in paths[-1]))
        tasks.close()
        return np.array(scores), paths

    def _by_folds(
        self, candidates: list[Candidate], table: Table, folds: list[Split], judge: Judge, kept: NoCheckpoint
    ) -> tuple[int, int]:
        """The position of the best score in the grid, which has a row for each l1_ratio, and the chosen position."""
        several = len(candidates) > 1 or ratios_of(self)[1]
        jobs = [(c, f) for c in range(len(candidates)) for f in range(len(folds))]
        tasks = Tasks(self, len(jobs), table.X, table.y)
        steps = len(jobs) * len(table.targets) * candidates[0].alphas.size
        with Counter("folds × l1_ratios × alphas", steps, self.verbose) as counter:

            def held_out(c: int, f: int) -> np.ndarray:
                tracks = [Tracking(counter, kept.path(c, f, k)) for k in range(len(table.targets))]
                job = partial(CrossValidated._held_out, candidates[c].model, candidates[c], folds[f])
                return kept.scores(c, f, partial(job, table, judge, tracks))

            if self.n_jobs in (None, 1):
                found = []
                for job in jobs:
                    with tasks.task("fold"):
                        found.append(held_out(*job))
            else:
                # Threads, because compiled code releases the interpreter's lock and the data are shared.
                found = Parallel(n_jobs=self.n_jobs, prefer="threads", max_nbytes="1M")(
                    delayed(held_out)(*job) for job in jobs
                )
                found = [kept.scores(*job, partial(np.asarray, one)) for job, one in zip(jobs, found, strict=True)]
        tasks.close()
        scores = np.array(found).reshape(len(candidates), len(folds), -1).transpose(0, 2, 1)
        mean = scores.mean(axis=2)
        error = scores.std(axis=2, ddof=1) / np.sqrt(len(folds)) if len(folds) > 1 else 0 * mean
        part: Any = slice(None) if several else 0
        setattr(self, "cv_losses_" if judge.scorer is None else "cv_scores_", scores[part])
        self.cv_mean_, self.cv_se_ = mean[part], error[part]
        worse = judge.sign * mean
        if not np.isfinite(worse).any():
            raise ValueError(f"scoring={self.scoring!r}: the scores must be finite, and no alpha has a finite score")
        best = int(np.nanargmin(worse))
        if self.selection == "min":
            return best, best
        # The strongest penalty, for the same l1_ratio, whose score is within one standard error of the best.
        row, column = divmod(best, worse.shape[1])
        within = np.flatnonzero(worse[row] <= worse[row, column] + error[row, column])
        return best, row * worse.shape[1] + int(within[0])

    def _splitter(self, y: Any) -> Any:
        return check_cv(self.cv, y, classifier=is_classifier(self))

    def get_metadata_routing(self) -> MetadataRouter:
        """Where the metadata of :meth:`fit` go; see scikit-learn's guide on metadata routing.

        Returns
        -------
        MetadataRouter
        """
        return routing(self)

    def _warn_at_end(self, candidate: Candidate, best: int, table: Table) -> None:
        """Warn where the best alpha is at an end of the grid, unless a larger one would change nothing."""
        alphas = candidate.alphas
        if alphas.size == 1 or 0 < best < alphas.size - 1:
            return
        given = not isinstance(self.alphas, (int, np.integer))
        if best == 0:
            if not given:  # alpha_max: all larger ones give the same model
                return
            try:
                top = max(self._alpha_max(candidate.prepared, target) for target in table.targets)
            except (ValueError, TypeError):
                top = np.inf
            if alphas[0] >= top:
                return
        end = "largest" if best == 0 else "smallest"
        lower = "give eps, a share of the largest alpha" if self.eps is None else f"lower eps={self.eps:g}"
        advice = f"give {'larger' if best == 0 else 'smaller'} alphas" if given else lower
        warnings.warn(
            f"{type(self).__name__}: the best alpha, {alphas[best]:.3g}, is the {end} of the grid, so a better one may "
            f"lie beyond it: {advice}",
            UserWarning,
            stacklevel=5,
        )

    # -- one fold ------------------------------------------------------------------------------------------------

    def _held_out(
        self, candidate: Candidate, split: Split, table: Table, judge: Judge, tracks: list[Tracking]
    ) -> np.ndarray:
        """The score of every alpha on the rows that one fold holds out; a path for each target has its track."""
        of_fold = self._large_fold if isinstance(table.X, LargeTable) else self._memory_fold
        return of_fold(candidate, split, table, judge, tracks)

    def _memory_fold(
        self, candidate: Candidate, split: Split, table: Table, judge: Judge, tracks: list[Tracking]
    ) -> np.ndarray:
        """Rows in memory: those of the fold are copied."""
        train, test, state = split
        weight, held_weight = (None if table.sample_weight is None else table.sample_weight[rows] for rows in split[:2])
        prepared = candidate.prepared.unadapted()._replace(random_state=state)
        fold = self._fold(prepared, table.X[train], weight)
        fold = CrossValidated._adapted(copy.copy(self), fold, [target[train] for target in table.targets])
        answers = [
            self._path(fold, target[train], candidate.alphas, track, certify=False)
            for target, track in zip(table.targets, tracks, strict=True)
        ]
        losses, margins = np.zeros(candidate.alphas.size), []
        # Only here, because the memory of the fit is free now.
        rows, _ = as_rows(self._held_rows(fold, table, split))
        for target, answer in zip(table.targets, answers, strict=True):
            if judge.scorer is None:
                held = on_samples(fold.problem(target[train], 1.0), rows, target[test].ravel(), held_weight)
                losses += [held.loss_value(x) for x in answer.x]
            else:
                outputs = answer.x.reshape(answer.x.shape[0], -1, rows.shape[1]).transpose(1, 0, 2)
                margins += [[products(rows, x) for x in solutions] for solutions in outputs]
        if judge.scorer is None:
            return losses
        scores = self._as_scores(np.array(margins).transpose(1, 2, 0))
        models = (self._with_margins(_shifted(one, table.offset, test)) for one in scores)
        return judge.scores(models, table.X[test], table.y[test], test)

    def _large_fold(
        self, candidate: Candidate, split: Split, table: Table, judge: Judge, tracks: list[Tracking]
    ) -> np.ndarray:
        """Rows in files or on a cluster: a fold is a vector of weights, and no row is copied."""
        n = table.X.shape[0]
        prepared = candidate.prepared.unadapted()._replace(random_state=split.random_state)
        weight, held_weight = (masked(table.sample_weight, rows, n) for rows in (split.train, split.test))
        fit_intercept, standardize = self._intercept_and_scaling()
        copies = prepared.design.copies
        design = large_design(table.X, weight, fit_intercept=fit_intercept, standardize=standardize, copies=copies)
        penalty = prepared.penalty
        if isinstance(getattr(self, "graph", None), str):  # learnt from the rows, so every fold learns its own
            penalty = self._penalty(table.X.only(split.train), self._column_names())
        fold = prepared._replace(design=design, penalty=penalty, sample_weight=weight)
        held = fold._replace(sample_weight=held_weight)
        fold = CrossValidated._adapted(copy.copy(self), fold, table.targets)
        losses, answers = np.zeros(candidate.alphas.size), []
        for target, track in zip(table.targets, tracks, strict=True):
            answers.append(self._path(fold, target, candidate.alphas, track, certify=False))
            if judge.scorer is None:
                problem = held.problem(target, 1.0)
                losses += [problem.loss_value(x) for x in answers[-1].x]
        if judge.scorer is None:
            return losses
        width = prepared.design.width
        solutions = np.concatenate([answer.x.reshape(len(answer.x), -1, width) for answer in answers], axis=1)
        models = (
            self._with_margins(_shifted(self._large_margins(fold, xs, table)[split.test], table.offset, split.test))
            for xs in solutions
        )
        return judge.scores(models, None, table.y[split.test], split.test)

    def _large_margins(self, prepared: Prepared, xs: np.ndarray, table: Table) -> np.ndarray:
        """The scores of all rows under the solutions `xs`, one for each problem."""
        fitted = CrossValidated._with_solutions(copy.copy(self), prepared, xs)
        return table_scores(fitted, table.X)

    def _with_solutions(self, prepared: Prepared, xs: np.ndarray) -> Any:
        """This model, a copy, with the coefficients of the solutions `xs`."""
        pairs = [prepared.coefficients(x) for x in xs]
        self._assign(np.array([coef for coef, _ in pairs]), np.array([intercept for _, intercept in pairs]))
        return self

    def _with_margins(self, margins: np.ndarray) -> Any:
        """A copy of this model that predicts with these margins of the held-out rows, for scorers."""
        other = copy.copy(self)
        other.held_out_margins = margins
        if getattr(other, "positions_", None) is not None:
            other.positions_ = None  # the margins are those of the signal already
        return other

    # -- the model that is chosen --------------------------------------------------------------------------------

    def _refit(self, candidate: Candidate, chosen: int, table: Table, paths: list[Path], kept: NoCheckpoint) -> None:
        """The path over all the data, and the certified model at the chosen alpha."""
        prepared, model = candidate.prepared, candidate.model
        if not paths:
            steps = len(table.targets) * candidate.alphas.size
            number = 0 if ratios_of(self)[0] == [None] else ratios_of(self)[0].index(model.l1_ratio)
            with Counter("path", steps, self.verbose) as counter:
                tracks = [Tracking(counter, kept.path(number, "whole", k)) for k in range(len(table.targets))]
                paths = [
                    CrossValidated._whole_path(model, candidate, target, track, certify=False)
                    for target, track in zip(table.targets, tracks, strict=True)
                ]
        self.path_ = paths[0] if len(paths) == 1 else paths
        solutions = [np.asarray(one.x).reshape(len(one.x), -1, prepared.design.width) for one in paths]
        every = np.concatenate(solutions, axis=1)
        coefs = np.array([[prepared.coefficients(x)[0] for x in xs] for xs in every])
        self.coefs_path_ = coefs[:, 0] if coefs.shape[1] == 1 else coefs
        results = []
        for target, one in zip(table.targets, paths, strict=True):
            start = {"x0": one.x[chosen]} if self.method in ("auto", "san-admm", *SOLVERS) else {}
            results.append(self._solve(prepared, target, float(candidate.alphas[chosen]), None, **start))
        self._take(prepared, results)
        self._warn_if_short(results, stacklevel=6)
        self._warn_if_short(self._relax(prepared, table.targets, results), stacklevel=6, relaxed=True)

    def _whole_path(self, candidate: Candidate, target: Any, track: Tracking, *, certify: bool) -> Path:
        """The path of one target over all the data."""
        return self._path(candidate.prepared, target, candidate.alphas, track, certify=certify)

    def _scores(self, X: Any) -> np.ndarray:
        known = self.__dict__.get("held_out_margins")
        if known is not None:
            return known
        _checks.coefficients(self)
        return super()._scores(X)

    def _check_storable(self) -> None:
        super()._check_storable()
        if hasattr(self, "alphas_") and not hasattr(self, "coef_"):
            raise ValueError("refit=False: the model has no coefficients to store")

    # -- paths ---------------------------------------------------------------------------------------------------

    def _trend(self, prepared: Prepared) -> Any:
        """What the penalty matrix, with its columns for the intercept, is known to be."""
        return None

    def _alpha_max(self, prepared: Prepared, target: np.ndarray) -> float:
        # Computed without the limits: it is at least as large as with them where the null model is within them.
        problem = prepared._replace(limits=None).problem(target, 1.0)
        return alpha_max(problem, self._trend(prepared), x0=prepared.path_start(problem, target))

    def _path(
        self, prepared: Prepared, target: np.ndarray, alphas: np.ndarray, track: Tracking, *, certify: bool = True
    ) -> Path:
        if prepared.penalty.A.shape[0] == 0:  # there is no penalty, so every alpha has the same solution
            result = self._solve(prepared, target, 0.0, None)
            same = np.ones(alphas.size)
            loss, dof = result.objective, result.x.size
            if prepared.ridge > 0:
                part = result.x[: prepared.design.scale.size]
                loss -= 0.5 * prepared.ridge * float(part @ part)
            n = prepared.design.X.shape[0]
            return Path(
                alphas, np.outer(same, result.x), loss * same, (dof * same).astype(int), reached(result) * same,
                [str(result.status)] * alphas.size, n, deviance(prepared.loss, loss, n) * same,
            )  # fmt: skip
        stochastic = self.method not in ("auto", "san-admm", *SOLVERS)
        options: dict[str, Any] = {"random_state": prepared.random_state} if stochastic else {}
        problem = prepared.problem(target, 1.0)
        options["x0"] = prepared.path_start(problem, target)
        return path(
            problem, alphas, tol=float(self.tol), passes=float(self.max_passes),
            method=self.method, callback=lambda *_: track.counter.step(), certify=certify,
            dof=certify and (track.dof or True), checkpoint=track.keeper, **options,
        )  # fmt: skip

    def _held_rows(self, fold: Prepared, table: Table, split: Split) -> Any:
        """The rows held out, on the scale of the fold."""
        return fold.design.on(table.X, split.test).X

    def _fold(self, prepared: Prepared, part: Any, weight: np.ndarray | None) -> Prepared:
        """A fold's own table and penalty."""
        fit_intercept, standardize = prepared.design.intercept, self._intercept_and_scaling()[1]
        penalty = prepared.penalty
        if isinstance(getattr(self, "graph", None), str):  # learnt from the rows, so every fold learns its own
            penalty = self._penalty(part, self._column_names())
        copies = prepared.design.copies
        design = build_design(part, weight, fit_intercept=fit_intercept, standardize=standardize, copies=copies)
        return prepared._replace(design=design, penalty=penalty, sample_weight=weight)


def _shifted(margins: np.ndarray, offset: np.ndarray | None, rows: np.ndarray) -> np.ndarray:
    """The margins of some rows with their offsets."""
    if offset is None:
        return margins
    return margins + (offset[rows] if margins.ndim == offset.ndim else offset[rows, None])

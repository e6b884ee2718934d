"""The base class of the estimators: it checks parameters, prepares table and penalty, solves problems and warns."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import wraps
from inspect import signature
from typing import Any, ParamSpec, Self, TypeVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from skadmm import _checks
from skadmm._names import unexpected
from skadmm._types import FilePath, TableLike, Values
from skadmm.backends.frames import for_sklearn
from skadmm.backends.sources import is_npz, read_npz
from skadmm.estimators._adaptive import checked_gamma, pilot_ridge, pilot_tolerance, reweighted, term_weights
from skadmm.estimators._available import OfRelax
from skadmm.estimators._bounds import limits_of
from skadmm.estimators._callbacks import CallbackSupport, Tasks, with_callbacks
from skadmm.estimators._categories import check_unknown, feature_names, forget, reading
from skadmm.estimators._columns import integer_names, warn_missing_offset
from skadmm.estimators._design import build_design, column_moments
from skadmm.estimators._large import (
    LargeRows,
    LargeTable,
    is_large,
    large_design,
    large_moments,
    large_scores,
    read_large,
)
from skadmm.estimators._large_levels import encoded_scores, rows_of
from skadmm.estimators._losses import check_storable, checked_offset, loss_of, offset_target
from skadmm.estimators._outputs import OutputOptions, checked_output_penalty, checked_task_graph
from skadmm.estimators._penalty import Penalty
from skadmm.estimators._prepared import Prepared
from skadmm.estimators._relaxed import Sample, relaxed, structure_of
from skadmm.problem.problem import Problem
from skadmm.problem.structure import degrees_of_freedom, fused
from skadmm.regularizers import Nuclear
from skadmm.run.follow import reached
from skadmm.run.result import Result, Status
from skadmm.run.solve import solve
from skadmm.solvers.select import check_method

RECORDED_ENTRIES = 1 << 22
"""Up to this many entries of the table, or with `verbose`, the trace of a fit has a record per pass. A record of a
larger table would take as long as a step, so its trace has the end alone."""


RELAXED_ADVICE = (
    "The first fit, with the penalty, is not affected: use penalized_coef_. Where there is no minimiser, as with "
    "classes that are separable on the structure found, coef_ and standard_errors_ are too large to use; raise alpha, "
    "or give bounds, which the second fit keeps."
)
"""Advice for a second fit that did not reach the tolerance."""

P = ParamSpec("P")
R = TypeVar("R")


def known_keywords(method: Callable[P, R]) -> Callable[P, R]:
    """`method` with a plain message for a keyword argument that it does not have."""
    names = [name for name in signature(method).parameters if name != "self"]

    @wraps(method)
    def checked(*args: P.args, **given: P.kwargs) -> R:
        for name in given:
            if name not in names:
                raise TypeError(unexpected(method.__name__, name, names))
        return method(*args, **given)

    return checked


def validated(model: Any, X: Any, *y: Any, **options: Any) -> Any:
    """scikit-learn's ``validate_data``; the message about NaN and infinity in X says where they are."""
    try:
        return validate_data(model, X, *y, **options)
    except ValueError as error:
        if not str(error).startswith("Input X contains"):
            raise
        from skadmm.backends.not_finite import located

        raise (located(X) or error) from None


class SeveralOutputs:
    """A family of models that takes several outputs in one problem. It comes first among the base classes."""

    output_penalty: Any
    task_graph: Any

    def _output_options(self) -> OutputOptions:
        penalty = self.output_penalty
        across = "entries" if penalty == "entries" else checked_output_penalty(penalty)
        if self.task_graph is None:
            return OutputOptions(across)
        return OutputOptions(across, checked_task_graph(self.task_graph), self._output_names())

    def _output_names(self) -> Any:
        """The names of the outputs for `task_graph`: the columns of y, or the classes; None where they have none."""
        return getattr(self, "classes_", getattr(self, "output_names_", None))


class StructuredModel(CallbackSupport, BaseEstimator):
    """A linear model under (1/n) Σ ℓ + alpha · ψ(Ax) + (ridge/2)‖x‖².

    A family of models gives :meth:`_penalty`; classification and regression give the targets and take the results.
    """

    alpha: Any
    ridge: Any
    loss: Any
    fit_intercept: Any
    standardize: Any
    method: Any
    max_passes: Any
    tol: Any
    warm_start: Any
    random_state: Any
    verbose: Any
    # Options that only some families have; these are the values for the others.
    positive: Any = False
    bounds: Any = None
    monotone: Any = None
    adaptive: Any = False
    relax: Any = False
    categorical_features: Any = None
    handle_unknown: Any = "error"
    standard_errors_: Any = OfRelax()
    penalized_coef_: Any = OfRelax()
    with_offset_: bool = False
    """Whether the model was fitted with an offset; False for files of older versions."""

    # -- what a family provides ------------------------------------------------------------------------------

    def _penalty(self, X: Any, names: Any) -> Penalty:
        """The penalty on the columns of `X`, with the graph or the groups behind it.

        Cross-validation calls it in several threads at once, so it must not change self.
        """
        raise NotImplementedError

    def _checked_loss(self) -> Any:
        """`loss` as an instance, of the kind of loss that the model takes."""
        raise NotImplementedError

    def _rows(self, X: Any, y: Any, sample_weight: Any, offset: Any, drop: Any) -> tuple[Any, Any, Any, Any]:
        """X, y, the weights and the offset, once columns that are named or left out are found."""
        return rows_of(self, X, y, sample_weight, offset, drop)

    def _read(self, X: Any, y: Any, sample_weight: Any, **checks: Any) -> tuple[Any, Any, np.ndarray | None]:
        """X, y and the weights, validated."""
        raise NotImplementedError

    def _targets(self, y: Any, sample_weight: np.ndarray | None) -> list[np.ndarray]:
        """The target of each problem to solve."""
        raise NotImplementedError

    def _assign(self, coefs: np.ndarray, intercepts: np.ndarray) -> None:
        """``coef_`` and ``intercept_`` from one row, or number, for each problem."""
        raise NotImplementedError

    def _as_scores(self, margins: np.ndarray) -> np.ndarray:
        """Margins of shape (models, rows, problems) as :meth:`_scores` returns them for one model after the other."""
        raise NotImplementedError

    # -- fitting ---------------------------------------------------------------------------------------------

    @known_keywords
    @with_callbacks
    def fit(
        self,
        X: TableLike,
        y: Values | None = None,
        sample_weight: Values | None = None,
        offset: Values | None = None,
        drop: str | Sequence[str] | None = None,
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (n_samples, n_features), path, LazyFrame or Dask collection
            A path is that of a folder of blocks, of a Parquet, CSV, svmlight or npy file, or of a folder of Parquet
            files: these stay on disk; all but a folder of blocks are converted once into such a folder in a cache. An
            npz file is read into memory.
        y : array of shape (n_samples,) or (n_samples, n_outputs), str, or list of str
            Names of columns where X is a path or a LazyFrame; None then means the last column, or the targets of the
            folder of blocks.
        sample_weight : array of shape (n_samples,), or str, optional
            A weight k means the same as k copies of the row. The name of a column where X is a path or a LazyFrame.
        offset : array of shape (n_samples,) or (n_samples, n_outputs), str, or list of str, optional
            Known numbers that are added to the margins x·coef + intercept: for counts under exposure, its logarithm.
            With several outputs a vector is added to each; with more than two classes every class has a column. Names
            of columns where X is a path or a LazyFrame.
        drop : str or list of str, optional
            Columns of a table on disk that are not features, such as identifiers or dates. Of tables on disk, `predict`
            and `score` ignore columns that the model was not fitted on, so that they need no such list. Of a DataFrame
            in memory, whose other columns they refuse, give ``X.drop(columns=...)``, there too.

        Returns
        -------
        self
        """
        self._check_parameters()
        if not isinstance(X, np.ndarray) or isinstance(y, str) or drop is not None:
            X, y, sample_weight, offset = self._rows(X, y, sample_weight, offset, drop)
        X, y, sample_weight = self._read(X, y, sample_weight)
        self.__dict__.pop("_online", None)
        targets = self._offset_targets(X, self._targets(y, sample_weight), offset)
        prepared = self._adapted(self._prepare(X, sample_weight), targets)
        tasks = Tasks(self, len(targets), X, y) if getattr(self, "_skl_callbacks", None) else None
        results = []
        for target, earlier in zip(targets, self._earlier(len(targets)), strict=True):
            with nullcontext() if tasks is None else tasks.task("problem"):
                results.append(self._solve(prepared, target, float(self.alpha), earlier))
        self._take(prepared, results)
        self._warn_if_short(results)
        self._warn_if_short(self._relax(prepared, targets, results), relaxed=True)
        if tasks is not None:
            tasks.close()
        return self

    def _offset_targets(self, X: Any, targets: list[Any], offset: Any) -> list[Any]:
        """The targets, which carry the offset of each row where one is given."""
        if offset is None:
            self.__dict__.pop("with_offset_", None)
            return targets
        numbers = self._output_offset(X, targets, offset)
        self.with_offset_ = True
        columns = numbers.T if len(targets) > 1 else [numbers]
        return [
            offset_target(self._checked_loss(), target, column) for target, column in zip(targets, columns, strict=True)
        ]

    def _output_offset(self, X: Any, targets: list[Any], offset: Any) -> np.ndarray:
        """The offset of each row, or of each row and output or class."""
        several = targets[0].shape[1] if targets[0].ndim == 2 else len(targets)
        return checked_offset(offset, X.shape[0], several, classes=self._checked_loss().labels)

    def _take(self, prepared: Prepared, results: list[Result]) -> None:
        """Set the fitted attributes."""
        xs = [x for result in results for x in result.x.reshape(result.n_outputs, -1)]
        coefs, intercepts, parts = zip(*map(prepared.solution, xs), strict=True)
        self._assign(np.array(coefs), np.array(intercepts))
        passes = [int(np.ceil(result.passes - result.selection_passes)) for result in results]
        design = prepared.design
        self.scale_ = design.by_feature(design.scale) if design.copies.size else design.scale
        self.result_ = results[0] if len(results) == 1 else results
        self.n_iter_ = passes[0] if len(passes) == 1 else np.array(passes)
        self.n_samples_fit_ = int(design.X.shape[0])
        self._structure(prepared, results, parts)

    def _parts(self, prepared: Prepared, results: list[Result]) -> list[np.ndarray]:
        """The solutions on the scale the penalty saw, without the intercept."""
        return [prepared.design.penalised(x) for x in _solutions(results)]

    # -- checks and preparation ------------------------------------------------------------------------------

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _check_parameters(self) -> None:
        _checks.number(self.ridge, "ridge", least=0)
        _checks.number(self.max_passes, "max_passes", above=0)
        _checks.number(self.tol, "tol", above=0)
        for name in ("fit_intercept", "standardize", "warm_start", "relax"):
            if not isinstance(getattr(self, name, False), (bool, np.bool_)):
                raise ValueError(f"{name}={getattr(self, name)!r}: it takes True or False")
        if self.handle_unknown != "error":
            check_unknown(self)
        check_method(self.method)
        if hasattr(self, "alpha"):
            _checks.number(self.alpha, "alpha", least=0)

    def _table(self, X: Any, y: Any, sample_weight: Any, **checks: Any) -> tuple[Any, Any, np.ndarray | None]:
        """X, y and the weights, validated: float64, dense in C order or CSR. A large table is not copied."""
        self._integer_names = None
        if not isinstance(X, np.ndarray):
            if is_npz(X):
                X, y, sample_weight = read_npz(X, y, sample_weight)
            if is_large(X):
                return read_large(self, X, y, sample_weight, ones=self._intercept_and_scaling()[0])
            self._integer_names = integer_names(X)
        options = {"accept_sparse": "csr", "dtype": np.float64, "order": "C", "ensure_min_samples": 2} | checks
        if hasattr(self, "categories_"):
            forget(self)
        if self.categorical_features is not None:
            X, y = reading(self, X, y, options)
        else:
            X, y = validated(self, X if isinstance(X, np.ndarray) else for_sklearn(X), y, **options)
        if sample_weight is not None:
            if isinstance(sample_weight, str):
                raise TypeError(f"sample_weight={sample_weight!r}: it takes a number for each row, not a name")
            sample_weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
            if not np.any(sample_weight > 0):
                raise ValueError("sample_weight takes numbers ≥ 0, at least one of them > 0")
        return X, y, sample_weight

    def _prepare(self, X: Any, sample_weight: np.ndarray | None) -> Prepared:
        names = self._column_names()
        fit_intercept, standardize = self._intercept_and_scaling()
        options: Any = {"fit_intercept": fit_intercept, "standardize": standardize, "names": names}
        build = large_design if isinstance(X, LargeTable) else build_design
        penalty = self._penalty(X, names)
        if penalty.copies is not None:
            options["copies"] = penalty.copies.columns
        design = build(X, sample_weight, **options)
        found = {"graph_": penalty.graph, "groups_": penalty.members, "group_names_": penalty.member_names}
        for name, value in found.items():
            self.__dict__.pop(name, None)
            if value is not None:
                setattr(self, name, value)
        limits = None
        if self.positive is not False or self.bounds is not None or self.monotone is not None:
            limits = limits_of(self, X.shape[1], names, penalty.graph)
        return Prepared(
            design, penalty, sample_weight, self._checked_loss(), float(self.ridge), self._seed(), limits,
            outputs=self._output_options(),
        )  # fmt: skip

    def _output_options(self) -> OutputOptions:
        """How several outputs are penalised; a family that takes them says so."""
        return OutputOptions()

    # -- a fit before, and one after ---------------------------------------------------------------------------

    def _adapted(self, prepared: Prepared, targets: list[Any]) -> Prepared:
        """`prepared` with the weights of `adaptive`, which come from a first fit with a ridge to its rows."""
        self.__dict__.pop("adaptive_weights_", None)
        if self.adaptive is False:
            return prepared
        gamma = checked_gamma(self.adaptive)
        if gamma == 0.0 or prepared.penalty.A.shape[0] == 0:
            return prepared
        if prepared.outputs.penalty == "nuclear" and _in_one(targets):
            raise ValueError(f"adaptive={self.adaptive!r}: output_penalty='nuclear' has no terms to weight")
        penalty = prepared.penalty if prepared.plain is None else prepared.plain
        weak = prepared._replace(ridge=prepared.ridge + _pilot_ridge(prepared), limits=None, plain=None)
        options: dict[str, Any] = {"method": "auto", "tol": pilot_tolerance(float(self.tol))}
        results = [self._solve(weak, target, 0.0, None, **options) for target in targets]
        parts = self._parts(prepared, results)
        solutions = parts if penalty.copies is None else [penalty.copies.whole(part) for part in parts]
        weights = term_weights(penalty, solutions, gamma)
        self.adaptive_weights_ = weights
        return prepared._replace(penalty=reweighted(penalty, weights), plain=penalty)

    def _relax(self, prepared: Prepared, targets: list[Any], results: list[Result]) -> list[Result]:
        """With `relax`, fit the values again on the structure found; returns the results of these fits."""
        for name in ("penalized_coef_", "standard_errors_"):
            self.__dict__.pop(name, None)
        if not self.relax:
            return []
        targets = self._separate(prepared, targets)
        design = prepared.design
        fits = []
        for target, solution in zip(targets, _solutions(results), strict=True):
            loss = loss_of(prepared.loss, target)
            X = LargeRows(design) if is_large(design.X) else design.X
            sample = Sample(X, target, prepared.sample_weight, loss, design.intercept)
            basis = structure_of(prepared.penalty, design.penalised(solution))
            limits = None if prepared.limits is None else prepared.limit_rows()
            tol, passes = float(self.tol), float(self.max_passes)
            fits.append(relaxed(sample, solution, basis, limits, tol, passes))
        self.penalized_coef_ = self.coef_
        errors = np.array([design.by_feature(fit.standard_errors / design.scale) for fit in fits])
        self.standard_errors_ = errors if np.ndim(self.coef_) == 2 else errors[0]
        pairs = [prepared.coefficients(design.as_solved(fit.x)) for fit in fits]
        self._assign(np.array([coef for coef, _ in pairs]), np.array([intercept for _, intercept in pairs]))
        return [fit.result for fit in fits if fit.result is not None]

    def _separate(self, prepared: Prepared, targets: list[Any]) -> list[Any]:
        """The target of each output, whose structure is fitted again by itself; refused where outputs share it."""
        if not _in_one(targets):
            return targets
        outputs = prepared.outputs
        shared = {
            "multi_class='multinomial'": prepared.loss.coupled,
            "task_graph": outputs.task_graph is not None,
            "output_penalty='nuclear'": outputs.penalty == "nuclear",
        }
        for name, given in shared.items():
            if given:
                raise ValueError(f"relax=True: it fits every output by itself, and {name} joins them")
        return [np.ascontiguousarray(column) for column in targets[0].T]

    def _column_names(self) -> Any:
        """The names of the columns of X for graphs and groups: strings, or integers; None where it has none."""
        if hasattr(self, "feature_names_in_") or hasattr(self, "feature_names_out_"):
            return feature_names(self)
        return getattr(self, "_integer_names", None)

    def _intercept_and_scaling(self) -> tuple[bool, bool]:
        """Is there an intercept, and are columns scaled?"""
        return bool(self.fit_intercept), bool(self.standardize)

    # -- solving ---------------------------------------------------------------------------------------------

    def _solve(self, prepared: Prepared, target: np.ndarray, alpha: float, earlier: Any, **options: Any) -> Result:
        """One fit; `earlier` is a Result to continue from, or None."""
        at_constant = prepared.starts_at_constant
        problem = prepared.problem(target, alpha)
        start: dict[str, Any] = {}
        if earlier is not None and _fits(earlier, problem):
            # The second-order method needs only the point, of which a file keeps x; the tables of other methods belong
            # to their samples.
            point_kept = earlier.method == "san-admm" and "x" in earlier.tables
            start = {"warm_start": earlier} if point_kept else {"x0": earlier.x}
        elif at_constant:
            x0 = prepared.start(problem, target)
            start = {} if x0 is None else {"x0": x0}
        settings = {
            "method": self.method, "tol": float(self.tol), "passes": float(self.max_passes),
            "random_state": prepared.random_state, "verbose": int(self.verbose),
            "record_every": 1.0 if self.verbose or problem.nnz <= RECORDED_ENTRIES else 0.0,
        }  # fmt: skip
        return solve(problem, **(settings | start | options))

    def _seed(self) -> Any:
        return 0 if self.random_state is None else self.random_state

    def _warn_if_short(self, results: list[Result], stacklevel: int = 4, relaxed: bool = False) -> None:
        """Warn of results that did not reach the tolerance; `relaxed` ones are of the second fits of `relax`."""
        short = [result for result in results if result.status is not Status.SOLVED]
        if not short:
            return
        worst = max(short, key=reached)
        measure = "KKT residual" if np.isnan(worst.gap) else "duality gap"
        what = f" in {len(short)} of {len(results)} problems" if len(results) > 1 else ""
        advice = RELAXED_ADVICE
        if not relaxed:
            columns = self._has_columns() and not self.standardize
            advice = _advice(worst, columns, self._intercept_and_scaling()[0])
        which = ": relax=True, the second fit, which has no penalty," if relaxed else ""
        warnings.warn(
            f"{type(self).__name__}{which} did not reach tol={self.tol:g}{what}: {worst.status} after {worst.cost} "
            f"with a relative {measure} of {reached(worst):.1e}. {advice}",
            ConvergenceWarning,
            stacklevel=stacklevel,
        )

    def _has_columns(self) -> bool:
        """Is X a table, whose columns have scales?"""
        return True

    def _earlier(self, count: int) -> list[Any]:
        """The results to start from, one for each of `count` problems."""
        if not getattr(self, "warm_start", False) or not hasattr(self, "result_"):
            return [None] * count
        results = self.result_ if isinstance(self.result_, list) else [self.result_]
        return results if len(results) == count else [None] * count

    def _structure(
        self,
        prepared: Prepared,
        results: list[Result],
        parts: Sequence[np.ndarray],
        tied: Sequence[np.ndarray | None] | None = None,
    ) -> None:
        """What is fused, and the degrees of freedom, of solutions as the penalty sees them; `tied` marks the rows of A
        on which each is zero, where that is not found from the solution."""
        penalty = prepared.penalty
        psi = penalty.psi(1.0).prepared(penalty.A.shape[0], "psi") if penalty.A.shape[0] else None
        m = penalty.A.shape[0]
        ys = [result.y[:m] if result.n_outputs == 1 else None for result in results for _ in range(result.n_outputs)]
        labels, dof = [], []
        for x, y, zeros in zip(parts, ys, [None] * len(parts) if tied is None else tied, strict=True):
            labels.append(fused(penalty.A, x, zeros))
            dof.append(degrees_of_freedom(penalty.A, x, psi, y, labels[-1]))
        self.dof_ = dof[0] if len(dof) == 1 else np.array(dof)
        if prepared.outputs.penalty == "nuclear" and results[0].n_outputs > 1:
            k = results[0].n_outputs
            rows = results[0].y[: m * k]  # the solver's own: its singular values are zero exactly
            if rows.size == 0:  # alpha = 0
                rows = np.concatenate([penalty.A @ x for x in parts])
            self.rank_ = Nuclear(columns=k).rank(rows)
        if penalty.groups is not None:
            return
        counts = [int(label.max(initial=-1)) + 1 for label in labels]
        self.clusters_ = labels[0] if len(labels) == 1 else np.array(labels)
        self.n_clusters_ = counts[0] if len(counts) == 1 else np.array(counts)

    # -- after the fit ---------------------------------------------------------------------------------------

    def _scores(self, X: Any) -> np.ndarray:
        """X coefᵀ + intercept."""
        check_is_fitted(self)
        if is_npz(X):
            X = read_npz(X)[0]
        if is_large(X):
            return encoded_scores(self, X) if hasattr(self, "categories_") else large_scores(self, X)
        if hasattr(self, "categories_"):
            X = reading(self, X, None, {"reset": False})[0]
        else:
            X = validated(self, for_sklearn(X), accept_sparse="csr", dtype=np.float64, reset=False)
        return np.asarray(X @ np.asarray(self.coef_).T) + self.intercept_

    def _offset_or_zero(self, offset: Any, method: str) -> Any:
        """The offset that `method` was given; 0, with a warning, where it is missing."""
        if offset is not None or not self.with_offset_ or "held_out_margins" in self.__dict__:
            return offset
        warn_missing_offset(type(self).__name__, method)
        return 0.0

    def save(self, path: FilePath) -> None:
        """Write the fitted model to one file, without pickle; :func:`skadmm.load` reads it."""
        from skadmm.estimators.persistence import save

        self._check_storable()
        save(self, path)

    def report(
        self, path: FilePath, X: TableLike | None = None, y: Values | None = None, offset: Values | None = None
    ) -> None:
        """Write a page about the fitted model: one HTML file that needs no network.

        It has the coefficients as a table and on their graph, grid or signal; the curve from which a CV estimator chose
        the strength, and its path with a slider; the certificate, the course of the run, and how to reproduce it.

        Parameters
        ----------
        path : str or path
        X, y : the data of the fit, or held-out data, optional
            Their size and the score on them become part of the report.
        offset : array of shape (n_samples,) or (n_samples, n_outputs), optional
            The offset of these data, which the score takes into account.
        """
        _checks.coefficients(self)
        from skadmm.estimators.report import write_report

        write_report(self, path, X, y, offset)

    def _check_storable(self) -> None:
        """Raise where a parameter cannot be written to a file."""
        check_storable(self.loss)


def _pilot_ridge(prepared: Prepared) -> float:
    """The ridge of the first fit of `adaptive`, which does not depend on where and how the table is stored."""
    design, weight = prepared.design, prepared.sample_weight
    if is_large(design.X):
        return pilot_ridge(design, *large_moments(LargeTable(design.X), weight))
    return pilot_ridge(design, *column_moments(design.X[:, : design.scale.size], weight))


def _solutions(results: list[Result]) -> list[np.ndarray]:
    """The solver's x of every output, with the intercept."""
    return [x for result in results for x in np.atleast_2d(result.coef)]


def _in_one(targets: list[Any]) -> bool:
    """Return whether several outputs are in one problem."""
    return getattr(targets[0], "ndim", 1) == 2


def _fits(earlier: Any, problem: Problem) -> bool:
    shape = (problem.n_features, problem.n_split, problem.n_constraints)
    return (
        isinstance(earlier, Result)
        and earlier.status is not Status.DIVERGED
        and (earlier.x.size, earlier.y.size, earlier.dual.size) == shape
    )


def _advice(result: Result, columns: bool = True, intercept: bool = False) -> str:
    """Advice for a result that did not reach the tolerance; `columns` says whether X has columns that could be
    scaled, `intercept` whether the last entry of x is an intercept."""
    status = result.status
    if status in (Status.PASS_LIMIT, Status.TIME_LIMIT):
        scale = "scale the columns of X (standardize=True), " if columns else ""
        return f"Raise max_passes or tol, {scale}or raise alpha."
    if status is Status.STALLED:
        accepted = _rounded_up(2 * reached(result))  # twice, because rounding is not the same in every run
        within = f"tol={accepted:g} accepts this fit" if accepted < 2.0 else "raise alpha"
        more = "; columns of one scale (standardize=True) may allow a smaller gap" if columns else ""
        return f"Rounding prevents a smaller gap: {within}{more}."
    if intercept and not np.any(np.atleast_2d(result.coef)[:, :-1]):
        return (
            "Only the intercept, which is never penalised, has no finite value, as where y is constant: alpha and "
            "ridge cannot change that. Give y with other values, or fit_intercept=False."
        )
    return "The problem may have no minimiser: raise alpha, l1_ratio or ridge."


def _rounded_up(value: float) -> float:
    """The next number with one digit."""
    unit = 10.0 ** np.floor(np.log10(value)) if value > 0.0 else 1.0
    return float(np.ceil(value / unit * (1 + 1e-9)) * unit)

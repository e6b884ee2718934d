"""Tables that are not read into memory as a whole: files on disk, Dask collections, and rows on other processes."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from functools import partial, reduce
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse
from sklearn.base import is_classifier

from skadmm import _cancel
from skadmm._names import no_column
from skadmm.backends import FileBlocks, Processes, as_folder, as_weight, is_dask, is_stored
from skadmm.backends.named_columns import column_names, computed, is_folder, without_columns
from skadmm.backends.not_finite import located
from skadmm.backends.raw import temporary_folder
from skadmm.backends.readers import Columns, NoColumnError, TextColumnError, first_text, kind_of, open_source
from skadmm.backends.repeated import repeated
from skadmm.backends.slicing import slice_rows
from skadmm.backends.sources import as_lazy, as_stored, is_lazy, named_x
from skadmm.estimators._conditioning import ColumnMoments, Conditioned, conditioned
from skadmm.estimators._design import NO_COPIES, Design, check_copies
from skadmm.estimators._large_numbers import MAX_SIZE, refuse_columns
from skadmm.io.locks import remove_working
from skadmm.kernels.rows import as_matrix, is_dense, multiply
from skadmm.losses import as_loss
from skadmm.operators.moments import Moments, Sums, column_moments, column_sums
from skadmm.run.memory import available as available_memory

ROWS_PER_CHUNK = 16_384
"""Rows of a folder that are read at a time."""


class LargeTable:
    """A large table as the estimators see it; its shape does not count a column of ones."""

    def __init__(self, table: Any) -> None:
        self.table, self.names, self.ones = table, None, False
        self.conditioned: Conditioned | None = None
        """The table as the solver sees it; None before the first design."""
        self.chosen: np.ndarray | None = None
        """A mask of the rows from which a graph is learnt; None for all."""
        self.copies: Any = None
        """The table as the solver sees it with several columns for a feature; None before the first such design."""
        if isinstance(table, FileBlocks):
            self.names, self.ones = table.names, table.ones
            self.shape = (table.n, table.d - int(table.ones))
        else:
            self.shape = table.shape
            self.names = table.names if isinstance(table, Processes) else None
        if self.names is not None:
            self.names = self.names[: self.shape[1]]

    def only(self, rows: np.ndarray) -> LargeTable:
        """The same table; a graph is learnt from some of its rows."""
        other = copy.copy(self)
        other.chosen = np.zeros(self.shape[0], dtype=bool)
        other.chosen[rows] = True
        return other


def is_large(X: Any) -> bool:
    """Return whether X is a large table."""
    return is_stored(X) or is_dask(X) or isinstance(X, Processes)


def in_memory(table: LargeTable) -> Any:
    """The rows of a table with few columns, without the column of ones: a DataFrame where columns have names."""
    if isinstance(table.table, (FileBlocks, Processes)):
        rows = np.concatenate([_dense(part) for _, part in _chunks(table)])
    else:
        rows = _dense(table.table.compute())
    return rows if table.names is None else pd.DataFrame(rows, columns=table.names)


def table_of(model: Any, X: Any) -> LargeTable:
    """A large table without targets, with the columns that `model` knows where it knows their names."""
    if not is_stored(X):
        return LargeTable(X) if isinstance(X, Processes) else _from_dask(X)
    known = getattr(model, "feature_names_in_", None)
    if known is not None and not is_folder(X):
        X = without_columns(X, [name for name in column_names(X) if name not in known])
    return LargeTable(as_folder(X, labelled=False))


def refuse_large(X: Any, what: str) -> None:
    """Raise where X is a large table and `what`, which copies rows, needs a table in memory."""
    if is_large(X):
        given = repr(X) if isinstance(X, str) else f"a {type(X).__name__}"
        raise TypeError(f"X is {given}: {what} takes a table in memory; fit takes tables on disk and Dask collections")


def brought_here(model: Any, X: Any, y: Any, sample_weight: Any, offset: Any) -> tuple[Any, Any, Any, Any]:
    """X, y, the weights and the offset. Where the model needs solvers that read rows themselves, the rows of a Dask
    collection come as a folder of blocks on the disk of this process, and those of `Processes` as they are here."""
    remote = isinstance(X, Processes) or (is_dask(X) and not isinstance(X, (list, tuple)))
    if not remote or not _needs_local_rows(model, y, offset):
        return X, y, sample_weight, offset
    if isinstance(X, Processes):
        local = X.folder if X.folder is not None else as_matrix(X.rows)
        y = X.target if y is None else y
        return local, y, X.sample_weight if sample_weight is None else sample_weight, offset
    from skadmm.backends.dask.folder import dask_folder

    table = _from_dask(X)
    folder = dask_folder(table.table, table.names, ones=model.fit_intercept is not False)
    return folder, *(computed(vector) for vector in (y, sample_weight, offset))


def _needs_local_rows(model: Any, y: Any, offset: Any) -> bool:
    """Does the model call for a solver that reads rows, or for rows of a kind that workers do not hold?"""
    if offset is not None or model.relax or getattr(y, "ndim", 1) == 2 or len(getattr(y, "columns", ())) > 1:
        return True
    if model.positive or model.bounds is not None or model.monotone is not None:
        return True
    if getattr(model, "multi_class", "ovr") == "multinomial":
        return True
    return not as_loss(model.loss).smooth


def read_large(model: Any, X: Any, y: Any, sample_weight: Any, *, ones: bool) -> tuple[LargeTable, Any, Any]:
    """The table, the targets and the weights; the number and names of the features are stored on `model`. `ones` says
    whether a file that has to be converted gets a column of ones."""
    if is_stored(X):
        columns = [name if isinstance(name, str) else None for name in (y, sample_weight)]
        folder = as_folder(X, *columns, labelled=y is None or columns[0] is not None, ones=ones)
        table = LargeTable(folder)
        y = folder.target if y is None or columns[0] is not None else np.asarray(y)
        own = sample_weight is None or columns[1] is not None
        sample_weight = _checked_weight(folder.sample_weight if own else sample_weight, table.shape[0])
        if y is None:
            raise ValueError("y=None: the table has no targets of its own: give y as an array")
        several = y.ndim == 2 and model.__sklearn_tags__().target_tags.multi_output
        if y.shape[:1] != (table.shape[0],) or not (y.ndim == 1 or several):
            more = ", or as many rows" if model.__sklearn_tags__().target_tags.multi_output else ""
            raise ValueError(
                f"y has shape {np.shape(y)}: it takes a vector of length {table.shape[0]}{more}, or names of columns"
            )
    elif isinstance(X, Processes):
        table = LargeTable(X)
        y = X.target if y is None else np.asarray(y)
        sample_weight = _checked_weight(X.sample_weight if sample_weight is None else sample_weight, table.shape[0])
        if y is None or y.shape != (table.shape[0],):
            raise ValueError(f"y has shape {np.shape(y)}: it takes a vector of length {table.shape[0]}")
    else:
        if isinstance(X, (list, tuple)):
            raise TypeError("X is a list of delayed blocks: the estimators take a dask.array or a dask.dataframe")
        table = _from_dask(X)
        y, sample_weight = _as_array(y, "y"), _as_array(sample_weight, "sample_weight")
        if sample_weight is not None and not is_dask(sample_weight):
            sample_weight = np.asarray(sample_weight, dtype=float)
        _check_dask_vectors(y, sample_weight, table.shape[0], "classes" if is_classifier(model) else "values")
    if not hasattr(model, "categories_"):  # the columns of an encoded table are not those that were given
        set_features(model, int(table.shape[1]), table.names)
    return table, y, sample_weight


def _checked_weight(weight: Any, n: int) -> np.ndarray | None:
    """The weights of n rows as they were given, once they are checked as in memory; one number stands for all."""
    if weight is None:
        return None
    weight = np.full(n, weight) if np.ndim(weight) == 0 else np.asarray(weight)
    try:
        weight = np.asarray(weight, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"sample_weight has dtype {weight.dtype}: it takes numbers") from None
    as_weight(weight, n)
    return weight


def set_features(model: Any, count: int, names: list[str] | None) -> None:
    """Store the number and the names of the features on `model`."""
    model.n_features_in_ = count
    model.__dict__.pop("feature_names_in_", None)
    if names is not None:
        model.feature_names_in_ = np.asarray(names, dtype=object)


def _from_dask(X: Any) -> LargeTable:
    for name, dtype in getattr(X, "dtypes", {}).items() if hasattr(X, "columns") else ():
        if getattr(dtype, "kind", "O") not in "fiub":
            first = X[name].head(5, npartitions=-1)
            if len(first) == 0:
                raise ValueError("X has no rows: it takes at least one")
            raise TextColumnError(str(name), first_text(first))
    table = LargeTable(_as_array(X, "X"))
    table.names = [str(column) for column in X.columns] if hasattr(X, "columns") else None
    return table


def _as_array(collection: Any, name: str) -> Any:
    if not is_dask(collection):
        return collection
    from skadmm.backends.dask.blocks import with_known_lengths

    return with_known_lengths(collection, name)


def _check_dask_vectors(y: Any, sample_weight: Any, n: int, values: str) -> None:
    """Raise where targets or weights are not as many as the rows of a Dask collection, or targets are missing; `values`
    is what targets are called."""
    if y is None:
        raise ValueError("y=None: it takes a vector with an entry for each row of X")
    for name, vector in (("y", y), ("sample_weight", sample_weight)):
        length = n if vector is None else np.shape(vector)[0]
        if not (length == n or np.isnan(length) or np.isnan(n)):  # Dask may not know them
            raise ValueError(f"{name} has shape {np.shape(vector)}: it takes a vector of length {n}, as X has rows")
    if not is_dask(y) or y.dtype.kind not in "fO":
        return
    missing = np.flatnonzero(y.map_blocks(pd.isna, dtype=bool).compute())
    if missing.size:
        raise ValueError(
            f"y has {missing.size:,} missing {values}, the first in row {missing[0]:,}: leave out these rows"
        )


def classes_of(y: Any, sample_weight: Any) -> np.ndarray:
    """The classes in `y`, in order, without those that occur in rows of weight zero only."""
    if not is_dask(y):
        return np.unique(y if sample_weight is None else y[computed(sample_weight) > 0])
    import dask.array as da

    weighted = y if sample_weight is None else y[da.asarray(sample_weight, chunks=y.chunks) > 0]
    return np.asarray(da.unique(weighted).compute())


def mean_of(y: Any, weight: Any) -> float:
    """The weighted mean of `y`."""
    if not is_dask(y):
        return float(np.average(y, weights=weight))
    return float((y.mean() if weight is None else (y * weight).sum() / weight.sum()).compute())


def large_design(
    table: LargeTable,
    sample_weight: Any,
    *,
    fit_intercept: bool,
    standardize: bool,
    names: Any = None,
    copies: np.ndarray = NO_COPIES,
) -> Design:
    """The table as the solver sees it. Standardised columns are a penalty on scale · x, so that it is copied only where
    the columns are so far from zero, or of so different scales, that no solver is accurate on them as they are. Columns
    whose moments show numbers that are too large are refused by their `names`. Later calls for the same table, with the
    weights of folds, have the same centres and units as the first. With `copies`, the columns are those that they
    name."""
    d = table.shape[1]
    if isinstance(table.table, FileBlocks) and fit_intercept != table.ones:
        wanted = "has no column of ones: convert it with --ones, or give fit_intercept=False (--no-intercept)"
        unwanted = "has a column of ones: convert it without --ones, or give fit_intercept=True (--intercept)"
        raise ValueError(f"fit_intercept={fit_intercept}: the folder {wanted if fit_intercept else unwanted}")
    scale = np.ones(d)
    if standardize:
        columns = _refused_if_large(large_moments(table, sample_weight), table, names)
        scale = columns.spread
    if table.conditioned is None and (fit_intercept or standardize):
        if not standardize:
            columns = _refused_if_large(_first_moments(table), table, names)
            columns = large_moments(table, sample_weight) if columns.are_far else columns
        centres = partial(_centres, table, columns.varies)
        table.conditioned = conditioned(table.table, columns, centres, centred=fit_intercept, divided=standardize)
    seen = Conditioned(table.table) if table.conditioned is None else table.conditioned
    design = Design(seen.X, scale, fit_intercept, seen.centre, scaled_penalty=standardize, unit=seen.unit)
    return _with_copies(design, table, copies) if copies.size else design


def _with_copies(design: Design, table: LargeTable, copies: np.ndarray) -> Design:
    """The design with the columns that `copies` names, of a table that is made once."""
    if table.copies is None:
        if isinstance(design.X, Processes) and design.X.folder is None:
            check_copies(as_matrix(design.X.rows), copies)
        table.copies = repeated(design.X, copies)
    centre, unit = (part[copies] if part.size else part for part in (design.centre, design.unit))
    return design._replace(X=table.copies, scale=design.scale[copies], centre=centre, unit=unit, copies=copies)


def _refused_if_large(columns: ColumnMoments, table: LargeTable, names: Any) -> ColumnMoments:
    """The moments, once none of them shows a number that is too large, or NaN."""
    sizes = np.maximum(np.abs(columns.mean), np.sqrt(columns.variance))
    if np.isnan(sizes).any() and is_dask(table.table):
        from skadmm.backends.dask.raw import on_blocks

        refuse_not_finite(on_blocks(table.table, where_not_finite), names)
    large = np.flatnonzero(~(sizes <= MAX_SIZE))
    if large.size:
        refuse_columns(large, sizes[large[0]], names)
    return columns


def _centres(table: LargeTable, varies: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """The means; for constant columns their value, so that they become zero and not rounding; zero for columns of a
    sparse table with entries that are not stored."""
    if is_dask(table.table):
        first = np.asarray(_dense(table.table[:1].compute())).ravel()
        return np.where(varies, mean, first)
    first = _dense(as_matrix(table.table.rows, 0, 1)).ravel()[: mean.size]
    centre = np.where(varies, mean, first)
    if not is_dense(table.table.rows):
        stored = sum(np.bincount(part.indices, minlength=mean.size) for _, part in _chunks(table))
        centre = np.where(stored == table.shape[0], centre, 0.0)
    return centre


def _first_moments(table: LargeTable) -> ColumnMoments:
    """The mean and variance of each column in the first rows, to see whether columns are far from zero."""
    part = table.table.blocks[0].compute() if is_dask(table.table) else next(_chunks(table))[1]
    n = part.shape[0]
    mean = np.asarray(part.T @ np.full(n, 1.0 / n)).ravel()
    return ColumnMoments(mean, _deviation(mean, part, np.full(n, 1.0 / n)))


def large_moments(table: LargeTable, sample_weight: Any) -> ColumnMoments:
    """The weighted mean and variance of each column: two readings of the table."""
    weight = np.ones(table.shape[0]) if sample_weight is None else np.asarray(computed(sample_weight))
    share = weight / weight.sum()
    mean = summed(table, np.add, _weighted_sum, share)
    return ColumnMoments(mean, summed(table, np.add, partial(_deviation, mean), share))


def summed(table: LargeTable, add: Callable[..., Any], function: Callable[..., Any], vector: np.ndarray | None) -> Any:
    """The sum over blocks of rows of a function of the block and of its part of a vector: on the workers of Dask, or in
    this process; only two terms of the sum are in memory."""
    if not isinstance(table.table, (FileBlocks, Processes)):
        from skadmm.backends.dask.raw import sum_of_blocks

        return sum_of_blocks(table.table, add, function, vector)
    return reduce(add, (function(part, None if vector is None else vector[rows]) for rows, part in _chunks(table)))


def large_covariance(table: LargeTable) -> Moments:
    """The moments of the columns from which a graph is learnt, in two readings of the table: of all rows, or of those
    that `table.chosen` marks."""
    d = table.shape[1]
    needed, free = 4 * 8.0 * d * d, available_memory()
    if needed > free:
        raise MemoryError(
            f"graph='precision': the covariances of {d} features take {needed / 1e9:,.3g} GB in memory, and "
            f"{free / 1e9:,.3g} GB are available"
        )
    sums = summed(table, Sums.added, column_sums, table.chosen)
    return summed(table, Moments.added, partial(column_moments, sums.total / sums.rows), table.chosen)


def _weighted_sum(part: Any, share: np.ndarray) -> np.ndarray:
    return np.asarray(part.T @ share)


def _chunks(table: LargeTable) -> Iterator[tuple[slice, Any]]:
    """Consecutive rows of a table in this process, without the column of ones, each chunk with its place."""
    for start in range(0, table.shape[0], ROWS_PER_CHUNK):
        _cancel.check_cancelled()
        stop = min(start + ROWS_PER_CHUNK, table.shape[0])
        yield slice(start, stop), as_matrix(table.table.rows, start, stop)[:, : table.shape[1]]
        table.table.release()


def _deviation(mean: np.ndarray, part: Any, share: np.ndarray) -> np.ndarray:
    """Σ share_i (a_ij − mean_j)² of some rows, for each column j; infinite where the squares overflow."""
    with np.errstate(over="ignore"):
        return _sum_of_squares(mean, part, share)


def _sum_of_squares(mean: np.ndarray, part: Any, share: np.ndarray) -> np.ndarray:
    if not scipy.sparse.issparse(part):
        return share @ (part - mean) ** 2
    stored = np.repeat(share, np.diff(part.indptr))
    deviation = np.bincount(part.indices, stored * (part.data - mean[part.indices]) ** 2, minlength=mean.size)
    missing = share.sum() - np.bincount(part.indices, stored, minlength=mean.size)
    return deviation + np.maximum(missing, 0.0) * mean**2


class LargeRows:
    """Centred nowhere, divided by their scale, with a last column of ones for an intercept: rows that are multiplied
    from the right, a block at a time."""

    def __init__(self, design: Design) -> None:
        self.table, self.design = LargeTable(design.X), design

    def __matmul__(self, right: Any) -> np.ndarray:
        n, k = self.table.shape[0], right.shape[1]
        needed, free = 8.0 * n * k, available_memory()
        if needed > free:
            raise MemoryError(
                f"relax=True: {n} rows of {k} clusters take {needed / 1e9:,.3g} GB in memory, and "
                f"{free / 1e9:,.3g} GB are available"
            )
        design, d = self.design, self.table.shape[1]
        right = scipy.sparse.csr_array(right)
        features = scipy.sparse.csr_array(scipy.sparse.diags_array(1.0 / design.factor) @ right[:d])
        product = np.empty((n, k))
        for rows, part in _chunks(self.table):
            product[rows] = _dense(part @ features)
        return product + _dense(right[[d]]) if design.intercept else product


def _dense(matrix: Any) -> np.ndarray:
    return np.asarray(matrix.toarray() if scipy.sparse.issparse(matrix) else matrix)


def large_scores(model: Any, X: Any) -> np.ndarray:
    """X coefᵀ + intercept, block by block."""
    coef = np.atleast_2d(np.asarray(model.coef_, dtype=float))
    known = getattr(model, "feature_names_in_", None)
    if is_lazy(X):
        return _lazy_scores(model, _known_columns(as_lazy(X), known), coef, known)
    if is_stored(X) and not is_folder(X):
        return shaped(_source_scores(model, X, coef, known), model)
    table = LargeTable(X) if isinstance(X, Processes) else LargeTable(as_folder(X)) if is_stored(X) else _from_dask(X)
    if table.shape[1] != model.n_features_in_:
        raise ValueError(f"X has {table.shape[1]} features, but {type(model).__name__} expects {model.n_features_in_}")
    if table.names is not None and known is not None and list(table.names) != list(known):
        j = next(j for j, name in enumerate(table.names) if name != known[j])
        raise ValueError(f"X has the column {table.names[j]!r} where {type(model).__name__} was fitted on {known[j]!r}")
    return table_scores(model, table)


def table_scores(model: Any, table: LargeTable) -> np.ndarray:
    """X coefᵀ + intercept of the rows of a table as the fit saw it."""
    coef = np.atleast_2d(np.asarray(model.coef_, dtype=float))
    if not isinstance(table.table, (FileBlocks, Processes)):
        from skadmm.backends.dask.raw import on_blocks

        parts = on_blocks(table.table, partial(finite_margins, coef))
        refuse_not_finite(parts, table.names)
        return shaped(np.concatenate(parts), model)
    scores = np.empty((table.shape[0], coef.shape[0]))
    for k, row in enumerate(coef):
        whole = np.append(row, 0.0) if table.ones else row
        for start in range(0, table.shape[0], ROWS_PER_CHUNK):
            _cancel.check_cancelled()
            rows = slice_rows(table.table.rows, start, min(start + ROWS_PER_CHUNK, table.shape[0]))
            scores[start : start + ROWS_PER_CHUNK, k] = products(rows, whole)
            table.table.release()
    return shaped(scores, model)


def finite_margins(coef: np.ndarray, part: Any) -> Any:
    """X coefᵀ of a block of rows; where it has NaN or infinity, what :func:`where_not_finite` returns."""
    margins = np.asarray(part @ coef.T)
    if np.isfinite(margins).all():
        return margins
    marks = where_not_finite(part)
    return marks if marks.nnz else margins


def where_not_finite(part: Any) -> scipy.sparse.csr_array:
    """A block of rows with nothing but its NaN and infinities, as NaN."""
    entries = scipy.sparse.coo_array(part if scipy.sparse.issparse(part) else ~np.isfinite(part))
    bad = ~np.isfinite(entries.data) if scipy.sparse.issparse(part) else entries.data
    where = (entries.row[bad], entries.col[bad])
    return scipy.sparse.csr_array((np.full(where[0].size, np.nan), where), shape=part.shape)


def refuse_not_finite(parts: list[Any], names: Any) -> None:
    """Raise where blocks have NaN or infinity: some of `parts` are what :func:`where_not_finite` returns."""
    marks = [part for part in parts if scipy.sparse.issparse(part)]
    if not marks:
        return
    width = marks[0].shape[1]
    blocks = [part if scipy.sparse.issparse(part) else scipy.sparse.csr_array((len(part), width)) for part in parts]
    error = located(scipy.sparse.vstack(blocks, format="csr"), None if names is None else list(names))
    if error is not None:
        raise error


def _known_columns(frame: Any, known: Any) -> Any:
    """The columns of a LazyFrame that a model was fitted on; an error where one is missing."""
    if known is None:
        return frame
    names = list(frame.collect_schema().names())
    for name in known:
        if name not in names:
            raise NoColumnError(f"X: {no_column(str(name), names)}")
    return frame.select(list(known))


def _lazy_scores(model: Any, frame: Any, coef: np.ndarray, known: Any) -> np.ndarray:
    """Scores of the rows of a LazyFrame, which are written to a file that is read a block at a time."""
    work = temporary_folder("lazy-")
    try:
        frame.sink_parquet(work / "table.parquet")
        with named_x(work / "table.parquet"):
            return shaped(_source_scores(model, work / "table.parquet", coef, known), model)
    finally:
        remove_working(work)


def _source_scores(model: Any, X: Any, coef: np.ndarray, known: Any) -> np.ndarray:
    """Scores of the rows of a file that is read once, a block at a time; it need not have targets."""
    path, dropped = as_stored(X).path, as_stored(X).dropped
    if not path.exists():
        raise FileNotFoundError(f"{path}: there is no such file or folder")
    wanted = Columns(features=None if known is None else tuple(map(str, known)), labelled=False, dropped=dropped)
    number = model.n_features_in_ if kind_of(path) == "svmlight" else None
    parts, rows = [], 0
    source = open_source(path, wanted, columns=number)
    for block in source.blocks(0, 0):
        _cancel.check_cancelled()
        if block.X.shape[1] != model.n_features_in_:
            expected = f"{type(model).__name__} expects {model.n_features_in_}"
            raise ValueError(f"{path}: it has {block.X.shape[1]} features, but {expected}")
        if (error := located(block.X, source.names, rows)) is not None:
            raise error
        rows += block.X.shape[0]
        parts.append(np.asarray(block.X @ coef.T))
    return np.concatenate(parts) if parts else np.empty((0, coef.shape[0]))


def shaped(scores: np.ndarray, model: Any) -> np.ndarray:
    """Scores of all problems of a model, with its intercept."""
    return (scores if np.ndim(model.coef_) == 2 else scores[:, 0]) + model.intercept_


def products(rows: Any, x: np.ndarray) -> np.ndarray:
    """aᵢ·x of each row."""
    out = np.empty(rows.shape[0])
    multiply(rows, x, out)
    return out

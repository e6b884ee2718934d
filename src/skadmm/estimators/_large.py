"""Tables that stay where they are: a folder of blocks, or a Dask collection."""

from __future__ import annotations

from typing import Any

import numpy as np

from skadmm import _cancel
from skadmm.backends import FileBlocks, as_folder, is_dask, is_folder
from skadmm.backends.slicing import slice_rows
from skadmm.estimators._design import Design
from skadmm.kernels.rows import multiply

ENTRIES_PER_CHUNK = 16_384
"""Rows of a folder whose scores are computed at a time."""


class LargeTable:
    """What the estimators see of such a table: its shape, without a column of ones."""

    def __init__(self, table: Any) -> None:
        self.table, self.names, self.ones = table, None, False
        if isinstance(table, FileBlocks):
            self.names, self.ones = table.names, table.ones
            self.shape = (table.n, table.d - int(table.ones))
        else:
            self.shape = table.shape
        if self.names is not None:
            self.names = self.names[: self.shape[1]]


def is_large(X: Any) -> bool:
    """Is it a table of that kind?"""
    return is_folder(X) or is_dask(X)


def refuse_large(X: Any, what: str) -> None:
    """For what copies rows about."""
    if is_large(X):
        raise TypeError(f"X: {what} takes a table in memory; fit takes folders of blocks and Dask collections")


def read_large(model: Any, X: Any, y: Any, sample_weight: Any) -> tuple[LargeTable, Any, Any]:
    """The table, the targets and the weights; what the estimator knows of its features, onto `model`."""
    if is_folder(X):
        folder = as_folder(X)
        table = LargeTable(folder)
        y = folder.target if y is None else np.asarray(y)
        sample_weight = folder.sample_weight if sample_weight is None else np.asarray(sample_weight, dtype=float)
        if y is None or y.shape != (table.shape[0],):
            raise ValueError(f"y has shape {np.shape(y)}: it takes a vector of length {table.shape[0]}")
    else:
        if isinstance(X, (list, tuple)):
            raise TypeError("X is a list of delayed blocks: the estimators take a dask.array or a dask.dataframe")
        table = _from_dask(X)
        y, sample_weight = _as_array(y), _as_array(sample_weight)
        if y is None:
            raise ValueError("y=None: it takes a vector with an entry for each row of X")
    model.n_features_in_ = int(table.shape[1])
    model.__dict__.pop("feature_names_in_", None)
    if table.names is not None:
        model.feature_names_in_ = np.asarray(table.names, dtype=object)
    return table, y, sample_weight


def _from_dask(X: Any) -> LargeTable:
    table = LargeTable(_as_array(X))
    table.names = [str(column) for column in X.columns] if hasattr(X, "columns") else None
    return table


def _as_array(collection: Any) -> Any:
    return collection.to_dask_array(lengths=True) if hasattr(collection, "to_dask_array") else collection


def classes_of(y: Any) -> np.ndarray:
    """The classes in `y`, in order."""
    if not is_dask(y):
        return np.unique(y)
    import dask.array as da

    return np.asarray(da.unique(y).compute())


def mean_of(y: Any, weight: Any) -> float:
    """The weighted mean of `y`."""
    if not is_dask(y):
        return float(np.average(y, weights=weight))
    return float((y.mean() if weight is None else (y * weight).sum() / weight.sum()).compute())


def large_design(table: LargeTable, *, fit_intercept: bool, standardize: bool) -> Design:
    """The table as the solver sees it; refused where that would mean to copy it."""
    d = table.shape[1]
    if standardize:
        raise ValueError("standardize=True: a table on disk or on Dask is not copied; scale its columns beforehand")
    if isinstance(table.table, FileBlocks) and fit_intercept != table.ones:
        wanted = "has no column of ones: convert it with --ones, or give fit_intercept=False"
        unwanted = "has a column of ones: convert it without --ones, or give fit_intercept=True"
        raise ValueError(f"fit_intercept={fit_intercept}: the folder {wanted if fit_intercept else unwanted}")
    return Design(table.table, np.ones(d), fit_intercept)


def large_scores(model: Any, X: Any) -> np.ndarray:
    """X coefᵀ + intercept, block by block."""
    table = LargeTable(as_folder(X)) if is_folder(X) else _from_dask(X)
    if table.shape[1] != model.n_features_in_:
        raise ValueError(f"X has {table.shape[1]} features, but {type(model).__name__} expects {model.n_features_in_}")
    known = getattr(model, "feature_names_in_", None)
    if table.names is not None and known is not None and list(table.names) != list(known):
        j = next(j for j, name in enumerate(table.names) if name != known[j])
        raise ValueError(f"X has the column {table.names[j]!r} where {type(model).__name__} was fitted on {known[j]!r}")
    coef = np.atleast_2d(np.asarray(model.coef_, dtype=float))
    if not isinstance(table.table, FileBlocks):
        scores = np.asarray((table.table @ coef.T).compute())
    else:
        scores = np.empty((table.shape[0], coef.shape[0]))
        for k, row in enumerate(coef):
            whole = np.append(row, 0.0) if table.ones else row
            for start in range(0, table.shape[0], ENTRIES_PER_CHUNK):
                _cancel.check_cancelled()
                rows = slice_rows(table.table.rows, start, min(start + ENTRIES_PER_CHUNK, table.shape[0]))
                scores[start : start + ENTRIES_PER_CHUNK, k] = products(rows, whole)
    return (scores if np.ndim(model.coef_) == 2 else scores[:, 0]) + model.intercept_


def products(rows: Any, x: np.ndarray) -> np.ndarray:
    """aᵢ·x of each row."""
    out = np.empty(rows.shape[0])
    multiply(rows, x, out)
    return out

"""Large tables before they are fitted: columns of levels are encoded, and rows come where the solver needs them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from skadmm.backends import Processes, is_dask
from skadmm.backends.levels import Encoding
from skadmm.backends.named_columns import is_folder, less_columns, vectors_of
from skadmm.backends.raw import RawTable, raw_table
from skadmm.backends.readers import Columns
from skadmm.backends.sources import StoredTable
from skadmm.estimators._categories import check_unknown, forget, levels_of, store_levels, stored_encoding
from skadmm.estimators._large import brought_here, finite_margins, is_large, refuse_not_finite, set_features, shaped


def rows_of(model: Any, X: Any, y: Any, sample_weight: Any, offset: Any, drop: Any = None) -> tuple[Any, Any, Any, Any]:
    """X, y, the weights and the offset as the fit takes them: columns that `drop` names are left out, those that are
    given by their names are read, those of levels in a large table are encoded, and its rows are in this process where
    the model needs solvers that read them.
    """
    given = {"y": y, "sample_weight": sample_weight, "offset": offset}
    if drop is not None:
        X, given["y"] = less_columns(X, drop, given, "y")
    names = given["y"]
    X, given = vectors_of(X, given, "y")
    y, sample_weight, offset = given.values()
    if isinstance(names, (list, tuple)) and isinstance(y, np.ndarray) and y.ndim == 2 and _are_names(names):
        y = pd.DataFrame(y, columns=list(names))  # outputs keep their names, by which `task_graph` may join them
    if is_large(X):
        forget(model)
        if model.categorical_features is not None:
            X, y, sample_weight = _encoded(model, X, y, sample_weight)
    return brought_here(model, X, y, sample_weight, offset)


def _are_names(names: Sequence[Any]) -> bool:
    return all(isinstance(name, str) for name in names)


def _encoded(model: Any, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
    """The table with indicator columns; the levels found are stored on `model`."""
    check_unknown(model)
    target, weight = (name if isinstance(name, str) else None for name in (y, sample_weight))
    file = _is_file(X)
    labelled = target is not None or (y is None and not isinstance(X, StoredTable))
    raw = raw_table(X, Columns(target, weight, labelled=labelled) if file else Columns())
    levels = levels_of(model.categorical_features, raw.width, raw.names, raw.dtypes(), raw.seen)
    encoding = store_levels(model, levels, raw.width, raw.names)
    set_features(model, raw.width, raw.names)
    table = raw.encoded(encoding, ones=model.fit_intercept is not False)
    if file:  # what was named is part of the folder now
        y, sample_weight = (None if isinstance(given, str) else given for given in (y, sample_weight))
    return table, y, sample_weight


def _is_file(X: Any) -> bool:
    """Is it a table whose columns are chosen by their names?"""
    return not (isinstance(X, Processes) or is_dask(X) or is_folder(X))


def encoded_scores(model: Any, X: Any) -> np.ndarray:
    """X coefᵀ + intercept of a large table with columns of levels, block by block."""
    encoding = stored_encoding(model)
    known = None if encoding.names is None else tuple(encoding.names)
    raw = raw_table(X, Columns(features=known, labelled=False))
    _check_features(model, raw, encoding)
    coef = np.atleast_2d(np.asarray(model.coef_, dtype=float))
    parts = raw.mapped(partial(finite_margins, coef), encoding)
    refuse_not_finite(parts, encoding.names_out)
    return shaped(np.concatenate(parts), model)


def _check_features(model: Any, raw: RawTable, encoding: Encoding) -> None:
    name = type(model).__name__
    if raw.width != encoding.width:
        raise ValueError(f"X has {raw.width} features, but {name} expects {encoding.width}")
    for given, known in zip(raw.names or (), encoding.names or (), strict=False):
        if given != known:
            raise ValueError(f"X has the column {given!r} where {name} was fitted on {known!r}")

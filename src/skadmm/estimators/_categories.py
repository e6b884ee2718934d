"""categorical_features=: columns of levels as sparse indicator columns, and the edges or groups over their levels.

Every level has a column of its own; none is left out as a reference. A constant could be moved between the levels and
the intercept; the share of the ℓ1 norm determines it. The coefficients are therefore deviations from the intercept, and
fused levels without an effect are exactly zero.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.utils.validation import _check_feature_names, _check_n_features, check_array, check_X_y

from skadmm.backends.frames import is_pandas, is_polars
from skadmm.estimators._graphs import FeatureGraph

MAX_PAIRED_LEVELS = 500
"""The maximum number of unordered levels of which all pairs become edges."""
UNKNOWN = ("error", "ignore")


class Levels(NamedTuple):
    """The levels of one column."""

    values: list[Any]
    ordered: bool


def reading(model: Any, X: Any, y: Any, options: dict[str, Any]) -> tuple[Any, Any]:
    """Validate y and encode X; the levels found are stored on `model`. With ``reset=False`` in `options` and no y, only
    X is returned, encoded as in the fit."""
    if sp.issparse(X) or not (is_pandas(X) or is_polars(X) or isinstance(X, (np.ndarray, list, tuple))):
        raise TypeError(f"categorical_features: X is a {type(X).__name__}; it takes a DataFrame or an array")
    if model.handle_unknown not in UNKNOWN:
        raise ValueError(f"handle_unknown={model.handle_unknown!r}: it takes 'error' or 'ignore'")
    if isinstance(X, (list, tuple)):
        X = np.array(X, dtype=object)
    if np.ndim(X) != 2:
        raise ValueError(f"X has {np.ndim(X)} dimensions: it takes a table")
    options = dict(options)
    reset = options.pop("reset", True)
    _check_feature_names(model, X, reset=reset)
    _check_n_features(model, X, reset=reset)
    names = [str(name) for name in X.columns] if hasattr(X, "columns") else None
    if reset:
        levels = levels_of(model.categorical_features, X, names)
        model.categories_ = {key: np.array(entry.values, dtype=object) for key, entry in levels.items()}
        model.ordered_categories_ = [key for key, entry in levels.items() if entry.ordered]
        model.feature_names_out_ = np.array(names_out(levels, X.shape[1], names), dtype=object)
    table = encoded(X, names, model.categories_, model.handle_unknown)
    if y is None and not reset:
        return check_array(table, accept_sparse="csr", dtype=np.float64, ensure_min_samples=1), None
    return check_X_y(table, y, **{key: value for key, value in options.items() if key != "order"})


def levels_of(given: Any, X: Any, names: list[str] | None) -> dict[Any, Levels]:
    """The levels of each categorical column, by its name, or by its number where columns have none."""
    found = {}
    for j, asked in _asked(given, X, names).items():
        found[j if names is None else names[j]] = _levels(_column(X, j), asked, j if names is None else names[j])
    return found


def _asked(given: Any, X: Any, names: list[str] | None) -> dict[int, Any]:
    """The numbers of the categorical columns, each with its value in a dict, or None where no dict was given."""
    d = X.shape[1]
    if isinstance(given, str):
        if given != "from_dtype":
            raise ValueError(
                f"categorical_features={given!r}: it takes 'from_dtype', names or numbers of columns, a mask, or a dict"
            )
        if names is None:
            raise ValueError("categorical_features='from_dtype' takes a DataFrame, whose columns have dtypes")
        return {j: None for j in range(d) if _dtype_levels(_column(X, j)) is not None}
    if isinstance(given, Mapping):
        return {_number(key, d, names): value for key, value in given.items()}
    keys = list(given) if np.iterable(given) else [given]
    if len(keys) == d and all(isinstance(key, (bool, np.bool_)) for key in keys):
        return {j: None for j in range(d) if keys[j]}
    return {_number(key, d, names): None for key in keys}


def _number(key: Any, d: int, names: list[str] | None) -> int:
    if isinstance(key, str):
        if names is None or key not in names:
            raise ValueError(f"categorical_features has {key!r}, which is not among the columns of X")
        return names.index(key)
    if isinstance(key, (int, np.integer)) and not isinstance(key, bool) and 0 <= key < d:
        return int(key)
    raise ValueError(f"categorical_features has {key!r}: it takes names of columns, or numbers in 0 … {d - 1}")


def _column(X: Any, j: int) -> Any:
    if is_pandas(X):
        return X.iloc[:, j]
    return X.get_column(X.columns[j]) if is_polars(X) else X[:, j]


def _dtype_levels(column: Any) -> Levels | None:
    """The levels of a column's categorical dtype; None where the dtype is another."""
    dtype: Any = getattr(column, "dtype", None)
    if isinstance(dtype, pd.CategoricalDtype):
        return Levels(dtype.categories.tolist(), bool(dtype.ordered))
    kind = type(dtype).__name__
    if kind == "Enum":  # polars: a fixed list of levels in a given order
        return Levels(list(dtype.categories), True)
    return Levels([], False) if kind == "Categorical" else None


def _levels(column: Any, asked: Any, name: Any) -> Levels:
    """The levels of a column: those of an ordered dtype, or those that occur, in the order of the dtype or sorted."""
    known = _dtype_levels(column)
    if asked not in (None, "ordered", "unordered"):
        if isinstance(asked, str) or not np.iterable(asked):
            raise ValueError(
                f"categorical_features[{name!r}]={asked!r}: it takes 'ordered', 'unordered' or the levels in order"
            )
        return Levels(list(asked), True)
    ordered = asked == "ordered" if asked is not None else known is not None and known.ordered
    if known is not None and known.values and ordered:
        return Levels(known.values, True)
    values = _values(column)
    seen = set(values[~pd.isna(values)].tolist())
    if not seen:
        raise ValueError(f"X has no level in the categorical column {name!r}: all its values are missing")
    if known is not None and known.values:
        return Levels([value for value in known.values if value in seen], ordered)
    try:
        return Levels(sorted(seen), ordered)
    except TypeError:
        return Levels(sorted(seen, key=str), ordered)


def _values(column: Any) -> np.ndarray:
    values = column.to_list() if hasattr(column, "to_list") else column.tolist()
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def names_out(levels: Mapping[Any, Levels], d: int, names: list[str] | None) -> list[str]:
    """The names of the encoded columns: "column=level", or the column's own name."""
    found: list[str] = []
    for j in range(d):
        key = j if names is None else names[j]
        shown = f"x{j}" if names is None else names[j]
        found += [f"{shown}={level}" for level in levels[key].values] if key in levels else [shown]
    return found


def encoded(X: Any, names: list[str] | None, categories: Mapping[Any, np.ndarray], unknown: str) -> sp.csr_array:
    """The table with an indicator column for each level. Unknown levels and missing values raise, or give rows of zeros
    with `unknown` = "ignore"."""
    blocks = []
    for j in range(X.shape[1]):
        key, column = j if names is None else names[j], _column(X, j)
        if key in categories:
            blocks.append(_indicators(_values(column), categories[key], unknown, key))
            continue
        try:
            values = np.asarray(column, dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError(
                f"X has the column {key!r}, which does not hold numbers: name it in categorical_features"
            ) from None
        if not np.isfinite(values).all():
            raise ValueError(f"X contains NaN or infinity in the column {key!r}")
        blocks.append(sp.csr_array(values[:, None]))
    return sp.csr_array(sp.hstack(blocks, format="csr"), dtype=np.float64)


def _indicators(values: np.ndarray, levels: np.ndarray, unknown: str, name: Any) -> sp.csr_array:
    codes = pd.Index(levels, dtype=object).get_indexer(pd.Index(values, dtype=object))
    missing = np.flatnonzero(codes < 0)
    if missing.size and unknown == "error":
        first = values[missing[0]]
        what = "a missing value" if pd.isna(first) else f"the level {first!r}, which the fit has not seen,"
        raise ValueError(
            f"X has {what} in the categorical column {name!r}, row {missing[0]}: handle_unknown='ignore' gives such "
            "rows no level"
        )
    rows = np.flatnonzero(codes >= 0)
    return sp.csr_array((np.ones(rows.size), (rows, codes[rows])), shape=(values.size, levels.size))


def columns_of(categories: Mapping[Any, Any], d: int, names: Sequence[Any] | None) -> dict[Any, np.ndarray]:
    """The encoded columns of each categorical column; `d` input columns."""
    found, start = {}, 0
    for j in range(d):
        key = j if names is None else names[j]
        width = len(categories[key]) if key in categories else 1
        if key in categories:
            found[key] = np.arange(start, start + width)
        start += width
    return found


def level_graph(model: Any) -> FeatureGraph:
    """The edges between levels: a chain along ordered ones, all pairs of unordered ones with weights 2/K, so that K
    levels weigh as much as a chain of K."""
    names = getattr(model, "feature_names_in_", None)
    edges, weights = [np.empty((0, 2), np.int64)], [np.empty(0)]
    for key, columns in columns_of(model.categories_, model.n_features_in_, names).items():
        if key in model.ordered_categories_:
            edges.append(np.column_stack([columns[:-1], columns[1:]]))
            weights.append(np.ones(columns.size - 1))
            continue
        if columns.size > MAX_PAIRED_LEVELS:
            raise ValueError(
                f"the categorical column {key!r} has {columns.size} unordered levels: all pairs of more than "
                f"{MAX_PAIRED_LEVELS} are too many edges; give it an order, or use a group lasso"
            )
        first, second = np.triu_indices(columns.size, 1)
        edges.append(np.column_stack([columns[first], columns[second]]))
        weights.append(np.full(first.size, 2.0 / columns.size))
    joined = np.concatenate(edges)
    shown = np.array([str(name) for name in model.feature_names_out_], dtype=str)
    return FeatureGraph(joined, np.concatenate(weights), np.ones(len(joined)), shown)


def level_groups(model: Any) -> list[np.ndarray]:
    """The levels of each categorical column as a group, and every other column as one of its own."""
    names = getattr(model, "feature_names_in_", None)
    groups = list(columns_of(model.categories_, model.n_features_in_, names).values())
    inside = np.concatenate([np.empty(0, np.int64), *groups])
    others = np.setdiff1d(np.arange(len(model.feature_names_out_)), inside)
    return sorted([*groups, *(np.array([j]) for j in others)], key=lambda group: int(group[0]))


def forget(model: Any) -> None:
    """Remove the levels that an earlier fit stored."""
    for name in ("categories_", "ordered_categories_", "feature_names_out_"):
        model.__dict__.pop(name, None)


def feature_names(model: Any) -> Any:
    """The names of the columns that coefficients belong to; None where they have none."""
    return getattr(model, "feature_names_out_", getattr(model, "feature_names_in_", None))

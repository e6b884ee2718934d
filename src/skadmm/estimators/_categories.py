"""categorical_features=: columns of levels as sparse indicator columns, and the edges or groups over their levels.

Every level has a column of its own; none is left out as a reference. A constant could be moved between the levels and
the intercept; the share of the ℓ1 norm determines it. The coefficients are therefore deviations from the intercept, and
fused levels without an effect are exactly zero.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import _check_feature_names, _check_n_features, check_array, check_X_y

from skadmm.backends.frames import from_arrow, is_pandas, is_polars
from skadmm.backends.levels import Encoding, Levels, Seen, categorical_columns, seen_columns, seen_levels
from skadmm.estimators._graphs import FeatureGraph

MAX_PAIRED_LEVELS = 500
"""The maximum number of unordered levels of which all pairs become edges."""
UNKNOWN = ("error", "ignore")


def reading(model: Any, X: Any, y: Any, options: dict[str, Any]) -> tuple[Any, Any]:
    """Validate y and encode X; the levels found are stored on `model`. With ``reset=False`` in `options` and no y, only
    X is returned, encoded as in the fit."""
    X = from_arrow(X)
    if sp.issparse(X) or not (is_pandas(X) or is_polars(X) or isinstance(X, (np.ndarray, list, tuple))):
        raise TypeError(f"categorical_features: X is a {type(X).__name__}; it takes a DataFrame or an array")
    check_unknown(model)
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
        d, dtypes = int(X.shape[1]), categorical_columns(X)
        levels = levels_of(model.categorical_features, d, names, dtypes, lambda columns: seen_columns(columns, X))
        table = store_levels(model, levels, d, names)(X)
    else:
        table = Encoding(names, int(X.shape[1]), model.categories_, model.handle_unknown)(X)
    if y is None and not reset:
        return check_array(table, accept_sparse="csr", dtype=np.float64, ensure_min_samples=1), None
    return check_X_y(table, y, **{key: value for key, value in options.items() if key != "order"})


def check_unknown(model: Any) -> None:
    """Raise where `handle_unknown` is not allowed."""
    if model.handle_unknown not in UNKNOWN:
        raise ValueError(f"handle_unknown={model.handle_unknown!r}: it takes 'error' or 'ignore'")


def store_levels(model: Any, levels: Mapping[Any, Levels], d: int, names: list[str] | None) -> Encoding:
    """Store the levels of `d` columns on `model`; returns their encoding."""
    model.categories_ = {key: np.array(entry.values, dtype=object) for key, entry in levels.items()}
    model.ordered_categories_ = [key for key, entry in levels.items() if entry.ordered]
    given = model.categorical_features
    wishes = given if isinstance(given, Mapping) else {}
    listed = {key if names is None or isinstance(key, str) else names[key] for key, wish in wishes.items()
              if wish is not None and not isinstance(wish, str)}  # fmt: skip
    encoding = Encoding(names, d, model.categories_, model.handle_unknown, tuple(listed))
    model.feature_names_out_ = np.array(encoding.names_out, dtype=object)
    return encoding


def stored_encoding(model: Any) -> Encoding:
    """The encoding of a fitted model."""
    names = getattr(model, "feature_names_in_", None)
    known = None if names is None else [str(name) for name in names]
    return Encoding(known, model.n_features_in_, model.categories_, model.handle_unknown)


def levels_of(
    given: Any, d: int, names: list[str] | None, dtypes: Mapping[int, Levels], seen: Callable[[list[int]], list[Seen]]
) -> dict[Any, Levels]:
    """The levels of each categorical column, by its name, or by its number where columns have none.

    Parameters
    ----------
    given : categorical_features
    d, names : the number of columns, and their names or None
    dtypes : dict
        The columns of a categorical dtype.
    seen : function of numbers of columns
        What the rows show of their levels.
    """
    asked = _asked(given, d, names, dtypes)
    keys = {j: j if names is None else names[j] for j in asked}
    found = {}
    open_columns = []
    for j, wish in asked.items():
        if wish in (None, "ordered", "unordered"):
            open_columns.append(j)
        elif isinstance(wish, str) or not np.iterable(wish):
            raise ValueError(
                f"categorical_features[{keys[j]!r}]={wish!r}: it takes 'ordered', 'unordered' or the levels in order"
            )
        else:
            found[j] = Levels(list(wish), True)
    for j, one in zip(open_columns, seen(open_columns) if open_columns else [], strict=True):
        ordered = asked[j] == "ordered" if asked[j] is not None else one.known is not None and one.known.ordered
        found[j] = Levels(seen_levels(one, ordered, keys[j]), ordered)
    return {keys[j]: found[j] for j in asked}


def _asked(given: Any, d: int, names: list[str] | None, dtypes: Mapping[int, Levels]) -> dict[int, Any]:
    """The numbers of the categorical columns, each with its value in a dict, or None where no dict was given."""
    if isinstance(given, str):
        if names is not None and given in names and given != "from_dtype":
            return {names.index(given): None}
        if given != "from_dtype":
            raise ValueError(
                f"categorical_features={given!r}: it takes 'from_dtype', names or numbers of columns, such as "
                "['plan'], a mask, or a dict"
            )
        if names is None:
            raise ValueError("categorical_features='from_dtype' takes a DataFrame, whose columns have dtypes")
        return dict.fromkeys(dtypes)
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


def level_groups(model: Any) -> dict[str, np.ndarray]:
    """The levels of each categorical column as a group, and every other column as one of its own, by the columns'
    names."""
    names = getattr(model, "feature_names_in_", None)
    levels = columns_of(model.categories_, model.n_features_in_, names)
    groups, start = {}, 0
    for j in range(model.n_features_in_):
        key = j if names is None else names[j]
        columns = levels.get(key, np.array([start]))
        groups[f"x{j}" if names is None else str(key)] = columns
        start += columns.size
    return groups


def forget(model: Any) -> None:
    """Remove the levels that an earlier fit stored."""
    for name in ("categories_", "ordered_categories_", "feature_names_out_"):
        model.__dict__.pop(name, None)


def feature_names(model: Any) -> Any:
    """The names of the columns that coefficients belong to; None where they have none."""
    return getattr(model, "feature_names_out_", getattr(model, "feature_names_in_", None))

"""The positions of a trend: what they may be, and the messages where they are something else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from skadmm.backends.frames import dates_as_numbers, holds_dates, is_pandas, is_polars, texts_as_dates
from skadmm.backends.kinds import is_dask
from skadmm.backends.named_columns import column_names, computed, is_folder, read_columns, read_frame
from skadmm.backends.sources import is_stored


def numbers_of(X: Any, *, fitting: bool = True, after_dates: bool = False) -> Any:
    """Positions as numbers, dates as nanoseconds; X itself where it has more columns than one.

    Raises where they are texts or periods, where dates are missing, where X has one dimension, and where the fit was on
    dates, which `after_dates` says, and X holds something else.
    """
    if len(getattr(X, "shape", ())) == 1:
        takes, values = ("fit(X, y) takes positions X", ", and values y") if fitting else ("it takes positions", "")
        raise ValueError(
            f"X is a {type(X).__name__} of shape {X.shape}: {takes} of shape (n, 1), such as np.arange(n)[:, None] or "
            f"a DataFrame with a column of dates{values}"
        )
    _refuse_texts(X)
    if after_dates and not holds_dates(X):
        raise ValueError(
            "X holds no dates, and the model was fitted on dates: pd.to_datetime turns nanoseconds "
            "since 1970, such as knots_, into dates"
        )
    numbers = dates_as_numbers(X)
    if numbers is not X:
        _refuse_missing(X, np.asarray(numbers))
    return numbers


def read_positions(X: Any, known: Any = None) -> Any:
    """The column of positions of a large table with named columns as a DataFrame, so that they may be dates; None where
    X is another table, or has several columns, none of which is the `known` one. Texts such as 2024-01-31 are dates."""
    on_dask = is_dask(X) and hasattr(X, "columns")
    if not on_dask and (not is_stored(X) or is_folder(X)):
        return None
    names = [str(name) for name in X.columns] if on_dask else column_names(X)
    if known is not None and len(known) == 1 and known[0] in names:
        names = list(known)
    if len(names) != 1:
        return None
    frame = X[names].compute() if on_dask else read_frame(X, names)
    return texts_as_dates(frame) if is_pandas(frame) else frame


def positions_and_targets(X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
    """X, y and the weights in memory, where X is a large table with named columns and one of them is left for
    positions; else as they are. The signal has a coefficient at each position, which is in memory in any case."""
    if not is_stored(X) or is_folder(X):
        positions = read_positions(X)
        return (X, y, sample_weight) if positions is None else (positions, computed(y), computed(sample_weight))
    names = column_names(X)
    target = names[-1] if y is None and names else y
    vectors = [name for name in (target, sample_weight) if isinstance(name, str)]
    left = [name for name in names if name not in vectors]
    if len(left) != 1 or not set(vectors) <= set(names):
        return X, y, sample_weight
    found = iter(read_columns(X, vectors) if vectors else [])
    y, sample_weight = (next(found) if isinstance(given, str) else given for given in (target, sample_weight))
    return read_positions(X, left), y, sample_weight


def _refuse_texts(X: Any) -> None:
    """Raise where positions are texts, periods or other objects; the general message would advise categories."""
    name = None
    if is_pandas(X) and len(X.columns) == 1:
        name, column = X.columns[0], X.iloc[:, 0]
    elif is_polars(X) and len(X.columns) == 1:
        name = X.columns[0]
        column = X.get_column(name)
        if str(column.dtype) not in ("String", "Utf8", "Object", "Categorical", "Enum"):
            return
        column = pd.Series(column.to_list(), dtype=object)
    elif isinstance(X, (np.ndarray, list, tuple)):
        values = np.asarray(X) if isinstance(X, np.ndarray) else _as_objects(X)
        if values.ndim != 2 or values.shape[1] != 1 or values.dtype.kind not in "OUS":
            return
        column = pd.Series(values[:, 0], dtype=object)
    else:
        return
    where = "X holds positions" if name is None else f"X has the column {name!r}"
    if str(column.dtype).startswith("period"):
        raise ValueError(
            f"{where} of dtype {column.dtype}: positions are numbers or dates; "
            "X[name].dt.to_timestamp() turns periods into dates"
        )
    if getattr(column.dtype, "kind", "O") == "O" and not pd.to_numeric(column, errors="coerce").notna().any():
        raise ValueError(
            f"{where} of dtype {column.dtype}: positions are numbers or dates; pd.to_datetime turns texts into dates"
        )


def _as_objects(X: Any) -> np.ndarray:
    """A list of rows as an array of objects where its values are not numbers."""
    try:
        return np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError):
        return np.array(X, dtype=object)


def _refuse_missing(X: Any, numbers: np.ndarray) -> None:
    missing = np.flatnonzero(np.isnan(numbers).any(axis=1))
    if missing.size == 0:
        return
    where = f"the column {X.columns[0]!r} of X has" if hasattr(X, "columns") else "the positions in X have"
    what = "1 missing date" if missing.size == 1 else f"{missing.size:,} missing dates"
    first = f"in row {missing[0]:,}" if missing.size == 1 else f"the first in row {missing[0]:,}"
    raise ValueError(f"{where} {what} (NaT), {first}: leave out these rows, or fill in their dates")

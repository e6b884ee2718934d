"""Tables with named columns: of pandas, polars or pyarrow, or anything that exports an Arrow stream.

They are recognised by their methods, so that only the library of the table has to be installed (pyarrow for a stream).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

FLOATS = (np.dtype(np.float32), np.dtype(np.float64))


def for_sklearn(X: Any) -> Any:
    """A table of a library other than pandas as a pandas DataFrame, so that scikit-learn of any version finds names.

    Of a pandas DataFrame the columns are checked: scikit-learn's message would not name them.
    """
    if is_pandas(X):
        _check_pandas(X)
        return X
    frame = frame_values(X)
    if frame is None:
        return X
    import pandas as pd

    return pd.DataFrame(frame[0], columns=frame[1], copy=False)


def frame_values(X: Any, name: str = "X") -> tuple[np.ndarray, list[str]] | None:
    """The numbers in a table and the names of its columns; None where `X` is not such a table.

    float32 where all columns are, else float64. A missing value in a column of numbers is NaN.
    """
    if scipy.sparse.issparse(X) or isinstance(X, np.ndarray) or len(getattr(X, "shape", ())) == 1:  # or a Series
        return None
    if hasattr(X, "collect_schema") and not hasattr(X, "to_numpy"):
        raise TypeError(f"{name} is a {type(X).__name__}: it takes a table in memory; collect() it first")
    if is_pandas(X):
        return _pandas_values(X, name)
    if is_polars(X):
        return _assembled({column: _decimals(X.get_column(column).to_numpy()) for column in X.columns}, name)
    table = _arrow_table(X)
    return None if table is None else _arrow_values(table, name)


def from_arrow(X: Any) -> Any:
    """A table of pyarrow, or one that exports an Arrow stream, as a DataFrame of pandas, with dates and categories;
    other values as they are."""
    if isinstance(X, np.ndarray) or is_pandas(X) or is_polars(X) or len(getattr(X, "shape", ())) == 1:
        return X
    table = _arrow_table(X)
    return X if table is None else table.to_pandas()


def _arrow_table(X: Any) -> Any:
    """A table of pyarrow, a record batch of it, or what exports an Arrow stream, as a table of pyarrow; else None."""
    if hasattr(X, "__arrow_c_stream__") and not hasattr(X, "to_pylist"):
        import pyarrow as pa

        return pa.table(X)
    if hasattr(X, "column_names") and hasattr(X, "to_pylist"):
        import pyarrow as pa

        return X if isinstance(X, pa.Table) else pa.Table.from_batches([X])
    return None


def dates_as_numbers(X: Any) -> Any:
    """A column of dates or durations as nanoseconds, in float64; X itself where it is anything else.

    Dates count from 1970-01-01 (UTC where they have a time zone). NaT becomes NaN.
    """
    values = _times(X)
    if values is None:
        return X
    if isinstance(X, np.ndarray):
        return _nanoseconds(values)
    import pandas as pd

    return pd.DataFrame({X.columns[0]: _nanoseconds(values)})


def holds_dates(X: Any) -> bool:
    """Is X a column of dates, as :func:`dates_as_numbers` converts them?"""
    values = _times(X)
    return values is not None and values.dtype.kind == "M"


def texts_as_dates(X: Any) -> Any:
    """A DataFrame of pandas with columns of texts as dates, where all of them are dates as in 2024-01-31 or 2024-01-31
    12:00."""
    import pandas as pd

    for name in X.select_dtypes(exclude=["number", "bool", "datetime", "datetimetz"]).columns:
        try:
            X = X.assign(**{name: pd.to_datetime(X[name], format="ISO8601", utc=True)})
        except (ValueError, TypeError):
            continue
    return X


def as_dates(nanoseconds: np.ndarray) -> np.ndarray:
    """The dates of positions that :func:`dates_as_numbers` made, to the millisecond."""
    return np.round(np.asarray(nanoseconds, dtype=np.float64) / 1e6).astype("datetime64[ms]")


def dates_in_words(nanoseconds: np.ndarray) -> list[str]:
    """The same as texts, without the time of day where all are midnight."""
    texts = np.datetime_as_string(as_dates(nanoseconds), unit="ms").tolist()
    for ending in (".000", "T00:00:00"):
        if all(text.endswith(ending) for text in texts):
            texts = [text.removesuffix(ending) for text in texts]
    return [text.replace("T", " ") for text in texts]


def _times(X: Any) -> np.ndarray | None:
    """A column of dates or durations as an array of NumPy's dtypes for them; None where X is anything else."""
    if isinstance(X, np.ndarray):
        values = X
    elif is_polars(X) and len(X.columns) == 1:
        values = X.get_column(X.columns[0]).to_numpy()
    elif is_pandas(X) and len(X.columns) == 1:
        dtype = X.dtypes.iloc[0]
        kind = getattr(dtype, "kind", "O")
        # Other dtypes than NumPy's: with a time zone, or those of Arrow.
        target = None if isinstance(dtype, np.dtype) else {"M": "datetime64[ns]", "m": "timedelta64[ns]"}.get(kind)
        values = X.iloc[:, 0].to_numpy(dtype=target) if kind in "mM" else np.empty(0)
    else:
        return None
    return values if values.dtype.kind in "mM" else None


def _nanoseconds(values: np.ndarray) -> np.ndarray:
    """Dates or durations of any unit as nanoseconds."""
    unit, count = np.datetime_data(values.dtype)
    if values.dtype.kind == "M" and unit in "YMW":
        values, unit, count = values.astype("datetime64[D]"), "D", 1
    factor = np.array(1, dtype=f"timedelta64[{count}{unit}]") / np.timedelta64(1, "ns")
    # A product of floats, because integers of nanoseconds end in the year 2262.
    return np.where(np.isnat(values), np.nan, values.astype(np.int64) * factor)


def is_pandas(X: Any) -> bool:
    """Is X a DataFrame of pandas, or of a library with the same interface?"""
    return not hasattr(X, "collect_schema") and hasattr(X, "columns") and hasattr(getattr(X, "dtypes", None), "items")


def is_polars(X: Any) -> bool:
    """Is X a DataFrame of polars?"""
    return hasattr(X, "get_column") and hasattr(X, "columns")


def _check_pandas(X: Any) -> None:
    """Raise where a name occurs twice, or where a column cannot be converted to numbers."""
    names = list(X.columns)
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"X has two columns named {twice!r}: each name must occur once")
    if all(getattr(dtype, "kind", "O") in "fiub" for dtype in set(X.dtypes)):
        return
    others = [f"{name!r} ({dtype})" for name, dtype in X.dtypes.items() if not _converts(X, name, dtype)]
    if others:
        shown = ", ".join(others[:5]) + (f", … ({len(others)} in all)" if len(others) > 5 else "")
        dates = any(getattr(dtype, "kind", "O") in "mM" for dtype in X.dtypes)
        more = ", and (X[name] - X[name].min()).dt.days turns dates into numbers" if dates else ""
        raise ValueError(
            f"X has columns that are not numbers: {shown}. Encode or drop them; categorical_features takes categories"
            f"{more}"
        )


def _converts(X: Any, name: Any, dtype: Any) -> bool:
    """Does a column convert to numbers? Dates have no unit of their own: only trends take them."""
    if getattr(dtype, "kind", "O") in "mM":
        return False
    try:
        X[name].astype(np.float64)
    except (TypeError, ValueError):
        return getattr(dtype, "kind", "O") in "fiub"  # missing values have a message of their own
    return True


def _pandas_values(X: Any, name: str) -> tuple[np.ndarray, list[str]]:
    others = [str(column) for column, dtype in X.dtypes.items() if getattr(dtype, "kind", "O") not in "fiub"]
    _refuse(others, name)
    kinds = set(X.dtypes)
    plain = len(kinds) == 1 and next(iter(kinds)) in FLOATS
    return X.to_numpy() if plain else X.to_numpy(dtype=np.float64), [str(column) for column in X.columns]


def _arrow_values(table: Any, name: str) -> tuple[np.ndarray, list[str]]:
    names = table.column_names
    if len(set(names)) < len(names):
        twice = next(column for column in names if names.count(column) > 1)
        raise ValueError(f"{name} has two columns named {twice!r}: each name must occur once")
    return _assembled({column: _decimals(table.column(k).to_numpy()) for k, column in enumerate(names)}, name)


def _decimals(values: np.ndarray) -> np.ndarray:
    """A column of decimal numbers as float64; any other column as it is."""
    if values.dtype.kind != "O":
        return values
    from decimal import Decimal

    known = [value for value in values if value is not None]
    if not known or not all(isinstance(value, Decimal) for value in known):
        return values
    return np.array([np.nan if value is None else float(value) for value in values])


def _assembled(columns: dict[str, np.ndarray], name: str) -> tuple[np.ndarray, list[str]]:
    """Columns as one array, and their names."""
    _refuse([column for column, values in columns.items() if values.dtype.kind not in "fiub"], name)
    dtypes = {values.dtype for values in columns.values()}
    dtype = next(iter(dtypes)) if len(dtypes) == 1 and next(iter(dtypes)) in FLOATS else FLOATS[1]
    n = len(next(iter(columns.values()))) if columns else 0
    array = np.empty((n, len(columns)), dtype=dtype)
    for j, values in enumerate(columns.values()):
        array[:, j] = values
    return array, list(columns)


def _refuse(others: list[str], name: str) -> None:
    """Raise where there are columns that are not numbers."""
    if others:
        raise TypeError(f"{name} has columns that are not numbers: {', '.join(others[:5])}. Encode them first")

"""Columns of levels as sparse indicator columns: which levels there are, and the encoding of a block of rows.

Both work block by block: :func:`seen_in` of all blocks, united, says what the levels are, and an :class:`Encoding`
needs no other block than the one it encodes.
"""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from skadmm.backends.frames import is_pandas, is_polars
from skadmm.backends.not_finite import located

TRUTH = {"True": True, "TRUE": True, "true": True, "False": False, "FALSE": False, "false": False}
"""The texts that CSV readers take for truth values."""


class Levels(NamedTuple):
    """The levels of one column."""

    values: list[Any]
    ordered: bool


class Seen(NamedTuple):
    """What some rows show of the levels of a column."""

    known: Levels | None
    """The levels of its categorical dtype; None where the dtype is another."""
    values: frozenset[Any]
    """The values that occur."""
    missing: bool
    """Are there missing values?"""
    floats: bool
    """Are the values floating-point numbers?"""

    def united(self, other: Seen) -> Seen:
        """What these and other rows show."""
        known = self.known
        if known is not None and other.known is not None:
            new = [value for value in other.known.values if value not in set(known.values)]
            known = Levels(known.values + new, known.ordered)
        missing, floats = self.missing or other.missing, self.floats or other.floats
        return Seen(known, self.values | other.values, missing, floats)


def column_of(X: Any, j: int) -> Any:
    """Column j of a DataFrame or an array."""
    if is_pandas(X):
        return X.iloc[:, j]
    return X.get_column(X.columns[j]) if is_polars(X) else X[:, j]


def values_of(column: Any) -> np.ndarray:
    """The values of a column as Python objects."""
    values = column.to_list() if hasattr(column, "to_list") else column.tolist()
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def dtype_levels(column: Any) -> Levels | None:
    """The levels of a column's categorical dtype; None where the dtype is another."""
    import pandas as pd

    dtype: Any = getattr(column, "dtype", None)
    if isinstance(dtype, pd.CategoricalDtype):
        return Levels(dtype.categories.tolist(), bool(dtype.ordered))
    kind = type(dtype).__name__
    if kind == "Enum":  # polars: a fixed list of levels in a given order
        return Levels(list(dtype.categories), True)
    return Levels([], False) if kind == "Categorical" else None


def seen_in(column: Any) -> Seen:
    """What a column of some rows shows of its levels."""
    import pandas as pd

    values = values_of(column)
    missing = pd.isna(values)
    floats = getattr(getattr(column, "dtype", None), "kind", "O") == "f"
    return Seen(dtype_levels(column), frozenset(values[~missing].tolist()), bool(missing.any()), floats)


def united(parts: list[list[Seen]]) -> list[Seen]:
    """What all blocks show of some columns."""
    total = parts[0]
    for part in parts[1:]:
        total = [first.united(second) for first, second in zip(total, part, strict=True)]
    return total


def seen_columns(columns: list[int], X: Any) -> list[Seen]:
    """What the rows `X` show of some columns."""
    return [seen_in(column_of(X, j)) for j in columns]


def categorical_columns(X: Any) -> dict[int, Levels]:
    """The columns of a categorical dtype, each with its levels."""
    if not hasattr(X, "columns"):
        return {}
    found = ((j, dtype_levels(column_of(X, j))) for j in range(X.shape[1]))
    return {j: levels for j, levels in found if levels is not None}


def seen_levels(seen: Seen, ordered: bool, name: Any) -> list[Any]:
    """The levels of a column: those of an ordered dtype, or those that occur, in the order of the dtype or sorted."""
    known, values = seen.known, seen.values
    if known is not None and known.values and ordered:
        return known.values
    if not values:
        raise ValueError(f"X has no level in the categorical column {name!r}: all its values are missing")
    if known is not None and known.values:
        return [value for value in known.values if value in values]
    if seen.floats:
        values = frozenset(float(value) for value in values)
    try:
        return sorted(values)
    except TypeError:
        return sorted(values, key=str)


class Encoding(NamedTuple):
    """The table with an indicator column for each level in place of the columns of levels."""

    names: list[str] | None
    """The names of the columns before the encoding."""
    width: int
    """The number of columns before the encoding."""
    categories: Mapping[Any, np.ndarray]
    """The levels of each categorical column, by its name, or by its number where columns have none."""
    unknown: str
    """With "error", unknown levels and missing values raise; with "ignore" their rows have zeros."""
    listed: tuple[Any, ...] = ()
    """In a fit, the columns whose levels were given as a list."""

    def key(self, j: int) -> Any:
        """The name of column j, or its number."""
        return j if self.names is None else self.names[j]

    @property
    def names_out(self) -> list[str]:
        """The names of the encoded columns: "column=level", or the column's own name."""
        found: list[str] = []
        for j in range(self.width):
            key, shown = self.key(j), f"x{j}" if self.names is None else self.names[j]
            found += [f"{shown}={level}" for level in self.categories[key]] if key in self.categories else [shown]
        return found

    def digest(self) -> str:
        """A text that identifies the encoding."""
        about = [self.names, self.width, [(key, list(levels)) for key, levels in self.categories.items()], self.unknown]
        return hashlib.sha256(repr(about).encode()).hexdigest()

    def __call__(self, X: Any) -> sp.csr_array:
        """Encode some rows."""
        blocks: list[Any] = []
        numbers: list[np.ndarray] = []
        for j in range(self.width):
            key, column = self.key(j), column_of(X, j)
            if key not in self.categories:
                numbers.append(_as_numbers(column, key))
                continue
            if numbers:
                blocks.append(sp.csr_array(np.column_stack(numbers)))
                numbers = []
            blocks.append(_indicators(values_of(column), self.categories[key], self.unknown, key, key in self.listed))
        if numbers:
            blocks.append(sp.csr_array(np.column_stack(numbers)))
        return sp.csr_array(sp.hstack(blocks, format="csr"), dtype=np.float64)


def _as_numbers(column: Any, key: Any) -> np.ndarray:
    try:
        values = np.asarray(column, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"X has the column {key!r}, which does not hold numbers: name it in categorical_features"
        ) from None
    if not np.isfinite(values).all() and (error := located(values[:, None], [key])) is not None:
        raise error
    return values


def _indicators(values: np.ndarray, levels: np.ndarray, unknown: str, name: Any, listed: bool) -> sp.csr_array:
    import pandas as pd

    codes = pd.Index(levels, dtype=object).get_indexer(pd.Index(values, dtype=object))
    missing = np.flatnonzero(codes < 0)
    if missing.size and unknown == "error":
        first = values[missing[0]]
        reason = "which the list given in categorical_features lacks" if listed else "which the fit has not seen"
        what = "a missing value" if pd.isna(first) else f"the level {first!r}, {reason},"
        raise ValueError(
            f"X has {what} in the categorical column {name!r}, row {missing[0]}: handle_unknown='ignore' gives such "
            "rows no level"
        )
    rows = np.flatnonzero(codes >= 0)
    return sp.csr_array((np.ones(rows.size), (rows, codes[rows])), shape=(values.size, levels.size))


def typed(seen: Seen) -> Seen:
    """Levels that were read as texts, with the type that a CSV reader finds for the whole column."""
    import pandas as pd

    if not seen.values:
        return seen
    text = io.StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_ALL)
    writer.writerows([[value] for value in sorted(seen.values)] + [[""]] * seen.missing)
    text.seek(0)
    return seen_in(pd.read_csv(text, header=None).iloc[:, 0])


def as_levels(texts: Any, levels: np.ndarray) -> np.ndarray:
    """Texts of a column as values of the type of its levels; a text that has no such value stays a text."""
    import pandas as pd

    values = values_of(texts)
    if any(isinstance(level, str) for level in levels):
        return values
    if all(isinstance(level, (bool, np.bool_)) for level in levels):
        return np.array([TRUTH.get(value, value) for value in values], dtype=object)
    numbers = pd.to_numeric(pd.Series(values, dtype=object), errors="coerce").to_numpy(dtype=np.float64)
    return np.where(np.isnan(numbers), values, numbers.astype(object))

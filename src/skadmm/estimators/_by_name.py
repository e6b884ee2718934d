"""One number per feature, given as a number, an array, a dict by name, or a pandas Series by index."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from skadmm._names import nearest


def per_feature(given: Any, d: int, names: Sequence[Any] | None, role: str, default: float) -> np.ndarray:
    """`given` as an array of length `d`.

    Parameters
    ----------
    given : None, number, array-like, dict or pandas Series
        None is `default` everywhere. The keys of a dict or the index of a Series are names of columns, or column
        numbers where all of them are integers; features that are not among them have `default`. The name of a
        categorical column stands for all its levels.
    d : int
    names : sequence or None
        The names of the features, where they have any.
    role : str
        The name of the argument, for messages.
    default : float
    """
    if given is None:
        return np.full(d, default)
    if isinstance(given, Mapping) or (hasattr(given, "index") and hasattr(given, "items")):
        values = np.full(d, default)
        for key, value in given.items():
            values[positions(key, d, names, role)] = _number(value, role)
        return values
    if np.ndim(given) == 0:
        return np.full(d, _number(given, role))
    try:
        values = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"{role}={given!r}: it takes numbers, one per feature") from None
    if values.shape != (d,):
        raise ValueError(f"{role} has shape {values.shape}: it takes {d} numbers, one per feature")
    if np.isnan(values).any():
        raise ValueError(f"{role} holds NaN: it takes numbers")
    return values


def positions(key: Any, d: int, names: Sequence[Any] | None, role: str) -> list[int]:
    """The column numbers that a name, the name of a categorical column, or a column number stands for."""
    if isinstance(key, (int, np.integer)) and not isinstance(key, bool) and (names is None or key not in list(names)):
        if not 0 <= key < d:
            raise ValueError(f"{role} has the key {key!r}: it takes column numbers in 0 … {d - 1}")
        return [int(key)]
    if names is None:
        raise ValueError(f"{role} has the key {key!r}: to match names, X must be a DataFrame with such columns")
    found = [j for j, name in enumerate(names) if name == key]
    found = found or [j for j, name in enumerate(names) if str(name).startswith(f"{key}=")]
    if not found:
        guess = nearest(str(key), [str(name) for name in names])
        raise ValueError(f"{role} has the key {key!r}, which is not among the columns of X.{guess}")
    return found


def _number(value: Any, role: str) -> float:
    if isinstance(value, (bool, str)) or np.ndim(value) != 0:
        raise TypeError(f"{role} holds {value!r}: it takes numbers")
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{role} holds {value!r}: it takes numbers") from None
    if np.isnan(number):
        raise ValueError(f"{role} holds NaN: it takes numbers")
    return number

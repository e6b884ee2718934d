"""Names of columns that graphs and groups use, and names that X does not have."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Sequence
from numbers import Integral
from typing import Any

MODES = ("raise", "ignore")
LISTED = 100
"""A message lists this many unknown names."""
PACKAGES = ("skadmm", "sklearn")
"""Warnings show the line of the first caller outside these packages."""


def integer_names(X: Any) -> list[Any] | None:
    """The names of the columns of a table where all are integers; scikit-learn keeps names that are strings only."""
    columns = getattr(X, "columns", None)
    if columns is None:
        return None
    names = list(columns)
    return names if names and all(map(is_integer, names)) else None


def are_integers(names: Sequence[Any] | None) -> bool:
    """Return whether the columns are named by integers."""
    return names is not None and all(map(is_integer, names))


def is_integer(name: Any) -> bool:
    """Return whether a name is an integer, and not a boolean."""
    return isinstance(name, Integral) and not isinstance(name, bool)


def warn_missing_offset(model: str, method: str) -> None:
    """Warn that `method` of a model that was fitted with an offset got none; the warning shows the user's line."""
    warnings.warn(
        f"offset=None: this {model} was fitted with an offset, and {method} takes 0 for every row, which is one unit "
        f"of exposure where the offset is its logarithm. Give {method} the offset of these rows, or offset=0.0 where 0 "
        "is meant",
        stacklevel=users_level(),
    )


def check_mode(unknown: Any) -> bool:
    """Check `unknown`, and return whether names that X does not have are left out."""
    if unknown not in MODES:
        raise ValueError(f"unknown={unknown!r}: it takes 'raise' or 'ignore'")
    return bool(unknown == "ignore")


def refuse_unknown(what: str, unknown: Sequence[Any], stated: int) -> None:
    """Raise with all names that X does not have; `stated` is the number of different names that were given."""
    listed = ", ".join(map(repr, unknown[:LISTED]))
    more = f", … ({len(unknown) - LISTED} more)" if len(unknown) > LISTED else ""
    names = "name that is" if len(unknown) == 1 else f"names of {stated} that are"
    count = "a" if len(unknown) == 1 else str(len(unknown))
    raise ValueError(
        f"{what} has {count} {names} not among the columns of X: {listed}{more}. "
        "unknown='ignore' (--unknown ignore) leaves them out"
    )


def refuse_unmatched(nodes: Sequence[Any], columns: Sequence[Any]) -> None:
    """Raise where `unknown` leaves no edge of a graph: the model would be fitted without the graph."""
    shown = [", ".join(map(repr, names[:3])) + (", …" if len(names) > 3 else "") for names in (nodes, columns)]
    matched = set(nodes) & set(columns)
    alike = {str(name).casefold() for name in nodes} & {str(name).casefold() for name in columns}
    hint = ". Some of these names differ in upper and lower case only" if alike and not matched else ""
    raise ValueError(
        f"graph has no edge between two columns of X: its nodes are {shown[0]}, and the columns {shown[1]}. "
        f"unknown='ignore' takes a graph of which at least one edge is left{hint}"
    )


def warn_unknown(what: str, unknown: int, stated: int, dropped: str) -> None:
    """Warn that names were left out, with the counts and, unless it is empty, `dropped`: what else that removes. The
    warning shows the user's line."""
    clause = f", {dropped}" if dropped else ""
    warnings.warn(
        f"{what}: {unknown} of {stated} names are not among the columns of X and are left out{clause}",
        stacklevel=users_level(),
    )


def warn_ungrouped(columns: list[Any], d: int) -> None:
    """Warn that columns are in no group and therefore not penalised; the warning shows the user's line."""
    shown = ", ".join(map(repr, columns[:3])) + (", …" if len(columns) > 3 else "")
    warnings.warn(
        f"groups: {len(columns)} of {d} columns are in no group and are not penalised ({shown}). Give them groups of "
        "their own to penalise them, or penalty_factor=0 if this is meant",
        stacklevel=users_level(),
    )


def users_level() -> int:
    """The ``stacklevel`` for a warning in the calling function: that of the first frame outside this package and
    scikit-learn, whose decorators wrap ``fit``."""
    frame, level = inspect.currentframe(), 0
    while frame is not None and frame.f_globals.get("__name__", "").split(".")[0] in PACKAGES:
        frame, level = frame.f_back, level + 1
    return level if frame is not None else 1

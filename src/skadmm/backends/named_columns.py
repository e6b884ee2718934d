"""Columns of a table on disk that are not features: targets, weights and offsets given by their names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from skadmm._names import no_column, no_columns
from skadmm.backends.files import BlocksError, FileBlocks, RefusedTableError
from skadmm.backends.kinds import is_dask
from skadmm.backends.readers import NO_NAMES, Columns, MissingError, column_values, kind_of, known_numbers, open_source
from skadmm.backends.sources import (
    StoredTable,
    as_folder,
    as_lazy,
    as_stored,
    is_block_folder,
    is_lazy,
    is_npz,
    is_stored,
    read_npz,
)


def vectors_of(X: Any, given: dict[str, Any], target: str) -> tuple[Any, dict[str, Any]]:
    """X without the columns that the arguments in `given` name, and the arguments with these columns in place of the
    names. One target (the argument `target`) and weights are left to the conversion of the table, which reads them
    together with X."""
    if is_npz(X):
        return X, {
            what: vector if what in (target, "sample_weight") else stored_column(X, vector, what)
            for what, vector in given.items()
        }
    named = {what: names_in(X, what, vector) for what, vector in given.items()}
    apart = any(names and what not in (target, "sample_weight") for what, names in named.items())
    if not apart and not (named[target] and isinstance(given[target], (list, tuple))):
        return X, given
    if given[target] is None:  # as where it is converted: the last column
        named[target] = [_last_column(X, [name for names in named.values() for name in names])]
    wanted = [name for names in named.values() for name in names]
    columns = iter(read_columns(X, wanted))
    found = {what: [next(columns) for _ in names] for what, names in named.items() if names}
    vectors = {what: one[0] if len(one) == 1 else np.column_stack(one) for what, one in found.items()}
    return without_columns(X, wanted), given | vectors


def names_in(X: Any, what: str, vector: Any) -> list[str]:
    """The columns of X that `vector`, the argument `what`, names; none where it holds values."""
    if isinstance(vector, str):
        if is_stored(X) or is_npz(X):
            if _is_svmlight(X):
                raise ValueError(f"{what}={vector!r}: it takes an array, or None: {NO_NAMES}")
            return [vector]
        raise TypeError(
            f"{what}={vector!r}: the name of a column goes with a path, a LazyFrame or a dataset; for "
            f"X={type(X).__name__} give the column itself as {what}, and X without it"
        )
    texts = isinstance(vector, (list, tuple)) and bool(vector) and all(isinstance(name, str) for name in vector)
    if not texts or not is_stored(X):
        return []
    known = column_names(X)
    missing = [name for name in vector if name not in known]
    if len(missing) == len(vector):
        return []  # texts that are values
    if missing:
        raise ValueError(f"{what}: {no_column(missing[0], known)}")
    if len(set(vector)) < len(vector):
        raise ValueError(f"{what}={list(vector)!r}: it takes every column once")
    return list(vector)


def _is_svmlight(X: Any) -> bool:
    if isinstance(X, FileBlocks) or is_lazy(X):
        return False
    path = as_stored(X).path
    return path.is_file() and not is_npz(X) and kind_of(path) == "svmlight"


def less_columns(X: Any, drop: Any, given: dict[str, Any], target: str) -> tuple[Any, Any]:
    """A table on disk without the columns that the argument `drop` names, and its targets: where `given`, which has the
    arguments that may name columns, has None for them (the argument `target`), the last column by its name."""
    names = [drop] if isinstance(drop, str) else drop
    if not isinstance(names, Iterable) or not all(isinstance(name, str) for name in names):
        raise TypeError(f"drop={drop!r}: it takes names of columns")
    names = list(names)
    if not names:
        return X, given[target]
    known = _droppable(X, names)
    missing = [name for name in names if name not in known]
    if missing:
        raise ValueError(f"drop: {no_columns(missing, known)}")
    used = {name: what for what, vector in given.items() for name in _texts(vector)}
    for name in names:
        if name in used:
            raise ValueError(f"drop and {used[name]} both name the column {name!r}: drop takes columns without a use")
    y = given[target]
    if y is None:
        y = next((name for name in reversed(known) if name not in used), None)
        if y is None or y in names:
            raise ValueError(f"{target}=None is the last column, {y!r}, which drop leaves out: give a name as {target}")
    if not set(known) - set(names) - set(used) - set(_texts(y)):
        raise ValueError(f"drop={names!r}: no column of X is left")
    return without_columns(X, names), y


def _texts(vector: Any) -> list[str]:
    """The texts in an argument that may be a name, or a list of names."""
    if isinstance(vector, str):
        return [vector]
    return [name for name in vector if isinstance(name, str)] if isinstance(vector, (list, tuple)) else []


def _droppable(X: Any, names: list[str]) -> list[str]:
    """The columns of X, some of which `drop` may name; an error where it takes none."""
    if not is_stored(X):
        named = hasattr(X, "columns") and hasattr(X, "drop")
        by_name = f"X.drop({names!r})" if hasattr(X, "get_column") else f"X.drop(columns={names!r})"
        given = "an npz file" if is_npz(X) else f"of the type {type(X).__name__}"
        raise TypeError(
            f"drop={names!r}: it takes a table on disk; X is {given}: give {by_name if named else 'X without them'}"
        )
    known = column_names(X)
    if not known and is_folder(X):
        raise ValueError(f"drop={names!r}: the columns of a folder of blocks are chosen when it is written")
    if not known:
        raise ValueError(f"drop={names!r}: the columns of X have no names")
    return known


def _last_column(X: Any, others: Sequence[str]) -> str:
    known = column_names(X)
    if not known:
        raise ValueError(f"there is no column {others[0]!r}: the columns of X have no names; it takes an array")
    names = [name for name in known if name not in others]
    if not names:
        raise ValueError(f"X has only the columns {list(others)!r}, and y=None takes another one")
    return names[-1]


def stored_column(X: Any, given: Any, what: str) -> Any:
    """The columns of a table on disk that the argument `what` gives by their names; an array as it is."""
    if is_npz(X) and isinstance(given, str):
        return read_npz(X, target=given)[1]
    names = names_in(X, what, given)
    if not names:
        return computed(given)
    if is_folder(X):
        raise ValueError(f"{what}={given!r}: a folder of blocks has no named columns; it takes an array, or None")
    found = read_columns(X, names)
    return found[0] if len(found) == 1 else np.column_stack(found)


def stored_target(X: Any, y: Any) -> Any:
    """The targets: the columns `y`, or with None the last one, or those of a folder of blocks."""
    if y is not None or not is_stored(X):
        return stored_column(X, y, "y")
    names = column_names(X)
    return read_columns(X, names[-1:])[0] if names else as_folder(X).target


def row_weights(X: Any, given: Any, y: Any) -> Any:
    """The weights of the rows of X and y: one number stands for all of them."""
    weight = stored_column(X, given, "sample_weight")
    if isinstance(weight, str):
        raise TypeError(f"sample_weight={weight!r}: it takes a number for each row, or the name of a column on disk")
    return np.full(len(y), float(weight)) if weight is not None and np.ndim(weight) == 0 else weight


def is_folder(X: Any) -> bool:
    """Is X a folder of blocks?"""
    return isinstance(X, FileBlocks) or (not isinstance(X, StoredTable) and not is_lazy(X) and is_block_folder(Path(X)))


def computed(vector: Any) -> Any:
    """A vector of a Dask collection as an array; anything else as it is."""
    if not is_dask(vector):
        return vector
    from skadmm.backends.dask.blocks import of_numpy_types

    return np.asarray(of_numpy_types(vector).compute())


def column_names(X: Any) -> list[str]:
    """The columns of a table on disk that may be named as targets, weights or offsets; none where it has no names."""
    if is_lazy(X):
        return list(as_lazy(X).collect_schema().names())
    if isinstance(X, FileBlocks):
        return []
    stored = as_stored(X)
    if not stored.path.exists():
        raise FileNotFoundError(f"{stored.path}: there is no such file or folder")
    if is_block_folder(stored.path) or kind_of(stored.path) in ("svmlight", "npy"):
        return []
    return stored.columns


def read_columns(X: Any, names: Sequence[str], *, missing: bool = False) -> list[np.ndarray]:
    """Some columns of a table on disk, as arrays of numbers or of texts: one reading of these columns. `missing` says
    whether texts may be missing, which are None then."""
    known = column_names(X)
    for name in names:
        if name not in known:
            about = "X" if is_lazy(X) or isinstance(X, FileBlocks) else str(as_stored(X).path)
            raise BlocksError(f"{about}: {no_column(name, known) if known else f'its columns have no names: {name!r}'}")
    wanted = list(dict.fromkeys(names))
    if is_lazy(X):
        frame = as_lazy(X).select(wanted).collect()
        columns = [frame[name].to_numpy() for name in names]
        return [values if (numbers := known_numbers(values)) is None else numbers for values in columns]
    path = as_stored(X).path
    source: Any = open_source(path, Columns(labelled=False, features=tuple(wanted)))
    parts, rows = [], 0
    try:
        for frame in source.frames(wanted, []):
            parts.append([column_values(frame, name, missing=missing) for name in wanted])
            rows += len(frame)
    except MissingError as error:
        raise RefusedTableError(f"{path}: {MissingError(error.column, rows + error.row)}") from None
    except ValueError as error:
        raise BlocksError(f"{path}: {error}") from error
    if not parts:
        raise BlocksError(f"{path}: there are no rows to read")
    found = dict(zip(wanted, map(np.concatenate, zip(*parts, strict=True)), strict=True))
    return [found[name] for name in names]


def read_frame(X: Any, names: Sequence[str]) -> Any:
    """Some columns of a table on disk as a DataFrame: of polars where X is a LazyFrame, else of pandas."""
    if is_lazy(X):
        return as_lazy(X).select(list(names)).collect()
    import pandas as pd

    source: Any = open_source(as_stored(X).path, Columns(labelled=False, features=tuple(names)))
    frames = list(source.frames(list(names), []))
    if not frames:
        raise BlocksError(f"{as_stored(X).path}: there are no rows to read")
    return pd.concat(frames, ignore_index=True)


def without_columns(X: Any, names: Sequence[str]) -> Any:
    """A table on disk whose features are all but some columns."""
    if is_lazy(X):
        return as_lazy(X).drop(list(dict.fromkeys(names)))
    stored = as_stored(X)
    return replace(stored, dropped=tuple(dict.fromkeys((*stored.dropped, *names))))

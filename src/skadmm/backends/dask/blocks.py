"""Dask collections as lists of delayed blocks of whole rows."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from skadmm.backends.kinds import is_dask

if TYPE_CHECKING:
    from distributed import Client

NUMBERS = "fiub"
"""Kinds of types whose values are numbers."""


def current_client() -> Client:
    """The client that is active in this process."""
    try:
        from distributed import get_client
    except ImportError as error:
        raise ImportError("Dask data need dask and distributed: pip install 'skadmm[dask]'") from error
    try:
        return get_client()
    except ValueError:
        raise ValueError("X is on Dask, and there is no client: from distributed import Client; Client()") from None


def row_blocks(table: Any, name: str) -> list[Any]:
    """The delayed blocks of a collection, each with all columns."""
    if isinstance(table, (list, tuple)):
        return list(table)
    if hasattr(table, "rechunk"):
        if table.ndim not in (1, 2):
            raise ValueError(f"{name} has {table.ndim} dimension(s): it takes blocks of rows")
        if table.ndim == 2:
            table = table.rechunk({1: -1})
        return list(table.to_delayed().ravel())
    if hasattr(table, "to_delayed"):
        return list(table.to_delayed())
    raise TypeError(
        f"{name}={type(table).__name__}: it takes a dask.array, a dask.dataframe or a list of delayed blocks"
    )


def of_numpy_types(collection: Any) -> Any:
    """A dask.dataframe or one of its columns with types that arrays have too; anything else as it is.

    Columns of numbers become float64 where their types are those of pandas or Arrow, or truth values beside numbers: a
    missing value is NaN. A column of whole numbers or truth values that has none keeps its kind. Texts become objects.
    """
    if not hasattr(collection, "to_dask_array"):
        return collection
    if getattr(collection, "ndim", 2) == 2:
        dtypes = list(collection.dtypes)
        numbers = all(_kind(dtype) in NUMBERS for dtype in dtypes)
        alike = all(isinstance(dtype, np.dtype) for dtype in dtypes) and len({_kind(d) == "b" for d in dtypes}) <= 1
        return collection.astype(np.float64) if numbers and not alike else collection
    dtype: Any = collection.dtype
    if _kind(dtype) not in NUMBERS:
        return collection.astype(object)  # texts of an extension type, for which Dask has no arrays
    if isinstance(dtype, np.dtype):
        return collection
    whole = _kind(dtype) != "f" and not collection.isna().any().compute()
    return collection.astype(dtype.numpy_dtype if whole else np.float64)


def _kind(dtype: Any) -> str:
    return str(getattr(dtype, "kind", "O"))


def with_known_lengths(collection: Any, name: str) -> Any:
    """A dask.dataframe or one of its columns as a dask.array with blocks of known lengths, by one reading; anything
    else as it is. Empty blocks of known lengths are left out.

    The lengths are counted in the array: Dask reads a few columns of a Parquet file in larger blocks than many, so that
    those of the frame itself may be others.
    """
    if hasattr(collection, "to_dask_array"):
        collection = of_numpy_types(collection).to_dask_array()
        collection.compute_chunk_sizes()
    elif row_chunks(collection) is None:
        return collection
    return _without_empty_blocks(collection, name)


def _without_empty_blocks(array: Any, name: str) -> Any:
    """The same rows. A frame of which rows were chosen often has blocks without any."""
    lengths = array.chunks[0]
    if all(lengths):
        return array
    if not any(lengths):
        raise ValueError(f"{name} has no rows: it takes at least one")
    import dask.array as da

    # By way of delayed blocks: Dask ends with a KeyError where `array.blocks` of a masked array are concatenated.
    return da.concatenate([
        da.from_delayed(block, shape=(length, *array.shape[1:]), dtype=array.dtype)
        for block, length in zip(row_blocks(array, name), lengths, strict=True)
        if length
    ])  # fmt: skip


def in_equal_blocks(X: Any, vectors: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """X and its vectors by name; arrays with blocks of known lengths where X is a frame and the vectors are not in as
    many blocks as it."""
    if not hasattr(X, "to_dask_array"):
        return X, vectors
    count = len(row_blocks(X, "X"))
    if all(one is None or (is_dask(one) and len(row_blocks(one, name)) == count) for name, one in vectors.items()):
        return X, vectors
    return with_known_lengths(X, "X"), {name: with_known_lengths(one, name) for name, one in vectors.items()}


def vector_blocks(vector: Any, X: Any, count: int, name: str) -> list[Any]:
    """A vector in `count` blocks of the same lengths as those of X; a list of None where there is no vector."""
    if vector is None:
        return [None] * count
    lengths = row_chunks(X)
    if is_dask(vector):
        if lengths is not None and hasattr(vector, "rechunk"):
            vector = with_known_lengths(vector, name)
            check_length(vector, sum(lengths), name)
            vector = vector.rechunk((lengths,))
        blocks = row_blocks(vector, name)
        if len(blocks) != count:
            raise ValueError(f"{name} has {len(blocks)} blocks: it takes {count}, as X has")
        return blocks
    if lengths is None:
        raise TypeError(f"{name}={type(vector).__name__}: X has blocks of unknown length, so it takes Dask blocks")
    vector = np.asarray(vector)
    edges = np.cumsum((0, *lengths))
    check_length(vector, int(edges[-1]), name)
    return [vector[start:stop] for start, stop in itertools.pairwise(edges)]


def check_length(vector: Any, length: int, name: str) -> None:
    """Raise where an array is no vector with an entry for each of `length` rows."""
    if vector.shape != (length,):
        raise ValueError(f"{name} has shape {vector.shape}: it takes a vector of length {length}, as X has rows")


def row_chunks(X: Any) -> tuple[int, ...] | None:
    """The lengths of the blocks of a dask.array; None where Dask does not know them."""
    chunks = getattr(X, "chunks", None)
    return None if chunks is None or np.isnan(np.sum(chunks[0])) else chunks[0]

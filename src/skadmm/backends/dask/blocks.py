"""Dask collections as lists of delayed blocks of whole rows."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from skadmm.backends.kinds import is_dask

if TYPE_CHECKING:
    from distributed import Client


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


def with_known_lengths(collection: Any) -> Any:
    """A dask.dataframe or one of its columns as a dask.array with blocks of known lengths, by one reading; anything
    else as it is. The lengths are counted in the array: Dask reads a few columns of a Parquet file in larger blocks
    than many, so that those of the frame itself may be others."""
    if not hasattr(collection, "to_dask_array"):
        return collection
    if getattr(collection, "ndim", 2) == 1 and getattr(collection.dtype, "kind", "O") not in "fiub":
        collection = collection.astype(object)  # texts of an extension type, for which Dask has no arrays
    array = collection.to_dask_array()
    array.compute_chunk_sizes()
    return array


def in_equal_blocks(X: Any, vectors: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """X and its vectors by name; arrays with blocks of known lengths where X is a frame and the vectors are not in as
    many blocks as it."""
    if not hasattr(X, "to_dask_array"):
        return X, vectors
    count = len(row_blocks(X, "X"))
    if all(one is None or (is_dask(one) and len(row_blocks(one, name)) == count) for name, one in vectors.items()):
        return X, vectors
    return with_known_lengths(X), {name: with_known_lengths(one) for name, one in vectors.items()}


def vector_blocks(vector: Any, X: Any, count: int, name: str) -> list[Any]:
    """A vector in `count` blocks of the same lengths as those of X; a list of None where there is no vector."""
    if vector is None:
        return [None] * count
    lengths = row_chunks(X)
    if is_dask(vector):
        if lengths is not None and hasattr(vector, "rechunk"):
            vector = vector.rechunk((lengths,))
        blocks = row_blocks(vector, name)
        if len(blocks) != count:
            raise ValueError(f"{name} has {len(blocks)} blocks: it takes {count}, as X has")
        return blocks
    if lengths is None:
        raise TypeError(f"{name}={type(vector).__name__}: X has blocks of unknown length, so it takes Dask blocks")
    vector = np.asarray(vector)
    edges = np.cumsum((0, *lengths))
    if vector.shape != (edges[-1],):
        raise ValueError(f"{name} has shape {vector.shape}: it takes a vector of length {edges[-1]}")
    return [vector[start:stop] for start, stop in itertools.pairwise(edges)]


def row_chunks(X: Any) -> tuple[int, ...] | None:
    """The lengths of the blocks of a dask.array; None where Dask does not know them."""
    chunks = getattr(X, "chunks", None)
    return None if chunks is None or np.isnan(np.sum(chunks[0])) else chunks[0]

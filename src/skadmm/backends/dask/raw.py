"""Dask collections whose columns may be levels, and functions of their blocks on the workers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from typing import Any

import numpy as np

from skadmm.backends.dask.blocks import row_blocks, row_chunks
from skadmm.backends.dask.calls import FAN_IN
from skadmm.backends.levels import Encoding, Levels, Seen, categorical_columns, seen_columns, united


def on_blocks(X: Any, function: Callable[[Any], Any]) -> list[Any]:
    """A function of each block of rows, evaluated on the workers where there is a client."""
    import dask

    call = dask.delayed(function, pure=False)
    return _gathered([call(block) for block in row_blocks(X, "X")])


def sum_of_blocks(X: Any, add: Callable[..., Any], function: Callable[..., Any], vector: np.ndarray | None) -> Any:
    """The sum of a function of each block of rows and of its part of a vector, evaluated and added up on the workers.

    Parameters
    ----------
    X : dask.array with blocks of known lengths
    add : function of two terms
    function : function of a block and of a part of the vector, or None
    vector : array with an entry per row, or None
    """
    import dask

    blocks, lengths = row_blocks(X, "X"), row_chunks(X)
    assert lengths is not None
    parts = [None] * len(blocks) if vector is None else np.split(vector, np.cumsum(lengths)[:-1])
    call, plus = dask.delayed(function, pure=False), dask.delayed(partial(reduce, add), pure=False)
    terms = [call(block, part) for block, part in zip(blocks, parts, strict=True)]
    while len(terms) > 1:
        terms = [plus(terms[first : first + FAN_IN]) for first in range(0, len(terms), FAN_IN)]
    return _gathered(terms)[0]


def _gathered(pending: list[Any]) -> list[Any]:
    """What delayed calls return: on the workers of the active client, or in threads where there is none."""
    import dask

    return list(dask.compute(*pending))


class RawDask:
    """A dask.array or dask.dataframe. Levels are collected, and rows encoded, on the workers."""

    def __init__(self, X: Any) -> None:
        if isinstance(X, (list, tuple)):
            raise TypeError("X is a list of delayed blocks: the estimators take a dask.array or a dask.dataframe")
        self._X = X
        self.names: list[str] | None = [str(column) for column in X.columns] if hasattr(X, "columns") else None
        self.width = int(X.shape[1]) if self.names is None else len(self.names)

    def dtypes(self) -> dict[int, Levels]:
        """Those of the first block; all levels are known once all blocks are seen."""
        return categorical_columns(self._X.partitions[0].compute()) if self.names is not None else {}

    def seen(self, columns: list[int]) -> list[Seen]:
        """One reading of the collection."""
        return united(on_blocks(self._X, partial(seen_columns, columns)))

    def mapped(self, function: Callable[[Any], Any], encoding: Encoding) -> list[Any]:
        """One reading of the collection."""
        return on_blocks(self._X, partial(_encoded_then, function, encoding))

    def encoded(self, encoding: Encoding, *, ones: bool) -> Any:
        """A dask.array of sparse blocks."""
        import dask
        import dask.array as da

        lengths = row_chunks(self._X) or on_blocks(self._X, len)
        call, width = dask.delayed(encoding, pure=False), len(encoding.names_out)
        parts = [
            da.from_delayed(call(block), shape=(int(length), width), dtype=np.float64)
            for block, length in zip(row_blocks(self._X, "X"), lengths, strict=True)
            if length
        ]
        if not parts:
            raise ValueError("X has no rows: it takes at least one")
        return da.concatenate(parts)


def _encoded_then(function: Callable[[Any], Any], encoding: Encoding, block: Any) -> Any:
    return function(encoding(block))

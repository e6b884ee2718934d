"""The columns of a large table by their numbers, in any order and more than once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from skadmm import _cancel
from skadmm.backends.files import FileBlocks
from skadmm.backends.processes.table import Processes
from skadmm.backends.raw import ENTRY_BYTES, ROWS_PER_CHUNK, temporary_folder, written
from skadmm.kernels.rows import as_matrix, is_dense

NUMBER = 8
"""Bytes of an entry of dense rows on disk."""


def repeated(table: Any, columns: np.ndarray) -> Any:
    """A large table of the same kind with other columns.

    Parameters
    ----------
    table : FileBlocks, Processes or dask.array
        A last column of ones, for an intercept, stays the last. Rows on disk are written to a folder of blocks that is
        removed with the object that uses it, and refused where the disk is too small; the others are not copied
        before they are used.
    columns : array of int
        The numbers of the columns.
    """
    if isinstance(table, FileBlocks):
        return _folder(table, columns)
    if isinstance(table, Processes):
        whole = taken(as_matrix(table.rows), columns) if table.folder is None else _folder(table.folder, columns)
        return Processes(whole, workers=table.count)
    whole = table.rechunk({1: -1})
    return whole.map_blocks(taken, columns, dtype=np.float64, chunks=(whole.chunks[0], (columns.size,)))


def taken(part: Any, columns: np.ndarray) -> Any:
    """Some columns of an array or a CSR array."""
    return part[:, columns]


def _folder(source: FileBlocks, columns: np.ndarray) -> FileBlocks:
    if source.ones:
        columns = np.append(columns, source.d - 1)
    work = temporary_folder("repeated-", _bytes(source, columns))
    folder = written(work, _blocks(source, columns), None, ones=False)
    folder.ones = source.ones
    return folder


def _bytes(source: FileBlocks, columns: np.ndarray) -> float:
    """The size of a folder with these columns."""
    if is_dense(source.rows):
        return float(NUMBER) * source.n * columns.size
    stored = sum(np.bincount(part.indices, minlength=source.d) for part in _parts(source))
    return float(ENTRY_BYTES) * float(np.asarray(stored)[columns].sum())


def _blocks(source: FileBlocks, columns: np.ndarray) -> Iterator[tuple[Any, None]]:
    for part in _parts(source):
        yield taken(part, columns), None


def _parts(source: FileBlocks) -> Iterator[Any]:
    for start in range(0, source.n, ROWS_PER_CHUNK):
        _cancel.check_cancelled()
        yield as_matrix(source.rows, start, min(start + ROWS_PER_CHUNK, source.n))
        source.release()

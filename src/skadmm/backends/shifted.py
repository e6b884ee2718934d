"""A copy of a table whose columns are centred and divided by units, for tables that do not fit into memory."""

from __future__ import annotations

import shutil
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse

from skadmm import _cancel
from skadmm.backends.files import FileBlocks
from skadmm.backends.processes.table import Processes
from skadmm.backends.sources import SPARE_DISK
from skadmm.backends.writer import write_blocks
from skadmm.io.cache import cache_folder, made
from skadmm.io.locks import remove_working, working_folder
from skadmm.kernels.rows import as_matrix, is_dense, stored_entries

ROWS_PER_CHUNK = 16_384
"""Rows that are read, changed and written at a time."""
NUMBER, INDEX = 8, 4
"""Bytes of an entry and of its column."""


def shifted(table: Any, centre: np.ndarray, unit: np.ndarray) -> Any:
    """The columns (a_j − centre_j) / unit_j of a large table, of the same kind; None where the disk is too small.

    Parameters
    ----------
    table : FileBlocks, Processes or dask.array
        Columns beyond those of `centre`, the ones of an intercept, stay as they are. Rows on disk are written to a
        folder of blocks that is removed with the object that uses it; the others are not copied before they are used.
    centre, unit : arrays with a number for each column
        Where the centre of a column is not zero, all its entries will be stored.
    """
    if isinstance(table, FileBlocks):
        return _folder(table, centre, unit)
    if isinstance(table, Processes):
        rows = _folder(table.folder, centre, unit) if table.folder is not None else None
        if rows is None and table.folder is not None:
            return None
        whole = shifted_rows(as_matrix(table.rows), centre, unit) if rows is None else rows
        return Processes(whole, workers=table.count)
    whole = table.rechunk({1: -1})
    return whole.map_blocks(shifted_rows, centre, unit, dtype=np.float64)


def shifted_rows(part: Any, centre: np.ndarray, unit: np.ndarray) -> Any:
    """Some rows with centred columns that are divided by their units; an array, or a CSR array."""
    spare = part.shape[1] - centre.size
    if spare:
        centre, unit = np.append(centre, np.zeros(spare)), np.append(unit, np.ones(spare))
    if not scipy.sparse.issparse(part):
        return (part - centre) / unit
    part = scipy.sparse.csr_array(part, dtype=np.float64)
    if np.any(centre):
        part = less_centre(part, centre)
    return scipy.sparse.csr_array(part @ scipy.sparse.diags_array(1.0 / unit))


def less_centre(matrix: scipy.sparse.csr_array, centre: np.ndarray) -> scipy.sparse.csr_array:
    """Every row of a sparse table minus `centre`, most of whose entries are zero."""
    (changed,) = np.nonzero(centre)
    rows = np.tile(centre[changed], (matrix.shape[0], 1))
    starts = np.arange(matrix.shape[0] + 1) * changed.size
    subtracted = scipy.sparse.csr_array((rows.ravel(), np.tile(changed, matrix.shape[0]), starts), matrix.shape)
    return scipy.sparse.csr_array(matrix - subtracted)


def _folder(source: FileBlocks, centre: np.ndarray, unit: np.ndarray) -> FileBlocks | None:
    """A folder with the changed rows, without targets and weights."""
    cache = cache_folder("blocks")
    made(cache)
    entry = NUMBER if is_dense(source.rows) else NUMBER + INDEX
    if SPARE_DISK * entry * stored_entries(source.rows) > shutil.disk_usage(cache).free:
        return None
    work = working_folder(cache, "shifted-")
    try:
        write_blocks(work / "blocks", _changed(source, centre, unit))
        folder = FileBlocks(work / "blocks")
    except BaseException:
        remove_working(work)
        raise
    folder.names, folder.ones = source.names, source.ones
    weakref.finalize(folder, remove_working, work)
    return folder


def _changed(source: FileBlocks, centre: np.ndarray, unit: np.ndarray) -> Iterator[tuple[Any, None]]:
    for start in range(0, source.n, ROWS_PER_CHUNK):
        _cancel.check_cancelled()
        yield shifted_rows(as_matrix(source.rows, start, min(start + ROWS_PER_CHUNK, source.n)), centre, unit), None
        source.release()

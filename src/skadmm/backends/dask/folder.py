"""The rows of a Dask collection as a folder of blocks on the disk of this process, for solvers that read them."""

from __future__ import annotations

import shutil
import weakref
from collections.abc import Iterator
from typing import Any

from skadmm import _cancel
from skadmm.backends.dask.blocks import current_client, row_blocks
from skadmm.backends.files import BlocksError, FileBlocks
from skadmm.backends.sources import SPARE_DISK
from skadmm.backends.writer import write_blocks
from skadmm.io.cache import cache_folder, made
from skadmm.io.locks import remove_working, working_folder

NUMBER = 8
"""Bytes of an entry."""


def dask_folder(X: Any, names: list[str] | None, *, ones: bool) -> FileBlocks:
    """Write the rows, one block at a time, into a folder that is removed with the object that uses it.

    Parameters
    ----------
    X : dask.array with chunks of known size
    names : names of the columns, or None
    ones : bool
        Add a last column of ones, for an intercept.
    """
    cache = cache_folder("blocks")
    made(cache)
    needed = SPARE_DISK * NUMBER * X.shape[0] * (X.shape[1] + int(ones))
    free = shutil.disk_usage(cache).free
    if needed > free:
        raise BlocksError(
            f"X: this model needs its rows on the disk of this process, about {needed / 1e9:,.3g} GB, and {cache} has "
            f"{free / 1e9:,.3g} GB left: set SKADMM_CACHE to a folder on another disk"
        )
    work = working_folder(cache, "dask-")
    try:
        write_blocks(work / "blocks", _computed(X), ones=ones)
        folder = FileBlocks(work / "blocks")
    except BaseException:
        remove_working(work)
        raise
    folder.names = None if names is None else [*names, "1"][: folder.d]
    weakref.finalize(folder, remove_working, work)
    return folder


def _computed(X: Any) -> Iterator[tuple[Any, None]]:
    """Blocks of rows; only one of them is here at a time."""
    client = current_client()
    for block in row_blocks(X, "X"):
        _cancel.check_cancelled()
        yield client.compute(block).result(), None

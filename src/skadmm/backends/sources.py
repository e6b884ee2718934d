"""Tables given by a path, or as a LazyFrame of polars: folders of blocks are opened where they are, other files are
converted once into a folder of blocks in a cache."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import sys
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import scipy.sparse

from skadmm._cancel import check_cancelled
from skadmm._types import FilePath, TableLike
from skadmm.backends.convert import convert
from skadmm.backends.files import MANIFEST, VERSION, BlocksError, FileBlocks
from skadmm.backends.levels import Encoding
from skadmm.backends.readers import (
    Columns,
    TextColumnError,
    kind_of,
    known_numbers,
    open_source,
    parquet_files,
    parquet_in,
)
from skadmm.backends.writer import PROGRESS
from skadmm.io.cache import cache_folder, made
from skadmm.io.locks import locked, remove_abandoned, remove_working, working_folder

SPARE_DISK = 1.1
"""A conversion needs this many times its estimated size on the disk."""

Report = Callable[[int, float], None]
"""Called after each block with the rows written and the share of the file read."""
Announce = Callable[[float, Path], None]
"""Called before a conversion with the bytes that it will take, about, and the folder in which they will be."""


@dataclass(frozen=True)
class StoredTable:
    """A file of which some columns are not features, and how it is converted."""

    path: Path
    dropped: tuple[str, ...] = ()
    """Columns that are not features."""
    cache: Path | None = None
    """Where the converted table is kept."""
    progress: Report | None = None
    """Called after each block of a conversion."""
    announce: Announce | None = None
    """Called before a conversion."""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows, which are counted in one reading of the file, and features."""
        source: Any = open_source(self.path, Columns(labelled=False, dropped=self.dropped))
        return sum(len(frame) for frame in source.frames(source.names[:1], [])), len(source.names)

    @property
    def columns(self) -> list[str]:
        """The names of the features."""
        return list(open_source(self.path, Columns(labelled=False, dropped=self.dropped)).names or [])

    def text_columns(self) -> list[str]:
        """The features that are not numbers in the first rows."""
        source: Any = open_source(self.path, Columns(labelled=False, dropped=self.dropped))
        first = next(source.frames(source.names, []), None)
        if first is None:
            return []
        others = first.select_dtypes(exclude=["number", "bool"]).columns
        return [name for name in others if known_numbers(first[name]) is None]


def is_stored(X: TableLike) -> bool:
    """Return whether X is a table that stays on disk.

    Parameters
    ----------
    X : object
        Anything.

    Returns
    -------
    bool
        True for a :class:`FileBlocks`, for a path (but not that of an npz file, which is read into memory) and a file
        without some of its columns, for a LazyFrame of polars and for a dataset of pyarrow.

    See Also
    --------
    skadmm.backends.as_folder : Opens such a table.

    Examples
    --------
    >>> from skadmm.backends import is_stored
    >>> is_stored("table.parquet"), is_stored([[1.0, 2.0]])
    (True, False)
    """
    return (isinstance(X, (FileBlocks, StoredTable, str, os.PathLike)) and not is_npz(X)) or is_lazy(X)


def is_lazy(X: Any) -> bool:
    """Is X a LazyFrame of polars, or a dataset of pyarrow?"""
    frame = type(X).__module__.split(".")[0] == "polars" and type(X).__name__ == "LazyFrame"
    return frame or _is_dataset(X)


def _is_dataset(X: Any) -> bool:
    """Is X a dataset of pyarrow, such as ``pyarrow.dataset.dataset`` opens?"""
    return type(X).__module__ == "pyarrow._dataset" and hasattr(X, "scanner")


def as_lazy(X: Any) -> Any:
    """A LazyFrame, or the LazyFrame of a dataset of pyarrow."""
    if not _is_dataset(X):
        return X
    try:
        import polars as pl
    except ImportError:
        raise ImportError("X is a dataset of pyarrow, which is read by polars: pip install polars, or give the path of "
                          "its files") from None  # fmt: skip
    return pl.scan_pyarrow_dataset(X)


@contextlib.contextmanager
def named_x(path: Path) -> Iterator[None]:
    """In messages about a file that was written for a LazyFrame, name X, which is what was given."""
    try:
        yield
    except ValueError as error:
        for old in (str(path), path.name):
            error.args = tuple(part.replace(old, "X") if isinstance(part, str) else part for part in error.args)
            if isinstance(error, TextColumnError):
                error.fault = error.fault.replace(old, "X")
        raise


def is_npz(X: Any) -> bool:
    """Is X the path of an npz file, which is read into memory?"""
    return isinstance(X, (str, os.PathLike)) and str(X).lower().endswith(".npz")


def as_folder(
    X: TableLike,
    target: str | None = None,
    weight: str | None = None,
    *,
    drop: tuple[str, ...] = (),
    labelled: bool = True,
    ones: bool = False,
    encoding: Encoding | None = None,
    cache: Path | None = None,
    progress: Report | None = None,
    announce: Announce | None = None,
) -> FileBlocks:
    """Open a table on disk as a folder of blocks, converted where it is none.

    Parameters
    ----------
    X : FileBlocks, str, path, LazyFrame or dataset of pyarrow
        A folder of blocks; a file that :func:`skadmm.backends.convert.convert` takes, or one without some of its
        columns; or a folder of Parquet files.
    target, weight : str, optional
        Columns of a file: the targets (the last column by default; none in an npy file) and the sample weights. For an
        npy file they are numbers of columns, as texts.
    drop : tuple of str
        Columns of a file to leave out.
    labelled : bool
        False where no column of a file holds targets.
    ones : bool
        Add a last column of ones to a file that is converted, for an intercept.
    encoding : Encoding, optional
        The levels of categorical columns of a file, which become indicator columns.
    cache : path, optional
        Where converted files are kept; by default in the folder "blocks" of the cache, see SKADMM_CACHE.
    progress : callable, optional
        Called after each block of a conversion with the rows written and the share of the file read.
    announce : callable, optional
        Called before the conversion of a file with the bytes that it will take on disk, about, and the folder.

    Returns
    -------
    FileBlocks
        The folder; one that was converted before is found in the cache.

    See Also
    --------
    skadmm.backends.convert.convert : Writes a folder of blocks at a place of your own.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from skadmm.backends import as_folder
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "table.csv").write_text("a,b,y\\n1,2,3\\n4,5,6\\n")
    >>> as_folder(folder / "table.csv", "y", cache=folder / "cache").shape
    (2, 2)
    """
    if isinstance(X, StoredTable):
        progress, announce, cache = progress or X.progress, announce or X.announce, cache or X.cache
        drop = (*X.dropped, *drop)
        X = X.path
    columns = Columns(target, weight, labelled=labelled, dropped=drop, encoding=encoding)
    cache = cache or cache_folder("blocks")
    if not isinstance(X, FileBlocks) and not is_lazy(X):
        path = Path(cast(FilePath, X))
        if not path.exists():
            raise FileNotFoundError(f"{path}: there is no such file or folder")
        if not is_block_folder(path):
            return _converted(path, columns, ones, cache, progress, announce)
        X = FileBlocks(path)
    elif is_lazy(X):
        return _from_lazy(X, columns, ones, cache, progress)
    for name, column in (("y", target), ("sample_weight", weight)):
        if column is not None:
            raise ValueError(f"{name}={column!r}: a folder of blocks has its own; it takes an array, or None")
    if drop:
        raise ValueError(f"drop={drop!r}: the columns of a folder of blocks are chosen when it is written")
    return cast(FileBlocks, X)


def as_stored(X: Any) -> StoredTable:
    """The table at a path."""
    return X if isinstance(X, StoredTable) else StoredTable(Path(X))


def is_block_folder(path: Path) -> bool:
    """Is it a folder of blocks, finished or not? A folder without Parquet files is taken for one."""
    if not path.is_dir():
        return False
    if (path / MANIFEST).exists() or (path / PROGRESS).exists():
        return True
    return next(parquet_in(path), None) is None


def _converted(
    path: Path, columns: Columns, ones: bool, cache: Path, progress: Report | None, announce: Announce | None
) -> FileBlocks:
    """The folder in the cache that `path` was converted into, now or before."""
    name = path.name.split(".")[0][:40] or "table"
    folder = cache / f"{name}-{_key(path, columns, ones)}"
    if (found := _finished(folder)) is not None:
        return found
    made(cache)
    remove_abandoned(cache)
    with locked(folder.with_name(folder.name + ".lock"), partial(_tell_waiting, path), check_cancelled):
        if (found := _finished(folder)) is not None:  # another process or thread has made it meanwhile
            return found
        if (folder / MANIFEST).exists():  # damaged: it is made again
            shutil.rmtree(folder)
        number = _svmlight_columns(path) if ones and kind_of(path) == "svmlight" else None
        needed = _check_disk(path, columns, ones, number, cache)
        if announce is not None:
            announce(needed, folder)
        convert(path, folder, target=columns.target, weight=columns.weight, drop=columns.dropped,
                labelled=columns.labelled, ones=ones, columns=number, encoding=columns.encoding,
                progress=progress)  # fmt: skip
    return FileBlocks(folder)


def _finished(folder: Path) -> FileBlocks | None:
    """A folder that a conversion has finished; None where there is none, or a damaged one."""
    try:
        return FileBlocks(folder) if (folder / MANIFEST).exists() else None
    except BlocksError:
        return None


def _tell_waiting(path: Path) -> None:
    if sys.stderr is not None and sys.stderr.isatty():
        print(f"skadmm: another process is converting {path}: waiting for it", file=sys.stderr, flush=True)


def _key(path: Path, columns: Columns, ones: bool) -> str:
    """What identifies a conversion: the files with their sizes and times of change, and the options. The time of change
    of a file may be set back to what it was; that of its entry and its number, which a new file has, may not."""
    found = [(file, file.stat()) for file in parquet_files(path)]
    files = [
        (str(file.resolve()), stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino) for file, stat in found
    ]
    encoded = [] if columns.encoding is None else [columns.encoding.digest()]
    encoded += ["columns by number"] if kind_of(path) == "npy" else []
    about = json.dumps([VERSION, "typed targets", files, columns[:5], ones, *encoded])
    return hashlib.sha256(about.encode()).hexdigest()[:16]


def _svmlight_columns(path: Path) -> int:
    """The number of columns of an svmlight file, which a column of ones has to follow: one reading of the file."""
    return max(block.X.shape[1] for block in open_source(path, Columns()).blocks(0, 0))


def _check_disk(path: Path, columns: Columns, ones: bool, number: int | None, cache: Path) -> float:
    """The bytes of a conversion, which is refused with the numbers where it does not fit on the disk."""
    size = open_source(path, columns, ones=ones, columns=number).estimate()
    needed, free = SPARE_DISK * size, shutil.disk_usage(cache).free
    if needed > free:
        raise BlocksError(
            f"{path}: its numbers would take about {needed / 1e9:,.3g} GB on disk, and {cache} has "
            f"{free / 1e9:,.3g} GB left: set SKADMM_CACHE to a folder on another disk"
        )
    return size


def _from_lazy(frame: Any, columns: Columns, ones: bool, cache: Path, progress: Report | None) -> FileBlocks:
    """A LazyFrame has no name to find it by again, so its folder is removed with the object that uses it."""
    made(cache)
    work = working_folder(cache, "lazy-")
    try:
        as_lazy(frame).sink_parquet(work / "table.parquet")
        with named_x(work / "table.parquet"):
            convert(work / "table.parquet", work / "blocks", target=columns.target, weight=columns.weight,
                    drop=columns.dropped, labelled=columns.labelled, ones=ones, encoding=columns.encoding,
                    progress=progress)  # fmt: skip
        (work / "table.parquet").unlink()
        folder = FileBlocks(work / "blocks")
    except BaseException:
        remove_working(work)
        raise
    weakref.finalize(folder, remove_working, work)
    return folder


def read_npz(path: str | os.PathLike[str], target: Any = None, weight: Any = None) -> tuple[Any, Any, Any]:
    """X, target and weights of an npz file, in memory. X is dense, or CSR as ``scipy.sparse.save_npz`` stores it. The
    target ("y" by default) and the weights may be names of arrays in the file."""
    if not Path(path).is_file():
        raise FileNotFoundError(f"{path}: there is no such file")
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except (OSError, ValueError, KeyError, EOFError) as error:
        raise BlocksError(f"{path}: not an npz file of numbers, or damaged ({error})") from error
    if {"data", "indices", "indptr", "shape"} <= arrays.keys():
        X: Any = scipy.sparse.csr_array(
            (arrays["data"], arrays["indices"], arrays["indptr"]), shape=tuple(arrays["shape"])
        )
    elif "X" in arrays:
        X = arrays["X"]
    else:
        raise BlocksError(f"{path}: it takes an array X, or data, indices, indptr and shape; it has {sorted(arrays)}")
    for name in (target, weight):
        if isinstance(name, str) and name not in arrays:
            raise BlocksError(f"{path}: there is no array {name!r}; it has {', '.join(sorted(arrays))}")
    y = arrays.get("y") if target is None else arrays[target] if isinstance(target, str) else target
    return X, y, arrays[weight] if isinstance(weight, str) else weight

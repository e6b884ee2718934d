"""Large tables as they were given, before columns of levels are encoded: read a block of rows at a time."""

from __future__ import annotations

import shutil
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from skadmm import _cancel
from skadmm.backends.files import BlocksError, FileBlocks
from skadmm.backends.kinds import is_dask
from skadmm.backends.levels import (
    Encoding,
    Levels,
    Seen,
    categorical_columns,
    dtype_levels,
    seen_columns,
    typed,
    united,
)
from skadmm.backends.processes.table import Processes
from skadmm.backends.readers import Columns, kind_of, open_source
from skadmm.backends.sources import (
    SPARE_DISK,
    StoredTable,
    as_folder,
    as_lazy,
    as_stored,
    is_block_folder,
    is_lazy,
    named_x,
)
from skadmm.backends.writer import write_blocks
from skadmm.io.cache import cache_folder, made
from skadmm.io.locks import remove_working, working_folder
from skadmm.kernels.rows import as_matrix

ROWS_PER_CHUNK = 16_384
"""Rows of a folder that are read at a time."""
ENTRY_BYTES = 12
"""Bytes of an entry of sparse rows on disk."""

SPARSE = "categorical_features: X holds sparse rows; it takes a DataFrame, an array or a table with columns"


class RawTable(Protocol):
    """A large table whose columns may be levels."""

    names: list[str] | None
    """The names of its columns."""
    width: int
    """The number of its columns."""

    def dtypes(self) -> dict[int, Levels]:
        """The columns of a categorical dtype, each with the levels that are known of it."""

    def seen(self, columns: list[int]) -> list[Seen]:
        """What all rows show of the levels of some columns."""

    def mapped(self, function: Callable[[Any], Any], encoding: Encoding) -> list[Any]:
        """A function of the encoded rows of each block, in order."""

    def encoded(self, encoding: Encoding, *, ones: bool) -> Any:
        """The table in the encoding, as estimators take it."""


def raw_table(X: Any, columns: Columns) -> RawTable:
    """The table `X`, of which `columns` are features, targets and weights."""
    if isinstance(X, Processes):
        return RawProcesses(X)
    if isinstance(X, FileBlocks):
        return RawFolder(X)
    if is_dask(X):
        from skadmm.backends.dask.raw import RawDask

        return RawDask(X)
    if is_lazy(X):
        return RawLazy(as_lazy(X), columns)
    stored = as_stored(X)
    if not stored.path.exists():
        raise FileNotFoundError(f"{stored.path}: there is no such file or folder")
    if is_block_folder(stored.path):
        return RawFolder(FileBlocks(stored.path))
    return RawFile(stored, columns._replace(dropped=stored.dropped))


class RawFile:
    """A CSV, Parquet or npy file, or a folder of Parquet files."""

    def __init__(self, stored: StoredTable, columns: Columns) -> None:
        self._stored, self._columns = stored, columns
        self._kind = kind_of(stored.path)
        if self._kind == "svmlight":
            raise TypeError(SPARSE)
        source: Any = open_source(stored.path, columns)
        self._source = source
        self.names: list[str] | None = source.names
        self.width: int = source.width if source.names is None else len(source.names)

    def dtypes(self) -> dict[int, Levels]:
        """Those of a Parquet file; text has no types."""
        if self._kind != "parquet" or self.names is None:
            return {}
        first = next(self._source.frames(self.names, []), None)
        return {} if first is None else categorical_columns(first)

    def seen(self, columns: list[int]) -> list[Seen]:
        """One reading of these columns."""
        keys: list[Any] = columns if self.names is None else [self.names[j] for j in columns]
        parts = []
        for frame in self._source.frames(keys, keys):
            _cancel.check_cancelled()
            parts.append(seen_columns(list(range(len(keys))), frame))
        if not parts:
            raise BlocksError(f"{self._stored.path}: there are no rows to read")
        found = united(parts)
        return found if self._kind in ("parquet", "npy") else [typed(seen) for seen in found]

    def mapped(self, function: Callable[[Any], Any], encoding: Encoding) -> list[Any]:
        """One reading of the file."""
        wanted = Columns(features=self._columns.features, labelled=False, encoding=encoding)
        found = []
        for block in open_source(self._stored.path, wanted).blocks(0, 0):
            _cancel.check_cancelled()
            found.append(function(block.X))
        return found

    def encoded(self, encoding: Encoding, *, ones: bool) -> FileBlocks:
        """A folder of blocks in the cache."""
        columns = self._columns
        return as_folder(
            self._stored, columns.target, columns.weight, labelled=columns.labelled, ones=ones, encoding=encoding
        )


class RawLazy:
    """A LazyFrame of polars: its rows are written once to a Parquet file, which is removed with this object."""

    def __init__(self, frame: Any, columns: Columns) -> None:
        self._schema = frame.collect_schema()
        work = temporary_folder("lazy-")
        weakref.finalize(self, remove_working, work)
        frame.sink_parquet(work / "table.parquet")
        self._work = work
        with self._named():
            self._file = RawFile(StoredTable(work / "table.parquet", cache=work), columns)
        self.names, self.width = self._file.names, self._file.width

    def _named(self) -> AbstractContextManager[None]:
        return named_x(self._work / "table.parquet")

    def dtypes(self) -> dict[int, Levels]:
        """As in a DataFrame of polars."""
        assert self.names is not None
        found = ((j, dtype_levels(_Typed(self._schema[name]))) for j, name in enumerate(self.names))
        return {j: levels for j, levels in found if levels is not None}

    def seen(self, columns: list[int]) -> list[Seen]:
        """One reading of these columns."""
        known = self.dtypes()
        with self._named():
            found = self._file.seen(columns)
        return [seen._replace(known=known.get(j)) for j, seen in zip(columns, found, strict=True)]

    def mapped(self, function: Callable[[Any], Any], encoding: Encoding) -> list[Any]:
        """One reading of the rows."""
        with self._named():
            return self._file.mapped(function, encoding)

    def encoded(self, encoding: Encoding, *, ones: bool) -> FileBlocks:
        """A folder of blocks in the place of the file."""
        with self._named():
            folder = self._file.encoded(encoding, ones=ones)
        (self._work / "table.parquet").unlink()
        weakref.finalize(folder, _keep, self)
        return folder


class _Typed(NamedTuple):
    """A column of which only the type is known."""

    dtype: Any


def _keep(_: Any) -> None:
    """Called when a folder goes, which held what it needs until then."""


class RawFolder:
    """A folder of blocks."""

    def __init__(self, folder: FileBlocks) -> None:
        self._folder = folder
        _refuse_sparse(folder.rows)
        self.width = folder.d - int(folder.ones)
        self.names: list[str] | None = None if folder.names is None else folder.names[: self.width]

    def dtypes(self) -> dict[int, Levels]:
        """A folder holds numbers."""
        return {}

    def _blocks(self) -> Iterator[Any]:
        for start in range(0, self._folder.n, ROWS_PER_CHUNK):
            _cancel.check_cancelled()
            yield as_matrix(self._folder.rows, start, min(start + ROWS_PER_CHUNK, self._folder.n))[:, : self.width]
            self._folder.release()

    def seen(self, columns: list[int]) -> list[Seen]:
        """One reading of the folder."""
        return united([seen_columns(columns, block) for block in self._blocks()])

    def mapped(self, function: Callable[[Any], Any], encoding: Encoding) -> list[Any]:
        """One reading of the folder."""
        return [function(encoding(block)) for block in self._blocks()]

    def encoded(self, encoding: Encoding, *, ones: bool) -> FileBlocks:
        """Another folder, with the column of ones that this one has; it is removed with the object that uses it."""
        folder = self._folder
        entries = self.width + int(folder.ones)
        work = temporary_folder("levels-", ENTRY_BYTES * folder.n * entries)
        blocks = ((encoding(block), None) for block in self._blocks())
        return written(work, blocks, encoding.names_out, folder.ones, (folder.target, folder.sample_weight))


class RawProcesses:
    """Rows that are divided among processes; this process holds them, or maps their folder."""

    def __init__(self, table: Processes) -> None:
        self._table = table
        self._folder = None if table.folder is None else RawFolder(table.folder)
        _refuse_sparse(table.rows)
        self.width = table.shape[1] if self._folder is None else self._folder.width
        self.names: list[str] | None = None if table.names is None else table.names[: self.width]

    def dtypes(self) -> dict[int, Levels]:
        """Processes hold numbers."""
        return {}

    def seen(self, columns: list[int]) -> list[Seen]:
        """One reading of the rows."""
        return (
            seen_columns(columns, as_matrix(self._table.rows)) if self._folder is None else self._folder.seen(columns)
        )

    def mapped(self, function: Callable[[Any], Any], encoding: Encoding) -> list[Any]:
        """One reading of the rows."""
        if self._folder is not None:
            return self._folder.mapped(function, encoding)
        return [function(encoding(as_matrix(self._table.rows)))]

    def encoded(self, encoding: Encoding, *, ones: bool) -> Processes:
        """The encoded rows on as many processes."""
        table = self._table
        if self._folder is not None:
            return Processes(self._folder.encoded(encoding, ones=ones), workers=table.count)
        found = Processes(encoding(as_matrix(table.rows)), workers=table.count)
        found.names = encoding.names_out
        return found


def _refuse_sparse(rows: Any) -> None:
    if hasattr(rows, "indptr"):
        raise TypeError(SPARSE)


def temporary_folder(prefix: str, needed: float = 0.0) -> Path:
    """A new folder in the cache, once the disk has about `needed` free bytes."""
    cache = cache_folder("blocks")
    made(cache)
    free = shutil.disk_usage(cache).free
    if SPARE_DISK * needed > free:
        raise BlocksError(
            f"X: this model needs about {SPARE_DISK * needed / 1e9:,.3g} GB on the disk of this process, and {cache} "
            f"has {free / 1e9:,.3g} GB left: set SKADMM_CACHE to a folder on another disk"
        )
    return working_folder(cache, prefix)


def written(
    work: Path, blocks: Iterator[Any], names: list[str] | None, ones: bool, vectors: tuple[Any, Any] = (None, None)
) -> FileBlocks:
    """The blocks as a folder in `work`, which is removed with the object that uses it; `vectors` are its targets and
    weights."""
    try:
        write_blocks(work / "blocks", blocks, ones=ones)
        folder = FileBlocks(work / "blocks")
    except BaseException:
        remove_working(work)
        raise
    folder.names = None if names is None else [*names, "1"][: folder.d]
    folder.target, folder.sample_weight = vectors
    weakref.finalize(folder, remove_working, work)
    return folder

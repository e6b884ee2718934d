"""Large files read one block at a time: svmlight, CSV, TSV (plain or compressed), Parquet (a file or a folder of files)
and npy."""

from __future__ import annotations

import csv
import io
import re
import warnings
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import IO, Any, NamedTuple, Protocol

import numpy as np

from skadmm._names import no_column
from skadmm.backends.files import BlocksError, RefusedTableError
from skadmm.backends.levels import Encoding, as_levels
from skadmm.backends.svmlight import OPENERS
from skadmm.backends.writer import Block, with_ones

CHUNK_BYTES = 32 << 20
"""Bytes of text read at a time."""
LONGEST_LINE = 1 << 28
PARQUET_ROWS = 65_536
NPY_ENTRIES = 4_000_000
"""Entries of an npy file read at a time."""
SAMPLE_BYTES = 1 << 18
"""Bytes of text from which the size of all numbers is estimated."""
SEPARATORS = (",", ";", "\t", "|")
"""Marks that separate columns in files; CSV takes the first, TSV the tab."""
ENDINGS = {".svm": "svmlight", ".svmlight": "svmlight", ".libsvm": "svmlight", ".txt": "svmlight", ".csv": ",",
           ".tsv": "\t", ".parquet": "parquet", ".pq": "parquet", ".npy": "npy"}  # fmt: skip
NO_NAMES = "the columns of an svmlight file have no names, and its targets are the first number of each line"


class NoColumnError(RefusedTableError):
    """A column that a file does not have."""


class TextColumnError(BlocksError):
    """A column of features that is not one of numbers."""

    def __init__(self, column: str, value: Any, path: Path | None = None) -> None:
        where = "" if path is None else f"{path}: "
        what = (
            f"the text {value!r}, and not a number" if _reads_as_number(value) else f"{value!r}, which is not a number"
        )
        self.fault = f"{where}column {column!r} holds {what}"
        without = f"X.drop(columns=[{column!r}])" if path is None else f"drop=[{column!r}]"
        encode = "convert it to numbers" if _reads_as_number(value) else "encode it"
        super().__init__(f"{self.fault}: {encode}, leave it out ({without}), or name it in categorical_features")
        self.column, self.value = column, value


class MissingError(ValueError):
    """A column of texts, in which a value is missing."""

    def __init__(self, column: str, row: int) -> None:
        super().__init__(f"the column {column!r} has missing values, the first in row {row:,}")
        self.column, self.row = column, row


class Columns(NamedTuple):
    """Which columns of a table are read as what."""

    target: str | None = None
    """The column of targets; None means the last one, and none in an npy file."""
    weight: str | None = None
    """The column of sample weights, where there is one."""
    features: tuple[str, ...] | None = None
    """The columns of X, in this order; None means all others."""
    labelled: bool = True
    """False where there is no column of targets."""
    dropped: tuple[str, ...] = ()
    """Columns that are not read."""
    encoding: Encoding | None = None
    """How columns of levels become columns of numbers, where there are any."""


Parts = tuple[Any, np.ndarray | None, np.ndarray | None]
"""Rows of X, their targets and their weights."""


class Chosen(NamedTuple):
    """The columns of a table, once their names are checked."""

    target: str | None
    weight: str | None
    features: list[str]
    encoding: Encoding | None = None

    @property
    def all(self) -> list[str]:
        """Every column that is read."""
        return [*self.features, *(name for name in (self.target, self.weight) if name is not None)]

    @property
    def names_out(self) -> list[str]:
        """The columns of X as they are written."""
        return self.features if self.encoding is None else self.encoding.names_out


def chosen_columns(path: Path, names: list[str], wanted: Columns) -> Chosen:
    """The columns of a table with these names that are read; an error names the one that is missing."""
    least = 2 if wanted.labelled else 1
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise RefusedTableError(f"{path}: it has two columns named {twice!r}: each name must occur once")
    if len(names) < least:
        number = "two or more columns" if wanted.labelled else "one or more columns"
        raise BlocksError(f"{path}: it takes {number}, each with a name of its own")
    target = (names[-1] if wanted.target is None else wanted.target) if wanted.labelled else None
    weight = wanted.weight
    for name in (target, weight, *(wanted.features or ()), *wanted.dropped):
        if name is not None and name not in names:
            raise NoColumnError(f"{path}: {no_column(name, names)}")
    others = [name for name in names if name not in (target, weight, *wanted.dropped)]
    if not others:
        raise RefusedTableError(f"{path}: no column is left as a feature: drop has all but the target and the weights")
    return Chosen(target, weight, others if wanted.features is None else list(wanted.features), wanted.encoding)


def kind_of(path: Path) -> str:
    """The kind of a file by its ending, "parquet" for a folder; an error where there is no reader for it."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    compressed = bool(suffixes) and suffixes[-1] in OPENERS
    ending = suffixes[-2 if compressed else -1] if len(suffixes) > compressed else ""
    kind = "parquet" if path.is_dir() else ENDINGS.get(ending)
    if kind is None or (kind in ("parquet", "npy") and compressed):
        raise BlocksError(f"{path}: the file extension is not known; it takes {', '.join(ENDINGS)}")
    return kind


def open_source(
    path: Path, wanted: Columns, block_rows: int | None = None, ones: bool = False, columns: int | None = None
) -> Source:
    """A reader for the file, chosen by its ending; a folder is one of Parquet files. `columns` is the number of columns
    of an svmlight file."""
    kind = kind_of(path)
    if kind == "svmlight" and wanted.encoding is not None:
        raise TypeError(f"categorical_features: {path} holds sparse rows; it takes a table of columns")
    if kind == "svmlight":
        for name in (wanted.target, wanted.weight, *wanted.dropped):
            if name is not None:
                raise NoColumnError(f"{path}: there is no column {name!r}: {NO_NAMES}")
        if ones and columns is None:
            raise BlocksError(f"{path}: a column of ones after sparse rows needs the number of columns (--columns)")
        return SvmlightSource(path, block_rows, ones, columns)
    if columns is not None:
        raise BlocksError(f"columns={columns}: it takes None: only svmlight files need a number of columns")
    if kind == "parquet":
        return ParquetSource(path, wanted, block_rows, ones)
    if kind == "npy":
        return NpySource(path, wanted, block_rows, ones)
    return TableSource(path, wanted, block_rows, ones, kind)


class Source(Protocol):
    """A file read a block at a time, from any position on."""

    names: list[str] | None
    """Column names, where the file has them."""
    columns: int | None
    """The number of columns, where it was given."""

    def share(self, position: int) -> float:
        """The share of the file before `position`; NaN where it is not known."""

    def estimate(self) -> float:
        """About how many bytes its numbers take; NaN where the file is compressed."""

    def blocks(self, position: int, rows: int) -> Iterator[Block]:
        """The blocks from `position` on, before which there were `rows` rows."""


class TextSource:
    """Lines of text; a position is an offset in the uncompressed text."""

    names: list[str] | None = None
    columns: int | None = None

    def __init__(self, path: Path, block_rows: int | None, ones: bool) -> None:
        self.path, self.block_rows, self.ones = path, block_rows, ones

    def open(self) -> IO[bytes]:
        """The uncompressed text."""
        return OPENERS.get(self.path.suffix.lower(), open)(self.path, "rb")

    def share(self, position: int) -> float:
        """The share of the file before `position`; NaN where the file is compressed."""
        plain = self.path.suffix.lower() in ENDINGS
        return position / max(1, self.path.stat().st_size) if plain else float("nan")

    def estimate(self) -> float:
        """About how many bytes its numbers take, by its first lines; NaN where the file is compressed."""
        with self.open() as stream:
            stream.seek(self.begin())
            text = b"".join(stream.readlines(SAMPLE_BYTES))
        if not text.strip():
            return 0.0
        X = self._parsed(text, 0)[0]
        stored = 12.0 * X.nnz if hasattr(X, "nnz") else 8.0 * X.size
        return (stored + 8.0 * X.shape[0]) / max(self.share(len(text)), 1e-300)

    def chunks(self, position: int) -> Iterator[tuple[bytes, int]]:
        """Whole lines from `position` on, and the position after them."""
        import lzma

        try:
            with self.open() as stream:
                stream.seek(position)
                while True:
                    lines = self._read_lines(stream)
                    if not lines:
                        return
                    if max(map(len, lines)) >= LONGEST_LINE:
                        raise BlocksError(f"{self.path}: a line of more than {LONGEST_LINE:,} bytes; is it text?")
                    position += sum(map(len, lines))
                    yield b"".join(lines), position
        except (EOFError, lzma.LZMAError) as error:
            raise BlocksError(f"{self.path}: damaged or cut short ({error})") from error

    def _read_lines(self, stream: IO[bytes]) -> list[bytes]:
        if self.block_rows is not None:
            return list(islice(iter(lambda: stream.readline(LONGEST_LINE), b""), self.block_rows))
        return stream.readlines(CHUNK_BYTES)

    def blocks(self, position: int, rows: int) -> Iterator[Block]:
        """The blocks from `position` on, before which there were `rows` rows."""
        for text, after in self.chunks(max(position, self.begin())):
            X, target, weight = self._parsed(text, rows)
            if X.shape[0]:
                rows += X.shape[0]
                yield Block(X, target, weight, after)

    def _parsed(self, text: bytes, rows: int) -> Parts:
        try:
            return self.parse(text)
        except TextColumnError as error:
            raise TextColumnError(error.column, error.value, self.path) from None
        except MissingError as error:
            raise RefusedTableError(f"{self.path}: {MissingError(error.column, rows + error.row)}") from None
        except (ValueError, OverflowError) as error:
            if isinstance(error, BlocksError):
                raise
            raise BlocksError(f"{self.path}: {_after(rows)}{error}") from error

    def begin(self) -> int:
        """The position of the first row."""
        return 0

    def parse(self, text: bytes) -> Parts:
        """Rows, their targets and their weights."""
        raise NotImplementedError


class SvmlightSource(TextSource):
    """svmlight text. Columns are numbered from one, unless the first block has a column 0."""

    def __init__(self, path: Path, block_rows: int | None, ones: bool, columns: int | None) -> None:
        super().__init__(path, block_rows, ones)
        self.columns = None if columns is None else columns + ones
        self._base: int | None = None

    def parse(self, text: bytes) -> Parts:
        """Rows with their columns numbered from zero."""
        X, target = self._read(text)
        if self._base is None:
            first, _ = self._read(next(self.chunks(0))[0])
            self._base = int(first.nnz == 0 or first.indices.min() > 0)
        if self._base and X.nnz and X.indices.min() == 0:
            raise ValueError("a column 0, though the first block counts columns from 1")
        width = max(X.shape[1] - self._base, 1)
        if width >= 2**31 - 1:
            raise ValueError(f"column {width:,} is beyond what the format holds")
        if self.columns is not None:
            if width > self.columns - self.ones:
                raise ValueError(f"column {width:,}, but --columns says {self.columns - self.ones:,}")
            width = self.columns - self.ones
        import scipy.sparse

        X = scipy.sparse.csr_array((X.data, X.indices - self._base, X.indptr), shape=(X.shape[0], width))
        return (with_ones(X) if self.ones else X), target, None

    def _read(self, text: bytes) -> tuple[Any, np.ndarray]:
        from sklearn.datasets import load_svmlight_file

        return load_svmlight_file(io.BytesIO(text), zero_based=True)


class TableSource(TextSource):
    """CSV or TSV: a line of column names, then rows of numbers."""

    def __init__(self, path: Path, wanted: Columns, block_rows: int | None, ones: bool, separator: str) -> None:
        super().__init__(path, block_rows, ones)
        self.separator = separator
        check_separator(path, separator)
        with self.open() as stream:
            head = stream.readline(LONGEST_LINE)
        try:
            self._all = next(csv.reader([head.decode("utf-8-sig")], delimiter=separator))
        except UnicodeDecodeError as error:
            raise BlocksError(f"{path}: {not_utf8(error)}") from error
        except (StopIteration, csv.Error) as error:
            raise BlocksError(f"{path}: it has no first line of column names") from error
        self._head = len(head)
        self._chosen = chosen_columns(path, self._all, wanted)
        self.names = self._chosen.names_out + ["1"] * ones

    @property
    def target(self) -> str | None:
        """The column of targets."""
        return self._chosen.target

    def frames(self, columns: list[str], texts: list[str]) -> Iterator[Any]:
        """Some columns, a block of rows at a time; those named in `texts` are not taken for numbers."""
        for text, _ in self.chunks(self.begin()):
            if text.strip():
                yield self._frame(text, texts, columns)

    def begin(self) -> int:
        """After the names."""
        return self._head

    def parse(self, text: bytes) -> Parts:
        """Rows of numbers."""
        if not text.strip():
            return np.empty((0, len(self._all))), np.empty(0), None
        levels = {} if self._chosen.encoding is None else self._chosen.encoding.categories
        frame = self._frame(text, list(levels))
        for name, values in levels.items():
            frame[name] = as_levels(frame[name], values)
        return split_frame(frame, self._chosen, self.ones)

    def _frame(self, text: bytes, texts: list[str], columns: list[str] | None = None) -> Any:
        frame = read_csv(io.BytesIO(text), sep=self.separator, header=None, names=self._all, engine="c",
                         usecols=columns, dtype=dict.fromkeys(texts, object))  # fmt: skip
        return frame[columns or self._all]


class ParquetSource:
    """A Parquet file, or the Parquet files in a folder, in the order of their names; a position is a number of rows."""

    columns: int | None = None

    def __init__(self, path: Path, wanted: Columns, block_rows: int | None, ones: bool) -> None:
        try:
            import pyarrow.parquet as pq
            from pyarrow import ArrowException, default_memory_pool
        except ImportError as error:
            raise ImportError("Parquet needs pyarrow: pip install 'skadmm[parquet]'") from error
        self.path, self.block_rows, self.ones = path, block_rows or PARQUET_ROWS, ones
        self._broken, self._release = ArrowException, default_memory_pool().release_unused
        self._files = parquet_files(path)
        self._metadata: list[Any] = []
        names: list[str] = []
        for file in self._files:
            try:
                with pq.ParquetFile(file) as opened:  # thousands of files are not held open together
                    found = _columns_of(opened.schema_arrow)
                    self._metadata.append(opened.metadata)
            except (ArrowException, OSError, ValueError) as error:
                raise BlocksError(f"{file}: not a Parquet file, or damaged ({error})") from error
            names = names or found
            _check_same_columns(file, found, self._files[0], names)
        self._chosen = chosen_columns(path, names, wanted)
        self.names: list[str] | None = self._chosen.names_out + ["1"] * ones
        self.rows = sum(metadata.num_rows for metadata in self._metadata)

    def share(self, position: int) -> float:
        """The share of the rows before `position`."""
        return position / max(1, self.rows)

    def estimate(self) -> float:
        """Bytes of its numbers."""
        return 8.0 * self.rows * (len(self._chosen.all) + self.ones)

    @property
    def target(self) -> str | None:
        """The column of targets."""
        return self._chosen.target

    def frames(self, columns: list[str], texts: list[str]) -> Iterator[Any]:
        """Some columns, a block of rows at a time. Columns have types of their own, so `texts` is not needed."""
        for table in self._tables(0, columns):
            yield table.to_pandas(ignore_metadata=True)

    def blocks(self, position: int, rows: int) -> Iterator[Block]:
        """The blocks after the first `position` rows."""
        try:
            yield from self._blocks(position)
        finally:  # what decoding took is given back to the system, because a fit may follow
            self._release()

    def _blocks(self, position: int) -> Iterator[Block]:
        try:
            for table in self._tables(position, self._chosen.all):
                frame = table.to_pandas(ignore_metadata=True)
                del table
                parts = split_frame(frame, self._chosen, self.ones)
                position += len(frame)
                yield Block(*parts, position)
        except TextColumnError as error:
            raise TextColumnError(error.column, error.value, self.path) from None
        except MissingError as error:
            raise RefusedTableError(f"{self.path}: {MissingError(error.column, position + error.row)}") from None
        except (self._broken, OSError, ValueError) as error:
            raise BlocksError(f"{self.path}: {_after(position)}{error}") from error

    def _tables(self, position: int, columns: list[str]) -> Iterator[Any]:
        """The rows after the first `position`, `block_rows` at a time however small row groups and files are. Only
        where files have different types, less."""
        import pyarrow as pa

        held: list[Any] = []
        count = 0
        for batch in self._batches(position, columns):
            if held and not batch.schema.equals(held[0].schema):
                yield pa.Table.from_batches(held)
                held, count = [], 0
            while count + batch.num_rows >= self.block_rows:
                room = self.block_rows - count
                yield pa.Table.from_batches([*held, batch.slice(0, room)])
                held, count, batch = [], 0, batch.slice(room)
            if batch.num_rows:
                held.append(batch)
                count += batch.num_rows
        if held:
            yield pa.Table.from_batches(held)

    def _batches(self, position: int, columns: list[str]) -> Iterator[Any]:
        import pyarrow.parquet as pq

        seen = 0
        for path, metadata in zip(self._files, self._metadata, strict=True):
            if seen + metadata.num_rows <= position:
                seen += metadata.num_rows
                continue
            groups = range(metadata.num_row_groups)
            while groups and seen + metadata.row_group(groups[0]).num_rows <= position:
                seen += metadata.row_group(groups[0]).num_rows
                groups = groups[1:]
            with pq.ParquetFile(path, metadata=metadata) as file:
                for batch in file.iter_batches(self.block_rows, row_groups=list(groups), columns=columns):
                    seen += batch.num_rows
                    if seen > position:
                        rest = batch.slice(max(0, batch.num_rows - (seen - position)))
                        yield rest.select(columns).replace_schema_metadata(None)


def _after(rows: int) -> str:
    """The beginning of a message about a block of rows, which says how many were read before it."""
    return f"after row {rows:,}: " if rows else ""


def _check_same_columns(file: Path, found: list[str], first: Path, names: list[str]) -> None:
    """Raise where a file of a folder has other columns than the first one; they may be in another order."""
    lacking = [name for name in names if name not in found]
    more = [name for name in found if name not in names]
    if lacking or more:
        what = (
            f"no column {lacking[0]!r}, which {first.name} has"
            if lacking
            else (f"a column {more[0]!r}, which {first.name} does not have")
        )
        raise RefusedTableError(f"{file}: there is {what}: the files of a folder have the same columns")


def _columns_of(schema: Any) -> list[str]:
    """The columns of a Parquet file, without the index that pandas has written beside them, which no reader takes for
    a column."""
    index = (schema.pandas_metadata or {}).get("index_columns", [])
    return [name for name in schema.names if name not in index]


class NpySource:
    """An npy file of a two-dimensional array, mapped into memory; a position is a number of rows. Its columns have no
    names; where one is the target, the weight or left out, it is given by its number, counted from 0. Without a number
    there are no targets."""

    names: list[str] | None = None
    columns: int | None = None

    def __init__(self, path: Path, wanted: Columns, block_rows: int | None, ones: bool) -> None:
        try:
            self._array = np.load(path, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError) as error:
            raise BlocksError(f"{path}: not an npy file of numbers, or damaged ({error})") from error
        if self._array.ndim != 2 or self._array.dtype.kind not in "fiub":
            raise BlocksError(
                f"{path}: shape {self._array.shape} of {self._array.dtype}: it takes a two-dimensional array of numbers"
            )
        self.path, self.ones, self._encoding = path, ones, wanted.encoding
        if wanted.encoding is not None:
            self.names = wanted.encoding.names_out + ["1"] * ones
        self._target = self._number(wanted.target) if wanted.labelled else None
        self._weight = self._number(wanted.weight)
        others = {self._target, self._weight, *map(self._number, wanted.dropped)}
        self._features = [j for j in range(self._array.shape[1]) if j not in others]
        if not self._features:
            raise RefusedTableError(f"{path}: no column is left as a feature")
        self.block_rows = block_rows or max(1, NPY_ENTRIES // max(1, self._array.shape[1]))

    def _number(self, name: str | None) -> int | None:
        """The number of a column, which is given as a text."""
        last = self._array.shape[1] - 1
        if name is None:
            return None
        if not name.isdecimal() or int(name) > last:
            raise NoColumnError(
                f"{self.path}: there is no column {name!r}: an npy file has no named columns; give the number of a "
                f"column, 0 … {last}, or in Python an array"
            )
        return int(name)

    @property
    def rows(self) -> int:
        """The number of its rows."""
        return int(self._array.shape[0])

    @property
    def width(self) -> int:
        """The number of its features."""
        return len(self._features)

    def frames(self, columns: list[int], texts: list[int]) -> Iterator[Any]:
        """Some features, a block of rows at a time. They hold numbers, so `texts` is not needed."""
        wanted = [self._features[j] for j in columns]
        for start in range(0, self._array.shape[0], self.block_rows):
            yield self._array[start : start + self.block_rows, wanted]

    def share(self, position: int) -> float:
        """The share of the rows before `position`."""
        return position / max(1, self._array.shape[0])

    def estimate(self) -> float:
        """Bytes of its numbers."""
        n, d = self._array.shape
        return 8.0 * n * (d + self.ones)

    def blocks(self, position: int, rows: int) -> Iterator[Block]:
        """The blocks after the first `position` rows."""
        for start in range(position, self._array.shape[0], self.block_rows):
            part = self._array[start : start + self.block_rows]
            X: Any = np.array(part if self.width == part.shape[1] else part[:, self._features], dtype=np.float64)
            X = X if self._encoding is None else self._encoding(X)
            target = None if self._target is None else _numbers(part[:, self._target])
            weight = None if self._weight is None else np.array(part[:, self._weight], dtype=np.float64)
            yield Block(with_ones(X) if self.ones else X, target, weight, start + X.shape[0])


def _numbers(column: np.ndarray) -> np.ndarray:
    """A column as an array of float64; booleans and integers, which may be classes, keep their type."""
    return np.array(column, dtype=None if column.dtype.kind in "iub" else np.float64)


def parquet_files(path: Path) -> list[Path]:
    """The file, or all Parquet files in a folder and the folders in it, in the order of their names. Files and folders
    whose names begin with a dot or an underscore are those of other programs, and are left out."""
    if not path.is_dir():
        return [path]
    files = sorted(parquet_in(path))
    if not files:
        raise BlocksError(f"{path}: it holds neither Parquet files nor blocks")
    for folder in (part for file in files for part in file.relative_to(path).parts[:-1] if "=" in part):
        raise RefusedTableError(
            f"{path}: the name of the folder {folder!r} holds the values of a column, which are not read: in Python "
            'give pyarrow.dataset.dataset(path, partitioning="hive") as X, or write the column into the files'
        )
    return files


def check_separator(path: Path, separator: str) -> None:
    """Refuse a table of texts whose columns are separated by another mark, which its first line shows."""
    with OPENERS.get(path.suffix.lower(), open)(path, "rb") as stream:
        names, first = (stream.readline(LONGEST_LINE).decode("utf-8", errors="replace") for _ in range(2))
    try:
        number = {mark: len(next(csv.reader([names], delimiter=mark), [])) for mark in (separator, *SEPARATORS)}
    except csv.Error:  # no names: the reader says so
        return
    mark = max(number, key=lambda mark: number[mark])
    if number[mark] == number[separator]:
        return
    commas = mark == ";" and re.search(r"(^|;)\s*[-+]?\d*,\d+\s*(;|$)", names + ";" + first) is not None
    also = ", and its numbers have decimal commas" if commas else ""
    raise RefusedTableError(
        f"{path}: its columns are separated by {mark!r}{also}: CSV takes commas between columns and decimal points, "
        "and TSV tabs"
    )


def parquet_in(path: Path) -> Iterator[Path]:
    """The Parquet files in a folder and the folders in it, in no order."""
    for ending in (".parquet", ".pq"):
        for file in path.rglob(f"*{ending}"):
            if file.is_file() and not any(part.startswith((".", "_")) for part in file.relative_to(path).parts):
                yield file


def read_csv(source: Any, **options: Any) -> Any:
    """Pandas' ``read_csv``; raises where rows have more values than the first line has names. Pandas would take the
    first column for the names of rows, or leave out the last."""
    import pandas as pd

    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)
        try:
            return pd.read_csv(source, index_col=False, **options)
        except pd.errors.ParserWarning:
            raise ValueError("rows have more values than the first line has names") from None


def not_utf8(error: UnicodeDecodeError) -> str:
    """What is wrong with a text of another encoding, and what can be done."""
    byte = error.object[error.start]
    return f"it is not text in UTF-8 (byte 0x{byte:02x}): convert it, as in iconv -f latin1 -t utf-8 OLD > NEW"


def split_frame(frame: Any, chosen: Chosen, ones: bool) -> Parts:
    """X as an array of float64, or sparse where it is encoded; the targets, numbers or texts; and the weights."""
    features = frame[chosen.features]
    weight = None if chosen.weight is None else _weights(frame, chosen.weight)
    if chosen.encoding is not None:
        X = chosen.encoding(features)
        return (with_ones(X) if ones else X), _targets(frame, chosen.target), weight
    numbers = {}
    for name, dtype in features.dtypes.items():
        if getattr(dtype, "kind", "O") not in "fiub":
            found = known_numbers(features[name])
            if found is None:
                raise TextColumnError(str(name), first_text(features[name]))
            numbers[name] = found
    X = (features.assign(**numbers) if numbers else features).to_numpy(dtype=np.float64)
    return (with_ones(X) if ones else X), _targets(frame, chosen.target), weight


def known_numbers(column: Any) -> np.ndarray | None:
    """A column of Python objects that are decimal numbers, or truth values beside missing ones, as float64 with NaN;
    None where it holds anything else."""
    from decimal import Decimal

    import pandas as pd

    if column.dtype != object:
        return None
    missing = np.asarray(pd.isna(column))
    values = np.asarray(column, dtype=object)
    if not all(isinstance(value, (Decimal, bool, np.bool_)) for value in values[~missing]):
        return None
    values = np.where(missing, np.nan, values)
    return values.astype(np.float64)


def _weights(frame: Any, name: str) -> np.ndarray:
    try:
        return np.asarray(frame[name].to_numpy(dtype=np.float64))
    except (TypeError, ValueError):
        value = first_text(frame[name])
        raise ValueError(f"the column {name!r} of weights holds {value!r}, which is not a number") from None


def first_text(column: Any) -> Any:
    """The first value of a column that is not a number; the first of all where only the type is another one."""
    return next((value for value in column if not is_number(value)), column.iloc[0])


def _reads_as_number(value: Any) -> bool:
    return isinstance(value, str) and is_number(value)


def is_number(value: Any) -> bool:
    """Return whether a value is a number, or a text that reads as one."""
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def _targets(frame: Any, name: str | None) -> np.ndarray | None:
    return None if name is None else column_values(frame, name)


def column_values(frame: Any, name: str, *, missing: bool = False) -> np.ndarray:
    """A column as an array of float64 or of texts; booleans and integers, which may be classes, keep their type.
    `missing` says whether texts may be missing, which are None then."""
    column = frame[name]
    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "iub":
        return column.to_numpy()
    if getattr(column.dtype, "kind", "O") in "fiub":
        return column.to_numpy(dtype=np.float64)
    if (numbers := known_numbers(column)) is not None and (missing or not np.isnan(numbers).any()):
        return numbers
    absent = np.asarray(column.isna())
    if not absent.any():
        return column.astype(str).to_numpy(dtype=object)
    if not missing:
        raise MissingError(name, int(np.argmax(absent)))
    texts = np.array(column.astype(str), dtype=object)
    texts[absent] = None
    return texts

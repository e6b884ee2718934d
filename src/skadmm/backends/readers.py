"""Large files read one block at a time: svmlight, CSV, TSV (plain or compressed) and Parquet."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np

from skadmm._names import no_column
from skadmm.backends.files import BlocksError
from skadmm.backends.svmlight import OPENERS
from skadmm.backends.writer import Block, with_ones

CHUNK_BYTES = 32 << 20
"""Bytes of text read at a time."""
LONGEST_LINE = 1 << 28
PARQUET_ROWS = 65_536
ENDINGS = {".svm": "svmlight", ".svmlight": "svmlight", ".libsvm": "svmlight", ".txt": "svmlight", ".csv": ",",
           ".tsv": "\t", ".parquet": "parquet", ".pq": "parquet"}  # fmt: skip


def open_source(path: Path, target: str | None, block_rows: int | None, ones: bool, columns: int | None) -> Source:
    """A reader for the file, chosen by its ending."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    compressed = bool(suffixes) and suffixes[-1] in OPENERS
    ending = suffixes[-2 if compressed else -1] if len(suffixes) > compressed else ""
    kind = ENDINGS.get(ending)
    if kind is None or (kind == "parquet" and compressed):
        raise BlocksError(f"{path}: the ending says no format; it takes {', '.join(ENDINGS)}")
    if kind == "svmlight":
        if ones and columns is None:
            raise BlocksError(f"{path}: a column of ones behind sparse rows needs their number of columns (--columns)")
        return SvmlightSource(path, block_rows, ones, columns)
    if columns is not None:
        raise BlocksError(f"columns={columns}: only svmlight files leave their number of columns open")
    if kind == "parquet":
        return ParquetSource(path, target, block_rows, ones)
    return TableSource(path, target, block_rows, ones, kind)


class Source(Protocol):
    """A file read a block at a time, from any position on."""

    names: list[str] | None
    """Column names, where the file has them."""
    columns: int | None
    """The number of columns, where it was given."""

    def share(self, position: int) -> float:
        """The share of the file before `position`; NaN where it is not known."""

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
            try:
                X, target = self.parse(text)
            except (ValueError, OverflowError) as error:
                if isinstance(error, BlocksError):
                    raise
                raise BlocksError(f"{self.path}: after row {rows:,}: {error}") from error
            if X.shape[0]:
                rows += X.shape[0]
                yield Block(X, target, None, after)

    def begin(self) -> int:
        """The position of the first row."""
        return 0

    def parse(self, text: bytes) -> tuple[Any, np.ndarray]:
        """Rows and their targets."""
        raise NotImplementedError


class SvmlightSource(TextSource):
    """svmlight text. Columns are numbered from one, unless the first block has a column 0."""

    def __init__(self, path: Path, block_rows: int | None, ones: bool, columns: int | None) -> None:
        super().__init__(path, block_rows, ones)
        self.columns = None if columns is None else columns + ones
        self._base: int | None = None

    def parse(self, text: bytes) -> tuple[Any, np.ndarray]:
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
        return (with_ones(X) if self.ones else X), target

    def _read(self, text: bytes) -> tuple[Any, np.ndarray]:
        from sklearn.datasets import load_svmlight_file

        return load_svmlight_file(io.BytesIO(text), zero_based=True)


class TableSource(TextSource):
    """CSV or TSV: a line of column names, then rows of numbers."""

    def __init__(self, path: Path, target: str | None, block_rows: int | None, ones: bool, separator: str) -> None:
        super().__init__(path, block_rows, ones)
        self.separator = separator
        with self.open() as stream:
            head = stream.readline(LONGEST_LINE)
        try:
            self._all = next(csv.reader([head.decode("utf-8-sig")], delimiter=separator))
        except (StopIteration, UnicodeDecodeError, csv.Error) as error:
            raise BlocksError(f"{path}: it has no first line of column names") from error
        self._head = len(head)
        self._target = target_column(path, self._all, target)
        self.names = [name for name in self._all if name != self._target] + ["1"] * ones

    def begin(self) -> int:
        """After the names."""
        return self._head

    def parse(self, text: bytes) -> tuple[Any, np.ndarray]:
        """Rows of numbers."""
        import pandas as pd

        if not text.strip():
            return np.empty((0, len(self._all))), np.empty(0)
        frame = pd.read_csv(io.BytesIO(text), sep=self.separator, header=None, names=self._all, index_col=False,
                            engine="c")  # fmt: skip
        return split_frame(frame, self._target, self.ones)


class ParquetSource:
    """Parquet; a position is a number of rows."""

    columns: int | None = None

    def __init__(self, path: Path, target: str | None, block_rows: int | None, ones: bool) -> None:
        try:
            import pyarrow.parquet as pq
            from pyarrow import ArrowException
        except ImportError as error:
            raise ImportError("Parquet needs pyarrow: pip install 'skadmm[reproduce]'") from error
        self.path, self.block_rows, self.ones = path, block_rows or PARQUET_ROWS, ones
        self._broken = ArrowException
        try:
            self._file = pq.ParquetFile(path)
        except (ArrowException, OSError, ValueError) as error:
            raise BlocksError(f"{path}: not a Parquet file, or damaged ({error})") from error
        names = list(self._file.schema_arrow.names)
        self._target = target_column(path, names, target)
        self.names: list[str] | None = [name for name in names if name != self._target] + ["1"] * ones

    def share(self, position: int) -> float:
        """The share of the file before `position`."""
        return position / max(1, self._file.metadata.num_rows)

    def blocks(self, position: int, rows: int) -> Iterator[Block]:
        """The blocks after the first `position` rows. No block spans two row groups."""
        seen = 0
        for group in range(self._file.num_row_groups):
            size = self._file.metadata.row_group(group).num_rows
            if seen + size <= position:
                seen += size
                continue
            try:
                for batch in self._file.iter_batches(self.block_rows, row_groups=[group]):
                    seen += batch.num_rows
                    if seen <= position:
                        continue
                    X, target = split_frame(batch.to_pandas(), self._target, self.ones)
                    yield Block(X, target, None, seen)
            except (self._broken, OSError, ValueError) as error:
                raise BlocksError(f"{self.path}: after row {seen:,}: {error}") from error


def target_column(path: Path, names: list[str], target: str | None) -> str:
    """The column of targets: `target`, or the last column."""
    if len(set(names)) != len(names) or len(names) < 2:
        raise BlocksError(f"{path}: it takes two or more columns, each with a name of its own")
    if target is not None and target not in names:
        raise BlocksError(f"{path}: {no_column(target, names)}")
    return names[-1] if target is None else target


def split_frame(frame: Any, target: str, ones: bool) -> tuple[np.ndarray, np.ndarray]:
    """X as an array of float64, and the target: of float64, or of texts."""
    features = frame.drop(columns=[target])
    others = [str(name) for name, dtype in features.dtypes.items() if getattr(dtype, "kind", "O") not in "fiub"]
    if others:
        raise ValueError(f"columns that are not numbers throughout: {', '.join(others[:5])}. Encode them first")
    X, y = features.to_numpy(dtype=np.float64), frame[target]
    if getattr(y.dtype, "kind", "O") in "fiub":
        return (with_ones(X) if ones else X), y.to_numpy(dtype=np.float64)
    if y.isna().any():
        raise ValueError(f"the target {target!r} has missing values")
    return (with_ones(X) if ones else X), y.astype(str).to_numpy(dtype=object)

"""Folders of blocks from large files, read once and in bounded memory. A conversion that was stopped continues."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from skadmm.backends.levels import Encoding
from skadmm.backends.readers import Columns, open_source, parquet_files
from skadmm.backends.writer import BlockWriter, write_blocks

__all__ = ["convert", "write_blocks"]


def convert(
    source: Path,
    folder: Path,
    *,
    target: str | None = None,
    weight: str | None = None,
    drop: tuple[str, ...] = (),
    labelled: bool = True,
    block_rows: int | None = None,
    dtype: str = "<f8",
    ones: bool = False,
    columns: int | None = None,
    encoding: Encoding | None = None,
    progress: Callable[[int, float], None] | None = None,
) -> int:
    """Write a large file as a folder of blocks, which a ``Problem`` or an estimator takes as `X`.

    Parameters
    ----------
    source : path
        svmlight, CSV, TSV (plain or compressed), Parquet or npy, recognised by its ending, or a folder of Parquet
        files.
    folder : path
        New or empty, or the folder of the same conversion that was stopped, which is continued.
    target : str, optional
        The column of targets, numbers or texts; the last one by default. Of an npy file, whose columns have no names,
        `target`, `weight` and `drop` are numbers of columns, as texts; it has no targets by default. Not for svmlight.
    weight : str, optional
        The column of sample weights. Not for svmlight.
    drop : tuple of str
        Columns to leave out. Not for svmlight.
    labelled : bool
        False where no column holds targets. Not for svmlight, whose rows begin with them.
    block_rows : int, optional
        Rows read and written at a time.
    dtype : "<f8" or "<f4"
        The type of the entries on disk.
    ones : bool
        Add a last column of ones, for an intercept.
    columns : int, optional
        The number of columns of an svmlight file, where the last ones may be empty.
    encoding : Encoding, optional
        The levels of categorical columns, which become indicator columns: the folder then holds sparse rows.
    progress : function of (int, float), optional
        Called after every block with the rows written and the share of the file read (NaN where unknown).

    Returns
    -------
    int
        The number of rows.
    """
    if not source.exists():
        raise FileNotFoundError(f"{source}: there is no such file")
    stats = [file.stat() for file in parquet_files(source)]
    wanted = Columns(target, weight, labelled=labelled, dropped=drop, encoding=encoding)
    reader = open_source(source, wanted, block_rows, ones, columns)
    origin = {"source": source.name, "size": sum(stat.st_size for stat in stats),
              "changed": max(stat.st_mtime_ns for stat in stats), "target": target, "weight": weight,
              "drop": list(drop), "labelled": labelled, "block_rows": block_rows, "columns": columns}  # fmt: skip
    if encoding is not None:
        origin["encoding"] = encoding.digest()
    writer = BlockWriter(folder, origin, dtype=dtype, ones=ones, names=reader.names)
    for block in reader.blocks(writer.position, writer.rows):
        writer.write(block)
        if progress is not None:
            progress(writer.rows, reader.share(block.position))
    writer.finish(reader.names, reader.columns)
    return writer.rows

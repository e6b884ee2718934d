"""Tables for ``fit`` and ``compare``: in memory where they are small, otherwise on disk."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from skadmm.cli._errors import CommandError
from skadmm.cli.tables import (
    NotNumbersError,
    Table,
    last_of_npy,
    names_in,
    not_a_number,
    npy_table,
    numbers_only,
    read_table,
    refuse_several,
)
from skadmm.cli.targets import check_targets, check_weights
from skadmm.cli.words import size_in_words

LARGE_SHARE = 0.25
"""A file whose numbers take a larger share of the free memory stays on disk."""


def open_table(
    path: Path,
    target: str | Sequence[str] | None,
    drop: Sequence[str] | None,
    *,
    weight: str | None = None,
    other: str | None = None,
    texts: Any = None,
    ones: bool,
    on_disk: bool | None = None,
    cache: Path | None = None,
    quiet: bool = True,
    dates: bool = False,
    levels: bool = True,
) -> Table:
    """The table with its targets and weights. `on_disk` None means by its size; `ones` is for an intercept; `texts` are
    the columns that need not be numbers, "from_dtype" for all that are not; `dates` says whether they may be dates;
    `other` is a column that is no feature and is taken from the table later; `levels` says whether the command takes
    columns of levels, which messages then advise."""
    targets = [target] if isinstance(target, str) else list(target or ())
    try:
        return _opened(path, targets, names_in(drop), weight, other, texts, ones, on_disk, cache, quiet, dates, levels)
    except NotNumbersError as error:
        last = None if targets else _last_column(path)
        if last is None:
            raise
        raise CommandError(f"{error}; without --target the last column, {last!r}, is the target", error.code) from error


def _last_column(path: Path) -> str | None:
    """The name of the last column of a file, which is the target by default; None where columns have no names."""
    from skadmm.backends.readers import Columns, open_source

    names = open_source(path, Columns(labelled=False)).names
    return names[-1] if names else None


def _opened(
    path: Path,
    targets: list[str],
    dropped: list[str],
    weight: str | None,
    other: str | None,
    texts: Any,
    ones: bool,
    on_disk: bool | None,
    cache: Path | None,
    quiet: bool,
    dates: bool,
    levels: bool,
) -> Table:
    """The table of :func:`open_table`."""
    npy = path.is_file() and path.suffix.lower() == ".npy"
    if npy:
        refuse_several(targets)
    if not stays_on_disk(path, on_disk):
        if npy:
            table = npy_table(path, targets[0] if targets else None, weight, dropped)
            check_targets(path, targets, table.target)
            if weight is not None:
                check_weights(weight, np.asarray(table.weight))
            return table
        table = numbers_only(read_table(path, targets, labelled=True), path, dropped, texts, dates, levels)
        return table if weight is None else _with_weight(table, path, weight)
    from skadmm.backends import BlocksError, as_folder
    from skadmm.backends.readers import TextColumnError, kind_of
    from skadmm.backends.sources import is_block_folder

    apart = texts is not None or other is not None or len(targets) > 1 or dates
    if apart and not (npy or is_block_folder(path) or kind_of(path) == "svmlight"):
        return _read_apart(path, targets, weight, other, dropped, texts, cache, quiet, dates)
    try:
        target = targets[0] if targets else last_of_npy(path) if npy else None
        folder = as_folder(path, target, weight, drop=tuple(dropped), ones=ones, cache=cache,
                           progress=None if quiet or not sys.stderr.isatty() else tell,
                           announce=None if quiet else partial(tell_size, path))  # fmt: skip
    except TextColumnError as error:
        raise not_a_number(path, error.column, error.value, levels=levels, dates=dates) from error
    except (BlocksError, ValueError) as error:
        raise _as_command_error(error) from error
    return Table(folder, folder.target, folder.sample_weight)


def _read_apart(
    path: Path,
    targets: list[str],
    weight: str | None,
    other: str | None,
    dropped: list[str],
    texts: Any,
    cache: Path | None,
    quiet: bool,
    dates: bool,
) -> Table:
    """A table that the model converts, once it knows what its columns are: its targets and weights as arrays."""
    from skadmm.backends import BlocksError
    from skadmm.backends.named_columns import read_columns, without_columns
    from skadmm.backends.sources import StoredTable

    progress, announce = (None, None) if quiet or not sys.stderr.isatty() else (tell, partial(tell_size, path))
    try:
        table = StoredTable(path, tuple(dropped), cache, progress, announce)
        targets = targets or [name for name in table.columns if name != weight][-1:]
        *found, last = read_columns(table, [*targets, *([] if weight is None else [weight])])
        table = without_columns(table, [*targets, *([] if weight is None else [weight])])
        features = [name for name in table.columns if name != other]
        if texts is None and not (dates and len(features) == 1):  # positions may be dates
            for name in (name for name in table.text_columns() if name != other):
                raise not_a_number(path, name, read_columns(table, [name])[0][0], dates=dates)
    except (BlocksError, ValueError) as error:
        raise _as_command_error(error) from error
    labels = _as_one([*found, last] if weight is None else found)
    check_targets(path, targets, labels)
    if weight is None:
        return Table(table, labels)
    check_weights(weight, last)
    return Table(table, labels, last)


def stored_table(path: Path, targets: Sequence[str], *, complete: bool = True) -> Table:
    """A table that is left on disk, without some columns, which are read as targets; `complete` refuses missing
    ones."""
    from skadmm.backends import BlocksError
    from skadmm.backends.named_columns import read_columns, without_columns
    from skadmm.backends.sources import StoredTable

    table = StoredTable(path)
    try:
        found = read_columns(table, targets, missing=not complete) if targets else []
        rest = without_columns(table, targets)
    except BlocksError as error:
        raise _as_command_error(error) from error
    target = _as_one(found) if found else None
    if complete:
        check_targets(path, targets, target)
    return Table(rest, target)


def _as_one(columns: list[np.ndarray]) -> np.ndarray:
    """A vector, or a table of several columns."""
    return columns[0] if len(columns) == 1 else np.column_stack(columns)


def _as_command_error(error: Exception) -> CommandError:
    """The error with its exit code: that of wrong usage where the table was read and is refused, as in memory."""
    from skadmm.backends.files import RefusedTableError

    return CommandError(str(error), 2 if isinstance(error, RefusedTableError) else 1)


def stays_on_disk(path: Path, on_disk: bool | None) -> bool:
    """Is the table left on disk? Folders of Parquet files are, and files whose numbers are large."""
    from skadmm.backends.readers import Columns, open_source
    from skadmm.backends.sources import is_block_folder
    from skadmm.run.memory import available

    if path.is_dir():
        return not is_block_folder(path)
    if on_disk and path.suffix.lower() == ".npz":
        raise CommandError(f"--on-disk: {path} is an npz file, which is read into memory; give a Parquet file", 2)
    if on_disk is not None or not path.is_file() or path.suffix.lower() == ".npz":
        return bool(on_disk)
    try:
        needed = open_source(path, Columns()).estimate()
    except (ValueError, ImportError):  # the reader of small tables says what is wrong
        return False
    return not math.isnan(needed) and needed > LARGE_SHARE * available()


def _with_weight(table: Table, path: Path, weight: str) -> Table:
    """The table with one of its columns as weights."""
    if not hasattr(table.X, "columns") or weight not in table.X.columns:
        raise CommandError(f"--weight {weight}: {path} has no such column", 2)
    weights = table.X[weight].to_numpy(dtype=float, na_value=np.nan)
    check_weights(weight, weights)
    return Table(table.X.drop(columns=[weight]), table.target, weights)


def tell_size(path: Path, size: float, folder: Path) -> None:
    """Show what a conversion will take, before it begins."""
    about = "an unknown number of bytes" if math.isnan(size) else f"about {size_in_words(size)}"
    print(f"{path} is converted once: {about} in {folder}", file=sys.stderr, flush=True)


def tell(rows: int, share: float) -> None:
    """Show how far a conversion is."""
    done = "" if math.isnan(share) else f", {min(share, 1):.0%}"
    print(f"\rconverting: {rows:,} rows{done}", end="" if share < 1 else "\n", file=sys.stderr, flush=True)

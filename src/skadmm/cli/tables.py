"""Tables from files: svmlight, CSV, Parquet, npy and npz, plain or compressed."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from skadmm._names import no_column
from skadmm.cli._errors import CommandError
from skadmm.cli.targets import check_targets

COMPRESSED = (".gz", ".bz2", ".xz")
KINDS = {
    ".svm": "svmlight", ".svmlight": "svmlight", ".libsvm": "svmlight", ".txt": "svmlight",
    ".csv": "csv", ".tsv": "tsv", ".parquet": "parquet", ".pq": "parquet", ".npy": "npy", ".npz": "npz",
}  # fmt: skip


class Table(NamedTuple):
    """Columns and, where it is requested or the file has one, the target."""

    X: Any
    target: np.ndarray | None
    weight: np.ndarray | None = None


def names_in(given: Sequence[str] | None) -> list[str]:
    """The names of an option that may be repeated and may hold several names, separated by commas."""
    return [name.strip() for text in given or () for name in text.split(",") if name.strip()]


def kind_of(path: Path) -> str:
    """The format, by the file's ending."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in COMPRESSED:
        suffixes.pop()
    ending = suffixes[-1] if suffixes else ""
    if ending not in KINDS:
        known = ", ".join(KINDS)
        raise CommandError(
            f"{path}: the file extension is not known; it takes {known}, for text also with .gz, .bz2, .xz", 2
        )
    return KINDS[ending]


def read_table(
    path: Path,
    target: str | Sequence[str] | None,
    *,
    labelled: bool,
    n_features: int | None = None,
    complete: bool = True,
) -> Table:
    """The table at `path`.

    A folder of blocks (``skadmm data convert``) stays on disk. `target` names the column of labels, or several columns
    of numbers. By default it is the last column of a CSV, Parquet or npy file, whose columns are numbers, and the array
    "y" of an npz file. With `labelled` false, labels are left out where they are, and need not be there. `complete`
    refuses missing labels.
    """
    names = (target,) if isinstance(target, str) else tuple(target or ())
    first = names[0] if names else None
    if path.is_dir():
        return _from_folder(path, first)
    if not path.is_file():
        raise CommandError(f"{path}: there is no such file")
    kind = kind_of(path)
    if kind in ("svmlight", "npy", "npz"):
        refuse_several(names)
    try:
        if kind == "svmlight":
            from skadmm.datasets import read_svmlight

            table = Table(*read_svmlight(path, n_features))
        elif kind == "npy":
            table = npy_table(path, first, labelled=labelled)
        elif kind == "npz":
            table = _from_npz(path, first or "y", labelled)
        else:
            frame = _frame(path, kind)
            if labelled and not names:
                names = (str(frame.columns[-1]),)
            table = _from_frame(frame, path, names, labelled)
        if complete:
            check_targets(path, names, table.target)
        return table
    except CommandError:
        raise
    except UnicodeDecodeError as error:
        from skadmm.backends.readers import not_utf8

        raise CommandError(f"{path}: {not_utf8(error)}") from error
    except (ValueError, OSError, EOFError, KeyError) as error:
        raise CommandError(f"{path}: cannot be read as {kind}: {error}") from error


def refuse_several(targets: Sequence[str]) -> None:
    """Refuse several targets of a file whose columns have no names."""
    if len(targets) > 1:
        raise CommandError(f"--target {targets[1]}: several targets are columns of a CSV, TSV or Parquet file", 2)


def last_of_npy(path: Path) -> str:
    """The number of the last column of an npy file, which holds the targets where no other column is given."""
    from skadmm.backends.readers import Columns, open_source

    source: Any = open_source(path, Columns(labelled=False))
    return str(source.width - 1)


def npy_table(
    path: Path, target: str | None, weight: str | None = None, drop: Sequence[str] = (), *, labelled: bool = True
) -> Table:
    """An npy file in memory. Its columns have no names; they are given by their numbers."""
    from skadmm.backends import BlocksError
    from skadmm.backends.files import RefusedTableError
    from skadmm.backends.readers import Columns, open_source

    try:
        target = target or (last_of_npy(path) if labelled else None)
        wanted = Columns(target, weight, labelled=target is not None, dropped=tuple(drop))
        blocks = list(open_source(path, wanted).blocks(0, 0))
    except BlocksError as error:
        raise CommandError(str(error), 2 if isinstance(error, RefusedTableError) else 1) from error
    if not blocks:
        raise CommandError(f"{path}: it has no rows", 2)
    found = zip(*((block.X, block.target, block.weight) for block in blocks), strict=True)
    return Table(*(None if parts[0] is None else np.concatenate(parts) for parts in found))


def _from_folder(path: Path, target: str | None) -> Table:
    """A folder of blocks, which stays on disk; it has its own target."""
    from skadmm.backends import BlocksError, FileBlocks

    if target is not None:
        raise CommandError(f"--target {target}: the folder {path} has a target of its own, if any", 2)
    try:
        folder = FileBlocks(path)
    except BlocksError as error:
        raise CommandError(str(error)) from error
    return Table(folder, folder.target, folder.sample_weight)


def _frame(path: Path, kind: str) -> Any:
    import pandas as pd

    from skadmm.backends.files import RefusedTableError
    from skadmm.backends.readers import check_separator, read_csv

    if kind == "parquet":
        return pd.read_parquet(path)
    separator = "\t" if kind == "tsv" else ","
    try:
        check_separator(path, separator)
    except RefusedTableError as error:
        raise CommandError(str(error), 2) from error
    return read_csv(path, sep=separator)


def _from_frame(frame: Any, path: Path, targets: tuple[str, ...], labelled: bool) -> Table:
    missing = [name for name in targets if name not in frame.columns]
    if missing and labelled:
        raise CommandError(f"{path}: {no_column(missing[0], list(map(str, frame.columns)))}", 2)
    if missing or not targets:
        return Table(frame, None)
    labels = frame[targets[0] if len(targets) == 1 else list(targets)].to_numpy()
    return Table(frame.drop(columns=list(targets)), labels)


def column_of(X: Any, name: str) -> np.ndarray:
    """A column of a table with names, in memory or on disk."""
    from skadmm.backends import is_stored
    from skadmm.backends.named_columns import read_columns

    return read_columns(X, [name])[0] if is_stored(X) else X[name].to_numpy()


def without(X: Any, name: str) -> Any:
    """The table without a column."""
    from skadmm.backends import is_stored
    from skadmm.backends.named_columns import without_columns

    return without_columns(X, [name]) if is_stored(X) else X.drop(columns=[name])


def is_date(value: Any) -> bool:
    """Is a value a date, or a text such as 2024-01-31 or 2024-01-31 12:00?"""
    import pandas as pd

    if not isinstance(value, str):
        return hasattr(value, "isoformat")
    return bool(pd.notna(pd.to_datetime(value, format="ISO8601", errors="coerce", utc=True)))


def not_a_date(path: Path, name: str, column: Any) -> CommandError | None:
    """The error for positions that are dates but for some values; None where no value is a date."""
    dates = [is_date(value) for value in column]
    others = [row for row, value in enumerate(column) if not dates[row] and isinstance(value, str)]
    if not any(dates) or not others:
        return None
    return CommandError(
        f"{path}: column {name!r} holds {column.iloc[others[0]]!r} in row {others[0]:,}, which is not a date as in "
        f"2024-01-31; {sum(dates):,} of its {len(dates):,} values are dates: correct the value, or leave out the row",
        2,
    )


class NotNumbersError(CommandError):
    """A column of texts or dates among the features."""

    def __init__(self, message: str) -> None:
        super().__init__(message, 2)


def not_a_number(path: Path, name: str, value: Any, *, levels: bool = True, dates: bool = False) -> NotNumbersError:
    """The error for a column of texts or dates, with what can be done about it; `levels` says whether the command takes
    levels, and `dates` whether the model takes dates, which it does as its only column."""
    if is_date(value):
        takes = "a column of dates as positions"
        own = f"a trend takes {takes} where there is no other" if dates else f"--model trend-filter takes {takes}"
        return NotNumbersError(
            f"{path}: column {name!r} holds dates, such as {str(value)!r}: --drop {name}, or turn them into numbers, "
            f"such as days since the first one; {own}"
        )
    if not levels:
        return NotNumbersError(
            f"{path}: column {name!r} holds {value!r}, which is not a number: encode it, or --drop {name}"
        )
    as_levels = f"--set 'categorical_features=[\"{name}\"]'"
    in_order = f'--set \'categorical_features={{"{name}":"ordered"}}\''
    return NotNumbersError(
        f"{path}: column {name!r} holds {value!r}, which is not a number: encode it, or --drop {name}, or fit a "
        f"coefficient for each of its levels: skadmm fit {as_levels}, or {in_order} if they have an order: "
        'it sorts them, and a list such as ["first","second"] in place of "ordered" gives another order'
    )


def numbers_only(
    table: Table, path: Path, drop: list[str], texts: Any = None, dates: bool = False, levels: bool = True
) -> Table:
    """The table without some columns, once all that is left holds numbers, but for those named in `texts`, and where
    `dates` says so for dates. `levels` says whether the command takes columns of levels, which messages then advise."""
    from skadmm.backends.frames import texts_as_dates
    from skadmm.backends.readers import is_number

    X = table.X
    if not hasattr(X, "columns"):
        if drop:
            raise CommandError(f"--drop {','.join(drop)}: the columns of {path} have no names", 2)
        return table
    for name in drop:
        if name not in X.columns:
            raise CommandError(f"--drop: {no_column(name, list(map(str, X.columns)))}", 2)
    X = X.drop(columns=drop)
    if not len(X):
        raise CommandError(f"{path}: it has names of columns and no rows", 2)
    if not len(X.columns):
        raise CommandError(f"{path}: no column is left as a feature: --drop has all but the target", 2)
    X = texts_as_dates(X) if dates else X
    others = X.select_dtypes(exclude=["number", "bool", *(["datetime", "datetimetz"] if dates else [])])
    if str(X.columns[0] if len(X.columns) else "").startswith("Unnamed: "):
        left_out = f"--drop '{X.columns[0]}' leaves it out"
        print(f"skadmm: {path}: the column {X.columns[0]!r} has no name in the file; {left_out}", file=sys.stderr)
    if texts == "from_dtype":
        return Table(X.astype(dict.fromkeys(others.columns, "category")), table.target)
    for name, column in others.drop(columns=texts or [], errors="ignore").items():
        if dates and (error := not_a_date(path, str(name), column)) is not None:
            raise error
        for value in column:
            if not is_number(value):
                raise not_a_number(path, str(name), value, levels=levels)
    return Table(X, table.target)


def _from_npz(path: Path, target: str, labelled: bool) -> Table:
    from skadmm.backends.sources import read_npz

    with np.load(path, allow_pickle=False) as file:
        names = file.files
    if labelled and target not in names:
        raise CommandError(f"{path}: there is no array {target!r}; it has {', '.join(sorted(names))}", 2)
    X, labels, _ = read_npz(path, target if target in names else None)
    return Table(X, labels)


def as_text(value: Any) -> str:
    """A value for a CSV file: in quotes where it holds a comma, a quote or a line break."""
    text = repr(float(value)) if isinstance(value, (float, np.floating)) else str(value)
    return '"' + text.replace('"', '""') + '"' if any(mark in text for mark in ',"\n') else text

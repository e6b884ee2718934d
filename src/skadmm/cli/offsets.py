"""``--offset`` and ``--exposure``: a column that is added to the margins."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from skadmm._names import no_column
from skadmm.cli._errors import CommandError
from skadmm.cli.tables import Table, column_of, without


def take_offset(table: Table, path: Path, offset: str | None, exposure: str | None) -> tuple[Table, np.ndarray | None]:
    """The table without the column, and the offset of each row: the column, or the logarithm of an exposure."""
    if offset is None and exposure is None:
        return table, None
    if offset is not None and exposure is not None:
        raise CommandError("--offset and --exposure: it takes only one of them", 2)
    option, name = ("--offset", offset) if exposure is None else ("--exposure", exposure)
    X = table.X
    if not len(getattr(X, "columns", ())):
        raise CommandError(f"{option} {name}: the columns of {path} have no names", 2)
    if name not in X.columns:
        raise CommandError(f"{option}: {no_column(str(name), list(map(str, X.columns)))}", 2)
    numbers = np.asarray(column_of(X, str(name)), dtype=float)
    rest = table._replace(X=without(X, str(name)))
    if exposure is None:
        return rest, numbers
    if not np.all(numbers > 0):
        first = int(np.argmax(~(numbers > 0)))
        raise CommandError(f"--exposure {name}: row {first} has {numbers[first]:g}; it takes numbers > 0", 2)
    return rest, np.log(numbers)

"""``--offset`` and ``--exposure``: a column that is added to the margins."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from skadmm._names import no_column
from skadmm.cli._errors import CommandError
from skadmm.cli.large import read_targets
from skadmm.cli.tables import Table


def check_link(loss: Any, exposure: str | None) -> None:
    """Refuse an exposure where the loss has no logarithmic link, such as the squared loss."""
    from skadmm.estimators._losses import mean_of

    if exposure is None:
        return
    mean, margins = mean_of(loss), np.array([-1.0, 0.0, 1.0])
    if mean is None or not np.allclose(mean(margins), np.exp(margins)):
        raise CommandError(
            f"--exposure {exposure}: it takes a loss whose mean is an exponential, such as --loss poisson; the loss is "
            f"{getattr(loss, 'name', loss)}",
            2,
        )


def take_offset(table: Table, path: Path, offset: str | None, exposure: str | None) -> tuple[Table, np.ndarray | None]:
    """The table without the column, and the offset of each row: the column, or the logarithm of an exposure."""
    from scipy.sparse import issparse

    from skadmm.backends.sources import is_block_folder

    if offset is None and exposure is None:
        return table, None
    if offset is not None and exposure is not None:
        raise CommandError("--offset and --exposure: it takes only one of them", 2)
    option, name = ("--offset", offset) if exposure is None else ("--exposure", exposure)
    X, rest = table.X, table
    if hasattr(X, "columns"):
        if name not in X.columns:
            raise CommandError(f"{option}: {no_column(str(name), list(map(str, X.columns)))}", 2)
        column, rest = X[name], table._replace(X=X.drop(columns=[name]))
    elif isinstance(X, np.ndarray) or issparse(X) or is_block_folder(path):
        raise CommandError(f"{option} {name}: the columns of {path} have no names", 2)
    else:  # on disk; a fit has left the column out of the table
        column = read_targets(path, str(name))
    try:
        numbers = np.asarray(column, dtype=float)
    except (TypeError, ValueError):
        raise CommandError(f"{option} {name}: the column does not hold numbers", 2) from None
    if exposure is None:
        return rest, numbers
    if not np.all(numbers > 0):
        first = int(np.argmax(~(numbers > 0)))
        raise CommandError(f"--exposure {name}: row {first} has {numbers[first]:g}; it takes numbers > 0", 2)
    return rest, np.log(numbers)

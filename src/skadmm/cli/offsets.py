"""``--offset`` and ``--exposure``: a column that is added to the margins."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from skadmm._names import no_column
from skadmm.cli._errors import CommandError
from skadmm.cli.tables import Table, column_of, without


def check_link(loss: Any, exposure: str | None) -> None:
    """Refuse an exposure where the loss has no logarithmic link, such as the squared loss."""
    from skadmm.estimators._losses import mean_of
    from skadmm.losses import as_loss

    if exposure is None:
        return
    loss = as_loss(loss)  # an unknown name is an error of its own
    mean, margins = mean_of(loss), np.array([-1.0, 0.0, 1.0])
    if mean is None or not np.allclose(mean(margins), np.exp(margins)):
        raise CommandError(
            f"--exposure {exposure}: it takes a loss whose mean is an exponential, such as --loss poisson; the loss is "
            f"{getattr(loss, 'name', loss)}",
            2,
        )


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
    try:
        numbers = np.asarray(column_of(X, str(name)), dtype=float)
    except (TypeError, ValueError):
        raise CommandError(f"{option} {name}: the column does not hold numbers", 2) from None
    rest = table._replace(X=without(X, str(name)))
    if exposure is None:
        return rest, numbers
    if not np.all(numbers > 0):
        first = int(np.argmax(~(numbers > 0)))
        raise CommandError(f"--exposure {name}: row {first} has {numbers[first]:g}; it takes numbers > 0", 2)
    return rest, np.log(numbers)

"""Missing values in columns of targets and of weights."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from skadmm.cli._errors import CommandError


def check_targets(path: Path, names: Sequence[str], target: np.ndarray | None) -> None:
    """Refuse targets that are missing or infinite, with the file, the row and for texts the column; `names` are those
    of the columns."""
    if target is None:
        return
    if target.dtype.kind not in "f":
        absent = np.flatnonzero(~rows_with_target(target))
        if not absent.size:
            return
        column = int(np.argmax(_missing(target[absent[0]])))
        where = f"the column {names[column]!r}" if names else "the target"
        raise CommandError(f"{path}: {where} has missing values, the first in row {absent[0]:,}", 2)
    check_finite(path, target)


def check_finite(path: Path, target: np.ndarray) -> None:
    """Refuse numbers as targets that are NaN or infinity."""
    finite = np.isfinite(target) if target.ndim == 1 else np.isfinite(target).all(axis=1)
    if not finite.all():
        raise CommandError(f"{path}: row {int(np.argmin(finite)):,}: the target holds NaN or infinity", 2)


def check_weights(name: str, weight: np.ndarray) -> None:
    """Refuse weights that are missing or infinite."""
    finite = np.isfinite(weight)
    if not finite.all():
        row = int(np.argmin(finite))
        raise CommandError(f"--weight {name}: row {row:,} has {weight[row]:g}; it takes finite numbers ≥ 0", 2)


def rows_with_target(target: np.ndarray) -> np.ndarray:
    """Which rows have a value in each column of targets."""
    missing = _missing(target)
    return np.logical_not(missing if target.ndim == 1 else missing.any(axis=1))


def _missing(values: object) -> np.ndarray:
    import pandas as pd

    return np.asarray(pd.isna(values))

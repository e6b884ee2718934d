"""The names of several ``--target`` columns, which the model keeps for reports and ``skadmm coef``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def with_names(target: Any, names: Sequence[str] | None) -> Any:
    """Several outputs as a DataFrame with the `names` that ``--target`` gave; another target as it is."""
    if not names or len(names) < 2 or np.shape(target)[1:] != (len(names),):
        return target
    import pandas as pd

    return pd.DataFrame(target, columns=list(names))

"""Consecutive strengths of a path that a solver takes together, and how accurately."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class Accuracy(NamedTuple):
    """The gap at which a strength of a path counts as solved: `relative` times the objective, but at most `largest` and
    at least `smallest`."""

    relative: float
    smallest: float
    largest: float
    floor: float
    """The relative gap is measured against at least this objective."""

    def allowed(self, objective: Any) -> Any:
        """The largest gap at points with these objectives."""
        gap = self.relative * np.maximum(np.abs(objective), self.floor)
        return np.maximum(np.minimum(gap, self.largest), self.smallest)

    def scaled(self, share: float) -> Accuracy:
        """This accuracy times a share."""
        return Accuracy(share * self.relative, share * self.smallest, share * self.largest, self.floor)


class Stretch(NamedTuple):
    """Consecutive strengths of a path that were solved together; row k of every array belongs to strength k."""

    x: np.ndarray
    """Solutions."""
    losses: np.ndarray
    """Mean losses."""
    reached: np.ndarray
    """Relative duality gaps."""
    touched: np.ndarray
    """Samples read for each."""

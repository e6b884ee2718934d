"""The Hessian of the sum of the losses on clusters of features, kept from step to step.

    H = Σ hᵢ zᵢzᵢᵀ,      zᵢ = Pᵀaᵢ

Between two steps most clusters stay the same and the curvature hᵢ of most samples hardly changes. Where it is less
work, only the rows of new clusters are computed, and the terms of the samples whose curvature changed are added.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, Self

import numpy as np

from skadmm.io.state import resizable
from skadmm.kernels.contraction import sum_cross
from skadmm.kernels.expansion import sum_outer
from skadmm.kernels.rows import CSRRows, DenseRows, entries_per_row


@dataclass(frozen=True)
class HessianConfig:
    """Settings of the Hessian on clusters."""

    idle_factor: float = 0.1
    """Samples whose curvature, or its change, is below a share of the maximum are left out of H. The share is this
    factor times the last relative improvement of the objective."""
    min_idle: float = 1e-6
    """The smallest such share."""
    max_idle: float = 1e-1
    """The largest such share."""
    wide_share: float = 0.7
    """Dense rows are not contracted where there are at least this many clusters, as a share of the features: H is kept
    on the features, which stay the same from step to step, and contracted instead."""


@dataclass(kw_only=True)
class HessianState:
    """H on the clusters of the last step."""

    curvature: np.ndarray
    """The curvature of each sample that is part of H."""
    keys: np.ndarray = resizable(default_factory=lambda: np.empty(0))
    """The key of each cluster: the sum of its features' keys, times their factors."""
    matrix: np.ndarray = resizable(default_factory=lambda: np.empty((0, 0)))
    """H."""

    def known_part(self, keys: np.ndarray) -> np.ndarray:
        """The last H in the order of `keys`, zero in the rows and columns of new clusters."""
        H = np.zeros((keys.size, keys.size))
        kept = np.flatnonzero(np.isin(keys, self.keys))
        sorter = np.argsort(self.keys)
        where = sorter[np.searchsorted(self.keys, keys[kept], sorter=sorter)]
        H[np.ix_(kept, kept)] = self.matrix[np.ix_(where, where)]
        return H


class HessianChange(NamedTuple):
    """What brings H up to date where the last one is known."""

    strip: np.ndarray
    """The rows of the new clusters."""
    rest: Any
    """The change of all others, as the lower triangle in one array; 0.0 for none."""

    @classmethod
    def between(cls, known: np.ndarray, H: np.ndarray, fresh: np.ndarray) -> Self:
        """From the known part to H, `fresh` the new clusters."""
        strip, change = H[fresh], H - known
        change[fresh], change[:, fresh] = 0.0, 0.0
        return cls(strip, change[np.tril_indices(len(H))] if change.any() else 0.0)

    def added_to(self, known: np.ndarray, fresh: np.ndarray) -> np.ndarray:
        """H, in the place of the known part."""
        if isinstance(self.rest, np.ndarray):
            lower, upper = np.tril_indices(len(known))
            known[lower, upper] += self.rest
            known[upper, lower] = known[lower, upper]
        known[fresh], known[:, fresh] = self.strip, self.strip.T
        return known


@lru_cache(maxsize=4)
def feature_keys(d: int) -> np.ndarray:
    """A number for each feature, the key of a cluster that is this feature; no two sets of features have the same
    sum."""
    return np.random.default_rng(0).standard_normal(d)


def update_hessian(
    state: HessianState,
    rows: DenseRows | CSRRows,
    keys: np.ndarray,
    curvature: np.ndarray,
    improvement: float,
    config: HessianConfig,
) -> np.ndarray:
    """A copy of H for samples of this curvature on the clusters with these keys, whose samples are `rows`."""
    work = max(1.0, entries_per_row(rows)) ** 2
    idle = min(max(config.idle_factor * improvement, config.min_idle), config.max_idle) * float(curvature.max())
    stale, curved = np.abs(curvature - state.curvature) > idle, curvature > idle
    fresh, included = np.flatnonzero(~np.isin(keys, state.keys)), np.flatnonzero(state.curvature)
    if 2 * included.size * fresh.size / keys.size + np.count_nonzero(stale) < np.count_nonzero(curved):
        H = state.known_part(keys)
        if fresh.size:
            entries = included.size * work * fresh.size / keys.size
            strip = sum_cross(rows, fresh, included, state.curvature, entries)
            H[fresh], H[:, fresh] = strip, strip.T
        index = np.flatnonzero(stale)
    else:
        state.curvature[:] = 0.0
        H, index = np.zeros((keys.size, keys.size)), np.flatnonzero(curved)
    if index.size:
        H += sum_outer(rows, index, curvature - state.curvature, 0.5 * index.size * work)
        state.curvature[index] = curvature[index]
    state.keys, state.matrix = keys, H
    return H.copy()

"""Which rows of A leave zero in the next step, and the clusters of features that this leaves.

A tied row, (Ax)_e = 0, opens when the subgradient of minimum norm says that it leaves zero along the steepest descent.
Only the few features at zero with the largest violation may leave zero in one step, so that the number of clusters
grows towards that of the solution.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.sparse
import scipy.sparse.csgraph

from skadmm.operators.clusters import clusters, contract_vector, expand_vector
from skadmm.solvers.second_order.l1_rows import ShortRows


@dataclass(frozen=True)
class OpeningConfig:
    """Settings of the choice of rows that open."""

    first_opened: int = 300
    """The number of features that may leave zero in a step, unless `opened_share` allows more."""
    opened_share: float = 0.3
    """The number of features that may leave zero in a step, as a share of those that are not zero. The connected sets
    to which they belong leave with them, because the rest of a set would keep them tied to zero."""
    max_clusters: int = 1000
    """The number of clusters after a step above which the features that leave their clusters are limited."""
    cluster_growth: float = 3.0
    """The growth of the number of clusters in a step above which these features are limited, where `max_clusters` is
    exceeded too."""


class Clusters(NamedTuple):
    """x = P u: each feature is a multiple of its cluster's coordinate, or zero."""

    labels: np.ndarray
    """The cluster of each feature; −1 where the feature is zero."""
    factors: np.ndarray
    """The factor by which each feature is a multiple of its cluster's coordinate."""
    size: int
    """The number of clusters."""

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Pᵀ times a vector."""
        return contract_vector(values, *self)

    def squared_sums(self, values: np.ndarray) -> np.ndarray:
        """The diagonal of PᵀDP, D a diagonal matrix of these values."""
        return contract_vector(self.factors * values, *self)

    def coordinates(self, x: np.ndarray) -> np.ndarray:
        """u, from the first feature of each cluster."""
        free = np.flatnonzero(self.labels >= 0)
        first = np.empty(self.size, np.int64)
        first[self.labels[free[::-1]]] = free[::-1]
        return x[first] / self.factors[first]

    def expanded(self, u: np.ndarray) -> np.ndarray:
        """x, whose equal features are equal to the last bit."""
        return expand_vector(u, self.labels, self.factors)


class Opening:
    """The choice of rows that open at one point."""

    def __init__(
        self,
        penalty: ShortRows,
        x: np.ndarray,
        tied: np.ndarray,
        multiplier: np.ndarray,
        residual: np.ndarray,
        config: OpeningConfig,
    ) -> None:
        """`tied` is a mask of the rows with (Ax)_e = 0; `residual` is the subgradient that `multiplier` gives."""
        self.penalty, self.tied, self.multiplier, self.residual = penalty, tied, multiplier, residual
        self.at_zero = x == 0.0
        self.at_bound = tied & penalty.at_bound(multiplier)
        self.limit = max(config.first_opened, int(config.opened_share * np.count_nonzero(x)))
        self.x, self.config = x, config

    def by_feature(self) -> Clusters:
        """Open the rows next to the features with the largest violation."""
        violation = self._largest_violations()
        return self._not_too_many(violation, self._clusters(self._opens(violation)))

    def by_connected_set(self) -> Clusters:
        """Open the rows that let whole connected sets of features leave zero."""
        first, last, at_zero = self.penalty.first, self.penalty.last, self.at_zero
        leaving = at_zero & (self.residual != 0.0)
        leaving[first[self.penalty.single & ~self._opens(self.residual)]] = False  # its own ℓ1 term holds it
        if np.count_nonzero(leaving) > self.limit:
            leaving = self._largest_sets(leaving)
        opening = self._opens(np.where(at_zero & ~leaving, 0.0, self.residual))
        # A multiplier that has not reached its bound yet must not hold a leaving feature at zero.
        apart = (leaving[first] != leaving[last]) & at_zero[first] & at_zero[last]
        return self._clusters(opening | (self.tied & apart))

    def _not_too_many(self, violation: np.ndarray, found: Clusters) -> Clusters:
        """The clusters that were `found`, or fewer: with few samples most of very many would have to join again."""
        if found.size <= self.config.max_clusters:
            return found
        most = max(self.config.max_clusters, int(self.config.cluster_growth * np.unique(self.x).size))
        moving = np.flatnonzero(~self.at_zero & (violation != 0.0))
        if found.size <= most or moving.size <= most:
            return found
        order = np.argpartition(-np.abs(violation[moving]), most)
        violation[moving[order[most:]]] = 0.0
        return self._clusters(self._opens(violation))

    def _clusters(self, opening: np.ndarray) -> Clusters:
        labels, factors = clusters(self.penalty.A, self.tied & ~opening)
        return Clusters(labels, factors, int(labels.max()) + 1)

    def _opens(self, violation: np.ndarray) -> np.ndarray:
        """The tied rows whose multiplier is at its bound and which a step along −`violation` would open."""
        return self.at_bound & (np.sign(self.multiplier) * (self.penalty.A @ violation) < 0.0)

    def _largest_violations(self) -> np.ndarray:
        """The residual, set to zero at all zero features but those where it is largest."""
        violation = self.residual.copy()
        zero = np.flatnonzero(self.at_zero & (violation != 0.0))
        if zero.size > self.limit:
            order = np.argpartition(-np.abs(violation[zero]), self.limit)
            violation[zero[order[self.limit :]]] = 0.0
        return violation

    def _largest_sets(self, leaving: np.ndarray) -> np.ndarray:
        """The features in `leaving` with the largest residual, and all that tied rows join to one of them."""
        first, last = self.penalty.first, self.penalty.last
        joined = self.tied & ~self._opens(self.residual) & leaving[first] & leaving[last]
        d = leaving.size
        edges = scipy.sparse.coo_array((np.ones(joined.sum()), (first[joined], last[joined])), shape=(d, d))
        count, member_of = scipy.sparse.csgraph.connected_components(edges, directed=False)
        features = np.flatnonzero(leaving)
        largest = features[np.argpartition(-np.abs(self.residual[features]), self.limit)[: self.limit]]
        chosen = np.zeros(count, bool)
        chosen[member_of[largest]] = True
        return leaving & chosen[member_of]

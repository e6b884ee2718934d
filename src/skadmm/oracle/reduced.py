"""What the reduced Newton solver may ask about the samples, wherever they are kept.

The solver works on clusters of features, x = P u with few coordinates u. Where the rows are, X is contracted to XP, and
the margin, slope and curvature of every sample are kept. One step is

    contract   X to the clusters: Σ h z zᵀ on them, z = Pᵀa
    along      Σ of the losses along a step of u (``losses``: at other lengths of the same step)
    settle     take the step: Σ slope a over all features

Nothing of it has the size of d²: a step moves the Hessian on the clusters, and one gradient over all features.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np

from skadmm import _cancel
from skadmm.kernels.contraction import columns_of, contracted
from skadmm.kernels.expansion import add_squares, expand_along, margins, sum_rows
from skadmm.kernels.rows import is_dense, stored_entries
from skadmm.kernels.samples import Samples, mean_conjugate
from skadmm.operators.clusters import contract_matrix, expand_vector
from skadmm.oracle.local import BlockOracle, OracleFreeColumns
from skadmm.oracle.reduced_hessian import HessianChange, HessianConfig, HessianState, feature_keys, update_hessian
from skadmm.problem.free_columns import FreeColumns


class Contraction(NamedTuple):
    """x = P u: each feature is a multiple of its cluster's coordinate, or zero."""

    labels: np.ndarray
    """The cluster of each feature; −1 where the feature is zero."""
    factors: np.ndarray
    """What a feature is a multiple by."""
    size: int
    """The number of clusters."""
    keys: np.ndarray
    """A number for each cluster that depends on its features and their factors alone."""


class PackedContraction(NamedTuple):
    """A contraction as it is sent: the features that are not zero."""

    features: np.ndarray
    labels: np.ndarray
    factors: np.ndarray
    """Empty where all are one."""
    keys: np.ndarray

    @classmethod
    def of(cls, contraction: Contraction) -> PackedContraction:
        """The same, packed."""
        held = np.flatnonzero(contraction.labels >= 0)
        factors = contraction.factors[held]
        return cls(
            held.astype(np.int32),
            contraction.labels[held].astype(np.int32),
            np.empty(0) if np.all(factors == 1.0) else factors,
            contraction.keys,
        )

    def unpacked(self, d: int) -> Contraction:
        """The same, with an entry for each of d features."""
        labels, factors = np.full(d, -1), np.ones(d)
        labels[self.features] = self.labels
        if self.factors.size:
            factors[self.features] = self.factors
        return Contraction(labels, factors, self.keys.size, self.keys)


class ReducedOracle(Protocol):
    """Margins, slopes and curvatures of the samples, and sums over them, for steps on clusters of features."""

    @property
    def free_columns(self) -> FreeColumns:
        """Newton's steps on the coefficients that no penalty reaches, for a certificate."""

    @property
    def squares(self) -> np.ndarray:
        """Σ a²."""

    def prepare(self) -> None:
        """Compute what every run needs, before the clock runs."""

    def place(self, x: np.ndarray) -> float:
        """Σ of the losses at x, with slopes and curvatures there."""

    def contract(self, contraction: Contraction, improvement: float, config: HessianConfig) -> np.ndarray:
        """Contract X to clusters; Σ h z zᵀ on them, as accurate as the last relative `improvement` asks for. The caller
        may change the array."""

    def curved(self, v: np.ndarray) -> np.ndarray:
        """Σ h a (a·v) over all features, h the curvatures where the samples were last evaluated."""

    def along(self, step: np.ndarray, t: float) -> float:
        """Σ of the losses at t times a step, with slopes and curvatures there: a step of the clusters, or, where X has
        not been contracted, of the features."""

    def losses(self, t: float) -> float:
        """The same at another t."""

    def settle(self, length: float) -> np.ndarray:
        """Take `length` times the step, at which the losses were computed last; Σ slope a there."""

    def conjugate(self, scale: float) -> float:
        """Σ w ℓ*(scale θ / w), θ the slopes at the last evaluation, or those that ``free_columns`` has found."""

    def state(self) -> dict[str, Any]:
        """What a checkpoint needs."""

    def resume(self, state: dict[str, Any]) -> bool:
        """Take up the state of a checkpoint; False where it could not be found, and the samples are to be placed
        again."""

    def restart(self) -> None:
        """Forget all samples, as at the beginning."""

    def close(self) -> None:
        """The run is over: nothing need be kept."""


@dataclass
class ReducedScalars:
    """What is kept of the samples between two steps."""

    z: np.ndarray
    """The margin of each where it was last evaluated."""
    slope: np.ndarray
    """w ℓ' there."""
    curvature: np.ndarray
    """w ℓ'' there."""
    hessian: HessianState = field()
    """H on the clusters of the last step."""

    @classmethod
    def zeros(cls, size: int) -> ReducedScalars:
        """Zeros for `size` samples, as before the first evaluation."""
        return cls(np.zeros(size), np.zeros(size), np.zeros(size), HessianState(curvature=np.zeros(size)))


class LocalReducedOracle(BlockOracle[ReducedScalars]):
    """The samples of one block of rows, for steps on clusters of features."""

    def __init__(
        self,
        samples: Samples,
        first: int = 0,
        rows_per_chunk: int = 1 << 20,
        between: Callable[[], None] = _cancel.check_cancelled,
    ) -> None:
        super().__init__(samples, first)
        self._index = np.arange(self.size)
        self._rows_per_chunk, self._between = rows_per_chunk, between
        self._entries = float(stored_entries(samples.rows))
        self.restart()

    def restart(self) -> None:
        """Forget all samples."""
        self.scalars = ReducedScalars.zeros(self.size)
        self.temporary.drop()
        self.free_columns = OracleFreeColumns(
            self.samples, self._rows_per_chunk, self._between, self.scalars, self.temporary
        )
        self._contracted: Any = None
        """X on the clusters of this step; None where the step is taken on the features."""
        self._contraction: Contraction | None = None
        """The clusters of this step."""
        self._move = np.zeros(self.size)
        """By how much the step moves each margin."""

    def prepare(self) -> None:
        """X by columns, and their squares."""
        _ = self.columns, self.squares

    @cached_property
    def columns(self) -> Any:
        """X by columns."""
        return columns_of(self.samples.rows)

    @cached_property
    def squares(self) -> np.ndarray:
        """Σ a²."""
        squares = np.zeros(self.d)
        add_squares(self.samples.rows, self._index, squares)
        return squares

    def sum_squares(self) -> np.ndarray:
        """Σ a², for a request."""
        return self.squares

    # -- a step --------------------------------------------------------------------------------------------------

    def place(self, x: np.ndarray) -> float:
        """Σ of the losses at x."""
        margins(self.samples.rows, self._index, x, self.scalars.z)
        return self.losses(0.0)

    def contract(self, contraction: Contraction, improvement: float, config: HessianConfig) -> np.ndarray:
        """H on the clusters, from X on them or, where they are almost as many as the features, from H on these."""
        rows = self.columns
        if not (is_dense(rows) and contraction.size >= config.wide_share * self.d):
            return self._contract_rows(contraction, improvement, config)
        self._contraction, self._contracted = contraction, None
        known = self.scalars
        H = update_hessian(known.hessian, rows, feature_keys(self.d), known.curvature, improvement, config)
        return contract_matrix(H, *contraction[:3])

    def _contract_rows(self, contraction: Contraction, improvement: float, config: HessianConfig) -> np.ndarray:
        """X on the clusters, and H."""
        labels, factors, size, keys = self._contraction = contraction
        self._contracted = contracted(self.columns, labels, factors, size)
        known = self.scalars
        return update_hessian(known.hessian, self._contracted, keys, known.curvature, improvement, config)

    def contract_packed(
        self, packed: PackedContraction, improvement: float, config: HessianConfig
    ) -> tuple[np.ndarray, Any]:
        """The same for a contraction that was sent; what changes in H."""
        hessian, keys = self.scalars.hessian, packed.keys
        known, fresh = hessian.known_part(keys), np.flatnonzero(~np.isin(keys, hessian.keys))
        H = self._contract_rows(packed.unpacked(self.d), improvement, config)
        return tuple(HessianChange.between(known, H, fresh))

    def curved(self, v: np.ndarray) -> np.ndarray:
        """Σ h a (a·v) over all features."""
        products = np.empty(self.size)
        margins(self.samples.rows, self._index, v, products)
        return sum_rows(self.samples.rows, self._index, self.scalars.curvature * products, self._entries)

    def along(self, step: np.ndarray, t: float) -> float:
        """Σ of the losses at t times a step of the clusters, or of the features where there are no clusters."""
        if self._contracted is not None:
            margins(self._contracted, self._index, step, self._move)
        elif self._contraction is not None:
            margins(self.samples.rows, self._index, expand_vector(step, *self._contraction[:2]), self._move)
        else:
            margins(self.samples.rows, self._index, step, self._move)
        return self.losses(t)

    def losses(self, t: float) -> float:
        """The same at another t."""
        known = self.scalars
        return float(expand_along(self.samples, self._index, known.z, self._move, t, known.slope, known.curvature))

    def settle(self, length: float) -> np.ndarray:
        """Take the step; Σ slope a."""
        self.go(length)
        return self._gradient()

    def go(self, length: float) -> None:
        """Move the margins."""
        self.temporary.drop()
        self.scalars.z += length * self._move

    def ahead(self, step: np.ndarray) -> tuple[float, np.ndarray]:
        """Σ of the losses at the end of a step, and Σ slope a there."""
        return self.along(step, 1.0), self._gradient()

    def place_ahead(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """Σ of the losses at x, and Σ slope a there."""
        return self.place(x), self._gradient()

    def _gradient(self) -> np.ndarray:
        return sum_rows(self.samples.rows, self._index, self.scalars.slope, self._entries)

    # -- the certificate -----------------------------------------------------------------------------------------

    def conjugate(self, scale: float) -> float:
        """Σ w ℓ*(scale θ / w) of the slopes that certify."""
        orthogonal = self.temporary.orthogonal
        theta = self.scalars.slope if orthogonal is None else orthogonal
        return self.size * float(mean_conjugate(self.samples, scale * theta))

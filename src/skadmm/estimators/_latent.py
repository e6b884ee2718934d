"""overlap="latent": every group has coefficients of its own, and those of a feature are added up.

The latent norm Ω(x) is the minimum of Σ_g w_g ‖v_g‖₂ over all v with x = Σ_g v_g, v_g zero outside group g. In v the
model is a group lasso without overlap, on a table in which a column stands once for each group that holds it. The dual
norm of Ω, max_g ‖r_g‖₂ / w_g, is that of the norm of v, so a duality gap in v is one in x.

References
----------
Jacob, L., Obozinski, G. and Vert, J.-P. (2009). Group lasso with overlap and graph lasso. ICML.
Obozinski, G., Jacob, L. and Vert, J.-P. (2011). Group lasso with overlaps: the latent group lasso approach.
arXiv:1110.0413.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from skadmm.estimators._bounds import Limits
from skadmm.problem.structure import nonzero_in_groups
from skadmm.regularizers import Box


class Copies(NamedTuple):
    """Columns that are copies of features: one for each group that holds the feature, or one where none does."""

    columns: np.ndarray
    """The feature of each copy."""
    members: list[np.ndarray]
    """The copies that belong to each group."""

    @property
    def sums(self) -> sp.csr_array:
        """The matrix that adds up the copies of each feature."""
        p = self.columns.size
        return sp.csr_array((np.ones(p), (self.columns, np.arange(p))))

    def whole(self, v: np.ndarray) -> np.ndarray:
        """The coefficient of its feature for each copy."""
        return np.bincount(self.columns, v)[self.columns]

    def first_of(self, chosen: np.ndarray) -> np.ndarray:
        """The first of the chosen copies of each feature."""
        return chosen[np.unique(self.columns[chosen], return_index=True)[1]]

    def degrees_of_freedom(self, A: sp.csr_array, v: np.ndarray, y: np.ndarray | None) -> int:
        """The number of features whose coefficient is not zero, with an intercept at the end of `v` where it has one;
        an upper bound. `y` is the solver's own A v, whose zeros are exact."""
        nonzero = nonzero_in_groups(A, v, y)
        p = self.columns.size
        return int(np.unique(self.columns[nonzero[:p]]).size + np.count_nonzero(nonzero[p:]))

    def by_group(self, v: np.ndarray, groups: list[np.ndarray]) -> list[np.ndarray]:
        """The coefficients of each group for its features, from those of the copies in the last dimension; zero for
        features that are not penalised, which belong to no group."""
        found = []
        for group, own in zip(groups, self.members, strict=True):
            part = np.zeros((*v.shape[:-1], group.size))
            part[..., np.isin(group, self.columns[own])] = v[..., own]
            found.append(part)
        return found

    def limit_rows(self, limits: Limits, scale: np.ndarray) -> tuple[sp.csr_array, Box]:
        """Rows for limits of the features, and the bounds of these rows, for coefficients of copies times `scale`.

        A sign holds for the sum of copies where it holds for each of them, and the norm of v is smaller with copies of
        one sign than with others of the same sum; so signs are bounds of the copies, which solvers take blockwise.
        """
        count = np.bincount(self.columns)
        signs = np.isin(limits.lower, (0.0, -np.inf)) & np.isin(limits.upper, (0.0, np.inf))
        each = (signs | (count == 1))[self.columns]
        of_copy = Limits(
            np.where(each, limits.lower[self.columns], -np.inf), np.where(each, limits.upper[self.columns], np.inf),
            limits.tail, limits.head,
        )  # fmt: skip
        joint = ~(signs | (count == 1))
        of_sum = Limits(np.where(joint, limits.lower, -np.inf), np.where(joint, limits.upper, np.inf), *limits[2:])
        by_feature = np.empty(count.size)
        by_feature[self.columns] = scale
        first, second = of_copy.box(scale), of_sum.box(by_feature)
        rows = sp.vstack([of_copy.rows(scale), of_sum.rows(by_feature) @ self.sums], format="csr")
        box = Box(np.concatenate([first.lower, second.lower]), np.concatenate([first.upper, second.upper]))
        return sp.csr_array(rows), box


def copies_of(groups: list[np.ndarray], d: int, factors: np.ndarray | None) -> Copies:
    """One copy of a feature for each group that holds it; a feature in none, or whose factor is zero, has one that
    belongs to no group."""
    inside = groups if factors is None else [group[factors[group] > 0.0] for group in groups]
    held = np.concatenate([np.empty(0, np.int64), *inside]).astype(np.int64)
    ends = np.cumsum([group.size for group in inside])
    members = np.split(np.arange(held.size), ends[:-1])
    return Copies(np.concatenate([held, np.setdiff1d(np.arange(d), held)]), members)

"""Groups that share features, made disjoint by copying."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from skadmm.operators.canonical import canonical, checked_count, checked_weights


def overlapping_groups(
    groups: Iterable[Iterable[int]], d: int, *, weights: ArrayLike | None = None
) -> tuple[sp.csr_array, list[np.ndarray]]:
    """Build the matrix that copies the features group by group, A x = [w_g x_g]_g.

    The penalty Σ_g w_g ‖x_g‖ is then separable in y = A x, also where groups overlap.

    Parameters
    ----------
    groups : sequence of sequences of int
        The features of each group. Groups may overlap; a feature in no group is not penalised.
    d : int
        Number of features.
    weights : array-like, optional
        One weight per group, such as the square roots of their sizes.

    Returns
    -------
    A : csr_array of shape (sum of the sizes, d)
        One entry per row: the weight of the group in the column of the feature.
    rows : list of ndarray
        The rows of `A` that belong to each group, ready for ``GroupL2(strength, groups=rows)``.

    See Also
    --------
    skadmm.regularizers.GroupL2 : The penalty of the rows.
    skadmm.GroupLassoRegressor : An estimator that uses both.

    References
    ----------
    Jacob, Obozinski, Vert. Group lasso with overlap and graph lasso. ICML 2009.

    Examples
    --------
    >>> from skadmm.operators import overlapping_groups
    >>> A, rows = overlapping_groups([[0, 1], [1, 2]], d=3)
    >>> A.toarray()
    array([[1., 0., 0.],
           [0., 1., 0.],
           [0., 1., 0.],
           [0., 0., 1.]])
    >>> rows
    [array([0, 1]), array([2, 3])]
    """
    d = checked_count(d, "d")
    members = [_checked_group(group, d, g) for g, group in enumerate(groups)]
    scales = checked_weights(weights, len(members), "weights", "group")
    sizes = np.array([group.size for group in members], dtype=np.int64)
    columns = np.concatenate(members) if members else np.empty(0, dtype=np.int64)
    values = np.repeat(scales, sizes)
    A = canonical(sp.csr_array((values, columns, np.arange(columns.size + 1)), shape=(columns.size, d)))
    ends = np.cumsum(sizes)
    return A, [np.arange(end - size, end) for end, size in zip(ends, sizes, strict=True)]


def _checked_group(group: Any, d: int, g: int) -> np.ndarray:
    features = np.asarray(group)
    if features.ndim != 1 or features.size == 0:
        raise ValueError(f"groups[{g}] must be a sequence of at least one feature, got {group!r}")
    if features.dtype.kind not in "iu":
        raise ValueError(f"groups[{g}] must hold integers, got dtype {features.dtype}")
    if features.min() < 0 or features.max() >= d:
        bad = features[(features < 0) | (features >= d)][0]
        raise ValueError(f"groups[{g}] must hold features in 0 … {d - 1}, got {bad}")
    if np.unique(features).size != features.size:
        twice = int(np.sort(features)[:-1][np.diff(np.sort(features)) == 0][0])
        raise ValueError(f"groups[{g}] holds the feature {twice} twice")
    return features.astype(np.int64)

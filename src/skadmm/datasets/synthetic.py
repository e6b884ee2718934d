"""Synthetic data with known coefficients."""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from skadmm import _checks, _summary
from skadmm._types import RandomState


class GraphClassification(NamedTuple):
    """What :func:`make_graph_classification` returns."""

    X: Any
    """Rows aᵢ, normal, correlated within groups; csr_array where density < 1."""
    target: np.ndarray
    """−1 or +1 with P(+1) = 1/(1 + exp(−aᵢ·x))."""
    adjacency: scipy.sparse.csr_array
    """The graph: the features of one group form a cycle, and nothing joins groups."""
    x: np.ndarray
    """The true coefficients: constant on every group, 0 on most."""
    groups: np.ndarray
    """The group of each feature."""

    def __repr__(self) -> str:
        return _summary.fields(self)


class FusedSignal(NamedTuple):
    """What :func:`make_fused_signal` returns."""

    X: np.ndarray
    target: np.ndarray
    """aᵢ·x plus normal noise."""
    x: np.ndarray
    """The true coefficients: piecewise constant along the features."""
    jumps: np.ndarray
    """The features at which a new piece begins."""

    def __repr__(self) -> str:
        return _summary.fields(self)


def make_graph_classification(
    n_samples: int = 1000,
    n_features: int = 100,
    *,
    n_groups: int = 10,
    n_active: int = 3,
    correlation: float = 0.6,
    strength: float = 1.0,
    density: float = 1.0,
    random_state: RandomState = 0,
) -> GraphClassification:
    """Generate two classes whose logistic coefficients are constant over groups of a graph and zero on most.

    Parameters
    ----------
    n_samples : int
        The number of rows.
    n_features : int
        The number of columns.
    n_groups : int
        Groups of neighbouring features, as equal in size as can be; each is a cycle of the graph.
    n_active : int
        Groups with a non-zero coefficient, ±`strength` in turn.
    correlation : float in [0, 1)
        Between two features of one group; 0 between groups.
    strength : float
        The size of the non-zero coefficients, divided by the square root of the size of a group.
    density : float in (0, 1]
        The share of entries kept; below 1 the rest is set to zero at random.
    random_state : int, Generator or None
        Draws the data.

    Returns
    -------
    GraphClassification
        A named tuple of ``X``, ``target``, ``adjacency``, the true coefficients ``x`` and the ``groups`` of the
        features.

    See Also
    --------
    skadmm.datasets.make_fused_signal : Regression along a line.

    Examples
    --------
    >>> from skadmm.datasets import make_graph_classification
    >>> data = make_graph_classification(50, 20, n_groups=4, n_active=1)
    >>> data.X.shape, data.groups
    ((50, 20), array([0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3]))
    """
    n, d = _checks.count(n_samples, "n_samples"), _checks.count(n_features, "n_features")
    n_groups, n_active = _checks.count(n_groups, "n_groups"), _checks.count(n_active, "n_active", least=0)
    if n_groups > d or n_active > n_groups:
        raise ValueError(
            f"n_groups={n_groups}, n_active={n_active}: at most {d} groups, and no more active than groups"
        )
    if not 0 <= correlation < 1:
        raise ValueError(f"correlation={correlation!r}: it takes a number in [0, 1)")
    if not 0 < density <= 1:
        raise ValueError(f"density={density!r}: it takes a number in (0, 1]")
    rng = np.random.default_rng(random_state)
    groups = np.arange(d) * n_groups // d
    shared = rng.standard_normal((n, n_groups))
    X: Any = np.sqrt(1 - correlation) * rng.standard_normal((n, d)) + np.sqrt(correlation) * shared[:, groups]
    if density < 1:
        X = scipy.sparse.csr_array(X * (rng.random((n, d)) < density))
    active = rng.choice(n_groups, size=n_active, replace=False)
    level = np.zeros(n_groups)
    level[active] = strength / np.sqrt(d / n_groups) * np.where(np.arange(n_active) % 2 == 0, 1.0, -1.0)
    x = level[groups]
    probability = 1.0 / (1.0 + np.exp(-(X @ x)))
    target = np.where(rng.random(n) < probability, 1.0, -1.0)
    return GraphClassification(X, target, _cycles(groups), x, groups)


def _cycles(groups: np.ndarray) -> scipy.sparse.csr_array:
    """The features of each group in a cycle; an edge for two, nothing for one."""
    d = groups.size
    edges: set[tuple[int, int]] = set()
    for group in range(int(groups.max()) + 1):
        members = np.flatnonzero(groups == group)
        if members.size > 1:
            nexts = np.roll(members, -1)
            edges |= {(int(min(i, j)), int(max(i, j))) for i, j in zip(members, nexts, strict=True)}
    i, j = np.array(sorted(edges), dtype=int).reshape(-1, 2).T
    half = scipy.sparse.coo_array((np.ones(i.size), (i, j)), shape=(d, d))
    return scipy.sparse.csr_array(half + half.T)


def make_fused_signal(
    n_samples: int = 200,
    n_features: int = 100,
    *,
    n_pieces: int = 5,
    noise: float = 0.1,
    random_state: RandomState = 0,
) -> FusedSignal:
    """Generate regression data whose coefficients are piecewise constant along the features.

    Parameters
    ----------
    n_samples : int
        The number of rows.
    n_features : int
        The number of columns.
    n_pieces : int
        Pieces of constant value; every other piece is zero, the others are drawn from ±[1, 2].
    noise : float
        The standard deviation of the noise, relative to that of the signal.
    random_state : int, Generator or None
        Draws the data.

    Returns
    -------
    FusedSignal
        A named tuple of ``X``, ``target``, the true coefficients ``x`` and the features ``jumps`` at which a piece
        begins.

    See Also
    --------
    skadmm.datasets.make_graph_classification : Two classes and a graph.

    Examples
    --------
    >>> from skadmm.datasets import make_fused_signal
    >>> data = make_fused_signal(50, 20, n_pieces=4, random_state=0)
    >>> data.X.shape, data.jumps
    ((50, 20), array([10, 12, 15]))
    """
    n, d = _checks.count(n_samples, "n_samples"), _checks.count(n_features, "n_features")
    n_pieces = _checks.count(n_pieces, "n_pieces")
    if n_pieces > d:
        raise ValueError(f"n_pieces={n_pieces}: at most n_features={d} pieces")
    noise = _checks.number(noise, "noise", least=0)
    rng = np.random.default_rng(random_state)
    jumps = np.sort(rng.choice(np.arange(1, d), size=n_pieces - 1, replace=False)) if n_pieces > 1 else np.empty(0, int)
    piece = np.searchsorted(jumps, np.arange(d), side="right")
    levels = rng.uniform(1, 2, n_pieces) * rng.choice([-1.0, 1.0], n_pieces)
    levels[::2] = 0.0
    if n_pieces == 1:
        levels[0] = 1.0
    x = levels[piece]
    X = rng.standard_normal((n, d))
    signal = X @ x
    target = signal + noise * signal.std() * rng.standard_normal(n)
    return FusedSignal(X, target, x, jumps)

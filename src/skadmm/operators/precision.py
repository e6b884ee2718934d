"""A graph on the features, learnt from the data by sparse inverse covariance selection."""

import math
import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp

from skadmm._types import TableLike
from skadmm.operators.canonical import canonical, checked_count
from skadmm.operators.glasso import sparse_precision
from skadmm.operators.moments import Moments
from skadmm.operators.precision_result import PrecisionGraph
from skadmm.operators.screening import (
    Columns,
    KnownCovariance,
    blocks_of,
    known_covariance,
    strong_pairs,
    usable_columns,
)

NEARLY_IDENTICAL = 0.95


def precision_graph(
    X: TableLike | Moments,
    *,
    alpha: float | str = "auto",
    degree: float = 2.0,
    threshold: float | None = None,
    max_component: int = 500,
    min_support: float | str = "auto",
    standardize: bool = True,
) -> PrecisionGraph:
    """Learn a graph of features from data by the graphical lasso.

    There is an edge where Θ_ij ≠ 0, with Θ = argmin tr(SΘ) − log det Θ + alpha Σ_{i≠j} |Θ_ij| and S the correlation
    matrix.

    Features whose correlations do not exceed alpha fall into separate blocks exactly, so S is formed block by block
    and only |S_ij| > alpha is kept: tens of thousands of sparse columns are feasible.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, d), or Moments
        One row per sample; or the moments of the columns of a table that is not in memory.
    alpha : "auto" or float > 0
        The penalty. "auto" is the smallest value that is at or above the noise 2√(log d / n), which the correlations of
        independent features seldom exceed, and leaves at most ``degree · d / 2`` pairs above it; but not above 0.95
        unless the noise is, so that nearly identical features are always joined. Only usable columns count in d.
    degree : float
        The average degree that ``alpha="auto"`` aims at; 2 is the density of a chain.
    threshold : float, optional
        Drop edges with a partial correlation of at most this size.
    max_component : int
        The largest block solved at once. A larger component is cut: pairs join features from the strongest down, and
        those that would make a block too large are penalised by their own |S_ij| instead of alpha. The blocks then
        are the exact solution with those penalties. ``cut`` in the result counts the pairs; with alpha given as a
        number, a warning reports it.
    min_support : "auto" or float
        Columns whose effective number of rows is smaller get no edge. The effective number is n/κ, with κ the kurtosis
        of the column; for the indicator of a few rows it is their number. "auto" is min(10, n/20). 0 keeps all but
        constant columns.
    standardize : bool
        True: correlations. False: covariances, and the noise is then in units of the mean variance.

    Returns
    -------
    PrecisionGraph
        ``incidence`` takes it directly, with the signs of the partial correlations; ``signs=False`` ignores them.

    See Also
    --------
    skadmm.operators.incidence : Differences over the edges of the graph.

    References
    ----------
    Friedman, Hastie, Tibshirani. Sparse inverse covariance estimation with the graphical lasso. Biostatistics 9, 2008.
    Witten, Friedman, Simon. New insights and faster computations for the graphical lasso. JCGS 20, 2011.
    Mazumder, Hastie. Exact covariance thresholding into connected components. JMLR 13, 2012.

    Examples
    --------
    >>> import numpy as np
    >>> from skadmm.operators import incidence, precision_graph
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 4))
    >>> X[:, 1] += X[:, 0]
    >>> incidence(precision_graph(X)).toarray()
    array([[ 1., -1.,  0.,  0.]])
    """
    from sklearn.utils import check_array

    max_component = checked_count(max_component, "max_component", least=2)
    degree = _checked_number(degree, "degree", above=True)
    least_partial = 0.0 if threshold is None else _checked_number(threshold, "threshold", above=False)
    if alpha != "auto":
        alpha = _checked_number(alpha, "alpha", above=True, names="'auto' or ")
    if not isinstance(X, Moments):
        X = checked = check_array(X, accept_sparse="csc", dtype=np.float64, ensure_min_samples=2, input_name="X")
    n, d = (X.rows, X.mean.size) if isinstance(X, Moments) else checked.shape
    if min_support == "auto":
        min_support = min(10.0, n / 20)
    min_support = _checked_number(min_support, "min_support", above=False, names="'auto' or ")

    usable: Any = known_covariance if isinstance(X, Moments) else usable_columns
    columns, variance = usable(X, min_support, standardize)
    used = columns.source.size
    if isinstance(alpha, str):
        unit = 1.0 if standardize or not used else float(columns.variance.mean())
        noise = 2 * math.sqrt(math.log(max(used, 2)) / n) * unit
        ceiling = max(NEARLY_IDENTICAL, noise) if standardize else math.inf
        pairs, penalty = strong_pairs(columns, noise, math.ceil(degree * used / 2), ceiling)
    else:
        pairs, penalty = strong_pairs(columns, alpha, None, alpha)
    labels, cut = blocks_of(pairs, used, max_component) if used else (np.empty(0, np.int64), 0)
    if cut and alpha != "auto":
        warnings.warn(
            f"alpha={penalty:g} gives a component of more than max_component={max_component} features: {cut} pairs "
            "above alpha were cut, so the graph is approximate; raise alpha or max_component",
            stacklevel=2,
        )
    precision, converged = _solve_blocks(columns, labels, penalty)
    if not converged:
        warnings.warn("a block of the graphical lasso did not converge: the graph is approximate", stacklevel=2)
    return _in_place(columns, precision, labels, variance, standardize, d, least_partial, penalty, cut, converged)


def _solve_blocks(columns: Columns | KnownCovariance, labels: np.ndarray, alpha: float) -> tuple[sp.csr_array, bool]:
    """Θ of the usable columns, block by block."""
    d = labels.size
    order = np.argsort(labels, kind="stable")
    blocks = np.split(order, np.cumsum(np.bincount(labels, minlength=1))[:-1])
    parts = [sp.coo_array((d, d))]
    converged = True
    for block in blocks:
        if block.size < 2:
            theta = 1 / columns.variance[block].reshape(block.size, block.size)
        else:
            theta, finished = sparse_precision(columns.covariance(block), alpha)
            converged = converged and finished
        i, j = np.nonzero(theta)
        parts.append(sp.coo_array((theta[i, j], (block[i], block[j])), shape=(d, d)))
    entries = np.concatenate([part.data for part in parts])
    positions = tuple(np.concatenate([part.coords[axis] for part in parts]) for axis in (0, 1))
    return canonical(sp.coo_array((entries, positions), shape=(d, d))), converged


def _in_place(
    columns: Columns | KnownCovariance, precision: sp.csr_array, labels: np.ndarray, variance: np.ndarray,
    standardize: bool, d: int, least_partial: float, alpha: float, cut: int, converged: bool,
) -> PrecisionGraph:  # fmt: skip
    """The solution on the usable columns, put back among all d columns."""
    source, theta = columns.source, precision.tocoo()
    i, j = theta.coords
    diagonal = precision.diagonal()
    partial = -theta.data / np.sqrt(diagonal[i] * diagonal[j])
    edge = (i != j) & (np.abs(partial) > least_partial)
    adjacency = sp.coo_array((np.sign(partial[edge]), (source[i[edge]], source[j[edge]])), shape=(d, d))

    isolated = np.setdiff1d(np.flatnonzero(variance > 0), source)
    alone = np.ones(isolated.size) if standardize else 1 / variance[isolated]
    entries = np.concatenate([theta.data, alone])
    positions = (np.concatenate([source[i], isolated]), np.concatenate([source[j], isolated]))
    components = np.full(d, -1)
    components[source] = labels
    others = np.flatnonzero(components < 0)
    components[others] = labels.max(initial=-1) + 1 + np.arange(others.size)
    return PrecisionGraph(
        adjacency=canonical(adjacency),
        precision=canonical(sp.coo_array((entries, positions), shape=(d, d))),
        alpha=float(alpha),
        components=components,
        cut=cut,
        converged=converged,
    )


def _checked_number(number: Any, role: str, *, above: bool, names: str = "") -> float:
    relation = ">" if above else "≥"
    valid = isinstance(number, (int, float, np.integer, np.floating)) and not isinstance(number, bool)
    if not valid or not math.isfinite(number) or number < 0 or (above and number == 0):
        raise ValueError(f"{role} must be {names}a finite number {relation} 0, got {number!r}")
    return float(number)

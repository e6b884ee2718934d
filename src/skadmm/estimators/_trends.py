"""Differences of any order along uneven positions or over a graph, and signals read off between their positions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.model_selection import PredefinedSplit
from sklearn.utils.validation import check_is_fitted

from skadmm import _checks
from skadmm.backends.frames import dates_as_numbers, for_sklearn, from_arrow, holds_dates
from skadmm.backends.kinds import is_dask
from skadmm.backends.named_columns import computed
from skadmm.backends.sources import is_npz, is_stored, read_npz
from skadmm.estimators._base import StructuredModel, validated
from skadmm.estimators._bounds import DIRECTIONS
from skadmm.estimators._graphs import feature_graph, unframed
from skadmm.estimators._large import in_memory, is_large, table_of
from skadmm.estimators._penalty import Penalty, checked_ratio, with_l1
from skadmm.estimators._positions import numbers_of, positions_and_targets, read_positions
from skadmm.operators import trend
from skadmm.operators.canonical import canonical
from skadmm.operators.discrete_spline import interpolation
from skadmm.operators.line import GraphTrend, line_at
from skadmm.operators.trend import mean_spacing, spaced_trend
from skadmm.problem.structure import ties
from skadmm.run.follow import Solution
from skadmm.run.path import alpha_grid
from skadmm.run.result import Result

SMALLEST_SHARE, SHARE_PER_ORDER = 1e-3, 1e-2
"""The smallest alpha of the default grid in units of alpha_max, for order 0, and the factor of each further order."""


LARGEST_ORDER = 3
"""The largest order of a signal along a line. Rounding leaves relative KKT residuals of up to 6e-8 at order 3, and
of up to 2e-5 at order 4 and 7e-4 at order 5 (300 uneven positions), where a fit is asked for 1e-6."""


def graph_trend(G: sp.csr_array, order: int) -> sp.csr_array:
    """Differences over a graph: G, GᵀG, GGᵀG, …

    References
    ----------
    Wang, Sharpnack, Smola, Tibshirani (2016). Trend filtering on graphs. JMLR 17.
    """
    D = G
    for k in range(order):
        D = sp.csr_array((G.T if k % 2 == 0 else G) @ D)
    return canonical(D)


LEFT_OUT_WEIGHT = 0.01
"""The weight of a node that a fold leaves out, relative to the others."""


class TrendModel(StructuredModel):
    """A signal over positions, or a table whose coefficients follow a trend."""

    order: Any
    graph: Any
    design: Any
    l1_ratio: Any
    monotone: Any
    cv: Any
    dates_: bool
    positions_: Any
    knots_: Any
    changepoints_: Any
    graph_: Any

    def _check_parameters(self) -> None:
        super()._check_parameters()
        _checks.count(self.order, "order", least=0)
        if isinstance(self.graph, str) and self.graph != "precision":
            raise ValueError(
                f"graph={self.graph!r}: it takes None (a line), 'precision', the shape of a grid, a networkx graph, an "
                "adjacency matrix or a list of edges"
            )
        if self.design not in ("auto", "positions", "matrix"):
            raise ValueError(f"design={self.design!r}: it takes 'auto', 'positions' or 'matrix'")
        if self.monotone is not None and self.monotone not in DIRECTIONS:
            raise ValueError(f"monotone={self.monotone!r}: it takes 'increasing', 'decreasing' or None")

    def _rows(self, X: Any, y: Any, sample_weight: Any, offset: Any, drop: Any) -> tuple[Any, Any, Any, Any]:
        signal = self.design != "matrix"
        if signal and is_dask(X):  # before rows are brought here, which have to be numbers
            X, y, sample_weight = positions_and_targets(X, y, sample_weight)
        X, y, sample_weight, offset = super()._rows(X, y, sample_weight, offset, drop)
        if signal and is_stored(X):
            X, y, sample_weight = positions_and_targets(X, y, sample_weight)
        return X, y, sample_weight, offset

    def _read(self, X: Any, y: Any, sample_weight: Any, **checks: Any) -> tuple[Any, Any, np.ndarray | None]:
        if is_large(X):
            self._signal = False  # a table, until its columns are counted
            table, y, sample_weight = super()._read(X, y, sample_weight, **checks)
            if self.design == "matrix" or (self.design == "auto" and table.shape[1] > 1):
                self.positions_, self.dates_ = None, False
                return table, y, sample_weight
            # A signal has a coefficient for every position, so that they are in memory in any case.
            X, y, sample_weight = in_memory(table), computed(y), computed(sample_weight)
        X = from_arrow(X)
        positions = X if self.design == "matrix" else numbers_of(X)
        self.dates_ = positions is not X and holds_dates(X)
        X, y, sample_weight = super()._read(dates_as_numbers(positions), y, sample_weight, **checks)
        self._signal = self.design == "positions" or (self.design == "auto" and X.shape[1] == 1)
        if not self._signal:
            self.positions_ = None
            return X, y, sample_weight
        if X.shape[1] != 1:
            raise ValueError(f"design='positions' takes X with one column, got {X.shape[1]}")
        positions = self._positions = _column(X)
        # A row of weight zero counts as no row, so that there is no coefficient at its position.
        observed = positions if sample_weight is None or np.all(sample_weight > 0) else positions[sample_weight > 0]
        increasing = self.graph is None and observed is positions and bool(np.all(np.diff(positions) > 0))
        if self.graph is None:
            if self.order > LARGEST_ORDER:
                raise ValueError(
                    f"order={self.order}: for a signal along a line it takes 0 to {LARGEST_ORDER}, because rounding "
                    "prevents accurate fits of higher orders"
                )
            self.positions_ = positions if increasing else np.unique(observed)
            self._check_order(self.positions_.size - 2, f"{self.positions_.size} distinct positions")
        else:
            self.positions_ = np.arange(float(self._n_nodes(positions)))
        n = positions.size
        last = self.positions_.size - 1
        index = np.arange(n) if increasing else np.minimum(np.searchsorted(self.positions_, positions), last)
        table = sp.csr_array((np.ones(n), index, np.arange(n + 1)), shape=(n, self.positions_.size))
        return table, y, sample_weight

    def _check_order(self, largest: int, have: str) -> None:
        """Raise where there are too few points for differences of this order."""
        if self.order > max(largest, 0):
            raise ValueError(f"order={self.order}: {have} allow at most {max(largest, 0)}")

    def _n_nodes(self, positions: np.ndarray) -> int:
        """How many nodes the graph of a signal has; the positions must be among them."""
        if hasattr(self.graph, "number_of_nodes"):
            count = int(self.graph.number_of_nodes())
        elif isinstance(self.graph, (tuple, list)) and all(isinstance(k, (int, np.integer)) for k in self.graph):
            count = int(np.prod(self.graph))
        elif (
            sp.issparse(self.graph)
            or getattr(self.graph, "shape", (0, 0))[0] == getattr(self.graph, "shape", (0, 1))[-1]
        ):
            count = int(self.graph.shape[0])
        else:
            count = int(max((max(edge[:2]) for edge in unframed(self.graph, None)), default=-1)) + 1
        if np.any((positions < 0) | (positions >= count) | (positions != np.floor(positions))):
            raise ValueError(f"X must hold node numbers in 0 … {count - 1} when graph is given")
        return count

    def _penalty(self, X: Any, names: Any) -> Penalty:
        order, ratio = int(self.order), checked_ratio(self.l1_ratio)
        names = None if self._signal else names
        if self.graph is not None:
            graph = feature_graph(self.graph, X, names)
            G = graph.matrix()
            # A GraphTrend means that constants are not penalised, which is not so with negative signs.
            signed = bool(np.any(G.sum(axis=1) != 0.0))
            known = GraphTrend(G, order) if ratio == 0.0 and not signed else None
            return Penalty(with_l1(graph_trend(G, order), ratio), trend=known, graph=graph)
        if self._signal:
            return _along(self.positions_, order, ratio)
        self._check_order(X.shape[1] - 1, f"{X.shape[1]} columns")
        return Penalty(with_l1(trend(X.shape[1], order), ratio))

    def _prepare(self, X: Any, sample_weight: np.ndarray | None) -> Any:
        return super()._prepare(X, sample_weight)._replace(of_signal=self._signal)

    def _intercept_and_scaling(self) -> tuple[bool, bool]:
        # A signal has no intercept of its own (constants are not penalised), and its columns are indicators.
        return (False, False) if self._signal else super()._intercept_and_scaling()

    def _has_columns(self) -> bool:
        return not self._signal

    def _splitter(self, y: Any) -> Any:
        if not self._signal or not (self.cv is None or isinstance(self.cv, int)):
            return super()._splitter(y)
        # Neighbours are in different folds, because predicting a whole range that was left out is another problem.
        folds = _checks.count(5 if self.cv is None else self.cv, "cv", least=2)
        return PredefinedSplit(np.argsort(np.argsort(self._positions, kind="stable")) % folds)

    def _trend(self, prepared: Any) -> Any:
        trend = prepared.penalty.trend
        return trend._replace(G=prepared.design.widened(trend.G)) if isinstance(trend, GraphTrend) else trend

    def _grid(self, prepared: Any, targets: list[np.ndarray]) -> np.ndarray:
        """The strengths from alpha_max down to a share of it that decreases with the order: a bend of width w costs
        alpha · w^−(order+1), so that the same range of widths takes more decades."""
        counted = isinstance(self.alphas, (int, np.integer)) and not isinstance(self.alphas, bool)
        if self.eps is not None or not counted or prepared.penalty.A.shape[0] == 0:
            return super()._grid(prepared, targets)
        order = int(self.order) if self._signal and self.graph is None else 0
        top = max(self._alpha_max(prepared, target) for target in targets)
        return alpha_grid(top, _checks.count(self.alphas, "alphas"), SMALLEST_SHARE * SHARE_PER_ORDER**order)

    def _structure(self, prepared: Any, results: list[Result], parts: Sequence[np.ndarray], tied: Any = None) -> None:
        if tied is None and self._signal and self.graph is None and int(self.order) == 0:
            tied = [_joined(prepared.penalty, result) for result in results]
        super()._structure(prepared, results, parts, tied)
        self._locate_knots(prepared, results[0])
        if isinstance(prepared.penalty.trend, GraphTrend) and prepared.penalty.trend.order > 0:
            self.dof_ = _dof(prepared.penalty, results[0])

    def _locate_knots(self, prepared: Any, result: Result) -> None:
        """Find where the pieces of a signal along a line meet."""
        self.changepoints_ = self.knots_ = None
        if not self._signal or self.graph is not None:
            return
        m = self.positions_.size - 1 - int(self.order)
        if prepared.penalty.A.shape[0] and result.y.size:
            y = result.y[:m]
        else:  # with alpha = 0 there is no y
            y = spaced_trend(self.positions_, int(self.order)) @ result.x
        self.changepoints_ = 1 + np.flatnonzero(y)
        self.knots_ = self.positions_[self.changepoints_]

    def _path(self, prepared: Any, target: np.ndarray, alphas: np.ndarray, track: Any, *, certify: bool = True) -> Any:
        """Degrees of freedom over a graph follow from the zeros of the solver's own Ax."""
        over_graph = self._signal and isinstance(prepared.penalty.trend, GraphTrend)
        if not over_graph or prepared.penalty.A.shape[0] == 0:
            return super()._path(prepared, target, alphas, track, certify=certify)
        if not certify:  # a fold, in which degrees of freedom do not count
            return super()._path(*_with_all_nodes(prepared, target), alphas, track, certify=certify)
        track = track._replace(dof=lambda solution: _dof(prepared.penalty, solution))
        return super()._path(prepared, target, alphas, track, certify=certify)

    def _held_rows(self, fold: Any, table: Any, split: Any) -> Any:
        """The held-out rows; between the positions of a fold the signal is interpolated as in ``predict``."""
        if not self._signal or self.graph is not None:
            return super()._held_rows(fold, table, split)
        positions = self.positions_[np.unique(table.X[split.train].indices)]
        return interpolation(positions, self.positions_[table.X[split.test].indices], int(self.order))

    def _fold(self, prepared: Any, part: Any, weight: Any) -> Any:
        """A fold's own problem, which has only the positions that the fold observes."""
        if not self._signal or self.graph is not None:
            return super()._fold(prepared, part, weight)
        kept = np.unique(part.indices)
        positions = self.positions_[kept]
        # With derivatives in the same unit as for all the data, an alpha means the same bends.
        unit = mean_spacing(self.positions_)
        return prepared._replace(
            design=prepared.design._replace(X=sp.csr_array(part[:, kept]), scale=np.ones(kept.size)),
            penalty=_along(positions, int(self.order), checked_ratio(self.l1_ratio), unit),
            sample_weight=weight,
            limits=None if prepared.limits is None else prepared.limits.along(kept),
        )

    def _scores(self, X: Any) -> np.ndarray:
        """The margins: the signal at the positions in `X`, or those of a table.

        Between the positions of the fit the signal is the piecewise polynomial itself: on [t_i, t_{i+1}) the one
        through the fitted values at t_i, …, t_{i+order}. Beyond the first and the last position their pieces continue,
        which for orders from two on soon leads far from the data.
        """
        check_is_fitted(self)
        X = from_arrow(X)
        if self.positions_ is None:
            return super()._scores(dates_as_numbers(X))
        X = read_npz(X)[0] if is_npz(X) else X
        positions = read_positions(X, getattr(self, "feature_names_in_", None)) if is_large(X) else X
        X = in_memory(table_of(self, X)) if positions is None else self._numbers(positions)
        X = validated(self, for_sklearn(X), accept_sparse="csr", dtype=np.float64, reset=False)
        order = int(self.order) if self.graph is None else 0
        return self.intercept_ + interpolation(self.positions_, _column(X), order) @ self.coef_

    def _numbers(self, X: Any) -> Any:
        return numbers_of(X, fitting=False, after_dates=getattr(self, "dates_", False))

    def smooth(self, signal: ArrayLike) -> np.ndarray:
        """Fit a signal at positions 0, 1, 2, … (or over the graph's nodes), and return the fitted values."""
        signal = np.asarray(signal)
        if signal.ndim != 1:
            raise ValueError(f"signal has shape {signal.shape}: it takes a vector")
        return self.fit(np.arange(float(signal.size))[:, None], signal).predict(np.arange(float(signal.size))[:, None])


def _column(X: Any) -> np.ndarray:
    return np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)[:, 0]


def _along(positions: np.ndarray, order: int, l1_ratio: float, unit: float | None = None) -> Penalty:
    """The penalty of a signal at `positions`."""
    D = spaced_trend(positions, order, unit)
    line = line_at(positions, order, unit) if l1_ratio == 0.0 and D.shape[0] else None
    return Penalty(with_l1(D, l1_ratio), trend=line)


def _with_all_nodes(prepared: Any, target: np.ndarray) -> tuple[Any, np.ndarray]:
    """A fold over a graph in which the nodes that are left out are observed too, with a small weight, as the means of
    their neighbours. Where several values have the same penalty, this selects the middle one, and the Hessian stays
    positive definite, which fast solvers need."""
    X, G = prepared.design.X, prepared.penalty.trend.G
    n, d = X.shape
    count = np.bincount(X.indices, minlength=d)
    missing = np.flatnonzero(count == 0)
    if missing.size == 0:
        return prepared, target
    value = np.bincount(X.indices, weights=target, minlength=d) / np.maximum(count, 1)
    near = sp.csr_array(abs(G).T @ abs(G))[missing] @ np.column_stack([value, count > 0])
    middle = np.where(near[:, 1] > 0, near[:, 0] / np.maximum(near[:, 1], 1e-300), target.mean())
    weight = np.ones(n) if prepared.sample_weight is None else prepared.sample_weight
    rows = sp.csr_array((np.ones(missing.size), missing, np.arange(missing.size + 1)), shape=(missing.size, d))
    filled = prepared._replace(
        design=prepared.design._replace(X=sp.csr_array(sp.vstack([X, rows]))),
        sample_weight=np.concatenate([weight, np.full(missing.size, LEFT_OUT_WEIGHT * weight.mean())]),
    )
    return filled, np.concatenate([target, middle])


def _joined(penalty: Penalty, result: Result) -> np.ndarray | None:
    """The zeros of the solver's own Ax, where equal coefficients are equal to the last bit; None elsewhere. A step that
    is small beside the coefficients, as in a signal around a large constant, is none of them."""
    zeros = result.y[: penalty.A.shape[0]] == 0.0
    exact = zeros.size > 0 and not np.any((penalty.A @ result.x)[zeros])
    return zeros if exact else None


def _dof(penalty: Penalty, solution: Result | Solution) -> int:
    """The degrees of freedom of a signal over a graph."""
    # The interior point method leaves rounding errors in y where it finds no exact pattern.
    y = penalty.A @ solution.x if solution.y is None else solution.y
    return penalty.trend.dof(np.where(ties(penalty.A, solution.x), 0.0, y))

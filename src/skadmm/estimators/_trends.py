"""Differences of any order along uneven positions or over a graph, and signals read off between their knots."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.model_selection import PredefinedSplit
from sklearn.utils.validation import check_is_fitted, validate_data

from skadmm import _checks
from skadmm.backends.frames import for_sklearn
from skadmm.estimators._base import StructuredModel
from skadmm.estimators._graphs import feature_graph, unframed
from skadmm.estimators._penalty import Penalty, checked_ratio, with_l1
from skadmm.operators import trend
from skadmm.operators.canonical import canonical
from skadmm.operators.line import GraphTrend, line_at
from skadmm.operators.trend import spaced_trend
from skadmm.problem.structure import ties
from skadmm.run.follow import Solution
from skadmm.run.result import Result


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


class TrendModel(StructuredModel):
    """A signal over positions, or a table whose coefficients follow a trend."""

    order: Any
    graph: Any
    design: Any
    l1_ratio: Any
    cv: Any
    knots_: Any
    graph_: Any

    def _check_parameters(self) -> None:
        super()._check_parameters()
        _checks.count(self.order, "order", least=0)
        if self.design not in ("auto", "positions", "matrix"):
            raise ValueError(f"design={self.design!r}: it takes 'auto', 'positions' or 'matrix'")

    def _read(self, X: Any, y: Any, sample_weight: Any, **checks: Any) -> tuple[Any, Any, np.ndarray | None]:
        X, y, sample_weight = super()._read(X, y, sample_weight, **checks)
        self._signal = self.design == "positions" or (self.design == "auto" and X.shape[1] == 1)
        if not self._signal:
            self.knots_ = None
            return X, y, sample_weight
        if X.shape[1] != 1:
            raise ValueError(f"design='positions' takes X with one column, got {X.shape[1]}")
        positions = self._positions = _column(X)
        if self.graph is None:
            self.knots_ = np.unique(positions)
        else:
            self.knots_ = np.arange(float(self._n_nodes(positions)))
        index = np.searchsorted(self.knots_, positions)
        n = positions.size
        table = sp.csr_array((np.ones(n), index, np.arange(n + 1)), shape=(n, self.knots_.size))
        return table, y, sample_weight

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
            # The null space of a graph with negative signs is not that of constants, which a GraphTrend stands for.
            signed = bool(np.any(G.sum(axis=1) != 0.0))
            known = GraphTrend(G, order) if ratio == 0.0 and not signed else None
            return Penalty(with_l1(graph_trend(G, order), ratio), trend=known, graph=graph)
        if self._signal:
            return _along(self.knots_, order, ratio)
        d = X.shape[1]
        if order > d - 1:
            raise ValueError(f"order={order}: it takes at most n_features − 1 = {d - 1}")
        return Penalty(with_l1(trend(d, order), ratio))

    def _intercept_and_scaling(self) -> tuple[bool, bool]:
        # A signal has no intercept of its own (constants are not penalised), and its columns are indicators.
        return (False, False) if self._signal else super()._intercept_and_scaling()

    def _splitter(self, y: Any) -> Any:
        if not self._signal or not (self.cv is None or isinstance(self.cv, int)):
            return super()._splitter(y)
        # Neighbours in different folds: to predict a whole stretch that was left out is another problem.
        folds = _checks.count(5 if self.cv is None else self.cv, "cv", least=2)
        return PredefinedSplit(np.argsort(np.argsort(self._positions, kind="stable")) % folds)

    def _trend(self, prepared: Any) -> Any:
        trend = prepared.penalty.trend
        return trend._replace(G=prepared.design.widened(trend.G)) if isinstance(trend, GraphTrend) else trend

    def _structure(self, prepared: Any, labels: list[np.ndarray], results: list[Result]) -> None:
        super()._structure(prepared, labels, results)
        if isinstance(prepared.penalty.trend, GraphTrend) and prepared.penalty.trend.order > 0:
            self.dof_ = _dof(prepared.penalty, results[0])

    def _path(
        self, prepared: Any, target: np.ndarray, alphas: np.ndarray, callback: Any, *, certify: bool = True
    ) -> Any:
        """Degrees of freedom over a graph follow from the zeros of the solver's own Ax."""
        over_graph = self._signal and isinstance(prepared.penalty.trend, GraphTrend)
        if not over_graph or prepared.penalty.A.shape[0] == 0:
            return super()._path(prepared, target, alphas, callback, certify=certify)
        dof = []

        def count(k: int, solution: Solution) -> None:
            dof.append(_dof(prepared.penalty, solution))
            callback(k, solution)

        found = super()._path(prepared, target, alphas, count, certify=certify)
        return replace(found, dof=np.array(dof))

    def _fold(self, prepared: Any, part: Any, test: Any, weight: Any) -> Any:
        """In a fold only the knots it observes are there; between them the signal is read off as in predict."""
        if not self._signal or self.graph is not None:
            return super()._fold(prepared, part, test, weight)
        kept = np.unique(part.indices)
        knots = self.knots_[kept]
        fold = prepared._replace(
            design=prepared.design._replace(X=sp.csr_array(part[:, kept]), scale=np.ones(kept.size)),
            penalty=_along(knots, int(self.order), checked_ratio(self.l1_ratio)),
            sample_weight=weight,
        )
        held = self.knots_[test.indices]
        step = self.order == 0
        return fold, _interpolation(knots, held, step=step)

    def predict(self, X: Any) -> np.ndarray:
        """The signal at the positions in `X`, or the predicted targets of a table.

        Between knots the signal is a step function for order 0 and linear above; beyond the last it goes on so.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        if self.knots_ is None:
            return self._scores(X)
        X = validate_data(self, for_sklearn(X), accept_sparse="csr", dtype=np.float64, reset=False)
        return self.intercept_ + _between(self.knots_, self.coef_, _column(X), step=self.order == 0)

    def smooth(self, signal: Any) -> np.ndarray:
        """Fit a signal at positions 0, 1, 2, … (or over the graph's nodes), and return the fitted values."""
        signal = np.asarray(signal)
        if signal.ndim != 1:
            raise ValueError(f"signal has shape {signal.shape}: it takes a vector")
        return self.fit(np.arange(float(signal.size))[:, None], signal).predict(np.arange(float(signal.size))[:, None])


def _column(X: Any) -> np.ndarray:
    return np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)[:, 0]


def _along(knots: np.ndarray, order: int, l1_ratio: float) -> Penalty:
    """The penalty of a signal at `knots`."""
    D = spaced_trend(knots, order)
    line = line_at(knots, order) if l1_ratio == 0.0 and D.shape[0] else None
    return Penalty(with_l1(D, l1_ratio), trend=line)


def _dof(penalty: Penalty, solution: Result | Solution) -> int:
    """The degrees of freedom of a signal over a graph."""
    # The interior point method leaves rounding in y where it finds no exact pattern.
    y = penalty.A @ solution.x if solution.y is None else solution.y
    return penalty.trend.dof(np.where(ties(penalty.A, solution.x), 0.0, y))


def _between(knots: np.ndarray, values: np.ndarray, positions: np.ndarray, *, step: bool) -> np.ndarray:
    return np.asarray(_interpolation(knots, positions, step=step) @ values)


def _interpolation(knots: np.ndarray, positions: np.ndarray, *, step: bool) -> sp.csr_array:
    """The matrix from values at `knots` to values at `positions`: a step function or linear, two entries per row."""
    n, d = positions.size, knots.size
    right = np.searchsorted(knots, positions, side="right") - 1
    nearest = np.clip(right, 0, d - 1)
    if step or d == 1:
        return sp.csr_array((np.ones(n), nearest, np.arange(n + 1)), shape=(n, d))
    left = np.clip(right, 0, d - 2)
    share = (positions - knots[left]) / (knots[left + 1] - knots[left])
    share = np.where(knots[nearest] == positions, (nearest - left).astype(float), share)
    entries = np.column_stack([1.0 - share, share]).ravel()
    return sp.csr_array((entries, np.column_stack([left, left + 1]).ravel(), 2 * np.arange(n + 1)), shape=(n, d))

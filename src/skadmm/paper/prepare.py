"""From a data set to the problem of a cell: half for training, scaling, the graph, A."""

from __future__ import annotations

import functools
import os
import warnings
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from skadmm.datasets import Loaded, load
from skadmm.operators import incidence, precision_graph, stack
from skadmm.paper.settings import Settings, base_name, split_settings
from skadmm.paper.store import Store, load_matrix, save_matrix
from skadmm.problem.problem import Problem
from skadmm.regularizers import L1, SquaredL2


class Source(NamedTuple):
    """A data set that was found and checked, by the name its results are reported under."""

    name: str
    sha256: str
    origin: str
    samples: int
    features: int
    nonzeros: int
    positive: int


class Halves(NamedTuple):
    """Training and test half of one repeat; the training rows in random order, so that blocks are random too."""

    X: Any
    target: np.ndarray
    X_test: Any
    target_test: np.ndarray


class Graph(NamedTuple):
    """The graph of a training half, as its incidence matrix."""

    G: scipy.sparse.csr_array
    alpha: float
    cut: int
    converged: bool


def register_source(store: Store, name: str, data_dir: str | os.PathLike[str] | None, limit: int | None) -> Source:
    """Load a data set once, and keep it as arrays for the workers."""
    base = base_name(name)
    loaded = load(base, data_dir)
    path = store.data_path(loaded.name, loaded.sha256)
    if not path.is_file():
        save_matrix(path, loaded.X, target=loaded.target)
    return _described(loaded, loaded.name + name.removeprefix(base), limit)


def _described(loaded: Loaded, name: str, limit: int | None) -> Source:
    X, target = (loaded.X, loaded.target) if limit is None else _some(loaded.X, loaded.target, limit)
    nonzeros = int(X.nnz) if scipy.sparse.issparse(X) else int(np.count_nonzero(X))
    n, d = X.shape
    return Source(name, loaded.sha256, loaded.origin, n, d, nonzeros, int(np.sum(target > 0)))


@functools.lru_cache(maxsize=1)
def _arrays(store: Store, name: str, sha256: str) -> tuple[Any, np.ndarray]:
    X, more = load_matrix(store.data_path(name, sha256))
    return X, more["target"]


def _some(X: Any, target: np.ndarray, limit: int) -> tuple[Any, np.ndarray]:
    if limit >= target.size:
        return X, target
    rows = np.sort(np.random.default_rng(0).choice(target.size, size=limit, replace=False))
    return X[rows], target[rows]


@functools.lru_cache(maxsize=1)
def halves(store: Store, name: str, sha256: str, limit: int | None, scaling: str, seed: int, repeat: int) -> Halves:
    """Half of the samples for training, the rest for testing; scaled by what the training half shows."""
    X, target = _arrays(store, base_name(name), sha256)
    if limit is not None:
        X, target = _some(X, target, limit)
    order = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(repeat,))).permutation(target.size)
    train, test = order[: target.size // 2], np.sort(order[target.size // 2 :])
    X_train, X_test = scaled(X[train], X[test], scaling)
    return Halves(X_train, target[train], X_test, target[test])


def scaled(X: Any, other: Any, scaling: str) -> tuple[Any, Any]:
    """Both parts scaled by the columns of the first, or each row by itself; "standard" and "minmax" make X dense."""
    if scaling == "none":
        return X, other
    if scaling == "unit-rows":
        return _unit_rows(X), _unit_rows(other)
    if scaling == "maxabs":
        largest = _ones_for_zeros(np.asarray(abs(X).max(axis=0).todense()).ravel() if scipy.sparse.issparse(X)
                                  else np.abs(X).max(axis=0))  # fmt: skip
        return _times(X, 1 / largest), _times(other, 1 / largest)
    X, other = (part.toarray() if scipy.sparse.issparse(part) else part for part in (X, other))
    if scaling == "standard":
        shift, spread = X.mean(axis=0), X.std(axis=0)
    else:
        shift, spread = X.min(axis=0), np.ptp(X, axis=0)
    spread = _ones_for_zeros(spread)
    return (X - shift) / spread, (other - shift) / spread


def _unit_rows(X: Any) -> Any:
    """Every row divided by its Euclidean norm; a row of zeros stays."""
    if scipy.sparse.issparse(X):
        norms = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
        return scipy.sparse.csr_array(scipy.sparse.diags_array(1 / np.where(norms > 0, norms, 1.0)) @ X)
    norms = np.linalg.norm(X, axis=1, keepdims=True)
    return X / np.where(norms > 0, norms, 1.0)


def _ones_for_zeros(scale: np.ndarray) -> np.ndarray:
    return np.where(scale > 1e-12 * scale.max(initial=0.0), scale, 1.0)


def _times(X: Any, factors: np.ndarray) -> Any:
    return scipy.sparse.csr_array(X @ scipy.sparse.diags_array(factors)) if scipy.sparse.issparse(X) else X * factors


def halves_of(settings: Settings, store: Store, source: Source, repeat: int) -> Halves:
    """The halves of one repeat under some settings."""
    scaling = settings.scaling_of(source.name)
    return halves(store, source.name, source.sha256, settings.limit, scaling, settings.seed, repeat)


def graph_of(settings: Settings, store: Store, source: Source, repeat: int) -> Graph:
    """The graph by sparse inverse covariance selection on the training half; kept once it is known."""
    path = store.graph_path(split_settings(settings, source.name, repeat, source.sha256))
    if not path.is_file():
        X = halves_of(settings, store, source, repeat).X
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that the graph is approximate is kept, and reported
            found = precision_graph(X, alpha=settings.graph_alpha, degree=settings.graph_degree)
        G = incidence(found, n_features=X.shape[1], signs=False)  # the paper's differences have no signs
        save_matrix(path, G, alpha=np.array(found.alpha), cut=np.array(found.cut), converged=np.array(found.converged))
    G, more = load_matrix(path)
    return Graph(G, float(more["alpha"]), int(more["cut"]), bool(more["converged"]))


def problem_of(settings: Settings, store: Store, source: Source, repeat: int, matrix: str, problem: str) -> Problem:
    """min (1/n) Σ log(1 + exp(−bᵢ aᵢ·x)) + λ‖Ax‖₁, with (μ/2)‖x‖² added where it is to be strongly convex."""
    half = halves_of(settings, store, source, repeat)
    G = graph_of(settings, store, source, repeat).G
    return Problem(
        half.X,
        half.target,
        loss="logistic",
        omega=SquaredL2(settings.mu) if problem == "strong" else None,
        psi=L1(settings.strength[source.name]),
        A=stack(G, "identity") if matrix == "stacked" else G,
    )


def unbounded_features(half: Halves, G: scipy.sparse.csr_array) -> int:
    """With A = G: features without an edge that are non-zero, of one sign, in one class only.

    Their coefficient is not penalised and its best value is infinite, so the problem has no minimiser.
    """
    lonely = np.flatnonzero(np.bincount(G.indices, minlength=G.shape[1]) == 0)
    signed = scipy.sparse.csr_array(half.X[:, lonely]) if lonely.size else None
    if signed is None:
        return 0
    margins = scipy.sparse.csc_array(scipy.sparse.diags_array(half.target) @ signed)
    count = 0
    for start, stop in zip(margins.indptr[:-1], margins.indptr[1:], strict=True):
        column = margins.data[start:stop]
        column = column[column != 0]
        count += bool(column.size and (np.all(column > 0) or np.all(column < 0)))
    return count

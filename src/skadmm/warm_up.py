"""Compile kernels before they are needed, by small fits of every kind of model.

``skadmm warm-up`` fills the user's cache with them, for container images and clusters; ``make wheel`` finds out by them
which kernels a wheel should carry.
"""

from __future__ import annotations

import functools
import itertools
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import scipy.sparse as sp

SHAPES = ((120, 8), (12, 30), (40, 900))
"""Samples and features: many samples, few samples, and so many features that working sets are used."""
LARGE = (8000, 120)
"""Samples and features of a table that does not fit into the processor's cache: it is read once for each evaluation."""
STRENGTH = 0.05
"""The penalty's strength."""


def _table(shape: tuple[int, int], storage: str, task: str) -> tuple[Any, np.ndarray]:
    """X and a target."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal(shape)
    if storage == "sparse":
        X *= rng.random(shape) < 0.3
    signal = X[:, 0] - X[:, 1] + 0.1 * rng.standard_normal(shape[0])
    target = np.where(signal > np.median(signal), 1, 0) if task == "classifier" else signal
    return (sp.csr_array(X) if storage == "sparse" else X), target


def _models(family: str, task: str, features: int) -> list[Any]:
    """The estimators of one family with their common settings."""
    from skadmm.estimators import ESTIMATORS
    from skadmm.operators import trend

    many = features >= SHAPES[-1][1]
    shared: dict[str, Any] = {"max_passes": 20 if many else 200}
    name = f"{family.capitalize()}Lasso{task.capitalize()}"
    if family == "trend" and task == "regressor":
        name = "TrendFilter"
        shared |= {"design": "matrix"}
    elif family == "trend":
        name = "GeneralizedLassoClassifier"
        shared |= {"A": trend(features, 2)}
    elif family == "generalized":
        shared |= {"A": np.diff(np.eye(features), axis=0)}
    elif family == "group":
        shared |= {"groups": [list(range(first, min(first + 2, features))) for first in range(0, features, 2)]}
    one, searched = ESTIMATORS[name], ESTIMATORS[f"{name}CV"]
    models = [one(STRENGTH, **shared), one(STRENGTH, l1_ratio=0.5, ridge=0.01, standardize=True, **shared)]
    if not many:
        models += [one(STRENGTH, loss="huber" if task == "regressor" else "squared-hinge", **shared)]
        models += [searched(alphas=3, cv=2, **shared)]
    if family == "generalized":
        models += [one(STRENGTH), one(STRENGTH, l1_ratio=0.5)]
    return models


def _estimators(family: str, task: str, storage: str) -> None:
    for shape in SHAPES:
        X, target = _table(shape, storage, task)
        for model in _models(family, task, shape[1]):
            model.fit(X, target).predict(X)
        if storage == "dense" and shape == SHAPES[0]:  # tables of columns, as pandas has them
            _models(family, task, shape[1])[0].fit(np.asfortranarray(X), target)


def _signals() -> None:
    from skadmm.estimators import TrendFilter, TrendFilterCV

    positions = np.arange(60.0)[:, None]
    for order in (0, 1, 2):
        TrendFilter(0.1, order=order).fit(positions, np.abs(positions[:, 0] - 30.0))
    TrendFilterCV(alphas=3, cv=2).fit(positions, np.abs(positions[:, 0] - 30.0))


def _solve(storage: str, methods: Iterable[str]) -> None:
    """``solve`` as in the README, by default and with each of the `methods`."""
    from skadmm import Problem, solve
    from skadmm.operators import chain, stack
    from skadmm.regularizers import L1

    for task, loss in (("classifier", "logistic"), ("regressor", "squared")):
        X, target = _table((60, 6), storage, task)
        target = 2.0 * target - 1.0 if task == "classifier" else target
        problem = Problem(X, target, loss=loss, psi=L1(STRENGTH), A=stack(chain(6), "identity"))
        solve(problem, tol=1e-6)
        for name in methods:
            solve(problem, name, passes=2, rho=1.0)


def _every_method(storage: str) -> None:
    from skadmm import ALGORITHMS

    _solve(storage, ALGORITHMS)


def _losses(storage: str) -> None:
    """Fused lassos with the other losses."""
    from skadmm.estimators import FusedLassoClassifier, FusedLassoRegressor

    X, signal = _table(SHAPES[0], storage, "regressor")
    for loss in ("poisson", "gamma", "absolute", "quantile"):
        FusedLassoRegressor(STRENGTH, loss=loss, max_passes=200).fit(X, np.exp(0.3 * signal))
    FusedLassoClassifier(STRENGTH, loss="hinge", max_passes=200).fit(X, signal > 0.0)


def _large(storage: str) -> None:
    """Fused lassos of a table beyond the processor's cache, whose evaluation is another kernel."""
    from skadmm.estimators import FusedLassoClassifier, FusedLassoRegressor

    X, signal = _table(LARGE, storage, "regressor")
    for loss in ("logistic", "squared-hinge"):
        FusedLassoClassifier(STRENGTH, loss=loss, max_passes=5).fit(X, signal > 0.0)
    for loss in ("squared", "huber"):
        FusedLassoRegressor(STRENGTH, loss=loss, max_passes=5).fit(X, signal)
    FusedLassoRegressor(STRENGTH, loss="poisson", max_passes=5).fit(X, np.exp(0.1 * signal))


def _several_outputs(storage: str) -> None:
    """Several targets, and more than two classes, in one model."""
    from skadmm.estimators import FusedLassoClassifier, FusedLassoRegressor, GroupLassoRegressor

    X, signal = _table(SHAPES[0], storage, "regressor")
    targets, classes = np.column_stack([signal, -signal]), np.digitize(signal, (-0.5, 0.5))
    shared: dict[str, Any] = {"max_passes": 200}
    for penalty in ("entries", "rows"):
        FusedLassoRegressor(STRENGTH, output_penalty=penalty, **shared).fit(X, targets).predict(X)
    GroupLassoRegressor(STRENGTH, groups=[[0, 1, 2, 3], [4, 5, 6, 7]], **shared).fit(X, targets)
    FusedLassoClassifier(STRENGTH, multi_class="multinomial", **shared).fit(X, classes).predict_proba(X)


def _all_kinds() -> dict[str, Callable[[], None]]:
    kinds: dict[str, Callable[[], None]] = {}
    families = ("fused", "group", "generalized", "trend")
    for family, task, storage in itertools.product(families, ("classifier", "regressor"), ("dense", "sparse")):
        kinds[f"{family}-{task}-{storage}"] = functools.partial(_estimators, family, task, storage)
    kinds["signal"] = _signals
    for storage in ("dense", "sparse"):
        kinds[f"solve-{storage}"] = functools.partial(_solve, storage, ("sa-iu-admm",))
    for storage in ("dense", "sparse"):
        kinds[f"losses-{storage}"] = functools.partial(_losses, storage)
        kinds[f"outputs-{storage}"] = functools.partial(_several_outputs, storage)
        kinds[f"large-{storage}"] = functools.partial(_large, storage)
    for storage in ("dense", "sparse"):
        kinds[f"methods-{storage}"] = functools.partial(_every_method, storage)
    return kinds


KINDS = _all_kinds()
"""The kinds of model, by name, each with a function that fits small examples of it."""
SHIPPED = tuple(name for name in KINDS if not name.startswith("methods"))
"""The kinds whose kernels wheels carry. First-order methods, each with kernels of its own, would triple the size."""


def warm_up(kinds: Iterable[str] = (), *, say: Callable[[str], None] | None = None) -> None:
    """Compile the kernels that the given kinds of model need; those of all kinds by default.

    Parameters
    ----------
    kinds : iterable of str
        Names in :data:`KINDS`, or their beginnings: "fused" is all fused lassos.
    say : function of a str, optional
        Called with the name of each kind before it runs.
    """
    prefixes = list(kinds)
    chosen = [name for name in KINDS if not prefixes or any(f"{name}-".startswith(f"{part}-") for part in prefixes)]
    unknown = [part for part in prefixes if not any(f"{name}-".startswith(f"{part}-") for name in KINDS)]
    if unknown:
        raise ValueError(f"{unknown[0]!r} is not a kind of model: it takes {', '.join(KINDS)}, or their beginnings")
    for name in chosen:
        if say is not None:
            say(name)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # these short fits do not converge, and need not
            KINDS[name]()

"""Random problems of every kind, an oracle that shares no code with the package, and a verdict on what a run returned.

``random_problem(seed)`` draws a problem, ``oracle(case)`` finds its optimum by CVXPY, ``judge(case, result)`` says how
a run did. As a program it does this for many seeds and counts:

    python tests/support/random_problems.py --first 0 --count 500

Only the public interface of the package is used, so that versions can be compared by ``PYTHONPATH``.
"""

import argparse
import collections
import contextlib
import multiprocessing
import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import cvxpy as cp
import numpy as np
import pywt
import random_losses
import scipy.linalg
import scipy.optimize
import scipy.sparse
import scipy.special

from skadmm import Problem, Status, solve
from skadmm.losses import Huber, Quantile
from skadmm.operators import chain, grid, identity, incidence, stack, trend, wavelet
from skadmm.regularizers import L1, L2, Box, ElasticNet, GroupL2, GroupLInf, LInf, NonNegative, SquaredL2

CLOSE = 1e-5
"""An objective this close to the oracle's, relatively, is right."""
LOOSE = 1e-4
"""A KKT residual proves nothing; an objective farther off than this is wrong whatever the residual."""
FLOOR = 1e-3
"""Distances are relative to the optimum, but not to less than this share of the objective at zero."""

CLASSES = (
    "solved",
    "solved loosely",
    "false certificate",
    "right x, not solved",
    "wrong x",
    "unbounded called wrongly",
    "no minimiser",
    "no minimiser, not said",
    "crash",
    "oracle unknown",
)
"""What :func:`judge` may say. "solved loosely": by the KKT residual, and the objective is off by 1e-5 to 1e-4."""


# -- the parts of a problem, in NumPy and in CVXPY --------------------------------------------------------------------


class Penalty(NamedTuple):
    """A regulariser as plain numbers."""

    kind: str = "none"
    strength: float = 0.0
    weights: np.ndarray | None = None
    """Of coordinates, or of groups."""
    groups: list[np.ndarray] | None = None
    ratio: float = 1.0
    lower: np.ndarray | float = -np.inf
    upper: np.ndarray | float = np.inf

    def value(self, v: np.ndarray) -> float:
        if self.kind in ("box", "non-negative"):
            return 0.0 if np.all(v >= self.lower) and np.all(v <= self.upper) else np.inf
        weights = 1.0 if self.weights is None else self.weights
        forms: dict[str, Callable[[], float]] = {
            "none": lambda: 0.0,
            "l1": lambda: np.sum(weights * np.abs(v)),
            "l2": lambda: np.linalg.norm(v),
            "linf": lambda: np.abs(v).max(initial=0.0),
            "squared-l2": lambda: 0.5 * np.sum(v**2),
            "elastic-net": lambda: self.ratio * np.sum(weights * np.abs(v)) + 0.5 * (1 - self.ratio) * np.sum(v**2),
            "group-l2": lambda: sum(w * np.linalg.norm(v[g]) for g, w in self._weighted_groups),
            "group-linf": lambda: sum(w * np.abs(v[g]).max() for g, w in self._weighted_groups),
        }
        return float(self.strength * forms[self.kind]()) if self.strength > 0 else 0.0

    def model(self, v: Any) -> tuple[Any, list[Any]]:
        """The value as a CVXPY expression, and constraints."""
        if self.kind in ("box", "non-negative"):
            lower, upper = np.broadcast_to(self.lower, v.shape), np.broadcast_to(self.upper, v.shape)
            below, above = np.flatnonzero(np.isfinite(lower)), np.flatnonzero(np.isfinite(upper))
            limits = [v[below] >= lower[below]] if below.size else []
            return 0.0, limits + ([v[above] <= upper[above]] if above.size else [])
        if self.kind == "none" or self.strength == 0:
            return 0.0, []
        absolute = cp.norm1(v) if self.weights is None else None
        if absolute is None and self.groups is None:
            absolute = cp.norm1(cp.multiply(self.weights, v))
        forms: dict[str, Callable[[], Any]] = {
            "l1": lambda: absolute,
            "l2": lambda: cp.norm2(v),
            "linf": lambda: cp.norm_inf(v),
            "squared-l2": lambda: 0.5 * cp.sum_squares(v),
            "elastic-net": lambda: self.ratio * absolute + 0.5 * (1 - self.ratio) * cp.sum_squares(v),
            "group-l2": lambda: sum(w * cp.norm2(v[g]) for g, w in self._weighted_groups),
            "group-linf": lambda: sum(w * cp.norm_inf(v[g]) for g, w in self._weighted_groups),
        }
        return self.strength * forms[self.kind](), []

    @property
    def _weighted_groups(self) -> Iterator[tuple[np.ndarray, float]]:
        weights = np.ones(len(self.groups)) if self.weights is None else self.weights
        return zip(self.groups, weights, strict=True)

    def seen(self, size: int) -> np.ndarray:
        """The coordinates that cannot grow for nothing."""
        if self.kind in ("none", "box", "non-negative") or self.strength == 0:
            return np.zeros(size, bool)
        if self.groups is not None:
            seen = np.zeros(size, bool)
            for group, weight in self._weighted_groups:
                seen[group] = weight > 0
            return seen
        if self.weights is None or (self.kind == "elastic-net" and self.ratio < 1):
            return np.ones(size, bool)
        return self.weights > 0

    def dual_norm(self, beta: Any, kit: Any) -> Any:
        """The least strength for which `beta` is a subgradient at zero; `kit` holds the norms of NumPy or CVXPY."""
        if self.groups is not None:
            norm = kit.two if self.kind == "group-l2" else kit.one
            return kit.largest([norm(beta[g]) / w for g, w in self._weighted_groups if w > 0])
        if self.kind == "l2":
            return kit.two(beta)
        if self.kind == "linf":
            return kit.one(beta)
        ratio = self.ratio if self.kind == "elastic-net" and self.ratio > 0 else 1.0
        if self.weights is None:
            return kit.infinity(beta) / ratio
        seen = self.weights > 0
        return kit.infinity(kit.times(1 / (self.weights[seen] * ratio), beta[seen]))


class _NumPyNorms(NamedTuple):
    one: Any = staticmethod(lambda v: np.abs(v).sum())
    two: Any = staticmethod(np.linalg.norm)
    infinity: Any = staticmethod(lambda v: np.abs(v).max(initial=0.0))
    largest: Any = staticmethod(lambda parts: max(parts, default=0.0))
    times: Any = staticmethod(np.multiply)


class _ModelNorms(NamedTuple):
    one: Any = cp.norm1
    two: Any = cp.norm2
    infinity: Any = cp.norm_inf
    largest: Any = staticmethod(lambda parts: cp.max(cp.hstack(parts)))
    times: Any = cp.multiply


def loss_values(kind: str, delta: float, z: np.ndarray, b: np.ndarray) -> np.ndarray:
    """ℓ(z, b) of each sample."""
    if kind in random_losses.LOSSES:
        with np.errstate(over="ignore", invalid="ignore"):
            return random_losses.LOSSES[kind].values(delta, z, b)
    if kind == "logistic":
        return np.logaddexp(0.0, -b * z)
    if kind == "squared-hinge":
        return 0.5 * np.maximum(0.0, 1.0 - b * z) ** 2
    if kind == "hinge":
        return np.maximum(0.0, 1.0 - b * z)
    if kind == "quantile":
        return np.maximum(delta * (b - z), (1.0 - delta) * (z - b))
    if kind == "poisson":
        with np.errstate(over="ignore"):
            return np.exp(z) - b * z + scipy.special.xlogy(b, b) - b
    if kind == "gamma":
        with np.errstate(over="ignore"):
            return b * np.exp(-z) + z - np.log(b) - 1.0
    r = np.abs(z - b)
    if kind == "absolute":
        return r
    if kind == "huber":
        return np.where(r <= delta, 0.5 * r**2, delta * r - 0.5 * delta**2)
    return 0.5 * r**2


def loss_slopes(kind: str, delta: float, z: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The derivative of ℓ in z."""
    if kind in random_losses.LOSSES:
        with np.errstate(over="ignore", invalid="ignore"):
            return random_losses.LOSSES[kind].slopes(delta, z, b)
    if kind == "logistic":
        return -b * np.exp(-np.logaddexp(0.0, b * z))
    if kind == "squared-hinge":
        return -b * np.maximum(0.0, 1.0 - b * z)
    if kind == "hinge":
        return np.where(b * z < 1.0, -b, 0.0)
    if kind in ("quantile", "absolute"):
        low, high = (-delta, 1.0 - delta) if kind == "quantile" else (-1.0, 1.0)
        return np.where(z < b, low, np.where(z > b, high, 0.0))
    if kind in ("poisson", "gamma"):
        with np.errstate(over="ignore"):
            return np.exp(z) - b if kind == "poisson" else 1.0 - b * np.exp(-z)
    return np.clip(z - b, -delta, delta) if kind == "huber" else z - b


def loss_model(kind: str, delta: float, z: Any, b: np.ndarray, w: np.ndarray) -> Any:
    """Σ wᵢ ℓ(zᵢ, bᵢ) in CVXPY."""
    if kind in random_losses.LOSSES:
        return random_losses.LOSSES[kind].model(delta, z, b, w)
    root = np.sqrt(w)
    if kind == "logistic":
        return w @ cp.logistic(cp.multiply(-b, z))
    if kind == "hinge":
        return w @ cp.pos(1 - cp.multiply(b, z))
    if kind == "quantile":
        return w @ (delta * cp.pos(b - z) + (1 - delta) * cp.pos(z - b))
    if kind == "absolute":
        return w @ cp.abs(z - b)
    if kind == "poisson":
        return w @ (cp.exp(z) - cp.multiply(b, z)) + w @ (scipy.special.xlogy(b, b) - b)
    if kind == "gamma":
        return w @ (cp.multiply(b, cp.exp(-z)) + z) - w @ (np.log(b) + 1.0)
    if kind == "huber":
        # As the least of ½s² + δ|r − s| over s: far better conditioned than cp.huber where δ is small.
        inner = cp.Variable(b.size)
        return cp.sum_squares(cp.multiply(root, inner)) / 2 + delta * (w @ cp.abs(z - b - inner))
    residual = cp.pos(1 - cp.multiply(b, z)) if kind == "squared-hinge" else z - b
    return cp.sum_squares(cp.multiply(root, residual)) / 2


# -- a case -----------------------------------------------------------------------------------------------------------


@dataclass
class Case:
    """A problem for the package, and the same problem as plain arrays for the oracle."""

    seed: int
    tags: dict[str, str]
    """Every choice that was made."""
    kwargs: dict[str, Any]
    """Arguments of ``Problem``."""
    options: dict[str, Any]
    """Arguments of ``solve``: x0."""
    X: np.ndarray
    b: np.ndarray
    """The target, −1/+1 for classes."""
    w: np.ndarray
    """Sample weights of mean one."""
    loss: str
    delta: float
    A: np.ndarray | None
    B: np.ndarray | None
    """None for −I."""
    c: np.ndarray
    psi: Penalty
    omega: Penalty
    _optimum: Any = field(default=None, repr=False)

    @property
    def invertible(self) -> bool:
        """Does x determine y?"""
        return self.tags["B"] not in ("tall", "wide", "singular")

    def y_of_x(self, x: np.ndarray) -> np.ndarray | None:
        """y(x); None where B has no inverse. Without ψ it is empty."""
        if self.A is None:
            return np.empty(0)
        right = self.c - self.A @ x
        if self.B is None:
            return -right
        return np.linalg.solve(self.B, right) if self.invertible else None

    def loss_value(self, x: np.ndarray) -> float:
        return float(self.w @ loss_values(self.loss, self.delta, self.X @ x, self.b) / self.b.size)

    def gradient(self, x: np.ndarray) -> np.ndarray:
        return self.X.T @ (self.w * loss_slopes(self.loss, self.delta, self.X @ x, self.b)) / self.b.size

    def objective(self, x: np.ndarray, y: np.ndarray | None = None) -> float:
        """At (x, y(x)) where B has an inverse, else at (x, y)."""
        inner = self.y_of_x(x)
        return self.loss_value(x) + self.omega.value(x) + self.psi.value(y if inner is None else inner)

    def infeasibility(self, x: np.ndarray, y: np.ndarray) -> float:
        """‖Ax + By − c‖ relative to its terms; 0 where y follows from x.

        Where the solution is zero, or Ax is, its terms are of the size of rounding, and no scale to measure by: A times
        the sizes of x, and what A makes of a gradient step of the squared loss from zero, count with a small share.
        Where the target is zero, that step is zero too, and a small share of the start takes its place.
        """
        if self.invertible:
            return 0.0
        Ax, By = self.A @ x, self.B @ y
        step = np.linalg.norm(self.X.T @ self.b) / max(np.sum(self.X**2), 1e-300)
        if step == 0.0:
            step = 1e-9 * (np.linalg.norm(self.options.get("x0", 0.0)) or 1.0)
        rounding = np.linalg.norm(np.abs(self.A) @ np.abs(x)) + np.linalg.norm(self.A) * step
        size = max(np.linalg.norm(Ax), np.linalg.norm(By), np.linalg.norm(self.c), 1e-6 * rounding, 1e-300)
        return float(np.linalg.norm(Ax + By - self.c) / size)

    def feasible_near(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The nearest point with Ax + By = c to rounding; where y follows from x, (x, y(x))."""
        if self.invertible:
            return x, self.y_of_x(x)
        both, point = np.hstack([self.A, self.B]), np.concatenate([x, y])
        for _ in range(3):
            point = point - np.linalg.lstsq(both, both @ point - self.c, rcond=1e-13)[0]
        return point[: x.size], point[x.size :]

    @cached_property
    def scale(self) -> float:
        """Distances are measured against no less than this."""
        start = self.options.get("x0")
        begun = self.objective(start) if start is not None and self.invertible else 0.0
        largest = max(self.objective_at_zero, begun if self.objective_at_zero == 0 and np.isfinite(begun) else 0.0)
        return FLOOR * (largest or 1e-9)

    @cached_property
    def objective_at_zero(self) -> float:
        """At the point of Ω's set nearest to zero; where y does not follow from x, of the loss alone."""
        x = np.clip(np.zeros(self.X.shape[1]), self.omega.lower, self.omega.upper)
        return self.objective(x) if self.invertible else self.loss_value(x)

    def problem(self) -> Problem:
        return Problem(**self.kwargs)

    def __str__(self) -> str:
        return " ".join(f"{name}={choice}" for name, choice in self.tags.items() if choice not in ("-", "plain"))


# -- the generator ----------------------------------------------------------------------------------------------------

LOSSES = {"logistic": 0.27, "squared": 0.27, "squared-hinge": 0.2, "huber": 0.26}
OTHER_LOSSES = {"poisson": 0.25, "gamma": 0.15, "quantile": 0.25, "absolute": 0.15, "hinge": 0.2}
FIRST_OF_OTHERS = 10_000_000
"""Seeds from here on have these losses; the problems of smaller seeds have the first four."""
FIRST_OF_MORE = 20_000_000
"""Seeds from here on have the losses of ``random_losses.py``."""
QUANTILES = [0.1, 0.5, 0.8]
DELTAS = [1e-3, 0.05, 0.5, 1.0, 1.35, 10.0]
OPERATORS = {
    "none": 0.05, "identity": 0.08, "chain": 0.07, "chain;I": 0.06, "graph": 0.06, "graph;I": 0.06, "grid": 0.05,
    "grid;I": 0.05, "tree": 0.05, "signed graph": 0.05, "weighted graph": 0.05, "trend 1": 0.05, "trend 2": 0.04,
    "trend 3": 0.04, "wavelet": 0.05, "dense": 0.05, "low-rank dense": 0.05, "repeated rows": 0.05, "zero rows": 0.04,
}  # fmt: skip
SECONDS = {
    "-": 0.85, "scalar": 0.03, "diagonal": 0.03, "square": 0.03, "tall": 0.02, "wide": 0.02, "singular": 0.02,
}  # fmt: skip
PSIS = {
    "l1": 0.28, "weighted-l1": 0.12, "elastic-net": 0.1, "group-l2": 0.14, "group-linf": 0.1, "l2": 0.09, "linf": 0.08,
    "squared-l2": 0.09,
}  # fmt: skip
OMEGAS = {"none": 0.68, "squared-l2": 0.08, "l1": 0.07, "non-negative": 0.06, "box": 0.06, "elastic-net": 0.05}
TABLES = {
    "centred": 0.2, "uniform": 0.13, "binary": 0.13, "positive": 0.12, "shifted": 0.12, "correlated": 0.1,
    "scaled columns": 0.1, "low rank": 0.1,
}  # fmt: skip
STORAGES = {"plain": 0.8, "csr": 0.1, "float32": 0.08, "csr float32": 0.02}
SHAPES = {"plain": 0.55, "wide": 0.22, "tall": 0.23}
DEFECTS = {"-": 0.86, "zero columns": 0.05, "repeated columns": 0.05, "zero and repeated columns": 0.04}
NUMBERS = {"planted": 0.57, "noise": 0.32, "zero": 0.05, "large": 0.06}
LABELS = {"planted": 0.5, "noise": 0.3, "separable": 0.12, "unbalanced": 0.08}
STRENGTHS = {"zero": 0.03, "log-uniform": 0.87, "just above": 0.1}


def _pick(rng: np.random.Generator, shares: dict[str, float]) -> str:
    names, p = list(shares), np.array(list(shares.values()))
    return names[rng.choice(len(names), p=p / p.sum())]


def random_problem(seed: int) -> Case:
    """The problem of a seed; the same one at every call."""
    rng = np.random.default_rng(seed)
    losses = LOSSES if seed < FIRST_OF_OTHERS else OTHER_LOSSES
    if seed >= FIRST_OF_MORE:
        losses = dict.fromkeys(random_losses.LOSSES, 1.0)
    tags = {"loss": _pick(rng, losses), "A": _pick(rng, OPERATORS)}
    choices = {"huber": DELTAS, "quantile": QUANTILES}.get(tags["loss"])
    if tags["loss"] in random_losses.LOSSES:
        choices = random_losses.LOSSES[tags["loss"]].deltas
    delta = 1.0 if choices is None else float(rng.choice(choices))
    tags["delta"] = "-" if choices is None else f"{delta:g}"
    n, d, sides = _sizes(rng, tags)
    X, given = _table(rng, n, d, tags)
    A, operator = (None, None) if tags["A"] == "none" else _operator(rng, tags["A"], d, sides)
    if tags["A"] == "identity" and rng.random() < 0.5:
        operator = None
    B, second = _second(rng, tags, A)
    b, target = _target(rng, X, tags, delta)
    weight = None
    tags["weights"] = "-"
    if rng.random() < 0.08:
        weight = rng.uniform(0.1, 3.0, n)
        tags["weights"] = "positive"
        if rng.random() < 0.4:
            weight[rng.random(n) < 0.3] = 0.0
            weight[rng.integers(n)] = 1.0
            tags["weights"] = "some zero"
    w = np.ones(n) if weight is None else weight * (n / weight.sum())
    case = Case(seed, tags, {}, {}, X, b, w, tags["loss"], delta, A, B, np.empty(0), Penalty(), Penalty())
    regularizers = {"omega": _omega(rng, case), "psi": _psi(rng, case)}
    c = _right_side(rng, case)
    own = {"huber": Huber(delta), "quantile": Quantile(delta)}
    loss = own.get(tags["loss"], tags["loss"])
    if loss in random_losses.LOSSES:
        loss = random_losses.for_package(loss, delta)
    case.kwargs = {"X": given, "target": target, "loss": loss, **regularizers, "A": operator, "B": second}
    case.kwargs |= {"c": c, "sample_weight": weight}
    tags["start"] = "-"
    if rng.random() < 0.06:
        tags["start"] = "x0"
        case.options["x0"] = rng.standard_normal(d) / _column_sizes(X) * 10 ** rng.uniform(-1, 1)
    tags["size"] = f"{n}x{d}" + ("" if A is None else f"/{A.shape[0]}")
    return case


def _sizes(rng: np.random.Generator, tags: dict[str, str]) -> tuple[int, int, tuple[int, int]]:
    tags["shape"] = _pick(rng, SHAPES)
    least = {"trend 1": 4, "trend 2": 5, "trend 3": 6, "wavelet": 8}.get(tags["A"], 2)
    if tags["shape"] == "tall":
        n, d = int(rng.integers(60, 121)), int(rng.integers(least, 13))
    elif tags["shape"] == "wide":
        n, d = int(rng.integers(5, 21)), int(rng.integers(30, 61))
    else:
        n, d = int(rng.integers(5, 121)), int(rng.integers(least, 41))
    sides = (1, d)
    if tags["A"].startswith("grid"):
        high = int(rng.integers(2, 8))
        sides = (high, max(2, round(d / high)))
        d = min(sides[0] * sides[1], 60)
        sides = (high, d // high)
        d = sides[0] * sides[1]
    return n, d, sides


def _column_sizes(X: np.ndarray) -> np.ndarray:
    sizes = np.sqrt(np.mean(X**2, axis=0))
    return np.where(sizes > 0, sizes, 1.0)


def _table(rng: np.random.Generator, n: int, d: int, tags: dict[str, str]) -> tuple[np.ndarray, Any]:
    """X in float64, and as it is given to the package."""
    kind = tags["X"] = _pick(rng, TABLES)
    X = rng.standard_normal((n, d))
    if kind == "uniform":
        X = rng.random((n, d))
    elif kind == "binary":
        X = (rng.random((n, d)) < rng.choice([0.1, 0.3, 0.5])).astype(float)
    elif kind == "positive":
        X = np.abs(X)
    elif kind == "shifted":
        offset = float(rng.choice([5.0, 100.0]))
        X += offset
        tags["X"] = f"shifted {offset:g}"
    elif kind == "correlated":
        X = np.sqrt(0.02) * X + np.sqrt(0.98) * rng.standard_normal((n, 1))
    elif kind == "scaled columns":
        X *= 10 ** rng.uniform(-3, 3, d)
    elif kind == "low rank":
        rank = int(rng.integers(1, max(2, min(n, d) // 2 + 1)))
        X = rng.standard_normal((n, rank)) @ rng.standard_normal((rank, d)) / np.sqrt(rank)
    tags["storage"] = _pick(rng, STORAGES)
    if tags["storage"].startswith("csr") and kind != "binary":
        X = X * (rng.random((n, d)) < rng.choice([0.1, 0.4]))
    tags["defect"] = _pick(rng, DEFECTS) if d >= 4 else "-"
    if "repeated" in tags["defect"]:
        for _ in range(int(rng.integers(1, 4))):
            j, k = rng.choice(d, 2, replace=False)
            X[:, k] = X[:, j] * rng.choice([1.0, 1.0, -1.0, 2.0])
    if "zero" in tags["defect"]:
        X[:, rng.choice(d, int(rng.integers(1, max(2, d // 4))), replace=False)] = 0.0
    if "float32" in tags["storage"]:
        X = X.astype(np.float32).astype(float)
    given: Any = X.astype(np.float32) if "float32" in tags["storage"] else X.copy()
    return X, scipy.sparse.csr_array(given) if "csr" in tags["storage"] else given


def _edges(rng: np.random.Generator, d: int, kind: str) -> list[tuple[int, int]]:
    if kind == "tree":
        return [(int(rng.integers(j)), j) for j in range(1, d)]
    every = [(i, j) for i in range(d) for j in range(i + 1, d)]
    count = min(len(every), max(1, int(d * rng.uniform(0.5, 2.0))))
    return [every[k] for k in rng.choice(len(every), count, replace=False)]


def _operator(rng: np.random.Generator, kind: str, d: int, sides: tuple[int, int]) -> tuple[np.ndarray, Any]:
    """A as a dense matrix of our own making, and as the package's builder gives it."""
    base, _, below = kind.partition(";")
    unit = np.eye(d)
    if base == "identity":
        A, operator = unit, identity(d)
    elif base == "chain":
        A, operator = np.diff(unit, axis=0), chain(d)
    elif base.startswith("trend"):
        order = int(base[-1])
        A, operator = np.diff(unit, order + 1, axis=0), trend(d, order)
    elif base == "wavelet":
        name = str(rng.choice(["haar", "db2"]))
        levels = pywt.dwt_max_level(d, name)
        steps = [np.concatenate(pywt.wavedec(e, name, mode="periodization", level=levels)) for e in unit]
        A, operator = np.column_stack(steps), wavelet(d, name)
    elif base == "grid":
        high, wide = sides
        A = np.vstack([np.kron(np.diff(np.eye(high), axis=0), np.eye(wide)),
                       np.kron(np.eye(high), np.diff(np.eye(wide), axis=0))])  # fmt: skip
        operator = grid(sides)
    elif base in ("graph", "tree", "signed graph", "weighted graph"):
        edges = _edges(rng, d, base)
        m = len(edges)
        weights, signs = np.ones(m), np.ones(m)
        if base == "weighted graph":
            weights = 10 ** rng.uniform(-2, 1, m)
            weights[rng.integers(m)] = 0.0
        if base == "signed graph" or (base == "weighted graph" and rng.random() < 0.5):
            signs = rng.choice([-1.0, 1.0], m)
        A = np.zeros((m, d))
        for e, (i, j) in enumerate(edges):
            A[e, i], A[e, j] = weights[e], -weights[e] * signs[e]
        given = {} if base in ("graph", "tree") else {"weights": weights, "signs": signs}
        operator = incidence(edges, n_features=d, **given)
    else:
        m = int(rng.integers(2, min(60, 2 * d) + 1))
        A = rng.standard_normal((m, d))
        if base == "low-rank dense":
            rank = int(rng.integers(1, max(2, min(m, d))))
            A = rng.standard_normal((m, rank)) @ rng.standard_normal((rank, d)) / np.sqrt(rank)
        elif base == "repeated rows":
            A = np.vstack([A, A[rng.integers(m, size=max(1, m // 3))]])[: max(m, 3)]
        elif base == "zero rows":
            A = np.vstack([A, np.zeros((2, d))])
            A[rng.integers(m)] = 0.0
            A = A[rng.permutation(A.shape[0])]
        operator = A.copy() if rng.random() < 0.5 else scipy.sparse.csr_array(A)
    if below == "I":
        A, operator = np.vstack([A, unit]), stack(operator, "identity")
    return A, operator


def _second(rng: np.random.Generator, tags: dict[str, str], A: np.ndarray | None) -> tuple[np.ndarray | None, Any]:
    """B as a matrix (None for −I), and as it is given."""
    tags["B"] = "-" if A is None else _pick(rng, SECONDS)
    if tags["B"] == "-":
        return None, None
    m = A.shape[0]
    if m < 2 and tags["B"] in ("tall", "singular"):
        tags["B"] = "scalar"
    if tags["B"] == "scalar":
        scalar = float(rng.choice([-1.0, 1.0]) * 10 ** rng.uniform(-1, 1))
        return scalar * np.eye(m), scalar
    if tags["B"] == "diagonal":
        diagonal = rng.choice([-1.0, 1.0], m) * 10 ** rng.uniform(-1, 1, m)
        return np.diag(diagonal), diagonal
    if tags["B"] == "square":
        B = np.eye(m) * rng.choice([-1.0, 1.0]) + 0.5 * rng.standard_normal((m, m)) / np.sqrt(m)
    elif tags["B"] == "tall":
        B = rng.standard_normal((m, int(rng.integers(max(1, m // 2), m))))
    elif tags["B"] == "wide":
        B = rng.standard_normal((m, int(rng.integers(m + 1, 2 * m + 2))))
    else:
        B = -np.eye(m)
        j, k = rng.choice(m, 2, replace=False)
        B[:, k] = B[:, j]
    return B, B.copy()


def _structured(rng: np.random.Generator, d: int) -> np.ndarray:
    """Piecewise constant coefficients, many of them zero."""
    pieces = int(rng.integers(1, max(2, min(6, d))))
    cuts = np.sort(rng.choice(np.arange(1, d), min(pieces, d - 1), replace=False))
    levels = rng.standard_normal(cuts.size + 1) * (rng.random(cuts.size + 1) < 0.6)
    levels[rng.integers(levels.size)] += 1.0
    return np.repeat(levels, np.diff(np.concatenate([[0], cuts, [d]])))


def _target(rng: np.random.Generator, X: np.ndarray, tags: dict[str, str], delta: float) -> tuple[np.ndarray, Any]:
    """The target as the oracle takes it, and as it is given."""
    n, d = X.shape
    margin = X @ (_structured(rng, d) / _column_sizes(X))
    spread = margin.std() or 1.0
    if tags["loss"] in ("poisson", "gamma", "binomial", "tweedie", "negative-binomial"):
        tags["target"] = _pick(rng, {"planted": 0.6, "noise": 0.3, "large": 0.1})
        mean = np.exp(np.clip(margin / spread, -3.0, 3.0)) if tags["target"] != "noise" else np.ones(n)
        mean *= 1e3 if tags["target"] == "large" else 1.0
        if tags["loss"] in random_losses.LOSSES:
            b = random_losses.targets(tags["loss"], rng, mean, delta)
        else:
            b = rng.poisson(mean).astype(float) if tags["loss"] == "poisson" else mean * rng.gamma(2.0, 0.5, n) + 1e-3
        if not b.any():
            b[int(rng.integers(n))] = 1.0
        return b, b.copy()
    if tags["loss"] in ("squared", "huber", "quantile", "absolute", "smoothed-quantile"):
        kind = tags["target"] = _pick(rng, NUMBERS)
        scale = float(10 ** rng.uniform(-1, 1)) if rng.random() < 0.2 else 1.0
        if kind in ("planted", "large"):
            scale *= 1e3 if kind == "large" else 1.0
            b = scale * (margin + spread * float(rng.choice([0.0, 0.1, 0.5])) * rng.standard_normal(n))
        else:
            b = scale * rng.standard_normal(n) if kind == "noise" else np.zeros(n)
        return b, b.copy()
    kind = tags["target"] = _pick(rng, LABELS)
    margin = margin - np.median(margin) if rng.random() < 0.7 else margin
    if kind == "noise":
        b = rng.choice([-1.0, 1.0], n)
    elif kind == "unbalanced":
        b = np.where(rng.random(n) < 0.1, 1.0, -1.0)
    else:
        noise = 0.0 if kind == "separable" else spread * rng.choice([0.3, 1.0])
        b = np.where(margin + noise * rng.standard_normal(n) > 0, 1.0, -1.0)
    if np.all(b == b[0]):
        b[int(rng.integers(n))] *= -1.0
    return b, ((b + 1) / 2).astype(int) if rng.random() < 0.3 else b.copy()


def _groups(rng: np.random.Generator, size: int) -> tuple[list[np.ndarray], Any]:
    """Groups as lists of indices, and as they are given: so, or as labels."""
    labels = rng.integers(max(1, round(size / 3)), size=size)
    if rng.random() < 0.25 and size > 2:
        labels[rng.random(size) < 0.2] = -1
    if np.all(labels < 0):
        labels[0] = 0
    groups = [np.flatnonzero(labels == g) for g in np.unique(labels[labels >= 0])]
    return groups, groups if rng.random() < 0.5 else labels


def _curvature_scale(case: Case, A: np.ndarray | None) -> float:
    """A ridge of this strength is about as strong as the data."""
    size = 1.0 if A is None else max(np.mean(np.sum(A**2, axis=0)), 1e-12)
    return float(np.mean(case.X**2) / size) or 1.0


def _omega(rng: np.random.Generator, case: Case) -> Any:
    d = case.X.shape[1]
    shares = OMEGAS if case.A is not None else OMEGAS | {"none": 0.1}
    kind = case.tags["omega"] = _pick(rng, shares)
    if kind == "none":
        return None
    ridge = _curvature_scale(case, None) * 10 ** rng.uniform(-6, 0.5)
    slope = (np.abs(case.gradient(np.zeros(d))).max() or 0.1) * 10 ** rng.uniform(-4, 0.2)
    if kind == "squared-l2":
        case.omega = Penalty(kind, ridge)
        return SquaredL2(ridge)
    if kind == "l1":
        case.omega = Penalty(kind, slope)
        return L1(slope)
    if kind == "elastic-net":
        ratio = float(rng.choice([0.1, 0.5, 0.9]))
        case.omega = Penalty(kind, slope, ratio=ratio)
        return ElasticNet(slope, ratio)
    if kind == "non-negative":
        case.omega = Penalty(kind, lower=0.0)
        return NonNegative()
    reach = 10 ** rng.uniform(-1.5, 0.5) / _column_sizes(case.X)
    lower, upper = -reach * rng.random(d), reach * rng.random(d)
    form = case.tags["box"] = str(rng.choice(["around zero", "open", "off zero", "some fixed", "numbers"]))
    if form == "open":
        lower[rng.random(d) < 0.4], upper[rng.random(d) < 0.4] = -np.inf, np.inf
    elif form == "off zero" and case.invertible:
        lower = 0.3 * upper
    elif form == "some fixed":
        fixed = rng.random(d) < 0.3
        lower[fixed] = upper[fixed] = 0.0
    elif form == "numbers":
        low, high = -float(np.median(reach)), float(np.median(reach))
        case.omega = Penalty(kind, lower=low, upper=high)
        return Box(low, high)
    case.omega = Penalty(kind, lower=lower, upper=upper)
    return Box(lower.copy(), upper.copy())


def _psi(rng: np.random.Generator, case: Case) -> Any:
    if case.A is None:
        case.tags["psi"] = case.tags["strength"] = "-"
        return None
    kind = case.tags["psi"] = _pick(rng, PSIS)
    size = case.A.shape[0] if case.B is None else case.B.shape[1]
    weights, groups, given, ratio = None, None, None, 1.0
    if kind == "weighted-l1" or (kind == "elastic-net" and rng.random() < 0.2):
        weights = rng.uniform(0.2, 2.0, size)
        weights[rng.random(size) < 0.2] = 0.0
        weights[rng.integers(size)] = 1.0
    if kind == "elastic-net":
        ratio = float(rng.choice([0.0, 0.1, 0.5, 0.9, 1.0], p=[0.1, 0.25, 0.3, 0.25, 0.1]))
    if kind in ("group-l2", "group-linf"):
        groups, given = _groups(rng, size)
        if rng.random() < 0.4:
            weights = np.sqrt([float(group.size) for group in groups])
    penalty = Penalty(kind.removeprefix("weighted-"), 1.0, weights, groups, ratio)
    strength = _strength(rng, case, penalty)
    case.psi = penalty._replace(strength=strength)
    builders: dict[str, Callable[[], Any]] = {
        "l1": lambda: L1(strength),
        "weighted-l1": lambda: L1(strength, weights),
        "elastic-net": lambda: ElasticNet(strength, ratio, weights),
        "group-l2": lambda: GroupL2(strength, given, weights),
        "group-linf": lambda: GroupLInf(strength, given, weights),
        "l2": lambda: L2(strength),
        "linf": lambda: LInf(strength),
        "squared-l2": lambda: SquaredL2(strength),
    }
    return builders[kind]()


def _strength(rng: np.random.Generator, case: Case, penalty: Penalty) -> float:
    how = _pick(rng, STRENGTHS)
    exponent, beyond = rng.uniform(-6, np.log10(3.0)), 1 + 10 ** rng.uniform(-4, -1)
    if how == "zero":
        case.tags["strength"] = how
        return 0.0
    if penalty.kind == "squared-l2" or (penalty.kind == "elastic-net" and penalty.ratio == 0):
        scale = _curvature_scale(case, case.A)
        how = "log-uniform"
    else:
        scale, least = _critical(case, penalty)
        if how == "just above" and least is not None:
            case.tags["strength"] = how
            return least * beyond
    share = 10**exponent
    case.tags["strength"] = "tiny" if share < 1e-3 else "weak" if share < 0.1 else "strong" if share < 1 else "above"
    return scale * share


def _critical(case: Case, penalty: Penalty) -> tuple[float, float | None]:
    """A strength that about zeroes y, and the least that does (None where that makes no sense)."""
    A = case.A if case.B is None or not case.invertible else np.linalg.solve(case.B, case.A)
    if not case.invertible:
        A, penalty = case.A, Penalty("l1", 1.0)
    seen = penalty.seen(A.shape[0])
    basis = scipy.linalg.null_space(A[seen]) if seen.any() else np.eye(A.shape[1])
    x = np.zeros(A.shape[1])
    if basis.size:
        with np.errstate(all="ignore"):  # a trial step of the line search may overflow
            answer = scipy.optimize.minimize(
                lambda t: case.loss_value(basis @ t), np.zeros(basis.shape[1]), method="L-BFGS-B",
                jac=lambda t: basis.T @ case.gradient(basis @ t),
                options={"maxiter": 2000, "gtol": 1e-10, "ftol": 1e-15},
            )  # fmt: skip
        x = basis @ answer.x
    gradient, first = case.gradient(x), case.gradient(np.zeros(A.shape[1]))
    # Where x with y = 0 fit as well as any, every strength zeroes y: then the gradient at zero gives a scale.
    fitted = np.linalg.norm(gradient) <= 1e-6 * np.linalg.norm(first)
    beta = np.zeros(A.shape[0])
    beta[seen] = np.linalg.lstsq(A[seen].T, -(first if fitted else gradient), rcond=1e-10)[0]
    scale = float(penalty.dual_norm(beta, _NumPyNorms())) or 0.1
    if case.B is not None or fitted:
        return scale, None
    off = np.linalg.norm(A[seen].T @ beta[seen] + gradient)
    if off > 1e-6 * np.linalg.norm(first):
        return scale, None  # the loss has no minimiser among x with y = 0
    variable = cp.Variable(A.shape[0])
    constraints = [A.T @ variable == -gradient] + ([variable[~seen] == 0] if not seen.all() else [])
    model = cp.Problem(cp.Minimize(penalty.dual_norm(variable, _ModelNorms()) / scale), constraints)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.solve(solver=cp.CLARABEL)
    except cp.SolverError:
        return scale, None
    found = model.status in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE) and model.value > 0
    return scale, float(model.value * scale) if found else None


def _right_side(rng: np.random.Generator, case: Case) -> np.ndarray | None:
    """c, always one for which Ax + By = c can be met within Ω's set."""
    if case.A is None:
        case.tags["c"] = "-"
        return None
    m, d = case.A.shape
    case.c = np.zeros(m)
    case.tags["c"] = "-"
    if rng.random() < 0.9:
        return None
    case.tags["c"] = "given"
    x = np.clip(_structured(rng, d) / _column_sizes(case.X), case.omega.lower, case.omega.upper)
    y = rng.standard_normal(m if case.B is None else case.B.shape[1]) * float(rng.choice([0.0, 0.1, 1.0]))
    case.c = case.A @ x + (-y if case.B is None else case.B @ y)
    return case.c.copy()


# -- the oracle -------------------------------------------------------------------------------------------------------


class Optimum(NamedTuple):
    """What the oracle found. ``attained`` is None where it does not know."""

    attained: bool | None
    value: float
    x: np.ndarray | None
    y: np.ndarray | None
    note: str


def oracle(case: Case) -> Optimum:
    """The minimum by CVXPY; the value is that of a feasible point, evaluated in NumPy, so never below the minimum."""
    if case._optimum is None:
        case._optimum = _oracle(case)
    return case._optimum


def _oracle(case: Case) -> Optimum:
    attained = _attained(case)
    if not attained:
        note = "there is no minimiser" if attained is False else "whether there is a minimiser is undecided"
        return Optimum(attained, np.nan, None, None, note)
    best, notes, proved = _nothing(case), [], False
    for solver, options in SOLVERS:
        try:
            value, x, y, sure = _minimised(case, solver, options)
        except (cp.SolverError, np.linalg.LinAlgError, ValueError, ArithmeticError) as error:
            notes.append(f"{solver}: {str(error).splitlines()[0] if str(error) else type(error).__name__}")
            continue
        if value < best[0]:
            best = value, x, y
        proved |= sure
        notes.append(f"{solver}: {value:.10g}{'' if sure else ' (inaccurate)'}")
        if proved:
            break
    if not proved:
        return Optimum(None, best[0], best[1], best[2], "; ".join(notes))
    return Optimum(True, *best, "; ".join(notes))


def _nothing(case: Case) -> tuple[float, np.ndarray | None, np.ndarray | None]:
    """Value, x and y at zero: the solution of many a problem, which a solver meets only to its tolerance."""
    x = np.clip(np.zeros(case.X.shape[1]), case.omega.lower, case.omega.upper)
    if case.invertible:
        return case.objective(x), x, None
    y = np.zeros(case.B.shape[1])
    return (case.objective(x, y), x, y) if case.infeasibility(x, y) == 0 else (np.inf, None, None)


SOLVERS = [
    (cp.CLARABEL, {"tol_gap_abs": 1e-11, "tol_gap_rel": 1e-11, "tol_feas": 1e-11, "max_iter": 200}),
    (cp.CLARABEL, {"tol_gap_abs": 1e-9, "tol_gap_rel": 1e-9, "tol_feas": 1e-9, "max_iter": 200}),
    (cp.CLARABEL, {}),
    (cp.SCS, {"eps_abs": 1e-9, "eps_rel": 1e-9, "max_iters": 50_000, "time_limit_secs": 10.0}),
]


def _minimised(case: Case, solver: str, options: dict[str, Any]) -> tuple[float, np.ndarray, Any, bool]:
    """Value, x and y of one solver, and whether it is sure of them."""
    n, d = case.X.shape
    units = 1 / _column_sizes(case.X)
    u = cp.Variable(d)
    x = cp.multiply(units, u)
    use = case.w > 0
    total = loss_model(case.loss, case.delta, (case.X[use] * units) @ u, case.b[use], case.w[use] / n)
    omega, constraints = case.omega.model(x)
    y = None
    psi = 0.0
    if case.A is not None:
        A = case.A * units
        if not case.invertible:
            y = cp.Variable(case.B.shape[1])
            constraints.append(A @ u + case.B @ y == case.c)
            psi = case.psi.model(y)[0]
        elif case.B is None:
            psi = case.psi.model(A @ u - case.c)[0]
        else:
            psi = case.psi.model(np.linalg.solve(case.B, case.c) - np.linalg.solve(case.B, A) @ u)[0]
    size = case.objective_at_zero or 1.0
    model = cp.Problem(cp.Minimize((total + omega + psi) / size), constraints)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.solve(solver=solver, **options)
    if model.status not in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE) or u.value is None:
        raise cp.SolverError(f"status {model.status}")
    x_found = np.clip(units * u.value, case.omega.lower, case.omega.upper)
    y_found = None
    if y is not None:
        # The nearest point that meets the constraint.
        both = np.hstack([case.A, case.B])
        shift = np.linalg.lstsq(both, both @ np.concatenate([x_found, y.value]) - case.c, rcond=1e-12)[0]
        x_found, y_found = np.clip(x_found - shift[:d], case.omega.lower, case.omega.upper), y.value - shift[d:]
    value = case.objective(x_found, y_found)
    agree = abs(value - model.value * size) <= 1e-6 * max(abs(value), FLOOR * size)
    return value, x_found, y_found, bool(agree and model.status == cp.OPTIMAL)


def _attained(case: Case) -> bool | None:
    """Is there a minimiser? None where a linear programme leaves it open.

    Most losses are bounded below by functions that grow, or are piecewise quadratic. The logistic one can fall for ever
    along u with bᵢ aᵢ·u ≥ 0 for every sample, not all zero, where neither ψ nor Ω grows; Poisson's where aᵢ·u ≤ 0 if
    bᵢ = 0 and aᵢ·u = 0 otherwise.
    """
    flat = random_losses.LOSSES[case.loss].flat(case.b) if case.loss in random_losses.LOSSES else None
    if case.loss not in ("logistic", "poisson") and (flat is None or not flat.any()):
        return True
    d = case.X.shape[1]
    units = 1 / _column_sizes(case.X)
    signed = case.b[:, None] * case.X * units
    agreement = signed[case.w > 0]
    if case.loss != "logistic":
        flat = np.where(case.b == 0, -1, 0) if flat is None else flat
        some, full = (flat != 0) & (case.w > 0), (flat == 0) & (case.w > 0)
        rows = case.X * units
        agreement = np.vstack([flat[some, None] * rows[some], rows[full], -rows[full]])
    agreement = agreement[np.abs(agreement).max(axis=1) > 0]
    if agreement.shape[0] == 0:
        return True
    agreement /= np.abs(agreement).max(axis=1, keepdims=True)
    lower, upper = np.full(d, -1.0), np.ones(d)
    lower[np.isfinite(np.broadcast_to(case.omega.lower, d))] = 0.0
    upper[np.isfinite(np.broadcast_to(case.omega.upper, d))] = 0.0
    held = case.omega.seen(d)
    lower[held] = upper[held] = 0.0
    equalities = np.zeros((0, d))
    if case.A is not None:
        B = -np.eye(case.A.shape[0]) if case.B is None else case.B
        A, B = case.A * units, B[:, ~case.psi.seen(B.shape[1])]
        # Rows orthogonal to what ψ lets go are what u must meet.
        outside = scipy.linalg.null_space(B.T) if B.shape[1] else np.eye(A.shape[0])
        equalities = outside.T @ A
        if equalities.size:
            _, sizes, V = np.linalg.svd(equalities)
            equalities = V[: sizes.size][sizes > 1e-10 * max(sizes.max(), 1e-300)]
    answer = scipy.optimize.linprog(
        -agreement.sum(axis=0), A_ub=-agreement, b_ub=np.zeros(agreement.shape[0]),
        A_eq=equalities if equalities.shape[0] else None,
        b_eq=np.zeros(equalities.shape[0]) if equalities.shape[0] else None,
        bounds=np.column_stack([lower, upper]), method="highs",
    )  # fmt: skip
    if answer.status != 0:
        return None
    if -answer.fun <= 1e-9:
        return True
    # A direction was found: it must be one beyond the tolerances of the programme.
    clear = -answer.fun > 1e-4 and (agreement @ answer.x).min() > -1e-8
    return False if clear else None


# -- the verdict ------------------------------------------------------------------------------------------------------


class Verdict(NamedTuple):
    """What became of a run."""

    kind: str
    """One of ``CLASSES``."""
    objective: float = np.nan
    """Ours, at the x of the result."""
    optimum: float = np.nan
    worse_than_trace: bool = False
    """An iterate on the way was better than what was returned."""
    misreported: bool = False
    """The result's own objective is not that of its x."""
    note: str = ""


def judge(case: Case, result: Any, error: BaseException | None = None) -> Verdict:
    """The verdict on a result, or on the exception that came in its place."""
    if error is not None:
        first = (str(error).splitlines() or [""])[0]
        return Verdict("crash", note=f"{type(error).__name__}: {first}")
    best = oracle(case)
    objective = case.objective(result.x, result.y)
    floor = case.scale
    misreported = objective != result.objective
    if np.isfinite(objective):
        misreported = bool(not abs(objective - result.objective) <= 1e-6 * max(abs(objective), floor))
    about = {
        "objective": objective, "optimum": best.value, "worse_than_trace": _worse_than_trace(case, result),
        "misreported": misreported,
    }  # fmt: skip
    solved = result.status is Status.SOLVED
    if result.status is Status.NO_MINIMISER or best.attained is False:
        if result.status is not Status.NO_MINIMISER:
            kind = "no minimiser, not said"
        else:
            kind = {True: "unbounded called wrongly", False: "no minimiser", None: "oracle unknown"}[best.attained]
        return Verdict(kind, **about)
    scale = max(abs(best.value), floor)
    distance = (objective - best.value) / scale
    if np.isnan(distance):
        distance = np.inf
    infeasibility = case.infeasibility(result.x, result.y)
    astray = not np.isfinite(objective) or infeasibility > LOOSE
    by_gap = solved and result.stopped_on == "gap" and case.invertible
    # The oracle's value is that of a feasible point, whether or not it is the least: below it by more than the gap
    # proves the certificate wrong.
    rounding = 1e-10 * max(scale, case.objective_at_zero)
    known = not np.isnan(best.value)  # it is not where the oracle cannot decide whether there is a minimiser
    if by_gap and known and not objective - best.value <= result.gap * abs(objective) + rounding:
        return Verdict("false certificate", **about, note=f"off by {distance:.1e}")
    if best.attained is None or distance < -CLOSE:
        # Better than the oracle at a feasible point: that is the oracle's failure.
        x, y = case.feasible_near(result.x, result.y)
        exact = case.infeasibility(x, y) <= 1e-12 and (case.objective(x, y) - best.value) / scale < -CLOSE
        if best.attained is None or case.invertible or exact:
            return Verdict("oracle unknown", **about, note=best.note)
        # Elsewhere Ax + By = c holds to the tolerance only, so the objective may be on either side of the optimum.
        astray = astray or not solved or distance < -LOOSE
    if solved:
        if astray or distance > LOOSE:
            note = f"off by {distance:.1e}, infeasible by {infeasibility:.1e}"
            return Verdict("false certificate", **about, note=note)
        return Verdict("solved" if abs(distance) <= CLOSE else "solved loosely", **about)
    right = distance <= CLOSE and not astray
    note = f"infeasible by {infeasibility:.1e}" if infeasibility > LOOSE else ""
    return Verdict("right x, not solved" if right else "wrong x", **about, note=note)


def _worse_than_trace(case: Case, result: Any) -> bool:
    """The objective of a row is that at (x, y(x)), a feasible point, whatever the row's feasibility says of y. Where
    the run stopped on the KKT residual, only rows count whose residual was no larger."""
    if not case.invertible:
        return False
    trace = result.trace
    if result.stopped_on == "kkt":
        trace = trace[trace["kkt"] <= result.kkt.relative]
    seen = np.asarray(trace["objective"], dtype=float)
    seen = seen[np.isfinite(seen)]
    if seen.size == 0:
        return False
    allowed = 1e-9 * max(abs(result.objective), 1e-3 * case.scale)
    return bool(not result.objective - seen.min() <= allowed)


# -- the program ------------------------------------------------------------------------------------------------------


class Outcome(NamedTuple):
    """A verdict and what is told about it."""

    seed: int
    tags: dict[str, str]
    text: str
    verdict: Verdict
    status: str
    gap: float
    kkt: float
    passes: float
    seconds: float
    """Of ``solve``, compilation included."""
    warned: str


class HungError(RuntimeError):
    """A run did not come back in time."""


@contextlib.contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    def ring(*_: Any) -> None:
        raise HungError(f"no answer in {seconds:g} s")

    if not hasattr(signal, "SIGALRM") or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(int(np.ceil(seconds)))
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def attempt(seed: int, tol: float = 1e-6, limit: float = 60.0, **options: Any) -> Outcome:
    """Draw, solve, judge."""
    case = random_problem(seed)
    result, failure = None, None
    began = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            with _alarm(max(600.0, 10 * limit)):
                result = solve(case.problem(), tol=tol, time_limit=limit, **case.options, **options)
        except Exception as error:
            failure = error
    spent = time.perf_counter() - began
    verdict = judge(case, result, failure)
    status = "exception" if result is None else str(result.status)
    if status == "solved":
        status += f" by {result.stopped_on}"
    gap, kkt, passes = (np.nan,) * 3 if result is None else (result.gap, result.kkt.relative, result.passes)
    warned = f"{caught[0].category.__name__}: {str(caught[0].message).splitlines()[0]}" if caught else ""
    return Outcome(seed, case.tags, str(case), verdict, status, gap, kkt, passes, spent, warned)


def line(outcome: Outcome) -> str:
    verdict = outcome.verdict
    flags = [name for name in ("worse_than_trace", "misreported") if getattr(verdict, name)]
    parts = [
        f"{outcome.seed:6d} {verdict.kind.upper()}" + "".join(f" +{flag.replace('_', ' ')}" for flag in flags),
        outcome.text,
        f"status={outcome.status} gap={outcome.gap:.1e} kkt={outcome.kkt:.1e} passes={outcome.passes:.0f}",
        f"objective={verdict.objective:.10g} oracle={verdict.optimum:.10g} "
        f"excess={verdict.objective - verdict.optimum:.1e} {outcome.seconds:.2f}s",
    ]
    return " | ".join(parts + [text for text in (verdict.note, outcome.warned) if text])


FINE = ("solved", "no minimiser")


def summary(outcomes: list[Outcome]) -> str:
    """Counts and shares."""
    count = max(1, len(outcomes))
    kinds = collections.Counter(outcome.verdict.kind for outcome in outcomes)
    lines = [f"{len(outcomes)} problems, {sum(outcome.seconds for outcome in outcomes):.0f} s in solve", ""]
    lines += [f"{kind:28s}{kinds[kind]:6d}{kinds[kind] / count:9.1%}" for kind in CLASSES]
    for flag in ("worse_than_trace", "misreported"):
        many = sum(getattr(outcome.verdict, flag) for outcome in outcomes)
        lines.append(f"{'+' + flag.replace('_', ' '):28s}{many:6d}{many / count:9.1%}")
    warned = sum(bool(outcome.warned) for outcome in outcomes)
    lines.append(f"{'+warned':28s}{warned:6d}{warned / count:9.1%}")
    statuses = collections.Counter(outcome.status for outcome in outcomes)
    lines += ["", "statuses: " + ", ".join(f"{status} {many}" for status, many in statuses.most_common())]
    judged = [outcome for outcome in outcomes if outcome.verdict.kind != "oracle unknown"]
    lines += ["", "not solved (of the cases with a known answer):"]
    factors = ("loss", "delta", "A", "B", "c", "psi", "strength", "omega", "X", "storage", "shape", "defect", "target",
               "weights", "start")  # fmt: skip
    for factor in factors:
        lines.append(f"  {factor}")
        for choice in sorted({outcome.tags[factor] for outcome in outcomes}):
            some = [outcome for outcome in judged if outcome.tags[factor] == choice]
            bad = sum(outcome.verdict.kind not in FINE for outcome in some)
            lines.append(f"    {choice:26s}{bad:5d} of {len(some):4d}{bad / max(1, len(some)):8.0%}")
    return "\n".join(lines)


def _attempt(job: tuple[int, float, float, dict[str, Any]]) -> Outcome:
    seed, tol, limit, options = job
    return attempt(seed, tol, limit, **options)


def main() -> None:
    parser = argparse.ArgumentParser(description="Solve random problems and compare with CVXPY.")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seeds", type=int, nargs="+", help="these seeds only")
    parser.add_argument("--tol", type=float, default=1e-6)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for each problem")
    parser.add_argument("--passes", type=float, help="passes for each problem; the package's default if left out")
    parser.add_argument("--method", help="the package's default if left out")
    parser.add_argument("--all", action="store_true", help="a line for solved problems too")
    given = parser.parse_args()
    options = {name: getattr(given, name) for name in ("passes", "method") if getattr(given, name) is not None}
    seeds = given.seeds or range(given.first, given.first + given.count)
    jobs = [(seed, given.tol, given.limit, options) for seed in seeds]
    outcomes = []
    with contextlib.ExitStack() as held:
        if given.jobs > 1:
            pool = held.enter_context(multiprocessing.get_context("spawn").Pool(given.jobs))
            answers = pool.imap(_attempt, jobs)
        else:
            answers = map(_attempt, jobs)
        for outcome in answers:
            outcomes.append(outcome)
            verdict = outcome.verdict
            if given.all or verdict.kind not in FINE or verdict.worse_than_trace or verdict.misreported:
                print(line(outcome), flush=True)
    print("\n" + summary(outcomes), flush=True)


if __name__ == "__main__":
    main()

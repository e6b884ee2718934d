"""Losses of shares, totals, spread counts and smoothed quantiles for ``random_problems.py``: in NumPy and in CVXPY.

Nothing here imports skadmm but :func:`for_package`. `delta` is the one parameter that is drawn.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np
import scipy.special

WIDTH = 0.3
"""Of the smoothed quantile."""


class Scalar(NamedTuple):
    """A loss by its definition."""

    deltas: list[float] | None
    values: Callable[..., Any]
    """Of (delta, z, b)."""
    slopes: Callable[..., Any]
    model: Callable[..., Any]
    """Of (delta, z, b, w): Σ wᵢ ℓ(zᵢ, bᵢ) in CVXPY."""
    flat: Callable[..., Any]
    """Of b: −1 where ℓ falls towards its infimum as z → −∞ for ever, +1 as z → +∞, 0 where it has a minimiser."""


def _binomial(delta, z, b):
    return np.logaddexp(0.0, z) - b * z + scipy.special.xlogy(b, b) + scipy.special.xlogy(1 - b, 1 - b)


def _binomial_model(delta, z, b, w):
    rest = scipy.special.xlogy(b, b) + scipy.special.xlogy(1 - b, 1 - b)
    return w @ (cp.logistic(z) - cp.multiply(b, z)) + w @ rest


def _tweedie(p, z, b):
    return np.exp((2 - p) * z) / (2 - p) + b * np.exp((1 - p) * z) / (p - 1) - b ** (2 - p) / ((2 - p) * (p - 1))


def _tweedie_model(p, z, b, w):
    some = np.flatnonzero(b > 0)
    rest = w @ (b ** (2 - p)) / ((2 - p) * (p - 1))
    total = w @ cp.exp((2 - p) * z) / (2 - p) - rest
    if some.size:
        total += (w[some] * b[some]) @ cp.exp((1 - p) * z[some]) / (p - 1)
    return total


def _negative_binomial(k, z, b):
    """(b + 1/k) log((1 + k exp z)/(1 + k b)) − b(z − log b)."""
    return (b + 1 / k) * (np.logaddexp(0, z + np.log(k)) - np.log1p(k * b)) - b * z + scipy.special.xlogy(b, b)


def _negative_binomial_model(k, z, b, w):
    rest = scipy.special.xlogy(b, b) - (b + 1 / k) * np.log1p(k * b)
    return (w * (b + 1 / k)) @ cp.logistic(z + np.log(k)) - w @ cp.multiply(b, z) + w @ rest


def _smoothed_quantile(q, z, b):
    slope = np.clip((z - b) / WIDTH, -q, 1 - q)
    return slope * (z - b) - 0.5 * WIDTH * slope**2


def _smoothed_quantile_model(q, z, b, w):
    """The least of the quantile loss at u plus (u − z)²/(2·width) over u."""
    u = cp.Variable(b.size)
    return w @ (q * cp.pos(b - u) + (1 - q) * cp.pos(u - b)) + w @ cp.square(u - z) / (2 * WIDTH)


def _zero_counts(b):
    return np.where(b == 0, -1, 0)


LOSSES = {
    "binomial": Scalar(
        None, _binomial, lambda delta, z, b: scipy.special.expit(z) - b, _binomial_model,
        lambda b: np.where(b == 0, -1, np.where(b == 1, 1, 0)),
    ),
    "tweedie": Scalar(
        [1.1, 1.5, 1.8], _tweedie, lambda p, z, b: np.exp((2 - p) * z) - b * np.exp((1 - p) * z), _tweedie_model,
        _zero_counts,
    ),
    "negative-binomial": Scalar(
        [0.1, 1.0, 4.0], _negative_binomial,
        lambda k, z, b: (1 / k + b) * scipy.special.expit(z + np.log(k)) - b, _negative_binomial_model, _zero_counts,
    ),
    "smoothed-quantile": Scalar(
        [0.1, 0.5, 0.8], _smoothed_quantile, lambda q, z, b: np.clip((z - b) / WIDTH, -q, 1 - q),
        _smoothed_quantile_model, lambda b: np.zeros(b.size, int),
    ),
}  # fmt: skip


def for_package(name: str, delta: float) -> Any:
    """The loss as ``Problem`` takes it."""
    from skadmm.losses import Binomial, NegativeBinomial, SmoothedQuantile, Tweedie

    return {
        "binomial": Binomial,
        "tweedie": lambda: Tweedie(delta),
        "negative-binomial": lambda: NegativeBinomial(delta),
        "smoothed-quantile": lambda: SmoothedQuantile(delta, WIDTH),
    }[name]()


def targets(name: str, rng: np.random.Generator, mean: np.ndarray, delta: float) -> np.ndarray:
    """Outcomes with these means; those of the binomial are shares of a few trials at odds of the mean."""
    n = mean.size
    if name == "binomial":
        trials = int(rng.choice([1, 4]))
        return rng.binomial(trials, mean / (1 + mean)) / trials
    if name == "tweedie":
        return mean * rng.gamma(2.0, 0.5, n) * (rng.random(n) < 0.7)
    return rng.poisson(mean * rng.gamma(1 / delta, delta, n)).astype(float)

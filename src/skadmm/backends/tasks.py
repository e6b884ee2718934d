"""Tasks: functions of a block of samples and of small arguments, which can be sent to where the rows are.

Most return a mean over the block, so that the mean over all samples is the sum of their results times the block's share
of the samples. The classes here are results that are combined in another way.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from skadmm.kernels.expansion import add_rows
from skadmm.kernels.rows import DenseRows, multiply, norms_squared
from skadmm.kernels.samples import (
    Samples,
    at_one_margin,
    evaluate_margins,
    evaluate_samples,
    mean_curvature_at,
    mean_gradient,
    mean_loss,
)
from skadmm.losses.offset import split_offset

ENTRIES_IN_CACHE = 1 << 18
"""Up to this many stored entries, margins, losses and gradient are three kernels, none of which is compiled for both a
kind of rows and a loss. Of more entries each row is read once, by a kernel that is: reading them again would take
longer."""


class Max(float):
    """A result that is combined by the maximum, not by the sum."""


class Concat(list):
    """Results that are concatenated, not added up."""


class Lost:
    """The result of a task that found the memory it needs lost. A sum that includes it is Lost too."""


def loss(samples: Samples, x: np.ndarray) -> float:
    """(1/n) Σ ℓ_i(x)."""
    margins = np.empty(samples.target.size)
    multiply(samples.rows, x, margins)
    return mean_loss(samples, margins)


def gradient(samples: Samples, x: np.ndarray) -> np.ndarray:
    """The gradient of (1/n) Σ ℓ_i at x."""
    out = np.empty(x.size)
    mean_gradient(samples, x, out)
    return out


def loss_and_gradient(samples: Samples, x: np.ndarray) -> tuple[float, np.ndarray]:
    """(1/n) Σ ℓ_i(x) and its gradient, from one pass over the rows."""
    n = samples.target.size
    return evaluate(samples, x, n, np.empty(n), np.empty(n))


def evaluate(
    samples: Samples, x: np.ndarray, n: int, slopes: np.ndarray, margins: np.ndarray
) -> tuple[float, np.ndarray]:
    """The block's part of (1/n) Σ ℓ_i(x) and of its gradient. `slopes` and `margins` receive those of each sample."""
    out, size = np.zeros(x.size), slopes.size
    rows = getattr(samples.rows, "rows", samples.rows)
    stored = rows.values if isinstance(rows, DenseRows) else rows.data
    if isinstance(samples, Samples) and stored.size > ENTRIES_IN_CACHE:
        return float(evaluate_samples(samples, x, n, slopes, margins, out)) / n, out
    multiply(samples.rows, x, margins)
    total = evaluate_margins(samples, slice(size), margins, slopes, np.empty(size))
    add_rows(samples.rows, np.arange(size), slopes / n, out)
    return total / n, out


def gram_product(samples: Samples, v: np.ndarray) -> np.ndarray:
    """(1/n) Σ w_i a_i (a_i·v)."""
    margins, out = np.empty(samples.target.size), np.zeros(v.size)
    multiply(samples.rows, v, margins)
    if samples.weight.size:
        margins *= samples.weight
    add_rows(samples.rows, np.arange(margins.size), margins / margins.size, out)
    return out


def mean_square(samples: Samples, v: np.ndarray) -> float:
    """(1/n) Σ w_i (a_i·v)²."""
    margins = np.empty(samples.target.size)
    multiply(samples.rows, v, margins)
    weighted = margins * samples.weight if samples.weight.size else margins
    return float(margins @ weighted) / margins.size


def mean_norm(samples: Samples) -> float:
    """(1/n) Σ w_i ‖a_i‖²."""
    return float(weighted_norms(samples).mean())


def largest_norm(samples: Samples) -> float:
    """The largest w_i ‖a_i‖²."""
    return float(weighted_norms(samples).max())


def mean_curvature(samples: Samples, margin: float) -> float:
    """(1/n) Σ w_i ℓ''(margin, b_i)."""
    return mean_curvature_at(samples, margin)


@np.errstate(over="ignore", invalid="ignore")  # far from the best margin exponentials are infinite
def mean_slope(samples: Samples, margin: float) -> float:
    """(1/n) Σ w_i ℓ'(margin, b_i); samples without a weight do not count, even if theirs is infinite."""
    slopes, _ = at_one_margin(samples, margin)
    return float(_weighted(samples, slopes).sum()) / slopes.size


@np.errstate(over="ignore", invalid="ignore")
def scales_at_margin(samples: Samples, margin: float) -> tuple[float, float, float]:
    """(1/n) Σ w_i ℓ(margin, b_i), (1/n) Σ w_i ℓ''(margin, b_i), and (1/n) Σ (w_i ℓ'(margin, b_i))²."""
    slopes, curvatures = at_one_margin(samples, margin)
    loss = mean_loss(samples, np.full(slopes.size, margin))
    weighted = _weighted(samples, slopes)
    return loss, float(_weighted(samples, curvatures).mean()), float(weighted @ weighted) / slopes.size


def _weighted(samples: Samples, values: np.ndarray) -> np.ndarray:
    """The values times the weights of their samples, zero where the weight is zero."""
    weight = samples.weight
    return np.multiply(values, weight, out=np.zeros(values.size), where=weight > 0.0) if weight.size else values


def mean_target(samples: Samples) -> tuple[float, float]:
    """The weighted means of the targets and of their offsets."""
    _, target, offset = split_offset(samples.loss, samples.target)
    weights = samples.weight if samples.weight.size else np.ones(target.size)
    return float(weights @ target) / target.size, 0.0 if offset is None else float(weights @ offset) / target.size


def weighted_norms(samples: Samples) -> np.ndarray:
    """w_i ‖a_i‖² of each row."""
    norms = norms_squared(samples.rows)
    return norms * samples.weight if samples.weight.size else norms


def agreement(samples: Samples, direction: np.ndarray) -> tuple[float, float]:
    """The minimum and the maximum of b_i a_i·direction over the samples with a weight, and of zero."""
    margins = np.empty(samples.target.size)
    multiply(samples.rows, direction, margins)
    margins *= samples.target
    if samples.weight.size:
        margins = margins[samples.weight > 0]
    return float(margins.min(initial=0.0)), float(margins.max(initial=0.0))


def scaled(result: Any, share: float) -> Any:
    """A result, or each entry of a tuple of results, times a number."""
    if isinstance(result, tuple):
        return tuple(scaled(part, share) for part in result)
    return result if share == 1.0 else result * share


def added(results: list[Any]) -> Any:
    """Results, or tuples of them, added up in their order."""
    if any(isinstance(result, Lost) for result in results):
        return Lost()
    first = results[0]
    if isinstance(first, Max):
        return Max(max(results))
    if isinstance(first, Concat):
        return Concat(itertools.chain.from_iterable(results))
    if isinstance(first, tuple):
        return tuple(added([result[k] for result in results]) for k in range(len(first)))
    total = first
    for result in results[1:]:
        total = total + result
    return total

"""What is asked of a block of samples: each task gives a mean over the block, so that blocks add up by their shares.

A task is a plain function of the block's samples and a few small arguments, so that it can be sent to where rows live.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from skadmm.kernels import samples as kernels
from skadmm.kernels.rows import multiply, multiply_transposed, norms_squared
from skadmm.kernels.samples import Samples


class Max(float):
    """A number of which the largest counts, not the sum."""


class Concat(list):
    """Answers that are not added up but put one after the other."""


class Lost:
    """The answer of a worker that has lost its memory; a sum with it is missing too."""


def loss(samples: Samples, x: np.ndarray) -> float:
    """(1/n) Σ ℓ_i(x)."""
    return float(kernels.mean_loss(samples, x))


def gradient(samples: Samples, x: np.ndarray) -> np.ndarray:
    """Its gradient."""
    out = np.empty(x.size)
    kernels.mean_gradient(samples, x, out)
    return out


def loss_and_gradient(samples: Samples, x: np.ndarray) -> tuple[float, np.ndarray]:
    """Both, in one sweep over the rows."""
    out = np.empty(x.size)
    return float(kernels.mean_loss_and_gradient(samples, x, out)), out


def evaluate(
    samples: Samples, x: np.ndarray, n: int, slopes: np.ndarray, margins: np.ndarray
) -> tuple[float, np.ndarray]:
    """Σ ℓ_i(x) / n and its gradient, of these of n samples; and the slope and the margin of each, into their arrays."""
    out = np.empty(x.size)
    return float(kernels.evaluate_samples(samples, x, n, slopes, margins, out)) / n, out


def gram_product(samples: Samples, v: np.ndarray) -> np.ndarray:
    """(1/n) Σ w_i a_i (a_i·v)."""
    margins, out = np.empty(samples.target.size), np.empty(v.size)
    multiply(samples.rows, v, margins)
    if samples.weight.size:
        margins *= samples.weight
    multiply_transposed(samples.rows, margins / margins.size, out)
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


def weighted_norms(samples: Samples) -> np.ndarray:
    """w_i ‖a_i‖² of each row."""
    norms = np.empty(samples.target.size)
    norms_squared(samples.rows, norms)
    return norms * samples.weight if samples.weight.size else norms


def agreement(samples: Samples, direction: np.ndarray) -> tuple[float, float]:
    """The least and the largest b_i a_i·direction of the samples that count."""
    margins = np.empty(samples.target.size)
    multiply(samples.rows, direction, margins)
    margins *= samples.target
    if samples.weight.size:
        margins = margins[samples.weight > 0]
    return float(margins.min(initial=0.0)), float(margins.max(initial=0.0))


def scaled(answer: Any, share: float) -> Any:
    """An answer times a number."""
    if isinstance(answer, tuple):
        return tuple(scaled(part, share) for part in answer)
    return answer if share == 1.0 else answer * share


def added(answers: list[Any]) -> Any:
    """Answers, or tuples of them, added up in order."""
    if any(isinstance(answer, Lost) for answer in answers):
        return Lost()
    first = answers[0]
    if isinstance(first, Max):
        return Max(max(answers))
    if isinstance(first, Concat):
        return Concat(itertools.chain.from_iterable(answers))
    if isinstance(first, tuple):
        return tuple(added([answer[k] for answer in answers]) for k in range(len(first)))
    total = first
    for answer in answers[1:]:
        total = total + answer
    return total

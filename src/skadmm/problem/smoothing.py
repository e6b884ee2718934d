"""Losses with kinks by smooth ones: the method of multipliers on the margins.

With multipliers θᵢ of zᵢ = aᵢ·x and a width μ, the smooth problem has the Moreau envelope of ℓ at aᵢ·x + μθᵢ for its
loss. The slopes of the envelope at its solution are the next θ; where they do not change, x solves the problem itself.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from skadmm.kernels.samples import mean_loss
from skadmm.losses.envelope import Envelope
from skadmm.losses.offset import split_offset, with_offset
from skadmm.problem.problem import Problem


def smoothed(problem: Problem, width: float, theta: np.ndarray | None = None) -> Problem:
    """The smooth problem of μ = `width` and θ, zero unless given; the rows are shared."""
    local = problem.local
    loss, target, offset = split_offset(local.loss, local.target)
    smooth = Envelope(loss, width)
    if theta is None and offset is None:
        return problem.replace(backend=local.with_targets(smooth, target))
    shift = np.zeros(local.n) if theta is None else width * theta
    if offset is not None:
        shift = shift + offset
    return problem.replace(backend=local.with_targets(*with_offset(smooth, target, shift)))


def multipliers_of(problem: Problem, slopes: np.ndarray) -> np.ndarray:
    """θ of each sample from its slope, which has the weight of the sample in it."""
    weight = problem.sample_weight
    if not weight.size:
        return slopes.copy()
    return np.divide(slopes, weight, out=np.zeros(slopes.size), where=weight > 0.0)


def complementarity(problem: Problem, loss: float, slopes: np.ndarray, margins: np.ndarray) -> float:
    """(1/n) Σ wᵢ (ℓ(zᵢ) + ℓ*(θᵢ) − θᵢzᵢ), `loss` the mean of the first term: zero where every θᵢ is a subgradient at
    its margin."""
    conjugate = problem.backend.mean_conjugate(slopes, 1.0)
    return abs(loss + conjugate - float(slopes @ margins) / problem.n_samples)


def minimise_by_smoothing(
    problem: Problem,
    minimise: Callable[[Problem, np.ndarray], np.ndarray],
    *,
    width_factor: float = 0.5,
    max_rounds: int = 80,
    accuracy: float = 1e-12,
) -> tuple[np.ndarray, np.ndarray]:
    """A minimiser, and (1/n) Xᵀθ for subgradients θ at it that prove it one.

    `minimise` takes a smooth problem and a point to start from, and returns a minimiser over some set of points.
    """
    x, theta = np.zeros(problem.n_features), np.zeros(problem.n_samples)
    scale = problem.loss_at_zero or 1.0
    width, gradient = scale, np.zeros(problem.n_features)
    for _ in range(max_rounds):
        smooth = smoothed(problem, width, theta)
        x = minimise(smooth, x)
        evaluation = smooth.backend.evaluate(x)
        margins, gradient = np.asarray(evaluation.margins), evaluation.gradient
        theta = multipliers_of(problem, evaluation.slopes)
        loss = mean_loss(problem.samples(), margins)
        if complementarity(problem, loss, evaluation.slopes, margins) <= accuracy * max(loss, accuracy * scale):
            break
        width *= width_factor
    return x, gradient

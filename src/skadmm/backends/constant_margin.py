"""The loss at the best constant margin: a scale of the loss that does not depend on where margins have their origin.

The loss at x = 0 is no such scale: under a logarithmic link it is exponentially large where targets have large units or
margins a large known offset, although an intercept makes up for both.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from skadmm.backends import tasks
from skadmm.losses.offset import has_offset

PRECISION = 0.125
"""The best margin is found to within this distance."""
WIDEST = 1e18
"""It is searched within this distance of where the search begins."""


class Averaging(Protocol):
    """What is asked of a backend."""

    @property
    def loss(self) -> Any:
        """The loss of the samples."""

    def mean(self, task: Callable[..., Any], *arguments: Any) -> Any:
        """The weighted mean of a task's results over all samples."""


class ConstantScale(NamedTuple):
    """What the samples have near the best constant margin z."""

    margin: float
    """z, nearly."""
    loss: float
    """The larger of the absolute mean loss and of half the mean curvature, which is what a change of z by one costs:
    the loss itself may vanish there."""
    slope: float
    """The larger of the root mean square of the slopes and of the mean curvature."""


def constant_scale(backend: Averaging) -> ConstantScale | None:
    """The scale at the best constant margin; None where the loss has kinks or several margins per sample, or
    decreases without end.

    A loss of z − b has none either: targets far from zero are centred where there is an intercept, and elsewhere its
    loss at zero is what rounding is relative to.
    """
    plain = backend.loss.loss if has_offset(backend.loss) else backend.loss
    if plain.coupled or plain.residual or not plain.smooth:
        return None
    margin = _best(backend, _first(backend, plain))
    if margin is None:
        return None
    loss, curvature, square = backend.mean(tasks.scales_at_margin, margin)
    found = ConstantScale(margin, max(abs(loss), 0.5 * curvature), max(math.sqrt(square), curvature))
    return found if 0.0 < found.loss < math.inf and 0.0 < found.slope < math.inf else None


def _first(backend: Averaging, plain: Any) -> float:
    """A margin close to the best one: that of the mean target, less the mean offset."""
    if plain.link is None or plain.labels:
        return 0.0
    mean, offset = backend.mean(tasks.mean_target)
    margin = float(plain.link(np.asarray(mean))) - offset
    return margin if math.isfinite(margin) else 0.0


def _best(backend: Averaging, first: float) -> float | None:
    """The zero of the mean slope, by bisection; None where there is none."""

    def is_beyond(margin: float) -> bool:
        return not float(backend.mean(tasks.mean_slope, margin)) < 0.0

    falls, width = is_beyond(first), 0.5
    near = far = first
    while is_beyond(far) == falls:
        near, far = far, first + (-width if falls else width)
        width *= 2.0
        if width > WIDEST:
            return None
    low, high = min(near, far), max(near, far)
    while high - low > max(PRECISION, 1e-12 * abs(high)):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if is_beyond(middle) else (middle, high)
    return 0.5 * (low + high)

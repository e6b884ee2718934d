"""What a loss is: four scalar functions of a margin z = a·x and a target b, and a few facts about them.

A loss is a ``NamedTuple`` of its parameters with the facts ``name`` and ``labels`` (True when the target is a class,
coded −1/+1), and two more where they hold: ``attained=False`` (its infimum may lie at infinity) and ``gaussian=True``
(it is that of a normal distribution of unknown variance). It has a property ``curvature_bound`` (an upper bound of ℓ'')
and, where it has parameters, a method ``prepared`` that checks them. Its file calls :func:`define`; one line in
``losses/__init__.py`` makes it known by name.
"""

import math
import sys
from collections.abc import Callable
from typing import Any, ClassVar, Protocol

from skadmm.kernels import loss_functions
from skadmm.kernels.compile import attach


class Loss(Protocol):
    """The face of every loss."""

    name: ClassVar[str]
    labels: ClassVar[bool]
    attained: ClassVar[bool]

    @property
    def curvature_bound(self) -> float:
        """The smallest known bound of ℓ''(z) over all z."""
        ...


def define(
    cls: type,
    *,
    value: Callable[..., Any],
    derivative: Callable[..., Any],
    curvature: Callable[..., Any],
    conjugate: Callable[..., Any],
    model_curvature: Callable[..., Any] | None = None,
) -> None:
    """Make `cls` a loss: attach its four functions, compiled; a model takes the curvature itself if nothing is said."""
    attach(loss_functions.value, cls, value)
    attach(loss_functions.derivative, cls, derivative)
    attach(loss_functions.curvature, cls, curvature)
    attach(loss_functions.conjugate, cls, conjugate)
    attach(loss_functions.model_curvature, cls, model_curvature or curvature)


def deviance(loss: Any, mean_loss: float, n_samples: int) -> float:
    """−2 log likelihood of n samples, up to a constant that does not depend on the model.

    The likelihood of a sample is taken to be exp(−ℓ), which makes it 2n times the mean loss. The squared loss
    (``gaussian=True``) is that of a normal distribution whose variance is unknown: with the estimate RSS/n in its place
    it is n log(RSS/n). Other losses of regression have a known scale: for Huber's, targets, and δ with them, are in
    units of the standard deviation of the noise.
    """
    if getattr(loss, "gaussian", False):
        return n_samples * math.log(max(2.0 * mean_loss, sys.float_info.min))
    return 2.0 * n_samples * mean_loss

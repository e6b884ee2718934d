"""What a loss is: scalar functions of a margin z = a·x and a target b, and a few facts about them.

A loss is a ``NamedTuple`` of its parameters. It has a property, or a fact, ``curvature_bound`` (an upper bound of ℓ'',
infinite where there is none) and, where it has parameters, a method ``prepared`` that checks them. Its file calls
:func:`define`; one line in ``losses/__init__.py`` makes it known by name.

Facts, given by the decorator ``facts``; those that are left out take the value in parentheses:

name, labels
    Its name; is the target a class, coded −1/+1?
attained (True)
    False where its infimum may lie at infinity.
smooth (True)
    False where it has kinks. It has a proximal map then, and `derivative` is one of its subgradients.
residual (False)
    Is it a function of z − b, so that targets may be centred?
symmetric (False)
    Of classes: is it a function of b·z, so that the classes have the same role?
coupled (False)
    Is it a function of several margins per sample? Its file calls :func:`define_coupled` then.
gaussian (False)
    Is it the negative logarithm of a normal density of unknown variance?
target_minimum (−∞), target_open (False), target_maximum (∞)
    The smallest target, whether targets must be larger than it, and the largest target.

Methods, also optional:

mean(margins)
    The expected target at each margin, which estimators predict; for classes, the probability of the second one.
link(means)
    Its inverse.
deviance(mean_loss, n_samples)
    −2 log likelihood, up to a constant that does not depend on the model; see :func:`deviance`.
pieces(targets)
    The :class:`Pieces` of a loss that consists of two straight lines.
"""

import math
import sys
from collections.abc import Callable
from operator import attrgetter
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar

import numpy as np

from skadmm.kernels import coupled_samples, loss_functions
from skadmm.kernels.compile import attach

T = TypeVar("T")
ROUNDING = 1e-15
"""By how much, relatively, a slope may lie outside the domain of the conjugate: the slope of a sample with a weight is
a product divided by that weight."""


class Pieces(NamedTuple):
    """The two straight lines of a loss: lower·(z − kink) below the kink and upper·(z − kink) above it, for each
    target."""

    kink: np.ndarray
    lower: np.ndarray
    upper: np.ndarray


class Loss(Protocol):
    """The attributes that every loss has; a Protocol for type checkers.

    A loss is a named tuple of its parameters. :func:`skadmm.losses.define` attaches its functions of one margin.

    Attributes
    ----------
    name : str
        The name by which estimators and ``Problem`` know it.
    labels : bool
        True where targets are two classes, False where they are numbers.
    attained : bool
        False where the infimum over z may lie at infinity, as for the logistic loss.

    See Also
    --------
    skadmm.losses.define : Attach the functions of a loss to its class.

    Examples
    --------
    >>> from skadmm.losses import LOSSES
    >>> sorted(name for name, loss in LOSSES.items() if loss.labels)
    ['hinge', 'logistic', 'multinomial', 'squared-hinge']
    """

    name: ClassVar[str]
    labels: ClassVar[bool]
    attained: ClassVar[bool]
    smooth: ClassVar[bool]
    residual: ClassVar[bool]
    symmetric: ClassVar[bool]
    coupled: ClassVar[bool]
    gaussian: ClassVar[bool]
    target_minimum: ClassVar[float]
    target_open: ClassVar[bool]
    target_maximum: ClassVar[float]
    mean: Callable[[np.ndarray], np.ndarray] | None
    link: Callable[[np.ndarray], np.ndarray] | None
    pieces: Callable[[np.ndarray], Pieces] | None

    @property
    def curvature_bound(self) -> float:
        """The smallest known bound of ℓ''(z) over all z; infinite where there is none."""
        ...

    def deviance(self, mean_loss: float, n_samples: int) -> float:
        """−2 log likelihood of n samples, up to a constant."""
        ...


def _deviance(loss: Loss, mean_loss: float, n_samples: int) -> float:
    """The likelihood of a sample is exp(−ℓ), or that of a normal distribution whose variance is estimated."""
    if loss.gaussian:
        return n_samples * math.log(max(2.0 * mean_loss, sys.float_info.min))
    return 2.0 * n_samples * mean_loss


DEFAULTS: dict[str, Any] = {
    "attained": True, "smooth": True, "residual": False, "symmetric": False, "coupled": False, "gaussian": False,
    "target_minimum": -math.inf, "target_open": False, "target_maximum": math.inf, "mean": None, "link": None,
    "deviance": _deviance, "pieces": None,
}  # fmt: skip
"""The facts and methods of a loss that defines none of its own."""


def _complete(cls: type) -> None:
    """Give a class the facts and methods that it leaves out."""
    for name, default in DEFAULTS.items():
        if not hasattr(cls, name):
            setattr(cls, name, default)


def define(
    cls: type,
    *,
    value: Callable[..., Any],
    derivative: Callable[..., Any],
    curvature: Callable[..., Any],
    conjugate: Callable[..., Any],
    model_curvature: Callable[..., Any] | None = None,
    envelope_slope: Callable[..., Any] | None = None,
    envelope_curvature: Callable[..., Any] | None = None,
) -> None:
    """Make a class a loss: attach its scalar functions, which are compiled when they are first used.

    Every function takes the instance first, is written in Numba's subset of Python, and returns a float.

    Parameters
    ----------
    cls : type
        A ``NamedTuple`` with the facts ``name`` and ``labels`` and a property ``curvature_bound``.
    value : callable
        Of (loss, z, b): ℓ(z, b).
    derivative : callable
        Of (loss, z, b): the derivative in z.
    curvature : callable
        Of (loss, z, b): the second derivative in z.
    conjugate : callable
        Of (loss, theta, b): the supremum over z of θz − ℓ(z, b), infinite outside its domain. The duality gap
        is computed from it.
    model_curvature : callable, optional
        Of (loss, z, b): what a second-order model takes for the second derivative, where it must be larger to converge;
        by default the curvature.
    envelope_slope : callable, optional
        Of a loss with kinks (``smooth=False``), of (loss, v, b, step): the derivative of its Moreau envelope, which its
        proximal map follows from.
    envelope_curvature : callable, optional
        Of a loss with kinks, of (loss, v, b, step): the second derivative of its Moreau envelope.

    See Also
    --------
    skadmm.losses.Loss : The attributes of a loss.

    Examples
    --------
    Absolute residuals with a rounded corner:

    >>> import math
    >>> from typing import NamedTuple
    >>> from skadmm.kernels.compile import facts
    >>> from skadmm.losses import define, value
    >>> @facts(name="pseudo-huber", labels=False)
    ... class PseudoHuber(NamedTuple):
    ...     @property
    ...     def curvature_bound(self):
    ...         return 1.0
    >>> def conjugate(loss, theta, b):
    ...     return theta * b + 1.0 - math.sqrt(1.0 - theta * theta) if abs(theta) <= 1.0 else math.inf
    >>> define(
    ...     PseudoHuber,
    ...     value=lambda loss, z, b: math.sqrt(1.0 + (z - b) ** 2) - 1.0,
    ...     derivative=lambda loss, z, b: (z - b) / math.sqrt(1.0 + (z - b) ** 2),
    ...     curvature=lambda loss, z, b: (1.0 + (z - b) ** 2) ** -1.5,
    ...     conjugate=conjugate,
    ... )
    >>> round(value(PseudoHuber(), 3.0, 0.0), 4)
    2.1623
    """
    _complete(cls)
    attach(loss_functions.value, cls, value)
    attach(loss_functions.derivative, cls, derivative)
    attach(loss_functions.curvature, cls, curvature)
    attach(loss_functions.conjugate, cls, conjugate)
    attach(loss_functions.model_curvature, cls, model_curvature or curvature)
    if envelope_slope is not None and envelope_curvature is not None:
        attach(loss_functions.envelope_slope, cls, envelope_slope)
        attach(loss_functions.envelope_curvature, cls, envelope_curvature)


def define_coupled(
    cls: type,
    *,
    value: Callable[..., Any],
    derivative: Callable[..., Any],
    curvature: Callable[..., Any],
    evaluate: Callable[..., Any],
    conjugate: Callable[..., Any],
) -> None:
    """Make `cls` a loss of several margins per sample (``coupled=True``): attach its functions of a row, compiled. What
    `evaluate` computes is what `value`, `derivative` and `curvature` do."""
    _complete(cls)
    attach(coupled_samples.row_value, cls, value)
    attach(coupled_samples.row_derivative, cls, derivative)
    attach(coupled_samples.row_curvature, cls, curvature)
    attach(coupled_samples.row_evaluate, cls, evaluate)
    attach(coupled_samples.row_conjugate, cls, conjugate)


def inherits(*names: str) -> Callable[[type[T]], type[T]]:
    """Facts and methods of a loss that is made from another one, its field ``loss``, and has them from it."""

    def decorate(cls: type[T]) -> type[T]:
        for name in names:
            setattr(cls, name, property(attrgetter(f"loss.{name}")))
        return cls

    return decorate


def deviance(loss: Loss, mean_loss: float, n_samples: int, n_outputs: int = 1) -> float:
    """Compute −2 log likelihood of n samples, up to a constant that does not depend on the model.

    The likelihood of a sample is taken to be exp(−ℓ), so the deviance is 2n times the mean loss. The squared loss
    (``gaussian=True``) is that of a normal distribution whose variance is unknown: with the estimate RSS/n in its place
    it is n log(RSS/n). Losses with another unknown scale (gamma, Tweedie, quantile) have a method ``deviance`` of their
    own. The others have a known scale: for Huber's, targets, and δ with them, are in units of the standard deviation of
    the noise.

    Parameters
    ----------
    loss : loss
        The loss that the model minimises.
    mean_loss : float
        The mean loss of the samples at the model.
    n_samples : int
        The number of samples.
    n_outputs : int
        The number of outputs that the loss of a sample is a sum over; their noise has one variance.

    Returns
    -------
    float
        The deviance, from which AIC and BIC are computed.

    See Also
    --------
    skadmm.Path : Has AIC and BIC along a path.

    Examples
    --------
    >>> from skadmm.losses import Logistic, deviance
    >>> deviance(Logistic(), 0.5, 100)
    100.0
    """
    return float(loss.deviance(mean_loss / n_outputs, n_samples * n_outputs))

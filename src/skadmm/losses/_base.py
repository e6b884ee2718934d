"""What a loss is: four scalar functions of a margin z = a·x and a target b, and a few facts about them.

A loss is a ``NamedTuple`` of its parameters with the facts ``name`` and ``labels`` (True when the target is a class,
coded −1/+1), and three more where they hold: ``attained=False`` (its infimum may lie at infinity), ``gaussian=True``
(it is that of a normal distribution of unknown variance), and ``coupled=True`` (it is a function of several margins per
sample, and its file calls :func:`define_coupled`). It has a property ``curvature_bound`` (an upper bound of ℓ'')
and, where it has parameters, a method ``prepared`` that checks them. Its file calls :func:`define`; one line in
``losses/__init__.py`` makes it known by name.
"""

import math
import sys
from collections.abc import Callable
from typing import Any, ClassVar, Protocol

from skadmm.kernels import coupled_samples, loss_functions
from skadmm.kernels.compile import attach


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
    ['logistic', 'multinomial', 'squared-hinge']
    """

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
        Of (loss, theta, b): the supremum over z of θz − ℓ(z, b), infinite outside its domain. It makes the duality gap.
    model_curvature : callable, optional
        Of (loss, z, b): what a second-order model takes for the second derivative, where it must be larger to converge;
        by default the curvature.

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
    attach(loss_functions.value, cls, value)
    attach(loss_functions.derivative, cls, derivative)
    attach(loss_functions.curvature, cls, curvature)
    attach(loss_functions.conjugate, cls, conjugate)
    attach(loss_functions.model_curvature, cls, model_curvature or curvature)


def define_coupled(
    cls: type,
    *,
    value: Callable[..., Any],
    derivative: Callable[..., Any],
    curvature: Callable[..., Any],
    conjugate: Callable[..., Any],
) -> None:
    """Make `cls` a loss of several margins per sample (``coupled=True``): attach its functions of a row, compiled."""
    attach(coupled_samples.row_value, cls, value)
    attach(coupled_samples.row_derivative, cls, derivative)
    attach(coupled_samples.row_curvature, cls, curvature)
    attach(coupled_samples.row_conjugate, cls, conjugate)


def is_coupled(loss: Any) -> bool:
    """Is the loss of a sample a function of several margins that is not a sum over them?"""
    return bool(getattr(loss, "coupled", False))


def deviance(loss: Any, mean_loss: float, n_samples: int) -> float:
    """Compute −2 log likelihood of n samples, up to a constant that does not depend on the model.

    The likelihood of a sample is taken to be exp(−ℓ), so the deviance is 2n times the mean loss. The squared loss
    (``gaussian=True``) is that of a normal distribution whose variance is unknown: with the estimate RSS/n in its place
    it is n log(RSS/n). Other losses of regression have a known scale: for Huber's, targets, and δ with them, are in
    units of the standard deviation of the noise.

    Parameters
    ----------
    loss : loss
        The loss that the model minimises.
    mean_loss : float
        The mean loss of the samples at the model.
    n_samples : int
        The number of samples.

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
    if getattr(loss, "gaussian", False):
        return n_samples * math.log(max(2.0 * mean_loss, sys.float_info.min))
    return 2.0 * n_samples * mean_loss

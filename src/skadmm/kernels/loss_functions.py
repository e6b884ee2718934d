"""The scalar functions of a loss that kernels call: each loss gives them its own meaning (``losses/_base.py``)."""

from typing import Any

from skadmm.kernels.compile import generic, jitable


@generic
def value(loss: Any, z: float, b: float) -> float:
    """Compute ℓ(z, b), the loss of one sample.

    Parameters
    ----------
    loss : loss
        An instance such as ``Squared()`` or ``Huber(0.5)``.
    z : float
        The margin aᵢ·x.
    b : float
        The target; −1 or +1 for the losses of classification.

    Returns
    -------
    float
        The loss ℓ(z, b).

    See Also
    --------
    skadmm.losses.define : Where a loss gives its own.

    Examples
    --------
    >>> from skadmm.losses import Squared, value
    >>> value(Squared(), 2.0, 0.0)
    2.0
    """


@generic
def derivative(loss: Any, z: float, b: float) -> float:
    """Compute ℓ'(z, b), the derivative in z of the loss of one sample.

    Parameters
    ----------
    loss : loss
        An instance such as ``Squared()`` or ``Huber(0.5)``.
    z : float
        The margin aᵢ·x.
    b : float
        The target; −1 or +1 for the losses of classification.

    Returns
    -------
    float
        The derivative ℓ'(z, b).

    See Also
    --------
    skadmm.losses.define : Where a loss gives its own.

    Examples
    --------
    >>> from skadmm.losses import Huber, derivative
    >>> derivative(Huber(1.0), 5.0, 0.0)
    1.0
    """


@generic
def curvature(loss: Any, z: float, b: float) -> float:
    """Compute ℓ''(z, b), the second derivative in z of the loss of one sample.

    Where ℓ' has a kink it is an element of the generalised derivative.

    Parameters
    ----------
    loss : loss
        An instance such as ``Squared()`` or ``Huber(0.5)``.
    z : float
        The margin aᵢ·x.
    b : float
        The target; −1 or +1 for the losses of classification.

    Returns
    -------
    float
        The second derivative ℓ''(z, b).

    See Also
    --------
    skadmm.losses.define : Where a loss gives its own.

    Examples
    --------
    >>> from skadmm.losses import Logistic, curvature
    >>> curvature(Logistic(), 0.0, 1.0)
    0.25
    """


@generic
def model_curvature(loss: Any, z: float, b: float) -> float:
    """The curvature that a second-order model uses for ℓ''(z, b), larger where ℓ'' itself would make steps too long."""


@generic
def conjugate(loss: Any, theta: float, b: float) -> float:
    """Compute the convex conjugate ℓ*(θ, b), the supremum over z of θz − ℓ(z, b).

    Parameters
    ----------
    loss : loss
        An instance such as ``Squared()`` or ``Huber(0.5)``.
    theta : float
        The dual variable θ of one sample.
    b : float
        The target; −1 or +1 for the losses of classification.

    Returns
    -------
    float
        The conjugate ℓ*(θ, b), infinite outside its domain.

    See Also
    --------
    skadmm.losses.define : Where a loss gives its own.

    Examples
    --------
    >>> from skadmm.losses import Huber, conjugate
    >>> conjugate(Huber(1.0), 0.5, 0.0), conjugate(Huber(1.0), 2.0, 0.0)
    (0.125, inf)
    """


@generic
def envelope_slope(loss: Any, v: float, b: float, step: float) -> float:
    """The derivative at v of the Moreau envelope min over z of ℓ(z, b) + (z − v)²/(2·step), of losses with kinks.

    It is a subgradient of ℓ at :func:`prox`, exactly in the domain of ℓ*.
    """


@generic
def envelope_curvature(loss: Any, v: float, b: float, step: float) -> float:
    """The second derivative of the envelope; an element of the generalised one where it jumps."""


@jitable
def prox(loss, v, b, step):
    """argmin over z of ℓ(z, b) + (z − v)²/(2·step), of losses with kinks."""
    return v - step * envelope_slope(loss, v, b, step)

"""What a loss is: four scalar functions of a margin z = a·x and a target b, and a few facts about them.

A loss is a ``NamedTuple`` of its parameters with the facts ``name``, ``labels`` (True when the target is a class, coded
−1/+1) and, where its infimum may lie at infinity, ``attained=False``; a property ``curvature_bound`` (an upper bound of
ℓ'') and, where it has parameters, a method ``prepared`` that checks them. Its file calls :func:`define`; one line in
``losses/__init__.py`` makes it known by name.
"""

from collections.abc import Callable
from typing import Any, ClassVar, Protocol

from skadmm._compile import attach, generic


class Loss(Protocol):
    """The face of every loss."""

    name: ClassVar[str]
    labels: ClassVar[bool]
    attained: ClassVar[bool]

    @property
    def curvature_bound(self) -> float:
        """The smallest known bound of ℓ''(z) over all z."""
        ...


@generic
def value(loss: Loss, z: float, b: float) -> float:
    """ℓ(z, b)."""


@generic
def derivative(loss: Loss, z: float, b: float) -> float:
    """ℓ'(z, b), in z."""


@generic
def curvature(loss: Loss, z: float, b: float) -> float:
    """ℓ''(z, b), in z; an element of the generalised derivative of ℓ' where there is a kink."""


@generic
def model_curvature(loss: Loss, z: float, b: float) -> float:
    """What a second-order model takes for ℓ''(z, b): more than the truth where the truth would send it too far."""


@generic
def conjugate(loss: Loss, theta: float, b: float) -> float:
    """ℓ*(θ, b) = sup over z of θz − ℓ(z, b); infinite outside its domain."""


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
    functions = {"value": value, "derivative": derivative, "curvature": curvature, "conjugate": conjugate}
    functions["model_curvature"] = model_curvature or curvature
    for name, implementation in functions.items():
        attach(globals()[name], cls, implementation)

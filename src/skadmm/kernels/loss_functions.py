"""The scalar functions of a loss that kernels call: each loss gives them its own meaning (``losses/_base.py``)."""

from typing import Any

from skadmm.kernels.compile import generic


@generic
def value(loss: Any, z: float, b: float) -> float:
    """ℓ(z, b)."""


@generic
def derivative(loss: Any, z: float, b: float) -> float:
    """ℓ'(z, b), in z."""


@generic
def curvature(loss: Any, z: float, b: float) -> float:
    """ℓ''(z, b), in z; an element of the generalised derivative of ℓ' where there is a kink."""


@generic
def model_curvature(loss: Any, z: float, b: float) -> float:
    """What a second-order model takes for ℓ''(z, b): more than the truth where the truth would send it too far."""


@generic
def conjugate(loss: Any, theta: float, b: float) -> float:
    """ℓ*(θ, b) = sup over z of θz − ℓ(z, b); infinite outside its domain."""

"""A loss of the margin plus a known number per sample: exposure, a base rate, the prediction of another model."""

from typing import Any, NamedTuple

import numpy as np

from skadmm.kernels.loss_functions import conjugate, curvature, derivative, model_curvature, value
from skadmm.losses._base import define

TARGET = np.dtype([("value", np.float64), ("offset", np.float64)])
"""A target with its offset."""


class Offset(NamedTuple):
    """ℓ(z + o, b), of targets that are records of b and o (``TARGET``)."""

    loss: Any

    @property
    def name(self) -> str:
        return self.loss.name

    @property
    def labels(self) -> bool:
        return self.loss.labels

    @property
    def attained(self) -> bool:
        return self.loss.attained

    @property
    def smooth(self) -> bool:
        return self.loss.smooth

    @property
    def gaussian(self) -> bool:
        return self.loss.gaussian

    @property
    def mean(self) -> Any:
        return self.loss.mean

    @property
    def link(self) -> Any:
        return self.loss.link

    @property
    def target_minimum(self) -> float:
        return self.loss.target_minimum

    @property
    def target_open(self) -> bool:
        return self.loss.target_open

    @property
    def curvature_bound(self) -> float:
        return self.loss.curvature_bound

    def deviance(self, mean_loss: float, n_samples: int) -> float:
        """That of the loss itself."""
        return self.loss.deviance(mean_loss, n_samples)


def _value(loss, z, b):
    return value(loss.loss, z + b["offset"], b["value"])


def _derivative(loss, z, b):
    return derivative(loss.loss, z + b["offset"], b["value"])


def _curvature(loss, z, b):
    return curvature(loss.loss, z + b["offset"], b["value"])


def _model_curvature(loss, z, b):
    return model_curvature(loss.loss, z + b["offset"], b["value"])


def _conjugate(loss, theta, b):
    return conjugate(loss.loss, theta, b["value"]) - theta * b["offset"]


define(
    Offset,
    value=_value,
    derivative=_derivative,
    curvature=_curvature,
    conjugate=_conjugate,
    model_curvature=_model_curvature,
)


def with_offset(loss: Any, target: np.ndarray, offset: np.ndarray) -> tuple[Any, np.ndarray]:
    """The loss of z + offset and its targets: a function of z − b takes b − offset, any other is wrapped.

    The target may have an offset already; they add up.
    """
    if isinstance(loss, Offset):
        loss, target, offset = loss.loss, target["value"], target["offset"] + offset
    if loss.residual:
        return loss, target - offset
    records = np.empty(target.shape, TARGET)
    records["value"], records["offset"] = target, offset
    return Offset(loss), records


def split_offset(loss: Any, target: np.ndarray) -> tuple[Any, np.ndarray, np.ndarray | None]:
    """The loss without its offset, the plain targets, and the offsets; None where there are none."""
    if isinstance(loss, Offset):
        return loss.loss, target["value"], target["offset"]
    return loss, target, None

"""A loss of the margin plus a known number per sample: exposure, a base rate, the prediction of another model."""

from typing import Any, NamedTuple

import numpy as np

from skadmm import _checks
from skadmm.kernels.compile import facts
from skadmm.kernels.coupled_samples import row_conjugate, row_curvature, row_derivative, row_evaluate, row_value
from skadmm.kernels.loss_functions import conjugate, curvature, derivative, model_curvature, value
from skadmm.losses._base import define, define_coupled, inherits

TARGET = np.dtype([("value", np.float64), ("offset", np.float64)])
"""A target with its offset."""


@inherits(
    "name", "labels", "attained", "smooth", "gaussian", "mean", "link", "deviance",
    "target_minimum", "target_open", "curvature_bound",
)  # fmt: skip
class Offset(NamedTuple):
    """ℓ(z + o, b), of targets that are records of b and o (``TARGET``)."""

    loss: Any


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


@facts(coupled=True, allocates=True)
@inherits("name", "labels", "attained", "curvature_bound")
class CoupledOffset(NamedTuple):
    """ℓ(z + o, b) of several margins per sample, each with its own offset."""

    loss: Any


def _row_value(loss, z, b):
    return row_value(loss.loss, z + b["offset"], b["value"])


def _row_derivative(loss, z, b, out):
    row_derivative(loss.loss, z + b["offset"], b["value"], out)


def _row_curvature(loss, z, b, out):
    row_curvature(loss.loss, z + b["offset"], b["value"], out)


def _row_evaluate(loss, z, b, slopes, curvatures):
    return row_evaluate(loss.loss, z + b["offset"], b["value"], slopes, curvatures)


def _row_conjugate(loss, theta, b):
    total = row_conjugate(loss.loss, theta, b["value"])
    for c in range(theta.size):
        total -= theta[c] * b["offset"][c]
    return total


define_coupled(
    CoupledOffset,
    value=_row_value,
    derivative=_row_derivative,
    curvature=_row_curvature,
    evaluate=_row_evaluate,
    conjugate=_row_conjugate,
)


def output_offset(offset: Any, n: int, k: int, *, joined: bool = False) -> np.ndarray:
    """A number for each row, or, with k > 1 outputs, for each row and output.

    A vector goes to all outputs. Where the loss joins them it is refused: a number that is added to all margins of a
    row changes nothing.
    """
    given = np.asarray(offset)
    if k == 1:
        return _checks.vector(offset, "offset", n, of="the number of rows of X")
    if given.ndim == 2 and given.shape == (n, k):
        numbers = np.array(given, dtype=np.float64)
        _checks.finite(numbers, "offset")
        return numbers
    if joined or given.ndim != 1:
        takes = f"({n}, {k}), a column for each class" if joined else f"({n},) or ({n}, {k})"
        raise ValueError(f"offset has shape {given.shape}: with {k} outputs it takes shape {takes}")
    vector = _checks.vector(offset, "offset", n, of="the number of rows of X")
    return np.repeat(vector[:, None], k, axis=1)


def offset_loss(loss: Any) -> Any:
    """The loss of targets that carry offsets."""
    return CoupledOffset(loss) if loss.coupled else Offset(loss)


def has_offset(loss: Any) -> bool:
    """Return whether the targets of a loss carry offsets."""
    return isinstance(loss, (Offset, CoupledOffset))


def with_offset(loss: Any, target: np.ndarray, offset: np.ndarray) -> tuple[Any, np.ndarray]:
    """The loss of z + offset and its targets: a function of z − b takes b − offset, any other is wrapped.

    The target may have an offset already; they add up.
    """
    if has_offset(loss):
        loss, target, offset = loss.loss, target["value"], target["offset"] + offset
    if loss.residual:
        return loss, target - offset
    records = np.empty(target.shape, TARGET)
    records["value"], records["offset"] = target, offset
    return offset_loss(loss), records


def split_offset(loss: Any, target: np.ndarray) -> tuple[Any, np.ndarray, np.ndarray | None]:
    """The loss without its offset, the plain targets, and the offsets; None where there are none."""
    if has_offset(loss):
        return loss.loss, target["value"], target["offset"]
    return loss, target, None

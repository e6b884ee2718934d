"""Checks of arguments. Every message names the argument, what came, and what is allowed."""

import numbers
from typing import Any

import numpy as np


def number(value: Any, name: str, *, above: float | None = None, least: float | None = None) -> float:
    """`value` as a finite float, greater than `above` or at least `least`."""
    allowed = "a finite number"
    if above is not None:
        allowed += f" > {above:g}"
    if least is not None:
        allowed += f" ≥ {least:g}"
    bad = isinstance(value, bool) or not isinstance(value, numbers.Real) or not np.isfinite(float(value))
    if bad or (above is not None and value <= above) or (least is not None and value < least):
        raise ValueError(f"{name}={value!r}: it takes {allowed}")
    return float(value)


def count(value: Any, name: str, *, least: int = 1) -> int:
    """`value` as an int of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < least:
        raise ValueError(f"{name}={value!r}: it takes an integer ≥ {least}")
    return int(value)


def vector(value: Any, name: str, size: int, *, of: str) -> np.ndarray:
    """`value` as a finite float64 vector of `size`; `of` says where the size comes from."""
    array = np.asarray(value)
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{name} has dtype {array.dtype}: it takes numbers")
    if array.shape != (size,):
        raise ValueError(f"{name} has shape {array.shape}: it takes a vector of length {size}, {of}")
    array = np.ascontiguousarray(array, dtype=np.float64)
    finite(array, name)
    return array


def finite(array: np.ndarray, name: str) -> None:
    """Refuse NaN and infinity."""
    # A finite sum proves it in one sweep; only a sum that is not, or that overflows, needs the second test.
    with np.errstate(over="ignore", invalid="ignore"):
        suspicious = not np.isfinite(array.sum())
    if suspicious and not np.isfinite(array).all():
        bad = int(np.size(array) - np.isfinite(array).sum())
        raise ValueError(f"{name} contains NaN or infinity ({bad} of {np.size(array)} values): it takes finite numbers")


def coefficients(model: Any) -> None:
    """Refuse an estimator that is not fitted, or that has scores only."""
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(model)
    if not hasattr(model, "coef_"):
        name = type(model).__name__
        if model.refit or not hasattr(model, "alphas_"):
            raise NotFittedError(f"the last fit of this {name} ended with an error: it has no coefficients")
        raise NotFittedError(
            f"this {name} was fitted with refit=False: it has scores and the best parameters, but no coefficients"
        )

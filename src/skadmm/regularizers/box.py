"""The constraint lower ≤ v ≤ upper."""

import math
from typing import Any, NamedTuple, Self

import numpy as np

from skadmm.kernels.compile import facts
from skadmm.regularizers._base import define_separable


@facts(name="box", separable=True, smooth=False, subdifferentiable=False)
class Box(NamedTuple):
    """Bounds on every coordinate, lower_j ≤ v_j ≤ upper_j.

    The function is 0 within the bounds and infinite elsewhere.

    Parameters
    ----------
    lower : float or array-like
        The lower bound, a number or one number per coordinate; −inf leaves a side open.
    upper : float or array-like
        The upper bound, given in the same way; +inf leaves a side open.

    See Also
    --------
    skadmm.regularizers.NonNegative : The bounds 0 and infinity.

    Examples
    --------
    >>> import numpy as np
    >>> from skadmm import Problem
    >>> from skadmm.regularizers import Box
    >>> problem = Problem(np.eye(3), np.zeros(3), loss="squared", psi=Box(-1.0, 1.0))
    >>> problem.psi_value(np.array([3.0, -4.0, 0.0]))
    inf
    >>> problem.prox_psi(np.array([3.0, -4.0, 0.0]))
    array([ 1., -1.,  0.])
    """

    lower: Any = 0.0
    upper: Any = 1.0

    def prepared(self, size: int, role: str) -> Self:
        lower, upper = _checked_bound(self, role, size, "lower"), _checked_bound(self, role, size, "upper")
        empty = np.flatnonzero(~(lower <= upper) | (lower == math.inf) | (upper == -math.inf))
        if empty.size > 0:
            j = empty[0]
            raise ValueError(
                f"{role}=Box(...): no number lies between lower and upper at coordinate {j}, "
                f"got lower {lower[j]} and upper {upper[j]}"
            )
        return self._replace(lower=lower, upper=upper)

    @property
    def strong_convexity(self) -> float:
        return 0.0

    def lipschitz(self, size: int) -> float:
        return math.inf


def _checked_bound(reg: Box, role: str, size: int, field: str) -> np.ndarray:
    bound = getattr(reg, field)
    try:
        array = np.array(bound, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"{role}=Box(...): {field} must be a number or a vector of numbers, got {bound!r}") from None
    if array.shape not in {(), (size,)}:
        raise ValueError(
            f"{role}=Box(...): {field} must be a number or a vector of length {size}, got shape {array.shape}"
        )
    return array if array.ndim == 1 else np.full(size, array)


def _prox_at(reg, j, v, step):
    lower, upper = reg.lower[j], reg.upper[j]
    # Comparisons in place of min and max: NaN goes through.
    above = lower if v < lower else v
    return upper if above > upper else above


def _conjugate_at(reg, j, w):
    if w > 0.0:
        return reg.upper[j] * w
    if w < 0.0:
        return reg.lower[j] * w
    return 0.0


def _dual_scale_at(reg, j, w):
    open_side = (w > 0.0 and reg.upper[j] == math.inf) or (w < 0.0 and reg.lower[j] == -math.inf)
    return 0.0 if open_side else 1.0


def _clip_dual(reg, w, out):
    for j in range(w.size):
        open_side = (w[j] > 0.0 and reg.upper[j] == math.inf) or (w[j] < 0.0 and reg.lower[j] == -math.inf)
        out[j] = 0.0 if open_side else w[j]


define_separable(
    Box,
    value_at=lambda reg, j, v: 0.0 if reg.lower[j] <= v <= reg.upper[j] else math.inf,
    prox_at=_prox_at,
    conjugate_at=_conjugate_at,
    dual_scale_at=_dual_scale_at,
    clip_dual=_clip_dual,
)

"""The duality gap of a trend along a line in as many digits as wanted, from its differences alone.

Differences of order three at clustered positions lose all digits of a double: neither the rounded values of a curve nor
its rounded multipliers say how good it is. Its differences y do. They determine a curve up to a polynomial, least
squares determine the polynomial, and the residual of the curve is then Aᵀu for a multiplier u, by cumulative sums.
"""

from __future__ import annotations

import decimal
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from skadmm._types import Values

Numbers = list[Decimal]


def exact_trend_gap(
    positions: ArrayLike | None,
    target: Values | None,
    order: int,
    alpha: float,
    y: Values | None,
    *,
    sample_weight: Values | None = None,
    digits: int = 60,
) -> float:
    """Compute the relative duality gap of trend filtering with squared loss, in multiple-precision arithmetic.

    Parameters
    ----------
    positions : array of shape (n_samples,)
        In any order; they may occur more than once.
    target : array of shape (n_samples,)
        The observations.
    order : int
        The degree of the pieces.
    alpha : float
        The strength of the penalty, as in :class:`skadmm.TrendFilter`.
    y : array of length k − 1 − order, k the number of distinct positions
        The differences of the fit, ``Result.y``.
    sample_weight : array of shape (n_samples,), optional
        As in ``fit``.
    digits : int
        Digits of the arithmetic.

    Returns
    -------
    float
        (objective − lower bound) / objective of the curve with these differences that fits the target best.

    See Also
    --------
    skadmm.TrendFilter : The estimator.
    skadmm.solve : Its ``Result.gap`` is what this function computes again.

    Examples
    --------
    >>> import numpy as np
    >>> from skadmm import TrendFilter, exact_trend_gap
    >>> t = np.linspace(0.0, 1.0, 40)
    >>> b = np.abs(t - 0.3)
    >>> model = TrendFilter(alpha=1e-3, order=2).fit(t[:, None], b)
    >>> exact_trend_gap(t, b, 2, 1e-3, model.result_.y) < 1e-6
    True
    """
    t, h, q, constant = _sums(positions, target, sample_weight)
    with decimal.localcontext() as context:
        context.prec = digits
        unit = (Decimal(float(t[-1])) - Decimal(float(t[0]))) / max(t.size - 1, 1)
        places = [Decimal(float(p)) / unit for p in t]
        jumps = [Decimal(float(v)) for v in np.asarray(y, dtype=np.float64)]
        if len(jumps) != t.size - 1 - order:
            raise ValueError(
                f"y has length {len(jumps)}: it takes {t.size - 1 - order} differences of order {order + 1}"
            )
        strength = Decimal(float(alpha))
        x = _best(places, h, q, _integrated(places, order, jumps), order)
        rest = [q_i - h_i * x_i for q_i, h_i, x_i in zip(q, h, x, strict=True)]
        u = _multipliers(places, order, rest)
        largest = max((abs(v) for v in u), default=Decimal(0))
        scale = min(Decimal(1), strength / largest) if largest > 0 else Decimal(1)
        primal = constant + sum(
            (x_i * (h_i * x_i / 2 - q_i) for x_i, h_i, q_i in zip(x, h, q, strict=True)), Decimal(0)
        )
        primal += strength * sum((abs(v) for v in jumps), Decimal(0))
        left = sum(((q_i - scale * r) ** 2 / h_i for q_i, r, h_i in zip(q, rest, h, strict=True)), Decimal(0))
        dual = constant - left / 2
        return float((primal - dual) / primal) if primal > 0 else 0.0


def _sums(positions: Any, target: Any, weight: Any) -> tuple[np.ndarray, Numbers, Numbers, Decimal]:
    """The distinct positions, and at each the mean weight and the weighted target; half the mean square."""
    t, index = np.unique(np.asarray(positions, dtype=np.float64).ravel(), return_inverse=True)
    b = [Decimal(float(v)) for v in np.asarray(target, dtype=np.float64).ravel()]
    if len(b) != index.size:
        raise ValueError(f"target has length {len(b)}: it takes one observation for each of {index.size} positions")
    w = [Decimal(1)] * len(b) if weight is None else [Decimal(float(v)) for v in np.asarray(weight, dtype=np.float64)]
    with decimal.localcontext() as context:
        context.prec = 60
        total = sum(w, Decimal(0))
        h, q = [Decimal(0)] * t.size, [Decimal(0)] * t.size
        for i, w_i, b_i in zip(index, w, b, strict=True):
            h[i] += w_i / total
            q[i] += w_i * b_i / total
        return t, h, q, sum((w_i * b_i * b_i for w_i, b_i in zip(w, b, strict=True)), Decimal(0)) / total / 2


def _integrated(places: Numbers, order: int, jumps: Numbers) -> Numbers:
    """A curve with these differences."""
    z = jumps
    for k in range(order, -1, -1):
        sums = [Decimal(0)]
        for v in z:
            sums.append(sums[-1] + v)
        z = sums
        if k > 0:
            z = [v * (places[i + k] - places[i]) / k for i, v in enumerate(z)]
    return z


def _best(places: Numbers, h: Numbers, q: Numbers, x: Numbers, order: int) -> Numbers:
    """x plus the polynomial of degree `order` that makes the residual q − Hx orthogonal to all of them."""
    middle, half = (places[0] + places[-1]) / 2, (places[-1] - places[0]) / 2 or Decimal(1)
    unit = [(p - middle) / half for p in places]
    powers = [[Decimal(1)] * len(unit)]
    for _ in range(order):
        powers.append([a * b for a, b in zip(powers[-1], unit, strict=True)])
    gram = [[sum((a * c * w for a, c, w in zip(p, r, h, strict=True)), Decimal(0)) for r in powers] for p in powers]
    right = [sum((a * (v - w * s) for a, v, w, s in zip(p, q, h, x, strict=True)), Decimal(0)) for p in powers]
    for coefficient, power in zip(_solved(gram, right), powers, strict=True):
        x = [v + coefficient * p for v, p in zip(x, power, strict=True)]
    return x


def _solved(matrix: list[Numbers], right: Numbers) -> Numbers:
    """The solution of a small positive definite system."""
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    size = len(rows)
    for k in range(size):
        for i in range(size):
            if i != k:
                factor = rows[i][k] / rows[k][k]
                rows[i] = [a - factor * c for a, c in zip(rows[i], rows[k], strict=True)]
    return [rows[k][size] / rows[k][k] for k in range(size)]


def _multipliers(places: Numbers, order: int, rest: Numbers) -> Numbers:
    """The u with Aᵀu = rest, which is orthogonal to polynomials."""
    v = rest
    for k in range(order + 1):
        sums, total = [], Decimal(0)
        for value in v[:-1]:
            total -= value
            sums.append(total)
        v = sums
        if k < order:
            v = [value * (places[i + k + 1] - places[i]) / (k + 1) for i, value in enumerate(v)]
    return v

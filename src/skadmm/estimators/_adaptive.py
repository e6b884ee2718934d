"""adaptive=: weights from a first fit, so that terms which are large in it are penalised less.

The first fit has the same loss and a weak ridge in place of the penalty: PILOT_RIDGE times the mean weighted variance
of the columns, a number that is the same for every storage of a table and any number of outputs. A term of the penalty
whose value there is v gets the weight (mean / (v + 1e-3 · mean))^γ, `mean` the mean of v over the terms of its kind:
|x_j| for the ℓ1 norm, |x_i − x_j| for edges, ‖x_g‖/√|g| for groups.

References
----------
Zou, H. (2006). The adaptive lasso and its oracle properties. Journal of the American Statistical Association 101.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from skadmm import _checks
from skadmm.estimators._design import Design
from skadmm.estimators._penalty import Penalty
from skadmm.operators.canonical import canonical

PILOT_RIDGE = 1e-2
"""The ridge of the first fit, relative to the mean variance of the columns."""
SMALLEST_GAP = 1e-16
"""The first fit is not asked for a smaller relative duality gap."""
SMALLEST_TERM = 1e-3
"""The minimum value of a term, as a share of the mean, so that weights are finite."""


def checked_gamma(adaptive: Any) -> float:
    """The exponent γ: 0 for False, 1 for True, or the number given."""
    if isinstance(adaptive, (bool, np.bool_)):
        return float(adaptive)
    try:
        return _checks.number(adaptive, "adaptive", above=0)
    except (TypeError, ValueError):
        raise ValueError(f"adaptive={adaptive!r}: it takes False, True or a number > 0, the exponent γ") from None


def pilot_ridge(design: Design, mean: np.ndarray, variance: np.ndarray) -> float:
    """The ridge of the first fit, from the weighted moments of the columns of `design.X` without that of ones.

    It is relative to the mean of (variance_j / factor_j²), the units that the penalty sees, and of the one of the
    intercept; without an intercept, columns are not centred and second moments take the place of variances.
    """
    squares = variance if design.intercept else variance + mean**2
    total = float((squares / design.factor**2).sum()) + float(design.intercept)
    return PILOT_RIDGE * total / design.width


def pilot_tolerance(tol: float) -> float:
    """The tolerance of the first fit. The error of its coefficients, and so of the weights, is of the order of the
    square root of its gap, so that the gap is `tol` squared."""
    return min(tol, max(tol**2, SMALLEST_GAP))


def term_weights(penalty: Penalty, solutions: list[np.ndarray], gamma: float) -> np.ndarray:
    """The weight of each row of the penalty; the rows of a group share one. Several solutions share their means."""
    if penalty.kind is not None:
        raise ValueError("adaptive: it takes penalty='l1' or groups; another penalty has no terms to weight")
    A = penalty.A
    entries = np.maximum(np.asarray(abs(A).max(axis=1).toarray()).ravel(), np.finfo(float).tiny)
    values = np.mean([np.abs(A @ x) / entries for x in solutions], axis=0)
    single = np.diff(A.indptr) == 1
    if penalty.groups is not None:
        for rows in penalty.groups:
            values[rows] = np.sqrt(np.mean(values[rows] ** 2))
        single = np.zeros(A.shape[0], bool)
        for rows in penalty.groups:
            single[rows] = len(rows) == 1
    weights = np.ones(A.shape[0])
    for kind in (single, ~single):
        mean = values[kind].mean() if kind.any() else 0.0
        if mean > 0.0:
            weights[kind] = (mean / (values[kind] + SMALLEST_TERM * mean)) ** gamma
    return weights


def reweighted(penalty: Penalty, weights: np.ndarray) -> Penalty:
    """The penalty with each row times its weight."""
    return penalty._replace(A=canonical(sp.csr_array(sp.diags_array(weights) @ penalty.A)), trend=None)

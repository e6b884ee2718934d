"""adaptive=: weights from a first fit, so that terms which are large in it are penalised less.

The first fit has the same loss and a weak ridge in place of the penalty. A term of the penalty whose value there is v
gets the weight (mean / (v + 1e-3 · mean))^γ, `mean` the mean of v over the terms of its kind: |x_j| for the ℓ1 norm,
|x_i − x_j| for edges, ‖x_g‖/√|g| for groups.

References
----------
Zou, H. (2006). The adaptive lasso and its oracle properties. Journal of the American Statistical Association 101.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from skadmm import _checks
from skadmm.estimators._penalty import Penalty
from skadmm.operators.canonical import canonical

PILOT_RIDGE = 1e-2
"""The ridge of the first fit, relative to the mean curvature of the columns."""
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

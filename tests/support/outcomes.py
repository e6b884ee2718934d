"""Samples of every scalar loss, penalties, and the optimum of each pair by CVXPY; tests of several files share them."""

import warnings

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp

from skadmm import Problem, Status
from skadmm.losses import (
    Absolute,
    Binomial,
    Gamma,
    Hinge,
    Huber,
    Logistic,
    NegativeBinomial,
    Poisson,
    Quantile,
    SmoothedQuantile,
    Squared,
    SquaredHinge,
    Tweedie,
)
from skadmm.operators import chain, overlapping_groups, stack, trend
from skadmm.regularizers import L1, GroupL2, GroupLInf, SquaredL2

N, D = 120, 6
RNG = np.random.default_rng(7)
X = 0.6 * RNG.standard_normal((N, D)) * (RNG.random((N, D)) < 0.8)
ONES = np.column_stack([X, np.ones(N)])
MARGIN = X @ [0.8, 0.8, 0.8, 0.0, 0.0, -0.9] + 0.4
OFFSET = np.log(RNG.uniform(0.2, 2.0, N))
WEIGHT = RNG.uniform(0.5, 2.0, N)
COUNTS = RNG.poisson(np.exp(MARGIN) * RNG.gamma(3.0, 1 / 3, N)).astype(float)
COSTS = np.exp(MARGIN) * RNG.gamma(2.0, 0.5, N) + 1e-3
TOTALS = COSTS * (RNG.random(N) < 0.6)
NUMBERS = MARGIN + 0.7 * RNG.standard_normal(N)
SHARES = np.round(1 / (1 + np.exp(-MARGIN - 0.8 * RNG.standard_normal(N))), 1)  # some are 0 or 1
CLASSES = np.where(MARGIN + 0.8 * RNG.standard_normal(N) > 0.4, 1.0, -1.0)
CASES = {
    "poisson": (Poisson(), COUNTS),
    "gamma": (Gamma(), COSTS),
    "binomial": (Binomial(), SHARES),
    "tweedie": (Tweedie(1.4), TOTALS),
    "negative-binomial": (NegativeBinomial(0.5), COUNTS),
    "quantile": (Quantile(0.8), NUMBERS),
    "smoothed-quantile": (SmoothedQuantile(0.3, 0.4), NUMBERS),
    "absolute": (Absolute(), NUMBERS),
    "hinge": (Hinge(), CLASSES),
}
SMOOTH_CLASSICS = {
    "logistic": (Logistic(), CLASSES),
    "squared": (Squared(), NUMBERS),
    "huber": (Huber(0.6), NUMBERS),
    "squared-hinge": (SquaredHinge(), CLASSES),
}
ALL_CASES = CASES | SMOOTH_CLASSICS
KINKED = ("quantile", "absolute", "hinge")


def model_loss(name, z, b, w=1.0):
    """Σ w ℓ as a CVXPY expression."""
    loss = ALL_CASES[name][0]
    if name == "logistic":
        return cp.sum(cp.multiply(w, cp.logistic(-cp.multiply(b, z))))
    if name == "squared":
        return cp.sum(cp.multiply(w, cp.square(z - b))) / 2
    if name == "huber":
        return cp.sum(cp.multiply(w, cp.huber(z - b, loss.delta))) / 2
    if name == "squared-hinge":
        return cp.sum(cp.multiply(w, cp.square(cp.pos(1 - cp.multiply(b, z))))) / 2
    if name == "poisson":
        return cp.sum(cp.multiply(w, cp.exp(z) - cp.multiply(b, z) - cp.entr(b) - b))
    if name == "binomial":
        return cp.sum(cp.multiply(w, cp.logistic(z) - cp.multiply(b, z) - cp.entr(b) - cp.entr(1 - b)))
    if name == "gamma":
        return cp.sum(cp.multiply(w, cp.multiply(b, cp.exp(-z)) + z - np.log(b) - 1))
    if name == "tweedie":
        a, c = 2 - loss.power, loss.power - 1
        rest = b**a / (a * c)
        return cp.sum(cp.multiply(w, cp.exp(a * z) / a + cp.multiply(b, cp.exp(-c * z)) / c - rest))
    if name == "negative-binomial":
        r = 1 / loss.dispersion
        rest = (b + r) * np.log(r + b) - np.where(b > 0, b * np.log(np.where(b > 0, b, 1.0)), 0.0)
        soft = cp.logistic(z - np.log(r)) + np.log(r)
        return cp.sum(cp.multiply(w, cp.multiply(b + r, soft) - cp.multiply(b, z) - rest))
    if name == "hinge":
        return cp.sum(cp.multiply(w, cp.pos(1 - cp.multiply(b, z))))
    if name == "smoothed-quantile":
        q, width, u = loss.q, loss.width, cp.Variable(z.shape[0])
        kinked = q * cp.pos(b - u) + (1 - q) * cp.pos(u - b)
        return cp.sum(cp.multiply(w, kinked + cp.square(u - z) / (2 * width)))
    q = loss.q if name == "quantile" else 0.5
    scale = 1.0 if name == "quantile" else 2.0
    return scale * cp.sum(cp.multiply(w, q * cp.pos(b - z) + (1 - q) * cp.pos(z - b)))


def widened(A):
    """A with an empty column for the intercept."""
    return sp.csr_array(sp.hstack([A, sp.csr_array((A.shape[0], 1))]))


GROUPS = [[0, 1, 2], [3, 4, 5]]
ROWS, GROUP_ROWS = overlapping_groups(GROUPS, D)
PENALTIES = {
    "l1": ({"psi": L1(0.03), "A": widened(sp.eye_array(D))}, lambda x: 0.03 * cp.norm1(x[:D])),
    "fused": (
        {"psi": L1(0.03), "A": widened(stack(chain(D), "identity"))},
        lambda x: 0.03 * (cp.norm1(cp.diff(x[:D])) + cp.norm1(x[:D])),
    ),
    "group": (
        {"psi": GroupL2(0.05, GROUP_ROWS), "A": widened(ROWS)},
        lambda x: 0.05 * sum(cp.norm2(x[g]) for g in GROUPS),
    ),
    "generalized": (
        {"psi": L1(0.02), "A": widened(trend(D, 1)), "omega": SquaredL2(0.1, np.append(np.ones(D), 0.0))},
        lambda x: 0.02 * cp.norm1(trend(D, 1) @ x[:D]) + 0.05 * cp.sum_squares(x[:D]),
    ),
}  # fmt: skip
ALL_PENALTIES = PENALTIES | {
    "largest": (
        {"psi": GroupLInf(0.05, GROUP_ROWS), "A": widened(ROWS)},
        lambda x: 0.05 * sum(cp.norm_inf(x[g]) for g in GROUPS),
    ),
}


def optimum(name, penalty, offset=0.0, weight=None):
    """The smallest objective, by CVXPY."""
    x = cp.Variable(D + 1)
    w = np.ones(N) if weight is None else weight / weight.mean()
    objective = model_loss(name, ONES @ x + offset, ALL_CASES[name][1], w) / N + ALL_PENALTIES[penalty][1](x)
    problem = cp.Problem(cp.Minimize(objective))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return problem.solve(solver="CLARABEL", tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)


def problem_of(name, penalty, X=ONES, **parts):
    loss, target = ALL_CASES[name]
    return Problem(X, target, loss, **ALL_PENALTIES[penalty][0], **parts)


def check(result, problem, best):
    assert result.status is Status.SOLVED
    assert problem.objective(result.x) == pytest.approx(result.objective, rel=1e-10)
    assert result.objective == pytest.approx(best, rel=1e-6, abs=1e-8)
    # The lower bound of a certificate holds for the optimum that another solver has found.
    if not np.isnan(result.gap):
        assert result.objective * (1 - result.gap) <= best * (1 + 1e-9)

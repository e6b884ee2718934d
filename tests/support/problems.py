"""Problems and references that the tests of several solvers share."""

import cvxpy as cp
import numpy as np
import scipy.sparse as sp

from skadmm.solvers.second_order.reduced_newton import ReducedNewton


def make(rng, n, d, loss, *, sparse=False):
    X = rng.standard_normal((n, d))
    if sparse:
        X *= rng.random((n, d)) < 0.4
    truth = np.repeat(rng.standard_normal(-(-d // 4)), 4)[:d] * (rng.random(d) < 0.7)
    target = X @ truth + 0.5 * rng.standard_normal(n)
    if loss in ("logistic", "squared-hinge"):
        target = np.where(target > 0, 1.0, -1.0)
        target[:2] = 1.0, -1.0
    return sp.csr_array(X) if sparse else X, target


def cvxpy_objective(X, b, loss, psi_rows, ridge=0.0):
    x = cp.Variable(X.shape[1])
    z = X @ x
    losses = {"squared": 0.5 * cp.square(z - b), "logistic": cp.logistic(-cp.multiply(b, z))}[loss]
    value = cp.sum(losses) / X.shape[0] + cp.norm1(psi_rows @ x) + 0.5 * ridge * cp.sum_squares(x)
    problem = cp.Problem(cp.Minimize(value))
    problem.solve(solver="CLARABEL", tol_gap_abs=1e-9, tol_gap_rel=1e-9, tol_feas=1e-9)
    return problem.value


def watched_clusters(monkeypatch):
    """The points from which Newton steps on clusters begin."""
    starts = []
    usual = ReducedNewton.init
    monkeypatch.setattr(
        ReducedNewton, "init", lambda self, point, rho: starts.append(point.x.copy()) or usual(self, point, rho)
    )
    return starts

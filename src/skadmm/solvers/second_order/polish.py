"""The polish: x exactly fused and exactly zero where y says so.

ADMM's y has exact zeros, its x only nearly so. Rows of A with one or two entries whose y is zero tie features together
(or to zero); on the features that are left free, the quadratic model plus the now linear ψ is minimised exactly.
"""

import numpy as np

from skadmm.kernels.compile import kernel
from skadmm.operators.clusters import clusters
from skadmm.problem.problem import Problem
from skadmm.regularizers._base import subgradient


@kernel
def _subgradient(reg, v, out):
    subgradient(reg, v, out)


@kernel
def _contract(H, q, x, held, labels, factors, reduced, right, start):
    """The model in the clusters' own coordinates, and the coordinates nearest to x."""
    size = np.zeros(right.size)
    for i in held:
        f = factors[i]
        line = reduced[labels[i]]
        for j in held:
            line[labels[j]] += f * H[i, j] * factors[j]
        right[labels[i]] += f * q[i]
        start[labels[i]] += f * x[i]
        size[labels[i]] += f * f
    for c in range(size.size):
        start[c] /= size[c]


def polished(problem: Problem, x: np.ndarray, y: np.ndarray, H: np.ndarray, q: np.ndarray) -> np.ndarray | None:
    """x with the pattern of y, minimising ½x·Hx − q·x + ψ(Ax) on it; None where there is no pattern."""
    constraint = problem.constraint
    if constraint.B is not None or constraint.c.any() or problem.n_split == 0 or not problem.psi.subdifferentiable:
        return None
    labels, factors = clusters(constraint.A, y == 0)
    free = labels >= 0
    k = int(labels.max()) + 1
    if k == problem.n_features:
        return None
    if k == 0:
        return np.zeros(problem.n_features)
    held = np.flatnonzero(free)
    slope = np.empty(y.size)
    _subgradient(problem.psi, y, slope)
    reduced, right, start = np.zeros((k, k)), np.zeros(k), np.zeros(k)
    _contract(H, q - constraint.At(slope), x, held, labels, factors, reduced, right, start)
    # A little damping towards where x is: a direction the data do not see must not run away.
    shift = 1e-12 * float(np.einsum("ii->i", H).max())
    try:
        u = np.linalg.solve(reduced + shift * np.eye(k), right + shift * start) if shift > 0 else start
    except np.linalg.LinAlgError:
        u = start
    if not np.all(np.abs(u) <= 1e6 * (1.0 + np.abs(start).max())):
        u = start
    candidate = np.zeros(problem.n_features)
    candidate[free] = factors[free] * u[labels[free]]
    # ψ is linear only while no sign changes.
    kept = y != 0
    if problem.psi.separable and np.any((constraint.A @ candidate)[kept] * y[kept] < 0):
        candidate[free] = factors[free] * start[labels[free]]
    return candidate

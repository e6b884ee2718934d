"""The polish: x exactly fused and exactly zero where y says so.

ADMM's y has exact zeros, its x only nearly so. Rows of A with one or two entries whose y is zero tie features together
(or to zero); on the features that are left free, the quadratic model plus the now linear ψ is minimised exactly.
"""

from typing import Any

import numpy as np

from skadmm._compile import kernel
from skadmm.problem import Problem
from skadmm.regularizers._base import subgradient


@kernel
def _subgradient(reg, v, out):
    subgradient(reg, v, out)


@kernel
def _find(parent, factor, j):
    """The root of j, and the f with x_j = f · x_root; paths are not compressed, unions go by size."""
    f = 1.0
    while parent[j] != j:
        f *= factor[j]
        j = parent[j]
    return j, f


@kernel
def _tie(first, second, first_value, second_value, parent, factor, size, zero):
    """Join the features of rows a_i x_i + a_j x_j = 0; a contradiction makes the cluster zero."""
    for e in range(first.size):
        i, j = first[e], second[e]
        ri, fi = _find(parent, factor, i)
        if i == j:
            zero[ri] = True
            continue
        rj, fj = _find(parent, factor, j)
        ratio = -first_value[e] / second_value[e]  # x_j = ratio · x_i
        if ri == rj:
            if abs(fj - ratio * fi) > 1e-12 * abs(fj):
                zero[ri] = True
            continue
        if size[ri] < size[rj]:
            # x_root_i = (x_j / ratio) / f_i
            parent[ri], factor[ri] = rj, fj / (ratio * fi)
            size[rj] += size[ri]
            zero[rj] = zero[rj] or zero[ri]
        else:
            parent[rj], factor[rj] = ri, ratio * fi / fj
            size[ri] += size[rj]
            zero[ri] = zero[ri] or zero[rj]


@kernel
def _find_all(parent, factor, roots, factors):
    for j in range(parent.size):
        roots[j], factors[j] = _find(parent, factor, j)


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


def clusters(A: Any, tied: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which features the rows in `tied` (a mask) join: a label for each, −1 for zero, and its factor in its cluster."""
    d = A.shape[1]
    counts = np.diff(A.indptr)
    rows = np.flatnonzero(tied & (counts >= 1) & (counts <= 2))
    first = A.indptr[rows]
    last = first + counts[rows] - 1
    parent, factor = np.arange(d), np.ones(d)
    size, zero = np.ones(d, np.int64), np.zeros(d, bool)
    _tie(
        A.indices[first].astype(np.int64), A.indices[last].astype(np.int64), A.data[first], A.data[last],
        parent, factor, size, zero,
    )  # fmt: skip
    roots, factors = np.empty(d, np.int64), np.empty(d)
    _find_all(parent, factor, roots, factors)
    labels = np.full(d, -1)
    free = ~zero[roots]
    _, labels[free] = np.unique(roots[free], return_inverse=True)
    return labels, factors


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

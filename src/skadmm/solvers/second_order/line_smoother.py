"""Least squares along a line in linear time, by orthogonal transformations alone.

    minimise over x and v      ½ x·Hx − q·x + Σ (v_i − b_i)²/2e_i,      v = D x

D takes differences of order k+1 at positions t. Written in the derivatives z_0 = x, z_1, …, z_k at position i,

    z_{j−1}(i+1) = z_{j−1}(i) + (t_{i+j} − t_i)/j · z_j(i)      and      z_k(i+1) = z_k(i) + v_i,

the problem is that of a state s = (z_0, …, z_k) driven by v and observed in its first component: a fixed-interval
smoother. What is known of s from the left is ½‖R s − r‖² + ℓ·s with R triangular. Each position adds a row to R by
rotations, and each v_i is eliminated by rotations too. Nothing is squared and no difference is ever multiplied out, so
that the digits lost do not grow like the condition number of DDᵀ, which is d^(2k+2).

References
----------
Bierman, G. J. (1977). Factorization Methods for Discrete Sequential Estimation. Academic Press.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from skadmm.kernels.compile import inlined, kernel


class Rotations(NamedTuple):
    """The result of a factorisation, with which the system is solved for any right side."""

    observed: np.ndarray
    """Cosines and sines that add the observation at each position, shape (d, K, 2)."""
    driven: np.ndarray
    """Cosines and sines that eliminate each v, shape (m, K, 2)."""
    column: np.ndarray
    """The column of R that multiplies v, before its elimination, shape (m, K)."""
    weight: np.ndarray
    """The diagonal entry of the row of each v."""
    row: np.ndarray
    """The entries of the row of each v for the state after it, shape (m, K)."""
    root: np.ndarray
    """√e, 1 where v is free."""
    free: np.ndarray
    """Where v has no quadratic term, but a multiplier that is given."""
    last: np.ndarray
    """R at the last position."""


@kernel
def factorise(step, h, root, free, observed, driven, column, weight, row, R, new):
    """The rotations for observations of weight h and drives of variance root²; `step` holds (t_{i+j} − t_i)/j, and
    `new` the row that is added."""
    d, K = h.size, R.shape[0]
    m = root.size
    R[:] = 0.0
    for i in range(d):
        new[:] = 0.0
        new[0] = math.sqrt(h[i])
        for j in range(K):
            size = math.sqrt(R[j, j] * R[j, j] + new[j] * new[j])
            c, s = (R[j, j] / size, new[j] / size) if size > 0.0 else (1.0, 0.0)
            observed[i, j, 0], observed[i, j, 1] = c, s
            for p in range(j, K):
                kept = R[j, p]
                R[j, p] = c * kept + s * new[p]
                new[p] = c * new[p] - s * kept
        if i == d - 1:
            break
        for j in range(K):
            for p in range(j + 1, K):
                R[j, p] -= step[p - 1, i] * R[j, p - 1]
        if i >= m:
            continue
        a, w = root[i], 0.0 if free[i] else 1.0
        prior = w
        new[:] = 0.0
        for j in range(K):
            column[i, j] = R[j, K - 1]
        for j in range(K - 1, -1, -1):
            entry = -a * R[j, K - 1]
            size = math.sqrt(w * w + entry * entry)
            c, s = (w / size, entry / size) if size > 0.0 else (1.0, 0.0)
            driven[i, j, 0], driven[i, j, 1] = c, s
            w = size
            for p in range(j, K):
                kept = new[p]
                new[p] = c * kept + s * R[j, p]
                R[j, p] = c * R[j, p] - s * kept
            if abs(s) > c:  # the same number without cancellation: what is left there comes from the prior alone
                R[j, K - 1] = -s * prior / a
            prior *= c
        weight[i] = w
        for p in range(K):  # `row[i] = new` would make Numba compile an error message
            row[i, p] = new[p]


@inlined
def _forward(step, h, q, b, u, rotations, r, linear, rho):
    """What the right side leaves at the last position, ½‖R s − r‖² + linear·s, and of the row of each v in `rho`."""
    m, K = rho.size, r.size
    for i in range(h.size):
        if h[i] > 0.0:
            new = q[i] / math.sqrt(h[i])
            for j in range(K):
                c, s = rotations.observed[i, j, 0], rotations.observed[i, j, 1]
                kept = r[j]
                r[j] = c * kept + s * new
                new = c * new - s * kept
        else:
            linear[0] -= q[i]
        if i == h.size - 1:
            break
        for p in range(1, K):
            linear[p] -= step[p - 1, i] * linear[p - 1]
        if i >= m:
            continue
        new = 0.0
        for j in range(K - 1, -1, -1):
            c, s = rotations.driven[i, j, 0], rotations.driven[i, j, 1]
            kept = r[j] + rotations.column[i, j] * b[i]
            r[j] = c * kept - s * new
            new = c * new + s * kept
        push = rotations.root[i] * linear[K - 1]
        if rotations.free[i]:
            push -= u[i]
        push /= rotations.weight[i]
        for p in range(K):
            linear[p] += push * rotations.row[i, p]
        rho[i] = new + push


@inlined
def _solve_last(R, r, linear, s):
    """s with RᵀR s = Rᵀr − linear; `linear` is overwritten."""
    K = r.size
    for j in range(K):
        total = linear[j]
        for p in range(j):
            total -= R[p, j] * linear[p]
        linear[j] = total / R[j, j]
    for j in range(K - 1, -1, -1):
        total = r[j] - linear[j]
        for p in range(j + 1, K):
            total -= R[j, p] * s[p]
        s[j] = total / R[j, j]


@kernel
def substitute(step, h, q, b, u, rotations, x, v, rho, ends):
    """Solve with the rotations: x and v, and in `u` the multipliers (v − b)/e. Those of free rows are given in `u`.
    `rho` is scratch, and so are the rows of `ends`, which are zero at first."""
    d, m, K = h.size, v.size, rotations.last.shape[0]
    r, linear, s = ends[0], ends[1], ends[2]
    _forward(step, h, q, b, u, rotations, r, linear, rho)
    _solve_last(rotations.last, r, linear, s)
    x[d - 1] = s[0]
    for i in range(d - 2, -1, -1):
        if i < m:
            total = rho[i]
            for p in range(K):
                total -= rotations.row[i, p] * s[p]
            total /= rotations.weight[i]
            v[i] = b[i] + rotations.root[i] * total
            if not rotations.free[i]:
                u[i] = total / rotations.root[i] if rotations.root[i] > 0.0 else 0.0
            s[K - 1] -= v[i]
        for p in range(K - 1, 0, -1):
            s[p - 1] -= step[p - 1, i] * s[p]
        x[i] = s[0]


class Smoother:
    """The factors for one set of observation weights and drive variances."""

    def __init__(self, step: np.ndarray, h: np.ndarray, e: np.ndarray, free: np.ndarray | None = None) -> None:
        d, m, K = h.size, e.size, step.shape[0] + 1
        self.step, self.h = step, h
        free = np.zeros(m, bool) if free is None else free
        self.rotations = Rotations(
            np.empty((d, K, 2)), np.empty((m, K, 2)), np.empty((m, K)), np.empty(m), np.empty((m, K)),
            np.where(free, 1.0, np.sqrt(e)), free, np.empty((K, K)),
        )  # fmt: skip
        parts = self.rotations
        factorise(
            step, h, parts.root, free, parts.observed, parts.driven, parts.column, parts.weight, parts.row, parts.last,
            np.empty(K),
        )  # fmt: skip

    def solve(self, q: np.ndarray, b: np.ndarray, u: np.ndarray | None = None) -> tuple[np.ndarray, ...]:
        """x, v and the multipliers (v − b)/e; `u` has those of rows where v is free. Multipliers where e = 0 are 0."""
        x, v = np.empty(self.h.size), np.empty(b.size)
        u = np.zeros(b.size) if u is None else u.copy()
        ends = np.zeros((3, self.rotations.last.shape[0]))
        substitute(self.step, self.h, q, b, u, self.rotations, x, v, np.empty(b.size), ends)
        return x, v, u

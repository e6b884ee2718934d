"""The smallest s for which Aᵀw = r, or lower ≤ Aᵀw ≤ upper, has a w in sK, K a convex set around zero."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg

from skadmm.operators.line import GraphTrend, Line
from skadmm.problem.cuts import Network, smallest_growth

LARGEST_PROGRAM = 20_000
"""Up to this many entries of A a linear programme is solved; beyond it the result is an upper bound."""
SECONDS = 10.0
"""The time limit of that programme, which cannot be interrupted."""
LARGEST_FACTOR = 5000
"""Up to this many features a sparse matrix is factorised; beyond it systems are solved by iterations."""
MAX_ITERATIONS = 5000
"""The maximum number of iterations of LSQR."""
SYMMETRIC: dict[str, Any] = {
    "permc_spec": "MMD_AT_PLUS_A",
    "diag_pivot_thresh": 0.0,
    "options": {"SymmetricMode": True},
}
"""Options of ``splu`` for symmetric matrices."""
FEASIBLE = 1e-7
"""The relative error of Aᵀw = r up to which w counts as a solution."""


class Demands(NamedTuple):
    """lower ≤ Aᵀw ≤ upper."""

    lower: np.ndarray
    upper: np.ndarray
    exact: bool
    """Are the bounds equal?"""

    @property
    def middle(self) -> np.ndarray:
        """The element nearest to zero."""
        return np.clip(0.0, self.lower, self.upper)


class Dual(NamedTuple):
    """The set K."""

    norm: Callable[[np.ndarray], float]
    """The smallest s for which w is in sK."""
    lower: np.ndarray | None
    """The lower bounds of K where it is a box; None otherwise."""
    upper: np.ndarray | None
    """The upper bounds, likewise."""
    euclidean: bool
    """Is K the Euclidean unit ball?"""


def smallest_strength(A: sp.csr_array, demands: Demands, dual: Dual, line: Line | None, basis: sp.csr_array) -> float:
    """The smallest s, or an upper bound where the exact value is too expensive. `basis` spans the null space of A."""
    counts = np.diff(A.indptr)
    if line is not None and demands.exact:
        return dual.norm(line.multiplier(demands.lower))  # w is unique
    if dual.lower is not None and dual.upper is not None:
        if counts.max() == 1:
            return _rows_of_one_entry(A, demands, dual.lower, dual.upper)
        if _is_graph(A):
            return smallest_growth(_network(A, demands, dual.lower, dual.upper))
        if A.nnz <= LARGEST_PROGRAM:
            found = _linear_program(A, demands, dual.lower, dual.upper)
            if found is not None:
                return found
    elif counts.max() == 1 and A.shape[0] == np.unique(A.indices).size:
        # One row each: the smallest entries make the smallest norm.
        return dual.norm(demands.middle[A.indices] / A.data)
    target = demands.lower if demands.exact else _nearest(demands, basis)
    bounds = [] if target is None else [dual.norm(w) for w in _feasible(A, target)]
    if not bounds:
        raise ValueError(
            f"alpha_max: A is too large ({A.shape[0]} × {A.shape[1]}) to find its multipliers: give the alphas"
        )
    return min(bounds)


def smallest_strength_over_graph(trend: GraphTrend, r: np.ndarray, dual: Dual) -> float:
    """The smallest s for differences over a graph, G(GᵀG)^k or (GᵀG)^k, with the same penalty on every row.

    Inverting L = GᵀG as often as it occurs leaves Gᵀw = z, a flow, or w = z + a constant on each component.
    """
    assert dual.lower is not None
    assert dual.upper is not None
    G = trend.G
    count, component = sp.csgraph.connected_components(sp.csr_array(abs(G).T @ abs(G)), directed=False)
    _, ground = np.unique(component, return_index=True)
    inverse = _inverse(sp.csr_array(G.T @ G), ground)
    sizes = np.bincount(component)
    z = r
    for _ in range((trend.order + 1) // 2):
        z = inverse(z - (np.bincount(component, weights=z) / sizes)[component])
        z = z - (np.bincount(component, weights=z) / sizes)[component]
    if trend.order % 2 == 0:
        return smallest_growth(_network(G, Demands(z, z, True), dual.lower, dual.upper))
    highest, lowest = np.full(count, -np.inf), np.full(count, np.inf)
    np.maximum.at(highest, component, z)
    np.minimum.at(lowest, component, z)
    # w = z + c has the smallest bounds where c makes both ends weigh the same.
    return float(np.max((highest - lowest) / (dual.upper[0] - dual.lower[0])))


def _inverse(L: sp.csr_array, ground: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """A graph's Laplacian L inverted, with the solution zero at one node of each component.

    By its factors, or, since those of a large graph may fill up, by conjugate gradients, which can be interrupted.
    """
    inner = np.ones(L.shape[0], bool)
    inner[ground] = False
    part = sp.csc_array(L[inner][:, inner])
    size = part.shape[0]
    factor: Any = None
    if 0 < size <= LARGEST_FACTOR:
        factor = scipy.sparse.linalg.splu(part, **SYMMETRIC)

    def solve(z: np.ndarray) -> np.ndarray:
        out = np.zeros(z.size)
        if factor is not None:
            out[inner] = factor.solve(z[inner])
            out[inner] += factor.solve(z[inner] - part @ out[inner])
        elif size:
            scale = sp.diags_array(1.0 / part.diagonal())
            out[inner] = scipy.sparse.linalg.cg(part, z[inner], rtol=1e-13, maxiter=5 * size, M=scale)[0]
        return out

    return solve


def _rows_of_one_entry(A: sp.csr_array, demands: Demands, lower: np.ndarray, upper: np.ndarray) -> float:
    """Each feature on its own: the ratio of its demand to what its rows can contribute at s = 1."""
    d = A.shape[1]
    ends = np.stack([A.data * lower, A.data * upper])
    smallest = np.bincount(A.indices, weights=ends.min(axis=0), minlength=d)
    largest = np.bincount(A.indices, weights=ends.max(axis=0), minlength=d)
    demand = demands.middle
    limit = np.where(demand > 0, largest, smallest)
    needed = demand != 0
    with np.errstate(divide="ignore"):
        return float(np.max(demand[needed] / limit[needed], initial=0.0)) if np.all(limit[needed]) else np.inf


def _is_graph(A: sp.csr_array) -> bool:
    """Has every row one entry, or two that add up to zero?"""
    counts = np.diff(A.indptr)
    if counts.max() > 2 or counts.min() < 1:
        return False
    first = A.indptr[:-1][counts == 2]
    return bool(np.all(A.data[first] == -A.data[first + 1]))


def _network(A: sp.csr_array, demands: Demands, lower: np.ndarray, upper: np.ndarray) -> Network:
    """Aᵀw as a flow: rows of two entries carry it from feature to feature, those of one entry from an added node.

    The slack between the lower and the upper demands comes from that node too, with a fixed capacity.
    """
    d = A.shape[1]
    counts = np.diff(A.indptr)
    last = A.indptr[1:] - 1
    tail = np.where(counts == 2, A.indices[A.indptr[:-1]], d)
    head, entry = A.indices[last], A.data[last]
    ends = np.stack([entry * lower, entry * upper])
    demand = demands.middle
    into, out = demand - demands.lower, demands.upper - demand  # what may come in from elsewhere, and go out
    open_ = np.flatnonzero((into > 0) | (out > 0))
    return Network(
        tail=np.concatenate([tail, np.full(open_.size, d)]),
        head=np.concatenate([head, open_]),
        ahead=np.concatenate([ends.max(axis=0), into[open_]]),
        back=np.concatenate([-ends.min(axis=0), out[open_]]),
        growing=np.concatenate([np.isfinite(ends).all(axis=0), np.zeros(open_.size, bool)]),
        demand=np.append(demand, -demand.sum()),
    )


def _linear_program(A: sp.csr_array, demands: Demands, lower: np.ndarray, upper: np.ndarray) -> float | None:
    """min s subject to s·lower ≤ w ≤ s·upper and the demands, by HiGHS; infinite if infeasible, None out of time."""
    from scipy.optimize import Bounds, LinearConstraint, milp  # takes a while to import

    m, d = A.shape
    finite = np.abs(np.concatenate([demands.lower, demands.upper]))
    scale = float(np.max(finite, where=np.isfinite(finite), initial=0.0)) or 1.0
    at_most, at_least = np.isfinite(upper), np.isfinite(lower)
    blocks = [sp.hstack([A.T, sp.csr_array((d, 1))])]
    limits = [(demands.lower / scale, demands.upper / scale)]
    for rows, bound, sign in ((np.flatnonzero(at_most), upper, 1.0), (np.flatnonzero(at_least), lower, -1.0)):
        select = sp.csr_array((np.full(rows.size, sign), (np.arange(rows.size), rows)), shape=(rows.size, m))
        blocks.append(sp.hstack([select, sp.csr_array(-sign * bound[rows][:, None])]))
        limits.append((np.full(rows.size, -np.inf), np.zeros(rows.size)))
    cost = np.zeros(m + 1)
    cost[-1] = 1.0
    low, high = (np.concatenate(side) for side in zip(*limits, strict=True))
    solution = milp(
        cost,
        constraints=LinearConstraint(sp.csr_array(sp.vstack(blocks)), low, high),
        bounds=Bounds(np.append(np.full(m, -np.inf), 0.0), np.full(m + 1, np.inf)),
        options={"time_limit": SECONDS},
    )
    if solution.status == 0:
        return float(solution.x[-1] * scale)
    return np.inf if solution.status == 2 else None


def _nearest(demands: Demands, basis: sp.csr_array) -> np.ndarray | None:
    """A vector within the demands, of small ℓ1 norm, orthogonal to the null space of A so that it equals some Aᵀw."""
    from scipy.optimize import linprog

    if basis.shape[1] == 0:
        return demands.middle
    d = demands.lower.size
    solution = linprog(
        np.ones(2 * d),
        A_eq=sp.csr_array(sp.hstack([basis.T, -basis.T])), b_eq=np.zeros(basis.shape[1]),
        A_ub=sp.vstack([sp.hstack([sp.eye_array(d), -sp.eye_array(d)])[np.isfinite(demands.upper)],
                        sp.hstack([-sp.eye_array(d), sp.eye_array(d)])[np.isfinite(demands.lower)]], format="csr"),
        b_ub=np.concatenate([demands.upper[np.isfinite(demands.upper)], -demands.lower[np.isfinite(demands.lower)]]),
        method="highs", options={"time_limit": SECONDS},
    )  # fmt: skip
    return solution.x[:d] - solution.x[d:] if solution.status == 0 else None


def _feasible(A: sp.csr_array, r: np.ndarray) -> list[np.ndarray]:
    """Vectors w with Aᵀw = r: the one of minimum Euclidean norm, and the one on rows with a single entry."""
    found = []
    w = np.zeros(A.shape[0])
    if A.shape[1] <= LARGEST_FACTOR:
        gram = sp.csc_array(A.T @ A)
        shift = 1e-12 * float(gram.diagonal().max())
        factor = scipy.sparse.linalg.splu(sp.csc_array(gram + shift * sp.eye_array(gram.shape[0])), **SYMMETRIC)
        for _ in range(5):
            w += A @ factor.solve(r - A.T @ w)
    else:  # factors may fill up; iterations can be interrupted
        w = scipy.sparse.linalg.lsqr(sp.csr_array(A.T), r, atol=1e-14, btol=1e-14, iter_lim=MAX_ITERATIONS)[0]
    if np.linalg.norm(A.T @ w - r) <= FEASIBLE * np.linalg.norm(r):
        found.append(w)
    single = np.flatnonzero(np.diff(A.indptr) == 1)
    alone = A[single]
    share = np.bincount(alone.indices, weights=alone.data**2, minlength=A.shape[1])
    if np.all(share[r != 0] > 0):
        w = np.zeros(A.shape[0])
        w[single] = alone.data * r[alone.indices] / np.where(share > 0, share, 1.0)[alone.indices]
        found.append(w)
    return found


__all__ = ["Demands", "Dual", "smallest_strength", "smallest_strength_over_graph"]

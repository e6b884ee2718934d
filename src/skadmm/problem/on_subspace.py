"""The minimum of f + Ω on a small linear space. It needs gradients only, so that it works on every backend."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg

from skadmm.kernels.expansion import expand
from skadmm.kernels.rows import as_matrix, times_basis
from skadmm.kernels.samples import curvature_product
from skadmm.problem.problem import Problem
from skadmm.problem.structure import NullSpace

LARGEST_HESSIAN = 400
"""Newton's method is used up to this many dimensions, L-BFGS beyond."""
LARGEST_TABLE = 5e7
"""Exact second derivatives are computed where X times the basis has at most this many entries."""
MAX_DIFFERENCES = 60
"""Otherwise Newton's method, with differences of gradients, is used up to this many dimensions."""
NEWTON_STEPS = 100
"""The maximum number of steps of Newton's method."""
MAX_DOUBLINGS = 40
"""The maximum number of times that a step is doubled while the value keeps decreasing."""
TOO_FEW_DIGITS = 1e-11
"""A relative decrease of the value below this is hidden by rounding."""


Smooth = Callable[[np.ndarray], tuple[float, np.ndarray]]
"""A differentiable function: from x to its value and gradient."""


class _Subspace:
    """f + ½ Σ ridge x² (or another smooth Ω) in the coordinates u of x = Bu."""

    def __init__(self, problem: Problem, basis: sp.csr_array, ridge: np.ndarray, smooth: Smooth | None) -> None:
        self.problem, self.basis, self.ridge, self.smooth = problem, basis, ridge, smooth
        self.transposed = sp.csr_array(basis.T)
        self.size = basis.shape[1]
        self.curved = sp.csr_array(self.transposed @ sp.diags_array(ridge) @ basis)
        local = problem.backend.local_rows and problem.n_samples * self.size <= LARGEST_TABLE
        self.newton = self.size <= (LARGEST_HESSIAN if local and smooth is None else MAX_DIFFERENCES)
        self.table = self._rows() if local and self.newton and smooth is None else None

    def _rows(self) -> np.ndarray:
        """X times the basis, from one chunk of rows after the other: those of a file are not all in memory at once."""
        problem, n = self.problem, self.problem.n_samples
        out = np.empty((n, self.size))
        for start in range(0, n, problem.rows_per_chunk):
            problem.backend.between_chunks()
            stop = min(start + problem.rows_per_chunk, n)
            table = times_basis(as_matrix(problem.rows, start, stop), self.basis)
            out[start:stop] = table.toarray() if sp.issparse(table) else table
        return out

    def __call__(self, u: np.ndarray) -> tuple[float, np.ndarray]:
        """The value and the gradient."""
        x = self.basis @ u
        slope = np.empty(x.size)
        value = self.problem.loss_and_gradient(x, slope)
        if self.smooth is not None:
            more, extra = self.smooth(x)
            return value + more, self.transposed @ (slope + extra)
        return value + 0.5 * float(x @ (self.ridge * x)), self.transposed @ (slope + self.ridge * x)

    @property
    def steepest(self) -> float:
        """A bound of the curvature along any coordinate; positive."""
        columns = self.basis.multiply(self.basis).sum(axis=0)
        largest = self.problem.L_mean * float(columns.max()) + float(self.curved.diagonal().max(initial=0.0))
        return max(largest, np.finfo(float).tiny)

    def hessian(self, u: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        """Second derivatives: exact where there is a table of rows, else differences of gradients."""
        if self.table is None:
            step = 1e-6 * max(1.0, float(np.abs(u).max()))
            columns = [(self(u + step * unit)[1] - gradient) / step for unit in np.eye(self.size)]
            return 0.5 * (np.array(columns) + np.array(columns).T)
        n = self.problem.n_samples
        slope, curvatures, samples = np.empty(n), np.empty(n), self.problem.samples()
        expand(samples, np.arange(n), self.table @ u, slope, curvatures)
        curved = curvature_product(samples, curvatures, self.table)
        return self.table.T @ curved / n + self.curved.toarray()


def minimise(
    problem: Problem,
    space: NullSpace,
    l1: np.ndarray | None = None,
    ridge: np.ndarray | None = None,
    lower: np.ndarray | None = None,
    upper: np.ndarray | None = None,
    smooth: Smooth | None = None,
    start: np.ndarray | None = None,
) -> np.ndarray:
    """argmin of f(x) + Σ (l1 |x| + ½ ridge x²) over x in the space with lower ≤ x ≤ upper.

    `smooth` is another differentiable Ω in their place: a function that returns its value and gradient. `start` is a
    point of the space to start from, zero by default.
    """
    d = problem.n_features
    l1 = np.zeros(d) if l1 is None else l1
    ridge = np.zeros(d) if ridge is None else ridge
    lower = np.full(d, -np.inf) if lower is None else lower
    upper = np.full(d, np.inf) if upper is None else upper
    basis = space.basis
    if basis.shape[1] == 0:
        return np.zeros(d)
    inside = _Subspace(problem, basis, ridge, smooth)
    plain = not l1.any() and not np.isfinite(lower).any() and not np.isfinite(upper).any()
    if not plain and not space.disjoint:
        return basis @ _with_inequalities(inside, l1, lower, upper)
    weight = abs(inside.transposed) @ l1
    low, high = _limits(basis, lower, upper)
    first = np.zeros(inside.size)
    if start is not None and start.any():
        gram = sp.csc_array(inside.transposed @ basis)
        first = scipy.sparse.linalg.splu(gram).solve(inside.transposed @ start)
    first = np.clip(first, low, high)
    if inside.newton:
        return basis @ _newton(inside, first, weight, low, high)
    return basis @ _quasi_newton(inside, first, weight, low, high)


def _limits(basis: sp.csr_array, lower: np.ndarray, upper: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The bounds of u for which the x = Bu of a disjoint basis keeps its own."""
    low, high = np.full(basis.shape[1], -np.inf), np.full(basis.shape[1], np.inf)
    entries = sp.coo_array(basis)
    row, column = entries.coords
    ends = np.stack([lower[row] / entries.data, upper[row] / entries.data])
    np.maximum.at(low, column, ends.min(axis=0))
    np.minimum.at(high, column, ends.max(axis=0))
    return low, np.maximum(high, low)


def _newton(inside: _Subspace, u: np.ndarray, l1: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Projected Newton's method on the coordinates that are neither at a bound nor kept at zero by the ℓ1 term."""
    smooth, slope = inside(u)
    value = smooth + float(l1 @ np.abs(u))
    plain = not l1.any() and not np.isfinite(low).any() and not np.isfinite(high).any()
    for _ in range(NEWTON_STEPS):
        leaving = np.where(np.abs(slope) > l1, -np.sign(slope), 0.0)
        sign = np.where(u != 0, np.sign(u), leaving)
        total = slope + l1 * sign
        fixed = ((u <= low) & (total >= 0)) | ((u >= high) & (total <= 0)) | ((u == 0) & (l1 > 0) & (sign == 0))
        free = np.flatnonzero(~fixed)
        if free.size == 0 or not total[free].any():
            break
        hessian = inside.hessian(u, slope)[np.ix_(free, free)]
        step = np.linalg.lstsq(hessian, total[free], rcond=1e-13)[0]
        moved = False
        steepest = float(np.abs(np.diag(hessian)).max()) or inside.steepest  # a loss may be linear here
        for direction in (step, total[free] / steepest):
            length, decrease = 1.0, float(total[free] @ direction)
            while length > 1e-10 and not moved:
                new = u.copy()
                new[free] -= length * direction
                new = np.clip(np.where((l1 > 0) & (new * sign < 0), 0.0, new), low, high)
                smooth, other = inside(new)
                trial = smooth + float(l1 @ np.abs(new))
                required = 1e-4 * min(length * decrease, float(total @ (u - new)))
                hidden = decrease <= TOO_FEW_DIGITS * abs(value)
                moved = not hidden and required > 0 and trial <= value - required
                if hidden:  # judge by the gradient instead
                    moved = bool(np.abs((other + l1 * sign)[free]).max() < 0.5 * np.abs(total[free]).max())
                    if not moved:
                        break
                length *= 0.5
            if moved:
                whole = np.zeros(u.size)
                whole[free] = direction
                if plain and float((other[free]) @ direction) > 0.5 * decrease:  # length was 1
                    new, trial, other = _lengthened(inside, u, whole, 0.5 * decrease, (new, trial, other))
                break
        if not moved:
            break
        u, value, slope = new, trial, other
    return u


def _lengthened(
    inside: _Subspace, u: np.ndarray, step: np.ndarray, enough: float, last: tuple[np.ndarray, float, np.ndarray]
) -> tuple[np.ndarray, float, np.ndarray]:
    """Lengthen a step as long as the value decreases at least half as fast as at its start: where a loss has pieces
    without curvature, a step to the minimum of a model of one piece is short."""
    length = 2.0
    for _ in range(MAX_DOUBLINGS):
        point = u - length * step
        value, slope = inside(point)
        if not value < last[1]:
            break
        last = point, value, slope
        if not float(slope @ step) > enough:
            break
        length *= 2.0
    return last


def _quasi_newton(inside: _Subspace, u: np.ndarray, l1: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """L-BFGS-B. With an ℓ1 term u is split into u⁺ − u⁻, both ≥ 0."""
    from scipy.optimize import minimize  # takes a while to import

    tight = {"maxiter": 5000, "maxfun": 20_000, "ftol": 0.0, "gtol": 1e-12, "maxcor": 30}
    if not l1.any():
        return np.asarray(
            minimize(inside, u, jac=True, method="L-BFGS-B", bounds=np.stack([low, high], axis=1), options=tight).x
        )
    k = u.size

    def split(both: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = inside(both[:k] - both[k:])
        return value + float(l1 @ (both[:k] + both[k:])), np.concatenate([slope + l1, l1 - slope])

    bounds = np.stack([np.zeros(2 * k), np.concatenate([np.maximum(high, 0.0), np.maximum(-low, 0.0)])], axis=1)
    start = np.concatenate([np.maximum(u, 0.0), np.maximum(-u, 0.0)])
    both = minimize(split, start, jac=True, method="L-BFGS-B", bounds=bounds, options=tight).x
    return np.asarray(both[:k] - both[k:])


def _with_inequalities(inside: _Subspace, l1: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """Sequential quadratic programming, for bounds or an ℓ1 term on x = Bu where the basis mixes features.

    An ℓ1 term adds variables t ≥ |x|.
    """
    from scipy.optimize import minimize  # takes a while to import

    B, k = inside.basis.toarray(), inside.size
    kinked, above, below = np.flatnonzero(l1), np.flatnonzero(np.isfinite(upper)), np.flatnonzero(np.isfinite(lower))
    zeros = [np.zeros((rows.size, kinked.size)) for rows in (above, below)]
    eye = np.eye(kinked.size)
    rows = np.block([[-B[above], zeros[0]], [B[below], zeros[1]], [-B[kinked], eye], [B[kinked], eye]])
    offset = np.concatenate([upper[above], -lower[below], np.zeros(2 * kinked.size)])

    def objective(both: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = inside(both[:k])
        return value + float(l1[kinked] @ both[k:]), np.concatenate([slope, l1[kinked]])

    solution = minimize(
        objective, np.zeros(k + kinked.size), jac=True, method="SLSQP",
        constraints={"type": "ineq", "fun": lambda both: rows @ both + offset, "jac": lambda both: rows},
        options={"ftol": 1e-15, "maxiter": 500},
    )  # fmt: skip
    return np.asarray(solution.x[:k])

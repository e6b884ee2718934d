"""Online ADMM: the loss of one block itself, not its linearisation, in every step.

    x ← argmin over x of ℓ_k(x) + (ρ/2)‖Ax + By − c + dual‖² + ‖x − x_t‖²/(2η),   η = step/√t

With M = I/η + ρAᵀA the minimiser is x = M⁻¹(r − Rᵀs), where the rows of R are the block's and s its slopes at x.
So only the block's margins z = R x are unknown: z = p − K s(z), K = R M⁻¹ Rᵀ, a system as large as the block, solved
by Newton's method to rounding.
"""

from typing import Any, NamedTuple

import numpy as np

from skadmm.kernels.compile import attach, facts, generic, kernel
from skadmm.kernels.coupled_samples import CoupledSamples, row_curvature, row_derivative
from skadmm.kernels.loss_functions import curvature, derivative
from skadmm.kernels.rows import copy_into, row_add, row_dot
from skadmm.kernels.samples import Samples, block_bounds, weight_of
from skadmm.regularizers._base import subgradient
from skadmm.solvers.base import Algorithm, Setup, init_table, inverse, no_tables, register, update_gradient, x_update
from skadmm.solvers.dual_update import Point
from skadmm.solvers.first_order import x_solve
from skadmm.solvers.first_order.engine import FirstOrderEngine
from skadmm.solvers.first_order.x_solve import solve

NEWTON_STEPS = 100


@facts(allocates=True)
class OneBlock(NamedTuple):
    """Scratch for the nonlinear system of one block."""

    step: float
    rho: float
    scale: float
    omega: Any
    system: Any
    right: Any
    row: Any
    solved_rows: Any
    """M⁻¹Rᵀ, one row per sample of the block."""
    gram: Any
    """K."""
    x_new: Any


@generic
def _block_slopes(samples: Any, start: int, scale: float, z: Any, out: Any) -> None:
    """out ← the slopes of a block at its margins z, times `scale`."""


def _slopes(samples, start, scale, z, out):
    for i in range(z.size):
        out[i] = scale * weight_of(samples, start + i) * derivative(samples.loss, z[i], samples.target[start + i])


def _coupled_slopes(samples, start, scale, z, out):
    k = samples.rows.outputs
    for i in range(0, z.size, k):
        row_derivative(samples.loss, z[i : i + k], samples.target[start + i : start + i + k], out[i : i + k])
        for c in range(i, i + k):
            out[c] *= scale * weight_of(samples, start + i)


@generic
def _jacobian(samples: Any, start: int, scale: float, gram: Any, z: Any, out: Any) -> None:
    """out ← I + K H, H the derivative of the block's slopes in its margins."""


def _diagonal_jacobian(samples, start, scale, gram, z, out):
    for other in range(z.size):
        h = scale * weight_of(samples, start + other)
        h *= curvature(samples.loss, z[other], samples.target[start + other])
        for i in range(z.size):
            out[i, other] = gram[i, other] * h + (1.0 if i == other else 0.0)


def _coupled_jacobian(samples, start, scale, gram, z, out):
    k = samples.rows.outputs
    h = np.empty(k)
    for first in range(0, z.size, k):
        row_curvature(samples.loss, z[first : first + k], samples.target[start + first : start + first + k], h)
        weight, total = scale * weight_of(samples, start + first), h.sum()
        for i in range(z.size):
            mean = 0.0
            for c in range(k):
                mean += gram[i, first + c] * h[c] / total
            for c in range(k):
                out[i, first + c] = weight * h[c] * (gram[i, first + c] - mean) + (1.0 if i == first + c else 0.0)


attach(_block_slopes, Samples, _slopes)
attach(_block_slopes, CoupledSamples, _coupled_slopes)
attach(_jacobian, Samples, _diagonal_jacobian)
attach(_jacobian, CoupledSamples, _coupled_jacobian)


@kernel
def _residual(rule, samples, start, b, p, z, slopes, out):
    """out ← z + K s(z) − p, and its largest entry."""
    _block_slopes(samples, start, rule.scale, z, slopes)
    largest = 0.0
    for i in range(b):
        out[i] = z[i] - p[i]
        for other in range(b):
            out[i] += rule.gram[i, other] * slopes[other]
        if abs(out[i]) > largest or np.isnan(out[i]):  # once NaN, it stays NaN
            largest = abs(out[i])
    return largest


@kernel
def _solve_system(matrix, right):
    """right ← matrix⁻¹ right by elimination with row exchanges; `matrix` is overwritten. Where np.linalg.solve would
    raise, because an entry is not finite or a pivot is zero, the result is not finite."""
    b = right.size
    for j in range(b):
        pivot = j
        for i in range(j + 1, b):
            if abs(matrix[i, j]) > abs(matrix[pivot, j]):
                pivot = i
        for other in range(b):
            matrix[j, other], matrix[pivot, other] = matrix[pivot, other], matrix[j, other]
        right[j], right[pivot] = right[pivot], right[j]
        for i in range(j + 1, b):
            factor = matrix[i, j] / matrix[j, j]
            for other in range(j + 1, b):
                matrix[i, other] -= factor * matrix[j, other]
            right[i] -= factor * right[j]
    for j in range(b - 1, -1, -1):
        for other in range(j + 1, b):
            right[j] -= matrix[j, other] * right[other]
        right[j] /= matrix[j, j]


@kernel(allocates=True)
def _solve_margins(rule, samples, start, b, p):
    """The slopes s(z) at the solution of z + K s(z) = p; NaN where the run has diverged, so that x shows it."""
    z = p.copy()
    slopes, matrix, trial, direction = np.empty(b), np.empty((b, b)), np.empty(b), np.empty(b)
    size = _residual(rule, samples, start, b, p, z, slopes, trial)
    if not size < np.inf:
        slopes[:] = np.nan
        return slopes
    for _ in range(NEWTON_STEPS):
        _jacobian(samples, start, rule.scale, rule.gram, z, matrix)
        direction[:] = trial
        _solve_system(matrix, direction)
        length = 1.0
        while True:
            candidate = z - length * direction
            new_size = _residual(rule, samples, start, b, p, candidate, slopes, trial)
            if new_size <= (1.0 - 1e-4 * length) * size or length < 1e-10:
                break
            length *= 0.5
        z = candidate
        if new_size <= 1e-15 * (1.0 + np.abs(p).max()) or not new_size < size:
            break
        size = new_size
    return slopes


def _update_gradient(rule, samples, point, k):
    """The whole step is computed here, because it needs the block's rows; ``x_update`` only takes the result."""
    eta = rule.step / np.sqrt(point.clock[0] + 1.0)
    start, stop = block_bounds(samples, k)
    b = stop - start
    subgradient(rule.omega, point.x, rule.right)
    for j in range(point.x.size):
        rule.right[j] = point.x[j] / eta - rule.right[j] - rule.rho * point.coupling[j]
    copy_into(point.x, rule.x_new)
    solve(rule.system, 1.0 / eta, rule.right, rule.x_new)
    for i in range(b):
        rule.row[:] = 0.0
        row_add(samples.rows, start + i, 1.0, rule.row)
        solve(rule.system, 1.0 / eta, rule.row, rule.solved_rows[i])
    p = np.empty(b)
    for i in range(b):
        p[i] = row_dot(samples.rows, start + i, rule.x_new)
        for other in range(b):
            rule.gram[i, other] = row_dot(samples.rows, start + i, rule.solved_rows[other])
    slopes = _solve_margins(rule, samples, start, b, p)
    for i in range(b):
        for j in range(point.x.size):
            rule.x_new[j] -= slopes[i] * rule.solved_rows[i, j]
    return b


def _x_update(rule, point, k):
    copy_into(rule.x_new, point.x)


attach(init_table, OneBlock, no_tables)
attach(update_gradient, OneBlock, _update_gradient)
attach(x_update, OneBlock, _x_update)


def _start(setup: Setup, point: Point) -> FirstOrderEngine:
    d, b = setup.problem.n_features, int(setup.block_sizes.max())
    rule = OneBlock(
        step=setup.step,
        rho=setup.rho,
        scale=setup.n_blocks / setup.problem.n_samples,
        omega=setup.problem.omega,
        system=x_solve.shifted(setup.problem.constraint, setup.rho),
        right=np.empty(d),
        row=np.empty(d),
        solved_rows=np.zeros((b, d)),
        gram=np.empty((b, b)),
        x_new=np.empty(d),
    )
    return FirstOrderEngine(rule, setup, point, linearised=False)


register(
    Algorithm(
        name="online-admm",
        summary="Online ADMM: one block's own loss in every step, a nonlinear step",
        reference="Wang and Banerjee (2012)",
        gradient="one sample, nonlinear",
        linearised=False,
        constant_step=False,
        omega=("fold", "subgradient"),
        start=_start,
        theory_step=lambda problem, rho: inverse(problem.L),
    )
)

"""SAGA-ADMM and SAGA-IU-ADMM: one sample's gradient, corrected by the one it had when last seen.

Assumed: ℓ convex and smooth. For a linear model a gradient is one slope per sample, so the table is n numbers, where
SA-ADMM keeps n points. A step touches its block once; all samples are touched only at the start, with the option
``table="x0"`` (``table_start.py``).
"""

from typing import Any, NamedTuple

import numpy as np

from skadmm.kernels.compile import attach, facts
from skadmm.kernels.samples import refresh_block
from skadmm.solvers.base import Algorithm, Setup, init_table, inverse, register, update_gradient, x_update
from skadmm.solvers.dual_update import Point
from skadmm.solvers.first_order import table_start, x_solve
from skadmm.solvers.first_order.engine import FirstOrderEngine
from skadmm.solvers.first_order.x_solve import gradient_step, gradient_step_uzawa


@facts(reads="corrected", memory=("grad_bar", "slopes", "points", "visited"), by_block=("points", "visited"))
class GradientTable(NamedTuple):
    """The mean of the gradients last seen, and the system (ρAᵀA + shift·I)⁻¹."""

    L: float
    rho: float
    grad: Any
    """The estimate of ∇f(x)."""
    grad_bar: Any
    """(1/n) Σ ∇ℓᵢ(x_τᵢ)."""
    slopes: Any
    """wᵢ ℓ'(aᵢ·x_τᵢ) of each sample; 0 for one that has not been seen."""
    points: Any
    """x_τ of each block, where the slopes are kept on workers and may be lost; otherwise empty."""
    visited: Any
    """For each block whether its samples have been seen."""
    filled: bool
    """True where all samples are seen at x₀ before the first step."""
    scale: float
    """The factor that makes a block's sum an unbiased estimate of the mean: blocks / samples."""
    work: Any
    omega: Any
    shift: float
    system: Any


@facts(reads="corrected", memory=("grad_bar", "slopes", "points", "visited"), by_block=("points", "visited"))
class GradientTableUzawa(NamedTuple):
    """The mean of the gradients last seen, the penalty linearised."""

    L: float
    rho: float
    grad: Any
    grad_bar: Any
    slopes: Any
    points: Any
    visited: Any
    filled: bool
    scale: float
    work: Any
    omega: Any
    L_A: float


def _init_table(rule, samples, point, k):
    """Every sample is seen at x₀, or none is."""
    if not rule.filled:
        return 0
    return refresh_block(samples, k, point.x, rule.slopes, 1.0 / rule.slopes.size, rule.grad_bar)


def _update_gradient(rule, samples, point, k):
    """∇̃f(x) = ∇ℓ̄ + scale · Σ over block k of [∇ℓᵢ(x) − ∇ℓᵢ(x_τᵢ)]; then τᵢ(t) = t in the block."""
    rule.visited[k] = True
    rule.work[:] = 0.0
    touched = refresh_block(samples, k, point.x, rule.slopes, 1.0, rule.work)
    share = 1.0 / rule.slopes.size
    for j in range(point.x.size):
        rule.grad[j] = rule.grad_bar[j] + rule.scale * rule.work[j]
        rule.grad_bar[j] += share * rule.work[j]
    return touched


def _x_update(rule, point, k):
    gradient_step(rule, point)


def _move_uzawa(rule, point, k):
    gradient_step_uzawa(rule, point)


for _cls, _step in ((GradientTable, _x_update), (GradientTableUzawa, _move_uzawa)):
    attach(init_table, _cls, _init_table)
    attach(update_gradient, _cls, _update_gradient)
    attach(x_update, _cls, _step)


def _table(setup: Setup) -> dict[str, Any]:
    n, d = setup.problem.n_samples, setup.problem.n_features
    return {
        "L": 1.0 / setup.step,
        "rho": setup.rho,
        "grad": np.zeros(d),
        "grad_bar": np.zeros(d),
        "slopes": np.zeros(0 if not setup.problem.backend.local_rows else n),  # elsewhere, they stay with their rows
        "points": np.zeros((setup.n_blocks if not setup.problem.backend.local_rows else 0, d)),
        "visited": np.zeros(setup.n_blocks, np.bool_),
        "filled": table_start.filled(setup),
        "scale": setup.n_blocks / n,
        "work": np.zeros(d),
    }


def _start(setup: Setup, point: Point) -> FirstOrderEngine:
    table = _table(setup)
    omega, shift = x_solve.absorb(setup, table["L"])
    system = x_solve.fixed(setup.problem.constraint, setup.rho, shift, extra=x_solve.weighted_ridge(setup))
    return FirstOrderEngine(GradientTable(**table, omega=omega, shift=shift, system=system), setup, point,
                            linearised=False)  # fmt: skip


def _start_uzawa(setup: Setup, point: Point) -> FirstOrderEngine:
    rule = GradientTableUzawa(**_table(setup), omega=setup.problem.omega, L_A=setup.problem.L_A(setup.rho))
    return FirstOrderEngine(rule, setup, point, linearised=True)


register(
    Algorithm(
        name="saga-admm",
        summary="Stochastic ADMM with SAGA's gradient, the penalty kept whole",
        reference="Defazio, Bach and Lacoste-Julien (2014) for the gradient; Huang, Chen and Lu (2016) in ADMM",
        gradient="one sample, corrected",
        linearised=False,
        constant_step=True,
        omega=("system", "fold", "subgradient"),
        start=_start,
        theory_step=lambda problem, rho: inverse(3.0 * problem.L),
        options=table_start.OPTIONS,
    )
)
register(
    Algorithm(
        name="saga-iu-admm",
        summary="Stochastic ADMM with SAGA's gradient by the inexact Uzawa method",
        reference="Defazio, Bach and Lacoste-Julien (2014) for the gradient; Huang, Chen and Lu (2016) in ADMM",
        gradient="one sample, corrected",
        linearised=True,
        constant_step=True,
        omega=("prox", "fold"),
        start=_start_uzawa,
        theory_step=lambda problem, rho: inverse(3.0 * problem.L),
        options=table_start.OPTIONS,
    )
)

"""STOC-ADMM: one sample's gradient, the penalty kept whole, a step that shrinks."""

from typing import Any, NamedTuple

import numpy as np

from skadmm.kernels.compile import attach
from skadmm.kernels.samples import add_block_gradient
from skadmm.regularizers._base import subgradient
from skadmm.solvers.base import Algorithm, Setup, init_table, inverse, no_tables, register, update_gradient, x_update
from skadmm.solvers.dual_update import Point
from skadmm.solvers.first_order import x_solve
from skadmm.solvers.first_order.engine import FirstOrderEngine
from skadmm.solvers.first_order.x_solve import solve


class StochasticGradient(NamedTuple):
    """The gradient of one block, and a system for any step."""

    step: float
    rho: float
    grad: Any
    scale: float
    """The factor that makes a block's sum an unbiased estimate of the mean: blocks / samples."""
    omega: Any
    system: Any
    work: Any


def _update_gradient(rule, samples, point, k):
    rule.grad[:] = 0.0
    return add_block_gradient(samples, k, point.x, rule.scale, rule.grad)


def _x_update(rule, point, k):
    """x ← (I/η + ρAᵀA)⁻¹ [x/η − ℓ'(x) − ρAᵀ(By − c + dual)], η = step/√t."""
    eta = rule.step / np.sqrt(point.clock[0] + 1.0)
    subgradient(rule.omega, point.x, rule.work)
    for j in range(point.x.size):
        rule.work[j] = point.x[j] / eta - rule.grad[j] - rule.work[j] - rule.rho * point.coupling[j]
    solve(rule.system, 1.0 / eta, rule.work, point.x)


attach(init_table, StochasticGradient, no_tables)
attach(update_gradient, StochasticGradient, _update_gradient)
attach(x_update, StochasticGradient, _x_update)


def _start(setup: Setup, point: Point) -> FirstOrderEngine:
    d = setup.problem.n_features
    rule = StochasticGradient(
        step=setup.step,
        rho=setup.rho,
        grad=np.empty(d),
        scale=setup.n_blocks / setup.problem.n_samples,
        omega=setup.problem.omega,
        system=x_solve.shifted(setup.problem.constraint, setup.rho),
        work=np.empty(d),
    )
    return FirstOrderEngine(rule, setup, point, linearised=False)


register(
    Algorithm(
        name="stoc-admm",
        summary="Stochastic ADMM: stochastic gradient, the penalty kept whole",
        reference="Ouyang, He, Tran and Gray (2013)",
        gradient="one sample",
        linearised=False,
        constant_step=False,
        omega=("fold", "subgradient"),
        start=_start,
        theory_step=lambda problem, rho: inverse(problem.L),
    )
)

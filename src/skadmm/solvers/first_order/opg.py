"""OPG-ADMM: online proximal gradient descent ADMM, one sample's gradient and a linearised penalty."""

from typing import Any, NamedTuple

import numpy as np

from skadmm.kernels.compile import attach
from skadmm.kernels.samples import add_block_gradient
from skadmm.regularizers._base import subgradient
from skadmm.solvers.base import Algorithm, Setup, init_table, inverse, no_tables, register, update_gradient, x_update
from skadmm.solvers.dual_update import Point
from skadmm.solvers.first_order.engine import FirstOrderEngine


class OnlineProximalGradient(NamedTuple):
    """The gradient of one block."""

    step: float
    rho: float
    grad: Any
    scale: float
    omega: Any
    work: Any


def _update_gradient(rule, samples, point, k):
    rule.grad[:] = 0.0
    return add_block_gradient(samples, k, point.x, rule.scale, rule.grad)


def _x_update(rule, point, k):
    """x ← x − η [ℓ'(x) + ρAᵀ(Ax + By − c + dual)], η = step/√t."""
    eta = rule.step / np.sqrt(point.clock[0] + 1.0)
    subgradient(rule.omega, point.x, rule.work)
    for j in range(point.x.size):
        point.x[j] -= eta * (rule.grad[j] + rule.work[j] + rule.rho * point.coupling[j])


attach(init_table, OnlineProximalGradient, no_tables)
attach(update_gradient, OnlineProximalGradient, _update_gradient)
attach(x_update, OnlineProximalGradient, _x_update)


def _start(setup: Setup, point: Point) -> FirstOrderEngine:
    d = setup.problem.n_features
    rule = OnlineProximalGradient(
        step=setup.step,
        rho=setup.rho,
        grad=np.empty(d),
        scale=setup.n_blocks / setup.problem.n_samples,
        omega=setup.problem.omega,
        work=np.empty(d),
    )
    return FirstOrderEngine(rule, setup, point, linearised=True)


register(
    Algorithm(
        name="opg-admm",
        summary="Online proximal gradient ADMM: stochastic gradient, inexact Uzawa",
        reference="Suzuki (2013)",
        gradient="one sample",
        linearised=True,
        constant_step=False,
        omega=("fold", "subgradient"),
        start=_start,
        theory_step=lambda problem, rho: inverse(problem.L + problem.L_A(rho)),
    )
)

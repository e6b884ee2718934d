"""RDA-ADMM: regularised dual averaging, the mean of all past gradients and couplings."""

from typing import Any, NamedTuple

import numpy as np

from skadmm.kernels.compile import attach, facts
from skadmm.kernels.samples import add_block_gradient
from skadmm.regularizers._base import subgradient
from skadmm.solvers.base import Algorithm, Setup, init_table, inverse, no_tables, register, update_gradient, x_update
from skadmm.solvers.dual_update import Point
from skadmm.solvers.first_order.engine import FirstOrderEngine


@facts(memory=("grad_sum", "coupling_sum"))
class DualAveraging(NamedTuple):
    """Sums over the past; the coupling is linear in (x, y, dual), so its mean is the coupling of the means."""

    step: float
    rho: float
    grad_sum: Any
    """Σ of the sampled gradients at x_j, subgradients of Ω included."""
    coupling_sum: Any
    """Σ of Aᵀ(Ax_j + By_j − c + dual_j)."""
    scale: float
    omega: Any
    work: Any


def _update_gradient(rule, samples, point, k):
    return add_block_gradient(samples, k, point.x, rule.scale, rule.grad_sum)


def _x_update(rule, point, k):
    """x ← −η [ḡ + ρAᵀ(Ax̄ + Bȳ − c + mean dual)], η = step·√t, means over the t points visited."""
    t = point.clock[0] + 1.0
    eta = rule.step * np.sqrt(t)
    subgradient(rule.omega, point.x, rule.work)
    for j in range(point.x.size):
        rule.grad_sum[j] += rule.work[j]
        rule.coupling_sum[j] += point.coupling[j]
        point.x[j] = -eta * (rule.grad_sum[j] + rule.rho * rule.coupling_sum[j]) / t


attach(init_table, DualAveraging, no_tables)
attach(update_gradient, DualAveraging, _update_gradient)
attach(x_update, DualAveraging, _x_update)


def _start(setup: Setup, point: Point) -> FirstOrderEngine:
    d = setup.problem.n_features
    rule = DualAveraging(
        step=setup.step,
        rho=setup.rho,
        grad_sum=np.zeros(d),
        coupling_sum=np.zeros(d),
        scale=setup.n_blocks / setup.problem.n_samples,
        omega=setup.problem.omega,
        work=np.empty(d),
    )
    return FirstOrderEngine(rule, setup, point, linearised=True)


register(
    Algorithm(
        name="rda-admm",
        summary="Regularised dual averaging ADMM: the mean of past gradients, inexact Uzawa",
        reference="Suzuki (2013), with the proximal term ‖x‖²/(2η)",
        gradient="average (history)",
        linearised=True,
        constant_step=False,
        omega=("fold", "subgradient"),
        start=_start,
        theory_step=lambda problem, rho: inverse(problem.L + problem.L_A(rho)),
    )
)

"""batch-ADMM and batch-IU-ADMM: the stochastic average methods with τᵢ(t) = t for every sample."""

from typing import Any, NamedTuple

import numpy as np

from skadmm.kernels.compile import attach, facts
from skadmm.kernels.samples import mean_gradient
from skadmm.solvers.base import Algorithm, Setup, init_table, inverse, no_tables, register, update_gradient, x_update
from skadmm.solvers.dual_update import Point
from skadmm.solvers.first_order import x_solve
from skadmm.solvers.first_order.engine import FirstOrderEngine
from skadmm.solvers.first_order.x_solve import gradient_step, gradient_step_uzawa


@facts(reads="all")
class FullGradient(NamedTuple):
    """The gradient of the mean loss at x, and the system (ρAᵀA + shift·I)⁻¹."""

    L: float
    rho: float
    grad: Any
    omega: Any
    shift: float
    system: Any
    work: Any
    n_samples: int


@facts(reads="all")
class FullGradientUzawa(NamedTuple):
    """The gradient of the mean loss at x, the penalty linearised."""

    L: float
    rho: float
    grad: Any
    omega: Any
    L_A: float
    work: Any
    n_samples: int


def _update_gradient(rule, samples, point, k):
    mean_gradient(samples, point.x, rule.grad)
    return rule.n_samples


def _x_update(rule, point, k):
    gradient_step(rule, point)


def _move_uzawa(rule, point, k):
    gradient_step_uzawa(rule, point)


for _cls, _step in ((FullGradient, _x_update), (FullGradientUzawa, _move_uzawa)):
    attach(init_table, _cls, no_tables)
    attach(update_gradient, _cls, _update_gradient)
    attach(x_update, _cls, _step)


def _common(setup: Setup) -> dict[str, Any]:
    d = setup.problem.n_features
    return {
        "L": 1.0 / setup.step,
        "rho": setup.rho,
        "grad": np.empty(d),
        "work": np.empty(d),
        "n_samples": setup.problem.n_samples,
    }


def _start(setup: Setup, point: Point) -> FirstOrderEngine:
    common = _common(setup)
    omega, shift = x_solve.absorb(setup, common["L"])
    system = x_solve.fixed(setup.problem.constraint, setup.rho, shift, extra=x_solve.weighted_ridge(setup))
    rule = FullGradient(**common, omega=omega, shift=shift, system=system)
    return FirstOrderEngine(rule, setup, point, linearised=False, full=True)


def _start_uzawa(setup: Setup, point: Point) -> FirstOrderEngine:
    rule = FullGradientUzawa(**_common(setup), omega=setup.problem.omega, L_A=setup.problem.L_A(setup.rho))
    return FirstOrderEngine(rule, setup, point, linearised=True, full=True)


register(
    Algorithm(
        name="batch-admm",
        summary="Linearised ADMM on all samples, the penalty kept whole",
        reference="Zhong and Kwok (2013), the batch version of SA-ADMM",
        gradient="all samples",
        linearised=False,
        constant_step=True,
        omega=("system", "fold", "subgradient"),
        start=_start,
        theory_step=lambda problem, rho: inverse(problem.L_full),
        full=True,
    )
)
register(
    Algorithm(
        name="batch-iu-admm",
        summary="Linearised ADMM on all samples by the inexact Uzawa method",
        reference="Zhong and Kwok (2013), the batch version of SA-IU-ADMM",
        gradient="all samples",
        linearised=True,
        constant_step=True,
        omega=("prox", "fold"),
        start=_start_uzawa,
        theory_step=lambda problem, rho: inverse(problem.L_full),
        full=True,
    )
)

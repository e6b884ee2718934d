"""ASVRG-ADMM and ASVRG-IU-ADMM: variance reduction with momentum towards the snapshot.

The gradient is estimated at x = (1 − θ) x̃ + θ z, and z takes a step 1/θ times as long; z is the sequence that y and
the dual belong to, so it is ``point.x``. At the end of an epoch x̃ ← (1 − θ) x̃ + θ · (the mean of z).

Assumed: ℓ convex and smooth. ``form="general"`` lowers θ from epoch to epoch, (1 − θ⁺)/θ⁺² = 1/θ², a rate of
1/T² in the number of epochs; ``form="strongly-convex"`` keeps θ, restarts every epoch at the snapshot, and needs an A
of full row rank and a smooth Ω. ``theta`` is the first θ; the theory allows up to 1 − 1/(α − 1) at a step of 1/(αL), so
1/2 at the theory's step 1/(3L). θ = 1 switches the momentum off for the whole run: the method is then SVRG-ADMM.

Liu, Shang and Cheng update y before z; here, as for all methods of this package, y comes second.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from skadmm import _checks
from skadmm.kernels.compile import attach, facts
from skadmm.kernels.rows import copy_into
from skadmm.kernels.samples import add_block_change
from skadmm.regularizers._base import prox, subgradient
from skadmm.solvers.base import (
    Algorithm,
    Option,
    Setup,
    chosen,
    init_table,
    inverse,
    register,
    update_gradient,
    x_update,
)
from skadmm.solvers.dual_update import Point
from skadmm.solvers.first_order import snapshot as _snapshot
from skadmm.solvers.first_order import x_solve
from skadmm.solvers.first_order.engine import FirstOrderEngine
from skadmm.solvers.first_order.snapshot import add_to_total, first_epoch, next_epoch
from skadmm.solvers.first_order.x_solve import solve


@facts(memory=(*_snapshot.MEMORY, "theta"))
class Accelerated(NamedTuple):
    """The snapshot and θ, and a system for any shift."""

    L: float
    rho: float
    grad: Any
    """The estimate of ∇f at the point of evaluation."""
    snapshot: Any
    full: Any
    slopes: Any
    total: Any
    """Σ of the epoch's z."""
    y_snapshot: Any
    y_total: Any
    every: int
    scale: float
    form: Any
    work: Any
    theta: Any
    """[θ]."""
    decreasing: bool
    extrapolated: Any
    """(1 − θ) x̃ + θ z."""
    omega: Any
    ridge: float
    """The strength of a squared ℓ2 that is part of the system."""
    system: Any


@facts(memory=(*_snapshot.MEMORY, "theta"))
class AcceleratedUzawa(NamedTuple):
    """The snapshot and θ, the penalty linearised."""

    L: float
    rho: float
    grad: Any
    snapshot: Any
    full: Any
    slopes: Any
    total: Any
    y_snapshot: Any
    y_total: Any
    every: int
    scale: float
    form: Any
    work: Any
    theta: Any
    decreasing: bool
    extrapolated: Any
    omega: Any
    L_A: float


def _update_gradient(rule, samples, point, k):
    theta = rule.theta[0]
    touched = next_epoch(rule, samples, point, theta)
    if touched > 0 and rule.decreasing:
        theta = 0.5 * (math.sqrt(theta**4 + 4.0 * theta**2) - theta**2)
        rule.theta[0] = theta
    for j in range(point.x.size):
        rule.extrapolated[j] = (1.0 - theta) * rule.snapshot[j] + theta * point.x[j]
    copy_into(rule.full, rule.grad)
    return touched + add_block_change(samples, k, rule.extrapolated, rule.slopes, rule.scale, rule.grad)


def _x_update(rule, point, k):
    """z ← (ρAᵀA + θLI)⁻¹ [θL z − ρAᵀ(By − c + dual) − ∇̃f(x)]."""
    L = rule.theta[0] * rule.L
    subgradient(rule.omega, rule.extrapolated, rule.work)
    for j in range(point.x.size):
        rule.work[j] = L * point.x[j] - rule.rho * point.coupling[j] - rule.grad[j] - rule.work[j]
    solve(rule.system, L + rule.ridge, rule.work, point.x)
    add_to_total(rule, point)


def _move_uzawa(rule, point, k):
    """z ← prox of Ω/(L_A + θL) at z − [∇̃f(x) + ρAᵀ(Az + By − c + dual)] / (L_A + θL)."""
    step = 1.0 / (rule.L_A + rule.theta[0] * rule.L)
    for j in range(point.x.size):
        rule.work[j] = point.x[j] - step * (rule.grad[j] + rule.rho * point.coupling[j])
    prox(rule.omega, rule.work, step, point.x)
    add_to_total(rule, point)


for _cls, _step in ((Accelerated, _x_update), (AcceleratedUzawa, _move_uzawa)):
    attach(init_table, _cls, first_epoch)
    attach(update_gradient, _cls, _update_gradient)
    attach(x_update, _cls, _step)


def _checked_theta(value: Any, name: str) -> float:
    theta = _checks.number(value, name, above=0)
    if theta > 1:
        raise ValueError(f"{name}={value!r}: it takes a number > 0 and ≤ 1")
    return theta


OPTIONS = {**_snapshot.OPTIONS, "theta": Option(0.5, _checked_theta, "weight of the new iterate against the snapshot")}


def _parts(setup: Setup, *, linearised: bool) -> dict[str, Any]:
    options, d = chosen(setup, OPTIONS), setup.problem.n_features
    theta = options["theta"]
    return _snapshot.parts(setup, linearised=linearised) | {
        "theta": np.array([theta]),
        "decreasing": options["form"] == "general" and theta < 1,
        "extrapolated": np.zeros(d),
    }


def _start(setup: Setup, point: Point) -> FirstOrderEngine:
    omega, ridge = x_solve.absorb(setup, 0.0)
    system = x_solve.shifted(setup.problem.constraint, setup.rho, extra=x_solve.weighted_ridge(setup))
    rule = Accelerated(**_parts(setup, linearised=False), omega=omega, ridge=ridge, system=system)
    return FirstOrderEngine(rule, setup, point, linearised=False)


def _start_uzawa(setup: Setup, point: Point) -> FirstOrderEngine:
    parts = _parts(setup, linearised=True)
    rule = AcceleratedUzawa(**parts, omega=setup.problem.omega, L_A=setup.problem.L_A(setup.rho))
    return FirstOrderEngine(rule, setup, point, linearised=True)


register(
    Algorithm(
        name="asvrg-admm",
        summary="Accelerated variance-reduced stochastic ADMM, the penalty kept whole",
        reference="Liu, Shang and Cheng (2017), Q = I",
        gradient="one sample, corrected",
        linearised=False,
        constant_step=True,
        omega=("system", "fold", "subgradient"),
        start=_start,
        theory_step=lambda problem, rho: inverse(3.0 * problem.L),
        options=OPTIONS,
    )
)
register(
    Algorithm(
        name="asvrg-iu-admm",
        summary="Accelerated variance-reduced stochastic ADMM by the inexact Uzawa method",
        reference="Liu, Shang and Cheng (2017), Q = γI − (ηρ/θ)AᵀA",
        gradient="one sample, corrected",
        linearised=True,
        constant_step=True,
        omega=("prox", "fold"),
        start=_start_uzawa,
        theory_step=lambda problem, rho: inverse(3.0 * problem.L),
        options=OPTIONS,
    )
)

"""SVRG-ADMM and SVRG-IU-ADMM: one sample's gradient, corrected by a snapshot's; no table of iterates.

Assumed: ℓ convex and smooth. ``form="general"`` is for any convex problem: the iterates continue from epoch to epoch,
and their averages converge at a rate of 1/T. ``form="strongly-convex"`` restarts every epoch at the means of the last
one and sets the dual from the snapshot's gradient; it needs an A of full row rank and a smooth Ω. It converges linearly
where the mean loss plus Ω is strongly convex. ``epoch`` is the number of passes between snapshots.

Zheng and Kwok update y before x; here, as for all methods of this package, x comes first.
"""

from typing import Any, NamedTuple

from skadmm.kernels.compile import attach, facts
from skadmm.kernels.rows import copy_into
from skadmm.kernels.samples import add_block_change
from skadmm.problem.problem import Problem
from skadmm.solvers.base import Algorithm, Setup, init_table, inverse, register, update_gradient, x_update
from skadmm.solvers.dual_update import Point
from skadmm.solvers.first_order import snapshot as _snapshot
from skadmm.solvers.first_order import x_solve
from skadmm.solvers.first_order.engine import FirstOrderEngine
from skadmm.solvers.first_order.snapshot import add_to_total, first_epoch, next_epoch
from skadmm.solvers.first_order.x_solve import gradient_step, gradient_step_uzawa


@facts(memory=_snapshot.MEMORY)
class VarianceReduced(NamedTuple):
    """The snapshot, and the system (ρAᵀA + shift·I)⁻¹."""

    L: float
    rho: float
    grad: Any
    """The estimate of ∇f(x)."""
    snapshot: Any
    """x̃."""
    full: Any
    """∇f(x̃)."""
    slopes: Any
    """wᵢ ℓ'(aᵢ·x̃) of each sample."""
    total: Any
    """Σ of the epoch's iterates."""
    y_snapshot: Any
    y_total: Any
    every: int
    """Steps of an epoch."""
    scale: float
    """The factor that makes a block's sum an unbiased estimate of the mean: blocks / samples."""
    form: Any
    work: Any
    omega: Any
    shift: float
    system: Any


@facts(memory=_snapshot.MEMORY)
class VarianceReducedUzawa(NamedTuple):
    """The snapshot, the penalty linearised."""

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
    omega: Any
    L_A: float


def _update_gradient(rule, samples, point, k):
    touched = next_epoch(rule, samples, point, 1.0)
    copy_into(rule.full, rule.grad)
    return touched + add_block_change(samples, k, point.x, rule.slopes, rule.scale, rule.grad)


def _x_update(rule, point, k):
    gradient_step(rule, point)
    add_to_total(rule, point)


def _move_uzawa(rule, point, k):
    gradient_step_uzawa(rule, point)
    add_to_total(rule, point)


for _cls, _step in ((VarianceReduced, _x_update), (VarianceReducedUzawa, _move_uzawa)):
    attach(init_table, _cls, first_epoch)
    attach(update_gradient, _cls, _update_gradient)
    attach(x_update, _cls, _step)


def _start(setup: Setup, point: Point) -> FirstOrderEngine:
    parts = _snapshot.parts(setup, linearised=False)
    omega, shift = x_solve.absorb(setup, parts["L"])
    system = x_solve.fixed(setup.problem.constraint, setup.rho, shift, extra=x_solve.weighted_ridge(setup))
    rule = VarianceReduced(**parts, omega=omega, shift=shift, system=system)
    return FirstOrderEngine(rule, setup, point, linearised=False)


def _start_uzawa(setup: Setup, point: Point) -> FirstOrderEngine:
    parts = _snapshot.parts(setup, linearised=True)
    rule = VarianceReducedUzawa(**parts, omega=setup.problem.omega, L_A=setup.problem.L_A(setup.rho))
    return FirstOrderEngine(rule, setup, point, linearised=True)


def _theory_step(problem: Problem, rho: float) -> float:
    """1/(10L): the contraction of Zheng and Kwok's theorem needs less than 1/(8L) once epochs are long."""
    return inverse(10.0 * problem.L)


register(
    Algorithm(
        name="svrg-admm",
        summary="Variance-reduced stochastic ADMM, the penalty kept whole",
        reference="Zheng and Kwok (2016), G = I",
        gradient="one sample, corrected",
        linearised=False,
        constant_step=True,
        omega=("system", "fold", "subgradient"),
        start=_start,
        theory_step=_theory_step,
        options=_snapshot.OPTIONS,
    )
)
register(
    Algorithm(
        name="svrg-iu-admm",
        summary="Variance-reduced stochastic ADMM by the inexact Uzawa method",
        reference="Zheng and Kwok (2016), G = γI − ηρAᵀA",
        gradient="one sample, corrected",
        linearised=True,
        constant_step=True,
        omega=("prox", "fold"),
        start=_start_uzawa,
        theory_step=_theory_step,
        options=_snapshot.OPTIONS,
    )
)

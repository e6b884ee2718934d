"""ADMM itself: the x-step (admm_x), nonlinear, solved to a tolerance on all samples.

    x ← argmin over x of f(x) + (μ/2)‖x‖² + (ρ/2)‖Ax + By − c + dual‖²

by Newton's method with conjugate gradients inside and a line search outside. Every gradient, every curvature
product and every trial of the line search is a pass over the data and counts as one.
"""

from typing import Any, NamedTuple

import numpy as np

from skadmm.kernels.compile import attach, facts, kernel
from skadmm.kernels.rows import copy_into, n_rows, row_add, row_dot
from skadmm.kernels.samples import mean_curvature_product, mean_loss_and_gradient
from skadmm.regularizers._base import subgradient
from skadmm.solvers.base import Algorithm, Setup, init_table, inverse, no_tables, register, update_gradient, x_update
from skadmm.solvers.dual_update import Point
from skadmm.solvers.first_order import x_solve
from skadmm.solvers.first_order.engine import FirstOrderEngine

NEWTON_STEPS = 50


@facts(allocates=True)
class ExactStep(NamedTuple):
    """The x-step's constants and scratch vectors."""

    rho: float
    ridge: Any
    """The strength of the squared ℓ2 norm for each feature."""
    omega: Any
    """Ω where it enters by its subgradient at the start of the step; Zero otherwise."""
    A: Any
    tolerance: float
    """The tolerance on the gradient of the x-step, relative to its size at x = 0, y = 0."""
    scale: float
    linear: Any
    """ρAᵀ(By − c + dual) plus the subgradient."""
    grad: Any
    direction: Any
    residual: Any
    conjugate: Any
    image: Any
    trial: Any
    x_new: Any


@kernel
def _quadratic_product(rule, v, out):
    """out ← out + ρAᵀAv + ridge·v; returns half of v·(that)."""
    energy = 0.0
    for e in range(n_rows(rule.A)):
        Av = row_dot(rule.A, e, v)
        energy += rule.rho * Av * Av
        row_add(rule.A, e, rule.rho * Av, out)
    for j in range(v.size):
        energy += rule.ridge[j] * v[j] * v[j]
        out[j] += rule.ridge[j] * v[j]
    return 0.5 * energy


@kernel
def _value_and_gradient(rule, samples, x):
    """The x-step's objective, up to a constant; its gradient in ``rule.grad``."""
    value = mean_loss_and_gradient(samples, x, rule.grad)
    value += _quadratic_product(rule, x, rule.grad)
    for j in range(x.size):
        value += rule.linear[j] * x[j]
        rule.grad[j] += rule.linear[j]
    return value


@kernel
def _newton_direction(rule, samples, x, grad_norm):
    """``rule.direction`` ← −(∇²)⁻¹∇ by conjugate gradients; returns the passes spent."""
    r, p, q = rule.residual, rule.conjugate, rule.image
    now = 0.0
    for j in range(x.size):
        rule.direction[j] = 0.0
        r[j] = -rule.grad[j]
        p[j] = r[j]
        now += r[j] * r[j]
    goal = min(0.1, np.sqrt(grad_norm / rule.scale)) * grad_norm
    passes = 0
    for _ in range(2 * x.size + 20):
        mean_curvature_product(samples, x, p, q)
        passes += 1
        _quadratic_product(rule, p, q)
        along = 0.0
        size = 0.0
        for j in range(x.size):
            along += p[j] * q[j]
            size += p[j] * p[j]
        if along <= 1e-16 * size:
            if passes == 1:
                copy_into(r, rule.direction)
            break
        length = now / along
        after = 0.0
        for j in range(x.size):
            rule.direction[j] += length * p[j]
            r[j] -= length * q[j]
            after += r[j] * r[j]
        if np.sqrt(after) <= goal:
            break
        for j in range(x.size):
            p[j] = r[j] + (after / now) * p[j]
        now = after
    return passes


def _update_gradient(rule, samples, point, k):
    """The whole minimisation reads rows, so it happens here; ``x_update`` only takes the result."""
    subgradient(rule.omega, point.x, rule.linear)
    for j in range(point.x.size):
        rule.linear[j] += rule.rho * point.coupling[j]
        rule.x_new[j] = point.x[j]
    value = _value_and_gradient(rule, samples, rule.x_new)
    passes = 1
    hidden, last_norm = False, np.inf
    for _ in range(NEWTON_STEPS):
        grad_norm = np.sqrt(np.sum(rule.grad * rule.grad))
        if grad_norm <= rule.tolerance * rule.scale or (hidden and grad_norm >= 0.5 * last_norm):
            break
        last_norm = grad_norm
        passes += _newton_direction(rule, samples, rule.x_new, grad_norm)
        slope = np.sum(rule.grad * rule.direction)
        # Close to the solution rounding hides the decrease: the whole step is taken while the gradient shrinks.
        hidden = -slope <= 1e-12 * abs(value)
        length = 1.0
        while True:
            for j in range(point.x.size):
                rule.trial[j] = rule.x_new[j] + length * rule.direction[j]
            trial_value = _value_and_gradient(rule, samples, rule.trial)
            passes += 1
            if hidden or trial_value <= value + 1e-4 * length * slope:
                break
            length *= 0.5
            if length < 1e-12:
                return passes * n_rows(samples.rows)
        copy_into(rule.trial, rule.x_new)
        value = trial_value
    return passes * n_rows(samples.rows)


def _x_update(rule, point, k):
    copy_into(rule.x_new, point.x)


attach(init_table, ExactStep, no_tables)
attach(update_gradient, ExactStep, _update_gradient)
attach(x_update, ExactStep, _x_update)


def _start(setup: Setup, point: Point) -> FirstOrderEngine:
    problem = setup.problem
    omega, ridge = x_solve.absorb(setup, 0.0)
    extra = x_solve.weighted_ridge(setup)
    rule = ExactStep(
        rho=setup.rho,
        ridge=np.full(problem.n_features, ridge if extra is None else extra),
        omega=omega,
        A=problem.constraint.A_rows,
        tolerance=1e-12,
        scale=max(problem.gradient_scale, np.finfo(float).tiny),
        **{name: np.empty(problem.n_features) for name in ExactStep._fields[6:]},
    )
    return FirstOrderEngine(rule, setup, point, linearised=False, full=True)


register(
    Algorithm(
        name="exact-admm",
        summary="ADMM with its nonlinear x-step solved to rounding",
        reference="Boyd, Parikh, Chu, Peleato and Eckstein (2011)",
        gradient="all samples, nonlinear",
        linearised=False,
        constant_step=True,
        omega=("system", "fold", "subgradient"),
        start=_start,
        theory_step=lambda problem, rho: inverse(problem.L_full),
        full=True,
        stepless=True,
    )
)

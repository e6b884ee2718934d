"""Epochs around a snapshot x̃: what SVRG-ADMM and ASVRG-ADMM share.

During an epoch the gradient of block k at x is estimated by

    ∇f(x̃) + scale · Σ over the block of [∇ℓᵢ(x) − ∇ℓᵢ(x̃)]

At its end x̃ moves to the mean of the epoch's points. For a linear model a gradient is one slope per sample, so the n
slopes at x̃ are kept, and a step touches its block once. The snapshot itself touches all n samples.

How the next epoch starts is the *form*: ``GoesOn`` for convex problems, ``StartsAnew`` for strongly convex ones.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from skadmm import _checks
from skadmm.kernels.compile import attach, generic, jitable
from skadmm.kernels.rows import copy_into, row_dot
from skadmm.kernels.samples import mean_gradient_and_slopes
from skadmm.problem.constraint import Constraint
from skadmm.regularizers._base import subgradient
from skadmm.solvers import dual_update
from skadmm.solvers.base import Option, Setup, chosen
from skadmm.solvers.dual_update import couple
from skadmm.solvers.first_order import x_solve
from skadmm.solvers.first_order.x_solve import solve

FORMS = ("general", "strongly-convex")
MEMORY = ("snapshot", "full", "slopes", "total", "y_snapshot", "y_total")
"""The arrays of a rule with a snapshot that a warm start carries on."""


@generic
def remember(form: Any, rule: Any, point: Any) -> None:
    """Keep the y of the previous step."""


@generic
def restart(form: Any, rule: Any, point: Any, theta: float) -> None:
    """Set x, y and the dual to where the epoch of a new snapshot starts."""


class GoesOn(NamedTuple):
    """x, y and the dual continue from the end of the last epoch: the general convex form."""


attach(remember, GoesOn, lambda form, rule, point: None)
attach(restart, GoesOn, lambda form, rule, point, theta: None)


class StartsAnew(NamedTuple):
    """x and y start at the epoch's means, the dual at −(1/ρ)(Aᵀ)†∇F(x̃): the strongly convex form."""

    A: Any
    gram: Any
    """(AAᵀ)⁻¹: A has full row rank, so (Aᵀ)† = (AAᵀ)⁻¹A."""
    rho: float
    omega: Any
    """Ω, which is smooth: F is the mean loss plus Ω."""
    split: Any
    coupling: float
    """The θ of ``couple``."""
    slope: Any
    image: Any


def _remember(form, rule, point):
    for j in range(point.y.size):
        rule.y_total[j] += point.y[j]


def _restart(form, rule, point, theta):
    for j in range(point.y.size):
        rule.y_snapshot[j] += theta * (rule.y_total[j] / rule.every - rule.y_snapshot[j])
    rule.y_total[:] = 0.0
    copy_into(rule.snapshot, point.x)
    copy_into(rule.y_snapshot, point.y)
    subgradient(form.omega, rule.snapshot, form.slope)
    for j in range(point.x.size):
        form.slope[j] += rule.full[j]
    for e in range(point.dual.size):
        form.image[e] = -row_dot(form.A, e, form.slope) / form.rho
    solve(form.gram, 0.0, form.image, point.dual)
    couple(form.split, point, form.coupling)


attach(remember, StartsAnew, _remember)
attach(restart, StartsAnew, _restart)


@jitable
def first_epoch(rule, samples, point, k):
    """x̃ = x₀: the ``init_table`` of both methods, for all blocks at once."""
    if k > 0:
        return 0
    copy_into(point.x, rule.snapshot)
    rule.total[:] = 0.0
    rule.y_total[:] = 0.0
    touched = mean_gradient_and_slopes(samples, rule.snapshot, rule.slopes, rule.full)
    if rule.y_snapshot.size == point.y.size:
        copy_into(point.y, rule.y_snapshot)
    restart(rule.form, rule, point, 0.0)
    return touched


@jitable
def next_epoch(rule, samples, point, theta):
    """x̃ ← (1 − θ) x̃ + θ · (the mean of the epoch's iterates), where an epoch ends; returns the samples touched."""
    if point.clock[0] == 0:
        return 0
    remember(rule.form, rule, point)
    if point.clock[0] % rule.every != 0:
        return 0
    for j in range(point.x.size):
        rule.snapshot[j] += theta * (rule.total[j] / rule.every - rule.snapshot[j])
    rule.total[:] = 0.0
    touched = mean_gradient_and_slopes(samples, rule.snapshot, rule.slopes, rule.full)
    restart(rule.form, rule, point, theta)
    return touched


@jitable
def add_to_total(rule, point):
    """Add a step's iterate to the sum, for the mean."""
    for j in range(point.x.size):
        rule.total[j] += point.x[j]


def _checked_form(value: Any, name: str) -> str:
    if value not in FORMS:
        raise ValueError(f"{name}={value!r}: it takes one of {', '.join(map(repr, FORMS))}")
    return str(value)


OPTIONS: Mapping[str, Option] = {
    "epoch": Option(2.0, lambda value, name: _checks.number(value, name, above=0), "passes between snapshots"),
    "form": Option("general", _checked_form, "'general' or 'strongly-convex'"),
}


def parts(setup: Setup, *, linearised: bool) -> dict[str, Any]:
    """The fields that a rule with a snapshot is built from, apart from its x-step."""
    problem, options = setup.problem, chosen(setup, OPTIONS)
    n, d = problem.n_samples, problem.n_features
    anew = options["form"] == "strongly-convex"
    p = problem.n_split if anew else 0
    return {
        "L": 1.0 / setup.step,
        "rho": setup.rho,
        "grad": np.zeros(d),
        "snapshot": np.zeros(d),
        "full": np.zeros(d),
        "slopes": np.zeros(n),
        "total": np.zeros(d),
        "y_snapshot": np.zeros(p),
        "y_total": np.zeros(p),
        "every": max(1, round(options["epoch"] * setup.n_blocks)),
        "scale": setup.n_blocks / n,
        "form": _starts_anew(setup, linearised) if anew else GoesOn(),
        "work": np.zeros(d),
    }


def _starts_anew(setup: Setup, linearised: bool) -> StartsAnew:
    problem, constraint = setup.problem, setup.problem.constraint
    if not problem.omega.smooth:
        raise ValueError(
            f"form='strongly-convex' needs a smooth omega, got {type(problem.omega).__name__}: form='general' takes any"
        )
    if not constraint.has_full_row_rank:
        raise ValueError(
            f"form='strongly-convex' needs an A of full row rank, and this one ({constraint.A.shape[0]} rows, "
            f"{constraint.A.shape[1]} columns) does not have it: form='general' takes any A"
        )
    m = constraint.n_constraints
    gram = x_solve.ScaledIdentity(1.0)
    if m:
        gram = x_solve.fixed(Constraint(constraint.A.T, None, None, m), 1.0, 0.0)
    return StartsAnew(
        A=constraint.A_rows,
        gram=gram,
        rho=setup.rho,
        omega=problem.omega,
        split=dual_update.build(problem, setup.rho),
        coupling=1.0 if linearised else 0.0,
        slope=np.zeros(problem.n_features),
        image=np.zeros(m),
    )

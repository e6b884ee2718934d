"""SA-ADMM and SA-IU-ADMM: stochastic average ADMM, the paper's methods.

Every sample keeps the point x_τᵢ at which it was last seen (samples of one block share it) and its slope there. How
these tables start is the option ``table`` (``table_start.py``).
"""

from typing import Any, NamedTuple

import numpy as np

from skadmm.kernels.compile import attach, facts
from skadmm.kernels.samples import refresh_block
from skadmm.regularizers._base import prox, subgradient
from skadmm.solvers.base import BY_GRADIENT, Algorithm, Setup, init_table, inverse, register, update_gradient, x_update
from skadmm.solvers.dual_update import Point
from skadmm.solvers.first_order import table_start, x_solve
from skadmm.solvers.first_order.engine import FirstOrderEngine
from skadmm.solvers.first_order.x_solve import solve


@facts(reads="average", memory=("x_bar", "grad_bar", "points", "slopes", "visited"),
       by_block=("points", "share", "visited"))  # fmt: skip
class StochasticAverage(NamedTuple):
    """The averages over τᵢ and the tables behind them, for the update our_upd_x."""

    L: float
    rho: float
    x_bar: Any
    """(1/n) Σ x_τᵢ."""
    grad_bar: Any
    """(1/n) Σ ∇ℓᵢ(x_τᵢ)."""
    points: Any
    """x_τ of each block, one row per block."""
    slopes: Any
    """wᵢ ℓ'(aᵢ·x_τᵢ) of each sample; 0 for one that has not been seen."""
    visited: Any
    """For each block whether its samples have been seen."""
    filled: bool
    """True where all samples are seen at x₀ before the first step."""
    share: Any
    """The share of each block among the samples."""
    omega: Any
    """Ω where it enters by its subgradient; Zero where it is folded or part of the system."""
    shift: float
    """L, plus the strength of a squared ℓ2 that is part of the system."""
    system: Any
    """(ρAᵀA + shift·I)⁻¹."""
    work: Any


@facts(reads="average", memory=("x_bar", "grad_bar", "points", "slopes", "visited"),
       by_block=("points", "share", "visited"))  # fmt: skip
class StochasticAverageUzawa(NamedTuple):
    """The same averages, for the linearised updates uzawa and our_up_x2."""

    L: float
    rho: float
    x_bar: Any
    grad_bar: Any
    points: Any
    slopes: Any
    visited: Any
    filled: bool
    share: Any
    omega: Any
    """Ω, which enters by its proximal step."""
    L_A: float
    """A bound of the eigenvalues of ρAᵀA."""
    work: Any


def _init_table(rule, samples, point, k):
    """Every sample is seen at x₀, or none is."""
    return BY_GRADIENT if rule.filled else 0


def _update_gradient(rule, samples, point, k):
    """τᵢ(t) = t for the samples of block k."""
    rule.visited[k] = True
    return refresh_block(samples, k, point.x, rule.slopes, 1.0 / rule.slopes.size, rule.grad_bar)


def _x_update(rule, point, k):
    """x ← (ρAᵀA + LI)⁻¹ [L x̄ − ρAᵀ(By − c + dual) − ∇ℓ̄]."""
    share = rule.share[k]
    subgradient(rule.omega, point.x, rule.work)
    for j in range(point.x.size):
        rule.x_bar[j] += share * (point.x[j] - rule.points[k, j])
        rule.points[k, j] = point.x[j]
        rule.work[j] = rule.L * rule.x_bar[j] - rule.rho * point.coupling[j] - rule.grad_bar[j] - rule.work[j]
    solve(rule.system, rule.shift, rule.work, point.x)


def _move_uzawa(rule, point, k):
    """x ← prox of Ω/(L_A + L) at (L x̄ + L_A x − [∇ℓ̄ + ρAᵀ(Ax + By − c + dual)]) / (L_A + L)."""
    share = rule.share[k]
    step = 1.0 / (rule.L_A + rule.L)
    for j in range(point.x.size):
        x = point.x[j]
        x_bar = rule.x_bar[j] + share * (x - rule.points[k, j])
        rule.x_bar[j] = x_bar
        rule.points[k, j] = x
        rule.work[j] = step * (rule.L * x_bar + rule.L_A * x - rule.grad_bar[j] - rule.rho * point.coupling[j])
    prox(rule.omega, rule.work, step, point.x)


for _cls, _step in ((StochasticAverage, _x_update), (StochasticAverageUzawa, _move_uzawa)):
    attach(init_table, _cls, _init_table)
    attach(update_gradient, _cls, _update_gradient)
    attach(x_update, _cls, _step)


def _averages(setup: Setup) -> dict[str, Any]:
    n, d = setup.problem.n_samples, setup.problem.n_features
    return {
        "L": 1.0 / setup.step,
        "rho": setup.rho,
        "x_bar": np.zeros(d),
        "grad_bar": np.zeros(d),
        "points": np.zeros((setup.n_blocks, d)),
        "slopes": np.zeros(0 if not setup.problem.backend.local_rows else n),  # elsewhere, they stay with their rows
        "visited": np.zeros(setup.n_blocks, np.bool_),
        "filled": table_start.filled(setup),
        "share": setup.block_sizes / n,
        "work": np.empty(d),
    }


def _start(setup: Setup, point: Point) -> FirstOrderEngine:
    averages = _averages(setup)
    omega, shift = x_solve.absorb(setup, averages["L"])
    system = x_solve.fixed(setup.problem.constraint, setup.rho, shift, extra=x_solve.weighted_ridge(setup))
    rule = StochasticAverage(**averages, omega=omega, shift=shift, system=system)
    return FirstOrderEngine(rule, setup, point, linearised=False)


def _start_uzawa(setup: Setup, point: Point) -> FirstOrderEngine:
    rule = StochasticAverageUzawa(**_averages(setup), omega=setup.problem.omega, L_A=setup.problem.L_A(setup.rho))
    return FirstOrderEngine(rule, setup, point, linearised=True)


register(
    Algorithm(
        name="sa-admm",
        summary="Stochastic average ADMM, the penalty kept whole",
        reference="Zhong and Kwok (2013), update our_upd_x",
        gradient="average",
        linearised=False,
        constant_step=True,
        omega=("system", "fold", "subgradient"),
        start=_start,
        theory_step=lambda problem, rho: inverse(problem.L),
        options=table_start.OPTIONS,
    )
)
register(
    Algorithm(
        name="sa-iu-admm",
        summary="Stochastic average ADMM by the inexact Uzawa method",
        reference="Zhong and Kwok (2013), updates uzawa and our_up_x2",
        gradient="average",
        linearised=True,
        constant_step=True,
        omega=("prox", "fold"),
        start=_start_uzawa,
        theory_step=lambda problem, rho: inverse(problem.L),
        options=table_start.OPTIONS,
    )
)

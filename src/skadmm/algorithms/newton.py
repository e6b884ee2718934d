"""san-admm as a method: which engine a problem gets."""

from typing import Any

import numpy as np

from skadmm.algorithms import _contracted, _multipliers, _paths, _working_set
from skadmm.algorithms._base import Algorithm, Engine, Setup, inverse, register
from skadmm.algorithms._coordinates import CoordinateEngine, pull
from skadmm.algorithms._multipliers import MultiplierEngine
from skadmm.algorithms._proximal import ProximalEngine
from skadmm.algorithms._relay import FirstEngine, Relay
from skadmm.algorithms._split import Point
from skadmm.algorithms.san import SanEngine
from skadmm.kernels.rows import CSRRows
from skadmm.problem import Problem

LARGEST = 5000
"""The most features for which a dense d × d matrix is formed and inverted at once."""
MANY = 800
"""From this many features on, units or a working set are quicker, where they apply."""
SOME = 150
"""From this many on, units are quicker where the solution is sparse or fused …"""
SPARSE, GLANCE = 0.01, 1000
"""… which is to be expected when λ is at least this share of the largest slope, seen on so many samples."""
READY = 100_000_000
"""Up to this many stored entries a copy of the units' columns is no matter."""
FEW_SAMPLES = 5
"""So few samples a feature leave nothing for a growing first pass to win, and units are quicker there too."""
LAST_RESORT = 2000
"""Up to this many features the method of multipliers takes over from a solver that has stalled."""

FEW_LEAVING = 0.5
"""Few features will leave zero, where this share of them, at most, wants to at once."""


def refusal(problem: Problem) -> str | None:
    """Why san-admm cannot take a problem; None when it can."""
    if problem.n_features > LARGEST:
        if problem.remote:
            return f"{problem.n_features} features are more than second-order steps on a cluster can hold ({LARGEST})"
        few_units = _contracted.applies(problem) and _contracted.starting_units(problem) <= LARGEST
        if not few_units and not _working_set.applies(problem):
            return (
                f"{problem.n_features} features are more than second-order steps can hold ({LARGEST}), "
                "and not every one carries an ℓ1 term of its own"
            )
    return _without_sweeps(problem) and _multipliers.refusal(problem)


def _without_sweeps(problem: Problem) -> str | None:
    """Why ADMM's sweeps on a model cannot take a problem, which leaves the method of multipliers."""
    if problem.y_of_x(np.zeros(problem.n_features)) is None:
        return "B is not invertible"
    if not problem.psi.subdifferentiable:
        return f"psi={type(problem.psi).__name__} is a constraint (give it as omega)"
    return None


def few_at_once(problem: Problem, rho_given: bool = False) -> bool:
    """Are units or sets of features solved for, because there are many, or few samples for each?"""
    if problem.remote:
        return False
    n, d = problem.n_samples, problem.n_features
    if (d >= MANY or (n < FEW_SAMPLES * d and not rho_given)) and _contracted.applies(problem):
        return True
    return d >= MANY and _working_set.applies(problem)


def prefers_units(setup: Setup, point: Point) -> bool:
    """Are units quicker, though a dense Hessian would fit? A ρ that was asked for stays with ADMM, which has one."""
    problem = setup.problem
    n, d = problem.n_samples, problem.n_features
    if setup.rho_given or problem.remote or problem.nnz > READY or not _contracted.applies(problem):
        return False
    strengths = _contracted.row_strengths(problem.psi, problem.n_split)
    if d < SOME or strengths is None:
        return False
    few = problem.subset(np.arange(0, n, max(1, n // GLANCE)))
    point.clock[1] += few.n_samples
    steepest = float(np.abs(few.gradient(point.x)).max())
    return bool(np.median(strengths) >= SPARSE * steepest)


def _start(setup: Setup, point: Point) -> Engine:
    problem = setup.problem
    folded = setup.omega_mode == "fold"
    reason = refusal(problem) if not folded else None
    if reason is not None:
        raise ValueError(f"method='san-admm': {reason}")
    if problem.y_of_x(point.x) is None or not (folded or problem.psi.subdifferentiable):
        return MultiplierEngine(setup, point)
    solvers = _solvers(setup, point)
    if setup.tol is not None and problem.n_features <= LAST_RESORT and _multipliers.refusal(problem) is None:
        solvers.append(lambda rho: MultiplierEngine(setup, point, rho))
    return Relay(*solvers) if len(solvers) > 1 else solvers[0]


def _solvers(setup: Setup, point: Point) -> list[Any]:
    """The first solver for a problem, and those that take over when it is slow, as functions of ρ."""
    if prefers_units(setup, point):
        return _on_units(setup, point)
    if not few_at_once(setup.problem, setup.rho_given):
        return [SanEngine(setup, point)]
    if _contracted.applies(setup.problem):
        return _on_units(setup, point)
    return [_working_set.WorkingSetEngine(setup, point)]


def _on_units(setup: Setup, point: Point) -> list[Any]:
    """Steps on units, and before them what forms no Hessian, where it applies."""
    first = _before_units(setup, point)
    if first is None:
        return [_contracted.ContractedEngine(setup, point)]
    return [first, lambda rho: _contracted.ContractedEngine(setup, point)]


def _before_units(setup: Setup, point: Point) -> FirstEngine | None:
    """Coordinate descent where no features are tied and few will leave zero; proximal steps where the penalty lies
    along paths and there are samples enough for the loss to be curved."""
    problem = setup.problem
    paths = _paths.paths_of(problem)
    if paths is None:
        return None
    tall = problem.n_samples >= problem.n_features
    if paths.ties:
        return ProximalEngine(setup, point, paths) if tall else None
    if not tall or isinstance(problem.rows, CSRRows):
        return CoordinateEngine(setup, point, paths)
    look = problem.home.look(point.x)
    point.clock[1] += problem.n_samples
    leaving = pull(point.x, look.gradient, paths.threshold) > 0.0
    if np.count_nonzero(leaving) <= FEW_LEAVING * problem.n_features:
        return CoordinateEngine(setup, point, paths)
    return ProximalEngine(setup, point, paths, look)


register(
    Algorithm(
        name="san-admm",
        summary="Stochastic average Newton ADMM: second-order surrogates, certified answers",
        reference="This package; contains Zhong and Kwok (2013) with hᵢaᵢaᵢᵀ → L·I",
        gradient="average",
        linearised=False,
        constant_step=True,
        omega=("system", "fold"),
        start=_start,
        theory_step=lambda problem, rho: inverse(problem.L),
        full=True,
        stepless=True,
        certifies=True,
    )
)

"""san-admm as a method: which of the second-order solvers a problem gets, and their names."""

from typing import Any

import numpy as np

from skadmm.problem.problem import Problem
from skadmm.solvers.base import Algorithm, Engine, Setup, inverse, register
from skadmm.solvers.dual_update import Point
from skadmm.solvers.registry import Solver, register_solver, start_alone
from skadmm.solvers.second_order import chains, multipliers, reduced_newton, working_set
from skadmm.solvers.second_order.base import SolverEngine
from skadmm.solvers.second_order.coordinate_descent import CoordinateDescent, violations
from skadmm.solvers.second_order.multipliers import Multipliers
from skadmm.solvers.second_order.newton_admm import NewtonADMM, reason_against_sweeps
from skadmm.solvers.second_order.prox_gradient import ProxGradient
from skadmm.solvers.second_order.reduced_newton import ReducedNewton
from skadmm.solvers.second_order.switching import Alone, FirstEngine, Switching

LARGEST = NewtonADMM.max_features
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
        if not problem.backend.local_rows:
            return f"{problem.n_features} features are more than second-order steps on a cluster can hold ({LARGEST})"
        few_units = reduced_newton.applies(problem) and reduced_newton.starting_clusters(problem) <= LARGEST
        if not few_units and not working_set.applies(problem):
            return (
                f"{problem.n_features} features are more than second-order steps can hold ({LARGEST}), "
                "and not every one carries an ℓ1 term of its own"
            )
    return reason_against_sweeps(problem) and multipliers.refusal(problem)


def few_at_once(problem: Problem, rho_given: bool = False) -> bool:
    """Are units or sets of features solved for, because there are many, or few samples for each?"""
    if not problem.backend.local_rows:
        return False
    n, d = problem.n_samples, problem.n_features
    if (d >= MANY or (n < FEW_SAMPLES * d and not rho_given)) and reduced_newton.applies(problem):
        return True
    return d >= MANY and working_set.applies(problem)


def prefers_clusters(setup: Setup, point: Point) -> bool:
    """Are units quicker, though a dense Hessian would fit? A ρ that was asked for stays with ADMM, which has one."""
    problem = setup.problem
    n, d = problem.n_samples, problem.n_features
    if setup.rho_given or not problem.backend.local_rows or problem.nnz > READY or not reduced_newton.applies(problem):
        return False
    strengths = reduced_newton.row_strengths(problem.psi, problem.n_split)
    if d < SOME or strengths is None:
        return False
    few = problem.subset(np.arange(0, n, max(1, n // GLANCE)))
    point.clock[1] += few.n_samples
    steepest = float(np.abs(few.gradient(point.x)).max())
    return bool(np.median(strengths) >= SPARSE * steepest)


def _start(setup: Setup, point: Point) -> Engine:
    if setup.solver:
        return start_alone(setup, point)
    problem = setup.problem
    folded = setup.omega_mode == "fold"
    reason = refusal(problem) if not folded else None
    if reason is not None:
        raise ValueError(f"method='san-admm': {reason}")
    if problem.y_of_x(point.x) is None or not (folded or problem.psi.subdifferentiable):
        return Multipliers(setup, point)
    if problem.constraint.B is not None and not setup.rho_given and multipliers.refusal(problem) is None:
        # With a general B the y of every sweep is an iteration of its own.
        return Switching(
            Multipliers(setup, point), (NewtonADMM.name, lambda rho: SolverEngine(NewtonADMM(setup), point))
        )
    solvers = _solvers(setup, point)
    if setup.tol is not None and problem.n_features <= LAST_RESORT and multipliers.refusal(problem) is None:
        solvers.append((Multipliers.solver_name, lambda rho: Multipliers(setup, point, rho)))
    return Switching(*solvers) if len(solvers) > 1 else solvers[0]


def _solvers(setup: Setup, point: Point) -> list[Any]:
    """The first solver for a problem, and those that take over when it is slow: names and functions of ρ."""
    if prefers_clusters(setup, point):
        return _on_clusters(setup, point)
    if not few_at_once(setup.problem, setup.rho_given):
        return [SolverEngine(NewtonADMM(setup), point)]
    if reduced_newton.applies(setup.problem):
        return _on_clusters(setup, point)
    return [working_set.WorkingSet(setup, point)]


def _on_clusters(setup: Setup, point: Point) -> list[Any]:
    """Steps on units, and before them what forms no Hessian, where it applies."""
    first = _before_clusters(setup, point)
    if first is None:
        return [ReducedNewton(setup, point)]
    return [first, (ReducedNewton.solver_name, lambda rho: ReducedNewton(setup, point))]


def _before_clusters(setup: Setup, point: Point) -> FirstEngine | None:
    """Coordinate descent where no features are tied and few will leave zero; proximal steps where the penalty lies
    along paths and there are samples enough for the loss to be curved."""
    problem = setup.problem
    paths = chains.paths_of(problem)
    if paths is None:
        return None
    tall = problem.n_samples >= problem.n_features
    if paths.ties:
        return SolverEngine(ProxGradient(setup), point) if tall else None
    if not tall or problem.is_sparse:
        return CoordinateDescent(setup, point, paths)
    evaluation, touched = problem.backend.evaluations.at(point.x)
    point.clock[1] += touched
    leaving = violations(point.x, evaluation.gradient, paths.threshold) > 0.0
    if np.count_nonzero(leaving) <= FEW_LEAVING * problem.n_features:
        return CoordinateDescent(setup, point, paths)
    return SolverEngine(ProxGradient(setup), point)


def _not_separable(problem: Problem) -> str | None:
    reason = chains.reason_against(problem)
    paths = None if reason is not None else chains.paths_of(problem)
    return "A ties features to each other" if paths is not None and paths.ties else reason


def _alone(engine: Any) -> Any:
    """The engine class as a solver that nobody takes over from."""
    return lambda setup, point: Alone(engine(setup, point, chains.paths_of(setup.problem)))


register_solver(
    Solver(
        NewtonADMM.name, NewtonADMM.summary, NewtonADMM.applies,
        lambda setup, point: SolverEngine(NewtonADMM(setup), point),
    )
)  # fmt: skip
register_solver(
    Solver(
        ReducedNewton.solver_name, "Newton steps on the clusters of equal features that a point is made of",
        reduced_newton.reason_against, ReducedNewton,
    )
)  # fmt: skip
register_solver(
    Solver(
        CoordinateDescent.solver_name, "Coordinate descent on second-order models over a growing set of features",
        _not_separable, _alone(CoordinateDescent),
    )
)  # fmt: skip
register_solver(
    Solver(
        ProxGradient.name, ProxGradient.summary, ProxGradient.applies,
        lambda setup, point: SolverEngine(ProxGradient(setup), point),
    )
)  # fmt: skip
register_solver(
    Solver(
        working_set.WorkingSet.solver_name, "Second-order models over a growing set of features",
        lambda problem: (
            None if problem.backend.local_rows and working_set.applies(problem)
            else "psi must be an ℓ1 norm with a row of A for every feature alone, without omega, B and c"
        ),
        working_set.WorkingSet,
    )
)  # fmt: skip
register_solver(
    Solver(
        Multipliers.solver_name, "The method of multipliers with semismooth Newton steps", multipliers.refusal,
        Multipliers,
    )
)  # fmt: skip
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

"""san-admm as a method: which of the second-order solvers a problem gets, and their names."""

from typing import Any

import numpy as np

from skadmm.operators.row_correction import factor_work
from skadmm.problem.problem import Problem
from skadmm.solvers.base import Algorithm, Engine, Setup, inverse, register
from skadmm.solvers.dual_update import Point
from skadmm.solvers.registry import start_alone
from skadmm.solvers.second_order import chains, reduced_newton, working_set
from skadmm.solvers.second_order.coordinate_descent import CoordinateDescent, violations
from skadmm.solvers.second_order.diagonal_quadratic import DiagonalQuadratic
from skadmm.solvers.second_order.engine_classes import (
    LARGEST,
    NewtonADMM,
    ReducedNewton,
    WorkingSet,
    without_sweeps,
)
from skadmm.solvers.second_order.interior_point import InteriorPoint
from skadmm.solvers.second_order.multipliers import Multipliers
from skadmm.solvers.second_order.prox_gradient import ProxGradient
from skadmm.solvers.second_order.switching import Entry, Switching

MANY = 800
"""From this many features on, clusters or a working set are faster, where they apply."""
SOME = 150
"""From this many on, clusters are faster where the solution is sparse or fused …"""
SPARSE, GLANCE = 0.01, 1000
"""… which is to be expected when λ is at least this share of the largest slope, on a subset of so many samples."""
READY = 100_000_000
"""Up to this many stored entries the columns of the clusters may be copied."""
FEW_SAMPLES = 5
"""With fewer samples per feature than this, growing batches gain nothing, and clusters are faster too."""
LAST_RESORT = 2000
"""Up to this many features the method of multipliers takes over from a solver that has stalled."""

MAX_FACTOR_WORK = 1e10
"""Multiplications that the factorisation of an interior point step on a graph may take, by a bound of its fill."""
FEW_LEAVING = 0.5
"""Few features will leave zero where at most this share of them violates optimality at the start."""


def refusal(problem: Problem) -> str | None:
    """Why san-admm cannot take a problem; None when it can."""
    if prefers_interior_point(problem):
        return None
    if problem.n_features > LARGEST:
        if not problem.backend.local_rows:
            return f"{problem.n_features} features are more than second-order steps on a cluster can hold ({LARGEST})"
        few_clusters = reduced_newton.applies(problem) and reduced_newton.starting_clusters(problem) <= LARGEST
        if not few_clusters and not working_set.applies(problem):
            return (
                f"{problem.n_features} features are more than second-order steps can hold ({LARGEST}), "
                "and not every one carries an ℓ1 term of its own"
            )
    return without_sweeps(problem) and Multipliers.applies(problem)


def prefers_interior_point(problem: Problem) -> bool:
    """Is it a signal that no other solver takes more cheaply?

    One proximal step solves a signal whose penalty lies along chains, where the Hessian is a multiple of the identity.
    On a large graph the factors fill up, and Newton steps on clusters take less.
    """
    if InteriorPoint.applies(problem) is not None:
        return False
    if problem.constraint.line is not None or not reduced_newton.applies(problem):
        return True
    quadratic = DiagonalQuadratic.of(problem)
    if bool(np.all(quadratic.h == quadratic.h[0])) and chains.reason_against(problem) is None:
        return False
    return factor_work(abs(quadratic.A) @ abs(quadratic.A).T) <= MAX_FACTOR_WORK


def few_at_once(problem: Problem, rho_given: bool = False) -> bool:
    """Are clusters or sets of features solved for, because there are many, or few samples for each?"""
    if not problem.backend.local_rows:
        return False
    n, d = problem.n_samples, problem.n_features
    if (d >= MANY or (n < FEW_SAMPLES * d and not rho_given)) and reduced_newton.applies(problem):
        return True
    return d >= MANY and working_set.applies(problem)


def prefers_clusters(setup: Setup, point: Point) -> bool:
    """Are clusters faster, though a dense Hessian would fit? A ρ that was given is left to ADMM, which has one."""
    problem = setup.problem
    n, d = problem.n_samples, problem.n_features
    if setup.rho_given or not problem.backend.local_rows or problem.nnz > READY or not reduced_newton.applies(problem):
        return False
    strengths = reduced_newton.row_strengths(problem.psi, problem.n_split)
    if d < SOME or strengths is None:
        return False
    few = problem.subset(np.arange(0, n, max(1, n // GLANCE)))
    point.clock[1] += few.n_samples
    largest = float(np.abs(few.gradient(point.x)).max())
    return bool(np.median(strengths) >= SPARSE * largest)


def _start(setup: Setup, point: Point) -> Engine:
    if setup.solver:
        return start_alone(setup, point)
    problem = setup.problem
    if prefers_interior_point(problem):
        return InteriorPoint.engine(setup, point)
    folded = setup.omega_mode == "fold"
    reason = refusal(problem) if not folded else None
    if reason is not None:
        raise ValueError(f"method='san-admm': {reason}")
    solvers = [Entry(solver) for solver in _solvers(setup, point)]
    return Switching(setup, point, solvers) if len(solvers) > 1 else solvers[0].solver.engine(setup, point)


def _solvers(setup: Setup, point: Point) -> list[Any]:
    """The solvers for a problem, the first one first; each takes over when the one before is slow."""
    problem = setup.problem
    if problem.y_of_x(point.x) is None or not (setup.omega_mode == "fold" or problem.psi.subdifferentiable):
        return [Multipliers]
    if problem.constraint.B is not None and not setup.rho_given and Multipliers.applies(problem) is None:
        # With a general B the y of every sweep is an iteration of its own.
        return [Multipliers, NewtonADMM]
    solvers = _by_size(setup, point)
    if setup.tol is not None and problem.n_features <= LAST_RESORT and Multipliers.applies(problem) is None:
        solvers.append(Multipliers)
    return solvers


def _by_size(setup: Setup, point: Point) -> list[Any]:
    """Newton steps on clusters where there are many features or a sparse solution is likely, and before them what forms
    no Hessian, where it applies; a dense model elsewhere."""
    if not prefers_clusters(setup, point) and not few_at_once(setup.problem, setup.rho_given):
        return [NewtonADMM]
    if not reduced_newton.applies(setup.problem):
        return [WorkingSet]
    return [*_before_clusters(setup, point), ReducedNewton]


def _before_clusters(setup: Setup, point: Point) -> list[Any]:
    """Coordinate descent where no features are tied and few will leave zero; proximal steps where the penalty lies
    along chains and there are samples enough for the loss to be curved."""
    problem = setup.problem
    penalty = chains.paths_of(problem)
    if penalty is None:
        return []
    tall = problem.n_samples >= problem.n_features
    if penalty.ties:
        return [ProxGradient] if tall else []
    if not tall or problem.is_sparse:
        return [CoordinateDescent]
    evaluation, touched = problem.backend.evaluations.at(point.x)
    point.clock[1] += touched
    leaving = violations(point.x, evaluation.gradient, penalty.threshold) > 0.0
    few = np.count_nonzero(leaving) <= FEW_LEAVING * problem.n_features
    return [CoordinateDescent] if few else [ProxGradient]


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

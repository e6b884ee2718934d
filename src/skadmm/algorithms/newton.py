"""san-admm as a method: which engine a problem gets."""

import numpy as np

from skadmm.algorithms import _contracted, _working_set
from skadmm.algorithms._base import Algorithm, Engine, Setup, inverse, register
from skadmm.algorithms._split import Point
from skadmm.algorithms.san import SanEngine
from skadmm.problem import Problem

LARGEST = 5000
"""The most features for which a dense d × d matrix is formed and inverted at once."""
MANY = 800
"""From this many features on, units or a working set are quicker, where they apply."""

FEW_SAMPLES = 5
"""So few samples a feature leave nothing for a growing first pass to win, and units are quicker there too."""


def refusal(problem: Problem) -> str | None:
    """Why san-admm cannot take a problem; None when it can."""
    few_units = _contracted.applies(problem) and _contracted.starting_units(problem) <= LARGEST
    if problem.n_features > LARGEST and problem.remote:
        return f"{problem.n_features} features are more than second-order steps on a cluster can hold ({LARGEST})"
    if problem.n_features > LARGEST and not few_units and not _working_set.applies(problem):
        return (
            f"{problem.n_features} features are more than second-order steps can hold ({LARGEST}), "
            "and not every one carries an ℓ1 term of its own"
        )
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


def _start(setup: Setup, point: Point) -> Engine:
    reason = refusal(setup.problem) if setup.omega_mode != "fold" else None
    if reason is not None:
        raise ValueError(f"method='san-admm': {reason}")
    if not few_at_once(setup.problem, setup.rho_given):
        return SanEngine(setup, point)
    if _contracted.applies(setup.problem):
        return _contracted.ContractedEngine(setup, point)
    return _working_set.WorkingSetEngine(setup, point)


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

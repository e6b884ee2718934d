"""Random paths, all penalties and losses, against CVXPY at every strength.

``SKADMM_TESTS=all`` runs 100 of them. A certificate is a promise: the objective is never farther from the optimum than
the gap says.
"""

import functools
import itertools
import os
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from random_problems import CLOSE, LOOSE, Case, oracle, random_problem

from skadmm import Path, path
from skadmm.problem.certificate import Certifier

PATHS = 100 if os.environ.get("SKADMM_TESTS") == "all" else 12
TOL = 1e-6
FACTORS = np.array([4.0, 1.0, 0.3])
"""Strengths of a path, as multiples of that of the random problem."""


def cases() -> Iterator[Case]:
    """Problems whose psi has a strength, and where x determines y."""
    for seed in itertools.count():
        case = random_problem(seed)
        if case.A is not None and case.psi.strength > 0 and case.invertible:
            yield case


CASES = {case.seed: case for case in itertools.islice(cases(), PATHS)}


@functools.cache
def path_of(seed: int) -> Path:
    case = CASES[seed]
    return path(case.problem(), FACTORS * case.psi.strength, tol=TOL, passes=300, dof=False)


@pytest.mark.parametrize("seed", CASES)
def test_no_strength_is_farther_from_the_optimum_than_it_says(seed):
    case, found = CASES[seed], path_of(seed)
    certified = Certifier(case.problem()).kind != "none"
    for alpha, x, gap, status in zip(found.alphas, found.x, found.gaps, found.statuses, strict=True):
        at = replace(case, psi=case.psi._replace(strength=float(alpha)), _optimum=None)
        optimum = oracle(at)
        if not optimum.attained:
            continue
        told = f"{case} alpha={alpha:.3g} gap={gap:.1e} {status}"
        distance = at.objective(x) - optimum.value
        if certified:
            assert distance <= gap * abs(at.objective(x)) * (1 + 1e-6) + CLOSE * at.scale, told
        if status == "solved":
            assert gap <= TOL * (1 + 1e-9), told
            assert distance <= (CLOSE if certified else LOOSE) * max(abs(optimum.value), at.scale), told


@pytest.mark.parametrize("seed", CASES)
def test_every_strength_is_solved(seed):
    assert set(path_of(seed).statuses) == {"solved"}

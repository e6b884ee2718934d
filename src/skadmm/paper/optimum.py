"""The true optimum of a problem, or the lowest value that a long run finds."""

from __future__ import annotations

from typing import Any

import numpy as np

from skadmm.problem.problem import Problem
from skadmm.run.result import Result, Status
from skadmm.run.solve import solve
from skadmm.solvers import ALGORITHMS

TOLERANCE = 1e-7
"""On the relative optimality measure of the result."""
ENOUGH = 1e-5
"""What is taken from a run that met no tolerance."""
PASSES = 400.0
ROUNDS = 60


def find_optimum(problem: Problem) -> dict[str, Any]:
    """The smallest objective, how it was found and how sure it is."""
    result = _newton(problem)
    if result is None or not _good_enough(result):
        exact = _exact(problem)
        result = exact if result is None else min(result, exact, key=lambda one: one.objective)
    return {
        "objective": result.objective,
        "method": result.method,
        "status": str(result.status),
        "kkt": result.kkt.relative,
        "gap": None if np.isnan(result.gap) else result.gap,
        "passes": result.passes,
        "nonzeros": int(np.count_nonzero(np.abs(result.x) > 1e-8 * np.abs(result.x).max(initial=1e-300))),
    }


def _good_enough(result: Result) -> bool:
    """Solved, or stalled so near the optimum that no figure shows the rest."""
    measure = result.kkt.relative if np.isnan(result.gap) else result.gap
    return result.status is Status.SOLVED or measure <= ENOUGH


def _newton(problem: Problem) -> Result | None:
    """By second-order steps, where there are any for this problem."""
    if "san-admm" not in ALGORITHMS:
        return None
    try:
        return solve(problem, "san-admm", passes=PASSES, tol=TOLERANCE, record_every=1)
    except ValueError:  # it does not take problems of this kind or size
        return None


def _exact(problem: Problem) -> Result:
    """ADMM with exact x-steps, in rounds between which ρ is balanced: the dual is kept, so only its scale changes."""
    rho = 1e-3
    start: dict[str, Any] = {}
    best: Result | None = None
    for _ in range(ROUNDS):
        result = solve(problem, "exact-admm", rho=rho, passes=20.0, record_every=0, **start)
        if best is None or result.objective < best.objective:
            best = result
        if result.kkt.relative <= TOLERANCE:
            return result
        multiplier = rho * result.dual
        primal = result.kkt.feasibility / max(float(np.linalg.norm(result.y)), 1e-300)
        scale = float(np.linalg.norm(problem.constraint.At(multiplier)))
        dual = result.kkt.stationarity / max(scale, 1e-300)
        rho *= float(np.clip(np.sqrt(max(primal, 1e-300) / max(dual, 1e-300)), 0.2, 5.0))
        start = {"x0": result.x, "y0": result.y, "dual0": multiplier / rho}
    assert best is not None
    return best

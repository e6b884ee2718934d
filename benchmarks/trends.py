"""Trend filtering and total variation: which problems are solved, against whom, and in how much time.

    python benchmarks/trends.py                   every part
    python benchmarks/trends.py --only matrix     parts whose name holds a word
    python benchmarks/trends.py --small           the smallest sizes alone

Parts: matrix (orders × positions × sizes × strengths, against CVXPY with Clarabel), scaling (up to a million points),
cv (cross-validation against a smoothing spline), dof (degrees of freedom), image (total variation of an image and of a
volume, against scikit-image). CVXPY, prox_tv, ruptures and scikit-image are compared with where they are installed.
"""

import os

os.environ |= {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "NUMBA")}

import argparse
import decimal
import importlib.util
import time
import warnings
from decimal import Decimal
from typing import Any

import numpy as np
import scipy.sparse as sp

from _common import table
from skadmm import Problem, Status, alpha_max, solve
from skadmm.operators import trend
from skadmm.operators.line import line_at
from skadmm.problem.constraint import Constraint
from skadmm.regularizers import L1

STRENGTHS = 2.0 * np.geomspace(5e-7, 1.0, 12)
"""In units of alpha_max."""


def positions_of(kind: str, n: int, seed: int = 0) -> np.ndarray:
    """Increasing positions in about [0, 1]."""
    rng = np.random.default_rng(seed)
    if kind == "even":
        return np.linspace(0.0, 1.0, n)
    if kind == "uniform":
        return np.sort(rng.uniform(0.0, 1.0, n))
    return np.sort(rng.choice([0.05, 0.3, 0.35, 0.6, 0.95], n) + 0.01 * rng.standard_normal(n))


def signal_at(t: np.ndarray, seed: int = 0) -> np.ndarray:
    """Waves, a kink and a jump, with noise."""
    rng = np.random.default_rng(seed + 1)
    clean = np.sin(8.0 * t) + 2.0 * np.abs(t - 0.4) + 0.7 * (t > 0.7)
    return clean + 0.2 * rng.standard_normal(t.size)


def reference(t: np.ndarray, b: np.ndarray, order: int, alpha: float) -> float:
    """The optimum by CVXPY with Clarabel; NaN where it is not solved.

    Derivatives are variables of their own, so that differences are not multiplied out. They are measured over one
    spacing and over the whole line, and the smaller of the two values counts.
    """
    values = [_by_clarabel(t, b, order, alpha, unit) for unit in ((t[-1] - t[0]) / (t.size - 1), t[-1] - t[0])]
    return min(values, key=lambda value: np.inf if np.isnan(value) else value)


def _by_clarabel(t: np.ndarray, b: np.ndarray, order: int, alpha: float, unit: float) -> float:
    import cvxpy as cp

    n = t.size
    x = cp.Variable(n)
    z, constraints = x, []
    for k in range(1, order + 1):
        slope = cp.Variable(n - k)
        constraints.append(cp.multiply((t[k:] - t[:-k]) / (k * unit), slope) == cp.diff(z))
        z = slope
    strength = n * alpha * ((t[-1] - t[0]) / (unit * (n - 1))) ** order
    program = cp.Problem(cp.Minimize(cp.sum_squares(x - b) / 2 + strength * cp.norm1(cp.diff(z))), constraints)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            program.solve(solver="CLARABEL", tol_gap_rel=1e-9, tol_gap_abs=1e-12, tol_feas=1e-10)
    except cp.SolverError:
        return np.nan
    return float(program.value) / n if program.status == "optimal" else np.nan


def exact_bound(t: np.ndarray, b: np.ndarray, order: int, alpha: float, u: np.ndarray) -> float:
    """The dual objective of the multiplier u in 60 digits: a lower bound of the optimum that no rounding can spoil."""
    with decimal.localcontext() as context:
        context.prec = 60
        n = t.size
        unit = (Decimal(float(t[-1])) - Decimal(float(t[0]))) / (n - 1)
        places = [Decimal(float(p)) / unit for p in t]
        m = [Decimal(float(p)) for p in np.clip(u, -alpha, alpha)]
        for k in range(order, -1, -1):
            m = [-m[0], *(m[i] - m[i + 1] for i in range(len(m) - 1)), m[-1]]
            if k > 0:
                m = [k * m[i] / (places[i + k] - places[i]) for i in range(len(m))]
        target = [Decimal(float(p)) for p in b]
        return float(sum(p * w for p, w in zip(target, m, strict=True)) - n * sum(w * w for w in m) / 2)


def problem_at(t: np.ndarray, b: np.ndarray, order: int, alpha: float = 1.0) -> Problem:
    """Trend filtering of `b` at `t`."""
    n = t.size
    A = Constraint(trend(n, order, t), None, None, n, line=line_at(t, order))
    return Problem(sp.eye_array(n, format="csr"), b, "squared", psi=L1(alpha), A=A)


def matrix(small: bool) -> str:
    """Orders × positions × sizes × strengths."""
    compared = importlib.util.find_spec("cvxpy") is not None
    rows = [
        _cell(order, kind, n, compared)
        for order in range(4)
        for kind in ("even", "uniform", "clustered")
        for n in ((50,) if small else (50, 600, 3000))
    ]
    title = (
        "12 strengths from 1e-6 to 2 alpha_max. Bound: (objective − dual bound in 60 digits) / objective, the worst. "
        "CVXPY: ours less theirs, relative, where we are above and where we are below"
    )
    header = ["order", "positions", "n", "solved", "gap", "bound", "CVXPY", "above", "below", "polynomial", "ms"]
    return table(title, header, rows)


def _cell(order: int, kind: str, n: int, compared: bool) -> list[Any]:
    """One row of the table: the worst over all strengths."""
    t = positions_of(kind, n)
    b = signal_at(t)
    problem = problem_at(t, b, order)
    top = alpha_max(problem, line_at(t, order))
    tol = 1e-6 if order < 3 else 1e-5
    solved, gaps, bounds, excess, spent = 0, [], [], [], []
    for share in STRENGTHS:
        began = time.process_time()
        result = solve(problem.replace(psi=L1(share * top)), tol=tol, record_every=0)
        spent.append(time.process_time() - began)
        solved += result.status is Status.SOLVED and result.gap <= tol
        gaps.append(result.gap)
        bounds.append(
            1.0 - exact_bound(t, b, order, share * top, result.settings["rho"] * result.dual) / result.objective
        )
        if compared:
            value = reference(t, b, order, share * top)
            excess += [result.objective / value - 1.0] if np.isfinite(value) else []
    domain = (float(t[0]), float(t[-1]))
    flat = np.polynomial.Legendre.fit(t, b, order, domain=domain)(t)
    return [
        str(order), kind, n, f"{solved}/12", max(gaps), max(bounds), f"{len(excess)}/12", max(excess, default=np.nan),
        min(excess, default=np.nan), float(np.abs(result.x - flat).max()), 1e3 * float(np.median(spent)),
    ]  # fmt: skip


PARTS = {"matrix": matrix}


def main() -> None:
    """Run the parts that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="")
    parser.add_argument("--small", action="store_true")
    arguments = parser.parse_args()
    for name, part in PARTS.items():
        if arguments.only in name:
            print(part(arguments.small), flush=True)


if __name__ == "__main__":
    main()

"""Profile of `skadmm-auto` on some of the data sets: exclusive time of each part, without the parts it calls.

    python benchmarks/generalized_lasso/where.py [--tol 1e-3] [a9a covtype lasso …]

One thread, as in the benchmark; the fastest of several runs to a relative gap of 1e-6, or to --tol.
"""

import argparse
import collections
import functools
import time
from typing import Any

import numba
import threadpoolctl
from benchmark_utils.data import real, simulated
from benchmark_utils.reference import as_problem

from skadmm import solve
from skadmm.oracle import reduced
from skadmm.problem import existence
from skadmm.run import recording
from skadmm.solvers import select
from skadmm.solvers.second_order import coordinate_descent, newton_admm, prox_gradient, reduced_newton

CASES = {
    "a9a": lambda: real("a9a", standardise=False, strength=1e-5, penalty="graph"),
    "covtype": lambda: real("covtype", standardise=True, strength=1e-5, penalty="graph"),
    "chain": lambda: simulated(5000, 500, loss="squared", structure="chain", share=0.05),
    "lasso": lambda: simulated(5000, 500, loss="squared", structure="identity", share=0.05),
    "lasso-logistic": lambda: simulated(5000, 500, loss="logistic", structure="identity", share=0.05),
    "20ng-ltc-l1": lambda: real("20ng-ltc", standardise=False, strength=1e-4, penalty="l1"),
}
PARTS = {
    "first pass, its batches": (newton_admm.NewtonADMM, "_growing_step"),
    "evaluations of all samples": (newton_admm.NewtonADMM, "_full_evaluation"),
    "H brought up to date": (newton_admm.NewtonADMM, "_renew"),
    "models minimised": (newton_admm.NewtonADMM, "_minimise"),
    "large shifts": (newton_admm.NewtonADMM, "_revisit_large_shifts"),
    "polish": (newton_admm.NewtonADMM, "_polish"),
    "certificates": (newton_admm.NewtonADMM, "_certify"),
    "the end": (newton_admm.NewtonADMM, "finish"),
    "evaluations for proximal steps": (prox_gradient.ProxGradient, "_evaluate"),
    "proximal steps": (prox_gradient.ProxGradient, "_move"),
    "proximal steps begun": (prox_gradient.ProxGradient, "_start"),
    "their certificates": (prox_gradient.ProxGradient, "_judge"),
    "coordinate descent": (coordinate_descent, "descend"),
    "features selected": (coordinate_descent.CoordinateDescent, "_selected"),
    "their models": (coordinate_descent.CoordinateDescent, "_descend"),
    "their line search": (coordinate_descent.CoordinateDescent, "_search"),
    "evaluations of all features": (coordinate_descent.CoordinateDescent, "_evaluate_point"),
    "and certificates": (coordinate_descent.CoordinateDescent, "raise_bound"),
    "columns gathered": (coordinate_descent, "by_columns"),
    "rows opened": (reduced_newton.ReducedNewton, "_open"),
    "columns merged": (reduced, "contracted"),
    "H on clusters": (reduced, "update_hessian"),
    "models on clusters": (reduced_newton.ReducedModel, "minimise"),
    "evaluations and subgradients": (reduced_newton.ReducedNewton, "_evaluate"),
    "certificate": (reduced_newton.ReducedNewton, "_certify"),
    "line search": (reduced_newton.ReducedNewton, "_search"),
    "solvers chosen": (select, "solvers_for"),
    "reduced Newton started": (reduced_newton.ReducedNewton, "_start"),
    "recorded (off the clock)": (recording.Recorder, "row"),
    "evaluated (off the clock)": (recording.Evaluator, "at"),
    "existence of a minimiser": (existence, "find"),
}
spent: collections.Counter = collections.Counter()
inside = [0.0]


def timed(part: str, function: Any) -> Any:
    """The function, with its own seconds counted."""

    @functools.wraps(function)
    def run(*arguments: Any, **options: Any) -> Any:
        began = time.perf_counter()
        inside.append(0.0)
        try:
            return function(*arguments, **options)
        finally:
            took = time.perf_counter() - began
            spent[part] += took - inside.pop()
            inside[-1] += took

    return run


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("cases", nargs="*", choices=[[], *CASES], default=[])
    arguments.add_argument("--tol", type=float, default=1e-6)
    given = arguments.parse_args()
    numba.config.NUMBA_NUM_THREADS = 1
    threadpoolctl.threadpool_limits(1)
    for part, (owner, attribute) in PARTS.items():
        setattr(owner, attribute, timed(part, getattr(owner, attribute)))
    for name in given.cases or CASES:
        data = CASES[name]()
        problem = as_problem(*(data[key] for key in ("X", "target", "loss", "A", "strength")))
        runs = []
        for _ in range(6):
            spent.clear()
            began = time.perf_counter()
            result = solve(problem, tol=given.tol, passes=2000, record_every=0)
            runs.append((time.perf_counter() - began, dict(spent)))
        seconds, parts = min(runs, key=lambda run: run[0])
        print(f"{name}: {1e3 * seconds:.0f} ms, {result.passes:.2f} passes")
        for part, took in sorted(parts.items(), key=lambda item: -item[1]):
            print(f"  {part:<28}{1e3 * took:>8.1f} ms{took / seconds:>7.0%}")
        print(f"  {'around them':<28}{1e3 * (seconds - sum(parts.values())):>8.1f} ms")


if __name__ == "__main__":
    main()

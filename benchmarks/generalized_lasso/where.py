"""Where the time of `skadmm-auto` goes on some of the data: each part's own, without the parts it calls.

    python benchmarks/generalized_lasso/where.py [--tol 1e-3] [a9a covtype lasso …]

One thread, as in the benchmark; the quickest of several runs to a relative gap of 1e-6, or of another.
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

from skadmm import _loop, recession, solve
from skadmm.algorithms import _contracted, _coordinates, _proximal, newton, san

CASES = {
    "a9a": lambda: real("a9a", standardise=False, strength=1e-5, penalty="graph"),
    "covtype": lambda: real("covtype", standardise=True, strength=1e-5, penalty="graph"),
    "chain": lambda: simulated(5000, 500, loss="squared", structure="chain", share=0.05),
    "lasso": lambda: simulated(5000, 500, loss="squared", structure="identity", share=0.05),
    "lasso-logistic": lambda: simulated(5000, 500, loss="logistic", structure="identity", share=0.05),
    "20ng-ltc-l1": lambda: real("20ng-ltc", standardise=False, strength=1e-4, penalty="l1"),
}
PARTS = {
    "first pass, its looks": (san.SanEngine, "_growing_step"),
    "looks at all samples": (san.SanEngine, "_full_look"),
    "H brought up to date": (san.SanEngine, "_renew"),
    "models minimised": (san.SanEngine, "_minimise"),
    "hard rows": (san.SanEngine, "_look_at_hard_rows"),
    "polish": (san.SanEngine, "_polish"),
    "certificates": (san.SanEngine, "_certify"),
    "the end": (san.SanEngine, "finish"),
    "looks for proximal steps": (_proximal.ProximalEngine, "_look"),
    "proximal steps": (_proximal.ProximalEngine, "_step"),
    "proximal steps begun": (_proximal.ProximalEngine, "_start"),
    "their certificates": (_proximal.ProximalEngine, "_judge"),
    "coordinate descent": (_coordinates, "descend"),
    "features chosen": (_coordinates.CoordinateEngine, "_chosen"),
    "their models": (_coordinates.CoordinateEngine, "_descend"),
    "their line search": (_coordinates.CoordinateEngine, "_search"),
    "looks at all features": (_coordinates.CoordinateEngine, "_look"),
    "and certificates": (_coordinates.CoordinateEngine, "_raise_bound"),
    "columns gathered": (_coordinates, "by_columns"),
    "units opened": (_contracted.ContractedEngine, "_opened"),
    "columns merged": (_contracted, "contracted"),
    "H of units": (_contracted.ContractedEngine, "_curvature"),
    "units minimised": (_contracted.ContractedModel, "minimise"),
    "looks and flow": (_contracted.ContractedEngine, "_look"),
    "certificate": (_contracted.ContractedEngine, "_certify"),
    "line search": (_contracted.ContractedEngine, "_search"),
    "engine chosen and begun": (newton, "prefers_units"),
    "units begun": (_contracted.ContractedEngine, "__init__"),
    "recorded (off the clock)": (_loop.Run, "_row"),
    "evaluated (off the clock)": (_loop.Run, "_evaluate"),
    "minimiser looked for": (recession, "find"),
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

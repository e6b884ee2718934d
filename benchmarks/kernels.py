"""How fast are the compiled methods? Half of a9a, its precision graph, A = [G; I], λ = 1e-5, ρ = 0.01.

    python benchmarks/kernels.py [--json FILE] [--quick]

Times are the best of several. A pass is timed in parts of about a millisecond, and the best times of the parts are
summed: this reduces the effect of other load on the machine, while every part still reads rows and tables that other
parts have evicted from the nearest caches. The paper's methods are compared with two twins: the *reference* of the
tests, written from the equations (it recomputes every gradient in every step), and an *incremental* one with O(nnz(aᵢ)
+ d + m) work per step, about the best possible in NumPy and SciPy. GPE, the gradient-pass equivalent, is a wall time in
units of one full gradient, by the faster of SciPy and the compiled kernel.
"""

import argparse
import json
import os
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import scipy.special

from _common import ROOT, StochasticAverageTwin, a9a_half, best_of, engine_of, graph_guided, sum_of_best, table
from skadmm import ALGORITHMS, Problem, __version__, solve
from skadmm.kernels.samples import mean_gradient
from skadmm.run.sampling import Uniform

RHO = 0.01
BATCHES = (1, 16, 64, 256)
TWINS = {"sa-admm": False, "sa-iu-admm": True}
TWIN_STEPS = 400
STRETCH = 500  # steps timed at once: about a millisecond
STEP = 10.0  # a step at which the iterates move: agreement to rounding means more than at the theory's step

SECOND_PROCESS = """
import time
wall, cpu = time.perf_counter, time.process_time
began, cpu_began = wall(), cpu()
import numpy as np
import scipy.sparse as sp
from skadmm import Problem, solve
from skadmm.operators import chain, stack
from skadmm.regularizers import L1
imported, cpu_imported = wall(), cpu()
rng = np.random.default_rng(0)
X = sp.random_array((1000, 50), density=0.2, rng=rng, format="csr")
problem = Problem(X, rng.random(1000) < 0.5, psi=L1(1e-3), A=stack(chain(50), "identity"))
solve(problem, "sa-iu-admm", step=1.0, passes=5)
print(imported - began, wall() - imported, cpu_imported - cpu_began, cpu() - cpu_imported)
"""


def gradient_time(problem: Problem, times: int) -> dict[str, float]:
    """One full gradient of the mean loss: SciPy, and the compiled kernel."""
    rows, target, n = problem.rows, problem.target, problem.n_samples
    X = sp.csr_array((rows.data, rows.indices, rows.indptr), shape=rows.shape)
    Xt = sp.csr_array(X.T)
    x = 0.01 * np.random.default_rng(0).standard_normal(problem.n_features)
    out = np.empty(problem.n_features)
    samples = problem.samples()

    def by_scipy() -> np.ndarray:
        return Xt @ (-target * scipy.special.expit(-target * (X @ x))) / n

    mean_gradient(samples, x, out)
    np.testing.assert_allclose(by_scipy(), out, rtol=1e-9, atol=1e-12)
    return {
        "scipy": best_of(by_scipy, times),
        "kernel": best_of(lambda: mean_gradient(samples, x, out), times),
    }


def pass_time(problem: Problem, method: str, batch_size: int, times: int) -> dict[str, float]:
    """Seconds per effective pass and per step, initial tables and compilation excluded."""
    engine = engine_of(problem, method, rho=RHO, batch_size=batch_size)
    clock = engine.point.clock
    engine.advance(np.zeros(1, np.int64))
    if ALGORITHMS[method].full:  # one step each time; the work of a step of exact-admm depends on where it stands
        best, passes = np.inf, 1.0
        for _ in range(times):
            before = int(clock[1])
            spent = best_of(lambda: engine.advance(np.zeros(1, np.int64)), 1)
            touched = (int(clock[1]) - before) / problem.n_samples
            if spent / touched < best:
                best, passes = spent / touched, touched
        return {"seconds": best, "seconds_per_step": best * passes}
    order = Uniform(engine.steps_per_pass, 0).take(0, engine.steps_per_pass)
    before = int(clock[1])
    stretch = max(10, STRETCH // max(1, batch_size // 4))
    times *= 1 if batch_size == 1 else 4
    one_round = sum_of_best(engine.advance, np.array_split(order, max(1, order.size // stretch)), times)
    passes = (int(clock[1]) - before) / times / problem.n_samples
    return {"seconds": one_round / passes, "seconds_per_step": one_round / order.size}


def twin_ratio(problem: Problem, method: str, times: int) -> dict[str, float]:
    """The NumPy twin's time per step over the compiled one's, and how far their iterates are apart."""
    order = Uniform(problem.n_samples, 0).take(0, problem.n_samples)
    twin = StochasticAverageTwin(problem, rho=RHO, step=STEP, uzawa=TWINS[method])
    engine = engine_of(problem, method, rho=RHO, step=STEP)
    apart = 0.0
    for t, i in enumerate(order[:TWIN_STEPS], start=1):
        twin.step(int(i))
        engine.advance(np.array([i]))
        for name, terms in (("x", 1), ("y", 1), ("dual", 1), ("x_sum", t), ("y_sum", t)):
            apart = max(apart, float(np.abs(getattr(twin, name) - getattr(engine.point, name)).max()) / terms)
    if apart > 1e-10:
        raise AssertionError(f"{method}: twin and kernel are {apart:.2e} apart after {TWIN_STEPS} steps")

    def slow(indices: np.ndarray) -> None:
        for i in indices.tolist():
            twin.step(i)

    some = order[:: problem.n_samples // TWIN_STEPS]
    slow_time = sum_of_best(slow, np.array_split(some, some.size // 20), times) / some.size
    fast_time = sum_of_best(engine.advance, np.array_split(order, order.size // STRETCH), 3 * times) / order.size
    return {"twin_step": slow_time, "compiled_step": fast_time, "ratio": slow_time / fast_time, "apart": apart}


def reference_step(problem: Problem, X: Any, method: str, steps: int = 3) -> float:
    """The time per step of the twin in the tests."""
    sys.path.insert(0, str(ROOT / "tests"))
    import reference

    model = reference.Model(
        X.toarray(), problem.target, reference.logistic, problem.constraint.A.toarray(), reference.soft(1e-5), RHO, STEP
    )
    blocks = [np.array([i]) for i in range(steps + 1)]
    iterates = reference.METHODS[method](model, blocks, np.zeros(problem.n_features))
    next(iterates)  # fills the tables
    return best_of(lambda: next(iterates), steps)


def peak_memory(problem: Problem, batch_size: int) -> dict[str, float]:
    """Peak memory of solve() beyond what was allocated before, compared with the table of x_τ."""
    tracemalloc.start()
    solve(problem, "sa-iu-admm", rho=RHO, step=1.0, passes=2, batch_size=batch_size)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    table_bytes = -(-problem.n_samples // batch_size) * problem.n_features * 8
    return {"peak": peak, "table": table_bytes, "ratio": peak / table_bytes}


def second_process(times: int) -> dict[str, float]:
    """Import and first solve in a fresh process, with the kernels on disk; the best of several."""
    runs = []
    for _ in range(times + 1):  # the first one fills the cache
        done = subprocess.run([sys.executable, "-c", SECOND_PROCESS], capture_output=True, text=True, check=True)
        imported, solved, cpu_import, cpu_solve = map(float, done.stdout.split())
        runs.append(
            {"import": imported, "first_solve": solved, "total": imported + solved, "cpu": cpu_import + cpu_solve}
        )
    return min(runs[1:], key=lambda run: run["total"])


def measure(*, quick: bool) -> dict[str, Any]:
    """All numbers."""
    times = 2 if quick else 5
    X, target, name = a9a_half()
    problem = graph_guided(X, target)
    gradient = gradient_time(problem, 20)
    unit = min(gradient.values())
    stochastic = [method for method, algorithm in ALGORITHMS.items() if not algorithm.full]
    passes = {method: pass_time(problem, method, 1, times) for method in ALGORITHMS}
    gpe = {
        method: {b: pass_time(problem, method, b, times)["seconds"] / unit for b in BATCHES}
        for method in stochastic
        if method != "online-admm" or not quick
    }
    return {
        "version": __version__,
        "data": name,
        "n_samples": problem.n_samples,
        "n_features": problem.n_features,
        "n_constraints": problem.n_constraints,
        "nnz": problem.nnz,
        "cores": os.cpu_count(),
        "gradient": gradient,
        "passes": passes,
        "twins": {
            method: twin_ratio(problem, method, times) | {"reference_step": reference_step(problem, X, method)}
            for method in TWINS
        },
        "gpe": gpe,
        "memory": {b: peak_memory(problem, b) for b in BATCHES},
        "second_process": second_process(times),
    }


def report(numbers: dict[str, Any]) -> str:
    """The numbers as tables."""
    unit = min(numbers["gradient"].values())
    faster = min(numbers["gradient"], key=numbers["gradient"].get)
    n, d, m = numbers["n_samples"], numbers["n_features"], numbers["n_constraints"]
    lines = [
        f"skadmm {numbers['version']}: {numbers['data']}, n = {n:,}, d = {d}, m = {m}, "
        f"{numbers['nnz'] / n:.1f} entries a row; {numbers['cores']} cores",
        f"one full gradient: {1e3 * unit:.2f} ms ({faster}; "
        + ", ".join(f"{who} {1e3 * spent:.2f} ms" for who, spent in numbers["gradient"].items())
        + ")\n",
        table(
            "One pass at b = 1 (batch methods: a pass is a step; exact-admm: a step is many passes)",
            ["method", "ms a pass", "µs a step", "GPE", "reference / compiled", "incremental µs", "/ compiled"],
            [
                [
                    method,
                    1e3 * spent["seconds"],
                    1e6 * spent["seconds_per_step"],
                    spent["seconds"] / unit,
                    numbers["twins"][method]["reference_step"] / numbers["twins"][method]["compiled_step"]
                    if method in numbers["twins"]
                    else "",
                    1e6 * numbers["twins"][method]["twin_step"] if method in numbers["twins"] else "",
                    numbers["twins"][method]["ratio"] if method in numbers["twins"] else "",
                ]
                for method, spent in numbers["passes"].items()
            ],
        ),
        table(
            "GPE of one pass",
            ["method", *(f"b = {b}" for b in BATCHES)],
            [[method, *by_batch.values()] for method, by_batch in numbers["gpe"].items()],
        ),
        table(
            "Peak memory of solve(), sa-iu-admm",
            ["b", "peak MB", "(n/b)·d·8 MB", "ratio"],
            [[str(b), used["peak"] / 1e6, used["table"] / 1e6, used["ratio"]] for b, used in numbers["memory"].items()],
        ),
        "A second process, kernels on disk: import {import:.2f} s + first solve {first_solve:.2f} s = {total:.2f} s "
        "({cpu:.2f} s of processor time)".format(**numbers["second_process"]),
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="also write the numbers to this file")
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    options = parser.parse_args()
    numbers = measure(quick=options.quick)
    print(report(numbers))
    if options.json:
        options.json.write_text(json.dumps(numbers, indent=2))


if __name__ == "__main__":
    main()

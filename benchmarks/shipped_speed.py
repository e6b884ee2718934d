"""Run time of kernels included in a wheel compared with kernels compiled for this processor, in turns.

    python benchmarks/shipped_speed.py          # in an environment with a wheel that includes kernels (make wheel)
    python benchmarks/shipped_speed.py a9a csr  # some of the problems

Each turn is a fresh process on one thread, the best of three solves. First a fused lasso with a logistic loss, 40,000
samples of 200 features, to a relative gap of 1e-6, on synthetic data, dense and sparse; then the data sets of
``san.py`` that are found, to a relative suboptimality of 1e-6 as in ``commits.py``. The table has the best and the
median of five turns, and the passes over the data.

On hiv-path4932 the number of steps depends on rounding: on one and the same machine code, strengths that differ by
1e-9, relatively, take 22 to 28 passes. Kernels for different processors round differently, so there both sides solve at
15 such strengths in each of two turns, and the table has medians over them, of seconds and of passes.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from commits import write_problem

TURNS, TURNS_OF_DRAWS = 5, 2
DRAWS = {"hiv-path4932": 15}
"""Strengths, which differ by 1e-9, where the number of steps depends on rounding; elsewhere one."""
SOLVE = """
import sys, time
import numpy as np
import scipy.sparse as sp
from skadmm import Problem, solve
from skadmm.kernels import shipped
from skadmm.operators import chain, stack
from skadmm.regularizers import L1
rng = np.random.default_rng(0)
X = rng.standard_normal((40_000, 200))
if sys.argv[1] == "csr":
    X *= rng.random(X.shape) < 0.1
target = np.where(X[:, :20].sum(axis=1) + rng.standard_normal(len(X)) > 0, 1.0, -1.0)
X = sp.csr_array(X) if sys.argv[1] == "csr" else X
problem = Problem(X, target, loss="logistic", psi=L1(1e-4), A=stack(chain(200), "identity"))
seconds = []
for _ in range(4):
    start = time.perf_counter()
    passes = solve(problem, tol=1e-6).passes
    seconds.append(time.perf_counter() - start)
print(min(seconds[1:]), passes, len(shipped.used))
"""

SAN = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from pathlib import Path
from commits import measure
from skadmm.kernels import shipped
draws = int(sys.argv[2])
found = measure(Path(sys.argv[1]), repeats=3 if draws == 1 else 1, draws=draws)
print(found["seconds"], found["passes"], len(shipped.used))
"""


def problems(folder, names):
    """Names, programs and their arguments."""
    from san import SETS, data_folder

    for rows in ("dense", "csr"):
        if not names or rows in names:
            yield rows, SOLVE, [rows]
    for name, (_, standardised, _) in SETS.items():
        if (not names or name in names) and (data_folder() / f"{name}.svm.xz").exists():
            arguments = [str(write_problem(folder, name, 0)), str(DRAWS.get(name, 1))]
            yield f"{name} ({'dense' if standardised else 'csr'})", SAN, arguments


def main():
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("NUMBA_", "SKADMM_"))}
    clean |= {"OPENBLAS_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
    print(f"{'rows':<22}{'kernels':<10}{'best':>8}{'median':>8}{'passes':>9}")
    with tempfile.TemporaryDirectory() as folder:
        sides = {
            "native": clean | {"NUMBA_CACHE_DIR": f"{folder}/native", "SKADMM_SHIPPED_KERNELS": "0"},
            "shipped": clean | {"NUMBA_CACHE_DIR": f"{folder}/none"},
        }

        def turn(program, arguments, side):
            command = [sys.executable, "-c", program, *arguments]
            process = subprocess.run(command, env=sides[side], stdout=subprocess.PIPE, check=True, text=True)
            seconds, passes, used = process.stdout.split()
            if (side == "shipped") != (int(used) > 0):
                raise SystemExit("this package carries no kernels for this processor: install a wheel of `make wheel`")
            return float(seconds), float(passes)

        for name, program, arguments in problems(Path(folder), sys.argv[1:]):
            turn(program, arguments, "native")  # compiles
            turns = TURNS if arguments[-1] in ("1", "dense", "csr") else TURNS_OF_DRAWS
            taken = np.array([[turn(program, arguments, side) for side in sides] for _ in range(turns)])
            for k, side in enumerate(sides):
                seconds, passes = taken[:, k, 0], taken[:, k, 1].min()
                print(f"{name:<22}{side:<10}{seconds.min():>8.3f}{np.median(seconds):>8.3f}{passes:>9.2f}", flush=True)
            print(f"{'':<22}{'ratio':<10}{np.divide(*taken[:, :, 0].min(axis=0)[::-1]):>8.3f}", flush=True)


if __name__ == "__main__":
    main()

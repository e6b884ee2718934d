"""Run time of kernels included in a wheel compared with kernels compiled for this processor, in turns.

    python benchmarks/shipped_speed.py     # in an environment with a wheel that includes kernels (make wheel)

Each turn is a fresh process on one thread: the best of three solves of a fused lasso with a logistic loss, 40,000
samples of 200 features, to a relative gap of 1e-6. The table has the best and the median of five turns. Synthetic data.
"""

import os
import subprocess
import sys
import tempfile

import numpy as np

TURNS = 5
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
    solve(problem, tol=1e-6)
    seconds.append(time.perf_counter() - start)
print(min(seconds[1:]), len(shipped.used))
"""


def main():
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("NUMBA_", "SKADMM_"))}
    clean |= {"OPENBLAS_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
    print(f"{'rows':<8}{'kernels':<10}{'best':>8}{'median':>8}")
    with tempfile.TemporaryDirectory() as folder:
        sides = {
            "native": clean | {"NUMBA_CACHE_DIR": f"{folder}/native", "SKADMM_SHIPPED_KERNELS": "0"},
            "shipped": clean | {"NUMBA_CACHE_DIR": f"{folder}/none"},
        }

        def turn(rows, side):
            command = [sys.executable, "-c", SOLVE, rows]
            process = subprocess.run(command, env=sides[side], stdout=subprocess.PIPE, check=True, text=True)
            seconds, used = process.stdout.split()
            if (side == "shipped") != (int(used) > 0):
                raise SystemExit("this package carries no kernels for this processor: install a wheel of `make wheel`")
            return float(seconds)

        for rows in ("dense", "csr"):
            turn(rows, "native")  # compiles
            taken = np.array([[turn(rows, side) for side in sides] for _ in range(TURNS)])
            for side, column in zip(sides, taken.T, strict=True):
                print(f"{rows:<8}{side:<10}{column.min():>8.3f}{np.median(column):>8.3f}")


if __name__ == "__main__":
    main()

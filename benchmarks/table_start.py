"""How a table of gradients should start: at x₀, or at zero; the default of ``table`` is decided here.

    SKADMM_DATA=path/to/data python benchmarks/table_start.py
    python benchmarks/table_start.py --only simulated

For each problem and method: the relative suboptimality after some passes with ``table="x0"`` over that with
``table="zero"`` (above 1, zero is ahead), the geometric mean over seeds, step="auto" in both. "warm" starts at the
solution for a penalty twice as strong, as a path does. None of the data sets is one of the reproduction.
"""

import os

os.environ |= {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "NUMBA")}

import argparse
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from sklearn.preprocessing import StandardScaler

from _common import data_folder
from skadmm import Problem, solve
from skadmm.datasets import load
from skadmm.operators import chain, stack
from skadmm.regularizers import L1

METHODS = ("sa-iu-admm", "sa-admm", "saga-iu-admm", "saga-admm")
POINTS = (2.0, 5.0, 10.0, 20.0)


def fused(X: Any, target: np.ndarray, loss: str = "logistic", strength: float = 1e-3) -> Problem:
    """A fused lasso over the columns in their order."""
    return Problem(X, target, loss, psi=L1(strength), A=stack(chain(X.shape[1]), "identity"))


def simulated(n: int, d: int, loss: str = "logistic", *, spread: float = 0.0, density: float = 1.0) -> Problem:
    """Piecewise constant coefficients; columns whose scales differ by `spread` decades."""
    rng = np.random.default_rng(n + d)
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < density) * 10.0 ** rng.uniform(-spread / 2, spread / 2, d)
    signal = X @ np.repeat(rng.standard_normal(-(-d // 5)), 5)[:d]
    target = signal / signal.std() + rng.standard_normal(n)
    if loss in ("logistic", "squared-hinge"):
        target = np.where(target > 0, 1.0, -1.0)
    return fused(sp.csr_array(X) if density < 1 else X, target, loss)


def hiva() -> Problem:
    """The real set of the reproduction's kind that it does not use."""
    loaded = load("hiva", data_folder())
    return fused(loaded.X, loaded.target, strength=1e-4)


def standardised(loader: Callable[..., Any], loss: str = "logistic") -> Problem:
    """A set of scikit-learn's with columns of mean 0 and variance 1."""
    X, target = loader(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    if loader is load_digits:
        target = np.where(target % 2 == 1, 1.0, -1.0)
    elif loss == "squared":
        target = (target - target.mean()) / target.std()
    return fused(X, target, loss)


PROBLEMS: dict[str, tuple[Callable[[], Problem], int]] = {
    "breast-cancer": (lambda: standardised(load_breast_cancer), 1),
    "digits": (lambda: standardised(load_digits), 1),
    "diabetes, squared": (lambda: standardised(load_diabetes, "squared"), 1),
    "hiva, b = 4": (hiva, 4),
    "simulated 5,000 x 20": (lambda: simulated(5000, 20), 1),
    "simulated 20,000 x 50": (lambda: simulated(20_000, 50), 1),
    "simulated 20,000 x 50, scales": (lambda: simulated(20_000, 50, spread=2.0), 1),
    "simulated 20,000 x 50, squared": (lambda: simulated(20_000, 50, "squared"), 1),
    "simulated 20,000 x 50, huber": (lambda: simulated(20_000, 50, "huber"), 1),
    "simulated 5,000 x 300, sparse, b = 10": (lambda: simulated(5000, 300, density=0.05), 10),
}
"""A problem and the size of its blocks."""


def distances(
    problem: Problem, method: str, table: str, batch_size: int, seed: int, optimum: float, **start: Any
) -> Any:
    """Relative suboptimality at POINTS, and the step."""
    result = solve(
        problem, method, passes=POINTS[-1], batch_size=batch_size, record_every=1, random_state=seed,
        options={"table": table}, **start,
    )  # fmt: skip
    selection = result.tuning.samples_touched / problem.n_samples
    passes = np.array([row["passes"] for row in result.records]) - selection
    values = np.array([row["objective"] for row in result.records]) / optimum - 1
    values = np.where(np.isfinite(values), values, np.inf)
    at = [values[np.searchsorted(passes, point + 0.01) - 1] for point in POINTS]
    return np.clip(at, 1e-12, 1e12), result.settings["step"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="problems whose name holds this word")
    parser.add_argument("--seeds", type=int, default=2)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    print(f"{'problem':<40}{'method':<14}{'start':<7}" + "".join(f"{f'@{point:g}':>10}" for point in POINTS))
    every: dict[tuple[str, str], list[np.ndarray]] = {}
    for name, (make, batch_size) in PROBLEMS.items():
        if given.only not in name:
            continue
        problem = make()
        optimum = solve(problem, tol=1e-9).objective
        strong = problem.replace(psi=problem.psi._replace(strength=2 * problem.psi.strength))
        starts = {"cold": {}, "warm": {"x0": solve(strong, tol=1e-6).x}}
        for method in METHODS:
            for kind, start in starts.items():
                ratios = []
                for seed in range(given.seeds):
                    runs = [
                        distances(problem, method, t, batch_size, seed, optimum, **start)[0] for t in ("x0", "zero")
                    ]
                    ratios.append(np.log10(runs[0] / runs[1]))
                mean = np.mean(ratios, axis=0)
                every.setdefault((method, kind), []).append(mean)
                print(f"{name:<40}{method:<14}{kind:<7}" + "".join(f"{10**value:>10.3g}" for value in mean), flush=True)
    for (method, kind), rows in every.items():
        middle = np.median(rows, axis=0)
        print(f"{'median':<40}{method:<14}{kind:<7}" + "".join(f"{10**value:>10.3g}" for value in middle))


if __name__ == "__main__":
    main()

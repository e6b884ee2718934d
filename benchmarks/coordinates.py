"""The lasso: the default solver against each of the solvers that it may choose, alone, to a gap of 1e-6.

    python benchmarks/coordinates.py               dense and sparse data
    python benchmarks/coordinates.py --dense       leave the sparse data out

Dense data have correlated neighbours, with more features than samples and with fewer; on the sparse data hundreds to
thousands of features leave zero. Seconds are of processor time, the best of --repeats in turns; a solver that takes
longer than ten times the default and three seconds is not repeated.
"""

import argparse
import time
from typing import Any

import numpy as np
import scipy.sparse as sp

from skadmm import Problem, Result, solve
from skadmm.regularizers import L1

SHAPES = ((200, 5000), (1000, 3000), (1000, 100), (100_000, 30), (5000, 500))
SPARSE = ((20_000, 10_000, 0.005), (5000, 20_000, 0.002), (50_000, 1000, 0.01))
SHARES = (0.3, 0.05, 0.01)
SOLVERS = ("san-admm", "coordinate-descent", "block-descent", "reduced-newton")
Ratios = dict[tuple[str, str], list[float]]


def dense(rng: np.random.Generator, n: int, d: int, correlation: float) -> np.ndarray:
    """Columns with the given correlation between neighbours."""
    X = rng.standard_normal((n, d))
    for j in range(1, d):
        X[:, j] = correlation * X[:, j - 1] + np.sqrt(1 - correlation**2) * X[:, j]
    return X


def labelled(rng: np.random.Generator, X: Any, loss: str, active: int) -> np.ndarray:
    """A target that depends on a few features, with noise."""
    truth = np.zeros(X.shape[1])
    truth[rng.choice(truth.size, active, replace=False)] = rng.standard_normal(active)
    margin = X @ truth
    target = margin + 0.1 * np.std(margin) * rng.standard_normal(margin.size)
    return np.sign(target) if loss == "logistic" else target


def compare(name: str, X: Any, target: np.ndarray, loss: str, share: float, repeats: int) -> dict[str, float]:
    """Print the times and return their ratios to that of the default; λ is this share of the smallest strength at which
    x is zero."""
    strongest = np.abs(Problem(X, target, loss=loss, psi=L1(1.0)).gradient(np.zeros(X.shape[1]))).max()
    problem = Problem(X, target, loss=loss, psi=L1(share * strongest))
    best: dict[str, tuple[float, Result]] = {}
    for _ in range(repeats):
        for method in SOLVERS:
            usual = best.get(SOLVERS[0], (np.inf,))[0]
            if method in best and best[method][0] > max(10.0 * usual, 3.0):
                continue
            begun = time.process_time()
            result = solve(problem, method, tol=1e-6, passes=3000, record_every=0)
            taken = time.process_time() - begun
            if method not in best or taken < best[method][0]:
                best[method] = taken, result
    usual, first = best[SOLVERS[0]]
    columns = [f"{method} {1e3 * best[method][0]:,.0f} ms, {best[method][1].passes:.0f} passes" for method in SOLVERS]
    unsolved = [method for method in SOLVERS if best[method][1].status.value != "solved"]
    print(
        f"{name}, {loss}, λ = {share:g}: {'; '.join(columns)}; default is {first.solver}; "
        f"{np.count_nonzero(first.x):,} not zero{'; not solved: ' + ', '.join(unsolved) if unsolved else ''}",
        flush=True,
    )
    return {method: best[method][0] / usual for method in SOLVERS[1:]}


def summary(ratios: Ratios) -> None:
    """Print the median and the range for each solver and loss."""
    for (method, loss), values in ratios.items():
        print(f"{method}, {loss}: {np.median(values):.2f} of the default ({min(values):.2f} to {max(values):.2f})")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--repeats", type=int, default=3)
    arguments.add_argument("--dense", action="store_true", help="leave the sparse data out")
    given = arguments.parse_args()
    rng = np.random.default_rng(0)
    X = dense(rng, 100, 200, 0.5)
    for loss in ("squared", "logistic"):  # compiles
        compare("warming up", X, labelled(rng, X, loss, 20), loss, 0.05, 1)
    kinds = [
        (f"{n:,} × {d:,}, correlation {c:g}", dense(rng, n, d, c)) for n, d in SHAPES for c in (0.0, 0.5, 0.9, 0.99)
    ]
    groups = {"dense": kinds}
    if not given.dense:
        groups["sparse"] = [
            (f"{n:,} × {d:,}, {share:.1%} stored", sp.random_array((n, d), density=share, rng=rng, format="csr"))
            for n, d, share in SPARSE
        ]
    for name, tables in groups.items():
        ratios: Ratios = {}
        for table, X in tables:
            for loss in ("squared", "logistic"):
                target = labelled(rng, X, loss, min(20, X.shape[1] // 2))
                for share in SHARES:
                    for method, ratio in compare(table, X, target, loss, share, given.repeats).items():
                        ratios.setdefault((method, loss), []).append(ratio)
        print(name)
        summary(ratios)


if __name__ == "__main__":
    main()

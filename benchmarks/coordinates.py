"""The lasso by the default solvers and by reduced Newton steps alone, to a gap of 1e-6.

    python benchmarks/coordinates.py

Dense data with more features than samples, neighbours correlated; and sparse data of which thousands of features leave
zero, where reduced Newton steps take more than a minute (--dense leaves it out). Best of --repeats; the sparse problem
is solved once.
"""

import argparse
from typing import Any

import numpy as np
import scipy.sparse as sp

from _common import best_of
from skadmm import Problem, solve
from skadmm.regularizers import L1

SHAPES = ((200, 5000), (1000, 3000))
SHARES = (0.3, 0.05, 0.01)


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


def compare(name: str, X: Any, target: np.ndarray, loss: str, share: float, repeats: int) -> float:
    """Print both times and return their ratio; λ is this share of the smallest strength at which x is zero."""
    strongest = np.abs(Problem(X, target, loss=loss, psi=L1(1.0)).gradient(np.zeros(X.shape[1]))).max()
    problem = Problem(X, target, loss=loss, psi=L1(share * strongest))
    results = []

    def run(method: str) -> None:
        results.append(solve(problem, method, tol=1e-6, passes=3000, record_every=0))

    usual = best_of(lambda: run("san-admm"), repeats)
    alone = best_of(lambda: run("reduced-newton"), repeats)
    first, last = results[0], results[-1]
    print(
        f"{name}, {loss}, λ = {share:g}: {1e3 * usual:,.0f} ms ({first.passes:.0f} passes, {first.status}), "
        f"reduced Newton alone {1e3 * alone:,.0f} ms ({last.passes:.0f} passes); "
        f"{np.count_nonzero(first.x):,} not zero, "
        f"objectives {abs(first.objective / last.objective - 1):.0e} apart; ratio {usual / alone:.2f}",
        flush=True,
    )
    return usual / alone


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--repeats", type=int, default=3)
    arguments.add_argument("--dense", action="store_true", help="leave the sparse set out")
    given = arguments.parse_args()
    rng = np.random.default_rng(0)
    X = dense(rng, 100, 200, 0.5)
    for loss in ("squared", "logistic"):  # compiles
        compare("warming up", X, labelled(rng, X, loss, 20), loss, 0.05, 1)
    ratios = []
    for n, d in SHAPES:
        for correlation in (0.0, 0.5, 0.9, 0.99):
            for loss in ("squared", "logistic"):
                X = dense(rng, n, d, correlation)
                target = labelled(rng, X, loss, 20)
                name = f"{n:,} × {d:,}, correlation {correlation:g}"
                ratios += [compare(name, X, target, loss, share, given.repeats) for share in SHARES]
    print(f"dense: ratios {min(ratios):.2f} to {max(ratios):.2f}, median {np.median(ratios):.2f}")
    if not given.dense:
        X = sp.random_array((20_000, 10_000), density=0.005, rng=rng, format="csr")
        compare("20,000 × 10,000, 100 entries per row", X, labelled(rng, X, "logistic", 50), "logistic", 0.02, 1)


if __name__ == "__main__":
    main()

"""SAN-ADMM: passes and gradient-pass equivalents to a relative suboptimality of 1e-6, and how the cost grows.

    python benchmarks/san.py                 all data sets found, the paper's methods, both growth tables
    python benchmarks/san.py --data a9a      one data set
    python benchmarks/san.py --no-growth     without the growth tables
    python benchmarks/san.py --seed 1        other halves of the data

For each data set: half the rows, A = [G; I] with the precision graph of that half. The reference optimum is the
method's own, run to a certified relative gap of 1e-10, and confirmed with CVXPY and Clarabel where d is small. One GPE
is the time of one full gradient in the same process, the faster of SciPy's and ours.
"""

import argparse
import lzma
import time
from typing import Any

import numpy as np
import scipy.sparse as sp

from _common import best_of, data_folder, graph_guided
from skadmm import ALGORITHMS, Problem, solve
from skadmm.kernels.samples import mean_gradient
from skadmm.operators import chain, stack
from skadmm.problem.existence import find
from skadmm.regularizers import L1

TARGET = 1e-6
SETS = {
    "a9a": (1e-5, False, "passes ≤ 4, GPE ≤ 50"),
    "covtype": (1e-5, True, "passes ≤ 5, GPE ≤ 30"),
    "qm9mu": (1e-5, True, "passes ≤ 3, GPE ≤ 40"),
    "hiv-path4932": (1e-4, False, "GPE ≤ 200"),
    "20ng-ltc": (1e-4, False, "GPE ≤ 300"),
}
PAPER = ["sa-admm", "sa-iu-admm", "stoc-admm", "opg-admm", "rda-admm", "batch-admm", "batch-iu-admm"]


def half_of(name: str, standardise: bool, seed: int = 0) -> tuple[Any, np.ndarray]:
    """Half the rows of a data set and its labels; dense with standardised columns on request."""
    from sklearn.datasets import load_svmlight_file

    with lzma.open(data_folder() / f"{name}.svm.xz") as file:
        X, target = load_svmlight_file(file)
    rows = np.random.default_rng(seed).permutation(X.shape[0])[: X.shape[0] // 2]
    X, target = X[rows], np.where(target[rows] == np.unique(target)[1], 1.0, -1.0)
    if not standardise:
        return sp.csr_array(X), target
    X = X.toarray()
    X -= X.mean(axis=0)
    spread = X.std(axis=0)
    X /= np.where(spread > 0, spread, 1.0)
    return X, target


def gradient_seconds(problem: Problem, X: Any, target: np.ndarray) -> float:
    """The time of one full gradient: the faster of SciPy's (or BLAS's) and ours."""
    x, out, samples = np.zeros(problem.n_features), np.empty(problem.n_features), problem.samples()
    mean_gradient(samples, x, out)
    transposed = X.T
    theirs = best_of(lambda: transposed @ (-target / (1.0 + np.exp(target * (X @ x)))), 10)
    return min(theirs, best_of(lambda: mean_gradient(samples, x, out), 10))


def first_below(trace: Any, optimum: float, level: float) -> Any:
    """The first record whose relative suboptimality is at most `level`; None if there is none."""
    hits = trace[(trace["objective"] - optimum) / optimum <= level]
    return None if hits.empty else hits.iloc[0]


def clarabel(problem: Problem, X: Any, strength: float) -> float | None:
    """CVXPY's optimum, where the problem is small enough."""
    if problem.nnz > 500_000:
        return None
    import cvxpy as cp

    x = cp.Variable(problem.n_features)
    loss = cp.sum(cp.logistic(-cp.multiply(problem.target, X @ x))) / problem.n_samples
    penalty = strength * cp.norm1(problem.constraint.A @ x)
    return float(cp.Problem(cp.Minimize(loss + penalty)).solve(solver=cp.CLARABEL))


def one_set(name: str, repeats: int, paper: bool, seed: int) -> None:
    """The rows of one data set."""
    strength, standardise, promise = SETS[name]
    X, target = half_of(name, standardise, seed)
    began = time.perf_counter()
    problem = graph_guided(X, target, strength)
    edges = problem.n_constraints - problem.n_features
    print(f"\n{name}: n = {problem.n_samples:,}, d = {problem.n_features:,}, {edges:,} edges", end=" ")
    print(f"({time.perf_counter() - began:.1f} s), λ = {strength:g}; aim: {promise}")
    solve(problem, "san-admm", passes=3)  # compiles
    reference = solve(problem, "san-admm", passes=300, tol=1e-10, record_every=0)
    optimum = reference.objective
    print(f"  reference: {optimum:.12g}, certified relative gap {reference.gap:.1e}", end="")
    if problem.n_features < 1000:
        other = clarabel(problem, X, strength)
        if other is not None:
            print(f"; Clarabel {other:.12g}, relative difference {(other - optimum) / optimum:.1e}", end="")
    print()
    gpe = gradient_seconds(problem, X, target)
    runs = [solve(problem, "san-admm", passes=300, tol=1e-8, record_every=1e-9).trace for _ in range(repeats)]
    print(f"  {'':14}{'to':>7}{'passes':>9}{'seconds':>10}{'GPE':>8}     (one gradient: {gpe * 1e3:.3g} ms)")
    for level in (1e-3, TARGET):
        hits = [first_below(trace, optimum, level) for trace in runs]
        seconds = min(hit["seconds"] for hit in hits)
        print(f"  {'san-admm':14}{level:>7.0e}{hits[0]['passes']:>9.2f}{seconds:>10.4f}{seconds / gpe:>8.1f}")
    if paper:
        the_papers(problem, optimum, gpe)
    bare = Problem(X, target, psi=L1(strength), A=problem.constraint.A[:edges])
    endless = find(bare)
    print(f"  with bare G: {'a minimiser exists' if endless is None else endless}")


def the_papers(problem: Problem, optimum: float, gpe: float) -> None:
    """The best of the paper's seven methods at its best step: cost to 1e-3, and suboptimality after 200 passes."""
    per_row = problem.nnz / problem.n_samples
    balanced = int(np.clip((problem.n_features + problem.constraint.A.nnz) / per_row, 1, problem.n_samples // 32))
    rows = []
    for method in PAPER:
        block = 1 if ALGORITHMS[method].full else balanced
        result = solve(problem, method, passes=200, batch_size=block, record_every=5)
        trace = result.trace
        hit = first_below(trace, optimum, 1e-3)
        reached = (trace["objective"].min() - optimum) / optimum
        rows.append((reached, method, hit, result.settings["step"]))
    reached, method, hit, step = min(rows, key=lambda row: row[0])
    to = (
        "not reached"
        if hit is None
        else f"{hit['passes']:.1f} passes, {hit['seconds']:.3g} s ({hit['seconds'] / gpe:.0f} GPE)"
    )
    print(f"  the paper's best, {method} (step {step:.2g}): to 1e-3 {to}; after 200 passes {reached:.1e}")


def synthetic(n: int, d: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Dense normal rows whose coefficients are constant over runs of features."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    margin = X @ np.repeat(rng.standard_normal(-(-d // 5)), 5)[:d] / np.sqrt(d)
    return X, np.where(rng.random(n) < 1 / (1 + np.exp(-margin)), 1.0, -1.0)


def growth(sizes: list[tuple[int, int]], axis: str) -> None:
    """Seconds and GPE to a certified gap of 1e-6 as one of n and d grows, with the fitted exponent."""
    print(f"\ngrowth in {axis}: to a certified relative gap of 1e-6")
    print(f"  {'n':>12}{'d':>7}{'passes':>9}{'seconds':>10}{'GPE':>9}")
    seconds, along = [], []
    for n, d in sizes:
        X, target = synthetic(n, d)
        problem = Problem(X, target, psi=L1(1e-3), A=stack(chain(d), "identity"))
        solve(problem, "san-admm", passes=1, record_every=0) if n <= 100_000 else None
        result = min(
            (solve(problem, "san-admm", tol=1e-6, passes=50, record_every=0) for _ in range(2)), key=lambda r: r.seconds
        )
        gpe = gradient_seconds(problem, X, target)
        shown = f"{result.passes:>9.2f}{result.seconds:>10.3f}{result.seconds / gpe:>9.1f}"
        print(f"  {n:>12,}{d:>7,}{shown}  {result.status}")
        seconds.append(result.seconds)
        along.append(n if axis == "n" else d)
    print(f"  seconds grow as {axis}^{np.polyfit(np.log(along), np.log(seconds), 1)[0]:.2f}")


def main() -> None:
    """Run the selected measurements."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=",".join(SETS), help="data sets, separated by commas")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0, help="which half of the rows")
    parser.add_argument("--no-paper", action="store_true", help="without the paper's methods")
    parser.add_argument("--no-growth", action="store_true", help="without the growth tables")
    options = parser.parse_args()
    for name in filter(None, options.data.split(",")):
        if not (data_folder() / f"{name}.svm.xz").exists():
            print(f"\n{name}: {name}.svm.xz is not there (set SKADMM_DATA)")
            continue
        one_set(name, options.repeats, not options.no_paper, options.seed)
    if not options.no_growth:
        growth([(10**4, 50), (10**5, 50), (10**6, 50), (10**7, 50)], "n")
        growth([(10**5, 50), (10**5, 200), (10**5, 800), (10**5, 2000)], "d")


if __name__ == "__main__":
    main()

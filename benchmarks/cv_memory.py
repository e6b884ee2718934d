"""Peak memory of cross-validation on a graph with many features, against that of a single fit.

    python benchmarks/cv_memory.py [--samples 150] [--features 20000] [--edges 60000] [--folds 2] [--jobs 1]

Each runs in a process of its own, which compiles first on a small problem. The memory is what the process takes at its
peak beyond what it took after that. The aim: at most 1.5 times a single fit for each fold that runs at a time.
"""

import os

os.environ |= {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "NUMBA")}

import argparse
import multiprocessing
import resource
import warnings
from typing import Any

import numpy as np

from skadmm import FusedLassoClassifier, FusedLassoClassifierCV


def problem(n: int, d: int, edges: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Random features, a class that forty of them make, and a random graph."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    pairs = np.sort(rng.integers(0, d, (2 * edges, 2)), axis=1)
    pairs = np.unique(pairs[pairs[:, 0] != pairs[:, 1]], axis=0)
    return X, X[:, :40].sum(axis=1) + rng.standard_normal(n) > 0, rng.permutation(pairs)[:edges]


def peak() -> float:
    """Of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0


def fit(kind: str, options: Any) -> None:
    """A single fit, or a cross-validation."""
    X, y, edges = problem(options.samples, options.features, options.edges)
    if kind == "fit":
        FusedLassoClassifier(alpha=options.alpha, graph=edges, l1_ratio=0.5).fit(X, y)
        return
    alphas = options.alpha * np.array([4.0, 2.0, 1.0])
    FusedLassoClassifierCV(alphas=alphas, graph=edges, l1_ratio=0.5, cv=options.folds, n_jobs=options.jobs).fit(X, y)


def measure(kind: str, options: Any, found: Any) -> None:
    """Put the memory of a run, in MB, into a queue."""
    warnings.simplefilter("ignore")
    small = argparse.Namespace(**(vars(options) | {"features": 300, "edges": 600}))
    fit(kind, small)
    before = peak()
    fit(kind, options)
    found.put(peak() - before)


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=150)
    parser.add_argument("--features", type=int, default=20_000)
    parser.add_argument("--edges", type=int, default=60_000)
    parser.add_argument("--folds", type=int, default=2)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--alpha", type=float, default=0.01)
    options = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    peaks = {}
    for kind in ("fit", "cross-validation"):
        found = context.Queue()
        process = context.Process(target=measure, args=(kind, options, found))
        process.start()
        peaks[kind] = found.get()
        process.join()
    ratio = peaks["cross-validation"] / (peaks["fit"] * min(options.jobs, options.folds))
    shape = f"{options.samples} x {options.features}, {options.edges} edges"
    print(f"{shape}, {options.folds} folds, {options.jobs} at a time")
    print(f"fit {peaks['fit']:.0f} MB, cross-validation {peaks['cross-validation']:.0f} MB, {ratio:.2f} per fold")


if __name__ == "__main__":
    main()

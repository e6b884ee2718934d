"""Does the graph help? Recovery of planted clusters on a graph from n = 500 … 50,000 samples.

    python benchmarks/recovery.py [--sizes 500,2000,10000,50000] [--repeats 3] [--out docs/images/recovery.png]

60 features along a chain, in pieces of 10 with one coefficient each: 0, a, 0, −a, 2a, −2a. Where the pieces end is not
in the graph.
The fused lasso on that graph and the plain lasso with the strength of minimum BIC, ridge with that of minimum loss on
a held-out set of the same size; measured on 20,000 new samples: the adjusted Rand index of the clusters of equal
coefficients, and the test loss.
"""

import argparse
import time

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import adjusted_rand_score, log_loss

from _common import table
from skadmm import FusedLassoClassifier, GeneralizedLassoClassifier

ALPHAS = np.logspace(-0.7, -3.1, 9)
METHODS = ("fused lasso on the chain", "plain lasso", "ridge")


def one_run(n: int, seed: int) -> dict[str, tuple[float, float]]:
    """ARI and test loss of each method on one draw."""
    rng = np.random.default_rng(seed)
    levels = 0.35 * np.array([0.0, 1.0, 0.0, -1.0, 2.0, -2.0])
    x = np.repeat(levels, 10)
    X = rng.standard_normal((2 * n + 20_000, x.size))
    y = np.where(rng.random(X.shape[0]) < 1 / (1 + np.exp(-(X @ x))), 1, -1)
    train, held, test = slice(0, n), slice(n, 2 * n), slice(2 * n, None)
    planted = np.unique(x, return_inverse=True)[1]
    found = {}
    for name in METHODS:
        best = None
        for alpha in ALPHAS:
            if name == "ridge":
                model = LogisticRegression(C=1 / (alpha * n), max_iter=2000)
            elif name == "plain lasso":
                model = GeneralizedLassoClassifier(alpha=alpha, tol=1e-5)
            else:
                model = FusedLassoClassifier(alpha=alpha, l1_ratio=0.3, tol=1e-5)
            model.fit(X[train], y[train])
            if name == "ridge":
                merit = log_loss(y[held], model.predict_proba(X[held]))
            else:
                merit = 2 * n * log_loss(y[train], model.predict_proba(X[train])) + np.log(n) * model.dof_
            if best is None or merit < best[0]:
                best = merit, model
        model = best[1]
        labels = np.unique(model.coef_[0].round(12), return_inverse=True)[1]  # equal coefficients, one cluster
        found[name] = adjusted_rand_score(planted, labels), log_loss(y[test], model.predict_proba(X[test]))
    return found


def draw(sizes: list[int], results: dict[tuple[str, int], np.ndarray], out: str) -> None:
    """The figure."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9.6, 3.8), layout="constrained")
    styles = (("#0072B2", "o"), ("#D55E00", "s"), ("#999999", "^"))
    for ax, quantity, title in zip(
        axes, (0, 1), ("clusters recovered (adjusted Rand index)", "test loss"), strict=True
    ):
        for name, (color, marker) in zip(METHODS, styles, strict=True):
            values = np.array([results[name, n][:, quantity] for n in sizes])
            ax.plot(sizes, values.mean(axis=1), color=color, marker=marker, linewidth=1.8, label=name)
            ax.fill_between(sizes, values.min(axis=1), values.max(axis=1), color=color, alpha=0.15, linewidth=0)
        ax.set_xscale("log")
        ax.set_xlabel("training samples")
        ax.set_title(title, fontsize="medium")
        ax.grid(True, linewidth=0.5, alpha=0.4)
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylim(-0.05, 1.05)
    axes[1].legend(frameon=False, fontsize="small")
    figure.savefig(out, dpi=130)


def main() -> None:
    """Measure, print, draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default="500,2000,10000,50000")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", default="")
    options = parser.parse_args()
    sizes = [int(size) for size in options.sizes.split(",")]
    began = time.perf_counter()
    results = {}
    for n in sizes:
        runs = [one_run(n, seed) for seed in range(options.repeats)]
        for name in METHODS:
            results[name, n] = np.array([run[name] for run in runs])
    rows = [
        [f"{name}, n = {n}", *results[name, n].mean(axis=0), results[name, n][:, 0].min()]
        for n in sizes
        for name in METHODS
    ]
    print(table("Planted clusters, mean over draws", ["", "ARI", "test loss", "minimum ARI"], rows))
    print(f"{time.perf_counter() - began:.0f} s")
    if options.out:
        draw(sizes, results, options.out)


if __name__ == "__main__":
    main()

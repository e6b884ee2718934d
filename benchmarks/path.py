"""Speed of warm starts: FusedLassoClassifierCV on a9a, 5 folds × 50 alphas, and cold fits at the smallest alpha.

    python benchmarks/path.py [--alphas 50] [--folds 5] [--tol 1e-6]

The whole cross-validation, refit included, should take less than five times one cold fit at the smallest alpha per
fold: 50 alphas for the cost of five.
"""

import argparse
import lzma
import time
import warnings

import numpy as np
import scipy.sparse as sp
from sklearn.model_selection import StratifiedKFold

from _common import a9a_half, data_folder, table
from skadmm import FusedLassoClassifier, FusedLassoClassifierCV


def a9a() -> tuple[sp.csr_array, np.ndarray, str]:
    """All of a9a; a synthetic set of half its rows where the file is absent."""
    path = data_folder() / "a9a.svm.xz"
    if not path.exists():
        return a9a_half()
    from sklearn.datasets import load_svmlight_file

    with lzma.open(path) as file:
        X, target = load_svmlight_file(file, n_features=123)
    return sp.csr_array(X), target, "a9a"


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--alphas", type=int, default=50)
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--tol", type=float, default=1e-6)
    options = parser.parse_args()
    X, target, name = a9a()
    folds = StratifiedKFold(options.folds)
    FusedLassoClassifier(alpha=1e-3, tol=options.tol).fit(X[:1000], target[:1000])  # compiles

    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = FusedLassoClassifierCV(alphas=options.alphas, cv=folds, tol=options.tol).fit(X, target)
    whole = time.perf_counter() - began
    smallest = float(model.alphas_[-1])
    cold = []
    for train, _ in folds.split(X, target):
        began = time.perf_counter()
        FusedLassoClassifier(alpha=smallest, tol=options.tol).fit(X[train], target[train])
        cold.append(time.perf_counter() - began)
    ratio = whole / sum(cold)
    rows = [
        [f"{options.folds} folds × {options.alphas} alphas, and the refit", whole],
        [f"one cold fit at alpha = {smallest:.2e} per fold, all {options.folds}", sum(cold)],
        ["ratio (below 5 is the aim)", ratio],
    ]
    print(table(f"{name}, {X.shape[0]} × {X.shape[1]}, tol {options.tol:g}", ["", "seconds"], rows))
    print(f"alpha chosen {model.alpha_:.3g}, held-out loss {model.cv_mean_.min():.5f}, {model.n_clusters_} clusters")


if __name__ == "__main__":
    main()

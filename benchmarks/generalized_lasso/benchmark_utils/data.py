"""The data sets: half the rows of a real one with the precision graph of its features, or a simulated one."""

import functools
import lzma
import os
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmark_utils.problem import Groups
from skadmm.operators import chain, incidence, precision_graph, stack

PENALTIES = ("graph", "l1")


def data_folder() -> Path:
    """Where the data files are: SKADMM_DATA, or the folder shared/data beside the project."""
    return Path(os.environ.get("SKADMM_DATA", Path(__file__).resolve().parents[4] / "shared" / "data"))


@functools.cache
def real(name: str, *, standardise: bool, strength: float, penalty: str) -> dict[str, Any]:
    """Half the rows of `name`, A = [G; I] or A = I; a simulated set with a graph where the file is absent."""
    path = data_folder() / f"{name}.svm.xz"
    if not path.exists():
        print(f"{path} is not there (set SKADMM_DATA): simulated data stand in for {name}")
        return simulated(2000, 60, loss="logistic", structure="graph" if penalty == "graph" else "identity", seed=0)
    from sklearn.datasets import load_svmlight_file

    with lzma.open(path) as file:
        X, target = load_svmlight_file(file)
    rows = np.random.default_rng(0).permutation(X.shape[0])[: X.shape[0] // 2]
    X, target = X[rows], np.where(target[rows] == np.unique(target)[1], 1.0, -1.0)
    if standardise:
        X = X.toarray()
        X -= X.mean(axis=0)
        spread = X.std(axis=0)
        X /= np.where(spread > 0, spread, 1.0)
    else:
        X = sp.csr_array(X)
    d = X.shape[1]
    A = (
        stack(incidence(precision_graph(X), signs=False), "identity")
        if penalty == "graph"
        else sp.eye_array(d, format="csr")
    )
    return {"X": X, "target": target, "loss": "logistic", "A": sp.csr_array(A), "strength": strength}


@functools.cache
def simulated(n: int, d: int, *, loss: str, structure: str, seed: int = 0, share: float = 0.05) -> dict[str, Any]:
    """Gaussian rows and a piecewise constant (chain), clustered (graph) or sparse (identity, groups of four) truth.

    `share` sets the strength: a share of the largest entry of |∇f(0)|, or of the largest norm of a group there.
    """
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    blocks = max(1, d // 10)
    truth = np.repeat(rng.choice([0.0, 0.0, 1.0, -1.0], -(-d // blocks)), blocks)[:d]
    margin = X @ truth / max(1.0, np.linalg.norm(truth))
    noisy = margin + 0.5 * rng.standard_normal(n)
    target = np.where(noisy > 0, 1.0, -1.0) if loss == "logistic" else noisy
    A = {
        "chain": lambda: chain(d),
        "graph": lambda: stack(incidence([(j, j + 1) for j in range(d - 1)] + [(0, d - 1)], n_features=d), "identity"),
        "identity": lambda: sp.csr_array(sp.eye_array(d, format="csr")),
        "groups": lambda: Groups.of(d, 4),
    }[structure]()
    slope = (0.5 if loss == "logistic" else 1.0) * target
    parts = (X.T @ slope / n).reshape(-1, 4 if structure == "groups" else 1)
    strength = share * float(np.linalg.norm(parts, axis=1).max())
    A = A if structure == "groups" else sp.csr_array(A)
    return {"X": X, "target": target, "loss": loss, "A": A, "strength": strength}

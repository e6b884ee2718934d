"""The default solves ordinary problems whatever the features look like: every kind of table, penalty and loss."""

import numpy as np
import pytest
import scipy.sparse as sp

from skadmm import Problem, Status, solve
from skadmm.operators import chain, grid, stack, trend
from skadmm.regularizers import L1, GroupL2

N, D = 150, 48

TABLES = {
    "centred": lambda rng: rng.standard_normal((N, D)),
    "uniform": lambda rng: rng.random((N, D)),
    "binary": lambda rng: (rng.random((N, D)) < 0.3).astype(float),
    "absolute": lambda rng: np.abs(rng.standard_normal((N, D))),
    "shifted": lambda rng: rng.standard_normal((N, D)) + 100.0,
    "correlated": lambda rng: rng.standard_normal((N, 1)) + 0.3 * rng.standard_normal((N, D)),
    "scaled": lambda rng: rng.standard_normal((N, D)) * np.geomspace(1e-3, 1e3, D),
    "low rank": lambda rng: rng.standard_normal((N, 5)) @ rng.standard_normal((5, D)),
    "repeated": lambda rng: np.repeat(rng.standard_normal((N, D // 4)), 4, axis=1),
    "sparse": lambda rng: sp.random_array((N, D), density=0.1, rng=rng, format="csr"),
    "float32": lambda rng: rng.standard_normal((N, D)).astype(np.float32),
}
PENALTIES = {
    "lasso": lambda strength: {"psi": L1(strength)},
    "fused": lambda strength: {"psi": L1(strength), "A": stack(chain(D), "identity")},
    "chain": lambda strength: {"psi": L1(strength), "A": chain(D)},
    "grid": lambda strength: {"psi": L1(strength), "A": stack(grid((6, 8)), "identity")},
    "trend": lambda strength: {"psi": L1(strength), "A": trend(D, 2)},
    "groups": lambda strength: {"psi": GroupL2(strength, np.arange(D) // 4)},
}


@pytest.mark.parametrize("share", [0.3, 1e-3])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("table", TABLES)
def test_solved_whatever_the_features_look_like(table, penalty, loss, share):
    rng = np.random.default_rng(0)
    X = TABLES[table](rng)
    margin = np.asarray(X @ np.repeat([1.0, 0.0, -1.0, 0.0], D // 4), dtype=float)
    noisy = margin + 0.5 * np.std(margin) * rng.standard_normal(N)
    target = noisy if loss == "squared" else np.where(noisy > np.median(noisy), 1.0, -1.0)
    strength = share * np.abs(X.T @ target).max() / N
    result = solve(Problem(X, target, loss, **PENALTIES[penalty](strength)), tol=1e-6)
    assert result.status is Status.SOLVED

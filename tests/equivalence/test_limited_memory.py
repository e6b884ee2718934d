"""L-BFGS: the minimum that block descent and scikit-learn find, with a gap; what it refuses."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression

from skadmm import SOLVERS, FusedLassoClassifier, FusedLassoRegressor, Problem, Status, solve
from skadmm.regularizers import L1, SquaredL2

RNG = np.random.default_rng(0)
N, D, K = 120, 7, 3
X = RNG.standard_normal((N, D)) * np.logspace(-1, 1, D)
MARGINS = X @ (RNG.standard_normal((D, K)) / np.logspace(-1, 1, D)[:, None])
TARGETS = {
    "multinomial": np.argmax(MARGINS + RNG.gumbel(size=(N, K)), axis=1),
    "squared": MARGINS + RNG.standard_normal((N, K)),
    "huber": MARGINS + RNG.standard_normal((N, K)),
    "poisson": RNG.poisson(np.exp(np.clip(MARGINS, -3, 3))).astype(float),
}


@pytest.mark.parametrize("loss", TARGETS)
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array, lambda X: X.astype(np.float32)])
@pytest.mark.parametrize("weight", [None, RNG.integers(0, 3, N)], ids=["plain", "weighted"])
def test_it_finds_the_minimum_that_block_descent_finds(loss, storage, weight):
    problem = Problem(storage(X), TARGETS[loss], loss, omega=SquaredL2(0.05), sample_weight=weight)
    found, expected = solve(problem, tol=1e-8), solve(problem, "output-descent", tol=1e-9)
    assert found.solver == "limited-memory"
    assert found.status is Status.SOLVED
    assert found.stopped_on == "gap"
    assert found.objective == pytest.approx(expected.objective, rel=1e-7)
    assert found.objective - found.gap * abs(found.objective) <= expected.objective * (1 + 1e-9)


def test_scikit_learn_finds_the_same():
    y, ridge = TARGETS["multinomial"], 0.01
    model = LogisticRegression(C=1 / (ridge * N), tol=1e-10, max_iter=10_000, fit_intercept=False).fit(X, y)
    problem = Problem(X, y, "multinomial", omega=SquaredL2(ridge))
    assert solve(problem, tol=1e-9).objective == pytest.approx(problem.objective(model.coef_.ravel()), rel=1e-8)


def test_estimators_with_their_intercepts():
    classes = FusedLassoClassifier(0.0, ridge=0.01, multi_class="multinomial").fit(X, TARGETS["multinomial"])
    numbers = FusedLassoRegressor(0.0, ridge=0.01).fit(X + 3.0, TARGETS["squared"])
    for model in (classes, numbers):
        assert model.result_.solver == "limited-memory"
        assert model.result_.gap <= 1e-6


@pytest.mark.parametrize(
    ("options", "reason"), [({"psi": L1(0.1)}, "no ψ"), ({}, "squared l2"), ({"omega": L1(0.1)}, "squared l2")]
)
def test_what_it_refuses(options, reason):
    assert reason in SOLVERS["limited-memory"].applies(Problem(X, TARGETS["squared"], "squared", **options))

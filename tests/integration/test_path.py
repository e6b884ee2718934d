"""alpha_max, paths and the choice of alpha."""

import numpy as np
import pytest
import scipy.sparse as sp

from skadmm import (
    FusedLassoClassifierCV,
    FusedLassoRegressorCV,
    GeneralizedLassoRegressorCV,
    Problem,
    Status,
    alpha_max,
    path,
)
from skadmm.estimators._design import assembled
from skadmm.operators import chain, incidence, overlapping_groups, stack, trend
from skadmm.regularizers import L1, GroupL2
from skadmm.run.follow import Following, Goal
from skadmm.run.follow import with_new_strength as with_strength
from skadmm.run.solve import solve


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((80, 8))
    return X, X @ np.array([1.0, 1, 1, 0, 0, -1, -1, 0]) + 0.5 * rng.standard_normal(80)


def with_ones(X, A):
    design = assembled(X, np.ones(X.shape[1]), 1.0)
    return design.X, design.widened(A)


RING = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 6), (6, 7), (7, 0)]


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize(
    "A",
    [
        pytest.param(chain(8), id="chain"),
        pytest.param(stack(chain(8), "identity", weights=[0.7, 0.3]), id="chain and identity"),
        pytest.param(stack(incidence(RING, n_features=8), "identity", weights=[0.7, 0.3]), id="ring and identity"),
        pytest.param(incidence(RING, n_features=8), id="ring"),
        pytest.param(trend(8, 1), id="trend"),
    ],
)
def test_alpha_max_is_exact(data, A, loss):
    X, y = data
    X, A = with_ones(X, A)
    target = y if loss == "squared" else np.where(y > 0, 1, -1)
    problem = Problem(X, target, loss=loss, psi=L1(1.0), A=A)
    top = alpha_max(problem)
    above = solve(with_strength(problem, 1.001 * top), tol=1e-10, passes=1000)
    below = solve(with_strength(problem, 0.98 * top), tol=1e-10, passes=1000)
    assert np.abs(A @ above.x).max() <= 1e-7
    assert np.abs(A @ below.x).max() > 1e-5


def test_alpha_max_of_groups(data):
    X, y = data
    for groups in ([[0, 1, 2], [3, 4], [5, 6, 7]], [[0, 1, 2, 3], [3, 4, 5], [5, 6, 7]]):
        A, rows = overlapping_groups(groups, 8)
        problem = Problem(X, y, loss="squared", psi=GroupL2(1.0, rows), A=A)
        top = alpha_max(problem)
        assert np.abs(solve(with_strength(problem, 1.001 * top), tol=1e-8, passes=300).x).max() <= 1e-7
    # Disjoint groups have it in closed form.
    A, rows = overlapping_groups([[0, 1, 2], [3, 4], [5, 6, 7]], 8)
    expected = max(np.linalg.norm(X.T[group] @ y / 80) for group in ([0, 1, 2], [3, 4], [5, 6, 7]))
    assert alpha_max(Problem(X, y, loss="squared", psi=GroupL2(1.0, rows), A=A)) == pytest.approx(expected, rel=1e-9)


def test_a_path_is_what_separate_solves_give(data):
    X, y = data
    X, A = with_ones(X, stack(chain(8), "identity", weights=[0.5, 0.5]))
    problem = Problem(X, y, loss="squared", psi=L1(1.0), A=A)
    answer = path(problem, n_alphas=6, eps=1e-2, tol=1e-10)
    assert answer.alphas[0] == pytest.approx(alpha_max(problem))
    assert np.all(np.diff(answer.alphas) < 0)
    for alpha, x in zip(answer.alphas, answer.x, strict=True):
        cold = solve(with_strength(problem, alpha), tol=1e-10, passes=300)
        np.testing.assert_allclose(x, cold.x, atol=1e-7)
    assert answer.dof[0] == 1  # the intercept alone
    assert np.all(answer.gaps <= 1e-10)
    frame = answer.to_frame()
    assert list(frame.columns) == ["alpha", "loss", "dof", "aic", "bic", "gap", "status"]
    assert answer.best("bic") == int(np.argmin(answer.bic))
    residual = y - X @ answer.x[3]
    expected = 80 * np.log(np.mean(residual**2)) + np.log(80) * answer.dof[3]
    assert answer.bic[3] == pytest.approx(expected)
    with pytest.raises(ValueError, match="criterion"):
        answer.best("cp")


@pytest.mark.parametrize("alphas", [[], [0.0, 1.0], [-1.0], "many", [[1.0]], [np.nan]])
def test_bad_alphas(data, alphas):
    X, y = data
    with pytest.raises(ValueError, match="alphas="):
        path(Problem(X, y, loss="squared", psi=L1(1.0)), alphas)


def test_alpha_max_needs_a_penalty(data):
    X, y = data
    with pytest.raises(ValueError, match="psi"):
        alpha_max(Problem(X, y, loss="squared"))


def test_selection(data):
    X, y = data
    models = {
        how: FusedLassoRegressorCV(alphas=8, cv=4, selection=how).fit(X, y) for how in ("min", "1se", "aic", "bic")
    }
    least, careful = models["min"], models["1se"]
    assert least.alpha_ == least.alphas_[np.argmin(least.cv_mean_)]
    assert careful.alpha_ >= least.alpha_
    within = least.cv_mean_.min() + least.cv_se_[np.argmin(least.cv_mean_)]
    assert careful.alpha_ == least.alphas_[np.flatnonzero(least.cv_mean_ <= within)[0]]
    assert least.cv_losses_.shape == (8, 4)
    np.testing.assert_allclose(least.cv_se_, least.cv_losses_.std(axis=1, ddof=1) / 2)
    assert models["bic"].alpha_ == models["bic"].alphas_[np.argmin(models["bic"].criterion_)]
    assert models["bic"].dof_ <= models["aic"].dof_
    with pytest.raises(ValueError, match="selection="):
        FusedLassoRegressorCV(selection="best").fit(X, y)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_the_quick_path_is_the_certified_one(data, loss):
    X, y = data
    X, A = with_ones(X, stack(chain(8), "identity", weights=[0.5, 0.5]))
    target = y if loss == "squared" else np.where(y > 0, 1, -1)
    problem = Problem(X, target, loss=loss, psi=L1(1.0), A=A)
    certified = path(problem, n_alphas=12, tol=1e-8)
    quick = path(problem, n_alphas=12, tol=1e-8, certify=False)
    np.testing.assert_allclose(quick.x, certified.x, atol=2e-3)
    np.testing.assert_allclose(quick.losses, certified.losses, rtol=3e-3)
    for alpha, x, best in zip(certified.alphas, quick.x, certified.x, strict=True):
        one = problem.replace(psi=L1(alpha))
        assert one.objective(x) <= one.objective(best) * (1 + 2e-5)


def test_threads_and_weights_do_not_change_the_choice(data):
    X, y = data
    labels = y > 0
    one = FusedLassoClassifierCV(alphas=5, cv=3).fit(X, labels)
    two = FusedLassoClassifierCV(alphas=5, cv=3, n_jobs=2).fit(sp.csr_array(X), labels, sample_weight=np.full(80, 3.0))
    np.testing.assert_allclose(two.cv_losses_, one.cv_losses_, rtol=1e-5)
    assert two.alpha_ == pytest.approx(one.alpha_)


def test_a_rough_path_settles_where_everything_is_fused():
    """At alpha_max A x is zero but for rounding, which once let rho grow until x was no number."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((500, 40)) * (rng.random((500, 40)) < 0.4)
    y = X[:, :5].sum(axis=1) - X[:, 20] + 0.1 * rng.standard_normal(500)
    A = np.diff(np.eye(40), axis=0)
    for table in (X, sp.csr_array(X)):
        problem = Problem(table, y - y.mean(), loss="squared", psi=L1(1.0), A=A)
        alphas = alpha_max(problem) * np.array([1.0, 0.2, 0.03, 1e-3])
        rough, exact = (path(problem, alphas, tol=1e-6, certify=certify) for certify in (False, True))
        assert rough.statuses == ["solved"] * 4
        assert np.allclose(rough.losses, exact.losses, rtol=1e-4)
        model = GeneralizedLassoRegressorCV(A=A, alphas=5, cv=3, eps=1e-4).fit(table, y)
        assert np.isfinite(model.coefs_path_).all()
        assert model.result_.status is Status.SOLVED


def test_a_path_goes_on_after_a_solver_that_diverged(data):
    X, y = data
    problem = Problem(X, y, loss="squared", psi=L1(1.0), A=np.diff(np.eye(X.shape[1]), axis=0))
    alphas = alpha_max(problem) * np.array([0.5, 0.1, 0.02])
    following = Following(problem, Goal(1e-8, 500.0))
    solutions = following.along(alphas)
    found = [next(solutions)]
    engine = following.engine

    def diverge():
        engine.point.x[:] = np.nan

    engine.finish = diverge
    found += list(solutions)
    assert following.engine is not engine
    for alpha, solution in zip(alphas, found, strict=True):
        exact = solve(problem.replace(psi=L1(alpha)), tol=1e-9)
        assert solution.status is Status.SOLVED
        assert np.allclose(solution.x, exact.x, atol=1e-5)

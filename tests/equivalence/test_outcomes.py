"""Losses of counts, costs, quantiles and classes with kinks: the optima of CVXPY, scikit-learn and SciPy.

Offsets, paths, alpha_max, estimators and errors; test_outcomes_storage.py has every loss with every penalty.
"""

import warnings

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from outcomes import (
    CASES,
    CLASSES,
    COSTS,
    COUNTS,
    GROUP_ROWS,
    GROUPS,
    KINKED,
    MARGIN,
    NUMBERS,
    OFFSET,
    ONES,
    RNG,
    ROWS,
    TOTALS,
    WEIGHT,
    D,
    N,
    X,
    check,
    model_loss,
    optimum,
    problem_of,
    widened,
)
from sklearn.linear_model import GammaRegressor, PoissonRegressor, QuantileRegressor, TweedieRegressor

from skadmm import (
    FusedLassoClassifier,
    FusedLassoRegressor,
    FusedLassoRegressorCV,
    GeneralizedLassoRegressor,
    Problem,
    Status,
    TrendFilter,
    path,
    solve,
)
from skadmm.backends.writer import write_blocks
from skadmm.losses import (
    LOSSES,
    NegativeBinomial,
    Quantile,
    Tweedie,
)
from skadmm.operators import chain, stack, trend
from skadmm.problem.alpha_max import alpha_max
from skadmm.problem.certificate import Certifier
from skadmm.problem.kink_slopes import balanced
from skadmm.regularizers import L1, Box, GroupLInf
from skadmm.solvers import SOLVERS


@pytest.mark.parametrize("name", CASES)
def test_rows_in_files_weights_and_offsets(name, tmp_path):
    write_blocks(tmp_path / "blocks", [(ONES[:50], CASES[name][1][:50]), (ONES[50:], CASES[name][1][50:])])
    problem = problem_of(name, "fused", tmp_path / "blocks", sample_weight=WEIGHT, offset=OFFSET)
    assert problem.backend.name == "files"
    check(solve(problem, tol=1e-8), problem, optimum(name, "fused", OFFSET, WEIGHT))
    memory = problem_of(name, "fused", sample_weight=WEIGHT, offset=OFFSET)
    x = 0.3 * np.arange(D + 1.0)
    assert problem.objective(x) == pytest.approx(memory.objective(x), rel=1e-12)


@pytest.mark.parametrize("name", ["poisson", "hinge", "quantile"])
def test_every_solver_agrees_or_says_why_not(name):
    problem, best = problem_of(name, "l1"), optimum(name, "l1")
    ran = []
    for solver in SOLVERS:
        if SOLVERS[solver].reason_against(problem) is not None:
            with pytest.raises(ValueError, match="cannot take this problem"):
                solve(problem, solver, tol=1e-7)
            continue
        result = solve(problem, solver, tol=1e-7, passes=3000)
        assert result.objective == pytest.approx(best, rel=1e-5), solver
        ran.append(solver)
    assert ran == ["dual-proximal"] if name in KINKED else len(ran) >= 6


@pytest.mark.parametrize("name", ["poisson", "quantile"])
def test_a_constraint_and_a_penalty_that_is_no_l1(name):
    """Ω a box, folded; ψ an ℓ∞ norm of groups."""
    loss, target = CASES[name]
    omega = Box(np.append(np.full(D, -0.3), -5.0), np.append(np.full(D, 0.5), 5.0))
    problem = Problem(ONES, target, loss, omega=omega, psi=GroupLInf(0.05, GROUP_ROWS), A=widened(ROWS))
    x = cp.Variable(D + 1)
    penalty = 0.05 * sum(cp.norm_inf(x[g]) for g in GROUPS)
    limits = [x >= omega.lower, x <= omega.upper]
    best = cp.Problem(cp.Minimize(model_loss(name, ONES @ x, target) / N + penalty), limits).solve(solver="CLARABEL")
    result = solve(problem, tol=1e-7)
    assert result.status is Status.SOLVED
    assert result.objective == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize("scale", [1.0, 1e3, 1e6])
def test_counts_of_any_size(scale):
    """Newton steps from zero would overflow: exp(1000) is infinite."""
    target = np.round(scale * np.exp(MARGIN))
    problem = Problem(ONES, target, "poisson", psi=L1(0.01 * scale), A=widened(sp.eye_array(D)))
    result = solve(problem, tol=1e-8)
    assert result.status is Status.SOLVED
    slope = ONES.T @ (np.exp(ONES @ result.x) - target) / N
    assert abs(slope[-1]) <= 1e-6 * scale
    assert np.all(np.abs(slope[:D]) <= 0.01 * scale * (1 + 1e-5))
    estimator = GeneralizedLassoRegressor(0.01 * scale, loss="poisson", tol=1e-8).fit(X, target)
    np.testing.assert_allclose(estimator.coef_, result.x[:D], atol=1e-5)


@pytest.mark.parametrize("loss", ["poisson", Tweedie(1.1), Tweedie(1.8), Tweedie(1.99), NegativeBinomial(0.5)], ids=str)
def test_no_minimiser_is_recognised(loss):
    """A column that is positive only where counts are zero."""
    table = np.column_stack([ONES, COUNTS == 0.0])
    problem = Problem(table, COUNTS, loss, psi=L1(0.05), A=sp.csr_array(np.eye(D, D + 2)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert solve(problem, tol=1e-6).status is Status.NO_MINIMISER


# -- estimators -------------------------------------------------------------------------------------------------------


def test_ridge_is_that_of_scikit_learn():
    ours = {"fit_intercept": True, "ridge": 0.3, "tol": 1e-10, "alpha": 0.0}
    theirs = {"alpha": 0.3, "tol": 1e-10, "max_iter": 10_000}
    pairs = [
        ("poisson", PoissonRegressor(**theirs), COUNTS),
        ("gamma", GammaRegressor(**theirs), COSTS),
        (Tweedie(1.4), TweedieRegressor(power=1.4, link="log", **theirs), TOTALS),
    ]
    for loss, peer, target in pairs:
        model = FusedLassoRegressor(loss=loss, **ours).fit(X, target, sample_weight=WEIGHT)
        peer.fit(X, target, sample_weight=WEIGHT)
        np.testing.assert_allclose(model.coef_, peer.coef_, atol=1e-4)
        np.testing.assert_allclose(model.predict(X), peer.predict(X), rtol=1e-3)
        assert model.score(X, target, WEIGHT) == pytest.approx(peer.score(X, target, WEIGHT), abs=1e-6)


def test_the_lasso_of_quantiles_is_that_of_scikit_learn():
    peer = QuantileRegressor(quantile=0.8, alpha=0.03).fit(X, NUMBERS)
    model = GeneralizedLassoRegressor(0.03, loss=Quantile(0.8), tol=1e-9).fit(X, NUMBERS)
    np.testing.assert_allclose(model.coef_, peer.coef_, atol=1e-6)
    assert model.intercept_ == pytest.approx(peer.intercept_, abs=1e-6)
    assert np.mean(model.predict(X) > NUMBERS) == pytest.approx(0.8, abs=0.06)


def test_scores_are_those_of_scikit_learn():
    from sklearn.metrics import d2_absolute_error_score, d2_pinball_score, d2_tweedie_score

    for loss, target, score in (
        ("poisson", COUNTS, lambda y, p, **w: d2_tweedie_score(y, p, power=1, **w)),
        ("gamma", COSTS, lambda y, p, **w: d2_tweedie_score(y, p, power=2, **w)),
        (Quantile(0.8), NUMBERS, lambda y, p, **w: d2_pinball_score(y, p, alpha=0.8, **w)),
        ("absolute", NUMBERS, d2_absolute_error_score),
    ):
        model = FusedLassoRegressor(0.02, loss=loss).fit(X, target)
        prediction = model.predict(X)
        assert model.score(X, target) == pytest.approx(score(target, prediction), abs=1e-9)
    model = FusedLassoRegressor(0.02, loss="poisson").fit(X, COUNTS)
    expected = d2_tweedie_score(COUNTS, model.predict(X), power=1, sample_weight=WEIGHT)
    assert model.score(X, COUNTS, sample_weight=WEIGHT) == pytest.approx(expected, abs=1e-9)


def test_an_offset_is_the_exposure():
    """Counts with the logarithm of the exposure as offset are rates with the exposure as weight."""
    exposure = np.exp(OFFSET)
    counts = FusedLassoRegressor(0.02, loss="poisson", tol=1e-9).fit(X, COUNTS, offset=OFFSET)
    rates = FusedLassoRegressor(0.02 / exposure.mean(), loss="poisson", tol=1e-9)
    rates.fit(X, COUNTS / exposure, sample_weight=exposure)
    np.testing.assert_allclose(counts.coef_, rates.coef_, atol=1e-5)
    assert counts.intercept_ == pytest.approx(rates.intercept_, abs=1e-5)
    np.testing.assert_allclose(counts.predict(X, offset=OFFSET), exposure * counts.predict(X, offset=0.0), rtol=1e-12)
    null = np.full(N, COUNTS.sum() / exposure.sum()) * exposure
    from sklearn.metrics import mean_poisson_deviance

    deviances = [mean_poisson_deviance(COUNTS, mean) for mean in (counts.predict(X, offset=OFFSET), null)]
    assert counts.score(X, COUNTS, offset=OFFSET) == pytest.approx(1 - deviances[0] / deviances[1], abs=1e-9)


def test_the_accuracy_takes_the_offset_that_predictions_take():
    labels, offset = np.median(COUNTS) < COUNTS, 20.0 * OFFSET
    model = FusedLassoClassifier(0.02).fit(X, labels, offset=offset)
    accuracy = np.average(model.predict(X, offset=offset) == labels, weights=WEIGHT)
    assert accuracy != pytest.approx(model.score(X, labels, WEIGHT, offset=0.0))
    assert model.score(X, labels, WEIGHT, offset=offset) == pytest.approx(accuracy)


def test_offsets_of_losses_of_a_residual_are_subtracted():
    for loss in ("squared", "absolute"):
        model = FusedLassoRegressor(0.02, loss=loss, tol=1e-9).fit(X, NUMBERS, offset=OFFSET)
        plain = FusedLassoRegressor(0.02, loss=loss, tol=1e-9).fit(X, NUMBERS - OFFSET)
        np.testing.assert_allclose(model.coef_, plain.coef_, atol=1e-7)
        np.testing.assert_allclose(model.predict(X, offset=OFFSET), plain.predict(X) + OFFSET, atol=1e-7)


def test_an_offset_of_classes():
    model = FusedLassoClassifier(0.01, tol=1e-9).fit(X, CLASSES, offset=OFFSET)
    problem = Problem(
        ONES, CLASSES, psi=L1(0.01), A=widened(stack(chain(D), "identity", weights=[0.5, 0.5])), offset=OFFSET
    )
    result = solve(problem, tol=1e-9)
    np.testing.assert_allclose(np.append(model.coef_, model.intercept_), result.x, atol=1e-5)
    margins = X @ model.coef_[0] + model.intercept_[0] + OFFSET
    np.testing.assert_allclose(model.predict_proba(X, offset=OFFSET)[:, 1], 1 / (1 + np.exp(-margins)), atol=1e-9)
    with pytest.raises(
        ValueError, match=r"offset has shape .*: with 3 outputs it takes shape .*, a column for each class"
    ):
        FusedLassoClassifier(0.01).fit(X, np.arange(N) % 3, offset=OFFSET)


def test_folds_cut_the_offset():
    """Each fold of a search by hand; the scorer sees predictions with the offset."""
    folds = [(np.arange(N) % 3 != k, np.arange(N) % 3 == k) for k in range(3)]
    pairs = [(np.flatnonzero(train), np.flatnonzero(test)) for train, test in folds]
    alphas = [0.05, 0.01]
    model = FusedLassoRegressorCV(alphas=alphas, cv=pairs, loss="poisson", tol=1e-8).fit(X, COUNTS, offset=OFFSET)
    from sklearn.metrics import mean_poisson_deviance

    for column, (train, test) in enumerate(pairs):
        for row, alpha in enumerate(alphas):
            one = FusedLassoRegressor(alpha, loss="poisson", tol=1e-8).fit(
                X[train], COUNTS[train], offset=OFFSET[train]
            )
            held = mean_poisson_deviance(COUNTS[test], one.predict(X[test], offset=OFFSET[test]))
            assert model.cv_losses_[row, column] == pytest.approx(held / 2, rel=1e-3)
    scored = FusedLassoRegressorCV(
        alphas=alphas, cv=pairs, loss="poisson", tol=1e-8, scoring="neg_mean_poisson_deviance"
    ).fit(X, COUNTS, offset=OFFSET)
    np.testing.assert_allclose(scored.cv_scores_, -2 * model.cv_losses_, rtol=1e-6)


def test_criteria_and_paths():
    problem = problem_of("poisson", "fused")
    answer = path(problem, n_alphas=4, eps=0.05)
    np.testing.assert_allclose(answer.deviance, [2 * N * problem.loss_value(x) for x in answer.x], rtol=1e-9)
    model = FusedLassoRegressorCV(alphas=4, loss="gamma", selection="bic").fit(X, COSTS)
    assert np.isfinite(model.criterion_).all()


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("penalty", ["l1", "fused"])
def test_alpha_max_is_where_the_first_coefficient_leaves(name, penalty):
    problem = problem_of(name, penalty)
    top = alpha_max(problem)
    # Where all samples of a class are at the kink of the hinge, it is an upper bound.
    for share, zero in ((1.0 + 1e-4, True), *(() if name == "hinge" else ((0.95, False),))):
        x = solve(problem.replace(psi=L1(share * top)), tol=1e-10).x
        assert (np.abs(x[:D]).max() <= 1e-7) == zero


def test_quantile_trends():
    """Piecewise linear quantiles through points with outliers."""
    t = np.arange(80.0)
    y = np.sin(t / 16) + 0.2 * RNG.standard_normal(80)
    y[::9] += 5.0
    for q in (0.2, 0.5):
        fit = TrendFilter(0.05, loss=Quantile(q), order=1, tol=1e-7).fit(t[:, None], y)
        x = cp.Variable(80)
        loss = cp.sum(q * cp.pos(y - x) + (1 - q) * cp.pos(x - y)) / 80
        best = cp.Problem(cp.Minimize(loss + 0.05 * cp.norm1(trend(80, 1) @ x))).solve(solver="CLARABEL")
        assert fit.result_.objective == pytest.approx(best, rel=1e-6)
        assert fit.result_.kkt.relative <= 1e-7
        values = fit.predict(t[:, None])
        assert np.mean(y < values - 1e-6) <= q <= np.mean(y <= values + 1e-6)


def quantile_objective(X, y, coef, q, alpha, A):
    error = y - X @ coef
    return np.mean(np.maximum(q * error, (q - 1.0) * error)) + alpha * np.abs(A @ coef).sum()


def quantile_optimum(X, y, q, alpha, A):
    coef = cp.Variable(X.shape[1])
    error = y - X @ coef
    loss = cp.sum(cp.maximum(q * error, (q - 1.0) * error)) / y.size
    problem = cp.Problem(cp.Minimize(loss + alpha * cp.norm1(A @ coef)))
    return problem.solve(solver="CLARABEL", tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)


@pytest.mark.parametrize(("seed", "n", "q", "alpha"), [(38, 2, 0.9, 1e-4), (44, 2, 0.9, 1e-4), (146, 10, 0.95, 1e-5)])
def test_quantiles_under_a_weak_penalty_have_a_gap(seed, n, q, alpha):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, 1)), 3.0 * rng.normal(size=n)
    model = GeneralizedLassoRegressor(alpha=alpha, loss=Quantile(q), fit_intercept=False).fit(X, y)
    best = quantile_optimum(X, y, q, alpha, np.eye(1))
    assert model.result_.status is Status.SOLVED, model.result_.message
    assert model.result_.gap <= 1e-6
    assert quantile_objective(X, y, model.coef_, q, alpha, np.eye(1)) == pytest.approx(best, rel=2e-6)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("intercept", [False, True])
def test_slopes_at_kinks_balance_the_penalty_and_never_lie(seed, intercept):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=(30, 5)), np.ones(30)]) if intercept else rng.normal(size=(30, 5))
    y = rng.normal(size=30)
    A = stack(chain(5), "identity").toarray()
    A = np.column_stack([A, np.zeros(len(A))]) if intercept else A
    problem = Problem(X, y, Quantile(0.3), psi=L1(0.03), A=A)
    best = quantile_optimum(X, y, 0.3, 0.03, A)
    result = solve(problem, tol=1e-9)
    for noise in (0.0, 1e-4, 1e-1):
        theta = np.clip(noise * rng.normal(size=30) + (X @ result.x > y) - 0.3, -0.3, 0.7)
        multiplier = 0.03 * np.sign(A @ result.x)
        found = balanced(problem, result.x, theta, multiplier, np.abs(A @ result.x) < 1e-9)
        assert np.all((found.slopes >= -0.3) & (found.slopes <= 0.7))
        np.testing.assert_allclose(found.gradient, X.T @ found.slopes / 30, atol=1e-15)
        certifier = Certifier(problem)
        if found.orthogonal_to(problem, certifier.free):
            bound = certifier.certify(result.objective, found.slopes, found.gradient, found.multiplier).dual
            assert bound <= best * (1.0 + 1e-8)
    assert result.objective == pytest.approx(best, rel=1e-7)


def test_the_hinge_over_columns_of_different_scales_without_an_l1_norm():
    rng = np.random.default_rng(25)
    X = rng.standard_normal((30, 5)) * 10.0 ** rng.uniform(-4, 4, 5)
    y = np.sign(X @ (rng.standard_normal(5) / X.std(axis=0)) + rng.standard_normal(30))
    coef = cp.Variable(5)
    loss = cp.sum(cp.pos(1.0 - cp.multiply(y, X @ coef))) / 30
    problem = cp.Problem(cp.Minimize(loss + 0.004 * cp.norm1(cp.diff(coef))))
    problem.solve(solver="CLARABEL", tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    model = FusedLassoClassifier(0.004, l1_ratio=0.0, loss="hinge", fit_intercept=False, tol=1e-8).fit(X, y)
    assert model.result_.status is Status.SOLVED, model.result_.message
    assert model.result_.objective == pytest.approx(problem.value, rel=1e-7)


# -- errors -----------------------------------------------------------------------------------------------------------


def test_targets_outside_of_the_range_are_named():
    bad = COUNTS.copy()
    bad[4] = -2.0
    with pytest.raises(ValueError, match=r"^target\[4\]=-2: the poisson loss takes numbers ≥ 0"):
        Problem(X, bad, "poisson")
    with pytest.raises(ValueError, match=r"^y\[4\]=-2: the tweedie loss takes numbers ≥ 0"):
        FusedLassoRegressor(loss="tweedie").fit(X, bad)
    first = int(np.argmax(COUNTS == 0.0))
    with pytest.raises(ValueError, match=rf"^target\[{first}\]=0: the gamma loss takes numbers > 0"):
        Problem(X, COUNTS, "gamma")


def test_offsets_are_checked():
    with pytest.raises(ValueError, match=r"offset has shape \(3,\)"):
        Problem(X, COUNTS, "poisson", offset=np.zeros(3))
    with pytest.raises(ValueError, match="offset"):
        FusedLassoRegressor(loss="poisson").fit(X, COUNTS, offset=np.full(N, np.nan))


def test_no_probabilities_of_the_hinge():
    model = FusedLassoClassifier(0.01, loss="hinge").fit(X, CLASSES)
    assert not hasattr(model, "predict_proba")
    assert model.decision_function(X).shape == (N,)
    assert set(LOSSES) >= {"poisson", "gamma", "tweedie", "negative-binomial", "quantile", "absolute", "hinge"}

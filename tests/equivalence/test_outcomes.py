"""Losses of counts, costs, quantiles and classes with kinks: the optima of CVXPY, scikit-learn and SciPy.

Every loss with every kind of penalty, on dense and sparse rows, in memory and in files, with and without offsets.
"""

import itertools
import warnings

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
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
    Absolute,
    Binomial,
    Gamma,
    Hinge,
    NegativeBinomial,
    Poisson,
    Quantile,
    SmoothedQuantile,
    Tweedie,
)
from skadmm.operators import chain, overlapping_groups, stack, trend
from skadmm.problem.alpha_max import alpha_max
from skadmm.regularizers import L1, Box, GroupL2, GroupLInf, SquaredL2
from skadmm.solvers import SOLVERS

N, D = 120, 6
RNG = np.random.default_rng(7)
X = 0.6 * RNG.standard_normal((N, D)) * (RNG.random((N, D)) < 0.8)
ONES = np.column_stack([X, np.ones(N)])
MARGIN = X @ [0.8, 0.8, 0.8, 0.0, 0.0, -0.9] + 0.4
OFFSET = np.log(RNG.uniform(0.2, 2.0, N))
WEIGHT = RNG.uniform(0.5, 2.0, N)
COUNTS = RNG.poisson(np.exp(MARGIN) * RNG.gamma(3.0, 1 / 3, N)).astype(float)
COSTS = np.exp(MARGIN) * RNG.gamma(2.0, 0.5, N) + 1e-3
TOTALS = COSTS * (RNG.random(N) < 0.6)
NUMBERS = MARGIN + 0.7 * RNG.standard_normal(N)
SHARES = np.round(1 / (1 + np.exp(-MARGIN - 0.8 * RNG.standard_normal(N))), 1)  # some are 0 or 1
CLASSES = np.where(MARGIN + 0.8 * RNG.standard_normal(N) > 0.4, 1.0, -1.0)
CASES = {
    "poisson": (Poisson(), COUNTS),
    "gamma": (Gamma(), COSTS),
    "binomial": (Binomial(), SHARES),
    "tweedie": (Tweedie(1.4), TOTALS),
    "negative-binomial": (NegativeBinomial(0.5), COUNTS),
    "quantile": (Quantile(0.8), NUMBERS),
    "smoothed-quantile": (SmoothedQuantile(0.3, 0.4), NUMBERS),
    "absolute": (Absolute(), NUMBERS),
    "hinge": (Hinge(), CLASSES),
}
KINKED = ("quantile", "absolute", "hinge")


def model_loss(name, z, b, w=1.0):
    """Σ w ℓ as a CVXPY expression."""
    loss = CASES[name][0]
    if name == "poisson":
        return cp.sum(cp.multiply(w, cp.exp(z) - cp.multiply(b, z) - cp.entr(b) - b))
    if name == "binomial":
        return cp.sum(cp.multiply(w, cp.logistic(z) - cp.multiply(b, z) - cp.entr(b) - cp.entr(1 - b)))
    if name == "gamma":
        return cp.sum(cp.multiply(w, cp.multiply(b, cp.exp(-z)) + z - np.log(b) - 1))
    if name == "tweedie":
        a, c = 2 - loss.power, loss.power - 1
        rest = b**a / (a * c)
        return cp.sum(cp.multiply(w, cp.exp(a * z) / a + cp.multiply(b, cp.exp(-c * z)) / c - rest))
    if name == "negative-binomial":
        r = 1 / loss.dispersion
        rest = (b + r) * np.log(r + b) - np.where(b > 0, b * np.log(np.where(b > 0, b, 1.0)), 0.0)
        soft = cp.logistic(z - np.log(r)) + np.log(r)
        return cp.sum(cp.multiply(w, cp.multiply(b + r, soft) - cp.multiply(b, z) - rest))
    if name == "hinge":
        return cp.sum(cp.multiply(w, cp.pos(1 - cp.multiply(b, z))))
    if name == "smoothed-quantile":
        q, width, u = loss.q, loss.width, cp.Variable(z.shape[0])
        kinked = q * cp.pos(b - u) + (1 - q) * cp.pos(u - b)
        return cp.sum(cp.multiply(w, kinked + cp.square(u - z) / (2 * width)))
    q = loss.q if name == "quantile" else 0.5
    scale = 1.0 if name == "quantile" else 2.0
    return scale * cp.sum(cp.multiply(w, q * cp.pos(b - z) + (1 - q) * cp.pos(z - b)))


def widened(A):
    """A with an empty column for the intercept."""
    return sp.csr_array(sp.hstack([A, sp.csr_array((A.shape[0], 1))]))


GROUPS = [[0, 1, 2], [3, 4, 5]]
ROWS, GROUP_ROWS = overlapping_groups(GROUPS, D)
PENALTIES = {
    "l1": ({"psi": L1(0.03), "A": widened(sp.eye_array(D))}, lambda x: 0.03 * cp.norm1(x[:D])),
    "fused": (
        {"psi": L1(0.03), "A": widened(stack(chain(D), "identity"))},
        lambda x: 0.03 * (cp.norm1(cp.diff(x[:D])) + cp.norm1(x[:D])),
    ),
    "group": (
        {"psi": GroupL2(0.05, GROUP_ROWS), "A": widened(ROWS)},
        lambda x: 0.05 * sum(cp.norm2(x[g]) for g in GROUPS),
    ),
    "generalized": (
        {"psi": L1(0.02), "A": widened(trend(D, 1)), "omega": SquaredL2(0.1, np.append(np.ones(D), 0.0))},
        lambda x: 0.02 * cp.norm1(trend(D, 1) @ x[:D]) + 0.05 * cp.sum_squares(x[:D]),
    ),
}  # fmt: skip


def optimum(name, penalty, offset=0.0, weight=None):
    """The smallest objective, by CVXPY."""
    x = cp.Variable(D + 1)
    w = np.ones(N) if weight is None else weight / weight.mean()
    objective = model_loss(name, ONES @ x + offset, CASES[name][1], w) / N + PENALTIES[penalty][1](x)
    problem = cp.Problem(cp.Minimize(objective))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return problem.solve(solver="CLARABEL", tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)


def problem_of(name, penalty, X=ONES, **parts):
    loss, target = CASES[name]
    return Problem(X, target, loss, **PENALTIES[penalty][0], **parts)


def check(result, problem, best):
    assert result.status is Status.SOLVED
    assert problem.objective(result.x) == pytest.approx(result.objective, rel=1e-10)
    assert result.objective == pytest.approx(best, rel=1e-6, abs=1e-8)
    # The lower bound of a certificate holds for the optimum that another solver has found.
    if not np.isnan(result.gap):
        assert result.objective * (1 - result.gap) <= best * (1 + 1e-9)


GROUPED = [("dense", name, penalty) for name, penalty in itertools.product(CASES, PENALTIES)]
SPARSE = [("csr", name, "fused") for name in ("poisson", "quantile", "hinge")]


@pytest.mark.parametrize(("kind", "name", "penalty"), GROUPED + SPARSE)
def test_the_optimum_is_that_of_cvxpy(kind, name, penalty):
    problem = problem_of(name, penalty, sp.csr_array(ONES) if kind == "csr" else ONES)
    check(solve(problem, tol=1e-8), problem, optimum(name, penalty))


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


def test_no_minimiser_is_recognised():
    """A column that is positive only where counts are zero."""
    table = np.column_stack([ONES, COUNTS == 0.0])
    problem = Problem(table, COUNTS, "poisson", psi=L1(0.05), A=sp.csr_array(np.eye(D, D + 2)))
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
    np.testing.assert_allclose(counts.predict(X, offset=OFFSET), exposure * counts.predict(X), rtol=1e-12)
    null = np.full(N, COUNTS.sum() / exposure.sum()) * exposure
    from sklearn.metrics import mean_poisson_deviance

    deviances = [mean_poisson_deviance(COUNTS, mean) for mean in (counts.predict(X, offset=OFFSET), null)]
    assert counts.score(X, COUNTS, offset=OFFSET) == pytest.approx(1 - deviances[0] / deviances[1], abs=1e-9)


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
    with pytest.raises(ValueError, match="offset: it takes a target with two classes, and y has 3"):
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

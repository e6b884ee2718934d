"""What cross-validation takes (scorers, groups, lists of l1_ratio, refit), and what it says about its grid."""

import numpy as np
import pytest
import sklearn
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import ElasticNetCV
from sklearn.metrics import make_scorer, mean_absolute_error
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold

import skadmm
from skadmm import (
    FusedLassoClassifier,
    FusedLassoClassifierCV,
    FusedLassoRegressor,
    FusedLassoRegressorCV,
    GroupLassoRegressorCV,
    Problem,
    TrendFilterCV,
    path,
)
from skadmm.regularizers import L1

RNG = np.random.default_rng(0)
X = RNG.standard_normal((90, 6))
Y = X @ np.array([1.0, 1.0, 1.0, 0.0, 0.0, -1.0]) + RNG.standard_normal(90)
GROUPS = RNG.integers(0, 5, 90)
ALPHAS = np.geomspace(0.5, 0.02, 4)


@pytest.mark.parametrize("scoring", ["r2", "neg_mean_absolute_error", make_scorer(mean_absolute_error)])
def test_scores_are_those_of_a_grid_search(scoring):
    found = FusedLassoRegressorCV(alphas=ALPHAS, cv=3, scoring=scoring, tol=1e-10).fit(X, Y)
    search = GridSearchCV(FusedLassoRegressor(tol=1e-10), {"alpha": ALPHAS}, cv=3, scoring=scoring).fit(X, Y)
    np.testing.assert_allclose(found.cv_mean_, search.cv_results_["mean_test_score"], atol=1e-6)
    assert found.alpha_ == pytest.approx(search.best_params_["alpha"])
    np.testing.assert_allclose(found.coef_, search.best_estimator_.coef_, atol=1e-6)
    assert not hasattr(found, "cv_losses_")


@pytest.mark.parametrize("scoring", ["roc_auc", "neg_log_loss", "accuracy"])
@pytest.mark.parametrize("labels", [Y > 0, np.where(Y > 0, "yes", "no")], ids=["bool", "str"])
def test_scores_of_classes(scoring, labels):
    found = FusedLassoClassifierCV(alphas=ALPHAS / 10, cv=3, scoring=scoring, tol=1e-10).fit(X, labels)
    model = FusedLassoClassifier(tol=1e-10)
    search = GridSearchCV(model, {"alpha": ALPHAS / 10}, cv=3, scoring=scoring).fit(X, labels)
    np.testing.assert_allclose(found.cv_mean_, search.cv_results_["mean_test_score"], atol=1e-6)


def test_scores_of_several_classes_and_of_signals():
    labels = np.digitize(Y, [-1, 1])
    found = FusedLassoClassifierCV(alphas=ALPHAS / 10, cv=3, scoring="accuracy", tol=1e-10).fit(X, labels)
    search = GridSearchCV(FusedLassoClassifier(tol=1e-10), {"alpha": ALPHAS / 10}, cv=3).fit(X, labels)
    np.testing.assert_allclose(found.cv_mean_, search.cv_results_["mean_test_score"])
    assert found.coefs_path_.shape == (4, 3, 6)
    t = np.linspace(0, 1, 60)
    signal = np.abs(t - 0.5) + 0.05 * RNG.standard_normal(60)
    by_score = TrendFilterCV(alphas=6, scoring="neg_mean_squared_error").fit(t[:, None], signal)
    by_loss = TrendFilterCV(alphas=6).fit(t[:, None], signal)
    np.testing.assert_allclose(-by_score.cv_mean_, 2 * by_loss.cv_mean_, rtol=1e-6)
    assert by_score.alpha_ == by_loss.alpha_


def test_weights_reach_the_scorer():
    weight = np.where(np.arange(90) < 60, 1.0, 0.0)
    found = FusedLassoRegressorCV(alphas=ALPHAS, cv=KFold(3, shuffle=True, random_state=0), scoring="r2", tol=1e-10)
    weighted = found.fit(X, Y, sample_weight=weight).cv_scores_
    scores = []
    for train, test in found.cv.split(X):
        one = FusedLassoRegressor(ALPHAS[0], tol=1e-10).fit(X[train], Y[train], sample_weight=weight[train])
        scores.append(one.score(X[test], Y[test], sample_weight=weight[test]))
    np.testing.assert_allclose(weighted[0], scores, atol=1e-6)


@pytest.mark.parametrize("routing", [False, True])
def test_groups_go_to_the_splitter(routing):
    with sklearn.config_context(enable_metadata_routing=routing):
        found = FusedLassoRegressorCV(alphas=ALPHAS, cv=GroupKFold(3)).fit(X, Y, groups=GROUPS)
    splits = list(GroupKFold(3).split(X, Y, GROUPS))
    wanted = FusedLassoRegressorCV(alphas=ALPHAS, cv=splits).fit(X, Y)
    np.testing.assert_array_equal(found.cv_losses_, wanted.cv_losses_)
    with pytest.raises(ValueError, match=r"groups.* Give them to fit: fit\(X, y, groups=\.\.\.\)"):
        FusedLassoRegressorCV(alphas=ALPHAS, cv=GroupKFold(3)).fit(X, Y)
    with pytest.raises(TypeError, match="fit\\(\\) got 'colour'"):
        FusedLassoRegressorCV(alphas=ALPHAS).fit(X, Y, colour=GROUPS)


def test_a_list_of_l1_ratio():
    ratios = [0.1, 0.5, 1.0]
    found = FusedLassoRegressorCV(alphas=6, l1_ratio=ratios, cv=3).fit(X, Y)
    assert found.alphas_.shape == found.cv_mean_.shape == (3, 6)
    assert found.cv_losses_.shape == (3, 6, 3)
    for k, ratio in enumerate(ratios):
        alone = FusedLassoRegressorCV(alphas=6, l1_ratio=ratio, cv=3).fit(X, Y)
        np.testing.assert_allclose(found.cv_losses_[k], alone.cv_losses_, rtol=1e-12)
        if ratio == found.l1_ratio_:
            assert found.alpha_ == alone.alpha_
            np.testing.assert_allclose(found.coef_, alone.coef_, atol=1e-6)
    assert found.cv_mean_.min() == found.cv_mean_[ratios.index(found.l1_ratio_)].min()
    assert found.l1_ratio is ratios
    by_bic = FusedLassoRegressorCV(alphas=6, l1_ratio=ratios, selection="bic").fit(X, Y)
    assert by_bic.criterion_.shape == (3, 6)
    theirs = ElasticNetCV(l1_ratio=ratios, alphas=6, cv=3).fit(X, Y)
    assert theirs.alphas_.shape == found.alphas_.shape  # the same convention
    for bad in ([], [0.5, 0.5], [0.5, 2.0], ["a"]):
        with pytest.raises((ValueError, TypeError), match="l1_ratio"):
            FusedLassoRegressorCV(l1_ratio=bad).fit(X, Y)


def test_without_refit_there_is_no_model(tmp_path):
    found = FusedLassoRegressorCV(alphas=ALPHAS, refit=False).fit(X, Y)
    whole = FusedLassoRegressorCV(alphas=ALPHAS).fit(X, Y)
    assert found.alpha_ == whole.alpha_
    np.testing.assert_array_equal(found.cv_losses_, whole.cv_losses_)
    assert not hasattr(found, "coef_")
    assert not hasattr(found, "path_")
    with pytest.raises(NotFittedError, match="refit=False"):
        found.predict(X)
    with pytest.raises(ValueError, match="refit=False"):
        found.save(tmp_path / "model")
    assert not hasattr(whole.set_params(refit=False).fit(X, Y), "coef_")  # nothing of the earlier fit is left


def test_the_path_over_all_the_data_is_kept(tmp_path):
    found = GroupLassoRegressorCV(alphas=6, groups=[[0, 1, 2], [3, 4, 5]], standardize=True, tol=1e-9).fit(X, Y)
    chosen = int(np.flatnonzero(found.alphas_ == found.alpha_)[0])
    np.testing.assert_allclose(found.coefs_path_[chosen], found.coef_, atol=1e-3)
    np.testing.assert_array_equal(found.path_.alphas, found.alphas_)
    found.save(tmp_path / "model")
    np.testing.assert_array_equal(skadmm.load(tmp_path / "model").path_.x, found.path_.x)


@pytest.mark.parametrize("jobs", [2, -1])
def test_folds_in_parallel_give_the_same_bits(jobs):
    one = FusedLassoRegressorCV(alphas=5, l1_ratio=[0.3, 0.6]).fit(X, Y)
    many = FusedLassoRegressorCV(alphas=5, l1_ratio=[0.3, 0.6], n_jobs=jobs).fit(X, Y)
    np.testing.assert_array_equal(one.cv_losses_, many.cv_losses_)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"scoring": "no-such"}, "no-such"),
        ({"scoring": ["r2"]}, "scoring="),
        ({"scoring": "r2", "selection": "bic"}, "holds no rows out"),
        ({"refit": 1}, "refit=1"),
    ],
)
def test_what_cannot_be_asked_for(parameters, message):
    with pytest.raises(ValueError, match=message):
        FusedLassoRegressorCV(**parameters).fit(X, Y)


# -- the ends of the grid ---------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("error")
def test_a_warning_at_the_ends_of_the_grid():
    clean = X @ np.ones(6)
    with pytest.warns(UserWarning, match="is the smallest of the grid.*lower eps"):
        FusedLassoRegressorCV(alphas=5).fit(X, clean)
    with pytest.warns(UserWarning, match="is the smallest of the grid.*give smaller alphas"):
        FusedLassoRegressorCV(alphas=[1.0, 0.5]).fit(X, clean)
    with pytest.warns(UserWarning, match="is the smallest of the grid"):
        FusedLassoRegressorCV(alphas=5, selection="1se").fit(X, clean)
    noise = RNG.standard_normal(90)
    FusedLassoRegressorCV(alphas=5).fit(X, noise)  # the null model is the best: no larger alpha gives another
    FusedLassoRegressorCV(alphas=[100.0, 1.0, 0.01]).fit(X, noise)
    with pytest.warns(UserWarning, match="is the largest of the grid.*give larger alphas"):
        FusedLassoRegressorCV(alphas=[0.01, 0.001]).fit(X, noise)


# -- paths ------------------------------------------------------------------------------------------------------


def test_a_path_ends_when_the_loss_no_longer_moves():
    problem = Problem(X, Y, loss="squared", psi=L1(1.0))
    whole = path(problem, n_alphas=60, eps=1e-8, early_stop=False)
    short = path(problem, n_alphas=60, eps=1e-8)
    assert whole.alphas.size == 60
    assert not whole.stopped_early
    assert 5 < short.alphas.size < 60
    assert short.stopped_early
    k = short.alphas.size
    np.testing.assert_array_equal(short.alphas, whole.alphas[:k])
    np.testing.assert_array_equal(short.x, whole.x[:k])
    explained = whole.losses[0] - whole.losses
    assert np.all(np.diff(explained[:k])[4:-1] >= 1e-5 * explained[5 : k - 1])
    assert explained[-1] - explained[k - 1] < 1e-3 * explained[-1]
    assert path(problem, whole.alphas).alphas.size == 60  # strengths that are given are all solved


def test_a_path_that_does_not_fit_is_refused_with_numbers():
    problem = Problem(X, Y, loss="squared", psi=L1(1.0))
    with pytest.raises(MemoryError, match=r"the path would take about .* for 100000 solutions"):
        path(problem, np.geomspace(1.0, 0.01, 100_000), memory_limit=1e6)
    assert path(problem, [0.1], memory_limit=1e9).statuses == ["solved"]

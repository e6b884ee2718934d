"""Messages that said too little or something false, and calls that failed without a reason."""

import numpy as np
import pytest
from sklearn.model_selection import KFold

from skadmm import (
    FusedLassoClassifier,
    FusedLassoClassifierCV,
    FusedLassoRegressor,
    FusedLassoRegressorCV,
    TrendFilter,
    load,
)

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 5))
Y = X[:, 0] + X[:, 1] + 0.1 * RNG.standard_normal(60)

# -- fits that follow another one -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model, table, y",
    [
        (FusedLassoRegressor(0.05, warm_start=True), X, Y),
        (FusedLassoClassifier(0.05, warm_start=True), X, Y > 0),
        (FusedLassoClassifier(0.05, warm_start=True), X, np.arange(60) % 3),
        (TrendFilter(0.05, warm_start=True), np.arange(60.0)[:, None], Y),
    ],
)
def test_a_loaded_model_continues_with_warm_start(tmp_path, model, table, y):
    model.fit(table, y).save(tmp_path / "model.skadmm")
    again = load(tmp_path / "model.skadmm").fit(table, y)
    np.testing.assert_allclose(again.coef_, model.coef_, atol=1e-4)
    assert np.max(again.n_iter_) <= np.max(model.n_iter_)


@pytest.mark.filterwarnings("ignore:.*the best alpha:UserWarning")
def test_a_search_that_refuses_its_data_keeps_the_earlier_fit():
    model = FusedLassoRegressorCV(alphas=3).fit(X, Y)
    before = model.predict(X)
    for refused in ({"offset": np.full(60, np.nan)}, {"sample_weight": -np.ones(60)}):
        with pytest.raises(ValueError):
            model.fit(X, Y, **refused)
        np.testing.assert_array_equal(model.predict(X), before)
    with pytest.raises(ValueError):
        model.set_params(graph=[(0, 9)]).fit(X, Y)
    np.testing.assert_array_equal(model.predict(X), before)


def test_a_search_that_failed_says_so():
    model = FusedLassoRegressorCV(alphas=3)
    with pytest.raises(ValueError, match="offset"):
        model.fit(X, Y, offset=np.full(60, np.nan))
    with pytest.raises(ValueError, match="ended with an error: it has no coefficients"):
        model.predict(X)


# -- classes that are not in every fold -------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:The least populated class:UserWarning")
@pytest.mark.parametrize("classes", [2, 6])
def test_a_class_that_a_fold_holds_out_is_named(classes):
    y = np.array([f"class {k}" for k in np.arange(60) % (classes - 1)])
    y[0] = "ill"
    with pytest.raises(ValueError, match=r"cv=3: the class 'ill' of y has 1 row, .* selection='bic'"):
        FusedLassoClassifierCV(alphas=3, cv=3).fit(X, y)


def test_folds_that_are_not_stratified_are_named():
    with pytest.raises(ValueError, match=r"the class 0 of y has 20 rows, and fold 1 of 3 .* cv as a number"):
        FusedLassoClassifierCV(alphas=3, cv=KFold(3)).fit(X, np.repeat([0, 1, 2], 20))


@pytest.mark.filterwarnings("ignore:The least populated class:UserWarning")
def test_multinomial_models_with_an_absent_class_are_chosen_by_scores_only():
    y = np.arange(60) % 3
    y[0] = 5
    model = FusedLassoClassifierCV(alphas=3, cv=3, multi_class="multinomial")
    with pytest.raises(ValueError, match=r"the class 5 of y has 1 row"):  # its held-out loss has no bound
        model.fit(X, y)
    with pytest.warns(UserWarning):
        model.set_params(scoring="accuracy").fit(X, y)
    assert model.classes_.tolist() == [0, 1, 2, 5]

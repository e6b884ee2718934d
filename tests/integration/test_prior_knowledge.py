"""What users know about their coefficients: every option of every estimator, in every use, and what is refused."""

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.utils.estimator_checks import parametrize_with_checks

import skadmm
from skadmm import (
    FusedLassoClassifier,
    FusedLassoRegressor,
    FusedLassoRegressorCV,
    GeneralizedLassoRegressor,
    GroupLassoRegressor,
    TrendFilter,
    TrendFilterCV,
)
from skadmm.backends.writer import write_blocks
from skadmm.estimators import ESTIMATORS, _base
from skadmm.estimators._adaptive import term_weights
from skadmm.regularizers import L2, GroupLInf

D = 6
OPTIONS = {
    "penalty_factor": np.array([0.0, 1.0, 2.0, 1.0, 1.0, 0.5]),
    "positive": True,
    "bounds": (-0.2, np.full(D, 0.5)),
    "monotone": "decreasing",
    "adaptive": 0.5,
    "relax": True,
}
LEVELS = ["low", "middle", "high", "top"]


def table(n=60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, D))
    return X, X @ np.repeat([1.0, -0.5], D // 2) + 0.5 * rng.standard_normal(n)


def cases():
    for name, cls in ESTIMATORS.items():
        known = cls().get_params()
        for option in OPTIONS:
            if option in known and not (name.startswith("Trend") and option == "bounds"):
                yield name, option


def kept(option, coef):
    if option == "positive":
        assert np.all(coef >= 0)
    if option == "bounds":
        assert np.all((coef >= -0.2) & (coef <= 0.5))
    if option == "monotone":
        assert np.all(np.diff(coef) <= 0)


@pytest.mark.filterwarnings("ignore:.*of the grid", "ignore:.*did not reach tol")
@pytest.mark.parametrize(("name", "option"), list(cases()))
def test_an_option_in_every_use(name, option, tmp_path):
    X, y = table()
    y = y if "Classifier" not in name else y > 0
    settings = {"alphas": 4, "cv": 3} if name.endswith("CV") else {"alpha": 0.05}
    if name.startswith("Trend"):
        settings["design"] = "matrix"
    model = ESTIMATORS[name](**settings, **{option: OPTIONS[option]})
    dense = model.fit(X, y)
    path = tmp_path / "model.skadmm"
    dense.save(path)
    loaded = skadmm.load(path)
    np.testing.assert_array_equal(loaded.predict(X), dense.predict(X))
    np.testing.assert_array_equal(loaded.coef_, dense.coef_)
    for coef in np.atleast_2d(dense.coef_):
        kept(option, coef)
    expected = dense.coef_
    sparse = ESTIMATORS[name](**settings, **{option: OPTIONS[option]}).fit(sp.csr_array(X), y)
    np.testing.assert_allclose(sparse.coef_, expected, atol=2e-2 if name.endswith("CV") else 1e-3)
    without = ESTIMATORS[name](**settings).fit(X, y)
    if option not in ("monotone", "bounds"):
        assert not np.allclose(without.coef_, expected, atol=1e-5)


INSTANCES = [
    FusedLassoRegressor(positive=True, tol=1e-9),
    FusedLassoClassifier(bounds=(-1.0, 1.0), tol=1e-9),
    FusedLassoRegressorCV(alphas=2, cv=2, relax=True, adaptive=True, tol=1e-9),
    GroupLassoRegressor(positive=True, adaptive=True, tol=1e-9),
]


@pytest.mark.filterwarnings("ignore:.*did not reach tol")
@parametrize_with_checks(INSTANCES)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_names_find_their_coefficients():
    X, y = table()
    frame = pd.DataFrame(X, columns=list("abcdef"))
    by_array = FusedLassoRegressor(0.1, penalty_factor=([3, 1, 1, 1, 1, 1], [1, 0, 1, 1, 1]), positive=True)
    by_name = FusedLassoRegressor(0.1, penalty_factor={"a": 3, ("c", "b"): 0}, positive=True)
    np.testing.assert_array_equal(by_array.fit(X, y).coef_, by_name.fit(frame, y).coef_)
    series = pd.Series({"b": 2.0, "f": 0.0})
    np.testing.assert_array_equal(
        GroupLassoRegressor(0.1, penalty_factor=series).fit(frame, y).coef_,
        GroupLassoRegressor(0.1, penalty_factor=[1, 2, 1, 1, 1, 0]).fit(X, y).coef_,
    )
    bounds = {"a": (0, 0.1), "d": (None, -0.3)}
    coef = GeneralizedLassoRegressor(0.01, bounds=bounds).fit(frame, y).coef_
    assert 0 <= coef[0] <= 0.1
    assert coef[3] <= -0.3
    np.testing.assert_array_equal(
        coef, GeneralizedLassoRegressor(0.01, bounds=({"a": 0}, {"a": 0.1, "d": -0.3})).fit(frame, y).coef_
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"penalty_factor": 2.0}, "alpha scales them all"),
        ({"penalty_factor": [1.0, 2.0]}, "6 numbers, one per feature"),
        ({"penalty_factor": [-1.0, 1, 1, 1, 1, 1]}, "finite numbers ≥ 0"),
        ({"penalty_factor": {"g": 1.0}}, "not among the columns of X"),
        ({"penalty_factor": {("a", "c"): 1.0}}, "not an edge of the graph"),
        ({"penalty_factor": np.ones(6), "l1_ratio": 0.0}, "l1_ratio=0 leaves out"),
        ({"positive": 1}, "positive=1: it takes True or False"),
        ({"bounds": 1.0}, "a pair"),
        ({"bounds": (1.0, 0.0)}, "no number lies between 1 and 0, the bounds of 'a'"),
        ({"bounds": (None, -1.0), "positive": True}, "with positive=True: no number lies between 0 and -1"),
        ({"bounds": (np.zeros(3), None)}, "6 numbers, one per feature"),
        ({"monotone": "up"}, "'increasing', 'decreasing'"),
        ({"monotone": [1, 1]}, "each of 5 edges"),
        ({"monotone": {"a": "increasing"}}, "categorical columns"),
        ({"adaptive": -1.0}, "a number > 0, the exponent"),
        ({"relax": "yes"}, "relax='yes': it takes True or False"),
        ({"categorical_features": "dtype"}, "'from_dtype'"),
        ({"categorical_features": ["z"]}, "not among the columns of X"),
        ({"categorical_features": ["a"], "handle_unknown": "skip"}, "'error' or 'ignore'"),
    ],
)
def test_what_is_not_allowed_is_said(options, message):
    X, y = table()
    with pytest.raises(ValueError, match=message):
        FusedLassoRegressor(**options).fit(pd.DataFrame(X, columns=list("abcdef")), y)


def test_orders_need_positive_signs_and_other_penalties_no_weights():
    X, y = table()
    with pytest.raises(ValueError, match="edges of sign −1"):
        FusedLassoRegressor(graph=[(0, 1, -1.0)], monotone="increasing").fit(X, y)
    with pytest.raises(ValueError, match="adaptive: it takes penalty='l1' or groups"):
        GeneralizedLassoRegressor(penalty="l2", adaptive=True).fit(X, y)
    with pytest.raises(ValueError, match="a factor 0 for a row of A"):
        GeneralizedLassoRegressor(penalty="l2", penalty_factor=OPTIONS["penalty_factor"]).fit(X, y)
    with pytest.raises(ValueError, match="with categorical_features it takes None"):
        GroupLassoRegressor(groups=[[0, 1]], categorical_features=[0]).fit(X.round(), y)


@pytest.mark.parametrize("option", ["positive", "bounds", "monotone", "adaptive", "relax"])
def test_batches_take_no_such_option(option):
    model = FusedLassoRegressor(**{option: OPTIONS[option]})
    assert not hasattr(model, "partial_fit")
    with pytest.raises(AttributeError) as caught:
        _ = model.partial_fit
    assert f"{option}=" in str(caught.value)
    assert "partial_fit is approximate" in str(caught.value)
    assert hasattr(FusedLassoRegressor(), "partial_fit")


def test_a_folder_takes_factors_weights_and_bounds(tmp_path):
    X, y = table()
    write_blocks(tmp_path / "blocks", [(X[:30], y[:30]), (X[30:], y[30:])], ones=True)
    factors = {"penalty_factor": OPTIONS["penalty_factor"]}
    bounded = {"bounds": (-0.5, 0.5), "standardize": True}
    relaxed = {"relax": True}, {"relax": True, "standardize": True}, {"relax": True, "bounds": (-0.5, 0.5)}
    for options in (
        factors,
        {"adaptive": True},
        {"adaptive": True, "standardize": True},
        {"positive": True},
        bounded,
        *relaxed,
    ):
        stored = FusedLassoRegressor(0.05, tol=1e-13, **options).fit(tmp_path / "blocks")
        memory = FusedLassoRegressor(0.05, tol=1e-13, **options).fit(X, y)
        np.testing.assert_allclose(stored.coef_, memory.coef_, atol=1e-8)
        np.testing.assert_allclose(stored.intercept_, memory.intercept_, atol=1e-8)
        if "relax" in options:
            np.testing.assert_allclose(stored.standard_errors_, memory.standard_errors_, rtol=1e-4)


def test_adaptive_weights_of_a_fold_are_its_own(monkeypatch):
    """Each fold's weights come from its training rows: other held-out targets do not change what it learns."""
    X, y = table()
    seen = []
    monkeypatch.setattr(_base, "term_weights", lambda *a: seen.append(term_weights(*a)) or seen[-1])
    FusedLassoRegressorCV(alphas=3, cv=3, adaptive=True).fit(X, y)
    assert len(seen) == 4  # all the data, and three folds
    first = FusedLassoRegressor(adaptive=True).fit(X[20:], y[20:])
    np.testing.assert_allclose(seen[1], first.adaptive_weights_, rtol=1e-2)
    assert not np.allclose(seen[0], seen[1])


def test_adaptive_weights_follow_their_definition():
    X, y = table()
    model = GeneralizedLassoRegressor(0.05, adaptive=2.0, tol=1e-10).fit(X, y)
    centred = X - X.mean(axis=0)
    ridge = 0.01 * (np.mean(np.sum(centred**2, axis=1)) + 1.0) / (D + 1)
    pilot = np.linalg.solve(centred.T @ centred / len(y) + ridge * np.eye(D), centred.T @ (y - y.mean()) / len(y))
    size = np.abs(pilot)
    np.testing.assert_allclose(model.adaptive_weights_, (size.mean() / (size + 1e-3 * size.mean())) ** 2, rtol=1e-4)
    again = GeneralizedLassoRegressor(0.05, adaptive=2.0, tol=1e-10).fit(X, y)
    np.testing.assert_array_equal(again.coef_, model.coef_)


def test_trends_take_orders_and_bounds_in_every_fold():
    rng = np.random.default_rng(0)
    t = np.sort(rng.random(60))
    y = t + 0.3 * rng.standard_normal(60)
    model = TrendFilterCV(order=1, monotone="increasing", bounds=(0.1, 0.8), cv=3, alphas=5).fit(t[:, None], y)
    assert np.all(np.diff(model.coef_) >= 0)
    assert model.coef_.min() >= 0.1
    assert model.coef_.max() <= 0.8
    arrays = TrendFilterCV(order=0, bounds=(np.zeros(60), np.full(60, 0.9)), cv=3, alphas=5).fit(t[:, None], y)
    assert arrays.coef_.min() >= 0.0
    with pytest.raises(ValueError, match="monotone=1"):
        TrendFilter(monotone=1).fit(t[:, None], y)


def test_a_directed_graph_is_stored(tmp_path):
    X, y = table()
    graph = nx.DiGraph([(2, 0), (0, 1)])
    model = FusedLassoRegressor(0.01, graph=graph, monotone="increasing").fit(X, y)
    assert model.coef_[2] <= model.coef_[0] <= model.coef_[1]
    model.save(tmp_path / "m.skadmm")
    loaded = skadmm.load(tmp_path / "m.skadmm")
    assert sorted(loaded.graph.edges) == sorted(graph.edges)
    np.testing.assert_array_equal(loaded.fit(X, y).coef_, model.coef_)


@pytest.mark.parametrize("penalty", [L2(), GroupLInf(groups=[[0, 1, 2], [3, 4, 5]])])
def test_a_penalty_object_with_intercept_bounds_and_cross_validation(penalty):
    X, y = table()
    for name in ("GeneralizedLassoRegressorCV", "GeneralizedLassoClassifierCV"):
        target = y if "Regressor" in name else y > 0
        model = ESTIMATORS[name](penalty=penalty, alphas=4, cv=3, positive=True).fit(X, target)
        assert np.all(model.coef_ >= 0)
        assert model.predict(X).shape == target.shape
        assert model.score(X, target) > 0.4


# -- levels ---------------------------------------------------------------------------------------------------------


def levels(n=200, seed=0):
    rng = np.random.default_rng(seed)
    size, brand = rng.integers(0, 4, n), rng.integers(0, 3, n)
    number = rng.standard_normal(n)
    y = np.array([0.0, 0.0, 1.0, 1.0])[size] + np.array([0.0, 2.0, 2.0])[brand] + number + 0.2 * rng.standard_normal(n)
    frame = pd.DataFrame(
        {
            "size": pd.Categorical.from_codes(size, LEVELS, ordered=True),
            "number": number,
            "brand": pd.Categorical.from_codes(brand, ["A", "B", "C"]),
        }
    )
    return frame, y


NAMES = ["size=low", "size=middle", "size=high", "size=top", "number", "brand=A", "brand=B", "brand=C"]


def test_levels_become_columns_joined_by_chains_and_pairs(tmp_path):
    frame, y = levels()
    model = FusedLassoRegressor(0.05, categorical_features="from_dtype").fit(frame, y)
    assert model.feature_names_out_.tolist() == NAMES
    assert model.n_features_in_ == 3
    assert model.graph_.edges.tolist() == [[0, 1], [1, 2], [2, 3], [5, 6], [5, 7], [6, 7]]
    np.testing.assert_allclose(model.graph_.weights, [1, 1, 1, 2 / 3, 2 / 3, 2 / 3])
    assert model.coef_[0] == model.coef_[1]
    assert model.coef_[6] == model.coef_[7]
    coded = sp.csr_array(pd.get_dummies(frame, dtype=float)[[c.replace("=", "_") for c in NAMES]].to_numpy())
    same = FusedLassoRegressor(0.05, graph=model.graph_.to_networkx(), edge_weights=True)
    by_hand = same.fit(pd.DataFrame(coded.toarray(), columns=NAMES), y)
    # The levels of a column and the intercept may exchange a constant where the ℓ1 norm does not change.
    coded = pd.DataFrame(coded.toarray(), columns=NAMES)
    np.testing.assert_allclose(model.predict(frame), by_hand.predict(coded), atol=1e-3)
    model.save(tmp_path / "m.skadmm")
    np.testing.assert_array_equal(skadmm.load(tmp_path / "m.skadmm").predict(frame), model.predict(frame))


def test_levels_are_a_group_or_plain_columns():
    frame, y = levels()
    group = GroupLassoRegressor(0.05, categorical_features="from_dtype").fit(frame, y)
    assert [part.tolist() for part in group.groups_] == [[0, 1, 2, 3], [4], [5, 6, 7]]
    lasso = GeneralizedLassoRegressor(0.05, categorical_features=["size", "brand"]).fit(frame, y)
    assert lasso.coef_.size == len(NAMES)


def test_polars_says_the_same():
    pl = pytest.importorskip("polars")
    frame, y = levels()
    other = pl.DataFrame(
        {
            "size": pl.Series(frame["size"].tolist(), dtype=pl.Enum(LEVELS)),
            "number": frame["number"].to_numpy(),
            "brand": pl.Series(frame["brand"].tolist(), dtype=pl.Categorical),
        }
    )
    model = FusedLassoRegressor(0.05, categorical_features="from_dtype").fit(frame, y)
    polars = FusedLassoRegressor(0.05, categorical_features="from_dtype").fit(other, y)
    assert polars.feature_names_out_.tolist() == NAMES
    np.testing.assert_array_equal(polars.coef_, model.coef_)
    np.testing.assert_array_equal(polars.predict(frame), model.predict(other))


def test_levels_that_the_fit_has_not_seen():
    frame, y = levels()
    new = pd.DataFrame({"size": ["low", None], "number": [0.0, 0.0], "brand": ["Z", "A"]})
    model = FusedLassoRegressor(0.05, categorical_features="from_dtype").fit(frame, y)
    with pytest.raises(ValueError, match="a missing value in the categorical column 'size', row 1"):
        model.predict(new)
    with pytest.raises(
        ValueError, match="the level 'Z', which the fit has not seen, in the categorical column 'brand'"
    ):
        model.predict(new.iloc[:1])
    model.set_params(handle_unknown="ignore")
    expected = model.intercept_ + np.array([model.coef_[0], model.coef_[5]])
    np.testing.assert_allclose(model.predict(new), expected)


@pytest.mark.parametrize(
    "given", [[0, 2], [True, False, True], {0: "ordered", 2: "unordered"}, {0: [0, 1, 2, 3], 2: None}]
)
def test_arrays_have_levels_too(given):
    frame, y = levels()
    X = np.column_stack([frame["size"].cat.codes, frame["number"], frame["brand"].cat.codes])
    model = FusedLassoRegressor(0.05, categorical_features=given).fit(X, y)
    ordered = isinstance(given, dict)
    assert len(model.graph_.edges) == (3 if ordered else 6) + 3
    assert model.feature_names_out_[4] == "x1"
    assert model.predict(X).shape == y.shape


def test_an_order_of_levels_and_a_refit_in_cross_validation():
    frame, y = levels()
    model = FusedLassoRegressorCV(
        categorical_features="from_dtype", monotone={"size": "increasing"}, relax=True, adaptive=True, alphas=5, cv=3
    ).fit(frame, y)
    assert np.all(np.diff(model.coef_[:4]) >= 0)
    assert model.score(frame, y) > 0.9
    assert model.standard_errors_.shape == model.coef_.shape

"""Faults that users reported: options that were missing, that were refused without being named, or had no message."""

import warnings

import dask.array as da
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from pyarrow.dataset import dataset
from sklearn.base import clone

from skadmm import (
    FusedLassoClassifier,
    FusedLassoRegressor,
    FusedLassoRegressorCV,
    GroupLassoRegressor,
    Problem,
    TrendFilter,
    load,
)
from skadmm.backends.convert import write_blocks
from skadmm.cli import run

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 5))
Y = X[:, 0] - X[:, 1] + 0.1 * RNG.standard_normal(60)
LABELS = (Y > 0).astype(int)

# -- partial_fit names what it refuses -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("option", "value", "allowed"),
    [
        ("positive", True, "positive=False"),
        ("bounds", (0, 1), "bounds=None"),
        ("monotone", "increasing", "monotone=None"),
        ("adaptive", 2.0, "adaptive=False"),
        ("relax", True, "relax=False"),
        ("categorical_features", [0], "categorical_features=None"),
    ],
)
def test_partial_fit_names_the_option_its_value_and_what_is_allowed(option, value, allowed):
    model = FusedLassoRegressor(**{option: value})
    assert not hasattr(model, "partial_fit")
    with pytest.raises(AttributeError) as caught:
        model.partial_fit(X, Y)
    assert f"{option}={value!r}" in str(caught.value)
    assert allowed in str(caught.value)
    with pytest.raises(AttributeError, match=allowed):
        FusedLassoRegressor.partial_fit(model, X, Y)


def test_partial_fit_names_the_other_arguments_that_it_refuses():
    with pytest.raises(AttributeError, match=r"multi_class='multinomial'.*takes multi_class='ovr'"):
        FusedLassoClassifier(multi_class="multinomial").partial_fit(X, LABELS)
    with pytest.raises(AttributeError, match=r"GroupLassoRegressor .*positive=True"):
        GroupLassoRegressor(groups=[[0, 1], [2, 3, 4]], positive=True).partial_fit(X, Y)
    with pytest.raises(TypeError, match="got 'offset': it takes X, y and sample_weight"):
        FusedLassoRegressor().partial_fit(X, Y, offset=Y)
    with pytest.raises(ValueError, match=r"classes=None: .*such as classes=\[0, 1\]"):
        FusedLassoClassifier().partial_fit(X, LABELS)
    with pytest.raises(ValueError, match="y holds 0, which"):
        FusedLassoClassifier().partial_fit(X, LABELS, classes=[1, 2])
    texts = np.where(LABELS > 0, "ill", "well").astype(object)
    with pytest.raises(ValueError, match="y holds 'well', which"):
        FusedLassoClassifier().partial_fit(X, texts, classes=["ill", "dead"])
    for model in (FusedLassoClassifier(), FusedLassoRegressor()):
        with pytest.raises(TypeError, match=r"X is 'rows\.parquet': partial_fit takes a table in memory"):
            model.partial_fit("rows.parquet", LABELS)


@pytest.mark.parametrize("loss", ["poisson", "gamma", "binomial"])
def test_partial_fit_takes_losses_with_a_range(loss):
    """They were refused with "target[0]=-1", which was a number of the package's own."""
    mean = np.exp(X[:, 0] - X[:, 1])
    targets = {"poisson": RNG.poisson(mean), "gamma": RNG.gamma(2.0, mean / 2.0), "binomial": LABELS}[loss]
    model = FusedLassoRegressor(alpha=0.001, loss=loss)
    for _ in range(10):
        model.partial_fit(X, targets)
    assert model.score(X, targets) > 0.0  # better than a constant


def test_missing_probabilities_name_the_loss():
    model = FusedLassoClassifier(alpha=0.01, loss="hinge").fit(X, LABELS)
    assert not hasattr(model, "predict_proba")
    with pytest.raises(AttributeError, match="no probabilities with loss='hinge'"):
        model.predict_proba(X)


# -- a model with an offset that gets none -----------------------------------------------------------------------------

YEARS = RNG.uniform(0.1, 4.0, 60)
COUNTS = RNG.poisson(YEARS * np.exp(0.5 * X[:, 0]))
SHIFT = np.log(YEARS)


def _counted(**options):
    return FusedLassoRegressor(alpha=0.01, loss="poisson", **options).fit(X, COUNTS, offset=SHIFT)


def _warned(call):
    """The warnings of a call, each with the file of the line that it shows."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [(str(one.message), one.filename) for one in caught]


def _says_missing(call, method):
    (message, file), *others = _warned(call)
    assert not others  # methods that call each other warn once
    assert f"{method} takes 0 for every row" in message
    assert "offset=0.0" in message
    assert file == __file__


def test_a_missing_offset_is_said_and_zero_is_not():
    model = _counted()
    _says_missing(lambda: model.predict(X), "predict")
    _says_missing(lambda: model.score(X, COUNTS), "score")
    squared = FusedLassoRegressor(alpha=0.01).fit(X, Y, offset=SHIFT)
    _says_missing(lambda: squared.score(X, Y), "score")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        one_year = model.predict(X, offset=0.0)
        np.testing.assert_array_equal(one_year, model.predict(X, offset=np.zeros(60)))
        np.testing.assert_allclose(model.predict(X, offset=np.log(2.0)), 2.0 * one_year)
        assert model.score(X, COUNTS, offset=0.0) == pytest.approx(model.score(X, COUNTS, offset=np.zeros(60)))
        assert squared.score(X, Y, offset=0.0) == pytest.approx(squared.score(X, Y, offset=np.zeros(60)))
        # A fit without an offset forgets the one before.
        model.fit(X, COUNTS).predict(X)
        clone(_counted()).fit(X, COUNTS).predict(X)


@pytest.mark.parametrize("method", ["predict", "decision_function", "predict_proba", "predict_log_proba"])
@pytest.mark.parametrize("classes", [2, 3])
def test_classifiers_say_that_an_offset_is_missing(method, classes):
    labels = LABELS if classes == 2 else np.arange(60) % 3
    given = SHIFT if classes == 2 else np.column_stack([SHIFT, -SHIFT, 0.5 * SHIFT])
    model = FusedLassoClassifier(alpha=0.01).fit(X, labels, offset=given)
    call = getattr(model, method)
    _says_missing(lambda: call(X), method)
    _says_missing(lambda: model.score(X, labels), "score")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(call(X, offset=0.0), call(X, offset=np.zeros_like(given)))
        call(X, offset=given)


def test_searches_do_not_warn_and_reports_do_where_the_offset_is_missing(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = FusedLassoRegressorCV(alphas=4, cv=3, loss="poisson", scoring="neg_mean_poisson_deviance")
        model.fit(X, COUNTS, offset=SHIFT)
        model.report(tmp_path / "with.html", X, COUNTS, offset=SHIFT)
    _says_missing(lambda: model.report(tmp_path / "without.html", X, COUNTS), "report")
    assert "the score is for 0" in (tmp_path / "without.html").read_text()
    assert "the score is for 0" not in (tmp_path / "with.html").read_text()
    _says_missing(lambda: model.predict(X), "predict")


def test_a_stored_model_knows_of_its_offset(tmp_path):
    model = _counted()
    model.save(tmp_path / "model.skadmm")
    loaded = load(tmp_path / "model.skadmm")
    _says_missing(lambda: loaded.predict(X), "predict")
    del model.with_offset_  # a file of an older version
    model.save(tmp_path / "older.skadmm")
    assert not _warned(lambda: load(tmp_path / "older.skadmm").predict(X))
    with pytest.raises(ValueError, match="fitted with an offset, which partial_fit does not take"):
        loaded.partial_fit(X, COUNTS)


def test_tables_that_are_not_in_memory_take_zero_as_the_offset(tmp_path):
    frame = pd.DataFrame(X, columns=list("abcde")).assign(shift=SHIFT, count=COUNTS)
    frame.to_parquet(tmp_path / "table.parquet")
    model = FusedLassoRegressor(alpha=0.01, loss="poisson").fit(tmp_path / "table.parquet", "count", offset="shift")
    path = tmp_path / "table.parquet"
    _says_missing(lambda: model.predict(path), "predict")
    _says_missing(lambda: model.score(path, "count"), "score")
    rows = da.from_array(X, chunks=(20, 5))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_allclose(model.predict(path, offset=0.0), model.predict(path, offset=np.zeros(60)))
        assert np.isfinite(model.score(path, "count", offset=0.0))
        in_memory = _counted()
        np.testing.assert_allclose(in_memory.predict(rows, offset=0.0), in_memory.predict(X, offset=0.0))


def test_the_command_line_notes_that_an_offset_is_missing(tmp_path, capsys):
    frame = pd.DataFrame(X, columns=list("abcde")).assign(years=YEARS, count=COUNTS)
    frame.to_csv(tmp_path / "table.csv", index=False)
    model, data = str(tmp_path / "model.skadmm"), str(tmp_path / "table.csv")
    fit = ["fit", data, "--out", model, "--target", "count", "--exposure", "years", "--alpha", "0.01"]
    assert run([*fit, "--model", "fused-regressor", "--loss", "poisson"]) == 0
    assert "note" not in capsys.readouterr().err
    assert run(["predict", model, data]) == 0
    assert "fitted with an offset; without --offset or --exposure" in capsys.readouterr().err
    assert run(["predict", model, data, "--exposure", "years"]) == 0
    assert "note" not in capsys.readouterr().err


# -- columns of a file that are not features ---------------------------------------------------------------------------

NAMES = list("abcde")
UNUSED = ["key", "day", "town"]


@pytest.fixture
def mixed(tmp_path):
    """A table with an identifier, dates and texts among its features, in every form in which it stays on disk."""
    frame = pd.DataFrame(X, columns=NAMES)
    frame.insert(0, "key", [f"row {k}" for k in range(60)])
    frame.insert(3, "day", pd.date_range("2024-01-01", periods=60))
    frame["town"] = ["Bern", "Ulm", "Graz"] * 20
    frame["price"], frame["weight"] = Y, np.arange(60) % 3 + 1.0
    frame.to_parquet(tmp_path / "table.parquet")
    frame.to_csv(tmp_path / "table.csv", index=False)
    (tmp_path / "parts").mkdir()
    for k in range(2):
        frame[30 * k : 30 * k + 30].to_parquet(tmp_path / "parts" / f"{k}.parquet")
    return {
        "parquet": tmp_path / "table.parquet",
        "csv": str(tmp_path / "table.csv"),
        "parts": tmp_path / "parts",
        "lazy": pl.scan_parquet(tmp_path / "table.parquet"),
        "dataset": dataset(tmp_path / "table.parquet"),
    }


@pytest.mark.parametrize("storage", ["parquet", "csv", "parts", "lazy", "dataset"])
def test_a_fit_leaves_out_columns_of_a_table_on_disk(mixed, storage, tmp_path):
    table, weight = mixed[storage], np.arange(60) % 3 + 1.0
    wanted = FusedLassoRegressor(alpha=0.01).fit(X, Y)
    model = FusedLassoRegressor(alpha=0.01).fit(table, "price", drop=[*UNUSED, "weight"])
    assert model.feature_names_in_.tolist() == NAMES
    np.testing.assert_allclose(model.coef_, wanted.coef_, atol=1e-9)
    # Predictions find the features among the other columns.
    np.testing.assert_allclose(model.predict(table), wanted.predict(X), atol=1e-9)
    assert model.score(table, "price") == pytest.approx(wanted.score(X, Y))
    model.report(tmp_path / "fit.html", table, "price")
    weighted = FusedLassoRegressor(alpha=0.01).fit(X, Y, weight)
    for y in ("price", None):  # the last column but for the weights
        model = FusedLassoRegressor(alpha=0.01).fit(table, y, "weight", drop=UNUSED)
        np.testing.assert_allclose(model.coef_, weighted.coef_, atol=1e-9)


@pytest.mark.parametrize("storage", ["parquet", "lazy"])
def test_searches_classes_levels_outputs_and_problems_leave_out_columns(mixed, storage):
    table = mixed[storage]
    search = FusedLassoRegressorCV(alphas=4, cv=3).fit(table, "price", drop=[*UNUSED, "weight"])
    wanted = FusedLassoRegressorCV(alphas=4, cv=3).fit(X, Y)
    np.testing.assert_allclose(search.cv_losses_, wanted.cv_losses_, rtol=1e-6)
    np.testing.assert_allclose(search.predict(table), wanted.predict(X), atol=1e-6)
    classes = FusedLassoClassifier(alpha=0.01).fit(table, LABELS, drop=[*UNUSED, "weight", "price"])
    assert classes.score(table, LABELS) == FusedLassoClassifier(alpha=0.01).fit(X, LABELS).score(X, LABELS)
    levels = FusedLassoRegressor(alpha=0.01, categorical_features=["town"])
    levels.fit(table, None, "weight", drop=["key", "day"])
    assert set(levels.categories_) == {"town"}
    assert levels.predict(table).shape == (60,)
    outputs = FusedLassoRegressor(alpha=0.01).fit(table, ["price", "weight"], drop=UNUSED)
    assert outputs.coef_.shape == (2, 5)
    shifted = FusedLassoRegressor(alpha=0.01).fit(table, "price", offset="weight", drop=UNUSED)
    assert shifted.feature_names_in_.tolist() == NAMES
    assert Problem(table, "price", "squared", drop=[*UNUSED, "weight"]).n_features == 5


def test_what_drop_does_not_take_is_said(mixed, tmp_path):
    table, model = mixed["parquet"], FusedLassoRegressor(alpha=0.01)
    refused = {
        r"drop: there are no columns 'kee', 'dai'; it has key, .* Did you mean 'key'": {"drop": ["kee", "day", "dai"]},
        "drop: there is no column 'kee'": {"drop": "kee"},
        "drop and y both name the column 'price'": {"drop": ["price"]},
        "y=None is the last column, 'weight', which drop leaves out": {"y": None, "drop": ["weight"]},
        "no column of X is left": {"drop": [*UNUSED, *NAMES, "weight"]},
    }
    for message, given in refused.items():
        with pytest.raises(ValueError, match=message):
            model.fit(**{"X": table, "y": "price"} | given)
    for given in (3, [3]):
        with pytest.raises(TypeError, match="it takes names of columns"):
            model.fit(table, "price", drop=given)
    frame = pd.read_parquet(table)
    for X_, instead in ((frame, r"X\.drop\(columns=\['key'\]\)"), (pl.from_pandas(frame), r"X\.drop\(\['key'\]\)")):
        with pytest.raises(TypeError, match=instead):
            model.fit(X_, Y, drop=["key"])
    with pytest.raises(TypeError, match="X is of the type ndarray: give X without them"):
        FusedLassoRegressorCV().fit(X, Y, drop=["key"])
    write_blocks(tmp_path / "blocks", [(X, Y)], ones=True)
    with pytest.raises(ValueError, match="columns of a folder of blocks are chosen when it is written"):
        model.fit(tmp_path / "blocks", drop=["key"])
    with pytest.raises(ValueError, match=r"column 'key' holds 'row 0', .* leave it out \(drop=\['key'\]\)"):
        model.fit(table, "price", drop=["day", "town"])
    assert model.fit(X, Y, drop=[]).coef_.shape == (5,)


# -- numbers whose squares overflow ------------------------------------------------------------------------------------

GROUPS = [[0, 1], [2, 3, 4]]
MODELS = {
    "fused": FusedLassoRegressor(alpha=0.01),
    "standardized": FusedLassoRegressor(alpha=0.01, standardize=True),
    "no intercept": FusedLassoRegressor(alpha=0.01, fit_intercept=False),
    "lasso": FusedLassoRegressor(alpha=0.01, l1_ratio=1.0),
    "group": GroupLassoRegressor(alpha=0.01, groups=GROUPS),
    "trend": TrendFilter(alpha=0.01, design="matrix"),
    "classes": FusedLassoClassifier(alpha=0.01),
    "hinge": FusedLassoClassifier(alpha=0.01, loss="hinge"),
    "multinomial": FusedLassoClassifier(alpha=0.01, multi_class="multinomial"),
    "search": FusedLassoRegressorCV(alphas=3, cv=3),
}


def _target(name):
    several = np.arange(60) % 3
    return {"classes": LABELS, "hinge": LABELS, "multinomial": several}.get(name, Y)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("size", [1e76, 1e160, 1e200, 1e300])
def test_numbers_whose_powers_overflow_are_refused_by_column(name, size):
    model, y = clone(MODELS[name]), _target(name)
    table = pd.DataFrame(X, columns=NAMES)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # the refusal comes before any overflow
        with pytest.raises(ValueError, match=r"X has numbers of the size .* in column 'c': .* divide the column"):
            model.fit(table.assign(c=size * X[:, 2]), y)
        with pytest.raises(ValueError, match=r"in column 'a' \(and in 4 more columns\)"):
            model.fit(size * table, y)
        alone = X.copy()
        alone[50, 3] = -size
        for given in (alone, sp.csr_array(alone)):
            with pytest.raises(ValueError, match="in column 3: it takes numbers up to 1e"):
                model.fit(given, y)
        if y is Y:
            with pytest.raises(ValueError, match=r"y has numbers of the size .*: it takes numbers up to 1e"):
                model.fit(table, size * Y)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("size", [1e50, 1e74])
def test_smaller_numbers_do_not_overflow(name, size):
    y = _target(name)
    for X_, y_ in ((size * X, y), (X, size * y), (size * X, size * y)):
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            warnings.simplefilter("ignore", UserWarning)  # whether it converges depends on the model
            coef = clone(MODELS[name]).fit(X_, y_ if y is Y else y).coef_
        assert np.all(np.isfinite(coef))


def test_every_batch_is_checked_for_large_numbers():
    frame, model = pd.DataFrame(X, columns=NAMES), FusedLassoRegressor(alpha=0.01)
    large = frame.assign(c=1e200 * X[:, 2])
    for _ in range(2):
        with pytest.raises(ValueError, match="in column 'c': it takes numbers up to"):
            model.partial_fit(large, Y)
        model.partial_fit(frame, Y)


def test_signals_of_large_numbers():
    position = np.arange(60.0)[:, None]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plain = TrendFilter(alpha=0.1).fit(position, Y).coef_
        for size in (1e50, 1e70):
            np.testing.assert_allclose(TrendFilter(alpha=0.1 * size).fit(position, size * Y).coef_, size * plain)
        with pytest.raises(ValueError, match="y has numbers of the size"):
            TrendFilter().fit(position, 1e200 * Y)


@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("make", [FusedLassoRegressor, FusedLassoRegressorCV])
def test_large_numbers_on_disk_and_on_dask_are_refused_by_column(make, standardize, tmp_path):
    frame = pd.DataFrame(X, columns=NAMES).assign(c=1e200 * X[:, 2], price=Y)
    frame.to_parquet(tmp_path / "table.parquet")
    model, rows = make(standardize=standardize), da.from_array(frame[NAMES].to_numpy(), chunks=(20, 5))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match=r"X has numbers of the size .* in column 'c'"):
            model.fit(tmp_path / "table.parquet", "price")
        with pytest.raises(ValueError, match=r"X has numbers of the size .* in column 2"):
            model.fit(rows, da.from_array(Y, chunks=20))
        frame.assign(c=X[:, 2], price=1e200 * Y).to_parquet(tmp_path / "target.parquet")
        with pytest.raises(ValueError, match="y has numbers of the size"):
            model.fit(tmp_path / "target.parquet", "price")


@pytest.mark.parametrize("name", [name for name in MODELS if name != "trend"])  # a trend uses equal coefficients
@pytest.mark.parametrize("size", [1e-200, 1e-300])
def test_a_column_whose_squares_underflow_is_as_a_constant(name, size):
    y, tiny, constant = _target(name), X.copy(), X.copy()
    tiny[:, 2], constant[:, 2] = size * X[:, 2], 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", UserWarning)  # a search may end at its smallest alpha
        found, wanted = clone(MODELS[name]).fit(tiny, y), clone(MODELS[name]).fit(constant, y)
        assert np.all(np.isfinite(clone(MODELS[name]).fit(size * X, y).coef_))
    np.testing.assert_allclose(found.coef_, wanted.coef_, atol=1e-6)

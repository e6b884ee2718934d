"""Wrong and unusual calls that a new user reported: messages that name the argument, dates, and the command line."""

import warnings

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from skadmm import (
    FusedLassoClassifier,
    FusedLassoRegressor,
    FusedLassoRegressorCV,
    GroupLassoRegressor,
    TrendFilter,
    load,
)
from skadmm.cli import run
from skadmm.losses import check_loss
from skadmm.plotting import trend_fit

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 4))
Y = X[:, 0] + 0.1 * RNG.standard_normal(60)
FRAME = pd.DataFrame(X, columns=list("abcd"))
COUNTS = RNG.poisson(2.0, 60)

# -- arguments that methods do not take -------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["fit", "score"])
@pytest.mark.parametrize("model", [FusedLassoRegressor(0.1), FusedLassoRegressorCV(alphas=3, cv=2), TrendFilter(0.1)])
def test_an_exposure_is_refused_with_the_offset(model, method):
    model = model.fit(X[:, :1] if isinstance(model, TrendFilter) else X, Y)
    with pytest.raises(TypeError, match=rf"{method}\(\) got 'exposure': .* give offset=np.log\(exposure\)"):
        getattr(model, method)(X, Y, exposure=Y)
    with pytest.raises(TypeError, match=r"predict\(\) got 'exposure': it takes X and offset; for an exposure"):
        model.predict(X, exposure=Y)


@pytest.mark.parametrize("model", [FusedLassoRegressor(), FusedLassoRegressorCV(), FusedLassoClassifier()])
def test_other_unknown_arguments_are_refused_with_the_nearest(model):
    with pytest.raises(TypeError, match=r"fit\(\) got 'sample_weights': .* Did you mean 'sample_weight'"):
        model.fit(X, Y > 0, sample_weights=Y)
    if isinstance(model, FusedLassoClassifier):
        with pytest.raises(TypeError, match=r"predict_proba\(\) got 'margin': it takes X and offset"):
            model.fit(X, Y > 0).predict_proba(X, margin=Y)


# -- targets and weights ----------------------------------------------------------------------------------------------

TEXTS = np.where(Y > 0, "high", "low")


@pytest.mark.parametrize("texts", [TEXTS, TEXTS.astype(object), pd.Series(TEXTS), pd.Series(TEXTS, dtype="category"),
                                   pd.DataFrame({"y": TEXTS}), TEXTS.tolist()])  # fmt: skip
def test_classes_given_to_a_regressor_are_named(texts):
    with pytest.raises(ValueError, match=r"y holds '(high|low)', which is not a number: FusedLassoRegressor"):
        FusedLassoRegressor().fit(X, texts)


def test_objects_that_are_numbers_are_targets():
    expected = FusedLassoRegressor().fit(X, Y).coef_
    np.testing.assert_array_equal(FusedLassoRegressor().fit(X, Y.astype(object)).coef_, expected)
    missing = Y.astype(object)
    missing[[4, 9]] = None
    for given in (missing, pd.Series(missing), pd.DataFrame({"y": missing})):
        with pytest.raises(ValueError, match="y has 2 missing values, the first in row 4"):
            FusedLassoRegressor().fit(X, given)


def test_dates_as_targets_are_refused_by_their_dtype():
    with pytest.raises(ValueError, match=r"y has dtype datetime64\[\w+\]: FusedLassoRegressor takes numbers"):
        FusedLassoRegressor().fit(X, pd.date_range("2024-01-01", periods=60))


def test_classes_of_mixed_types_and_negative_class_weights_are_refused():
    mixed = TEXTS.astype(object)
    mixed[3] = 7
    with pytest.raises(TypeError, match="y mixes texts with other values such as 7"):
        FusedLassoClassifier().fit(X, mixed)
    with pytest.raises(ValueError, match=r"class_weight={'low': -1}: it takes weights ≥ 0"):
        FusedLassoClassifier(class_weight={"low": -1}).fit(X, TEXTS)


def test_the_name_of_a_column_as_target_of_an_array():
    with pytest.raises(TypeError, match="y='price': the name of a column goes with a path"):
        FusedLassoRegressor().fit(X, "price")


def test_the_name_of_a_column_as_offset():
    with pytest.raises(TypeError, match="offset='years': it takes an array with a number for each row"):
        FusedLassoRegressor(loss="poisson").fit(X, COUNTS, offset="years")


# -- parameters -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"l1_ratio": "a"}, r"l1_ratio='a': it takes a number in \[0, 1\]$"),
        ({"l1_ratio": -0.1}, r"l1_ratio=-0.1: it takes a number in \[0, 1\]$"),
        ({"l1_ratio": [0.1]}, r"l1_ratio=\[0.1\]: it takes a number in \[0, 1\]; from a list the CV estimators choose"),
        ({"task_graph": "full"}, "task_graph='full': it takes None, 'complete'"),
        ({"handle_unknown": "drop"}, "handle_unknown='drop': it takes 'error' or 'ignore'"),
        ({"edge_weights": [1.0]}, r"edge_weights=\[1.0\]: it takes None or False for a chain or a grid"),
        ({"graph": {"a": ["b"]}}, "graph must be a networkx graph, .* got {'a'"),
        ({"penalty_factor": -1}, "penalty_factor=-1: it takes one number ≥ 0 per feature"),
    ],
)
def test_parameters_are_checked_where_they_have_no_effect_too(parameters, message):
    with pytest.raises(ValueError, match=message):
        FusedLassoRegressor(**parameters).fit(FRAME, Y)


@pytest.mark.parametrize("alphas", [5.0, "5", None])
def test_the_number_of_alphas_is_mentioned(alphas):
    with pytest.raises(ValueError, match="it takes the number of alphas, an integer ≥ 1, or a sequence"):
        FusedLassoRegressorCV(alphas=alphas).fit(X, Y)


def test_a_scorer_that_fails_is_named():
    with pytest.raises(ValueError, match="scoring='accuracy' fails on the rows held out: continuous"):
        FusedLassoRegressorCV(alphas=3, cv=2, scoring="accuracy").fit(X, Y)


def test_a_graph_with_weights_on_some_edges_only():
    graph = nx.Graph([("a", "b", {"weight": 2.0}), ("b", "c")])
    with pytest.raises(ValueError, match="edge_weights=False and edge_signs=False of an estimator"):
        FusedLassoRegressor(graph=graph).fit(FRAME, Y)
    model = FusedLassoRegressor(graph=graph, edge_weights=False, edge_signs=False).fit(FRAME, Y)
    assert model.graph_.weights.tolist() == [1.0, 1.0]


def test_groups_by_name_of_columns_without_names():
    with pytest.raises(ValueError, match="groups has the member 'a': to match names, X must be a DataFrame"):
        GroupLassoRegressor(groups={"first": ["a", "b"]}).fit(X, Y)
    with pytest.raises(ValueError, match="it takes a list or a dict of groups"):
        GroupLassoRegressor(groups="genes").fit(X, Y)
    with pytest.raises(ValueError, match=r"groups\[1\] holds the feature 3 twice"):
        GroupLassoRegressor(groups=[[0, 1], [3, 2, 3]]).fit(X, Y)


def test_a_warning_does_not_advise_what_was_done():
    hard = FusedLassoRegressor(1e-3, standardize=True, max_passes=1, method="sa-admm")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        hard.fit(X, Y)
    assert len(caught) == 1
    assert "standardize" not in str(caught[0].message)


# -- dates ------------------------------------------------------------------------------------------------------------

DAYS = pd.DataFrame({"day": pd.date_range("2024-02-27", periods=60)})
LEVELS = np.repeat([0.0, 3.0], 30)


def test_a_trend_over_dates_shows_dates(tmp_path):
    model = TrendFilter(0.01, order=0).fit(DAYS, LEVELS)
    assert model.dates_
    model.report(tmp_path / "trend.html", DAYS, LEVELS)
    assert "<td>2024-03-28</td>" in (tmp_path / "trend.html").read_text()
    axes = trend_fit(model, DAYS, LEVELS)
    assert axes.get_xlabel() == "date"
    assert axes.lines[0].get_xdata()[30] == np.datetime64("2024-03-28")
    numbers = TrendFilter(0.01, order=0).fit(np.arange(60)[:, None], LEVELS)
    assert not numbers.dates_
    assert trend_fit(numbers).get_xlabel() == "position"


def test_texts_as_positions_are_refused_with_the_remedy():
    with pytest.raises(ValueError, match=r"X has the column 'day' of dtype .*pd.to_datetime"):
        TrendFilter().fit(DAYS.astype(str), LEVELS)
    digits = pd.DataFrame({"at": np.arange(60).astype(str)}, dtype=object)
    assert not TrendFilter().fit(digits, LEVELS).dates_


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_trend_over_dates_from_the_command_line(tmp_path, monkeypatch, capsys, ending):
    monkeypatch.chdir(tmp_path)
    table = DAYS.assign(level=LEVELS)
    table.to_csv("days.csv", index=False)
    table.to_parquet("days.parquet")
    fit = ["fit", f"days.{ending}", "-o", "model", "--target", "level", "--model", "trend-filter", "--order", "0"]
    assert run([*fit, "--alpha", "0.01", "-q"]) == 0
    expected = TrendFilter(0.01, order=0).fit(DAYS, LEVELS)
    np.testing.assert_allclose(load("model").coef_, expected.coef_)
    assert run(["coef", "model"]) == 0
    assert "1 knot, at 2024-03-28\n" in capsys.readouterr().out
    for data in ("days.csv", "days.parquet"):
        assert run(["predict", "model", data, "-o", "out.csv", "--force"]) == 0
        np.testing.assert_allclose(pd.read_csv("out.csv")["prediction"], expected.predict(DAYS))


# -- files ------------------------------------------------------------------------------------------------------------


def test_a_report_on_a_table_on_disk(tmp_path):
    FRAME.assign(target=Y).to_parquet(tmp_path / "table.parquet")
    model = FusedLassoRegressor().fit(tmp_path / "table.parquet", "target")
    model.report(tmp_path / "on.html", str(tmp_path / "table.parquet"), "target")
    model.report(tmp_path / "in.html", FRAME, Y)
    score = f"{model.score(FRAME, Y):.4f}"
    for page in ("on.html", "in.html"):
        text = (tmp_path / page).read_text()
        assert score in text
        assert "<td>60</td>" in text


def test_a_missing_value_on_disk_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("SKADMM_CACHE", str(tmp_path / "cache"))
    for column, words in (("c", "row 7: column 'c' holds NaN"), ("target", "row 7: the target holds NaN")):
        table = FRAME.assign(target=Y)
        table.loc[7, column] = np.nan
        table.to_parquet(tmp_path / f"{column}.parquet")
        with pytest.raises(ValueError, match=rf"{column}.parquet: {words}"):
            FusedLassoRegressor().fit(tmp_path / f"{column}.parquet", "target")


def test_a_folder_in_place_of_a_model(tmp_path):
    with pytest.raises(OSError, match="is a folder: it takes the name of a file"):
        load(tmp_path)


def test_a_loss_that_was_not_defined_and_one_that_cannot_be_saved(tmp_path):
    class Undefined(tuple):
        __slots__ = ()

    with pytest.raises(TypeError, match=r"skadmm\.losses\.define gives its class the functions"):
        check_loss(Undefined())

    model = FusedLassoRegressor().fit(X, Y)
    model.loss = Undefined()
    with pytest.raises(TypeError, match=r"LOSSES.add\('a-name', Undefined\) adds it, here and before the file is"):
        model.save(tmp_path / "model")


# -- the command line -------------------------------------------------------------------------------------------------


@pytest.fixture
def claims(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    table = pd.DataFrame({"zone": rng.choice(list("xyz"), 80), "size": rng.standard_normal(80),
                          "years": rng.uniform(0.1, 1.0, 80), "claims": rng.poisson(1.0, 80)})  # fmt: skip
    table.to_csv("claims.csv", index=False)
    table.to_parquet("claims.parquet")
    return table


LEVELS_OF_ZONE = ["--target", "claims", "--set", "categorical_features=from_dtype", "--alpha", "0.01", "-o", "model"]


def test_an_exposure_takes_a_loss_with_an_exponential(claims, capsys):
    fit = ["fit", "claims.csv", *LEVELS_OF_ZONE, "--model", "fused-regressor", "--exposure", "years"]
    assert run(fit) == 2
    assert "--exposure years: it takes a loss whose mean is an exponential" in capsys.readouterr().err
    for loss in ("poisson", "tweedie", "negative-binomial"):
        assert run([*fit, "--loss", loss, "--force", "-q"]) == 0
    shown = capsys.readouterr().out
    assert "features            2\ncoefficients        4\n" in shown
    assert run(["predict", "model", "claims.csv", "--exposure", "years"]) == 0
    capsys.readouterr()
    assert run(["info", "model"]) == 0
    shown = capsys.readouterr().out
    assert "categorical_features= " in shown
    assert "verbose=" not in shown


@pytest.mark.parametrize("levels", [["--set", "categorical_features=from_dtype"], ["--drop", "zone"]])
@pytest.mark.parametrize("file", ["claims.parquet", "claims.csv"])
def test_an_exposure_in_a_table_on_disk(claims, capsys, monkeypatch, file, levels):
    monkeypatch.setenv("SKADMM_CACHE", "cache")
    fit = ["fit", file, "--target", "claims", *levels, "--model", "fused-regressor", "--loss", "poisson"]
    fit += ["--exposure", "years", "--alpha", "0.01", "-q", "--tol", "1e-9"]
    assert run([*fit, "-o", "disk", "--on-disk"]) == 0
    assert run([*fit, "-o", "memory", "--in-memory"]) == 0
    disk, memory = load("disk"), load("memory")
    assert "years" not in disk.feature_names_in_
    np.testing.assert_array_equal(disk.feature_names_in_, memory.feature_names_in_)
    np.testing.assert_allclose(disk.coef_, memory.coef_, atol=1e-6)
    capsys.readouterr()
    monkeypatch.setattr("skadmm.cli.predict.stays_on_disk", lambda path, on_disk: True)
    assert run(["predict", "disk", file, "--exposure", "years", "-o", "out.csv"]) == 0
    expected = memory.predict(claims[list(memory.feature_names_in_)], offset=np.log(claims["years"]))
    np.testing.assert_allclose(pd.read_csv("out.csv")["prediction"], expected, rtol=1e-5)
    assert run([*fit, "-o", "third", "--on-disk", "--exposure", "yaers"]) == 2
    assert "there is no column 'yaers'" in capsys.readouterr().err
    text = [*fit, "-o", "third", "--on-disk", "--exposure", "zone"]
    assert run([*text[:4], *text[6:]]) == 2
    assert "--exposure zone: the column does not hold numbers" in capsys.readouterr().err


def test_levels_in_groups_are_counted_once(claims, capsys):
    fit = ["fit", "claims.csv", *LEVELS_OF_ZONE, "--model", "group-regressor", "--loss", "poisson", "-q"]
    assert run([*fit, "--drop", "years"]) == 0
    assert "not_penalised" not in capsys.readouterr().out


def test_files_with_other_separators_and_with_an_index(claims, capsys):
    claims.to_csv("other.csv", index=False, sep=";")
    assert run(["fit", "other.csv", "-o", "one", "--target", "claims"]) == 2
    assert "other.csv: its columns are separated by ';': CSV takes commas" in capsys.readouterr().err
    claims.to_csv("other.csv", index=False, sep=";", decimal=",")
    claims.rename(columns={"claims": "1,5"}).to_csv("names.csv", index=False, sep=";")
    claims.to_csv("tabs.csv", index=False, sep="\t")
    for name, mark in (("other", "';', and its numbers have decimal commas"), ("names", "';'"), ("tabs", r"'\t'")):
        for where in ("--on-disk", "--in-memory"):
            assert run(["fit", f"{name}.csv", "-o", "one", where]) == 2
            assert f"{name}.csv: its columns are separated by {mark}" in capsys.readouterr().err
    claims.drop(columns="zone").to_csv("index.csv")
    fit = ["fit", "index.csv", "--target", "claims", "--model", "fused-regressor", "--alpha", "0.1", "-q"]
    assert run([*fit, "-o", "two"]) == 0
    assert "the column 'Unnamed: 0' has no name in the file; --drop 'Unnamed: 0'" in capsys.readouterr().err
    assert run([*fit, "-o", "three", "--drop", "Unnamed: 0"]) == 0
    assert capsys.readouterr().err == ""
    assert load("three").feature_names_in_.tolist() == ["size", "years"]


def test_texts_are_refused_with_levels_in_their_own_order(claims, capsys):
    assert run(["fit", "claims.csv", "-o", "model", "--target", "claims", "--model", "fused-regressor"]) == 2
    assert 'it sorts them, and a list such as ["first","second"] in place of "ordered"' in capsys.readouterr().err
    in_order = """categorical_features={"zone":["z","x","y"]}"""
    fit = ["fit", "claims.csv", "-o", "model", "--target", "claims", "--model", "fused-regressor", "--set", in_order]
    assert run([*fit, "--alpha", "0.01", "-q"]) == 0
    assert load("model").feature_names_out_[:3].tolist() == ["zone=z", "zone=x", "zone=y"]


def test_predictions_into_a_folder_that_is_not_there(claims, capsys):
    assert run(["fit", "claims.csv", *LEVELS_OF_ZONE, "--model", "fused-regressor", "-q"]) == 0
    assert run(["predict", "model", "claims.csv", "-o", "nowhere/out.csv"]) == 1
    assert "nowhere: there is no such folder" in capsys.readouterr().err

"""Faults that users reported: models, labels and folds that were not the same for every storage of a table."""

from pathlib import Path

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from skadmm import (
    FusedLassoClassifier,
    FusedLassoClassifierCV,
    FusedLassoRegressor,
    FusedLassoRegressorCV,
    Problem,
    TrendFilter,
    TrendFilterCV,
    load,
    solve,
)
from skadmm.backends import Processes
from skadmm.backends.writer import write_blocks
from skadmm.cli import run

RNG = np.random.default_rng(0)
N = 80
X = RNG.standard_normal((N, 4))
Y = X[:, 0] + RNG.standard_normal(N)
NAMES = list("abcd")
FRAME = pd.DataFrame(X, columns=NAMES)


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("SKADMM_CACHE", str(tmp_path / "cache"))


def same_model(found, wanted, atol=1e-8):
    np.testing.assert_allclose(found.coef_, wanted.coef_, atol=atol, rtol=0)
    np.testing.assert_allclose(found.intercept_, wanted.intercept_, atol=atol, rtol=0)


def named(storage, frame, folder):
    """A table on disk with a column y, and that name."""
    if storage == "lazy":
        return pl.from_pandas(frame).lazy(), "y"
    if storage == "csv":
        frame.to_csv(folder / "t.csv", index=False)
    else:
        frame.to_parquet(folder / "t.parquet")
    return folder / f"t.{storage}", "y"


# -- several outputs whose large shifts are copied in chunks ---------------------------------------------------------


def test_a_search_over_several_outputs_on_disk(tmp_path):
    FRAME.assign(y=Y, y2=-Y).to_parquet(tmp_path / "t.parquet")
    found = FusedLassoRegressorCV(alphas=4, tol=1e-11).fit(tmp_path / "t.parquet", ["y", "y2"])
    same_model(found, FusedLassoRegressorCV(alphas=4, tol=1e-11).fit(FRAME, np.column_stack([Y, -Y])))


def test_several_outputs_on_blocks_at_a_weak_penalty(tmp_path):
    rng = np.random.default_rng(4)
    rows = rng.standard_normal((120, 4))
    outcome = (rows[:, 0] * 2 + rng.standard_normal(120) > 0).astype(float)
    write_blocks(tmp_path / "blocks", [(rows[:60], None), (rows[60:], None)], ones=True)
    model = FusedLassoRegressor(0.001, loss="binomial", output_penalty="rows", tol=1e-11)
    target = np.column_stack([outcome, outcome])
    coef = model.fit(tmp_path / "blocks", target).coef_
    np.testing.assert_allclose(coef, model.fit(rows, target).coef_, atol=1e-8)


# -- adaptive --------------------------------------------------------------------------------------------------------

INDICATORS = (np.random.default_rng(1).random((N, 6)) < 0.2).astype(float)
COUNTED = INDICATORS @ np.arange(6.0) + RNG.standard_normal(N)
TOWNS = np.array(["Ulm", "Bern", "Graz"])[np.random.default_rng(2).integers(0, 3, N)]


@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("storage", ["csr", "npy", "dense blocks", "sparse blocks"])
@pytest.mark.parametrize("model", [FusedLassoRegressor(0.1), FusedLassoRegressorCV(alphas=3, cv=3)], ids=["fit", "CV"])
def test_adaptive_weights_do_not_depend_on_the_storage(model, storage, standardize, tmp_path):
    weight = np.linspace(0.5, 2.0, N)
    model.set_params(adaptive=True, tol=1e-11, standardize=standardize)
    wanted = model.fit(INDICATORS, COUNTED, weight)
    wanted_coef, wanted_weights = wanted.coef_, wanted.adaptive_weights_
    if storage == "csr":
        table = sp.csr_array(INDICATORS)
    elif storage == "npy":
        table = tmp_path / "X.npy"
        np.save(table, INDICATORS)
    else:
        table = tmp_path / "blocks"
        write_blocks(table, [(INDICATORS if storage == "dense blocks" else sp.csr_array(INDICATORS), None)], ones=True)
    found = model.fit(table, COUNTED, weight)
    np.testing.assert_allclose(found.adaptive_weights_, wanted_weights, rtol=1e-6)
    np.testing.assert_allclose(found.coef_, wanted_coef, atol=1e-8, rtol=0)


@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("storage", ["csv", "parquet", "lazy"])
def test_adaptive_weights_of_levels_do_not_depend_on_the_storage(storage, standardize, tmp_path):
    frame, target = FRAME.assign(town=TOWNS), Y + 2 * (TOWNS == "Ulm")
    model = FusedLassoRegressor(0.02, adaptive=True, categorical_features=["town"], standardize=standardize, tol=1e-11)
    wanted = model.fit(frame, target).coef_
    found = model.fit(*named(storage, frame.assign(y=target), tmp_path)).coef_
    np.testing.assert_allclose(found, wanted, atol=1e-8, rtol=0)


def test_the_first_fit_of_several_outputs_has_the_ridge_of_one():
    """The same output twice is one output: the weights are the same."""
    one = FusedLassoRegressor(0.1, adaptive=True, tol=1e-11).fit(X, Y)
    two = FusedLassoRegressor(0.1, adaptive=True, tol=1e-11).fit(X, np.column_stack([Y, Y]))
    np.testing.assert_allclose(two.adaptive_weights_, one.adaptive_weights_, rtol=1e-6)


# -- names of columns and scorers ------------------------------------------------------------------------------------


def negative_error(model, table, y, sample_weight=None):
    return -float(np.average((y - model.predict(table)) ** 2, weights=sample_weight))


@pytest.mark.parametrize("storage", ["parquet", "csv", "lazy", "npz"])
@pytest.mark.parametrize("scoring", [None, "r2", negative_error], ids=["loss", "r2", "callable"])
@pytest.mark.parametrize("offset", [False, True], ids=["no offset", "offset"])
@pytest.mark.parametrize("weighted", [False, True], ids=["no weight", "weight"])
def test_scorers_take_weights_and_offsets_by_name(storage, scoring, offset, weighted, tmp_path):
    columns = {}
    if weighted:
        columns["sample_weight"] = np.linspace(0.2, 3.0, N)
    if offset:
        columns["offset"] = np.sin(np.arange(N))
    model = FusedLassoRegressorCV(alphas=3, cv=3, scoring=scoring, tol=1e-11)
    wanted = model.fit(FRAME, Y, **columns)
    kind = "cv_losses_" if scoring is None else "cv_scores_"
    scores, coef = getattr(wanted, kind), wanted.coef_
    if storage == "npz":
        np.savez(tmp_path / "t.npz", X=X, y=Y, **columns)
        table, y = tmp_path / "t.npz", "y"
    else:
        table, y = named(storage, FRAME.assign(**columns, y=Y), tmp_path)
    found = model.fit(table, y, **{name: name for name in columns})
    np.testing.assert_allclose(getattr(found, kind), scores, rtol=1e-6)
    np.testing.assert_allclose(found.coef_, coef, atol=1e-8, rtol=0)


@pytest.mark.parametrize("balanced", [None, "balanced"])
def test_scorers_of_classifiers_take_the_weights_given(balanced, tmp_path):
    """Without those of the classes."""
    weight, labels = np.linspace(0.2, 3.0, N), np.where(Y > 0.5, "high", "low")
    model = FusedLassoClassifierCV(alphas=3, cv=3, scoring="accuracy", class_weight=balanced)
    wanted = model.fit(FRAME, labels, weight).cv_scores_
    table, y = named("parquet", FRAME.assign(w=weight, y=labels), tmp_path)
    np.testing.assert_allclose(model.fit(table, y, sample_weight="w").cv_scores_, wanted, rtol=1e-10)


# -- classes keep their type -----------------------------------------------------------------------------------------

LABELS = {
    "bool": Y > 0,
    "int": np.where(Y > 0, 7, -2),
    "three": np.digitize(Y, [-0.5, 0.5]),
    "whole": np.where(Y > 0, 1.0, -1.0),
    "text": np.where(Y > 0, "yes", "no"),
}


@pytest.mark.parametrize("levels", [False, True], ids=["numbers", "levels"])
@pytest.mark.parametrize("storage", ["parquet", "csv", "lazy", "blocks"])
@pytest.mark.parametrize("kind", list(LABELS))
def test_classes_of_tables_keep_their_type(kind, storage, levels, tmp_path):
    labels, frame = LABELS[kind], FRAME
    options = {}
    if levels and storage != "blocks":
        frame, options = FRAME.assign(town=TOWNS), {"categorical_features": ["town"]}
    model = FusedLassoClassifier(0.05, **options)
    wanted = model.fit(frame, labels)
    classes, predicted = wanted.classes_, wanted.predict(frame)
    if storage == "blocks":
        table, y = tmp_path / "blocks", None
        write_blocks(table, [(X[:30], labels[:30]), (X[30:], labels[30:])], ones=True)
    else:
        table, y = named(storage, frame.assign(y=labels), tmp_path)
    found = model.fit(table, y)
    assert found.classes_.dtype.kind == classes.dtype.kind
    assert found.classes_.tolist() == classes.tolist()
    assert found.predict(X if storage == "blocks" else frame).tolist() == predicted.tolist()
    assert found.score(table, y) == np.mean(predicted == labels)


@pytest.mark.parametrize("multi_class", ["ovr", "multinomial"])
@pytest.mark.parametrize("weighted", ["two classes left", "three classes left"])
@pytest.mark.parametrize("storage", ["parquet", "blocks", "processes", "dask"])
def test_a_class_without_weight_is_left_out(storage, weighted, multi_class, tmp_path, request):
    if storage == "dask":
        request.getfixturevalue("client")
    labels = LABELS["three"] + (4 * (X[:, 1] > 1.0) if weighted == "three classes left" else 0)
    weight = np.where(labels == 1, 0.0, 1.0)
    given = {
        "dask": (da.from_array(X, chunks=(40, 4)), da.from_array(labels, chunks=40), da.from_array(weight, chunks=16))
    }
    if storage == "blocks":
        parts = [(X[part], labels[part], weight[part]) for part in (slice(0, 40), slice(40, N))]
        write_blocks(tmp_path / "blocks", parts, ones=True)
        given["blocks"] = tmp_path / "blocks", None, None
    elif storage == "processes":
        given["processes"] = Processes(X, workers=2), labels, weight
    elif storage == "parquet":
        given["parquet"] = *named("parquet", FRAME.assign(y=labels, w=weight), tmp_path), "w"
    model = FusedLassoClassifier(0.01, multi_class=multi_class, tol=1e-11)
    wanted = model.fit(X, labels, weight)
    coef, intercept, classes = wanted.coef_, wanted.intercept_, wanted.classes_
    assert 1 not in classes
    found = model.fit(*given[storage])
    assert found.classes_.tolist() == classes.tolist()
    np.testing.assert_allclose(found.coef_, coef, atol=1e-8)
    np.testing.assert_allclose(found.intercept_, intercept, atol=1e-8)


def test_classes_are_numbers_where_blocks_differ_in_their_type(tmp_path):
    """As the whole column would be read."""
    write_blocks(tmp_path / "b", [(X[:40], np.arange(40) % 2), (X[40:], np.arange(40.0) % 3)], ones=True)
    assert FusedLassoClassifier(0.05).fit(tmp_path / "b").classes_.dtype == np.float64


@pytest.mark.parametrize("search", [False, True], ids=["fit", "CV"])
@pytest.mark.parametrize("storage", ["memory", "parquet", "csv", "lazy", "blocks", "processes", "dask"])
def test_fractions_are_not_classes_wherever_they_are(storage, search, tmp_path):
    labels = np.where(Y > 0, 1.5, -1.0)
    model = FusedLassoClassifierCV() if search else FusedLassoClassifier()
    given = {"memory": (FRAME, labels), "dask": (da.from_array(X, chunks=(40, 4)), da.from_array(labels, chunks=40))}
    if storage == "blocks":
        write_blocks(tmp_path / "blocks", [(X, labels)], ones=True)
        given["blocks"] = tmp_path / "blocks", None
    elif storage == "processes":
        given["processes"] = Processes(X, workers=2), labels
    elif storage not in given:
        given[storage] = named(storage, FRAME.assign(y=labels), tmp_path)
    with pytest.raises(ValueError, match=r"y holds 1\.5\. Unknown label type: continuous: \w+ takes whole numbers"):
        model.fit(*given[storage])


@pytest.mark.parametrize("labels", ["bool", "int"])
def test_the_command_line_writes_the_same_labels_on_disk(labels, tmp_path, capsys):
    FRAME.assign(y=LABELS[labels]).to_parquet(tmp_path / "t.parquet")
    answers = []
    for where in ("--in-memory", "--on-disk"):
        model = str(tmp_path / f"{where}.skadmm")
        fit = ["--target", "y", "--model", "fused-classifier", where, "--alpha", "0.05", "--out", model, "--json"]
        assert run(["fit", str(tmp_path / "t.parquet"), *fit]) == 0
        capsys.readouterr()
        assert run(["predict", model, str(tmp_path / "t.parquet"), "--target", "y"]) == 0
        answers.append(capsys.readouterr().out)
    assert answers[0] == answers[1]


# -- folds -----------------------------------------------------------------------------------------------------------

FIRST = np.arange(N) < 50
STORED = ["memory", "csr", "npy", "processes"]


def numbers_in(storage, folder):
    if storage == "csr":
        return sp.csr_array(X)
    if storage == "processes":
        return Processes(X, workers=2)
    if storage == "npy":
        np.save(folder / "X.npy", X)
        return folder / "X.npy"
    return X


@pytest.mark.parametrize("scoring", [None, "r2"])
@pytest.mark.parametrize("storage", STORED)
def test_folds_may_be_masks(storage, scoring, tmp_path):
    first, second = np.flatnonzero(FIRST), np.flatnonzero(~FIRST)
    numbers, masks = [(first, second), (second, first)], [(FIRST, ~FIRST), ((~FIRST).tolist(), FIRST)]
    model = FusedLassoRegressorCV(alphas=3, cv=numbers, scoring=scoring, tol=1e-11)
    wanted = model.fit(X, Y).cv_mean_
    found = model.set_params(cv=masks).fit(numbers_in(storage, tmp_path), Y).cv_mean_
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


@pytest.mark.parametrize(
    ("fold", "message"),
    [
        ((FIRST, np.zeros(N, bool)), "cv: a fold has no test rows"),
        (([], [0, 1]), "cv: a fold has no training rows"),
        ((FIRST[:20], ~FIRST), r"cv: a mask of training rows has shape \(20,\): it takes 80 entries"),
        ((FIRST, [N]), "cv: a fold has the test row 80: it takes numbers below 80"),
        ((FIRST, [0.5]), "cv: test rows have the type float64"),
    ],
)
@pytest.mark.parametrize("storage", STORED)
def test_folds_that_are_wrong(storage, fold, message, tmp_path):
    model = FusedLassoRegressorCV(alphas=3, cv=[fold])
    with pytest.raises((ValueError, TypeError), match=message):
        model.fit(numbers_in(storage, tmp_path), Y)


# -- reports ---------------------------------------------------------------------------------------------------------


def test_a_report_with_a_frame_of_dask(client, tmp_path):
    table, target = dd.from_pandas(FRAME, npartitions=2), dd.from_pandas(pd.Series(Y), npartitions=2)
    model = FusedLassoRegressor(0.1).fit(table, target)
    model.report(tmp_path / "dask.html", table, target)
    model.report(tmp_path / "memory.html", FRAME, Y)
    assert (tmp_path / "dask.html").read_text() == (tmp_path / "memory.html").read_text()


@pytest.mark.parametrize("parts", [1, 2])
def test_the_index_that_pandas_writes_is_no_column(tmp_path, parts):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((60, 4)), columns=list("abcy"))
    frame.index = pd.Index(1000 + np.arange(60), name="key")
    folder = tmp_path / "table"
    folder.mkdir()
    for number, rows in enumerate(np.array_split(np.arange(60), parts)):
        frame.iloc[rows].to_parquet(folder / f"{number}.parquet")
    path = folder if parts > 1 else folder / "0.parquet"
    model = FusedLassoRegressor(alpha=0.05).fit(path, "y")
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    expected = FusedLassoRegressor(alpha=0.05).fit(frame[["a", "b", "c"]], frame["y"])
    np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-6)
    np.testing.assert_allclose(model.predict(path), expected.predict(frame[["a", "b", "c"]]), atol=1e-6)


def test_outputs_on_disk_are_joined_by_their_names(tmp_path):
    rng = np.random.default_rng(0)
    outputs = np.column_stack([Y, Y + 0.1 * rng.standard_normal(N), -X[:, 1]])
    path = tmp_path / "table.parquet"
    FRAME.assign(north=outputs[:, 0], south=outputs[:, 1], west=outputs[:, 2]).to_parquet(path)
    found = FusedLassoRegressor(0.05, task_graph=[("north", "south")], tol=1e-10).fit(path, ["north", "south", "west"])
    wanted = FusedLassoRegressor(0.05, task_graph=[(0, 1)], tol=1e-10).fit(X, outputs)
    np.testing.assert_allclose(found.coef_, wanted.coef_, atol=1e-8)
    with pytest.raises(ValueError, match="task_graph has the node 'east'"):
        FusedLassoRegressor(0.05, task_graph=[("north", "east")]).fit(path, ["north", "south", "west"])


def series_of_dates(storage, folder):
    """A column of dates, weights and values, and what a fit takes after X."""
    frame = pd.DataFrame({"day": pd.date_range("2024-01-01", periods=40), "w": np.linspace(1.0, 2.0, 40)})
    frame["value"] = np.repeat([0.0, 2.0], 20) + 0.1 * np.random.default_rng(3).standard_normal(40)
    named = {"y": "value", "sample_weight": "w"}
    if storage == "parquet":
        frame.to_parquet(folder / "t.parquet")
        return frame, folder / "t.parquet", named
    if storage == "csv":
        frame.to_csv(folder / "t.csv", index=False)
        return frame, folder / "t.csv", named
    if storage == "lazy":
        return frame, pl.from_pandas(frame).lazy(), named
    given = {"y": frame["value"].to_numpy(), "sample_weight": frame["w"].to_numpy()}
    return frame, dd.from_pandas(frame[["day"]], npartitions=3), given


@pytest.mark.parametrize("storage", ["parquet", "csv", "lazy", "dask"])
@pytest.mark.parametrize("options", [{"alpha": 0.05}, {"alpha": 0.05, "monotone": "increasing"}, {"alphas": 4}])
def test_a_trend_of_dates_in_a_large_table(storage, options, tmp_path):
    kind = TrendFilter if "alpha" in options else TrendFilterCV
    frame, X, vectors = series_of_dates(storage, tmp_path)
    wanted = kind(**options).fit(frame[["day"]], frame["value"], frame["w"])
    found = kind(**options).fit(X, **vectors)
    same_model(found, wanted)
    assert found.dates_
    np.testing.assert_array_equal(found.knots_, wanted.knots_)
    later = frame[["day"]] + pd.Timedelta(hours=5)
    np.testing.assert_allclose(found.predict(later), wanted.predict(later))
    np.testing.assert_allclose(found.predict(X), wanted.predict(frame[["day"]]))
    assert found.score(X, vectors["y"]) == pytest.approx(wanted.score(frame[["day"]], frame["value"]))


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_skadmm_fits_a_trend_of_dates_on_disk(ending, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    frame, X, _ = series_of_dates(ending, tmp_path)
    fit = ["fit", str(X), "--model", "trend-filter", "--weight", "w", "--alpha", "0.05", "--on-disk", "-q"]
    assert run([*fit, "-o", "m", "--report", "m.html"]) == 0
    wanted = TrendFilter(alpha=0.05).fit(frame[["day"]], frame["value"], frame["w"])
    same_model(load("m"), wanted)
    assert "2024-01-" in Path("m.html").read_text()
    frame.insert(1, "other", 1.0)
    getattr(frame, f"to_{ending}")(X, index=False)
    capsys.readouterr()
    assert run([*fit, "-o", "n"]) == 2
    assert "column 'day' holds dates" in capsys.readouterr().err


SORTED = pd.DataFrame(X, columns=NAMES).assign(y=Y).sort_values("a").reset_index(drop=True)
CHOSEN = {"first": lambda table: table.a > 0, "middle": lambda table: abs(table.a) > 0.7}
"""Rows of a sorted frame, so that its first block, or one in the middle, is left without any."""


@pytest.mark.parametrize("chosen", CHOSEN)
@pytest.mark.parametrize(
    "model",
    [
        pytest.param(FusedLassoRegressor(tol=1e-9), id="plain"),
        pytest.param(FusedLassoRegressor(tol=1e-9, standardize=True), id="standardize"),
        pytest.param(FusedLassoRegressor(tol=1e-9, graph="precision"), id="precision"),
        pytest.param(FusedLassoRegressor(tol=1e-9, loss="quantile"), id="quantile"),
        pytest.param(FusedLassoRegressorCV(tol=1e-9, alphas=3, cv=3), id="search"),
    ],
)
def test_frames_of_dask_with_empty_blocks(model, chosen, client):
    frame = dd.from_pandas(SORTED, npartitions=4)
    there, here = frame[CHOSEN[chosen](frame)], SORTED[CHOSEN[chosen](SORTED)]
    assert 0 in there.map_partitions(len).compute().tolist()
    wanted = clone(model).fit(here[NAMES], here.y)
    repartitioned = dd.from_pandas(here.y, npartitions=2)
    for y in (there.y, repartitioned):
        found = clone(model).fit(there[NAMES], y)
        same_model(found, wanted, atol=1e-6)
    np.testing.assert_allclose(found.predict(there[NAMES]), wanted.predict(here[NAMES]), atol=1e-6)


@pytest.mark.parametrize("chosen", CHOSEN)
def test_problems_and_outputs_of_dask_with_empty_blocks(chosen, client):
    frame = dd.from_pandas(SORTED, npartitions=4)
    there, here = frame[CHOSEN[chosen](frame)], SORTED[CHOSEN[chosen](SORTED)]
    wanted = solve(Problem(here[NAMES], here.y, "squared", sample_weight=here.b**2), tol=1e-8).objective
    for y, weight in ((there.y, there.b**2), (np.asarray(here.y), np.asarray(here.b**2))):
        problem = Problem(there[NAMES], y, "squared", sample_weight=weight)
        assert problem.n_rows == len(here)
        assert solve(problem, tol=1e-8).objective == pytest.approx(wanted, rel=1e-6)
    several = ["y", "a"]
    found = FusedLassoRegressor(tol=1e-9).fit(there[NAMES], there[several])
    same_model(found, FusedLassoRegressor(tol=1e-9).fit(here[NAMES], here[several]), atol=1e-6)


def test_arrays_of_dask_with_empty_blocks(client):
    rows = da.from_array(X, chunks=((0, 40, 0, 40), 4))
    wanted = FusedLassoRegressor(tol=1e-9).fit(X, Y)
    for y in (Y, da.from_array(Y, chunks=((30, 50, 0),))):
        assert 0 in rows.chunks[0]
        same_model(FusedLassoRegressor(tol=1e-9).fit(rows, y), wanted, atol=1e-6)
        assert Problem(rows, y, "squared").n_rows == N


def test_frames_of_dask_without_rows(client):
    frame = dd.from_pandas(SORTED, npartitions=4)
    none = frame[frame.a > 99]
    for use in (
        lambda: FusedLassoRegressor().fit(none[NAMES], none.y),
        lambda: FusedLassoRegressor().fit(none[NAMES].assign(t="text"), none.y),
        lambda: Problem(none[NAMES], none.y, "squared"),
        lambda: FusedLassoRegressor().fit(FRAME, Y).predict(none[NAMES]),
    ):
        with pytest.raises(ValueError, match="X has no rows: it takes at least one"):
            use()


def test_blocks_without_rows_are_not_written(tmp_path):
    write_blocks(tmp_path / "rows", [(X[:0], Y[:0]), (X[:50], Y[:50]), (X[:0], Y[:0]), (X[50:], Y[50:])], ones=True)
    same_model(FusedLassoRegressor().fit(tmp_path / "rows"), FusedLassoRegressor().fit(X, Y))


COLUMNS = {
    "bool": lambda: FRAME.b > 0,
    "Int64": lambda: pd.Series(np.arange(N) % 9, dtype="Int64"),
    "Float64": lambda: (2 * FRAME.b**2).astype("Float64"),
    "boolean": lambda: (FRAME.b > 0).astype("boolean"),
    "bool[pyarrow]": lambda: (FRAME.b > 0).astype("bool[pyarrow]"),
}


@pytest.mark.parametrize("kind", COLUMNS)
def test_types_of_pandas_in_frames_of_dask(kind, client):
    table = FRAME.assign(k=COLUMNS[kind](), y=Y)
    names, there = [*NAMES, "k"], dd.from_pandas(table, npartitions=2)
    wanted = FusedLassoRegressor(tol=1e-9).fit(table[names], Y)
    found = FusedLassoRegressor(tol=1e-9).fit(there[names], there.y)
    same_model(found, wanted, atol=1e-6)
    np.testing.assert_allclose(found.predict(there[names]), wanted.predict(table[names]), atol=1e-6)
    assert Problem(there[names], Y, "squared").n_rows == N
    as_target, rows = dd.from_pandas(table.k, npartitions=2), there[NAMES]
    target = np.asarray(table.k, dtype=float)
    same_model(FusedLassoRegressor().fit(rows, as_target), FusedLassoRegressor().fit(FRAME, target), atol=1e-6)
    if kind != "bool":
        table.loc[[3, 60], "k"] = pd.NA
        there = dd.from_pandas(table, npartitions=2)
        with pytest.raises(ValueError, match="X contains NaN or infinity"):
            FusedLassoRegressor().fit(there[names], there.y)
        with pytest.raises(ValueError, match="y has 2 missing values, the first in row 3"):
            FusedLassoRegressor().fit(there[NAMES], there.k)


@pytest.mark.parametrize("kind", ["string[pyarrow]", object, "Int64", "boolean"])
def test_missing_classes_on_dask(kind, client):
    classes = pd.Series(np.where(FRAME.a > 0, *((1, 0) if kind in ("Int64", "boolean") else ("u", "v"))), dtype=kind)
    rows = dd.from_pandas(FRAME, npartitions=2)
    found = FusedLassoClassifier(tol=1e-9).fit(rows, dd.from_pandas(classes, npartitions=2))
    same_model(found, FusedLassoClassifier(tol=1e-9).fit(FRAME, np.asarray(classes)), atol=1e-6)
    classes[7] = None
    with pytest.raises(ValueError, match="y has 1 missing classes, the first in row 7: leave out these rows"):
        FusedLassoClassifier().fit(rows, dd.from_pandas(classes, npartitions=2))
    with pytest.raises(ValueError, match="target has 1 missing values in a block of 40 rows"):
        Problem(rows, dd.from_pandas(classes, npartitions=2))


def test_vectors_of_the_wrong_length_on_dask(client):
    rows, y = dd.from_pandas(FRAME, npartitions=2), da.from_array(Y, chunks=40)
    for short in (np.ones(7), da.ones(7)):
        with pytest.raises(ValueError, match=r"sample_weight has shape \(7,\): it takes a vector of length 80"):
            FusedLassoRegressor().fit(rows, y, sample_weight=short)
        with pytest.raises(ValueError, match=r"y has shape \(7,\): it takes a vector of length 80"):
            FusedLassoRegressor().fit(rows, short)
        with pytest.raises(ValueError, match=r"sample_weight has shape \(7,\): it takes a vector of length 80"):
            Problem(rows, y, "squared", sample_weight=short)
    listed = FusedLassoRegressor(tol=1e-9).fit(rows, y, sample_weight=[1.0] * N)
    same_model(listed, FusedLassoRegressor(tol=1e-9).fit(FRAME, Y), atol=1e-6)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_rows_on_dask_that_are_not_finite(bad, client):
    table = FRAME.assign(g=np.where(FRAME.b > 0, "u", "v"))
    table.loc[60, "c"] = bad
    there, message = dd.from_pandas(table, npartitions=2), r"in the column 'c' \(1 of 80 rows, the first is row 60\)"
    regressor, classifier = FusedLassoRegressor().fit(FRAME, Y), FusedLassoClassifier().fit(FRAME, Y > 0)
    for function in (regressor.predict, classifier.decision_function, classifier.predict_proba, classifier.predict):
        with pytest.raises(ValueError, match=message):
            function(there[NAMES])
    with pytest.raises(ValueError, match=message):
        regressor.score(there[NAMES], da.from_array(Y, chunks=40))
    with pytest.raises(ValueError, match=message):
        FusedLassoRegressor(standardize=True).fit(there[NAMES], da.from_array(Y, chunks=40))
    rows = da.from_array(table[NAMES].to_numpy(), chunks=(40, 4))
    for stored in (rows, rows.map_blocks(sp.csr_array)):
        with pytest.raises(ValueError, match="NaN or infinity in the column 2 "):
            regressor.predict(stored)

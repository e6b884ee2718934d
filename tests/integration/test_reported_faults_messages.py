"""Messages that said too little or something false, and calls that failed without a reason."""

import json
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold

from skadmm import (
    FusedLassoClassifier,
    FusedLassoClassifierCV,
    FusedLassoRegressor,
    FusedLassoRegressorCV,
    GroupLassoRegressor,
    TrendFilter,
    load,
)
from skadmm.cli import run
from skadmm.losses import LOSSES
from skadmm.solvers import ALGORITHMS, SOLVERS

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 5))
Y = X[:, 0] + X[:, 1] + 0.1 * RNG.standard_normal(60)

# -- fits that follow another one -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "table", "y"),
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
        with pytest.raises(ValueError, match=r"offset|weight"):
            model.fit(X, Y, **refused)
        np.testing.assert_array_equal(model.predict(X), before)
    with pytest.raises(ValueError, match="graph"):
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
    model.set_params(scoring="accuracy").fit(X, y)
    assert model.classes_.tolist() == [0, 1, 2, 5]


# -- dates as positions -----------------------------------------------------------------------------------------------

DATES = pd.date_range("2024-01-01", periods=60)
ON_DATES = TrendFilter(alpha=0.1).fit(pd.DataFrame({"day": DATES}), Y)
MISSING = DATES.to_series().reset_index(drop=True).mask(np.isin(np.arange(60), [5, 7]))


@pytest.mark.parametrize("frame", [pd.DataFrame({"day": MISSING}), pl.DataFrame({"day": MISSING.to_numpy()})])
def test_missing_dates_are_counted_and_placed(frame):
    expected = r"the column 'day' of X has 2 missing dates \(NaT\), the first in row 5"
    for call in (lambda: TrendFilter(alpha=0.1).fit(frame, Y), lambda: ON_DATES.predict(frame)):
        with pytest.raises(ValueError, match=expected):
            call()
    with pytest.raises(ValueError, match="the positions in X have 2 missing dates"):
        TrendFilter(alpha=0.1).fit(MISSING.to_numpy()[:, None], Y)


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_positions_that_are_texts_or_periods_name_the_function_that_turns_them_into_dates(make):
    texts = make({"day": DATES.strftime("%Y-%m-%d").tolist()})
    for call in (lambda X: TrendFilter(alpha=0.1).fit(X, Y), ON_DATES.predict):
        with pytest.raises(ValueError, match=r"'day' of dtype .* pd.to_datetime turns texts into dates"):
            call(texts)
        with pytest.raises(ValueError, match="to_timestamp"):
            call(pd.DataFrame({"day": DATES.to_period("D")}))
        with pytest.raises(ValueError, match=r"pd\.to_datetime"):
            call([[text] for text in texts["day"]])


def test_a_model_of_dates_takes_no_numbers_and_no_vectors():
    with pytest.raises(ValueError, match="X holds no dates, and the model was fitted on dates"):
        ON_DATES.predict(pd.DataFrame({"day": [1.0, 2.0]}))
    with pytest.raises(ValueError, match="it takes positions of shape") as refused:
        ON_DATES.predict(DATES.to_numpy())
    assert len(str(refused.value)) < 200


# -- NaN and infinity in X --------------------------------------------------------------------------------------------


def test_nan_in_a_table_is_placed_for_every_kind_of_table():
    values = X.copy()
    values[3, 1], values[7, 1], values[9, 2] = np.nan, np.inf, np.nan
    frame = pd.DataFrame(values, columns=list("abcde"))
    model = FusedLassoRegressor(alpha=0.1)
    named = r"^X contains NaN or infinity in 3 of 60 rows, the first is row 3, in the columns 'b' \(2 rows\), 'c' "
    for table in (frame, pl.from_pandas(frame)):
        with pytest.raises(ValueError, match=named + r"\(1 row\): impute"):
            model.fit(table, Y)
    for table in (values, sp.csr_array(values)):
        with pytest.raises(ValueError, match=r"in the columns 1 \(2 rows\), 2 \(1 row\)"):
            model.fit(table, Y)
    with pytest.raises(ValueError, match=named):
        model.fit(frame.fillna(0.0).replace(np.inf, 0.0), Y).predict(frame)
    levels = frame.assign(a=np.where(X[:, 0] > 0, "u", "v"))
    with pytest.raises(ValueError, match=r"in the column 'b' \(2 of 60 rows, the first is row 3\)"):
        model.set_params(categorical_features=["a"]).fit(levels, Y)


# -- files ------------------------------------------------------------------------------------------------------------

FRAME = pd.DataFrame(X[:, :3], columns=["use1", "use2", "use3"]).assign(y=Y)
TEXTS = pd.Series(DATES.strftime("%Y-%m-%d").tolist())


def _refused(capsys, path, *options, code=2, model="fused-regressor"):
    """The message of a fit that is refused with an exit code."""
    out = str(path.parent / "model.skadmm")
    found = run(["fit", str(path), "-o", out, "--model", model, "--alpha", "0.1", "--force", "-q", *options])
    shown = capsys.readouterr().err
    assert found == code, shown
    assert f"{path.name}: " in shown
    return shown


@pytest.fixture
def write(tmp_path, monkeypatch):
    """A function that writes a CSV file."""
    monkeypatch.setenv("SKADMM_CACHE", str(tmp_path / "cache"))

    def written(frame, name="table.csv"):
        frame.to_csv(tmp_path / name, index=False)
        return tmp_path / name

    return written


@pytest.mark.parametrize("where", ["--in-memory", "--on-disk"])
def test_files_that_are_refused_are_named_with_the_reason(capsys, write, where):
    gaps = FRAME.assign(use2=FRAME["use2"].mask(np.isin(np.arange(60), [3, 9])))
    shown = _refused(capsys, write(gaps, "gaps.csv"), where)
    assert "'use2'" in shown
    assert "row 3" in shown
    assert "2 of " in shown
    assert "60 rows" in shown
    assert "drop" in shown
    path = write(FRAME)
    assert "no column is left as a feature" in _refused(capsys, path, where, "--drop", "use1,use2,use3")
    assert "no rows" in _refused(capsys, write(FRAME.iloc[:0], "head.csv"), where)
    shown = _refused(capsys, write(FRAME.assign(joined=TEXTS)[["use1", "joined", "y"]], "dates.csv"), where)
    assert "'joined' holds dates, such as '2024-01-01'" in shown
    assert "--drop joined" in shown


@pytest.mark.parametrize("where", ["--in-memory", "--on-disk"])
def test_rows_that_are_longer_than_the_names_and_other_encodings_are_refused(capsys, write, where):
    path = write(FRAME)
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:5], lines[5] + ",7,8", *lines[6:]]))
    assert "saw 6" in _refused(capsys, path, where, code=1)
    path.write_text("\n".join([lines[0], *(line + ",9" for line in lines[1:])]))
    assert "rows have more values than the first line has names" in _refused(capsys, path, where, code=1)
    path.write_bytes("\n".join(["größe,b,c,y", *lines[1:]]).encode("latin-1"))
    assert "it is not text in UTF-8 (byte 0xf6): convert it" in _refused(capsys, path, where, code=1)


def test_one_cell_that_is_no_date_is_named(capsys, write):
    path = write(pd.DataFrame({"joined": TEXTS.mask(TEXTS.index == 4, "not-a-date"), "y": Y}))
    shown = _refused(capsys, path, model="trend-filter")
    assert "'not-a-date' in row 4, which is not a date" in shown
    assert "59 of its 60 values are dates" in shown


def test_groups_that_are_not_json_are_wrong_usage(capsys, write, tmp_path):
    (tmp_path / "groups.json").write_text('[["use1"')
    options = ["fit", str(write(FRAME)), "-o", str(tmp_path / "m"), "--model", "group-regressor", "--alpha", "0.1"]
    assert run([*options, "--groups", str(tmp_path / "groups.json")]) == 2
    assert "groups.json: not JSON" in capsys.readouterr().err


def test_a_model_of_columns_without_names_predicts_a_file_without_a_warning(capsys, write, tmp_path):
    FusedLassoRegressor(alpha=0.1).fit(FRAME.iloc[:, :3].to_numpy(), Y).save(tmp_path / "m")
    assert run(["predict", str(tmp_path / "m"), str(write(FRAME.iloc[:, :3]))]) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    assert len(shown.out.splitlines()) == 61


# -- arguments of fit and score ---------------------------------------------------------------------------------------


def test_weights_and_targets_of_the_wrong_kind_are_named():
    model = FusedLassoRegressor(alpha=0.1)
    with pytest.raises(TypeError, match="sample_weight='w'"):
        model.fit(X, Y, sample_weight="w")
    with pytest.raises(TypeError, match=r"y is a sparse array of shape \(60, 1\): .* y.toarray\(\)"):
        model.fit(X, sp.csr_array(Y[:, None]))


@pytest.mark.parametrize(("model", "y"), [(FusedLassoRegressor(0.1), Y), (FusedLassoClassifier(0.1), Y > 0)])
def test_score_takes_one_weight_for_all_rows(model, y):
    model.fit(X, y, sample_weight=2.0)
    assert model.score(X, y, sample_weight=2.0) == pytest.approx(model.score(X, y))
    assert model.score(X, y, sample_weight=2.0, offset=0.0) == pytest.approx(model.score(X, y))
    with pytest.raises(TypeError, match="sample_weight='w'"):
        model.score(X, y, sample_weight="w")


def test_decimals_are_numbers_in_every_library():
    texts = [f"{value:.3f}" for value in X[:, 0]]
    exact = pl.DataFrame({"a": [Decimal(text) for text in texts], "b": X[:, 1]})
    plain = pl.DataFrame({"a": [float(text) for text in texts], "b": X[:, 1]})
    expected = FusedLassoRegressor(alpha=0.1).fit(plain, Y).coef_
    for table in (exact, exact.to_pandas(), exact.to_arrow()):
        np.testing.assert_array_equal(FusedLassoRegressor(alpha=0.1).fit(table, Y).coef_, expected)


# -- fits without a minimiser, and attributes of relax -----------------------------------------------------------------


@pytest.mark.parametrize(("loss", "value"), [("binomial", 1.0), ("poisson", 0.0)])
def test_an_intercept_without_a_finite_value_is_named(loss, value):
    with pytest.warns(ConvergenceWarning, match="Only the intercept, which is never penalised") as caught:
        FusedLassoRegressor(loss=loss).fit(X, np.full(60, value))
    assert "raise alpha" not in str(caught[0].message)


@pytest.mark.parametrize("model", [FusedLassoClassifier(0.01), FusedLassoClassifierCV(alphas=[0.02, 0.01], cv=3)])
@pytest.mark.filterwarnings("ignore:.*the best alpha:UserWarning")
def test_separable_classes_after_relax_are_told_from_the_penalised_fit(model):
    with pytest.warns(ConvergenceWarning, match=r"relax=True, the second fit.* use penalized_coef_") as caught:
        model.set_params(relax=True).fit(X, X[:, 0] > 0)
    assert len([one for one in caught if one.category is ConvergenceWarning]) == 1
    assert np.abs(model.coef_).max() > np.abs(model.penalized_coef_).max()


def test_attributes_of_relax_name_it_where_it_was_not_given():
    model = FusedLassoRegressor(alpha=0.1).fit(X, Y)
    for name in ("standard_errors_", "penalized_coef_"):
        assert not hasattr(model, name)
        with pytest.raises(AttributeError, match=f"no {name}: it was fitted with relax=False: set relax=True"):
            getattr(model, name)
    assert model.set_params(relax=True).fit(X, Y).standard_errors_.shape == (5,)


# -- groups -----------------------------------------------------------------------------------------------------------


def test_groups_of_a_dict_are_named_and_a_path_has_a_hint(tmp_path):
    for groups, fault in (({"u": [0], "v": []}, "at least one feature"), ({"u": [0], "v": [9]}, "got 9")):
        with pytest.raises(ValueError, match=rf"groups\['v'\] must .*{fault}"):
            GroupLassoRegressor(groups=groups).fit(X, Y)
    for path in (tmp_path / "groups.json", str(tmp_path / "groups.json")):
        assert isinstance(path, (str, Path))
        with pytest.raises(ValueError, match=r"is a path: give its content, json\.loads"):
            GroupLassoRegressor(groups=path).fit(X, Y)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (("yield",), "there is no column 'yield': an npy file has no named columns"),
        ((), "y=None: .*give y as an array"),
    ],
)
def test_an_npy_file_without_targets(y, message, tmp_path):
    np.save(tmp_path / "x.npy", np.eye(4))
    with pytest.raises(ValueError, match=message):
        FusedLassoRegressor().fit(tmp_path / "x.npy", *y)


@pytest.mark.parametrize("option", ["--exposure", "--offset"])
def test_a_misspelt_loss_with_an_offset_has_its_own_message(capsys, write, option):
    fit = ["fit", str(write(FRAME.assign(use1=1.0))), "-o", "m", "--model", "fused-regressor", "--alpha", "0.1"]
    assert run([*fit, "--loss", "poison", option, "use1"]) == 2
    shown = capsys.readouterr().err
    assert "loss='poison'" in shown
    assert "Did you mean 'poisson'?" in shown


def test_registries_have_their_own_plurals():
    shown = [repr(registry).split(":")[0] for registry in (LOSSES, SOLVERS, ALGORITHMS)]
    assert shown == ["losses", "solvers", "methods"]
    assert "losses<" in LOSSES._repr_html_()


@pytest.mark.parametrize("where", ["--in-memory", "--on-disk"])
def test_the_column_that_was_taken_as_target_is_named(capsys, write, where):
    path = write(FRAME.assign(lab=["mild", "severe"] * 30, when=TEXTS))
    shown = _refused(capsys, path, where, model="fused-classifier")
    assert "--drop lab" in shown
    assert "without --target the last column, 'when', is the target" in shown
    assert "without --target" not in _refused(capsys, path, where, "--target", "lab", model="fused-classifier")


def test_missing_numbers_beside_levels_are_in_the_first_rows(tmp_path):
    frame = FRAME.assign(t=["u", "v"] * 30, use1=FRAME["use1"].mask(FRAME.index == 17))
    for name in ("t.parquet", "t.csv"):
        frame.to_parquet(tmp_path / name) if name == "t.parquet" else frame.to_csv(tmp_path / name, index=False)
        with pytest.raises(ValueError, match=rf"{name}: X contains NaN .* \(1 of 60 rows, the first is row 17\)"):
            FusedLassoRegressor(categorical_features=["t"]).fit(tmp_path / name, "y")


def test_skadmm_info_and_classes_are_printed_with_room(capsys, tmp_path):
    assert run(["info"]) == 0
    assert "signal-interior-point  " in capsys.readouterr().out
    (tmp_path / "t.csv").write_text("a,y\n1,1.0\n2,2.0\n3,1.0\n4,2.0\n")
    assert run(["fit", str(tmp_path / "t.csv"), "-o", str(tmp_path / "m"), "--alpha", "0.1", "-q"]) == 0
    said = capsys.readouterr().out
    assert "classes             1, 2\n" in said
    assert said.endswith("positive coefficients favour class: 2\n")


def test_an_intercept_without_ones_names_the_option(capsys, write, tmp_path):
    assert run(["data", "convert", str(write(FRAME)), str(tmp_path / "blocks")]) == 0
    fit = ["fit", str(tmp_path / "blocks"), "-o", "m", "--model", "fused-regressor", "--alpha", "0.1", "-q"]
    capsys.readouterr()
    assert run(fit) == 2
    assert "or give fit_intercept=False (--no-intercept)" in capsys.readouterr().err


def test_n_iter_leaves_out_the_selection_of_the_step():
    model = FusedLassoRegressor(alpha=0.1, method="sa-admm", max_passes=3)
    with pytest.warns(ConvergenceWarning):
        model.fit(FRAME[["use1", "use2", "use3"]], Y)
    assert model.result_.selection_passes > 10
    assert model.n_iter_ == np.ceil(model.result_.run_passes)


def test_missing_classes_are_named_by_score_and_report(tmp_path):
    labels = pd.Series(np.where(Y > 0, "yes", "no"), dtype=object)
    model = FusedLassoClassifier(0.05).fit(X, labels)
    labels[[7, 9]] = np.nan
    said = "y has 2 missing classes, the first in row 7"
    for y in (labels, labels.to_numpy()):
        with pytest.raises(ValueError, match=said):
            model.score(X, y)
        with pytest.raises(ValueError, match=said):
            model.report(tmp_path / "x.html", X, y)
    assert not (tmp_path / "x.html").exists()


@pytest.mark.parametrize(
    ("text", "names", "others"),
    [
        ("when,v\n2024-01-01,1\n2024-01-03,2\n", ["when"], ["when (text)"]),
        ("source,target,weight\na,b,1\nb,c,2\n", ["source", "target"], ["source (text)", "target (text)"]),
        ("a,b\nx,y\nz,u\n", ["a"], ["a (text)", "b (text)"]),
        ("a\n1\n2\n", ["a"], []),
    ],
)
def test_info_shows_a_table_without_numbers_as_features(tmp_path, capsys, text, names, others):
    (tmp_path / "t.csv").write_text(text)
    assert run(["info", str(tmp_path / "t.csv"), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["names"] == names
    assert facts["not numbers"] == others


def test_info_takes_decimals_for_numbers(tmp_path, capsys):
    frame = pd.DataFrame({"a": [Decimal("1.50"), Decimal("2.25")], "t": ["x", "y"], "b": [1.0, 2.0]})
    frame.to_parquet(tmp_path / "t.parquet", index=False)
    assert run(["info", str(tmp_path / "t.parquet"), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["not numbers"] == ["t (text)"]
    assert facts["bytes as blocks"] == 2 * 2 * 8

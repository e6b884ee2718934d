"""Faults that a new user of the estimators reported."""

import json
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

from skadmm import (
    FusedLassoRegressor,
    GroupLassoRegressor,
    GroupLassoRegressorCV,
    Problem,
    TrendFilter,
    TrendFilterCV,
    compare,
    load,
    solve,
)
from skadmm.cli import run

# -- dates as positions -----------------------------------------------------------------------------------------------

DATES = pd.date_range("2024-01-01", periods=60, freq="12h")
BENT = np.abs(np.arange(60.0) - 30.0)
NANOSECONDS = np.arange(60.0) * 43_200e9 + 1_704_067_200e9


def _frames():
    """The same dates, in every form in which they come."""
    for unit in ("s", "ms", "us", "ns"):
        yield f"pandas {unit}", pd.DataFrame({"date": DATES.as_unit(unit)})
        yield f"numpy {unit}", DATES.as_unit(unit).to_numpy()[:, None]
        yield f"zone {unit}", pd.DataFrame({"date": DATES.as_unit(unit).tz_localize("UTC").tz_convert("Asia/Tokyo")})
    yield "numpy 12 hours", DATES.to_numpy().astype("datetime64[12h]")[:, None]
    yield "arrow", pd.DataFrame({"date": DATES.to_series().astype("timestamp[us][pyarrow]").array})
    yield "polars", pl.DataFrame({"date": DATES.to_numpy()})


FRAMES = dict(_frames())


@pytest.mark.parametrize("form", FRAMES)
def test_dates_have_one_unit_in_fit_and_predict(form):
    model = TrendFilter(alpha=0.01).fit(FRAMES[form], BENT)
    np.testing.assert_array_equal(model.positions_, NANOSECONDS)
    assert pd.to_datetime(model.knots_).tolist() == [DATES[30]]
    for other in FRAMES.values():
        if isinstance(other, np.ndarray) == isinstance(FRAMES[form], np.ndarray):  # names or none in both
            np.testing.assert_array_equal(model.predict(other), model.predict(FRAMES[form]))


def test_dates_in_cross_validation_in_files_and_beyond_the_range_of_nanoseconds(tmp_path):
    frame = FRAMES["pandas s"]
    chosen = TrendFilterCV(alphas=5, cv=3).fit(frame, BENT)
    chosen.save(tmp_path / "model.skadmm")
    np.testing.assert_array_equal(load(tmp_path / "model.skadmm").predict(FRAMES["pandas ns"]), chosen.predict(frame))
    far = np.array(["1000-01-01", "3000-01-01"], dtype="datetime64[s]")[:, None]
    centuries = TrendFilter(alpha=1e-9).fit(far.repeat(2, axis=0) + np.array([[0], [1], [0], [1]]), np.arange(4.0))
    np.testing.assert_allclose(centuries.positions_ / 1e9, [-30610224000, -30610223999, 32503680000, 32503680001])
    months = np.arange("2024-01", "2025-01", dtype="datetime64[M]")[:, None]
    monthly = TrendFilter(alpha=0.01).fit(months, np.arange(12.0))
    np.testing.assert_array_equal(monthly.predict(months), monthly.predict(months.astype("datetime64[D]")))


def test_durations_have_one_unit():
    durations = (DATES - DATES[0]).as_unit("s")
    model = TrendFilter(alpha=0.01).fit(pd.DataFrame({"t": durations}), BENT)
    np.testing.assert_array_equal(model.positions_, NANOSECONDS - NANOSECONDS[0])
    np.testing.assert_array_equal(
        model.predict(pd.DataFrame({"t": durations.as_unit("ns")})), model.predict(pd.DataFrame({"t": durations}))
    )


@pytest.mark.parametrize("form", FRAMES)
def test_a_missing_date_is_refused(form):
    frame = FRAMES[form]
    if isinstance(frame, np.ndarray):
        gap = frame.copy()
        gap[3] = np.datetime64("NaT")
    elif isinstance(frame, pl.DataFrame):
        gap = pl.DataFrame({"date": [None, *frame["date"][1:]]})
    else:
        gap = frame.copy()
        gap.iloc[3, 0] = pd.NaT
    with pytest.raises(ValueError, match=r"1 missing date \(NaT\), in row [03]"):
        TrendFilter(alpha=0.01).fit(gap, BENT)
    model = TrendFilter(alpha=0.01).fit(frame, BENT)
    with pytest.raises(ValueError, match=r"1 missing date \(NaT\), in row [03]"):
        model.predict(gap)


def test_dates_are_no_numbers_to_other_models():
    with pytest.raises(ValueError, match=r"X has columns that are not numbers: 'date' \(datetime64"):
        FusedLassoRegressor(alpha=0.1).fit(FRAMES["pandas s"], BENT)


def test_observed_dates_are_drawn_where_the_fit_is():
    pytest.importorskip("matplotlib").use("Agg")
    from skadmm.plotting import trend_fit

    model = TrendFilter(alpha=0.01).fit(FRAMES["pandas s"], BENT)
    axes = trend_fit(model, FRAMES["pandas s"], BENT)
    days = (NANOSECONDS - NANOSECONDS[0]) / 86_400e9  # the axis is in days
    for drawn in (axes.collections[0].get_offsets(), axes.lines[0].get_xydata()):
        at = np.asarray(drawn)[:, 0]
        np.testing.assert_array_equal(at - at[0], days)
        assert at[0] == axes.convert_xunits(np.datetime64("2024-01-01"))


# -- columns in no group ----------------------------------------------------------------------------------------------

NUMBERS = np.random.default_rng(0).standard_normal((40, 6))
TABLE = pd.DataFrame(NUMBERS, columns=list("abcdef"))
OUTCOME = NUMBERS @ np.arange(6.0)


@pytest.mark.parametrize(
    "model",
    [
        GroupLassoRegressor(0.1, groups={"first": ["a", "b"]}),
        GroupLassoRegressor(0.1, groups=[["a"], ["a", "b"]], adaptive=True),
        GroupLassoRegressorCV(alphas=3, cv=3, groups=[[0, 1]]),
        GroupLassoRegressorCV(alphas=3, cv=3, groups=[[0, 1]], l1_ratio=[0.0, 0.5]),
    ],
)
def test_columns_in_no_group_are_counted_in_one_warning(model):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(TABLE, OUTCOME)
    about = [one for one in caught if "in no group" in str(one.message)]
    assert [one.filename for one in about] == [__file__]
    assert about[0].category is UserWarning
    assert "4 of 6 columns are in no group and are not penalised ('c', 'd', 'e', …)" in str(about[0].message)


def test_columns_without_names_are_counted_by_number():
    with pytest.warns(UserWarning, match=r"1 of 6 columns are in no group and are not penalised \(5\)\. Give them"):
        GroupLassoRegressor(0.1, groups=[[0, 1], [2, 3, 4]]).fit(NUMBERS, OUTCOME)


@pytest.mark.parametrize(
    "options",
    [
        {"groups": [["a", "b"], ["c"], ["d"], ["e"], ["f"]]},
        {"groups": [["a", "b"]], "penalty_factor": [1, 1, 0, 0, 0, 0]},
        {"groups": [["a", "b"]], "l1_ratio": 0.2},
        {"groups": [0, 0, -1, -1, -1, -1]},
        {"groups": dict(zip("abcdef", ["x", "x", None, None, None, None], strict=True))},
        {},
    ],
)
def test_no_warning_where_groups_cover_or_the_rest_is_meant(options):
    assert GroupLassoRegressor(0.01, **options).fit(TABLE, OUTCOME).score(TABLE, OUTCOME) > 0.9  # warnings are errors


def test_the_command_line_states_columns_in_no_group_once(tmp_path, capsys):
    TABLE.assign(y=OUTCOME).to_csv(tmp_path / "table.csv", index=False)
    (tmp_path / "groups.json").write_text(json.dumps({"first": ["a", "b"]}))
    command = [
        "fit",
        tmp_path / "table.csv",
        "-o",
        tmp_path / "m.skadmm",
        "--model",
        "group-regressor",
        "--alpha",
        "0.1",
    ]
    assert run([*map(str, command), "--groups", str(tmp_path / "groups.json")]) == 0
    shown = capsys.readouterr()
    assert (shown.out + shown.err).count("in no group") == 1


# -- messages ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        lambda: FusedLassoRegressor(0.1, method="newton-adm").fit(TABLE, OUTCOME),
        lambda: solve(Problem(NUMBERS, OUTCOME, "squared"), "newton-adm"),
        lambda: compare(Problem(NUMBERS, OUTCOME, "squared"), ["newton-adm"]),
    ],
)
def test_the_names_of_solvers_are_suggested(call):
    with pytest.raises(ValueError, match=r"^method='newton-adm' .*'sa-admm'.* Did you mean 'newton-admm'\?$"):
        call()


@pytest.mark.parametrize(
    "series", [pd.Series(BENT, index=DATES), BENT, pl.Series(BENT)], ids=["pandas", "numpy", "polars"]
)
def test_a_series_alone_is_no_positions(series):
    for values in ((), (BENT,)):
        with pytest.raises(
            ValueError, match=r"of shape \(60,\): fit\(X, y\) takes positions X of shape \(n, 1\).* values y"
        ):
            TrendFilter().fit(series, *values)
    with pytest.raises(ValueError, match=r"it takes positions of shape \(n, 1\)"):
        TrendFilter().fit(np.arange(60.0)[:, None], BENT).predict(series)

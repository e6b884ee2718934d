"""Faults that users reported: tables on disk that were read otherwise than the same rows in memory, or not at all."""

import json
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow.dataset as pads
import pytest

from skadmm import FusedLassoClassifier, FusedLassoRegressor, FusedLassoRegressorCV, Problem
from skadmm.backends import Processes, as_folder, readers
from skadmm.backends.readers import Columns, open_source
from skadmm.backends.writer import write_blocks
from skadmm.cli import run
from skadmm.io.cache import cache_folder
from skadmm.kernels.rows import as_matrix
from skadmm.regularizers import L1

RNG = np.random.default_rng(0)
N = 60
X = RNG.standard_normal((N, 4))
Y = X[:, 0] + RNG.standard_normal(N)
NAMES = list("abcd")
FRAME = pd.DataFrame(X, columns=NAMES)


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("SKADMM_CACHE", str(tmp_path / "cache"))


def stored(frame, storage, folder):
    """A frame on disk."""
    path = folder / f"t.{storage}"
    if storage == "csv":
        frame.to_csv(path, index=False)
    elif storage == "npy":
        np.save(path, frame.to_numpy())
    elif storage == "svm":
        lines = (" ".join(["0", *(f"{j + 1}:{v}" for j, v in enumerate(row))]) for row in frame.to_numpy())
        path.write_text("\n".join(lines) + "\n")
    elif storage == "folder":
        path.mkdir()
        frame[: N // 2].to_parquet(path / "0.parquet")
        frame[N // 2 :].to_parquet(path / "1.parquet")
    elif storage == "lazy":
        return pl.from_pandas(frame).lazy()
    else:
        path = folder / "t.parquet"
        frame.to_parquet(path, row_group_size=20)
        return pads.dataset(path) if storage == "dataset" else path
    return path


# -- rows that are predicted -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("storage", ["parquet", "folder", "csv", "npy", "svm", "lazy", "dataset"])
def test_rows_with_nan_are_not_predicted(storage, value, tmp_path):
    frame = FRAME.copy()
    frame.loc[N - 5, "b"] = value
    model = FusedLassoClassifier(alpha=0.01).fit(FRAME if storage not in ("npy", "svm") else X, Y > 0)
    with pytest.raises(
        ValueError, match=rf"NaN or infinity in the column ('b'|1) \(1 of .*, the first is row {N - 5}\)"
    ):
        model.predict_proba(stored(frame, storage, tmp_path))


def test_the_command_line_does_not_predict_rows_with_nan(tmp_path, capsys):
    FusedLassoClassifier(alpha=0.01).fit(FRAME, Y > 0).save(tmp_path / "m.skadmm")
    frame = FRAME.copy()
    frame.loc[3, "b"] = np.nan
    path = stored(frame, "folder", tmp_path)
    assert run(["predict", str(tmp_path / "m.skadmm"), str(path), "--proba"]) == 2
    assert "NaN or infinity in the column 'b'" in capsys.readouterr().err


# -- names of columns where there are none ---------------------------------------------------------------------------


@pytest.mark.parametrize("given", [{"y": "nope"}, {"sample_weight": "w"}, {"offset": "w"}])
@pytest.mark.parametrize("model", [FusedLassoRegressor(0.1), FusedLassoRegressorCV(alphas=2, cv=2)], ids=["fit", "CV"])
def test_names_of_columns_of_svmlight_are_refused(model, given, tmp_path):
    with pytest.raises(ValueError, match=f"{next(iter(given))}='.*': it takes an array, or None: .* have no names"):
        model.fit(stored(FRAME, "svm", tmp_path), **given)


def test_a_problem_refuses_the_name_of_a_column_of_svmlight(tmp_path):
    with pytest.raises(ValueError, match="target='nope': it takes an array, or None"):
        Problem(stored(FRAME, "svm", tmp_path), "nope", psi=L1(0.1))


@pytest.mark.parametrize("option", ["--weight", "--drop", "--target"])
def test_the_command_line_refuses_names_of_columns_of_svmlight(option, tmp_path, capsys):
    path = stored(FRAME, "svm", tmp_path)
    assert run(["fit", str(path), "-o", str(tmp_path / "m.skadmm"), "--on-disk", option, "nope", "--alpha", "0.1"]) == 2
    assert "there is no column 'nope': the columns of an svmlight file have no names" in capsys.readouterr().err


# -- folders of Parquet files ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("beside", [".ipynb_checkpoints/0-checkpoint", "_temporary/0/0", "_old", ".1"])
def test_hidden_files_of_a_folder_are_not_read(beside, tmp_path):
    folder = stored(FRAME.assign(y=Y), "folder", tmp_path)
    extra = folder / f"{beside}.parquet"
    extra.parent.mkdir(parents=True, exist_ok=True)
    FRAME.assign(y=1e6).to_parquet(extra)
    assert as_folder(folder, "y").shape == FRAME.shape


def test_a_folder_whose_names_hold_a_column_is_refused(tmp_path):
    for year in (2020, 2021):
        (tmp_path / "h" / f"year={year}").mkdir(parents=True)
        FRAME.assign(y=Y).to_parquet(tmp_path / "h" / f"year={year}" / "0.parquet")
    with pytest.raises(ValueError, match=r"the folder 'year=2020' holds .* partitioning=\"hive\""):
        FusedLassoRegressor(0.1).fit(tmp_path / "h", "y")
    table = pads.dataset(tmp_path / "h", partitioning="hive")
    assert "year" in FusedLassoRegressor(0.1).fit(table, "y").feature_names_in_


# -- several processes, and processes that were killed ---------------------------------------------------------------

HOLDER = """
import sys
from decimal import Decimal
from pathlib import Path
from skadmm.io.locks import locked, working_folder
if sys.argv[1] == "work":
    print(working_folder(Path(sys.argv[2]), "lazy-"), flush=True)
    sys.stdin.read()
with locked(Path(sys.argv[2]), print, print):
    print("locked", flush=True)
    sys.stdin.read()
"""


def holder(what, path):
    """Another process that holds a lock until it is killed, and what it says."""
    process = subprocess.Popen([sys.executable, "-c", HOLDER, what, str(path)], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True)  # fmt: skip
    return process, process.stdout.readline().strip()


def test_threads_that_fit_the_same_new_file_wait_for_each_other(tmp_path):
    path = stored(FRAME.assign(y=Y), "csv", tmp_path)
    with ThreadPoolExecutor(4) as pool:
        models = list(pool.map(lambda _: FusedLassoRegressor(0.1).fit(path, "y"), range(4)))
    assert all(np.array_equal(model.coef_, models[0].coef_) for model in models)
    assert not list(cache_folder("blocks").glob("*.lock"))


def test_a_conversion_waits_for_another_process_and_takes_what_it_made(tmp_path, monkeypatch):
    path = stored(FRAME.assign(y=Y), "csv", tmp_path)
    folder = as_folder(path, "y").folder
    lock = folder.with_name(folder.name + ".lock")
    folder.rename(tmp_path / "made")
    process, said = holder("lock", lock)
    assert said == "locked"
    told = []

    def other_finishes(given):  # called after a while of waiting
        told.append(given)
        (tmp_path / "made").rename(folder)
        process.kill()

    monkeypatch.setattr("skadmm.backends.sources._tell_waiting", other_finishes)
    monkeypatch.setattr("skadmm.backends.sources.convert", None)
    assert as_folder(path, "y").shape == FRAME.shape
    assert told == [path]
    process.communicate()


def test_the_lock_of_a_killed_process_holds_nobody(tmp_path):
    path = stored(FRAME.assign(y=Y), "csv", tmp_path)
    folder = as_folder(path, "y").folder
    shutil.rmtree(folder)
    folder.with_name(folder.name + ".lock").write_text(str(os.getpid()))  # a number that runs: ours
    assert as_folder(path, "y").shape == FRAME.shape


def test_folders_of_killed_processes_are_removed(tmp_path):
    cache = cache_folder("blocks")
    cache.mkdir(parents=True)
    killed, left = holder("work", cache)
    killed.kill()
    killed.communicate()
    running, kept = holder("work", cache)
    mine = FusedLassoRegressor(0.1).fit(pl.from_pandas(FRAME.assign(y=Y)).lazy(), "y")
    assert mine.coef_.shape == (4,)
    assert (Path(left).exists(), Path(kept).exists()) == (False, True)
    running.kill()
    running.communicate()


def test_a_file_of_the_same_size_and_time_is_read_again(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,y\n1,1\n2,2\n3,3\n")
    stat = path.stat()
    assert as_folder(path, "y").target.tolist() == [1, 2, 3]
    path.write_text("a,y\n1,4\n2,5\n3,6\n")
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert as_folder(path, "y").target.tolist() == [4, 5, 6]


# -- Parquet in many small parts -------------------------------------------------------------------------------------


@pytest.mark.parametrize("parts", ["row groups", "files"])
def test_small_parts_are_gathered_into_blocks(parts, tmp_path):
    frame = FRAME.assign(y=Y)
    if parts == "files":
        (tmp_path / "t").mkdir()
        for row in range(N):
            frame[row : row + 1].to_parquet(tmp_path / "t" / f"{row:03}.parquet")
    else:
        frame.to_parquet(tmp_path / "t", row_group_size=1)
    (tmp_path / "t").rename(path := tmp_path / ("t" if parts == "files" else "t.parquet"))
    folder = as_folder(path, "y")
    assert len(json.loads((folder.folder / "manifest.json").read_text())["blocks"]) == 1
    np.testing.assert_array_equal(as_matrix(folder.rows), X)
    np.testing.assert_array_equal(folder.target, Y)


@pytest.mark.parametrize("position", [0, 1, 10, 19, 20, 33, 59])
def test_gathered_blocks_continue_at_any_row(position, tmp_path):
    path = stored(FRAME, "folder", tmp_path)  # of two files
    source = open_source(path, Columns(labelled=False), block_rows=7)
    blocks = list(source.blocks(position, position))
    np.testing.assert_array_equal(np.concatenate([block.X for block in blocks]), X[position:])
    assert [block.position for block in blocks] == [min(end, N) for end in range(position + 7, N + 7, 7)]


def test_files_of_other_types_and_orders_are_read_by_name(tmp_path):
    (tmp_path / "t").mkdir()
    FRAME.round().astype(int).to_parquet(tmp_path / "t" / "0.parquet")
    FRAME[["d", "b", "a", "c"]].to_parquet(tmp_path / "t" / "1.parquet")
    folder = as_folder(tmp_path / "t", labelled=False)
    np.testing.assert_array_equal(as_matrix(folder.rows), np.vstack([X.round(), X]))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda frame: frame.drop(columns="b"), r"1.parquet: there is no column 'b', which 0.parquet has"),
        (lambda frame: frame.assign(e=1.0), r"1.parquet: there is a column 'e', which 0.parquet does not have"),
    ],
)
def test_files_with_other_columns_are_named(change, message, tmp_path):
    (tmp_path / "t").mkdir()
    FRAME.to_parquet(tmp_path / "t" / "0.parquet")
    change(FRAME).to_parquet(tmp_path / "t" / "1.parquet")
    with pytest.raises(ValueError, match=message):
        as_folder(tmp_path / "t", labelled=False)


# -- types of columns ------------------------------------------------------------------------------------------------

DECIMALS = [Decimal(int(value)) / 4 for value in RNG.integers(0, 9, N)]


@pytest.mark.parametrize("storage", ["parquet", "lazy", "dataset"])
def test_decimal_columns_are_numbers(storage, tmp_path):
    frame = FRAME.assign(k=DECIMALS, w=[Decimal("0.5")] * N, y=[Decimal(str(round(value, 4))) for value in Y])
    wanted = FusedLassoRegressor(0.1).fit(FRAME.assign(k=frame["k"].astype(float)), Y.round(4), np.full(N, 0.5))
    table = stored(frame, storage, tmp_path)
    found = FusedLassoRegressor(0.1).fit(table, "y", "w")
    np.testing.assert_allclose(found.coef_, wanted.coef_, atol=1e-8)
    assert found.score(table, "y") > 0
    several = FusedLassoRegressor(0.1).fit(table, ["y", "k"], "w")
    assert several.coef_.shape == (2, 4)


@pytest.mark.parametrize("storage", ["parquet", "csv"])
def test_a_missing_truth_value_is_a_missing_value(storage, tmp_path):
    flags = [True, None, *[False] * (N - 2)]
    with pytest.raises(ValueError, match="row 1: column 'k' holds NaN or infinity"):
        FusedLassoRegressor(0.1).fit(stored(FRAME.assign(k=flags, y=Y), storage, tmp_path), "y")


def test_numbers_that_are_texts_are_named_as_such(tmp_path):
    with pytest.raises(ValueError, match="column 'k' holds the text '1', and not a number: convert it to numbers"):
        FusedLassoRegressor(0.1).fit(stored(FRAME.assign(k="1", y=Y), "parquet", tmp_path), "y")


def test_weights_that_are_texts_are_named(tmp_path):
    with pytest.raises(ValueError, match="the column 'k' of weights holds 'heavy', which is not a number"):
        FusedLassoRegressor(0.1).fit(stored(FRAME.assign(k="heavy", y=Y), "parquet", tmp_path), "y", "k")


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (np.ones(N - 1), rf"sample_weight has shape \({N - 1},\): it takes a vector of length {N}"),
        (["heavy"] * N, "sample_weight has dtype <U5: it takes numbers"),
        (-np.ones(N), "sample_weight takes numbers ≥ 0"),
    ],
)
@pytest.mark.parametrize(
    "model", [FusedLassoRegressor(0.1), FusedLassoClassifier(0.1)], ids=["regressor", "classifier"]
)
@pytest.mark.parametrize("storage", ["parquet", "processes"])
def test_weights_that_do_not_fit_the_rows(storage, model, weight, message, tmp_path):
    table = Processes(X, workers=1) if storage == "processes" else stored(FRAME, storage, tmp_path)
    with pytest.raises((TypeError, ValueError), match=message):
        model.fit(table, Y > 0, weight)


def test_one_weight_stands_for_all_rows(tmp_path):
    found = FusedLassoRegressor(0.1).fit(stored(FRAME, "parquet", tmp_path), Y, 2.0)
    np.testing.assert_allclose(found.coef_, FusedLassoRegressor(0.1).fit(FRAME, Y).coef_, atol=1e-8)


# -- messages about LazyFrames and datasets --------------------------------------------------------------------------


@pytest.mark.parametrize("levels", [False, True])
@pytest.mark.parametrize("storage", ["lazy", "dataset"])
def test_a_missing_column_of_a_lazy_frame_is_named(storage, levels, tmp_path):
    frame = FRAME.assign(town=np.where(Y > 0, "Ulm", "Bern"))
    options = {"categorical_features": ["town"]} if levels else {}
    model = FusedLassoRegressor(0.1, **options).fit(frame if levels else FRAME, Y)
    table = stored(frame.drop(columns="b").assign(y=Y), storage, tmp_path)
    for method in (lambda: model.predict(table), lambda: model.score(table, "y")):
        with pytest.raises(ValueError, match=r"^X: there is no column 'b'"):
            method()


@pytest.mark.parametrize(
    ("change", "y", "message"),
    [
        ({"t": "x"}, "y", "^X: column 't' holds 'x', which is not a number"),
        ({"t": np.nan}, "y", r"^X: row 0: column 't' holds NaN"),
        ({}, "nope", "^X: there is no column 'nope'"),
    ],
)
@pytest.mark.parametrize("levels", [False, True])
def test_messages_about_a_lazy_frame_say_x(levels, change, y, message, tmp_path):
    frame = FRAME.assign(town="Ulm", **change, y=Y) if levels else FRAME.assign(**change, y=Y)
    options = {"categorical_features": ["town"]} if levels else {}
    with pytest.raises(ValueError) as error:  # noqa: PT011
        FusedLassoRegressor(0.1, **options).fit(stored(frame, "lazy", tmp_path), y)
    assert "lazy-" not in str(error.value)
    if not levels:
        assert re.search(message, str(error.value))


# -- messages --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("y", ["y", ["y", "z"]])
@pytest.mark.parametrize("storage", ["parquet", "csv", "folder"])
def test_the_row_of_a_missing_target_is_named(storage, y, tmp_path, monkeypatch):
    monkeypatch.setattr(readers, "PARQUET_ROWS", 25)
    frame = FRAME.assign(z=1.0, y=np.where(Y > 0, "sick", "healthy"))
    frame.loc[47, "y"] = None
    with pytest.raises(ValueError, match="the column 'y' has missing values, the first in row 47"):
        FusedLassoClassifier(0.1).fit(stored(frame, storage, tmp_path), y)


@pytest.mark.parametrize(
    ("target", "weight", "message"),
    [
        (Y[1:], None, rf"block 1: its target has the shape \({N - 1},\): it takes a vector of length {N}"),
        (np.column_stack([Y, Y]), None, rf"block 1: its target has the shape \({N}, 2\).* several outputs to fit"),
        (Y, np.ones(3), r"block 1: its weight has the shape \(3,\)"),
    ],
)
def test_blocks_with_targets_of_another_length_are_refused(target, weight, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        write_blocks(tmp_path / "b", [(X, Y, None if weight is None else Y**2), (X, target, weight)])


@pytest.mark.parametrize("storage", ["csv", "lazy"])
def test_a_cache_that_is_no_folder_is_named(storage, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SKADMM_CACHE", str(tmp_path / "file"))
    with pytest.raises(OSError, match=r"SKADMM_CACHE=.*file: tables on disk cannot be kept in .*file.blocks: "):
        FusedLassoRegressor(0.1).fit(stored(FRAME.assign(y=Y), storage, tmp_path), "y")


def test_a_cache_dir_that_is_a_file_is_named(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    path = stored(FRAME.assign(y=Y), "csv", tmp_path)
    told = ["fit", str(path), "-o", str(tmp_path / "m.skadmm"), "--on-disk", "--alpha", "0.1", "--cache-dir"]
    assert run([*told, str(tmp_path / "file")]) == 2
    assert "file: it takes a folder, and this is a file" in capsys.readouterr().err
    assert run([*told, str(tmp_path / "file" / "folder")]) == 1
    assert "cannot be kept in" in capsys.readouterr().err


@pytest.mark.parametrize("storage", ["npy", "blocks"])
def test_an_offset_by_name_where_columns_have_none(storage, tmp_path):
    if storage == "blocks":
        write_blocks(tmp_path / "b", [(X, Y)])
    path = tmp_path / "b" if storage == "blocks" else stored(FRAME, storage, tmp_path)
    with pytest.raises(ValueError, match="there is no column 'w': the columns of X have no names"):
        FusedLassoRegressor(0.1).fit(path, offset="w")

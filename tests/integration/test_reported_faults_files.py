"""Faults that users reported: tables on disk that were read otherwise than the same rows in memory, or not at all."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow.dataset as pads
import pytest
import scipy.sparse as sp

from skadmm import FusedLassoClassifier, FusedLassoRegressor, FusedLassoRegressorCV, Problem
from skadmm.backends import as_folder
from skadmm.cli import run
from skadmm.io.cache import cache_folder
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
        frame[:N // 2].to_parquet(path / "0.parquet")
        frame[N // 2:].to_parquet(path / "1.parquet")
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
    with pytest.raises(ValueError, match=rf"NaN or infinity in the column ('b'|1) \(1 of .*, the first is row {N - 5}\)"):
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

"""Predictions do not depend on the units of the columns: offsets, scales, float32, storage."""

import gc
import shutil
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

from skadmm import FusedLassoRegressor, Status
from skadmm.backends import FileBlocks, Processes
from skadmm.backends.writer import write_blocks
from skadmm.estimators import ESTIMATORS
from skadmm.estimators._design import build_design
from skadmm.estimators._large import LargeTable, large_design
from skadmm.operators import trend

SHAPES = {"tall": (400, 20), "wide": (40, 300)}
FACTORS = 10.0 ** np.random.default_rng(5).uniform(-6, 6, 300)
TABLES = {
    "offset": lambda X: X + 1e4,
    "scaled": lambda X: X * FACTORS[: X.shape[1]],
    "offset and scaled": lambda X: (X + 1e4) * FACTORS[: X.shape[1]],
    "offset, sparse": lambda X: sp.csr_array(X + 1e4),
    "sparse": sp.csr_array,
}
MODELS = {
    "fused": ("FusedLassoRegressor", {"alpha": 0.05}),
    "fused without an l1 term": ("FusedLassoRegressor", {"alpha": 0.05, "l1_ratio": 0.0}),
    "lasso": ("FusedLassoRegressor", {"alpha": 0.05, "l1_ratio": 1.0}),
    "fused, Huber": ("FusedLassoRegressor", {"alpha": 0.05, "loss": "huber"}),
    "fused, logistic": ("FusedLassoClassifier", {"alpha": 0.02}),
    "l1, logistic": ("FusedLassoClassifier", {"alpha": 0.02, "l1_ratio": 1.0}),
    "fused, squared hinge": ("FusedLassoClassifier", {"alpha": 0.02, "loss": "squared-hinge"}),
    "groups": ("GroupLassoRegressor", {"alpha": 0.05, "groups": None}),
    "groups, logistic": ("GroupLassoClassifier", {"alpha": 0.02, "groups": None}),
    "second differences": ("GeneralizedLassoRegressor", {"alpha": 0.05, "A": None}),
    "fused, CV": ("FusedLassoRegressorCV", {"alphas": 5, "cv": 2}),
    "fused, logistic, CV": ("FusedLassoClassifierCV", {"alphas": 5, "cv": 2}),
    "groups, CV": ("GroupLassoRegressorCV", {"alphas": 5, "cv": 2, "groups": None}),
}


def data(shape, labels):
    n, d = SHAPES[shape]
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    score = X[:, :5].sum(axis=1) - X[:, 5:8].sum(axis=1) + 0.3 * rng.standard_normal(n)
    return X, (score > 0).astype(int) if labels else score


def fitted(name, d, X, y, **more):
    kind, options = MODELS[name]
    made = {"groups": np.arange(d) // 5, "A": trend(d, 1)}
    options = {key: made[key] if value is None else value for key, value in options.items()} | more
    model = ESTIMATORS[kind](**{"standardize": True, "tol": 1e-7} | options).fit(X, y)
    return model.decision_function(X) if "Classifier" in kind else model.predict(X)


def written(folder, X, y):
    """Rows and targets as a folder of two blocks, with a column of ones."""
    half = X.shape[0] // 2
    write_blocks(folder, [(X[part], y[part].astype(float)) for part in (slice(half), slice(half, None))], ones=True)
    return folder


def close(found, expected, **about):
    np.testing.assert_allclose(found, expected, atol=1e-6 * np.abs(expected).max(), **about)


@pytest.mark.filterwarnings("ignore:.*is the smallest of the grid")
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", MODELS)
def test_predictions_do_not_depend_on_units(name, shape):
    """Warnings are errors in the tests, so that every fit also reaches its tolerance."""
    X, y = data(shape, "Classifier" in MODELS[name][0])
    expected = fitted(name, X.shape[1], X, y)
    for kind, change in TABLES.items():
        found = fitted(name, X.shape[1], change(X), y)
        np.testing.assert_allclose(found, expected, atol=1e-6 * np.abs(expected).max(), err_msg=kind)
    single = X.astype(np.float32)
    found, expected = (fitted(name, X.shape[1], table, y) for table in (single, single.astype(np.float64)))
    np.testing.assert_allclose(found, expected, atol=1e-6 * np.abs(expected).max())


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", [name for name in MODELS if not name.endswith("CV")])
def test_an_offset_changes_nothing_without_scaling_either(name, shape):
    X, y = data(shape, "Classifier" in MODELS[name][0])
    expected = fitted(name, X.shape[1], X, y, standardize=False)
    for table in (X + 1e4, sp.csr_array(X + 1e4)):
        found = fitted(name, X.shape[1], table, y, standardize=False)
        np.testing.assert_allclose(found, expected, atol=1e-6 * np.abs(expected).max())


@pytest.mark.filterwarnings("ignore:.*is the smallest of the grid")
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", MODELS)
def test_predictions_from_a_folder_do_not_depend_on_units(name, shape, tmp_path):
    """The predictions are those of the centred and scaled table in memory, and every fit reaches its tolerance."""
    X, y = data(shape, "Classifier" in MODELS[name][0])
    expected = fitted(name, X.shape[1], X, y)
    for k, (kind, change) in enumerate(TABLES.items()):
        close(fitted(name, X.shape[1], written(tmp_path / str(k), change(X), y), None), expected, err_msg=kind)
    single = (X + 1e2).astype(np.float32)
    found = fitted(name, X.shape[1], written(tmp_path / "single", single, y), None)
    close(found, fitted(name, X.shape[1], single.astype(np.float64), y))
    if not name.endswith("CV"):
        found = fitted(name, X.shape[1], tmp_path / "0", None, standardize=False)
        close(found, fitted(name, X.shape[1], X, y, standardize=False))


@pytest.mark.parametrize("name", ["fused", "fused, logistic", pytest.param("groups, CV", marks=pytest.mark.slow)])
def test_predictions_from_other_storage_do_not_depend_on_units(name, tmp_path, client):
    """Parquet, processes with rows in memory and on disk, Dask."""
    da, pyarrow = pytest.importorskip("dask.array"), pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    X, y = data("tall", "Classifier" in MODELS[name][0])
    expected, far = fitted(name, X.shape[1], X, y), TABLES["offset and scaled"](X)
    columns = {f"f{j}": far[:, j] for j in range(X.shape[1])}
    parquet.write_table(pyarrow.table(columns | {"y": y.astype(float)}), tmp_path / "rows.parquet")
    write_blocks(tmp_path / "blocks", [(far, y.astype(float))])
    tables = {
        "parquet": (tmp_path / "rows.parquet", "y"),
        "processes": (Processes(far, workers=2), y),
        "processes, folder": (Processes(tmp_path / "blocks", workers=2), y),
        "dask": (da.from_array(far, chunks=(200, X.shape[1])), y),
    }
    for kind, (table, target) in tables.items():
        close(fitted(name, X.shape[1], table, target), expected, err_msg=kind)


def test_a_large_table_is_copied_only_where_it_must_be(tmp_path, monkeypatch):
    """Ordinary columns stay where they are; a copy is removed with its last user; without room on the disk the table is
    used as it is."""
    X, y = data("tall", labels=False)
    cache = tmp_path / "cache"
    monkeypatch.setenv("SKADMM_CACHE", str(cache))
    options = {"fit_intercept": True, "standardize": True}
    plain = LargeTable(FileBlocks(written(tmp_path / "plain", X + 10.0, y)))
    assert large_design(plain, None, **options).X is plain.table
    far = FileBlocks(written(tmp_path / "far", TABLES["offset and scaled"](X), y))
    table = LargeTable(far)
    design = large_design(table, None, **options)
    assert isinstance(design.X, FileBlocks)
    assert design.X is not far
    assert design.X.ones
    rows = design.X.rows.values
    np.testing.assert_allclose(rows[:, :-1].mean(axis=0), 0.0, atol=1e-8)
    np.testing.assert_allclose(rows[:, :-1].std(axis=0), 1.0, rtol=1e-8)
    x = np.random.default_rng(0).standard_normal(21)
    coef, intercept = design.original(x)
    np.testing.assert_allclose(rows @ x, far.rows.values[:, :-1] @ coef + intercept, atol=1e-7)
    np.testing.assert_allclose(design.scaled(coef, intercept), x, atol=1e-7)
    np.testing.assert_allclose(design.penalised(x), coef * design.scale)
    weight = np.where(np.arange(400) % 2 == 0, 1.0, 0.0)
    assert large_design(table, weight, **options).X is design.X, "folds share the copy"
    assert len(list((cache / "blocks").iterdir())) == 1
    del design, table, rows
    gc.collect()
    assert not list((cache / "blocks").iterdir())
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=0))
    assert large_design(LargeTable(far), None, **options).X is far


@pytest.mark.parametrize("weighted", [False, True])
def test_a_design_keeps_margins(weighted):
    """Centred dense and sparse tables, other rows, and the way back to the coefficients of the table given."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((30, 5)) + np.array([1e4, 0.0, -3.0, 7.0, 0.0])
    X[:, 3] = 7.1
    X[rng.random(30) < 0.5, 4] = 0.0
    other = X[:4].copy()
    other[0, 0] = 0.0
    weight = rng.uniform(0.5, 2.0, 30) if weighted else None
    for table, rows in ((X, other), (sp.csr_array(X), sp.csr_array(other))):
        design = build_design(table, weight, fit_intercept=True, standardize=True)
        dense = design.X.toarray() if sp.issparse(design.X) else design.X
        np.testing.assert_allclose(np.average(dense[:, :3], axis=0, weights=weight), 0.0, atol=1e-10)
        spread = np.sqrt(
            np.average((X[:, :3] - np.average(X[:, :3], axis=0, weights=weight)) ** 2, axis=0, weights=weight)
        )
        np.testing.assert_allclose(design.scale[:3], spread, rtol=1e-9)
        assert design.scale[3] == 1.0
        np.testing.assert_allclose(dense[:, 3], 0.0, atol=1e-12)
        x = rng.standard_normal(6)
        coef, intercept = design.original(x)
        np.testing.assert_allclose(dense @ x, X @ coef + intercept, atol=1e-9)
        np.testing.assert_allclose(design.on(rows).X @ x, other @ coef + intercept, atol=1e-9)
        np.testing.assert_allclose(design.scaled(coef, intercept), x, atol=1e-9)
    stored = build_design(sp.csr_array(X), weight, fit_intercept=True, standardize=True).X
    assert stored[:, [4]].nnz == np.count_nonzero(X[:, 4]), "a column with entries that are not stored stays sparse"


@pytest.mark.parametrize("alpha", [1e-3, 1.0])
def test_columns_of_any_scale_are_solved_without_scaling(alpha):
    """Twelve decades between the columns, fewer samples than features: clusters creep, and a dense model follows."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 300)) * 10.0 ** rng.uniform(-6, 6, 300)
    y = (X / X.std(axis=0)) @ np.repeat(rng.standard_normal(30), 10) + 0.3 * rng.standard_normal(40)
    model = FusedLassoRegressor(alpha=alpha, standardize=False, tol=1e-6).fit(X, y)
    assert model.result_.status is Status.SOLVED
    assert model.result_.gap <= 1e-6

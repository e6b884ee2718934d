"""Model × storage × operation: wherever the rows are, the model is that of rows in memory; and what is refused."""

import functools

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse

from skadmm import Problem, solve
from skadmm.backends import BlocksError, FileBlocks, Processes, as_folder, sources
from skadmm.backends.convert import convert
from skadmm.backends.writer import write_blocks
from skadmm.cli import run as command
from skadmm.estimators import ESTIMATORS
from skadmm.regularizers import L1

N, D = 120, 6
NAMES = list("abcdef")
RNG = np.random.default_rng(5)
X = RNG.standard_normal((N, D)) * [1.0, 10.0, 0.1, 1.0, 3.0, 1.0]
X[RNG.random((N, D)) < 0.2] = 0.0
NUMBERS = X @ [1.0, 0.1, 8.0, 0.0, 0.0, -1.0] + 0.5 * RNG.standard_normal(N)
CLASSES = np.where(NUMBERS > 0.5, "high", np.where(NUMBERS < -0.5, "low", "middle"))
WEIGHT = RNG.uniform(0.5, 2.0, N)
MODELS = [name for name in ESTIMATORS if not name.endswith("CV") and name != "TrendFilter"]
STORAGES = ["blocks", "parquet", "parquets", "csv", "npy", "npz", "lazy"]
REMOTE = ["blocks", "processes", "dask"]
"""Where rows are not read by the solver, or not in memory; what else works there is in KNOWLEDGE."""
OPERATIONS = {
    "plain": {},
    "standardize": {"standardize": True},
    "ridge": {"ridge": 0.1},
    "no intercept": {"fit_intercept": False},
}
KNOWLEDGE = {
    "factors": {"penalty_factor": [1.0, 1.0, 2.0, 2.0, 1.0, 0.5]},
    "positive": {"positive": True},
    "bounds": {"bounds": (-0.5, 0.5)},
    "monotone": {"monotone": "increasing"},
    "adaptive": {"adaptive": True},
    "relax": {"relax": True, "standardize": True},
    "kinks": {"loss": "kinks"},
    "class weights": {"class_weight": "balanced"},
    "multinomial": {"multi_class": "multinomial"},
    "outputs": {},
    "offset": {},
}
"""Options of the models, each with the parameters that it sets."""
KNOWING = ["FusedLassoRegressor", "FusedLassoClassifier", "GroupLassoRegressor", "GeneralizedLassoClassifier"]


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("SKADMM_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "blocks"


def target_of(name):
    return CLASSES if "Classifier" in name else NUMBERS


def stored(storage, folder, target, ones=True):
    """The table in some storage, and y and sample_weight to fit it with."""
    if storage == "processes":
        return Processes(X, workers=2), (target, WEIGHT)
    if storage == "dask":
        import dask.array as da

        return da.from_array(X, chunks=(50, D)), (blocked(target), blocked(WEIGHT))
    frame = pd.DataFrame(X, columns=NAMES).assign(weight=WEIGHT, target=target)
    columns = "target", "weight"
    if storage == "blocks":
        parts = [slice(0, 50), slice(50, N)]
        write_blocks(folder / "blocks", [(X[part], target[part], WEIGHT[part]) for part in parts], ones=ones)
        return folder / "blocks", (None, None)
    if storage == "parquet":
        frame.to_parquet(folder / "t.parquet", row_group_size=50)
        return folder / "t.parquet", columns
    if storage == "parquets":
        (folder / "many").mkdir()
        frame[:70].to_parquet(folder / "many" / "0.parquet")
        frame[70:].to_parquet(folder / "many" / "1.parquet")
        return folder / "many", columns
    if storage == "csv":
        frame.to_csv(folder / "t.csv", index=False)
        return str(folder / "t.csv"), columns
    if storage == "npy":
        np.save(folder / "X.npy", X)
        return folder / "X.npy", (target, WEIGHT)
    if storage == "npz":
        np.savez(folder / "t.npz", X=X, target=target, weight=WEIGHT)
        return folder / "t.npz", columns
    return pl.from_pandas(frame).lazy(), columns


def blocked(vector):
    """A vector, or columns, in blocks of Dask."""
    import dask.array as da

    return da.from_array(vector, chunks=(50, *vector.shape[1:]))


def model_of(name, **options):
    if name.startswith("Group"):
        options["groups"] = [[0, 1, 2], [3, 4, 5]]
    return ESTIMATORS[name](alpha=0.02, tol=1e-11, **options)


@functools.cache
def in_memory(name, operation):
    return model_of(name, **OPERATIONS[operation]).fit(X, target_of(name), WEIGHT)


@pytest.mark.parametrize("operation", list(OPERATIONS))
@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("name", MODELS)
def test_fit_and_predict(name, storage, operation, tmp_path):
    target, wanted = target_of(name), in_memory(name, operation)
    table, given = stored(storage, tmp_path, target, ones=operation != "no intercept")
    found = model_of(name, **OPERATIONS[operation]).fit(table, *given)
    np.testing.assert_allclose(found.coef_, wanted.coef_, atol=1e-8)
    np.testing.assert_allclose(found.intercept_, wanted.intercept_, atol=1e-8)
    np.testing.assert_array_equal(found.dof_, wanted.dof_)
    predicted = found.predict(table)
    if "Classifier" in name:
        assert predicted.tolist() == wanted.predict(X).tolist()
    else:
        np.testing.assert_allclose(predicted, wanted.predict(X), atol=1e-7)


@pytest.mark.parametrize("operation", list(OPERATIONS))
@pytest.mark.parametrize("storage", ["processes", "dask"])
@pytest.mark.parametrize("name", MODELS)
def test_fit_and_predict_on_workers(name, storage, operation, client):
    two = np.where(NUMBERS > 0, "high", "low")
    target = two if "Classifier" in name and operation != "plain" else target_of(name)
    wanted = model_of(name, **OPERATIONS[operation]).fit(X, target, WEIGHT)
    table, given = stored(storage, None, target)
    found = model_of(name, **OPERATIONS[operation]).fit(table, *given)
    same_model(found, wanted)
    same_predictions(found, wanted, table)
    assert found.score(table, *given) == pytest.approx(wanted.score(X, target, WEIGHT), abs=1e-8)


def same_model(found, wanted, atol=1e-8):
    np.testing.assert_allclose(found.coef_, wanted.coef_, atol=atol)
    np.testing.assert_allclose(found.intercept_, wanted.intercept_, atol=atol)
    np.testing.assert_array_equal(found.dof_, wanted.dof_)


def same_predictions(found, wanted, table):
    if hasattr(wanted, "classes_"):
        assert found.predict(table).tolist() == wanted.predict(X).tolist()
    else:
        np.testing.assert_allclose(found.predict(table), wanted.predict(X), atol=1e-7)


def knowing(name, operation):
    """A function that makes the model, its targets and its offset; skips what the model has no parameter for."""
    options, classes = dict(KNOWLEDGE[operation]), "Classifier" in name
    target = np.where(NUMBERS > 0, "high", "low") if classes else NUMBERS
    if operation in ("multinomial", "class weights") and classes:
        target = CLASSES
    if operation == "outputs":
        target = np.column_stack([NUMBERS, NUMBERS[::-1]])
    if operation == "kinks":
        options["loss"] = "hinge" if classes else "quantile"
    missing = set(options) - set(ESTIMATORS[name]().get_params())
    if missing or (operation == "outputs" and classes):
        pytest.skip(f"{name} has no {operation}")
    shift = 0.1 * np.cos(np.arange(N)) if operation == "offset" else None
    return functools.partial(model_of, name, **options), target, shift


@functools.cache
def known_in_memory(name, operation):
    make, target, shift = knowing(name, operation)
    return make().fit(X, target, WEIGHT, offset=shift)


@pytest.mark.parametrize("operation", list(KNOWLEDGE))
@pytest.mark.parametrize("storage", REMOTE)
@pytest.mark.parametrize("name", KNOWING)
def test_what_models_know(name, storage, operation, tmp_path, client):
    """Prior knowledge, losses with kinks, several outputs and offsets, wherever the rows are."""
    make, target, shift = knowing(name, operation)
    if storage == "blocks":
        write_blocks(tmp_path / "blocks", [(X[:50], None), (X[50:], None)], ones=True)
        table, given = tmp_path / "blocks", (target, WEIGHT)
    else:
        table, given = stored(storage, tmp_path, target)
    there = blocked(shift) if storage == "dask" and shift is not None else shift
    found, wanted = make().fit(table, *given, offset=there), known_in_memory(name, operation)
    # Adaptive weights are quotients by small coefficients.
    same_model(found, wanted, atol=1e-7 if operation == "adaptive" else 1e-8)
    same_predictions(found, wanted, table)


@pytest.mark.parametrize("storage", ["blocks", "dask"])
def test_what_is_refused(storage, tmp_path, client):
    """It is listed in docs/guides/large.md."""
    table, given = stored(storage, tmp_path, NUMBERS)
    for options in ({"graph": "precision"}, {"categorical_features": [0]}):
        with pytest.raises(TypeError, match="memory"):
            model_of("FusedLassoRegressor", **options).fit(table, *given)
    with pytest.raises(TypeError, match="partial_fit takes a table in memory"):
        model_of("FusedLassoRegressor").partial_fit(table, NUMBERS)
    if storage == "blocks":
        with pytest.raises(ValueError, match="fit_intercept=False: the folder has a column of ones"):
            model_of("FusedLassoRegressor", fit_intercept=False).fit(table, *given)
    else:
        with pytest.raises(ValueError, match="it needs rows that this process can read"):
            model_of("GroupLassoRegressor", method="block-descent").fit(table, *given)


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("name", ["FusedLassoClassifier", "FusedLassoRegressor"])
def test_scores(name, storage, tmp_path):
    """The score takes what fit takes: the path of the table and the names of its columns."""
    target, wanted = target_of(name), in_memory(name, "plain")
    table, given = stored(storage, tmp_path, target)
    found = model_of(name).fit(table, *given)
    assert found.score(table, given[0]) == pytest.approx(wanted.score(X, target), abs=1e-8)
    if storage != "blocks":
        assert found.score(table, *given) == pytest.approx(wanted.score(X, target, WEIGHT), abs=1e-8)


@pytest.mark.parametrize("options", [{}, {"standardize": True}], ids=["plain", "standardize"])
@pytest.mark.parametrize("storage", ["blocks", "parquet", "lazy"])
@pytest.mark.parametrize("name", ["FusedLassoClassifierCV", "GroupLassoRegressorCV"])
def test_cross_validation(name, storage, options, tmp_path):
    settings = options | ({"groups": [[0, 1, 2], [3, 4, 5]]} if name.startswith("Group") else {})
    model = functools.partial(ESTIMATORS[name], alphas=4, cv=3, eps=0.05, tol=1e-11, **settings)
    target = target_of(name)
    wanted = model().fit(X, target, WEIGHT)
    table, given = stored(storage, tmp_path, target)
    found = model().fit(table, *given)
    assert found.alpha_ == pytest.approx(wanted.alpha_)
    np.testing.assert_allclose(found.cv_losses_, wanted.cv_losses_, rtol=1e-4)  # folds are solved roughly
    np.testing.assert_allclose(found.coef_, wanted.coef_, atol=1e-6)


@pytest.mark.parametrize("storage", STORAGES)
def test_problems(storage, tmp_path):
    table, (target, weight) = stored(storage, tmp_path, NUMBERS, ones=False)
    options = {"loss": "squared", "psi": L1(0.01), "A": "identity"}
    there = solve(Problem(table, target, sample_weight=weight, **options), tol=1e-10)
    here = solve(Problem(X, NUMBERS, sample_weight=WEIGHT, **options), tol=1e-10)
    np.testing.assert_allclose(there.x, here.x, atol=1e-7)


@pytest.mark.parametrize("storage", ["parquet", "csv", "lazy"])
def test_an_array_of_targets_leaves_all_columns_to_x(storage, tmp_path):
    table, _ = stored(storage, tmp_path, NUMBERS)
    target = RNG.standard_normal(N)
    found = model_of("FusedLassoRegressor").fit(table, target)
    assert found.feature_names_in_.tolist() == [*NAMES, "weight", "target"]
    wanted = model_of("FusedLassoRegressor").fit(np.column_stack([X, WEIGHT, NUMBERS]), target)
    np.testing.assert_allclose(found.coef_, wanted.coef_, atol=1e-7)


def test_sparse_text(tmp_path):
    rows = [" ".join(f"{j + 1}:{v:.17g}" for j, v in enumerate(row) if v) for row in X]
    lines = [f"{b:.17g} {row}" for row, b in zip(rows, NUMBERS, strict=True)]
    (tmp_path / "t.svm").write_text("\n".join(lines) + "\n")
    found = model_of("FusedLassoRegressor", standardize=True).fit(tmp_path / "t.svm")
    wanted = model_of("FusedLassoRegressor", standardize=True).fit(scipy.sparse.csr_array(X), NUMBERS)
    np.testing.assert_allclose(found.coef_, wanted.coef_, atol=1e-7)
    np.testing.assert_allclose(found.predict(tmp_path / "t.svm"), wanted.predict(X), atol=1e-7)


# -- the cache of converted tables ---------------------------------------------------------------------------------


def test_a_table_is_converted_once(tmp_path, cache, monkeypatch):
    table, given = stored("parquet", tmp_path, NUMBERS)
    model = model_of("FusedLassoRegressor")
    model.fit(table, *given)
    (folder,) = cache.iterdir()
    monkeypatch.setattr(sources, "convert", lambda *_, **__: pytest.fail("it was converted before"))
    model.fit(table, *given)
    monkeypatch.undo()
    monkeypatch.setenv("SKADMM_CACHE", str(cache.parent))
    (folder / "values.npy").write_bytes(b"damaged")
    coef = model.coef_.copy()
    np.testing.assert_array_equal(model.fit(table, *given).coef_, coef)


def test_a_table_that_has_changed_is_converted_again(tmp_path, cache):
    table, given = stored("csv", tmp_path, NUMBERS)
    first = model_of("FusedLassoRegressor").fit(table, *given)
    frame = pd.read_csv(table).assign(target=-NUMBERS)
    frame.to_csv(table, index=False)
    second = model_of("FusedLassoRegressor").fit(table, *given)
    np.testing.assert_allclose(second.coef_, -first.coef_, atol=1e-7)
    assert len(list(cache.iterdir())) == 2


def test_a_conversion_that_does_not_fit_is_refused_with_the_numbers(tmp_path, monkeypatch):
    table, given = stored("csv", tmp_path, NUMBERS)
    monkeypatch.setattr(sources.shutil, "disk_usage", lambda _: type("Usage", (), {"free": 100})())
    with pytest.raises(BlocksError, match=r"would take about .* GB on disk, and .* has 1e-07 GB left"):
        model_of("FusedLassoRegressor").fit(table, *given)


def test_a_conversion_of_a_killed_process_continues(tmp_path, cache):
    table, given = stored("parquet", tmp_path, NUMBERS)
    wanted = model_of("FusedLassoRegressor").fit(table, *given).coef_
    (folder,) = cache.iterdir()
    lock = folder.with_name(folder.name + ".lock")
    for file in folder.iterdir():
        file.unlink()
    lock.write_text("999999999")
    np.testing.assert_array_equal(model_of("FusedLassoRegressor").fit(table, *given).coef_, wanted)
    assert not lock.exists()


def test_a_folder_of_a_lazy_frame_goes_with_it(tmp_path, cache):
    table, given = stored("lazy", tmp_path, NUMBERS)
    folder = as_folder(table, *given)
    assert isinstance(folder, FileBlocks)
    assert folder.shape == (N, D)
    assert len(list(cache.iterdir())) == 1
    del folder
    assert not list(cache.iterdir())


# -- what is refused -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("nothing.parquet", None, "no such file or folder"),
        ("t.xls", b"x", "the ending says no format"),
        ("t.parquet", b"x", "not a Parquet file, or damaged"),
        ("t.npy", b"x", "not an npy file"),
        ("t.npz", b"x", "not an npz file"),
        ("t.csv", b"a,b\n1,2\n", "no column 'target'"),
    ],
)
def test_files_that_are_not_tables(name, content, message, tmp_path):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        model_of("FusedLassoRegressor").fit(tmp_path / name, "target")


def test_a_folder_of_blocks_has_its_own_target(tmp_path):
    table, _ = stored("blocks", tmp_path, NUMBERS)
    with pytest.raises(ValueError, match="y='target': a folder of blocks has its own"):
        model_of("FusedLassoRegressor").fit(table, "target")
    (tmp_path / "empty").mkdir()
    with pytest.raises(BlocksError, match="not a folder of blocks"):
        model_of("FusedLassoRegressor").fit(tmp_path / "empty")


def test_files_of_a_folder_must_agree(tmp_path):
    (tmp_path / "many").mkdir()
    pd.DataFrame({"a": [1.0], "b": [2.0]}).to_parquet(tmp_path / "many" / "0.parquet")
    pd.DataFrame({"a": [1.0], "c": [2.0]}).to_parquet(tmp_path / "many" / "1.parquet")
    with pytest.raises(BlocksError, match=r"1\.parquet: its columns are not those"):
        convert(tmp_path / "many", tmp_path / "blocks")


# -- the command line ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("storage", ["parquet", "parquets", "csv"])
def test_commands_on_disk(storage, tmp_path, capsys):
    table, _ = stored(storage, tmp_path, NUMBERS)
    model = tmp_path / "m.skadmm"
    flags = [] if storage == "parquets" else ["--on-disk"]
    common = ["--model", "fused-regressor", "--alpha", "0.02", "--tol", "1e-11", "--target", "target"]
    common += ["--weight", "weight"]
    assert command(["fit", str(table), "-o", str(model), *common, *flags]) == 0
    assert command(["predict", str(model), str(table), "-o", str(tmp_path / "p.parquet"), "--target", "target"]) == 0
    assert "R² 0.8" in capsys.readouterr().err
    wanted = in_memory("FusedLassoRegressor", "plain").predict(X)
    np.testing.assert_allclose(pd.read_parquet(tmp_path / "p.parquet")["prediction"], wanted, atol=1e-7)
    assert command(["compare", str(table), "--loss", "squared", "--target", "target", "--drop", "weight",
                    "--methods", "san-admm", "--passes", "3", "--repeats", "1"]) == 0  # fmt: skip
    capsys.readouterr()

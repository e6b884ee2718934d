"""Model × storage × operation: wherever the rows are, the model is that of rows in memory; and what is refused."""

import functools
import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse

import skadmm
from skadmm import Problem, path, solve
from skadmm.backends import BlocksError, FileBlocks, Processes, as_folder, readers, sources
from skadmm.backends.convert import convert
from skadmm.backends.writer import write_blocks
from skadmm.cli import run as command
from skadmm.estimators import ESTIMATORS, _large
from skadmm.regularizers import L1, GroupL2

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
    "ridge": {"ridge": 0.1, "tol": 1e-15},
    "no intercept": {"fit_intercept": False},
}
KNOWLEDGE = {
    "factors": {"penalty_factor": [1.0, 1.0, 2.0, 2.0, 1.0, 0.5]},
    "positive": {"positive": True},
    "bounds": {"bounds": (-0.5, 0.5)},
    "scaled bounds": {"bounds": (-0.5, 0.5), "standardize": True, "tol": 1e-13},
    "monotone": {"monotone": "increasing"},
    "adaptive": {"adaptive": True},
    "relax": {"relax": True, "standardize": True},
    "kinks": {"loss": "kinks"},
    "class weights": {"class_weight": "balanced"},
    "multinomial": {"multi_class": "multinomial"},
    "adaptive multinomial": {"adaptive": True, "multi_class": "multinomial"},
    "outputs": {},
    "adaptive outputs": {"adaptive": True, "standardize": True},
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


def stored(storage, folder, target, ones=True, X=X):
    """The table in some storage, and y and sample_weight to fit it with."""
    if storage == "processes":
        return Processes(X, workers=2), (target, WEIGHT)
    if storage == "dask":
        import dask.array as da

        return da.from_array(X, chunks=(50, X.shape[1])), (blocked(target), blocked(WEIGHT))
    frame = pd.DataFrame(X, columns=NAMES[: X.shape[1]]).assign(weight=WEIGHT, target=target)
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
    return ESTIMATORS[name](**({"alpha": 0.02, "tol": 1e-11} | options))


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
    same_model(found, wanted)
    same_predictions(found, wanted, table)


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


def same_model(found, wanted):
    np.testing.assert_allclose(found.coef_, wanted.coef_, atol=1e-8, rtol=0)
    np.testing.assert_allclose(found.intercept_, wanted.intercept_, atol=1e-8, rtol=0)
    np.testing.assert_array_equal(found.dof_, wanted.dof_)


def same_predictions(found, wanted, table, **more):
    if hasattr(wanted, "classes_"):
        assert found.predict(table, **more).tolist() == wanted.predict(X, **more).tolist()
    else:
        np.testing.assert_allclose(found.predict(table, **more), wanted.predict(X, **more), atol=1e-7)


def knowing(name, operation):
    """A function that makes the model, its targets and its offset; skips what the model has no parameter for."""
    options, classes = dict(KNOWLEDGE[operation]), "Classifier" in name
    target = np.where(NUMBERS > 0, "high", "low") if classes else NUMBERS
    if operation.endswith(("multinomial", "class weights")) and classes:
        target = CLASSES
    if operation.endswith("outputs"):
        target = np.column_stack([NUMBERS, NUMBERS[::-1]])
    if operation == "kinks":
        options["loss"] = "hinge" if classes else "quantile"
    missing = set(options) - set(ESTIMATORS[name]().get_params())
    if missing or (operation.endswith("outputs") and classes):
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
    same_model(found, wanted)
    same_predictions(found, wanted, table, offset=0.0)


@pytest.mark.parametrize("cross_validated", [False, True], ids=["fit", "CV"])
@pytest.mark.parametrize("storage", ["parquet", "parquets", "csv", "npz", "lazy"])
def test_columns_by_name(storage, cross_validated, tmp_path):
    """Targets, weights and offsets of a table on disk are columns of it, in fit, predict and score."""
    shift = 0.1 * np.cos(np.arange(N))
    frame = pd.DataFrame(X, columns=NAMES).assign(w=WEIGHT, shift=shift, one=NUMBERS, two=NUMBERS[::-1])
    table = named_table(storage, frame, tmp_path)
    options = {"alphas": 3, "cv": 3, "eps": 0.05} if cross_validated else {"alpha": 0.02}
    make = functools.partial(ESTIMATORS["FusedLassoRegressor" + "CV" * cross_validated], tol=1e-12, **options)
    single = {"sample_weight": WEIGHT, "offset": shift}
    only = table if storage == "npz" else without(storage, table, ["two"], frame, tmp_path)
    found, wanted = make().fit(only, "one", "w", offset="shift"), make().fit(X, NUMBERS, **single)
    same_model(found, wanted)
    np.testing.assert_allclose(found.predict(table, offset="shift"), wanted.predict(X, offset=shift), atol=1e-7)
    assert found.score(table, "one", "w", offset="shift") == pytest.approx(wanted.score(X, NUMBERS, WEIGHT, shift))
    if storage == "npz":  # its arrays are read one by one
        return
    both = np.column_stack([NUMBERS, NUMBERS[::-1]])
    found, wanted = make().fit(table, ["one", "two"], "w", offset="shift"), make().fit(X, both, **single)
    same_model(found, wanted)
    expected = pytest.approx(wanted.score(X, both, WEIGHT, offset=0.0), abs=1e-8)
    assert found.score(table, ["one", "two"], "w", offset=0.0) == expected
    if not cross_validated:
        psi = {"loss": "squared", "psi": L1(0.1), "A": "identity"}
        there = solve(
            Problem(without(storage, table, ["w", "shift"], frame, tmp_path), ["one", "two"], **psi), tol=1e-12
        )
        np.testing.assert_allclose(there.x, solve(Problem(X, both, **psi), tol=1e-12).x, atol=1e-8)


def named_table(storage, frame, folder):
    """A table with names in some storage; all columns but the last four are features."""
    folder.mkdir(exist_ok=True)
    if storage == "npz":
        np.savez(folder / "t.npz", X=X, **{name: frame[name] for name in ("w", "shift", "one", "two")})
        return folder / "t.npz"
    if storage == "csv":
        frame.to_csv(folder / "t.csv", index=False)
        return folder / "t.csv"
    if storage == "lazy":
        return pl.from_pandas(frame).lazy()
    if storage == "parquet":
        frame.to_parquet(folder / "t.parquet", row_group_size=50)
        return folder / "t.parquet"
    (folder / "many").mkdir()
    frame[:70].to_parquet(folder / "many" / "0.parquet")
    frame[70:].to_parquet(folder / "many" / "1.parquet")
    return folder / "many"


def without(storage, table, names, frame, folder):
    """The same table without some columns."""
    return (
        table.drop(names) if storage == "lazy" else named_table(storage, frame.drop(columns=names), folder / names[0])
    )


def test_columns_by_name_that_are_wrong(tmp_path):
    frame = pd.DataFrame(X, columns=NAMES).assign(one=NUMBERS, two=NUMBERS)
    frame.to_parquet(tmp_path / "t.parquet")
    np.save(tmp_path / "X.npy", X)
    write_blocks(tmp_path / "blocks", [(X, NUMBERS)], ones=True)
    model, table = model_of("FusedLassoRegressor"), tmp_path / "t.parquet"
    for given, what in (
        ({"y": ["one", "tow"]}, "y: there is no column 'tow'"),
        ({"y": ["one", "one"]}, "it takes every column once"),
        ({"y": "one", "offset": "shift"}, "there is no column 'shift'"),
        ({"y": ["one", "two"], "offset": "a", "sample_weight": "ww"}, "there is no column 'ww'"),
    ):
        with pytest.raises(ValueError, match=what):
            model.fit(table, **given)
    with pytest.raises(ValueError, match=r"y has shape \(2,\): it takes a vector of length 120"):
        model.fit(table, ["no", "nope"])
    for other in (tmp_path / "X.npy", tmp_path / "blocks"):
        with pytest.raises(ValueError, match="its columns have no names: 'shift'"):
            model.fit(other, NUMBERS, offset="shift")
    with pytest.raises(TypeError, match="offset='shift': the name of a column goes with a path"):
        model.fit(frame, NUMBERS, offset="shift")


def test_the_command_line_takes_columns_on_disk(tmp_path, capsys):
    """Several targets, an offset, weights, columns left out and identifiers: on disk as in memory."""
    shift = 0.1 * np.cos(np.arange(N))
    frame = pd.DataFrame(X, columns=NAMES).assign(key=[f"k{i}" for i in range(N)], town="Ulm", w=WEIGHT, shift=shift)
    frame = frame.assign(one=NUMBERS, two=NUMBERS[::-1], many=np.exp(np.clip(NUMBERS, -3, 3)))
    (tmp_path / "many").mkdir()
    frame[:70].to_parquet(tmp_path / "many" / "0.parquet")
    frame[70:].to_parquet(tmp_path / "many" / "1.parquet")
    frame.to_parquet(tmp_path / "t.parquet")
    fit = ["--model", "fused-regressor", "--alpha", "0.02", "--drop", "key", "--drop", "town", "--tol", "1e-12"]
    fit += ["--quiet"]
    jobs = {
        "outputs": ["--target", "one", "--target", "two", "--weight", "w", "--drop", "shift,many"],
        "offset": ["--target", "one", "--offset", "shift", "--drop", "w, two", "--drop", "many"],
        "counts": ["--target", "many", "--exposure", "w", "--loss", "poisson", "--drop", "one,two,shift"],
    }
    for name, options in jobs.items():
        models = []
        for table in ("many", "t.parquet"):  # the folder stays on disk, the file is read into memory
            out = tmp_path / f"{name}-{table}.skadmm"
            assert command(["fit", str(tmp_path / table), "-o", str(out), *fit, *options]) == 0
            models.append(skadmm.load(out))
        same_model(*models)
        predict = [str(tmp_path / f"{name}-many.skadmm"), str(tmp_path / "many"), "--id", "key"]
        predict += [part for part in options if part in ("--offset", "--exposure")]
        predict += {"offset": ["shift"], "counts": ["w"]}.get(name, [])
        assert command(["predict", *predict, "-o", str(tmp_path / f"{name}.parquet")]) == 0
        written = pd.read_parquet(tmp_path / f"{name}.parquet")
        offset = {"offset": {"offset": shift}, "counts": {"offset": np.log(WEIGHT)}}.get(name, {})
        assert written["key"].tolist() == frame["key"].tolist()
        np.testing.assert_allclose(np.squeeze(written.drop(columns="key")), models[1].predict(frame[NAMES], **offset))
    capsys.readouterr()
    assert command(["fit", str(tmp_path / "many"), "-o", str(tmp_path / "n"), "--target", "one", "--offset", "w"]) == 2
    assert "column 'key' holds 'k0', which is not a number" in capsys.readouterr().err
    assert command(["predict", str(tmp_path / "offset-many.skadmm"), str(tmp_path / "many"), "--id", "kez"]) == 2
    assert "--id: there is no column 'kez'" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["TrendFilter", "TrendFilterCV"])
@pytest.mark.parametrize("storage", [*STORAGES, "processes", "dask"])
def test_signals(storage, name, tmp_path, client):
    """A trend over one column of positions, wherever the column is."""
    where = np.sort(np.random.default_rng(2).uniform(0, 10, N))[:, None]
    target = np.abs(where[:, 0] - 5.0) + 0.1 * np.cos(np.arange(N))
    options = {"alphas": 3, "cv": 3} if name.endswith("CV") else {"alpha": 0.01}
    table, given = stored(storage, tmp_path, target, X=where)
    found, wanted = (
        ESTIMATORS[name](**options).fit(table, *given),
        ESTIMATORS[name](**options).fit(where, target, WEIGHT),
    )
    np.testing.assert_array_equal(found.knots_, wanted.knots_)
    np.testing.assert_allclose(found.predict(table), wanted.predict(where), atol=1e-8)
    if storage != "dask":
        assert found.score(table, given[0]) == pytest.approx(wanted.score(where, target), abs=1e-8)


@pytest.mark.parametrize("storage", ["parquet", "processes", "dask"])
def test_trends_of_coefficients(storage, tmp_path, client):
    """The other design of TrendFilter, in which the coefficients of a table follow a trend."""
    table, given = stored(storage, tmp_path, NUMBERS)
    found = model_of("TrendFilter").fit(table, *given)
    wanted = model_of("TrendFilter").fit(X, NUMBERS, WEIGHT)
    same_model(found, wanted)
    same_predictions(found, wanted, table)


@pytest.mark.parametrize("name", ["FusedLassoRegressor", "FusedLassoRegressorCV", "GroupLassoClassifier"])
def test_frames_of_dask_from_files(name, tmp_path, client):
    """Dask reads few columns of Parquet files in fewer blocks than many columns."""
    import dask.dataframe as dd

    target = np.where(NUMBERS > 0, "high", "low") if "Classifier" in name else NUMBERS
    frame = pd.DataFrame(X, columns=NAMES).assign(weight=WEIGHT, target=target, town="Ulm", **dict.fromkeys("uvw", 1.0))
    for k in range(6):
        frame[20 * k : 20 * k + 20].to_parquet(tmp_path / f"{k}.parquet")
    read = dd.read_parquet(tmp_path)
    assert read[NAMES].optimize().npartitions != read["target"].optimize().npartitions
    options = {"alphas": 3, "cv": 3, "tol": 1e-11} if name.endswith("CV") else {"alpha": 0.02, "tol": 1e-11}
    if name.startswith("Group"):
        options["groups"] = [[0, 1, 2], [3, 4, 5]]
    found = ESTIMATORS[name](**options).fit(read[NAMES], read["target"], read["weight"])
    wanted = ESTIMATORS[name](**options).fit(X, target, WEIGHT)
    same_model(found, wanted)
    same_predictions(found, wanted, read[NAMES])
    assert found.feature_names_in_.tolist() == NAMES
    with pytest.raises(ValueError, match="column 'town' holds 'Ulm', which is not a number"):
        ESTIMATORS[name](**options).fit(read[[*NAMES[:5], "town"]], read["target"])


def test_problems_on_frames_of_dask_from_files(tmp_path, client):
    import dask.dataframe as dd

    frame = pd.DataFrame(X, columns=NAMES).assign(target=NUMBERS, **dict.fromkeys("tuvw", 1.0))
    for k in range(6):
        frame[20 * k : 20 * k + 20].to_parquet(tmp_path / f"{k}.parquet")
    read, options = dd.read_parquet(tmp_path), {"loss": "squared", "psi": L1(0.1), "A": "identity"}
    problem = Problem(read[NAMES], read["target"], **options)
    np.testing.assert_allclose(
        solve(problem, tol=1e-12).x, solve(Problem(X, NUMBERS, **options), tol=1e-12).x, atol=1e-8
    )
    assert problem.feature_names == NAMES


@pytest.mark.parametrize("storage", ["blocks", "dask"])
def test_what_is_refused(storage, tmp_path, client):
    """It is listed in docs/guides/large.md."""
    table, given = stored(storage, tmp_path, NUMBERS)
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
@pytest.mark.parametrize("storage", ["blocks", "parquet", "lazy", "processes"])
@pytest.mark.parametrize("name", ["FusedLassoClassifierCV", "GroupLassoRegressorCV"])
def test_cross_validation(name, storage, options, tmp_path):
    same_search(name, storage, options | {"alphas": 4, "cv": 3}, tmp_path)


@pytest.mark.parametrize("name", [f"{name}CV" for name in MODELS])
def test_cross_validation_on_dask(name, tmp_path, client):
    two = np.where(NUMBERS > 0, "high", "low")
    same_search(name, "dask", {"alphas": 2, "cv": 2}, tmp_path, two if "Classifier" in name else NUMBERS)


def same_search(name, storage, options, folder, target=None):
    settings = options | ({"groups": [[0, 1, 2], [3, 4, 5]]} if name.startswith("Group") else {})
    model = functools.partial(ESTIMATORS[name], eps=0.05, tol=1e-12, **settings)
    target = target_of(name) if target is None else target
    wanted = model().fit(X, target, WEIGHT)
    table, given = stored(storage, folder, target)
    found = model().fit(table, *given)
    assert found.alpha_ == pytest.approx(wanted.alpha_, rel=1e-10)
    np.testing.assert_allclose(found.cv_losses_, wanted.cv_losses_, rtol=2e-5)  # folds are solved roughly
    same_model(found, wanted)


@pytest.mark.parametrize("storage", ["blocks", "parquet", "processes", "dask"])
@pytest.mark.parametrize("psi", [L1(1.0), GroupL2(1.0, [[0, 1, 2], [3, 4, 5]])], ids=["l1", "groups"])
def test_paths(psi, storage, tmp_path, client):
    table, (target, weight) = stored(storage, tmp_path, NUMBERS, ones=False)
    options, alphas = {"loss": "squared", "psi": psi, "A": "identity"}, [0.1, 0.03]
    there = path(Problem(table, target, sample_weight=weight, **options), alphas, tol=1e-12)
    here = path(Problem(X, NUMBERS, sample_weight=WEIGHT, **options), alphas, tol=1e-12)
    np.testing.assert_allclose(there.x, here.x, atol=1e-8, rtol=0)
    np.testing.assert_array_equal(there.dof, here.dof)


# -- learnt from the rows: graphs and levels ------------------------------------------------------------------------


@pytest.mark.parametrize("storage", [*STORAGES, "processes", "dask"])
@pytest.mark.parametrize("name", ["FusedLassoRegressor", "FusedLassoClassifier"])
def test_graphs_that_are_learnt(name, storage, tmp_path, client):
    target = np.where(NUMBERS > 0, "high", "low") if "Classifier" in name else NUMBERS
    wanted = model_of(name, graph="precision").fit(X, target, WEIGHT)
    table, given = stored(storage, tmp_path, target)
    found = model_of(name, graph="precision").fit(table, *given)
    np.testing.assert_array_equal(found.graph_.edges, wanted.graph_.edges)
    same_model(found, wanted)


@pytest.mark.parametrize("storage", ["blocks", "processes"])
def test_every_fold_learns_its_graph(storage, tmp_path):
    same_search("FusedLassoRegressorCV", storage, {"alphas": 3, "cv": 3, "graph": "precision"}, tmp_path)


def test_a_graph_that_does_not_fit_is_refused_with_the_numbers(tmp_path, monkeypatch):
    table, given = stored("blocks", tmp_path, NUMBERS)
    monkeypatch.setattr(_large, "available_memory", lambda: 100.0)
    with pytest.raises(MemoryError, match=r"covariances of 6 features take .* GB in memory"):
        model_of("FusedLassoRegressor", graph="precision").fit(table, *given)


TOWNS = np.array(["Ulm", "Bern", "10", "Ulm"])[RNG.integers(0, 4, N)]
GRADES = RNG.integers(1, 4, N)
LEVELS = pd.DataFrame({"a": X[:, 0], "town": TOWNS, "b": X[:, 2], "grade": GRADES})
"""An odd number of levels, so that no constant can be moved between them and the intercept at the same objective."""
LEVEL_TARGET = NUMBERS + (TOWNS == "Ulm") - 0.7 * (GRADES > 2)
WITH_LEVELS = [name for name in MODELS if "categorical_features" in ESTIMATORS[name]().get_params()]


def with_levels(storage, folder, target):
    """A table of numbers and levels in some storage, y to fit it with, and the table in memory: levels are texts and
    numbers, but for storages that hold numbers only."""
    numbers = LEVELS.assign(town=np.unique(TOWNS, return_inverse=True)[1])
    array = numbers.to_numpy(dtype=float)
    if storage == "blocks":
        write_blocks(folder / "blocks", [(array[:50], target[:50]), (array[50:], target[50:])], ones=True)
        return folder / "blocks", None, array
    if storage == "processes":
        return Processes(array, workers=2), target, array
    if storage in ("npy", "npz"):
        np.save(folder / "X.npy", array)
        np.savez(folder / "X.npz", X=array)
        return folder / f"X.{storage}", target, array
    if storage == "dask":
        import dask.dataframe as dd

        return dd.from_pandas(LEVELS, npartitions=3), dd.from_pandas(pd.Series(target), npartitions=3), LEVELS
    frame = LEVELS.assign(target=target)
    if storage == "parquets":
        (folder / "many").mkdir()
        frame[:70].to_parquet(folder / "many" / "0.parquet")
        frame[70:].to_parquet(folder / "many" / "1.parquet")
        return folder / "many", "target", LEVELS
    if storage == "lazy":
        return pl.from_pandas(frame).lazy(), "target", LEVELS
    frame.to_parquet(folder / "t.parquet", row_group_size=50)
    frame.to_csv(folder / "t.csv", index=False)
    return folder / f"t.{storage}", "target", LEVELS


@pytest.mark.parametrize("storage", [*STORAGES, "processes", "dask"])
@pytest.mark.parametrize("name", WITH_LEVELS)
def test_columns_of_levels(name, storage, tmp_path, client):
    target = np.where(LEVEL_TARGET > 0, "high", "low") if "Classifier" in name else LEVEL_TARGET
    table, y, memory = with_levels(storage, tmp_path, target)
    towns, grades = (1, 3) if isinstance(memory, np.ndarray) else ("town", "grade")
    chosen = {towns: "unordered", grades: "ordered"}
    options = {"alpha": 0.02, "tol": 1e-12, "categorical_features": chosen}
    wanted = ESTIMATORS[name](**options).fit(memory, target)
    found = ESTIMATORS[name](**options).fit(table, y)
    assert found.feature_names_out_.tolist() == wanted.feature_names_out_.tolist()
    assert found.n_features_in_ == 4
    same_model(found, wanted)
    predicted = found.predict(table)
    if "Classifier" in name:
        assert predicted.tolist() == wanted.predict(memory).tolist()
    else:
        np.testing.assert_allclose(predicted, wanted.predict(memory), atol=1e-8, rtol=0)
    score = wanted.score(memory, target)
    assert found.score(table, target if storage == "blocks" else y) == pytest.approx(score, abs=1e-8)


@pytest.mark.parametrize("storage", ["csv", "parquet", "lazy", "dask", "blocks", "npy", "processes"])
def test_levels_that_the_fit_has_not_seen(storage, tmp_path, client):
    few = LEVELS[: N // 2].assign(town="Ulm")
    few.loc[3, "town"] = "Bern"
    numbers = few.assign(town=np.unique(TOWNS).searchsorted(few["town"])).to_numpy(dtype=float)
    table, _, memory = with_levels(storage, tmp_path, LEVEL_TARGET)
    named = not isinstance(memory, np.ndarray)
    options = {"alpha": 0.02, "categorical_features": ["town", "grade"] if named else [1, 3]}
    strict = ESTIMATORS["FusedLassoRegressor"](**options).fit(few if named else numbers, LEVEL_TARGET[: N // 2])
    with pytest.raises(ValueError, match="which the fit has not seen"):
        strict.predict(table)
    lenient = ESTIMATORS["FusedLassoRegressor"](**options, handle_unknown="ignore")
    lenient.fit(few if named else numbers, LEVEL_TARGET[: N // 2])
    np.testing.assert_allclose(lenient.predict(table), lenient.predict(memory), atol=1e-10)


@pytest.mark.parametrize("storage", ["parquet", "lazy", "dask"])
def test_levels_of_a_dtype(storage, tmp_path, client):
    """The order of the levels is that of the dtype."""
    order = pd.CategoricalDtype(["Ulm", "Bern", "10"], ordered=True)
    frame = LEVELS.assign(town=LEVELS["town"].astype(order))
    options = {"alpha": 0.02, "tol": 1e-12, "categorical_features": "from_dtype"}
    if storage == "parquet":
        frame.assign(target=LEVEL_TARGET).to_parquet(tmp_path / "t.parquet", row_group_size=50)
        table, y, memory = tmp_path / "t.parquet", "target", pd.read_parquet(tmp_path / "t.parquet").iloc[:, :4]
    elif storage == "lazy":
        memory = pl.from_pandas(LEVELS).with_columns(pl.col("town").cast(pl.Enum(["Ulm", "Bern", "10"])))
        table, y = memory.with_columns(target=pl.Series(LEVEL_TARGET)).lazy(), "target"
    else:
        import dask.dataframe as dd

        table, y = dd.from_pandas(frame, npartitions=3), dd.from_pandas(pd.Series(LEVEL_TARGET), npartitions=3)
        memory = frame
    wanted = ESTIMATORS["FusedLassoRegressor"](**options).fit(memory, LEVEL_TARGET)
    found = ESTIMATORS["FusedLassoRegressor"](**options).fit(table, y)
    assert found.feature_names_out_.tolist() == wanted.feature_names_out_.tolist()
    assert found.ordered_categories_ == wanted.ordered_categories_
    same_model(found, wanted)


def test_the_types_of_levels_in_text_do_not_depend_on_blocks(tmp_path, monkeypatch):
    """Numbers in the first block and texts in the second are texts, as where the file is read at once."""
    monkeypatch.setattr(readers, "CHUNK_BYTES", 200)
    frame = pd.DataFrame({"a": X[:, 0], "code": ["1", "2"] * 50 + ["x", "2"] * 10, "half": [0.5, 1.0] * 60,
                          "truth": [True, False, True] * 40, "y": NUMBERS})  # fmt: skip
    frame.to_csv(tmp_path / "t.csv", index=False)
    options = {"alpha": 0.02, "tol": 1e-12, "categorical_features": ["code", "half", "truth"]}
    found = ESTIMATORS["FusedLassoRegressor"](**options).fit(tmp_path / "t.csv", "y")
    memory = pd.read_csv(tmp_path / "t.csv")
    wanted = ESTIMATORS["FusedLassoRegressor"](**options).fit(memory.iloc[:, :4], memory["y"])
    assert found.feature_names_out_.tolist() == wanted.feature_names_out_.tolist()
    same_model(found, wanted)
    np.testing.assert_allclose(found.predict(tmp_path / "t.csv"), wanted.predict(memory.iloc[:, :4]), atol=1e-8)


KINKED = {"loss": "quantile", "ridge": 0.01}  # without the ridge there are several minimisers


@pytest.mark.parametrize("options", [{"positive": True}, {"relax": True}, KINKED], ids=str)
def test_levels_where_the_solver_reads_rows(options, client):
    """The encoded rows of a Dask collection come to the disk of this process."""
    table, y, memory = with_levels("dask", None, LEVEL_TARGET)
    options = options | {"alpha": 0.02, "tol": 1e-12, "categorical_features": ["town", "grade"]}
    wanted = ESTIMATORS["FusedLassoRegressor"](**options).fit(memory, LEVEL_TARGET)
    same_model(ESTIMATORS["FusedLassoRegressor"](**options).fit(table, y), wanted)


def test_sparse_rows_have_no_levels(tmp_path):
    (tmp_path / "t.svm").write_text("1 1:1 2:3\n-1 2:1\n")
    with pytest.raises(TypeError, match="categorical_features: X holds sparse rows"):
        ESTIMATORS["FusedLassoRegressor"](categorical_features=[0]).fit(tmp_path / "t.svm")


@pytest.mark.parametrize("columns", ['["town","grade"]', "from_dtype"])
@pytest.mark.parametrize("storage", ["parquet", "csv"])
def test_commands_with_levels_on_disk(storage, columns, tmp_path, capsys):
    table, _, _ = with_levels(storage, tmp_path, LEVEL_TARGET)
    common = ["--model", "fused-regressor", "--alpha", "0.02", "--target", "target", "--tol", "1e-12", "-q"]
    for how in ("--on-disk", "--in-memory"):
        arguments = ["fit", str(table), "-o", str(tmp_path / f"m{how}"), *common, how]
        assert command([*arguments, "--set", f"categorical_features={columns}"]) == 0
    disk, memory = (skadmm.load(tmp_path / f"m{how}") for how in ("--on-disk", "--in-memory"))
    same_model(disk, memory)
    capsys.readouterr()


@pytest.mark.parametrize("storage", STORAGES)
def test_problems(storage, tmp_path):
    table, (target, weight) = stored(storage, tmp_path, NUMBERS, ones=False)
    options = {"loss": "squared", "psi": L1(0.01), "A": "identity"}
    there = solve(Problem(table, target, sample_weight=weight, **options), tol=1e-10)
    here = solve(Problem(X, NUMBERS, sample_weight=WEIGHT, **options), tol=1e-10)
    np.testing.assert_allclose(there.x, here.x, atol=1e-8, rtol=0)


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
        ("t.xls", b"x", "the file extension is not known"),
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
    with pytest.raises(BlocksError, match=r"not a folder of blocks.*a folder of Parquet files.*\.parquet"):
        model_of("FusedLassoRegressor").fit(tmp_path / "empty")


def test_files_of_a_folder_must_agree(tmp_path):
    (tmp_path / "many").mkdir()
    pd.DataFrame({"a": [1.0], "b": [2.0]}).to_parquet(tmp_path / "many" / "0.parquet")
    pd.DataFrame({"a": [1.0], "c": [2.0]}).to_parquet(tmp_path / "many" / "1.parquet")
    with pytest.raises(BlocksError, match=r"1\.parquet: there is no column 'b', which 0\.parquet has"):
        convert(tmp_path / "many", tmp_path / "blocks")


# -- the command line ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("storage", ["parquet", "parquets", "csv"])
def test_commands_on_disk(storage, tmp_path, capsys):
    table, _ = stored(storage, tmp_path, NUMBERS)
    model = tmp_path / "m.skadmm"
    flags = [] if storage == "parquets" else ["--on-disk"]
    common = ["--model", "fused-regressor", "--alpha", "0.02", "--tol", "1e-11", "--target", "target"]
    common += ["--weight", "weight"]
    assert command(["info", str(table), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["features"], facts["target"]) == (D + 1, "target")
    assert facts["rows"] == (None if storage == "csv" else N)
    assert command(["fit", str(table), "-o", str(model), *common, *flags, "--cache-dir", str(tmp_path / "there")]) == 0
    assert "is converted once: about" in capsys.readouterr().err
    assert len(list((tmp_path / "there").iterdir())) == 1
    assert command(["fit", str(table), "-o", str(model), *common, *flags, "--cache-dir", str(tmp_path / "there"),
                    "--force"]) == 0  # fmt: skip
    assert "converted" not in capsys.readouterr().err
    assert command(["predict", str(model), str(table), "-o", str(tmp_path / "p.parquet"), "--target", "target"]) == 0
    assert "R² 0.8" in capsys.readouterr().err
    wanted = in_memory("FusedLassoRegressor", "plain").predict(X)
    np.testing.assert_allclose(pd.read_parquet(tmp_path / "p.parquet")["prediction"], wanted, atol=1e-7)
    assert command(["compare", str(table), "--loss", "squared", "--target", "target", "--drop", "weight",
                    "--methods", "san-admm", "--passes", "3", "--repeats", "1"]) == 0  # fmt: skip
    capsys.readouterr()


def test_commands_on_a_folder_of_blocks_with_classes(tmp_path, capsys):
    """Classes that are texts, from the conversion to the predictions."""
    table, _ = stored("parquet", tmp_path, CLASSES)
    folder, model = tmp_path / "rows", tmp_path / "m.skadmm"
    convert = ["data", "convert", str(table), str(folder), "--target", "target", "--weight", "weight", "--ones"]
    assert command(convert) == 0
    assert command(["info", str(folder)]) == 0
    shown = capsys.readouterr().out
    assert "high, low, middle" in shown
    assert "a, b, c, d, e, f" in shown
    assert command(["fit", str(folder), "-o", str(model), "--alpha", "0.02", "--tol", "1e-11", "-q"]) == 0
    assert command(["predict", str(model), str(folder), "-o", str(tmp_path / "p.parquet")]) == 0
    wanted = in_memory("FusedLassoClassifier", "plain").predict(X)
    assert pd.read_parquet(tmp_path / "p.parquet")["prediction"].tolist() == wanted.tolist()
    capsys.readouterr()


def test_info_of_tables_that_are_none(tmp_path, capsys):
    assert command(["info", str(tmp_path / "nothing.parquet")]) == 1
    assert "no such file" in capsys.readouterr().err
    (tmp_path / "t.parquet").write_bytes(b"x")
    assert command(["info", str(tmp_path / "t.parquet")]) == 1
    assert "not a Parquet file, or damaged" in capsys.readouterr().err
    np.savez(tmp_path / "t.npz", X=X, y=NUMBERS)
    assert command(["info", str(tmp_path / "t.npz"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == N


def test_a_dataset_of_pyarrow_is_a_table_on_disk(tmp_path):
    (tmp_path / "parts").mkdir()
    frame = pd.DataFrame(X, columns=NAMES).assign(target=CLASSES, key=np.arange(N))
    for part in range(3):
        frame[part * N // 3 : (part + 1) * N // 3].to_parquet(tmp_path / "parts" / f"{part}.parquet")
    dataset = pytest.importorskip("pyarrow.dataset").dataset(tmp_path / "parts")
    model = skadmm.FusedLassoClassifier(alpha=0.01)
    expected = model.fit(frame[[*NAMES, "key"]], frame["target"]).coef_
    found = skadmm.FusedLassoClassifier(alpha=0.01).fit(dataset, "target")
    np.testing.assert_allclose(found.coef_, expected, atol=1e-8)
    assert found.score(dataset, "target") == model.score(frame[[*NAMES, "key"]], frame["target"])


def test_columns_of_a_file_are_left_out_by_a_lazy_frame(tmp_path):
    frame = pd.DataFrame(X, columns=NAMES).assign(target=NUMBERS, key=np.arange(N))
    frame.to_parquet(tmp_path / "t.parquet")
    lazy = pl.scan_parquet(tmp_path / "t.parquet").drop("key")
    found = skadmm.FusedLassoRegressor(alpha=0.01).fit(lazy, "target")
    assert list(found.feature_names_in_) == NAMES
    expected = skadmm.FusedLassoRegressor(alpha=0.01).fit(frame[NAMES], NUMBERS)
    np.testing.assert_allclose(found.coef_, expected.coef_, atol=1e-8)


@pytest.mark.parametrize("kind", ["pandas", "polars", "dask"])
def test_the_name_of_a_target_goes_with_tables_on_disk(kind):
    frame = pd.DataFrame(X, columns=NAMES).assign(target=NUMBERS)
    if kind == "dask":
        frame = pytest.importorskip("dask.dataframe").from_pandas(frame, npartitions=2)
    elif kind == "polars":
        frame = pl.from_pandas(frame)
    with pytest.raises(TypeError, match="y='target': the name of a column goes with a path"):
        skadmm.FusedLassoRegressor().fit(frame, "target")


def test_an_npz_file_does_not_stay_on_disk(tmp_path, capsys):
    np.savez(tmp_path / "t.npz", X=X, y=NUMBERS)
    files = [str(tmp_path / "t.npz"), "-o", str(tmp_path / "m.skadmm")]
    given = ["fit", *files, "--model", "fused-regressor", "--on-disk"]
    assert command(given) == 2
    assert "is an npz file, which is read into memory" in capsys.readouterr().err

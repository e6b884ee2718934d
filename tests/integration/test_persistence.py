"""Saved and loaded: the same model to the last bit; anything else is refused in plain words."""

import ast
import io
import json
import pickle
import zipfile
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import KFold, RepeatedKFold

import skadmm
from skadmm import FusedLassoClassifier, FusedLassoRegressor, FusedLassoRegressorCV, GroupLassoRegressor, TrendFilter
from skadmm.estimators._splitters import SPLITTERS
from skadmm.io import codec
from skadmm.losses import Huber


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((60, 5))
    return X, X @ np.array([1.0, 1, 0, 0, -1]) + 0.1 * rng.standard_normal(60)


@pytest.fixture
def saved(data, tmp_path):
    X, y = data
    model = FusedLassoRegressor(alpha=0.01).fit(X, y)
    model.save(tmp_path / "model")
    return model, tmp_path / "model"


def test_every_family_comes_back_bit_for_bit(data, tmp_path):
    X, y = data
    frame = pd.DataFrame(X, columns=list("abcde"))
    graph = nx.Graph([("a", "b"), ("b", "c")])
    labels = np.array(["low", "middle", "high"])[np.digitize(y, [-0.5, 0.5])]
    models = [
        (FusedLassoRegressor(alpha=0.01, graph=graph).fit(frame, y), frame),
        (FusedLassoClassifier(alpha=0.01, graph="precision").fit(X, labels), X),
        (FusedLassoRegressorCV(alphas=3, cv=KFold(3), loss=Huber(2.0)).fit(X, y), X),
        (GroupLassoRegressor(alpha=0.01, groups=[[0, 1], [1, 2, 3, 4]]).fit(X, y), X),
        (TrendFilter(alpha=0.1).fit(X[:, :1], y), X[:, :1]),
    ]
    for model, table in models:
        path = tmp_path / type(model).__name__
        model.save(path)
        first = path.read_bytes()
        model.save(path)
        assert path.read_bytes() == first
        loaded = skadmm.load(path)
        assert type(loaded) is type(model)
        assert vars(loaded).keys() >= {name for name in vars(model) if name.endswith("_")}
        np.testing.assert_array_equal(loaded.predict(table), model.predict(table))
        np.testing.assert_array_equal(loaded.coef_, model.coef_)
        pickled = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(pickled.predict(table), model.predict(table))
        if hasattr(model, "predict_proba"):
            np.testing.assert_array_equal(loaded.predict_proba(table), model.predict_proba(table))
            np.testing.assert_array_equal(loaded.classes_, model.classes_)
    loaded = skadmm.load(tmp_path / "FusedLassoRegressor")
    assert sorted(loaded.graph.edges) == [("a", "b"), ("b", "c")]
    assert loaded.result_.status is models[0][0].result_.status
    np.testing.assert_array_equal(loaded.feature_names_in_, list("abcde"))
    loaded.fit(frame, y)  # and it can be fitted again
    loaded.partial_fit(frame, y)


def rewritten(path, change):
    """The file with its entries changed, and a checksum to match the manifest."""
    import hashlib

    with zipfile.ZipFile(path) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(entries["manifest.json"])
    change(manifest, entries)
    entries["manifest.json"] = json.dumps(manifest).encode()
    entries["manifest.sha256"] = hashlib.sha256(entries["manifest.json"]).hexdigest().encode()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, entry in entries.items():
            archive.writestr(name, entry)
    path.write_bytes(buffer.getvalue())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m, e: m.update(version=99, skadmm="9.0"), "written in version 99.*upgrade"),
        (lambda m, e: m.update(version="1"), "not a version"),
        (lambda m, e: m.update(format="other"), "not a skadmm model"),
        (lambda m, e: m.update({"class": "Pipeline"}), "not a valid"),
        (lambda m, e: m.pop("state"), "no state"),
        (lambda m, e: m["parameters"].pop("alpha"), "'alpha' does not belong"),
        (lambda m, e: m["parameters"].update(evil={"kind": "int", "value": "1"}), "'evil' does not belong"),
        (lambda m, e: m["state"].update(fit={"kind": "int", "value": "1"}), "not the name of a fitted attribute"),
        (lambda m, e: m["state"].update(__class___={"kind": "int", "value": "1"}), "not the name of a fitted"),
        (lambda m, e: m["state"].update(a_={"kind": "pickle", "value": "1"}), "kind 'pickle' is not known"),
        (lambda m, e: m["state"].update(coef_={"kind": "array", "index": 99}), "no array 99"),
        (lambda m, e: m["state"].update(n_features_in_={"kind": "int", "value": "7"}), "coef_ has shape"),
        (lambda m, e: m["state"].pop("coef_"), "no coefficients"),
        (lambda m, e: e.update({"arrays/0.npy": e["arrays/0.npy"][:-1] + b"!"}), "checksum"),
        (lambda m, e: e.pop("arrays/0.npy"), "does not hold the arrays"),
        (lambda m, e: e.update({"more.bin": b"1"}), "does not hold the arrays"),
    ],
)
def test_a_changed_file_is_refused(saved, change, message):
    _, path = saved
    rewritten(path, change)
    with pytest.raises(skadmm.ModelFileError, match=message):
        skadmm.load(path)


def test_pickled_arrays_are_refused(saved):
    _, path = saved

    def hide_a_pickle(manifest, entries):
        import hashlib

        buffer = io.BytesIO()
        np.save(buffer, np.array([{}], dtype=object), allow_pickle=True)
        entries["arrays/0.npy"] = buffer.getvalue()
        manifest["arrays"][0] = hashlib.sha256(buffer.getvalue()).hexdigest()

    rewritten(path, hide_a_pickle)
    with pytest.raises(skadmm.ModelFileError, match="not an array"):
        skadmm.load(path)


def test_truncated_flipped_and_foreign_files(saved, tmp_path):
    _, path = saved
    whole = path.read_bytes()
    for length in (0, 1, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(skadmm.ModelFileError):
            skadmm.load(path)
    rng = np.random.default_rng(0)
    for position in rng.integers(0, len(whole), 40):
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 0x55]) + whole[position + 1 :])
        # A flip in the zip's own small print (a date) may leave the content whole; then the model must be too.
        try:
            loaded = skadmm.load(path)
        except skadmm.ModelFileError:
            continue
        np.testing.assert_array_equal(loaded.coef_, saved[0].coef_)
    path.write_bytes(pickle.dumps(saved[0].coef_))
    with pytest.raises(skadmm.ModelFileError, match="not a skadmm model"):
        skadmm.load(path)
    np.savez(tmp_path / "other.npz", a=np.ones(3))
    with pytest.raises(skadmm.ModelFileError, match="no manifest"):
        skadmm.load(tmp_path / "other.npz")
    with pytest.raises(FileNotFoundError, match="no such file"):
        skadmm.load(tmp_path / "nowhere")


def test_a_failed_save_leaves_the_old_file(saved, monkeypatch, tmp_path):
    model, path = saved
    before = path.read_bytes()

    def fails(*_):
        raise OSError("disk full")

    monkeypatch.setattr("os.replace", fails)
    with pytest.raises(OSError, match="disk full"):
        model.save(path)
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["model"]
    with pytest.raises(FileNotFoundError, match="no such folder"):
        model.save(tmp_path / "no" / "model")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        model.save(tmp_path)


def test_what_cannot_be_saved_is_named(data, tmp_path):
    X, y = data
    model = FusedLassoRegressor(alpha=0.01, random_state=np.random.default_rng(0)).fit(X, y)
    with pytest.raises(TypeError, match="random_state=Generator cannot be saved"):
        model.save(tmp_path / "model")
    assert not list(tmp_path.iterdir())
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        FusedLassoRegressor().save(tmp_path / "model")


# -- earlier versions, and what is stored by its parameters --------------------------------------------------------


DATA = Path(__file__).parents[1] / "data"


@pytest.mark.parametrize(
    ("name", "cv", "coef"),
    [
        ("cv-0.1.0", "TimeSeriesSplit(gap=0, max_train_size=None, n_splits=3, test_size=None)", 1.01364372),
        ("cv-0.1.1", "KFold(n_splits=3, random_state=1, shuffle=True)", 1.03267556),
    ],
)
def test_files_of_earlier_versions_are_read(name, cv, coef):
    model = skadmm.load(DATA / f"{name}.skadmm")
    assert repr(model.cv) == cv
    assert model.coef_[0] == pytest.approx(coef)
    assert model.result_.status is skadmm.Status.SOLVED
    rng = np.random.default_rng(0)
    table = rng.standard_normal((40, 5))
    model.fit(table, table[:, 0] + 0.1 * rng.standard_normal(40))  # the data it was fitted to
    assert model.coef_[0] == pytest.approx(coef)


def test_a_loss_and_a_graph_of_an_earlier_version():
    model = skadmm.load(DATA / "huber-0.1.0.skadmm")
    assert model.loss == Huber(0.5)
    assert sorted(model.graph.edges) == [("a", "b"), ("b", "c")]
    assert model.graph_.names.tolist() == list("abcde")


def through_json(value):
    writer = codec.Writer()
    text = json.dumps(writer.encode(value, "value"))
    return codec.Reader(writer.arrays).decode(json.loads(text))


@pytest.mark.parametrize("name", list(SPLITTERS))
def test_splitters_are_built_from_their_parameters(name):
    splitter = SPLITTERS[name]()
    assert vars(through_json(splitter)) == vars(splitter)


def test_repeated_splitters_keep_what_they_repeat():
    splitter = RepeatedKFold(n_splits=4, n_repeats=3, random_state=7)
    loaded = through_json(splitter)
    table = np.zeros((12, 1))
    for (train, test), (again, held_out) in zip(splitter.split(table), loaded.split(table), strict=True):
        np.testing.assert_array_equal(train, again)
        np.testing.assert_array_equal(test, held_out)


@pytest.mark.parametrize("stored", [{"class": "KFold", "held": {"split": 1}}, {"class": "PredefinedSplit", "held": {}}])
def test_other_splitters_are_refused(stored):
    writer = codec.Writer()
    with pytest.raises(ValueError, match=r"no parameter 'split'|'PredefinedSplit' is not known"):
        codec.Reader([]).decode({"kind": "splitter"} | stored | {"held": writer.encode(stored["held"], "held")})


def test_a_kind_is_registered_once():
    for kind in ("graph", "int"):
        with pytest.raises(ValueError, match="registered already"):
            codec.register(kind, int, lambda value, encode: {}, lambda stored, decode: 0)


def test_files_know_nothing_of_the_classes_above_them():
    for path in Path(codec.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("skadmm"):
                assert node.module in ("skadmm.io", "skadmm._version"), path

"""Spoilt files and extreme problems: a clean error of ours or a right answer, never anything else.

SKADMM_FUZZ sets how many files of each kind are tried, SKADMM_FUZZ_PROBLEMS how many problems; counts are printed.
"""

import collections
import hashlib
import io
import json
import os
import pickle
import shutil
import tracemalloc
import zipfile

import numpy as np
import pytest
import scipy.sparse
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import skadmm
from skadmm import CheckpointError, FusedLassoRegressor, ModelFileError, Problem, Result, Status, solve
from skadmm.blocks import BlocksError, FileBlocks
from skadmm.blocks.convert import convert, write_blocks
from skadmm.data import read_svmlight
from skadmm.operators import chain, incidence, stack
from skadmm.regularizers import L1, L2, SquaredL2

FILES = int(os.environ.get("SKADMM_FUZZ", "150"))
PROBLEMS = int(os.environ.get("SKADMM_FUZZ_PROBLEMS", "40"))
LARGEST = 100e6
"""Bytes that reading a spoilt file of a few kB may take."""

rng = np.random.default_rng(3)
X = rng.standard_normal((40, 4))
NUMBERS = X @ [1.0, 1.0, 0.0, -1.0] + 0.1 * rng.standard_normal(40)
CLASSES = np.where(NUMBERS > 0, 1.0, -1.0)


def spoilt(content: bytes, seed: int) -> bytes:
    """The content with something changed, cut out, repeated, put in or zeroed."""
    draw = np.random.default_rng(seed)
    data = bytearray(content)
    for _ in range(int(draw.integers(1, 4))):
        size = len(data)
        at = int(draw.integers(0, max(1, size)))
        length = int(draw.integers(1, max(2, min(64, size))))
        match int(draw.integers(0, 7)):
            case 0 if size:
                data[at] ^= 1 << int(draw.integers(8))
            case 1:
                del data[at:]
            case 2:
                del data[at : at + length]
            case 3:
                data[at:at] = data[at : at + length]
            case 4:
                data[at:at] = draw.bytes(length)
            case 5:
                data[at : at + length] = bytes(min(length, max(0, size - at)))
            case _:
                data[at : at + length] = draw.choice([b"-1", b"1e999", b"NaN", b":", b"\n", b"99999999999999999999"])
    return bytes(data)


def spoilt_json(text: bytes, seed: int) -> bytes:
    """JSON with one value exchanged for another, still JSON."""
    draw = np.random.default_rng(seed)
    tree = json.loads(text)
    places = []

    def walk(node):
        for key in node if isinstance(node, dict) else range(len(node)):
            places.append((node, key))
            if isinstance(node[key], (dict, list)):
                walk(node[key])

    walk(tree)
    node, key = places[int(draw.integers(len(places)))]
    values = [None, True, -1, 0, 3, 2**70, 1e308, "", "x", "../../etc/passwd", [], {}, [1]]
    values += [{"kind": "int", "value": "7"}, {"kind": "array", "index": 0}, {"kind": "float", "value": "nan"}]
    if draw.random() < 0.2 and isinstance(node, dict):
        del node[key]
    else:
        node[key] = values[int(draw.integers(len(values)))]
    return json.dumps(tree).encode()


def rewritten(path, seed):
    """The archive at `path` with its manifest spoilt, and the checksum made to fit."""
    with zipfile.ZipFile(path) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    entries["manifest.json"] = spoilt_json(entries["manifest.json"], seed)
    entries["manifest.sha256"] = hashlib.sha256(entries["manifest.json"]).hexdigest().encode()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, entry in entries.items():
            archive.writestr(name, entry)
    return buffer.getvalue()


def bounded(action):
    """The outcome of an action that may not take much memory."""
    tracemalloc.start()
    try:
        return action()
    finally:
        taken = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert taken < LARGEST


def told(kind, counts):
    print(f"{kind}: {sum(counts.values()):,} files, " + ", ".join(f"{n:,} {what}" for what, n in counts.items()))


def test_models(tmp_path):
    model = FusedLassoRegressor(alpha=0.01).fit(X, NUMBERS)
    path = tmp_path / "model"
    model.save(path)
    whole = path.read_bytes()
    counts = collections.Counter()
    for seed in range(FILES):
        path.write_bytes(whole)
        rechecked = seed % 3 == 0
        path.write_bytes(rewritten(path, seed) if rechecked else spoilt(whole, seed))
        try:
            loaded = bounded(lambda: skadmm.load(path))
        except ModelFileError:
            counts["refused"] += 1
            continue
        assert loaded.predict(X).shape == (40,)
        if not rechecked:
            np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
        counts["loaded"] += 1
    told("models", counts)


def test_checkpoints(tmp_path):
    problem = Problem(X, NUMBERS, "squared", psi=L1(0.01))
    run = {"step": 0.1, "passes": 2, "batch_size": 10, "checkpoint_every": 1e9}
    for method in ("sa-iu-admm", "san-admm"):
        path = tmp_path / method
        reference = solve(problem, method, checkpoint=path, **run)
        whole = path.read_bytes()
        counts = collections.Counter()
        for seed in range(FILES // 2):
            path.write_bytes(whole)
            rechecked = seed % 3 == 0
            path.write_bytes(rewritten(path, seed) if rechecked else spoilt(whole, seed))
            try:
                result = bounded(lambda: solve(problem, method, checkpoint=path, **run))  # noqa: B023
            except CheckpointError:
                counts["refused"] += 1
                continue
            assert isinstance(result, Result)
            assert np.isfinite(result.x).all()
            if not rechecked:
                np.testing.assert_array_equal(result.x, reference.x)
            counts["resumed"] += 1
        told(f"checkpoints of {method}", counts)


@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_array])
def test_folders(kind, tmp_path):
    whole, folder = tmp_path / "whole", tmp_path / "f"
    write_blocks(whole, ((kind(X[k : k + 15]), CLASSES[k : k + 15]) for k in range(0, 40, 15)))
    names = sorted(file.name for file in whole.iterdir())
    reference = FileBlocks(whole).rows
    counts = collections.Counter()
    for seed in range(FILES // 2):
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(whole, folder)
        name = names[seed % len(names)]
        if seed % 3 == 0:
            text = spoilt_json((folder / "manifest.json").read_bytes(), seed)
            (folder / "manifest.json").write_bytes(text)
            (folder / "manifest.sha256").write_text(hashlib.sha256(text).hexdigest())
        else:
            (folder / name).write_bytes(spoilt((folder / name).read_bytes(), seed))
        try:
            blocks = bounded(lambda: FileBlocks(folder))
        except BlocksError:
            counts["refused"] += 1
            continue
        for one, other in zip(blocks.rows, reference, strict=True):
            np.testing.assert_array_equal(one, other)
        counts["opened"] += 1
    told(f"folders, {kind.__name__}", counts)


def test_svmlight(tmp_path):
    lines = [
        f"{b:g} " + " ".join(f"{j + 1}:{v:.6g}" for j, v in enumerate(row)) for row, b in zip(X, CLASSES, strict=True)
    ]
    whole = "\n".join(lines).encode() + b"\n"
    path, folder = tmp_path / "a.svm", tmp_path / "f"
    counts = collections.Counter()
    for seed in range(FILES):
        path.write_bytes(spoilt(whole, seed))
        shutil.rmtree(folder, ignore_errors=True)
        try:
            table, target = bounded(lambda: read_svmlight(path))
            assert table.shape[0] == target.size
            counts["read"] += 1
        except ValueError:
            counts["refused"] += 1
        try:
            rows = bounded(lambda: convert(path, folder))
            assert FileBlocks(folder).shape[0] == rows
            counts["converted"] += 1
        except BlocksError:
            counts["not converted"] += 1
    told("svmlight", counts)


# -- what fuzzing has found ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["seconds", "checking", "next_record", "step_passes", "first_touched"])
def test_a_checkpoint_whose_counters_are_no_counts(name, tmp_path):
    problem = Problem(X, NUMBERS, "squared", psi=L1(0.01))
    run = {"step": 0.1, "passes": 2, "batch_size": 10, "checkpoint": tmp_path / "c", "checkpoint_every": 1e9}
    solve(problem, "sa-iu-admm", **run)
    with zipfile.ZipFile(tmp_path / "c") as archive:
        entries = {entry: archive.read(entry) for entry in archive.namelist()}
    manifest = json.loads(entries["manifest.json"])

    def exchange(node):
        for value in node.values() if isinstance(node, dict) else node:
            if isinstance(value, list) and value[:1] == [name]:
                value[1] = {"kind": "float", "value": "1e+308" if name == "first_touched" else "nan"}
            elif isinstance(value, (dict, list)):
                exchange(value)

    exchange(manifest)
    entries["manifest.json"] = json.dumps(manifest).encode()
    entries["manifest.sha256"] = hashlib.sha256(entries["manifest.json"]).hexdigest().encode()
    with zipfile.ZipFile(tmp_path / "c", "w") as archive:
        for entry, content in entries.items():
            archive.writestr(entry, content)
    with pytest.raises(CheckpointError, match="counter"):
        solve(problem, "sa-iu-admm", **run)


def test_an_svmlight_index_beyond_any_number(tmp_path):
    (tmp_path / "a.svm").write_text("1 99999999999999999999:1\n")
    with pytest.raises(ValueError, match="not svmlight text"):
        read_svmlight(tmp_path / "a.svm")


def test_features_that_neither_the_samples_nor_the_penalty_see():
    """Squares of the entries are nothing, and A sees one direction of two: the system of the x-update is singular."""
    problem = Problem(np.array([[1.3e-151, -1.3e-151]]), np.array([6e-151]), "squared", psi=L1(0.0), A=chain(2))
    result = solve(problem, "batch-admm", passes=30, tol=1e-6, step="theory")
    assert np.isfinite(result.x).all()
    assert not np.isnan(result.objective)


@pytest.mark.parametrize("method", ["batch-admm", "batch-iu-admm"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_entries_whose_squares_overflow(method):
    problem = Problem(np.array([[1.26e157, -1.32e7]]), np.array([1e-151]), "squared")
    with np.errstate(all="ignore"):
        result = solve(problem, method, passes=30, tol=1e-6, step="theory")
    assert np.isfinite(result.x).all()
    assert not np.isnan(result.objective)


# -- nothing in a file is executed -------------------------------------------------------------------------------


class Trap:
    """Unpickled, it would leave a mark."""

    def __init__(self, mark):
        self.mark = str(mark)

    def __reduce__(self):
        return os.mkdir, (self.mark,)


def test_pickles_in_any_place_are_not_unpickled(tmp_path):
    mark = tmp_path / "mark"
    bomb = pickle.dumps(Trap(mark))
    buffer = io.BytesIO()
    np.save(buffer, np.array([Trap(mark)], dtype=object), allow_pickle=True)
    model = FusedLassoRegressor(alpha=0.01).fit(X, NUMBERS)
    model.save(tmp_path / "model")
    problem = Problem(X, NUMBERS, "squared", psi=L1(0.01))
    solve(problem, "sa-iu-admm", step=0.1, passes=1, checkpoint=tmp_path / "checkpoint")
    for name in ("model", "checkpoint"):
        path = tmp_path / name
        with zipfile.ZipFile(path) as archive:
            entries = {entry: archive.read(entry) for entry in archive.namelist()}
        for entry in list(entries):
            for bad in (bomb, buffer.getvalue()):
                changed = dict(entries) | {entry: bad}
                if entry.startswith("arrays/"):
                    manifest = json.loads(entries["manifest.json"])
                    number = int(entry.removeprefix("arrays/").removesuffix(".npy"))
                    manifest["arrays"][number] = hashlib.sha256(bad).hexdigest()
                    changed["manifest.json"] = json.dumps(manifest).encode()
                    changed["manifest.sha256"] = hashlib.sha256(changed["manifest.json"]).hexdigest().encode()
                with zipfile.ZipFile(path, "w") as archive:
                    for one, data in changed.items():
                        archive.writestr(one, data)
                with pytest.raises((ModelFileError, CheckpointError)):
                    skadmm.load(path) if name == "model" else solve(problem, "sa-iu-admm", step=0.1, checkpoint=path)
        path.write_bytes(bomb)
        with pytest.raises((ModelFileError, CheckpointError)):
            skadmm.load(path) if name == "model" else solve(problem, "sa-iu-admm", step=0.1, checkpoint=path)
    write_blocks(tmp_path / "f", [(X, CLASSES)])
    for file in (tmp_path / "f").iterdir():
        content = file.read_bytes()
        file.write_bytes(bomb)
        with pytest.raises(BlocksError):
            FileBlocks(tmp_path / "f")
        file.write_bytes(content)
    assert not mark.exists()


def test_names_in_an_archive_lead_nowhere(tmp_path):
    model = FusedLassoRegressor(alpha=0.01).fit(X, NUMBERS)
    path = tmp_path / "inside" / "model"
    path.parent.mkdir()
    model.save(path)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("../escaped", b"1")
        archive.writestr("/tmp/escaped-absolutely", b"1")
    with pytest.raises(ModelFileError, match="does not hold the arrays"):
        skadmm.load(path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["inside"]


def test_the_package_calls_nothing_that_executes_data():
    """No pickle, eval, exec, or array loader that would unpickle, anywhere in the package."""
    import ast
    from pathlib import Path

    bad = {"eval", "exec", "compile", "__import__"}
    package = Path(skadmm.__file__).parent
    for path in package.rglob("*.py"):
        if path == package / "_compile.py":  # Numba keeps compiled kernels in its own way, in its own folder
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                names = [alias.name for alias in node.names] + [getattr(node, "module", None) or ""]
                assert not {name.split(".")[0] for name in names} & {"pickle", "marshal", "shelve", "dill"}, path
            if isinstance(node, ast.Call):
                called = node.func
                assert not (isinstance(called, ast.Name) and called.id in bad), path
                allowed = [k.value for k in node.keywords if k.arg == "allow_pickle"]
                assert all(isinstance(value, ast.Constant) and value.value is False for value in allowed), path
                if isinstance(called, ast.Attribute) and called.attr == "load" and ast.unparse(called.value) == "np":
                    assert allowed, path


# -- extreme problems --------------------------------------------------------------------------------------------

SCALES = [1e-150, 1e-30, 1e-8, 1.0, 1e8, 1e30, 1e150]


@st.composite
def extreme(draw):
    n, d = draw(st.sampled_from([1, 2, 3, 17, 40])), draw(st.sampled_from([1, 2, 5, 12]))
    make = np.random.default_rng(draw(st.integers(0, 2**31)))
    table = make.standard_normal((n, d)) * draw(st.sampled_from(SCALES))
    if draw(st.booleans()):
        table[:, make.integers(d)] *= draw(st.sampled_from(SCALES))
    if draw(st.booleans()):
        table[make.integers(n)] = 0.0
    if draw(st.booleans()):
        table[:, make.integers(d)] = 0.0
    if draw(st.booleans()):
        table[:] = table[make.integers(n, size=n)]
    loss = draw(st.sampled_from(["logistic", "squared", "squared-hinge", "huber"]))
    numbers = make.standard_normal(n) * draw(st.sampled_from(SCALES))
    target = numbers if loss in ("squared", "huber") else np.where(numbers > 0, 1.0, -1.0)
    strength = draw(st.sampled_from([0.0, 1e-12, 1e-3, 1.0, 1e6]))
    kind = draw(st.sampled_from(["none", "identity", "chain", "stacked", "disconnected", "ridge", "group"]))
    model = {
        "none": {},
        "identity": {"psi": L1(strength)},
        "chain": {"psi": L1(strength), "A": chain(d)} if d > 1 else {"psi": L1(strength)},
        "stacked": {"psi": L1(strength), "A": stack(chain(d), "identity")} if d > 1 else {"psi": L1(strength)},
        "disconnected": {"psi": L1(strength), "A": incidence([(0, 1)], n_features=d)} if d > 1 else {},
        "ridge": {"omega": SquaredL2(strength), "psi": L1(strength)},
        "group": {"psi": L2(strength)},
    }[kind]
    sparse = draw(st.booleans())
    method = draw(st.sampled_from(["auto", "auto", "sa-iu-admm", "batch-admm"]))
    return scipy.sparse.csr_array(table) if sparse else table, target, loss, model, method


outcomes: collections.Counter = collections.Counter()


@settings(max_examples=PROBLEMS, deadline=None, derandomize=PROBLEMS <= 40, database=None,
          suppress_health_check=list(HealthCheck))  # fmt: skip
@given(extreme())
def check_problem(case):
    table, target, loss, model, method = case
    with np.errstate(all="ignore"):
        try:
            problem = Problem(table, target, loss, **model)
        except ValueError as error:
            assert "class(es)" in str(error)  # noqa: PT017  one class only
            outcomes["refused"] += 1
            return
        result = solve(problem, method, passes=30, tol=1e-6, step="theory" if method != "auto" else "auto")
    outcomes[str(result.status)] += 1
    assert isinstance(result.status, Status)
    for array in (result.x, result.y, result.dual, result.x_average):
        assert np.isfinite(array).all()
    assert not np.isnan(result.objective)
    if result.status is Status.SOLVED and result.stopped_on == "gap":
        assert 0 <= result.gap <= 1e-6


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_extreme_problems():
    check_problem()
    print(f"problems: {sum(outcomes.values()):,}, " + ", ".join(f"{n:,} {what}" for what, n in outcomes.items()))

"""Spoilt files: a clean error of ours or a right answer, never anything else.

SKADMM_FUZZ sets how many files of each kind are tried; counts are printed.
"""

import collections
import hashlib
import json
import os
import shutil
import tracemalloc

import archives
import numpy as np
import pytest
import scipy.sparse

import skadmm
from skadmm import CheckpointError, FusedLassoRegressor, ModelFileError, Problem, Result, solve
from skadmm.backends import BlocksError, FileBlocks
from skadmm.backends.convert import convert, write_blocks
from skadmm.datasets import read_svmlight
from skadmm.regularizers import L1

FILES = int(os.environ.get("SKADMM_FUZZ", "150"))
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


def spoil(path, whole, seed):
    """Write the archive `whole` to `path`, spoilt; whether its checksums fit all the same."""
    path.write_bytes(whole)
    if seed % 3:
        path.write_bytes(spoilt(whole, seed))
        return False
    entries = archives.entries_of(path)
    archives.write(path, archives.with_manifest(entries, spoilt_json(entries["manifest.json"], seed)))
    return True


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
        rechecked = spoil(path, whole, seed)
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
            rechecked = spoil(path, whole, seed)
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
    entries = archives.entries_of(tmp_path / "c")
    manifest = json.loads(entries["manifest.json"])

    def exchange(node):
        for value in node.values() if isinstance(node, dict) else node:
            if isinstance(value, list) and value[:1] == [name]:
                value[1] = {"kind": "float", "value": "1e+308" if name == "first_touched" else "nan"}
            elif isinstance(value, (dict, list)):
                exchange(value)

    exchange(manifest)
    archives.write(tmp_path / "c", archives.with_manifest(entries, json.dumps(manifest).encode()))
    with pytest.raises(CheckpointError, match="counter"):
        solve(problem, "sa-iu-admm", **run)


def test_an_svmlight_index_beyond_any_number(tmp_path):
    (tmp_path / "a.svm").write_text("1 99999999999999999999:1\n")
    with pytest.raises(ValueError, match="not svmlight text"):
        read_svmlight(tmp_path / "a.svm")

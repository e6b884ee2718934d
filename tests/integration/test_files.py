"""Rows in a folder: the same numbers as in memory, made from large files in bounded memory, refused when damaged."""

import ctypes
import gzip
import hashlib
import itertools
import json
import mmap
import os
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from skadmm import FusedLassoClassifier, FusedLassoClassifierCV, FusedLassoRegressor, Problem, solve
from skadmm.backends import BlocksError, FileBackend, FileBlocks, local
from skadmm.backends.convert import convert, write_blocks
from skadmm.cli import run as command
from skadmm.operators import chain, stack
from skadmm.regularizers import L1

N, D = 700, 5
rng = np.random.default_rng(11)
X = np.round(rng.standard_normal((N, D)), 3) * (rng.random((N, D)) < 0.7)
X[-1] = 1.0
TARGET = np.where(X[:, 0] + 0.5 * rng.standard_normal(N) > 0, 1.0, -1.0)
WEIGHT = rng.uniform(0.5, 2.0, N)
A = stack(chain(D), "identity")
KINDS = {"dense": np.asarray, "csr": scipy.sparse.csr_array}


def folder_of(path, kind="dense", step=150, **options):
    make = KINDS[kind]
    rows = ((make(X[k : k + step]), TARGET[k : k + step], WEIGHT[k : k + step]) for k in range(0, N, step))
    write_blocks(path, rows, **options)
    return path


@pytest.fixture
def small_reads(monkeypatch):
    """Chunks of 64 rows."""
    monkeypatch.setattr(local, "ROWS_PER_CHUNK", (64, 64))


@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize(
    "method", ["sa-admm", "sa-iu-admm", "saga-admm", "opg-admm", "batch-admm", "batch-iu-admm", "san-admm"]
)
def test_iterates_are_those_in_memory(method, kind, tmp_path, small_reads):
    here = Problem(KINDS[kind](X), TARGET, psi=L1(0.01), A=A, sample_weight=WEIGHT)
    there = Problem(folder_of(tmp_path / "f", kind), psi=L1(0.01), A=A)
    seen = {True: [], False: []}
    options = {"step": 0.1, "batch_size": 50, "passes": 6, "record_every": 1e-9, "tol": 1e-9}
    results = [
        solve(p, method, callback=lambda s, p=p: seen[p is here].append(np.concatenate([s.x, s.y, s.dual])), **options)
        for p in (here, there)
    ]
    # san-admm reads files once in a step, and adds up in another order; to others the rows are the same array.
    np.testing.assert_allclose(np.array(seen[True]), np.array(seen[False]), rtol=0, atol=1e-12 * (method == "san-admm"))
    assert results[0].gap == pytest.approx(results[1].gap, rel=0, abs=1e-14 * (method == "san-admm"))


def test_chunks_do_not_show(monkeypatch):
    """All in one sweep, or 64 rows at a time: the same to rounding."""
    whole = solve(Problem(X, TARGET, psi=L1(0.01), A=A), "batch-iu-admm", step=0.1, passes=10)
    second = solve(Problem(X, TARGET, psi=L1(0.01), A=A), "san-admm", tol=1e-9, passes=20)
    monkeypatch.setattr(local, "ROWS_PER_CHUNK", (64, 64))
    parts = solve(Problem(X, TARGET, psi=L1(0.01), A=A), "batch-iu-admm", step=0.1, passes=10)
    np.testing.assert_allclose(parts.x, whole.x, atol=1e-13)
    assert parts.gap == pytest.approx(whole.gap)
    np.testing.assert_allclose(
        solve(Problem(X, TARGET, psi=L1(0.01), A=A), "san-admm", tol=1e-9, passes=20).x, second.x, atol=1e-11
    )


def test_estimators_take_folders(tmp_path):
    folder = folder_of(tmp_path / "f", ones=True)
    for model in (FusedLassoClassifier, FusedLassoRegressor):
        there = model(alpha=0.01, tol=1e-8).fit(folder)
        here = model(alpha=0.01, tol=1e-8).fit(X, TARGET, WEIGHT)
        np.testing.assert_allclose(there.coef_, here.coef_, atol=1e-5)
        np.testing.assert_allclose(there.intercept_, here.intercept_, atol=1e-5)
        np.testing.assert_allclose(there.predict(folder), there.predict(X))
        assert there.n_features_in_ == D
    with pytest.raises(ValueError, match="fit_intercept=False: the folder has a column of ones"):
        FusedLassoClassifier(fit_intercept=False).fit(folder)
    there = FusedLassoClassifierCV(alphas=4, cv=3, tol=1e-10).fit(folder)
    here = FusedLassoClassifierCV(alphas=4, cv=3, tol=1e-10).fit(X, TARGET, WEIGHT)
    np.testing.assert_allclose(there.cv_losses_, here.cv_losses_, rtol=1e-7)
    np.testing.assert_allclose(there.coef_, here.coef_, atol=1e-6)


# -- conversion ------------------------------------------------------------------------------------------------


def written(tmp_path, ending):
    path = tmp_path / f"big{ending}"
    frame = pd.DataFrame(X, columns=list("abcde")).assign(target=TARGET)
    if ending.startswith(".csv"):
        frame.to_csv(path, index=False)
    elif ending == ".tsv":
        frame.to_csv(path, index=False, sep="\t")
    elif ending == ".parquet":
        frame.to_parquet(path, row_group_size=200)
    else:
        entries = [" ".join(f"{j + 1}:{v:.17g}" for j, v in enumerate(row) if v) for row in X]
        lines = [f"{b:g} {row}" for row, b in zip(entries, TARGET, strict=True)]
        text = "\n".join(lines).encode() + b"\n"
        path.write_bytes(gzip.compress(text) if ending.endswith(".gz") else text)
    return path


@pytest.mark.parametrize("ending", [".svm", ".svm.gz", ".csv", ".csv.xz", ".tsv", ".parquet"])
def test_every_format_becomes_the_same_rows(ending, tmp_path, capsys):
    source = written(tmp_path, ending)
    assert command(["data", "convert", str(source), str(tmp_path / "f"), "--block-rows", "64", "--quiet"]) == 0
    assert "700 rows" in capsys.readouterr().out
    blocks = FileBlocks(tmp_path / "f")
    table = blocks.rows.values if hasattr(blocks.rows, "values") else scipy.sparse.csr_array(
        (blocks.rows.data, blocks.rows.indices, blocks.rows.indptr), shape=blocks.shape
    ).toarray()  # fmt: skip
    np.testing.assert_array_equal(table, X)
    np.testing.assert_array_equal(blocks.target, TARGET)
    if not ending.startswith(".svm"):
        assert blocks.names == list("abcde")
    assert not list((tmp_path / "f").glob("*.part"))
    assert not (tmp_path / "f" / "progress.json").exists()


@pytest.mark.parametrize("ending", [".svm", ".csv.xz", ".parquet"])
def test_a_stopped_conversion_goes_on(ending, tmp_path, monkeypatch):
    source = written(tmp_path, ending)
    convert(source, tmp_path / "whole", block_rows=64)
    from skadmm.backends import writer as module

    usual = module.BlockWriter.write

    for stop in (3, 2):
        count = []

        def fragile(self, block, stop=stop, count=count):
            if len(count) == stop:
                with open(self.folder / "values.npy", "ab") as file:
                    file.write(b"half a block")
                raise KeyboardInterrupt
            count.append(1)
            usual(self, block)

        monkeypatch.setattr(module.BlockWriter, "write", fragile)
        with pytest.raises(KeyboardInterrupt):
            convert(source, tmp_path / "parts", block_rows=64)
        monkeypatch.setattr(module.BlockWriter, "write", usual)
        with pytest.raises(BlocksError, match="not finished"):
            FileBlocks(tmp_path / "parts")
    with pytest.raises(BlocksError, match="with other options"):
        convert(source, tmp_path / "parts", block_rows=65)
    assert convert(source, tmp_path / "parts", block_rows=64) == N
    for file in sorted((tmp_path / "whole").iterdir()):
        assert file.read_bytes() == (tmp_path / "parts" / file.name).read_bytes(), file.name
    with pytest.raises(BlocksError, match="finished already"):
        convert(source, tmp_path / "parts", block_rows=64)


def test_conversion_takes_little_memory(tmp_path):
    """About 60 MB of text through a few MB of memory."""
    source = tmp_path / "big.csv"
    line = ",".join(["0.123456789"] * 40)
    with open(source, "w") as file:
        file.write(",".join(f"c{k}" for k in range(40)) + "\n")
        for _ in range(130):
            file.write((line + "\n") * 1000)
    code = (
        "import resource, sys; from pathlib import Path; import pandas; from skadmm.backends import readers; "
        "from skadmm.backends.convert import convert; readers.CHUNK_BYTES = 1 << 20; "
        "import skadmm.backends.svmlight; before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss; "
        "convert(Path(sys.argv[1]), Path(sys.argv[2])); "
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"
    )
    arguments = [sys.executable, "-c", code, str(source), str(tmp_path / "f")]
    kilobytes = int(subprocess.run(arguments, check=True, capture_output=True, text=True).stdout)
    assert kilobytes < 30_000
    assert os.path.getsize(tmp_path / "f" / "values.npy") == 128 + 130_000 * 39 * 8


def test_pages_are_given_back(tmp_path):
    """A folder of 80 MB is fitted while a few MB of it are in memory."""
    rows = np.random.default_rng(0).standard_normal((5000, 50))
    target = np.where(rows[:, 0] > 0, 1.0, -1.0)
    write_blocks(tmp_path / "f", ((rows, target) for _ in range(40)))
    code = (
        "import resource, sys, threading, time; import numpy as np; from skadmm import Problem, solve; "
        "from skadmm.backends import local; "
        "from skadmm.regularizers import L1; local.ENTRIES_PER_CHUNK = 250_000; "
        "few = np.random.default_rng(0).standard_normal((9000, 50)); "
        "small = Problem(few, np.tile([1., -1.], 4500), psi=L1(0.01)); "
        "solve(small, 'san-admm', passes=3); solve(small, 'batch-iu-admm', step=0.1, passes=3); "
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss; "
        "large = Problem(sys.argv[1], psi=L1(0.01)); "
        "solve(large, 'batch-iu-admm', step=0.1, passes=3); solve(large, 'san-admm', passes=3, tol=1e-3); "
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"
    )
    arguments = [sys.executable, "-c", code, str(tmp_path / "f")]
    kilobytes = int(subprocess.run(arguments, check=True, capture_output=True, text=True).stdout)
    assert kilobytes < 75_000  # sixteen vectors over 200,000 samples are 26 MB of it


def in_cache(array):
    """Which pages of a mapped array the system holds."""
    pages = -(-array.nbytes // mmap.PAGESIZE)
    held = (ctypes.c_ubyte * pages)()
    start = ctypes.c_void_p(array.__array_interface__["data"][0])
    if ctypes.CDLL(None, use_errno=True).mincore(start, ctypes.c_size_t(array.nbytes), held) != 0:
        pytest.skip("the system does not tell which pages it holds")
    return np.array(held) & 1


@pytest.mark.skipif(not hasattr(os, "posix_fadvise"), reason="the system cannot be told to drop a file")
@pytest.mark.parametrize("kind", list(KINDS))
def test_rows_that_will_be_read_are_fetched(kind, tmp_path):
    """These, and not the rest of the file."""
    rows = KINDS[kind](np.random.default_rng(0).standard_normal((20_000, 50)))
    write_blocks(tmp_path / "f", [(rows, np.tile([1.0, -1.0], 10_000))])
    there = Problem(tmp_path / "f", psi=L1(0.01))
    arrays = {"values.npy": there.rows.values} if kind == "dense" else {
        "values.npy": there.rows.data, "indices.npy": there.rows.indices,
    }  # fmt: skip
    there.backend.folder.release()
    for name, array in arrays.items():
        with open(tmp_path / "f" / name, "rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        if in_cache(array).any():
            pytest.skip("the file system does not drop a file")
    there.backend.prefetch(np.array([3]), 1000)  # 400 kB
    for array in arrays.values():
        few = 50 * array.itemsize
        wanted = slice(3000 * few // mmap.PAGESIZE, -(-4000 * few // mmap.PAGESIZE))
        for _ in range(100):
            if in_cache(array)[wanted].all():
                break
            time.sleep(0.05)
        assert in_cache(array)[wanted].all()
        assert in_cache(array).sum() == wanted.stop - wanted.start
    there.backend.prefetch(np.array([5]), 100)  # too small
    assert all(in_cache(array).mean() < 0.1 for array in arrays.values())


def test_steps_say_what_they_will_read(tmp_path, monkeypatch):
    announced = []
    usual = FileBackend.prefetch
    monkeypatch.setattr(
        FileBackend,
        "prefetch",
        lambda self, order, size: announced.append((order.tolist(), size)) or usual(self, order, size),
    )
    there = Problem(folder_of(tmp_path / "f"), psi=L1(0.01))
    solve(there, "sa-iu-admm", step=0.1, batch_size=100, passes=3, sampler="cyclic")
    blocks = list(itertools.chain.from_iterable(order for order, _ in announced))
    assert blocks == [0, *range(7), *range(7)]  # the table, once filled, was a pass: the first step waited
    assert {size for _, size in announced} == {100}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\nx,1\n", "column 'a' holds 'x', which is not a number"),
        ("a,b\n1,\n", "NaN or infinity"),
        ("a\n1\n", "two or more columns"),
        ("a,a\n1,2\n", "two columns named .a."),
        ("", "two or more columns|no first line"),
        ("a,b\n", "no rows"),
    ],
)
def test_tables_that_are_not_tables_are_refused(text, message, tmp_path):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(BlocksError, match=message):
        convert(tmp_path / "t.csv", tmp_path / "f")


def test_svmlight_that_is_not(tmp_path):
    for text, message in [
        ("1 1:1\n1 2:3 x\n", "after row 1: "),
        ("1 1:1\n1 0:1\n", "column 0"),
        ("1 4:1\n", "--columns says 3"),
    ]:
        (tmp_path / "t.svm").write_text(text)
        with pytest.raises(BlocksError, match=message):
            convert(tmp_path / "t.svm", tmp_path / "f", columns=3, block_rows=1)
        shutil.rmtree(tmp_path / "f", ignore_errors=True)
    with pytest.raises(BlocksError, match="file extension is not known"):
        convert((tmp_path / "t.svm").rename(tmp_path / "t.doc"), tmp_path / "f")


# -- damage ----------------------------------------------------------------------------------------------------


def changed(folder, change):
    """The folder with its manifest changed, and a checksum to match."""
    manifest = json.loads((folder / "manifest.json").read_text())
    change(manifest)
    text = json.dumps(manifest).encode()
    (folder / "manifest.json").write_bytes(text)
    (folder / "manifest.sha256").write_text(hashlib.sha256(text).hexdigest())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: m.update(format="other"), "not a manifest of blocks"),
        (lambda m: m.update(version=3), "version 3 is not known"),
        (lambda m: m.update(rows=701), "do not add up"),
        (lambda m: m.update(rows=True), "no rows"),
        (lambda m: m.update(columns=4), "another width"),
        (lambda m: m.update(columns=2**40), "no columns"),
        (lambda m: m.update(kind="pickle"), "kind 'pickle'"),
        (lambda m: m.update(dtype="|O"), "not known"),
        (lambda m: m.update(weight=False), "lacks a checksum"),
        (lambda m: m.pop("target"), "'target'"),
        (lambda m: m.update(names=["a"]), "1 names for 5"),
        (lambda m: m["blocks"][0].update(rows=-1), "no rows"),
        (lambda m: m["blocks"][1]["sha256"].update(values="0" * 64), "block 1 of values.npy has changed"),
        (lambda m: m["blocks"][0].update(rows=149, entries=149 * 5), "do not add up"),
    ],
)
def test_a_changed_manifest_is_refused(change, message, tmp_path):
    folder = folder_of(tmp_path / "f")
    changed(folder, change)
    with pytest.raises(BlocksError, match=message):
        FileBlocks(folder)


def test_changed_files_are_refused(tmp_path):
    folder = folder_of(tmp_path / "f", "csr")
    for name in ("values.npy", "indices.npy", "indptr.npy", "target.npy", "weight.npy", "manifest.json"):
        whole = (folder / name).read_bytes()
        for spoilt in (whole[:-1], whole + b"0", whole[:40] + bytes([whole[40] ^ 1]) + whole[41:], b""):
            (folder / name).write_bytes(spoilt)
            with pytest.raises(BlocksError):
                FileBlocks(folder)
        (folder / name).unlink()
        with pytest.raises(BlocksError):
            FileBlocks(folder)
        (folder / name).write_bytes(whole)
    FileBlocks(folder)


def test_files_elsewhere_are_not_followed(tmp_path):
    """A folder cannot lead out of itself: its file names are fixed, and links are refused."""
    folder = folder_of(tmp_path / "f")
    shutil.move(folder / "values.npy", tmp_path / "outside.bin")
    (folder / "values.npy").symlink_to(tmp_path / "outside.bin")
    with pytest.raises(BlocksError, match="it is a link"):
        FileBlocks(folder)
    (folder / "values.npy").unlink()
    changed(folder, lambda m: m.update(values="../outside.bin", path="../outside.bin"))
    with pytest.raises(BlocksError, match=r"no values\.npy"):
        FileBlocks(folder)


def test_a_killed_conversion_goes_on(tmp_path):
    source = written(tmp_path, ".csv")
    code = (
        "import sys, time; from pathlib import Path; from skadmm.backends.convert import convert; "
        "convert(Path(sys.argv[1]), Path(sys.argv[2]), block_rows=5, progress=lambda *_: time.sleep(0.02))"
    )
    process = subprocess.Popen([sys.executable, "-c", code, str(source), str(tmp_path / "f")])
    deadline = time.monotonic() + 60
    while not (tmp_path / "f" / "values.npy").exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    time.sleep(0.2)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert convert(source, tmp_path / "f", block_rows=5) == N
    np.testing.assert_array_equal(FileBlocks(tmp_path / "f").rows.values, X)


def test_checkpoints_of_folders(tmp_path):
    there = Problem(folder_of(tmp_path / "f"), psi=L1(0.01), A=A)
    run = {"method": "sa-iu-admm", "step": 0.1, "passes": 4, "batch_size": 10}
    solve(there, checkpoint=tmp_path / "c", **(run | {"passes": 2}))
    np.testing.assert_array_equal(solve(there, checkpoint=tmp_path / "c", **run).x, solve(there, **run).x)


# -- the files themselves ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", list(KINDS))
def test_numpy_reads_the_files(kind, tmp_path):
    folder = folder_of(tmp_path / "f", kind)
    np.testing.assert_array_equal(np.load(folder / "target.npy"), TARGET)
    np.testing.assert_array_equal(np.load(folder / "weight.npy"), WEIGHT)
    values = np.load(folder / "values.npy", mmap_mode="r")
    if kind == "dense":
        np.testing.assert_array_equal(values, X)
    else:
        parts = values, np.load(folder / "indices.npy"), np.load(folder / "indptr.npy")
        np.testing.assert_array_equal(scipy.sparse.csr_array(parts, shape=X.shape).toarray(), X)


def as_version_1(folder):
    """The folder as version 1 wrote it: bare numbers in files named .bin."""
    for file in folder.glob("*.npy"):
        file.with_suffix(".bin").write_bytes(file.read_bytes()[128:])
        file.unlink()
    changed(folder, lambda manifest: (manifest.pop("labels"), manifest.update(version=1)))


@pytest.mark.parametrize("kind", list(KINDS))
def test_folders_of_version_1_still_open(kind, tmp_path):
    folder = folder_of(tmp_path / "f", kind)
    wanted = solve(Problem(folder, psi=L1(0.01), A=A), tol=1e-8)
    as_version_1(folder)
    np.testing.assert_array_equal(solve(Problem(folder, psi=L1(0.01), A=A), tol=1e-8).x, wanted.x)


def test_a_changed_header_is_refused(tmp_path):
    folder = folder_of(tmp_path / "f")
    content = (folder / "values.npy").read_bytes()
    (folder / "values.npy").write_bytes(content.replace(b"'<f8'", b"'<f4'", 1))
    with pytest.raises(BlocksError, match="its header is not that of"):
        FileBlocks(folder)


# -- classes that are texts --------------------------------------------------------------------------------------

TEXTS = np.where(TARGET > 0, "sick", "healthy")


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_classes_may_be_texts(ending, tmp_path):
    frame = pd.DataFrame(X, columns=list("abcde")).assign(state=TEXTS)
    path = tmp_path / f"t{ending}"
    frame.to_csv(path, index=False) if ending == ".csv" else frame.to_parquet(path, row_group_size=200)
    convert(path, tmp_path / "f", ones=True, block_rows=97)
    assert FileBlocks(tmp_path / "f").target.tolist() == TEXTS.tolist()
    there = FusedLassoClassifier(alpha=0.01, tol=1e-10).fit(tmp_path / "f")
    here = FusedLassoClassifier(alpha=0.01, tol=1e-10).fit(X, TEXTS)
    assert there.classes_.tolist() == ["healthy", "sick"]
    np.testing.assert_allclose(there.coef_, here.coef_, atol=1e-7)
    assert there.predict(tmp_path / "f").tolist() == here.predict(X).tolist()


def test_targets_that_change_from_numbers_to_texts_are_refused(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n1,x\n")
    with pytest.raises(BlocksError, match="targets are texts"):
        convert(tmp_path / "t.csv", tmp_path / "f", block_rows=1)


def test_numbers_of_classes_that_are_not_there_are_refused(tmp_path):
    write_blocks(tmp_path / "f", [(X, TEXTS)])
    changed(tmp_path / "f", lambda manifest: manifest.update(labels=["healthy"]))
    with pytest.raises(BlocksError, match="numbers that no class has"):
        FileBlocks(tmp_path / "f")

"""Kernels in the package: used where they fit, ignored where they do not, and never a reason to crash."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from skadmm import cli
from skadmm.kernels import compile as compiling
from skadmm.kernels import rows, shipped
from skadmm.warm_up import KINDS, warm_up

FIT = """
import sys
from pathlib import Path
from types import SimpleNamespace
from skadmm.kernels import shipped
shipped.FOLDER = Path(sys.argv[1])
import numpy as np
import skadmm
rng = np.random.default_rng(0)
X = rng.standard_normal((50, 6))
problem = skadmm.Problem(X, X @ [1.0, 1.0, 0.0, 0.0, -1.0, 0.0], loss="squared", psi="l1")
result = skadmm.solve(problem, "sa-iu-admm", rho=0.1, step=0.1, passes=5)
print(len(shipped.used), shipped.summary(), result.x.tobytes().hex(), sep="|")
"""
CPU, FEATURES = shipped.baseline()


def run(folder: Path, cache: Path, **settings: str) -> tuple[int, str, str, int]:
    """Kernels taken from `folder`, what is said of them, the bits of a solution, and kernels written to `cache`."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("NUMBA_", "SKADMM_"))}
    cache.mkdir(exist_ok=True)
    process = subprocess.run([sys.executable, "-c", FIT, str(folder)], stdout=subprocess.PIPE, check=True, text=True,
                             env=clean | {"NUMBA_CACHE_DIR": str(cache)} | settings)  # fmt: skip
    used, said, bits = process.stdout.strip().split("|")
    return int(used), said, bits, len(list(cache.rglob("*.nbc")))


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Kernels for one small fit, as a wheel would carry them, and the bits that the compiling process found."""
    folder, cache = tmp_path_factory.mktemp("kernels"), tmp_path_factory.mktemp("cache")
    target = {"NUMBA_CPU_NAME": CPU, "NUMBA_CPU_FEATURES": ""}
    _, _, bits, compiled = run(folder, cache, SKADMM_RECORD_KERNELS=str(folder), **target)
    assert shipped.write_manifest(folder, CPU, FEATURES) == compiled > 0
    return folder, cache, bits


def copied(built, tmp_path: Path) -> Path:
    folder = tmp_path / "kernels"
    folder.mkdir()
    for file in built[0].iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    return folder


def altered(folder: Path, **changes) -> None:
    """Another manifest, with a checksum that is right."""
    manifest = json.loads((folder / shipped.MANIFEST).read_bytes().partition(b"\n")[2])
    body = json.dumps(manifest | changes).encode()
    (folder / shipped.MANIFEST).write_bytes(hashlib.sha256(body).hexdigest().encode() + b"\n" + body)


def test_kernels_of_the_package_are_used_and_nothing_is_compiled(built, tmp_path):
    used, said, _, compiled = run(built[0], tmp_path / "cache")
    assert used > 0
    assert compiled == 0
    assert said.endswith(f"in the package, for {CPU}")


def test_the_same_bits_compiled_and_loaded(built, tmp_path):
    """For one processor name: in the process that compiled, from the user's cache and from the package."""
    folder, cache, bits = built
    target = {"NUMBA_CPU_NAME": CPU, "NUMBA_CPU_FEATURES": ""}
    assert run(tmp_path / "nothing", cache, **target)[2] == bits
    assert run(folder, tmp_path / "a")[2] == bits
    assert run(folder, tmp_path / "b", **target)[2] == bits


def test_natively_compiled_kernels_agree_to_rounding(built, tmp_path):
    """Wider registers sum in another order, so other instruction sets may differ in the last digits."""
    _, _, native, compiled = run(built[0], tmp_path / "cache", SKADMM_SHIPPED_KERNELS="0")
    assert compiled > 0
    ours, theirs = (np.frombuffer(bytes.fromhex(bits)) for bits in (built[2], native))
    np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-12)


def test_the_users_cache_comes_first(built, tmp_path):
    folder, cache, _ = built
    used, _, _, compiled = run(folder, cache, NUMBA_CPU_NAME=CPU, NUMBA_CPU_FEATURES="")
    assert used == 0
    assert compiled == len(list(folder.glob("*.bin")))


@pytest.mark.parametrize(
    ("name", "value"),
    [("numba", "0.1"), ("llvmlite", "0.1"), ("python", "cpython-20"), ("numpy", "0"), ("platform", "x")],
)
def test_other_versions_are_refused_in_one_line(built, tmp_path, name, value):
    folder = copied(built, tmp_path)
    altered(folder, environment=shipped.environment() | {name: value})
    found = shipped.read(folder)
    assert not found.checksums
    assert found.refusal.startswith(f"the kernels in the package are for {name} {value}, this is ")


def test_a_processor_without_the_features_is_refused(built, tmp_path):
    folder = copied(built, tmp_path)
    altered(folder, features=[*FEATURES, "antigravity"])
    found = shipped.read(folder)
    assert not found.checksums
    assert found.refusal.endswith("and this processor has no antigravity")


@pytest.mark.parametrize("changes", [{"CPU_NAME": "nocona"}, {"CPU_FEATURES": "+sse2"}, {"ENABLE_AVX": 0}], ids=str)
def test_a_processor_that_the_user_chose_is_respected(built, monkeypatch, changes):
    import numba

    if "ENABLE_AVX" in changes and "avx" not in FEATURES:
        pytest.skip("the baseline has no AVX")
    for name, value in changes.items():
        monkeypatch.setattr(numba.config, name, value)
    assert not shipped.read(built[0]).checksums


@pytest.fixture
def asked(built, tmp_path, monkeypatch):
    """Ask the loader for every kernel of a changed copy; what it was willing to unpickle."""
    folder = copied(built, tmp_path)
    loaded: list[bytes] = []
    monkeypatch.setattr(shipped, "FOLDER", folder)
    monkeypatch.setattr(compiling.pickle, "loads", lambda data: loaded.append(data) or ())

    def ask() -> list[bytes]:
        loaded.clear()
        shipped.shipped.cache_clear()
        wheel = compiling._Wheel(rows.DenseRows)
        for file in built[0].glob("*.bin"):
            monkeypatch.setattr(wheel.__class__, "key", lambda self, sig, key=file.stem: key)
            assert wheel.load((), SimpleNamespace(refresh=lambda: None)) is None
        return list(loaded)

    yield folder, ask
    shipped.shipped.cache_clear()


def test_2000_mutations_never_reach_the_loader(built, asked):
    """Whatever bytes change, appear or are missing: no exception, and only bytes that were built are unpickled."""
    folder, ask = asked
    original = {file.name: file.read_bytes() for file in built[0].iterdir()}
    genuine = {data for name, data in original.items() if name.endswith(".bin")}
    rng = np.random.default_rng(0)
    names = sorted(original)
    for turn in range(2000):
        name = shipped.MANIFEST if turn % 2 else names[rng.integers(len(names))]
        data = bytearray(original[name])
        kind, at = rng.integers(5), int(rng.integers(len(data)))
        if kind == 0:
            data[at] ^= 1 << int(rng.integers(8))
        elif kind == 1:
            del data[at:]
        elif kind == 2:
            data[at:at] = rng.bytes(int(rng.integers(1, 50)))
        elif kind == 3:
            data = bytearray(original[names[rng.integers(len(names))]])
        else:
            data = bytearray(rng.bytes(int(rng.integers(200))))
        (folder / name).write_bytes(data)
        assert set(ask()) <= genuine
        (folder / name).write_bytes(original[name])
    assert set(ask()) == genuine


def test_a_damaged_package_is_compiled_for(built, tmp_path):
    folder = copied(built, tmp_path)
    for number, file in enumerate(sorted(folder.glob("*.bin"))):
        if number % 2:
            file.write_bytes(file.read_bytes()[:-1] + b"?")
        else:
            file.unlink()
    used, _, bits, compiled = run(folder, tmp_path / "cache", NUMBA_CPU_NAME=CPU, NUMBA_CPU_FEATURES="")
    assert used == 0
    assert compiled > 0
    assert bits == built[2]


def test_other_content_under_a_right_checksum_is_compiled_for(built, tmp_path):
    """What is no kernel, although the manifest vouches for it: rebuilding it fails."""
    folder = copied(built, tmp_path)
    for file in folder.glob("*.bin"):
        file.write_bytes(b"\x80\x04K\x01.")
    shipped.write_manifest(folder, CPU, FEATURES)
    used, _, bits, _ = run(folder, tmp_path / "cache", NUMBA_CPU_NAME=CPU, NUMBA_CPU_FEATURES="")
    assert used == 0
    assert bits == built[2]


@pytest.mark.parametrize(
    "content",
    [b"", b"[]", b"{}", b"1", b"\xff", b'{"format": 2}', b'{"format": 1, "environment": 3}', b'{"format": 1}'],
    ids=str,
)
def test_a_foreign_manifest_under_a_right_checksum_is_refused(tmp_path, content):
    (tmp_path / shipped.MANIFEST).write_bytes(hashlib.sha256(content).hexdigest().encode() + b"\n" + content)
    assert shipped.read(tmp_path) == shipped.FOREIGN


def test_without_a_writable_folder_the_package_is_asked(built, monkeypatch):
    class Unwritable:
        def __init__(self, function):
            raise RuntimeError("no locator available")

    monkeypatch.setattr(compiling, "_SourceKeyedCache", Unwritable)
    double = compiling.kernel(lambda x: 2.0 * x)
    assert isinstance(double._cache, compiling._WheelOnly)
    assert double(4.0) == 8.0


def test_kinds_are_named_or_refused():
    assert len([name for name in KINDS if name.startswith("fused")]) == 4
    with pytest.raises(ValueError, match="'fuse' is not a kind of model: it takes fused-classifier-dense"):
        warm_up(["fuse"])


def test_warm_up_runs_the_kinds_asked_for(monkeypatch):
    ran = []
    for name in KINDS:
        monkeypatch.setitem(KINDS, name, lambda name=name: ran.append(name))
    warm_up(["signal", "group-classifier"])
    assert ran == ["group-classifier-dense", "group-classifier-sparse", "signal"]
    ran.clear()
    said = []
    warm_up(say=said.append)
    assert ran == said == list(KINDS)


def test_the_command_line_lists_kinds_and_refuses_others(capsys):
    pytest.importorskip("typer")
    assert cli.run(["warm-up", "--list"]) == 0
    assert capsys.readouterr().out.split() == list(KINDS)
    assert cli.run(["warm-up", "nothing"]) == 2
    assert "'nothing' is not a kind of model" in capsys.readouterr().err
    assert cli.run(["info"]) == 0
    assert "\nkernels       none in the package\n" in capsys.readouterr().out

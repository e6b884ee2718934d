"""A run that is stopped and taken up again is the run that was never stopped, to the last bit."""

import hashlib
import io
import json
import os
import signal
import subprocess
import sys
import time
import zipfile

import numpy as np
import pytest
from runs import SAME, assert_same, killed_after
from twins import CLASSES, NUMBERS, RHO, X0, A, X, pair

from skadmm import ALGORITHMS, CheckpointError, Problem, Status, solve
from skadmm.operators import chain, stack
from skadmm.regularizers import L1
from skadmm.run import driver

KILLS = int(os.environ.get("SKADMM_KILLS", "3"))


@pytest.fixture(scope="module")
def problem():
    return pair().problem


@pytest.fixture(scope="module")
def many_features():
    rng = np.random.default_rng(4)
    table = rng.standard_normal((60, 820)) / 8
    target = np.where(table[:, 0] - table[:, 1] + 0.1 * rng.standard_normal(60) > 0, 1.0, -1.0)
    return Problem(table, target, psi=L1(2e-3), A=stack(chain(820), "identity"))


@pytest.mark.parametrize("method", list(ALGORITHMS))
@pytest.mark.parametrize("stops", [(1,), (3, 2)])
def test_every_method_resumes_to_the_same_bits(method, stops, problem, tmp_path, monkeypatch):
    run = {
        "problem": problem, "method": method, "rho": RHO, "step": "auto", "x0": None if method == "san-admm" else X0,
        "batch_size": 7, "passes": 12, "random_state": 5, "record_every": 0.7, "test": (X, CLASSES),
    }  # fmt: skip
    whole = solve(**run)
    for stop in stops:
        killed_after(monkeypatch, tmp_path / "run.ckpt", stop, **run)
    assert_same(solve(checkpoint=tmp_path / "run.ckpt", **run), whole)
    # and once more: the finished run is in the file
    assert_same(solve(checkpoint=tmp_path / "run.ckpt", **run), whole)
    assert [path.name for path in tmp_path.iterdir()] == ["run.ckpt"]


@pytest.mark.parametrize("tol", [None, 1e-9])
def test_second_order_runs_resume_from_anywhere(tol, many_features, tmp_path, monkeypatch):
    rng = np.random.default_rng(3)
    table = rng.standard_normal((400, 5))
    target = np.where(table[:, 0] + rng.standard_normal(400) > 0, 1.0, -1.0)
    small = Problem(table, target, psi=L1(0.01), A=stack(chain(5), "identity"))
    for number, problem in enumerate((small, many_features)):
        run = {"problem": problem, "method": "san-admm", "tol": tol, "passes": 8}
        whole = solve(**run)
        for stop in (1, 2, 1):
            killed_after(monkeypatch, tmp_path / f"{number}", stop, **run)
        assert_same(solve(checkpoint=tmp_path / f"{number}", **run), whole)


def test_slices_do_not_show(problem, monkeypatch):
    """How long compiled code runs before the loop looks up depends on the clock; the result does not."""
    for method in ALGORITHMS:
        results = []
        for seconds in (1e-9, 10.0):
            monkeypatch.setattr(driver, "SLICE_SECONDS", seconds)
            results.append(solve(problem, method, rho=RHO, step="theory", passes=40, batch_size=7, record_every=3))
        assert_same(*results)


def test_a_longer_limit_goes_on(problem, tmp_path):
    run = {"problem": problem, "method": "sa-iu-admm", "rho": RHO, "step": "theory"}
    solve(passes=3, checkpoint=tmp_path / "c", **run)
    longer = solve(passes=6, checkpoint=tmp_path / "c", **run)
    assert_same(longer, solve(passes=6, **run))


def test_a_seed_that_was_drawn_is_kept(problem, tmp_path, monkeypatch):
    run = {"problem": problem, "method": "opg-admm", "rho": RHO, "step": "theory", "random_state": None, "passes": 4}
    killed_after(monkeypatch, tmp_path / "c", 2, **run)
    first = solve(checkpoint=tmp_path / "c", **run)
    assert_same(first, solve(**(run | {"random_state": first.settings["seed"]})))


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"method": "opg-admm"}, "method"),
        ({"rho": 0.2}, "rho"),
        ({"step": 0.1}, "step"),
        ({"batch_size": 2}, "batch_size"),
        ({"sampler": "cyclic"}, "sampler"),
        ({"tol": 1e-3}, "tol"),
        ({"record_every": 2}, "record_every"),
        ({"random_state": 1}, "random_state"),
        ({"x0": X0}, "start"),
        ({"test": (X, CLASSES)}, "test"),
        ({"problem": Problem(X, NUMBERS, "squared", psi=L1(0.03), A=A)}, "data"),
        ({"problem": Problem(X.copy(), CLASSES, psi=L1(0.04), A=A)}, "model"),
        ({"problem": Problem(X * 2, CLASSES, psi=L1(0.03), A=A)}, "data"),
    ],
)
def test_another_run_is_refused(change, named, tmp_path):
    run = {"problem": Problem(X, CLASSES, psi=L1(0.03), A=A), "method": "sa-iu-admm", "rho": RHO, "step": "theory"}
    solve(passes=2, checkpoint=tmp_path / "c", **run)
    before = (tmp_path / "c").read_bytes()
    with pytest.raises(CheckpointError, match=f"belongs to another run: its {named} is"):
        solve(passes=2, checkpoint=tmp_path / "c", **(run | change))
    assert (tmp_path / "c").read_bytes() == before


def changed(path, change):
    """The file with its manifest changed, and checksums to match."""
    with zipfile.ZipFile(path) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(entries["manifest.json"])
    change(manifest)
    entries["manifest.json"] = json.dumps(manifest).encode()
    entries["manifest.sha256"] = hashlib.sha256(entries["manifest.json"]).hexdigest().encode()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, entry in entries.items():
            archive.writestr(name, entry)
    path.write_bytes(buffer.getvalue())


def test_another_version_and_damage_are_refused(problem, tmp_path):
    path = tmp_path / "c"
    run = {"problem": problem, "method": "sa-iu-admm", "rho": RHO, "step": "theory", "passes": 2, "checkpoint": path}
    solve(**run)
    whole = path.read_bytes()
    changes = [
        (lambda m: m.update(version=9), "written in version 9"),
        (lambda m: m["fingerprint"].update({"version of skadmm": "0.0.1"}), "version of skadmm is '0.0.1'"),
        (lambda m: m.pop("run"), "no run"),
        (lambda m: m.update(run={"kind": "dict", "pairs": []}), "not a valid checkpoint"),
        (lambda m: m.update(run={"kind": "pickle", "value": "cos"}), "kind 'pickle' is not known"),
    ]
    for change, message in changes:
        path.write_bytes(whole)
        changed(path, change)
        with pytest.raises(CheckpointError, match=message):
            solve(**run)
    for length in (0, 10, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(CheckpointError):
            solve(**run)


@pytest.mark.parametrize("fault", ["full disk", "unwritable folder"])
def test_a_failed_write_leaves_the_checkpoint_and_the_run_alone(fault, problem, tmp_path, monkeypatch):
    run = {"problem": problem, "method": "opg-admm", "rho": RHO, "step": "theory"}
    path = tmp_path / "c"
    solve(passes=2, checkpoint=path, **run)
    before = path.read_bytes()

    def fails(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync" if fault == "full disk" else "tempfile.mkstemp", fails)
    with pytest.warns(RuntimeWarning, match="could not be written.*No space left") as caught:
        result = solve(passes=5, checkpoint=path, checkpoint_every=0, **run)
    monkeypatch.undo()
    assert len(caught) == 1
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["c"]
    assert_same(result, solve(passes=5, **run))


def test_a_folder_that_is_not_there_is_no_reason_to_fail(problem, tmp_path):
    with pytest.warns(RuntimeWarning, match="no such folder"):
        result = solve(problem, "opg-admm", rho=RHO, step="theory", passes=2, checkpoint=tmp_path / "no" / "c")
    assert result.status is Status.PASS_LIMIT


# -- SIGKILL -----------------------------------------------------------------------------------------------

CHILD = """
import sys; sys.path.insert(0, sys.argv[1])
import numpy as np, test_checkpoint
result = test_checkpoint.long_run(sys.argv[2], sys.argv[3])
np.savez(sys.argv[4], **{name: getattr(result, name) for name in test_checkpoint.SAME})
"""


def long_run(method, checkpoint=None):
    """About a second of work."""
    rng = np.random.default_rng(0)
    table = rng.standard_normal((4000, 30))
    target = np.where(table[:, 0] + rng.standard_normal(4000) > 0, 1.0, -1.0)
    problem = Problem(table, target, psi=L1(1e-3), A=stack(chain(30), "identity"))
    settings = {"tol": 1e-13, "passes": 300} if method == "san-admm" else {"passes": 60, "step": 0.1}
    return solve(problem, method, checkpoint=checkpoint, checkpoint_every=0, **settings)


def test_killed_at_random_moments_the_result_is_the_same(tmp_path):
    """SIGKILL while it computes or writes; the file is never half written, and the end is the same to the last bit."""
    rng = np.random.default_rng(int(time.time()))
    kills = 0
    method, path = "sa-iu-admm", tmp_path / "run.ckpt"

    def start(checkpoint, out):
        arguments = [
            sys.executable,
            "-c",
            CHILD,
            os.path.dirname(__file__),
            method,
            str(checkpoint),
            str(tmp_path / out),
        ]
        return subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    whole = long_run(method)
    while kills < KILLS:
        before = path.stat().st_mtime_ns if path.exists() else 0
        process = start(path, "killed.npz")
        deadline = time.monotonic() + 120
        while process.poll() is None and not (path.exists() and path.stat().st_mtime_ns != before):
            assert time.monotonic() < deadline
            time.sleep(0.002)
        time.sleep(float(rng.uniform(0, 0.3)))
        if process.poll() is not None:
            path.unlink()  # it reached the end: begin again
            continue
        process.send_signal(signal.SIGKILL)
        process.wait()
        kills += 1
        with zipfile.ZipFile(path) as archive:
            assert archive.testzip() is None
    print(f"{kills} kills")
    assert start(path, "resumed.npz").wait() == 0
    with np.load(tmp_path / "resumed.npz") as resumed:
        for name in SAME:
            np.testing.assert_array_equal(resumed[name], getattr(whole, name))

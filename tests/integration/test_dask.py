"""Rows on a cluster: the same iterates as in memory, nothing of size n on the driver, and workers may die."""

import contextlib
import functools
import os
import shutil
import signal
import subprocess
import sys
import threading
import time

import archives
import numpy as np
import pytest
import scipy.sparse

from skadmm import CheckpointError, FusedLassoClassifier, FusedLassoRegressor, Problem, Status, solve
from skadmm.backends import worker
from skadmm.operators import chain, stack
from skadmm.regularizers import L1, SquaredL2
from skadmm.solvers.second_order.newton_admm import NewtonADMM, NewtonADMMConfig

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")

KILLS = int(os.environ.get("SKADMM_WORKER_KILLS", "2"))
N, D, BLOCK = 1200, 5, 300

rng = np.random.default_rng(7)
X = rng.standard_normal((N, D)) * [1, 1, 8, 1, 1]
CLASSES = np.where(X[:, 0] - X[:, 1] + rng.standard_normal(N) > 0, 1.0, -1.0)
NUMBERS = X @ [1.0, 1.0, 0.0, 0.0, -1.0] + 0.1 * rng.standard_normal(N)
WEIGHT = rng.uniform(0.5, 2.0, N)
A = stack(chain(D), "identity")
FREE = scipy.sparse.hstack([stack(chain(D - 1), "identity"), scipy.sparse.csr_array((2 * D - 3, 1))]).tocsr()

pytestmark = pytest.mark.filterwarnings("ignore")  # Dask's own, about ports and loops


def pieces(array, kind=np.asarray):
    return [dask.delayed(kind)(array[start : start + BLOCK]) for start in range(0, N, BLOCK)]


def blocked(array):
    return da.from_array(array, chunks=(BLOCK, *array.shape[1:]))


def both(**model):
    here = Problem(X, CLASSES, sample_weight=WEIGHT, **model)
    there = Problem(blocked(X), blocked(CLASSES), sample_weight=blocked(WEIGHT), **model)
    return here, there


def iterates(problem, method, **options):
    seen = []
    result = solve(
        problem, method, record_every=1e-9, callback=lambda s: seen.append(np.concatenate([s.x, s.y, s.dual])),
        **({"passes": 6} | options),
    )  # fmt: skip
    return result, np.array(seen)


def assert_same_iterates(first, second):
    assert first[1].shape == second[1].shape
    scale = np.maximum(1.0, np.abs(first[1]).max(axis=1, keepdims=True))
    assert np.abs((first[1] - second[1]) / scale).max() <= 1e-10
    assert first[0].passes == second[0].passes
    assert first[0].status is second[0].status
    assert first[0].objective == pytest.approx(second[0].objective, rel=1e-12)
    assert first[0].gap == pytest.approx(second[0].gap, rel=1e-6, abs=1e-12, nan_ok=True)


@pytest.mark.parametrize(
    "method",
    ["sa-iu-admm", "sa-admm", "saga-admm", "saga-iu-admm", "batch-admm", "batch-iu-admm"],
)
def test_first_order_iterates_are_those_in_memory(method, client):
    here, there = both(psi=L1(0.01), A=A)
    options = {"step": 0.02, "batch_size": 100, "rho": 0.1, "passes": 3}
    assert_same_iterates(iterates(here, method, **options), iterates(there, method, **options))


@pytest.mark.parametrize(
    "model",
    [
        pytest.param({"psi": L1(1e-3), "A": A}, id="l1"),
        pytest.param({"psi": L1(1e-3), "A": FREE}, id="free"),
        pytest.param({"omega": SquaredL2(0.1)}, id="ridge"),
    ],
)
@pytest.mark.parametrize("run", [1, 7])
def test_second_order_iterates_are_those_in_memory(model, run, client, monkeypatch):
    here, there = both(**model)
    runs = functools.partial(NewtonADMMConfig, large_table=1, run_entries=run * here.n_features)
    monkeypatch.setattr(NewtonADMM, "Config", runs)
    first, second = (iterates(problem, "san-admm", passes=20, tol=1e-8) for problem in (here, there))
    assert first[0].status is Status.SOLVED
    assert_same_iterates(first, second)


@pytest.mark.parametrize("limit", [{"passes": 3}, {"time_limit": 1e-9}, {"passes": 50, "time_limit": 0.3}])
def test_workers_forget_a_run_that_has_ended(limit, client):
    """However it ended: only slopes stay in their memories."""
    _, there = both(psi=L1(1e-3), A=A)
    solve(there, "san-admm", **limit)
    names = there.backend.map_reduce(
        "names", worker.run_and_concat, [(lambda samples, memory: sorted(memory), ())] * there.backend.sizes.size
    )
    assert not [name for block in names for name in block if not name.startswith(("evaluate", "slopes"))]


def test_constants_and_subsets_are_those_in_memory(client):
    here, there = both(psi=L1(0.01), A=A)
    assert (there.n_samples, there.n_features) == here.rows.shape
    for name in ("L", "L_mean", "L_full", "gradient_scale", "nnz"):
        assert getattr(there, name) == pytest.approx(getattr(here, name), rel=1e-12)
    some = np.array([3, 299, 300, 1199])
    first, second = here.subset(some), there.subset(some)
    np.testing.assert_array_equal(first.rows.values, second.rows.values)
    np.testing.assert_array_equal(first.target, second.target)
    run = {"method": "sa-iu-admm", "passes": 2, "batch_size": 100}
    assert solve(there, **run).settings["step"] == pytest.approx(solve(here, **run).settings["step"])


def test_every_kind_of_collection(client):
    import pandas as pd

    frame = pd.DataFrame(X, columns=list("abcde"))
    run = {"method": "batch-iu-admm", "step": 0.02, "passes": 3}
    reference = solve(Problem(X, CLASSES, psi=L1(0.01)), **run)
    tables = {
        "frame": (dd.from_pandas(frame, npartitions=3), dd.from_pandas(pd.Series(CLASSES), npartitions=3)),
        "delayed": (pieces(X), pieces(CLASSES)),
        "sparse": (pieces(X, scipy.sparse.csr_array), pieces(CLASSES)),
        "names of classes": (blocked(X), da.from_array(np.where(CLASSES > 0, "yes", "no"), chunks=BLOCK)),
        "target here": (blocked(X), CLASSES),
        "columns in chunks": (da.from_array(X, chunks=(BLOCK, 2)), blocked(CLASSES)),
    }
    for name, (table, target) in tables.items():
        problem = Problem(table, target, psi=L1(0.01))
        np.testing.assert_allclose(solve(problem, **run).x, reference.x, atol=1e-12, err_msg=name)
        if name == "frame":
            assert problem.feature_names == list("abcde")


def test_nothing_of_size_n_travels(client, monkeypatch):
    """The largest response that is sent to the driver has the size of a d × d matrix."""
    from skadmm.backends.dask.backend import DaskBackend

    _, there = both(psi=L1(0.01), A=A)
    largest = []
    usual = DaskBackend._wait

    def weight(answer):
        return sum(map(weight, answer)) if isinstance(answer, tuple) else np.size(answer)

    def weighed(self, *arguments):
        answers = usual(self, *arguments)
        largest.append(max(map(weight, answers)))
        return answers

    monkeypatch.setattr(DaskBackend, "_wait", weighed)
    for method in ("san-admm", "sa-iu-admm", "batch-admm"):
        solve(there, method, step=0.02, passes=4, tol=1e-6)
    assert 0 < max(largest) <= max(D * D + 2 * D, 256)  # the counts behind the threshold of large-shift samples


@pytest.mark.parametrize("method", ["san-admm", "sa-iu-admm", "batch-iu-admm"])
def test_direct_or_as_tasks_the_bits_are_the_same(method, client, monkeypatch):
    from skadmm.backends.dask import transport

    _, there = both(psi=L1(1e-3), A=A)
    direct = []
    usual = transport.DirectTransport.send
    monkeypatch.setattr(
        transport.DirectTransport, "send", lambda self, requests: direct.append(1) or usual(self, requests)
    )
    results = []
    for short in (0.0, np.inf):
        direct.clear()
        monkeypatch.setattr(transport, "SHORT", short)
        results.append(solve(there, method, step=0.02, passes=6, tol=1e-8))
    assert len(direct) > 5
    for name in ("x", "y", "dual", "objective", "gap"):
        np.testing.assert_array_equal(*(getattr(result, name) for result in results))


def test_a_block_that_has_moved_is_found_by_a_task(client, monkeypatch):
    """The direct transport fails, and the request is sent again as a task."""
    from skadmm.backends.dask import transport

    _, there = both(psi=L1(1e-3), A=A)
    whole = solve(there, "batch-iu-admm", step=0.02, passes=6)
    monkeypatch.setattr(transport, "SHORT", np.inf)
    backend = there.backend
    first, second = sorted(set(backend._places.values()))
    backend._places = {k: second if place == first else first for k, place in backend._places.items()}
    result = solve(there, "batch-iu-admm", step=0.02, passes=6)
    np.testing.assert_allclose(result.x, whole.x, rtol=1e-12)


def test_bounded_staleness(client):
    here, there = both(psi=L1(0.01), A=A)
    run = {"method": "sa-iu-admm", "step": 0.2, "batch_size": 300, "rho": 0.1, "passes": 150, "record_every": 0}
    optimum = solve(here, "san-admm", tol=1e-10, passes=50).objective
    results = [solve(there, staleness=staleness, **run) for staleness in (0, 2, 2)]
    np.testing.assert_array_equal(results[1].x, results[2].x)  # late, but always as late
    assert not np.array_equal(results[0].x, results[1].x)
    start = there.objective(np.zeros(D))
    for result in results:
        assert result.objective - optimum < 0.03 * (start - optimum)


def test_estimators_take_dask(client):
    for model, target in ((FusedLassoClassifier, CLASSES), (FusedLassoRegressor, NUMBERS)):
        there = model(alpha=0.01, tol=1e-8).fit(blocked(X), blocked(target))
        here = model(alpha=0.01, tol=1e-8).fit(X, target)
        np.testing.assert_allclose(there.coef_, here.coef_, atol=1e-5)
        np.testing.assert_allclose(there.intercept_, here.intercept_, atol=1e-5)
        np.testing.assert_allclose(there.predict(X), here.predict(X), atol=1e-4)


def test_wrong_tables_are_refused(client):
    with pytest.raises(ValueError, match="target has 1 class"):
        Problem(blocked(X), blocked(np.ones(N)))
    with pytest.raises(ValueError, match="NaN or infinity"):
        Problem(blocked(np.where(X > 2, np.nan, X)), blocked(CLASSES))
    with pytest.raises(ValueError, match="target=None"):
        Problem(blocked(X))
    with pytest.raises(ValueError, match="has 2 blocks: it takes 4"):
        Problem(pieces(X), pieces(CLASSES)[:2])
    with pytest.raises(ValueError, match="method='opg-admm': on the dask backend it takes one of 'san-admm'"):
        solve(Problem(blocked(X), blocked(CLASSES)), "opg-admm")
    with pytest.raises(ValueError, match="staleness=-1"):
        solve(Problem(blocked(X), blocked(CLASSES)), staleness=-1)


@pytest.mark.parametrize(
    "model",
    [
        pytest.param({"psi": L1(1e-3), "A": A}, id="l1"),
        pytest.param({"psi": L1(1e-3), "A": FREE}, id="free"),
    ],
)
def test_a_checkpoint_resumes_to_the_same_bits(model, client, tmp_path):
    """The workers keep what they know beside it; two generations at most, that of the file and a newer one."""
    _, there = both(**model)
    run = {"method": "san-admm", "tol": 1e-8, "record_every": 0}
    whole = solve(there, passes=50, **run)
    kept = {"checkpoint": tmp_path / "c", "checkpoint_every": 0}
    for passes in (0.3, 1.0, 2.5, 50):  # in the first pass, at its end, and after it
        resumed = solve(there, passes=passes, **kept, **run)
        assert len(list((tmp_path / "c.blocks").iterdir())) <= 2
    assert resumed.status is Status.SOLVED
    assert resumed.passes == whole.passes
    for name in ("x", "y", "dual", "objective", "gap"):
        np.testing.assert_array_equal(getattr(resumed, name), getattr(whole, name))


@pytest.mark.parametrize("passes", [0.3, 2.5])
@pytest.mark.parametrize("harm", ["gone", "one gone", "spoilt"])
def test_a_checkpoint_without_what_workers_kept(harm, passes, client, tmp_path):
    """It continues from the point alone, to the same solution."""
    _, there = both(psi=L1(1e-3), A=A)
    run = {"method": "san-admm", "tol": 1e-8, "checkpoint": tmp_path / "c", "checkpoint_every": 0}
    whole = solve(there, "san-admm", tol=1e-8, passes=50)
    solve(there, passes=passes, **run)
    files = sorted(path for path in (tmp_path / "c.blocks").rglob("*") if path.is_file())
    assert len(files) >= N // BLOCK
    if harm == "gone":
        shutil.rmtree(tmp_path / "c.blocks")
    for file in [] if harm == "gone" else files if harm == "spoilt" else files[:1]:
        file.write_bytes(b"nothing") if harm == "spoilt" else file.unlink()
    resumed = solve(there, passes=50, **run)
    assert resumed.status is Status.SOLVED
    assert resumed.objective == pytest.approx(whole.objective, rel=1e-7)


def test_a_checkpoint_names_no_folder_elsewhere(client, tmp_path):
    _, there = both(psi=L1(1e-3), A=A)
    run = {"method": "san-admm", "tol": 1e-8, "checkpoint": tmp_path / "c", "checkpoint_every": 0}
    solve(there, passes=2.5, **run)
    entries = archives.entries_of(tmp_path / "c")
    folders = [folder.name.encode() for folder in (tmp_path / "c.blocks").iterdir()]
    (name,) = (name for name in folders if name in entries["manifest.json"])
    text = entries["manifest.json"].replace(name, b"../../" + name[6:])
    archives.write(tmp_path / "c", archives.with_manifest(entries, text))
    with pytest.raises(CheckpointError, match="not a name under which workers keep"):
        solve(there, passes=50, **run)


@pytest.mark.parametrize("method", ["san-admm", "sa-iu-admm"])
def test_a_killed_worker_costs_little_and_changes_nothing(method, client):
    """SIGKILL of a random worker at a random moment; its blocks come again from their source."""
    model = {"psi": L1(1e-3), "A": A}
    reference = solve(Problem(X, CLASSES, **model), "san-admm", tol=1e-10, passes=50)
    run = {"passes": 30, "tol": 1e-8} if method == "san-admm" else {"passes": 4, "step": 0.02, "batch_size": 100}
    moments = np.random.default_rng(int(time.time()))
    for _ in range(KILLS):
        there = Problem(blocked(X), blocked(CLASSES), **model)
        undisturbed = solve(there, method, **run)
        client.wait_for_workers(2)
        process = int(moments.choice(list(client.run(os.getpid).values())))
        delay = float(moments.uniform(0, 0.8 * undisturbed.seconds))
        timer = threading.Timer(delay, os.kill, [process, signal.SIGKILL])
        timer.start()
        result = solve(there, method, **run)
        timer.join()
        client.wait_for_workers(2)
        assert result.status is undisturbed.status
        if method == "san-admm":
            assert result.objective == pytest.approx(reference.objective, rel=1e-7)
            assert result.passes <= undisturbed.passes + 2 + 1e-9
        else:
            np.testing.assert_array_equal(result.x, undisturbed.x)
            assert result.passes == undisturbed.passes


def test_a_scheduler_and_workers_started_by_their_own_commands(tmp_path):
    program = "from dask.__main__ import main; main()"
    where = str(tmp_path / "scheduler.json")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    started = []

    def start(*arguments):
        command = [sys.executable, "-c", program, *arguments, "--scheduler-file", where]
        with open(tmp_path / f"{len(started)}.log", "wb") as log:
            started.append(subprocess.Popen(command, stdout=log, stderr=log, env=environment, cwd=tmp_path))

    try:
        start("scheduler", "--port", "0", "--no-dashboard")
        for _ in range(2):
            start("worker", "--nthreads", "1", "--no-nanny", "--no-dashboard")
        with distributed.Client(scheduler_file=where, timeout=60, set_as_default=True) as outside:
            outside.wait_for_workers(2, timeout=60)
            problem = Problem(blocked(X), blocked(CLASSES), psi=L1(0.01))
            result = solve(problem, "san-admm", tol=1e-8, passes=20)
        here = solve(Problem(X, CLASSES, psi=L1(0.01)), "san-admm", tol=1e-8, passes=20)
        np.testing.assert_allclose(result.x, here.x, atol=1e-7)
    finally:
        for process in started:
            process.terminate()
        for process in started:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=10)
            process.kill()

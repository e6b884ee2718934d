"""Cross-validation on a cluster whose workers, or whose driver, are killed at random moments: the same final model.

``SKADMM_WORKER_KILLS=10 SKADMM_KILLS=10`` kills ten times each.
"""

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import searches

from skadmm import Problem, solve
from skadmm.regularizers import SquaredL2

pytest.importorskip("dask.array")
pytest.importorskip("distributed")

WORKER_KILLS = int(os.environ.get("SKADMM_WORKER_KILLS", "1"))
DRIVER_KILLS = int(os.environ.get("SKADMM_KILLS", "1"))
pytestmark = pytest.mark.filterwarnings("ignore")  # Dask's own, about ports and loops


@pytest.fixture(scope="module")
def whole(client):
    """The search that nothing disturbs, and its seconds."""
    began = time.monotonic()
    found = searches.found_by(searches.model_of(storage="dask").fit(*searches.table_of("dask", None)))
    return found, time.monotonic() - began


def assert_same(found, wanted):
    """Sums may be added in another order: folds are solved roughly, and the model that is chosen to its tolerance."""
    np.testing.assert_allclose(found["alphas_"], wanted["alphas_"], rtol=1e-9)
    np.testing.assert_allclose(found["cv_losses_"], wanted["cv_losses_"], rtol=1e-5)
    np.testing.assert_allclose(found["coef_"], wanted["coef_"], atol=1e-6)
    np.testing.assert_allclose(found["intercept_"], wanted["intercept_"], atol=1e-6)


def test_the_search_is_that_in_memory(whole):
    assert_same(whole[0], searches.found_by(searches.model_of(storage="dask").fit(searches.X, searches.Y)))


def alive(client):
    """The processes of both workers, once the one killed last has been replaced."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        client.wait_for_workers(2)
        found = list(client.run(os.getpid, on_error="ignore").values())
        if len(found) == 2:
            return found
        time.sleep(0.1)
    raise TimeoutError("a worker was not replaced")


def test_killed_workers(client, whole):
    moments = np.random.default_rng(int(time.time()))
    for _ in range(WORKER_KILLS):
        process = int(moments.choice(alive(client)))
        timer = threading.Timer(float(moments.uniform(0, 0.9 * whole[1])), os.kill, [process, signal.SIGKILL])
        timer.start()
        found = searches.found_by(searches.model_of(storage="dask").fit(*searches.table_of("dask", None)))
        timer.join()
        assert_same(found, whole[0])
    client.wait_for_workers(2)


def test_a_moment_without_workers(client, whole):
    """Dask does not give tasks that were placed on a worker to the workers that come after all were gone."""
    processes, moment = alive(client), float(np.random.default_rng(int(time.time())).uniform(0.1, 0.8 * whole[1]))
    timer = threading.Timer(moment, lambda: [os.kill(process, signal.SIGKILL) for process in processes])
    timer.start()
    found = searches.found_by(searches.model_of(storage="dask").fit(*searches.table_of("dask", None)))
    timer.join()
    assert_same(found, whole[0])
    client.wait_for_workers(2)


def test_blocks_are_computed_again_after_a_moment_without_workers(client):
    X, y = searches.table_of("dask", None)
    problem = Problem(X, y, "squared", psi=SquaredL2(0.1))
    wanted = solve(problem, "batch-admm", passes=3)
    for process in alive(client):
        os.kill(process, signal.SIGKILL)
    found = solve(problem, "batch-admm", passes=3)
    np.testing.assert_allclose(found.x, wanted.x, atol=1e-10)
    client.wait_for_workers(2)


def test_killed_drivers(cluster, client, whole, tmp_path):
    moments = np.random.default_rng(int(time.time()) + 1)
    kept, out = tmp_path / "cv.ckpt", tmp_path / "found.npz"
    program = [sys.executable, searches.__file__, "dask", str(kept), str(out), cluster.scheduler_address]
    kills = 0
    while kills < DRIVER_KILLS:
        before = kept.stat().st_mtime_ns if kept.exists() else 0
        driver = subprocess.Popen(program, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 120
        while driver.poll() is None and not (kept.exists() and kept.stat().st_mtime_ns != before):
            assert time.monotonic() < deadline
            time.sleep(0.005)
        time.sleep(float(moments.uniform(0, 0.5 * whole[1])))
        if driver.poll() is not None:
            kept.unlink()  # it reached the end: begin again
            continue
        driver.send_signal(signal.SIGKILL)
        driver.wait()
        kills += 1
    assert subprocess.run(program, check=False, capture_output=True).returncode == 0
    with np.load(out) as found:
        assert_same(found, whole[0])

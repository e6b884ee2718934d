"""Rows on processes of this machine: the same iterates as in memory, and workers may die."""

import gc
import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Client, Listener

import numpy as np
import pytest
import scipy.sparse

from skadmm import Problem, Status, solve
from skadmm.backends import Processes
from skadmm.backends.processes import pool as worker_pool
from skadmm.backends.processes.backend import ProcessBackend
from skadmm.backends.processes.serve import Answer, Blocks, Call, Drop, HoldRows, HoldSamples, without_delay
from skadmm.backends.worker import run_on_blocks, run_task
from skadmm.backends.writer import write_blocks
from skadmm.estimators import ESTIMATORS
from skadmm.kernels.rows import DenseRows
from skadmm.losses import Logistic
from skadmm.operators import chain, stack
from skadmm.regularizers import L1

N, D = 600, 5
RNG = np.random.default_rng(3)
X = RNG.standard_normal((N, D)) * (RNG.random((N, D)) < 0.8)
TARGET = np.where(X[:, 0] - X[:, 1] + RNG.standard_normal(N) > 0, 1.0, -1.0)
NUMBERS = X @ [1.0, 1.0, 0.0, 0.0, -1.0] + 0.3 * RNG.standard_normal(N)
WEIGHT = RNG.uniform(0.5, 2.0, N)
A = stack(chain(D), "identity")


def iterates(problem, method, **options):
    seen = []
    result = solve(
        problem, method, record_every=1e-9, callback=lambda s: seen.append(np.concatenate([s.x, s.y, s.dual])),
        **({"passes": 6} | options),
    )  # fmt: skip
    return result, np.array(seen)


@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize("method", ["san-admm", "sa-iu-admm", "sa-admm", "batch-iu-admm"])
def test_iterates_are_those_in_memory(method, kind):
    options = {"tol": 1e-9} if method == "san-admm" else {"step": 0.1, "batch_size": N // 2}
    model = {"psi": L1(0.01), "A": A, "sample_weight": WEIGHT}
    here, seen_here = iterates(Problem(kind(X), TARGET, **model), method, **options)
    there, seen = iterates(Problem(Processes(kind(X), workers=2), TARGET, **model), method, **options)
    assert seen.shape == seen_here.shape
    # san-admm adds up in another order, and what its sweeps make of that shows in the dual's last digits.
    np.testing.assert_allclose(seen, seen_here, atol=1e-6 if method == "san-admm" else 1e-12)
    assert there.status is here.status


def test_a_folder_of_blocks_is_read_by_the_workers(tmp_path):
    write_blocks(tmp_path / "blocks", [(X[:250], TARGET[:250], WEIGHT[:250]), (X[250:], TARGET[250:], WEIGHT[250:])])
    there = solve(Problem(Processes(tmp_path / "blocks", workers=2), psi=L1(0.01), A=A), tol=1e-9)
    here = solve(Problem(X, TARGET, psi=L1(0.01), A=A, sample_weight=WEIGHT), tol=1e-9)
    np.testing.assert_allclose(there.x, here.x, atol=1e-7)


@pytest.mark.parametrize("options", [{}, {"standardize": True}, {"ridge": 0.1}, {"fit_intercept": False}])
@pytest.mark.parametrize("name", ["FusedLassoClassifier", "GroupLassoRegressor"])
def test_estimators(name, options):
    settings = options | ({"groups": [[0, 1], [2, 3, 4]]} if name.startswith("Group") else {})
    target = TARGET if "Classifier" in name else NUMBERS
    table = Processes(X, workers=2)
    there = ESTIMATORS[name](alpha=0.02, tol=1e-10, **settings).fit(table, target, WEIGHT)
    here = ESTIMATORS[name](alpha=0.02, tol=1e-10, **settings).fit(X, target, WEIGHT)
    np.testing.assert_allclose(there.coef_, here.coef_, atol=1e-6)
    np.testing.assert_allclose(there.predict(table), here.predict(X), atol=1e-5)


def test_cross_validation():
    model = {"alphas": 4, "cv": 3, "eps": 0.05, "tol": 1e-10}
    there = ESTIMATORS["FusedLassoRegressorCV"](**model).fit(Processes(X, workers=2), NUMBERS)
    here = ESTIMATORS["FusedLassoRegressorCV"](**model).fit(X, NUMBERS)
    np.testing.assert_allclose(there.cv_losses_, here.cv_losses_, rtol=1e-5)
    np.testing.assert_allclose(there.coef_, here.coef_, atol=1e-6)


@pytest.mark.parametrize("method", ["san-admm", "sa-iu-admm"])
def test_workers_may_die(method):
    """One is killed every 50 ms during the run; the result is that of a run in which none was."""
    problem = Problem(Processes(X, workers=2), TARGET, psi=L1(0.01), A=A)
    backend = problem.backend
    assert isinstance(backend, ProcessBackend)
    options = {"tol": 1e-9} if method == "san-admm" else {"step": 0.1, "batch_size": N // 2, "passes": 20}
    wanted = solve(problem, method, **options)
    ended, killed = threading.Event(), []

    def kill():
        for worker in (*backend.table.workers, *backend.table.workers):
            if ended.is_set():
                return
            os.kill(worker.pid, signal.SIGKILL)
            killed.append(worker.number)
            time.sleep(0.05)
            while not worker.alive and not ended.is_set():
                time.sleep(0.01)

    first = threading.Thread(target=kill)

    def slowly(snapshot):
        if not first.ident:
            first.start()
        time.sleep(0.05)

    found = solve(problem, method, callback=slowly, record_every=1e-9, **options)
    ended.set()
    first.join()
    assert killed
    np.testing.assert_allclose(found.x, wanted.x, atol=1e-8)
    assert found.status is wanted.status


def test_an_error_on_a_worker_reaches_the_user():
    backend = Problem(Processes(X, workers=2), TARGET).backend
    with pytest.raises(ZeroDivisionError):
        backend.each(_fails)
    assert solve(Problem(Processes(X, workers=2), TARGET, psi=L1(0.01)), tol=1e-6).status is Status.SOLVED


def _fails(samples):
    return 1 / 0


def test_what_is_no_longer_used_is_forgotten():
    """The rows of a table and the samples of a problem leave the workers with the objects."""
    blocks = Blocks()
    blocks.respond(HoldRows("table", 0, DenseRows(X), True))
    blocks.respond(HoldSamples("problem", "table", 0, TARGET, np.empty(0), Logistic()))
    call = Call("problem", [0], run_on_blocks, run_task, [(1.0, _width, ())])
    assert blocks.respond(call) == D + 1
    blocks.respond(Drop("problem"))
    with pytest.raises(KeyError):
        blocks.respond(call)
    table = Processes(X, workers=2)
    problem, workers = Problem(table, TARGET), table.workers
    rows = HoldSamples("other", table.key(False), 0, TARGET[: N // 2], np.empty(0), Logistic())
    workers[0].send(rows).result()
    del problem, table
    gc.collect()
    with pytest.raises(KeyError):
        workers[0].send(rows).result()


def _width(samples):
    return samples.rows.shape[1]


def test_answers_can_be_sent():
    error = pickle.loads(pickle.dumps(Answer(error=ValueError("no")))).error
    assert isinstance(error, ValueError)


@pytest.mark.parametrize("workers", [0, 1.5, "two"])
def test_the_number_of_workers_is_checked(workers):
    with pytest.raises((ValueError, TypeError), match="workers"):
        Processes(X, workers=workers)


def test_a_message_leaves_at_once():
    """Of a long message the second part must not wait for an acknowledgement of the first, 40 ms."""
    with Listener(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(1) as pool:
        other = pool.submit(Client, listener.address)
        for connection in (listener.accept(), other.result()):
            with without_delay(connection):
                link = socket.socket(fileno=connection.fileno())
                assert link.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0
                link.detach()


def test_a_process_that_ends_before_it_connects_does_not_hang(monkeypatch):
    monkeypatch.setattr(worker_pool, "PROGRAM", "raise SystemExit(1)")
    monkeypatch.setattr(worker_pool, "MAX_STARTS", 2)
    with pytest.raises(RuntimeError, match="ended 2 times before it could be used"):
        worker_pool.WorkerProcess(0)


def test_rows_that_no_worker_holds_start_none_at_the_end():
    code = "import numpy as np; from skadmm.backends import Processes; table = Processes(np.eye(3), workers=2)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert run.stderr == ""

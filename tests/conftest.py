"""What all tests share."""

import gc
import os
import signal
import sys
import warnings
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is loaded: two workers share the processors
SUPPORT = str(Path(__file__).parent / "support")
sys.path.insert(0, SUPPORT)
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [SUPPORT, os.environ.get("PYTHONPATH")]))  # child processes

import pytest  # noqa: E402

RUN_ALL = os.environ.get("SKADMM_TESTS") == "all"


@pytest.fixture(autouse=True, scope="session")
def interruptible():
    """A shell that starts jobs in the background has them ignore Ctrl-C; the tests of interrupts need it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items):
    """Tests marked slow wait for ``SKADMM_TESTS=all``."""
    if not RUN_ALL:
        for item in items:
            if item.get_closest_marker("slow"):
                item.add_marker(pytest.mark.skip(reason="slow: SKADMM_TESTS=all runs it"))


@pytest.fixture(scope="session")
def cluster():
    """Two worker processes of Dask, which all tests of a session share; those that were killed come back."""
    dask, distributed = pytest.importorskip("dask"), pytest.importorskip("distributed")
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0", "protocol": "tcp"}
    # A worker that is away when this time is up since it was last lost is given up for good.
    with dask.config.set({"distributed.deploy.lost-worker-timeout": "1h"}):
        with warnings.catch_warnings():  # of Dask, about ports in use and open sockets
            warnings.simplefilter("ignore")
            found = distributed.LocalCluster(**options)
            gc.collect()
        with found:
            yield found


@pytest.fixture(scope="module")
def client(cluster):
    """A client of that cluster, the default one while the tests of a module run."""
    distributed = pytest.importorskip("distributed")
    with distributed.Client(cluster) as found:
        found.wait_for_workers(2)
        yield found

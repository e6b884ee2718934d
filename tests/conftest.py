"""What all tests share."""

import os
import signal
import sys
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

"""One thread for the linear algebra behind NumPy during a run.

OpenBLAS splits its sums by the number of threads, so more threads would change the last digits of a result. On matrices
of the usual sizes they gain little on an idle machine, and are several times slower on a busy one.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

_lock = threading.Lock()
_inside = 0
"""The number of runs under way."""
_limiter: Any = None
"""The limit in force, by which the former one is restored."""


@cache
def _controller() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def _take_control() -> None:
    """Allow this thread to set the limit.

    In newer versions of threadpoolctl only the first thread that set a limit can set another; calls of other threads
    have no effect. Here a lock makes sure that one thread at a time sets it.
    """
    import threadpoolctl

    clear = getattr(getattr(threadpoolctl, "OpenBLASController", None), "clear_controlling_thread", None)
    if clear is not None:
        clear(force=True)


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit BLAS to one thread. The limit holds for the whole process, and is lifted when the last run ends."""
    global _inside, _limiter  # noqa: PLW0603
    with _lock:
        if _inside == 0:
            _take_control()
            _limiter = _controller().limit(limits=1, user_api="blas")
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                _take_control()
                _limiter.restore_original_limits()
                _take_control()

"""One thread for the linear algebra behind NumPy while a run is going.

OpenBLAS splits its sums by the number of threads, so more of them would change the last digits of a result; and on the
matrices met here they gain little on an idle machine and cost a multiple on a busy one.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

_lock = threading.Lock()
_inside = 0
_limiter: Any = None


@cache
def _controller() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def _take_control() -> None:
    """Newer versions of threadpoolctl let only the first thread that set a limit set another, and others fail in
    silence. Here a lock sees to it that one at a time does, whichever thread that is."""
    import threadpoolctl

    clear = getattr(getattr(threadpoolctl, "OpenBLASController", None), "clear_controlling_thread", None)
    if clear is not None:
        clear(force=True)


@contextmanager
def one_thread() -> Iterator[None]:
    """One BLAS thread. The limit holds for the whole process, so the last run to leave lifts it."""
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

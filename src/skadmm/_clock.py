"""The clock that runs are timed by: seconds on the wall, or seconds of this process's own work."""

import contextlib
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar

_reading: ContextVar[Callable[[], float]] = ContextVar("clock", default=time.perf_counter)


def now() -> float:
    """Seconds, from some fixed moment."""
    return _reading.get()()


@contextlib.contextmanager
def processor_time() -> Iterator[None]:
    """Count the processor's seconds: on one thread the same as the wall's, whatever else the machine is doing."""
    usual = _reading.set(time.process_time)
    try:
        yield
    finally:
        _reading.reset(usual)

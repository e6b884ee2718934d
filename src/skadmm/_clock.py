"""The clock that runs are timed by: wall-clock seconds, or processor seconds of this process."""

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
    """Count processor seconds: on one thread the same as wall-clock seconds on an idle machine."""
    outer = _reading.set(time.process_time)
    try:
        yield
    finally:
        _reading.reset(outer)

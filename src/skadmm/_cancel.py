"""The clock of runs, and what ends them early: Ctrl-C and the time limit, noticed between two chunks of rows, so that
no step is left half done.

A run has a :class:`RunControl`. While it listens, the first Ctrl-C only sets a flag. Code that reads rows calls
:func:`check_cancelled` before each chunk, which raises where the flag is set or the time limit has passed. A second
Ctrl-C raises KeyboardInterrupt at once, as usual.

The control of the current run is in a context variable, so runs in several threads do not see each other's. The clock
is wall-clock seconds, or processor seconds of this process.
"""

from __future__ import annotations

import contextlib
import signal
import threading
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


class Interrupted(Exception):  # noqa: N818
    """The user pressed Ctrl-C."""


class OutOfTime(Exception):  # noqa: N818
    """The time limit was reached in the middle of a step."""


class RunControl:
    """Says whether a run has to end."""

    def __init__(self) -> None:
        self.interrupted = False
        """Was Ctrl-C pressed?"""
        self.deadline = float("inf")
        """On the clock of :func:`now`."""
        self.listens = False
        """Can the run be ended? Before its loop there is no run yet; after it the answer is complete."""

    def check(self) -> None:
        """Raise where the run has to end."""
        if not self.listens:
            return
        if self.interrupted:
            raise Interrupted
        if now() >= self.deadline:
            raise OutOfTime

    @property
    def seconds_left(self) -> float:
        """How long the run may still take."""
        return self.deadline - now() if self.listens else float("inf")


_current: ContextVar[RunControl | None] = ContextVar("run control", default=None)


def check_cancelled() -> None:
    """Called before a chunk of rows is read: raises where the current run has to end."""
    control = _current.get()
    if control is not None:
        control.check()


def seconds_left() -> float:
    """How long the current run may still take; infinite without one."""
    control = _current.get()
    return float("inf") if control is None else control.seconds_left


@contextlib.contextmanager
def run_control() -> Iterator[RunControl]:
    """The control of one run. Ctrl-C is caught in the main thread, where no other handler is installed."""
    control = RunControl()

    def on_interrupt(number: int, frame: object) -> None:
        if control.interrupted:
            raise KeyboardInterrupt
        control.interrupted = True

    catches = (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    )
    outer = _current.set(control)
    if catches:
        signal.signal(signal.SIGINT, on_interrupt)
    try:
        yield control
    finally:
        if catches:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        _current.reset(outer)

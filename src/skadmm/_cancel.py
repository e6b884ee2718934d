"""Ctrl-C and the time limit: noticed between two blocks of rows, so that nothing is ever left half done.

While a run is watched, the first Ctrl-C only leaves a note; code that reads rows calls :func:`pulse` before each block,
and there the note, or a clock that has run out, becomes an exception. A second Ctrl-C interrupts at once, as usual.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from contextvars import ContextVar

from skadmm import _clock


class Interrupted(Exception):  # noqa: N818
    """Somebody pressed Ctrl-C."""


class OutOfTime(Exception):  # noqa: N818
    """The time limit was reached in the middle of a step."""


class RunControl:
    """What :func:`pulse` looks at."""

    def __init__(self) -> None:
        self.interrupted = False
        self.deadline = float("inf")
        self.off = False

    def check(self) -> None:
        """Raise where the run has to end."""
        if self.off:
            return
        if self.interrupted:
            raise Interrupted
        if _clock.now() >= self.deadline:
            raise OutOfTime


_cancel: ContextVar[RunControl | None] = ContextVar("control", default=None)


def check_cancelled() -> None:
    """Called before a block of rows is read: end the run here, if it must."""
    control = _cancel.get()
    if control is not None:
        control.check()


def seconds_left() -> float:
    """How long the run may still take."""
    control = _cancel.get()
    return float("inf") if control is None or control.off else control.deadline - _clock.now()


@contextlib.contextmanager
def run_control() -> Iterator[RunControl]:
    """A watch over one run. Ctrl-C is caught where nobody else has asked for it, in the main thread."""
    control = RunControl()

    def note(number: int, frame: object) -> None:
        if control.interrupted:
            raise KeyboardInterrupt
        control.interrupted = True

    ours = (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    )
    outer = _cancel.set(control)
    if ours:
        signal.signal(signal.SIGINT, note)
    try:
        yield control
    finally:
        if ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        _cancel.reset(outer)

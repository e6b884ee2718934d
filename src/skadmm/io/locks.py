"""Locks of the operating system, which end with their process: one conversion of a table at a time, and folders that
are removed by the next process where theirs was killed."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

PAUSE = 0.05
"""Seconds between two attempts to take a lock."""
PATIENCE = 1.0
"""Seconds of waiting that are not worth a message."""
OWNED = ".lock"
"""The file in a working folder that its process has locked."""

_working: dict[Path, int] = {}
"""The locks of the working folders of this process, held open."""


@contextlib.contextmanager
def locked(path: Path, waiting: Callable[[], None], check: Callable[[], None]) -> Iterator[None]:
    """Hold the lock of a file, which is removed afterwards. Where another process or thread holds it, wait: `check` is
    called at every attempt and may raise, `waiting` once after a second."""
    start, announced = time.monotonic(), False
    path.parent.mkdir(parents=True, exist_ok=True)
    while (handle := _taken(path)) is None:
        check()
        if not announced and time.monotonic() - start > PATIENCE:
            waiting()
            announced = True
        time.sleep(PAUSE)
    try:
        yield
    finally:
        if sys.platform == "win32":  # which keeps files that are open
            os.close(handle)
        with contextlib.suppress(OSError):
            path.unlink()
        if sys.platform != "win32":
            os.close(handle)


def working_folder(cache: Path, prefix: str) -> Path:
    """A new folder for the time of a fit, to be removed by :func:`remove_working`. Those that killed processes have
    left in the cache are removed here."""
    remove_abandoned(cache)
    while True:
        work = Path(tempfile.mkdtemp(prefix=prefix, dir=cache))
        taken = _taken(work / OWNED)
        if taken is not None:
            _working[work] = taken
            return work


def remove_working(work: Path) -> None:
    """Remove a folder that :func:`working_folder` has made."""
    handle = _working.pop(work, None)
    if handle is not None:
        os.close(handle)
    shutil.rmtree(work, ignore_errors=True)


def remove_abandoned(cache: Path) -> None:
    """Remove the working folders in a cache whose process has ended without removing them."""
    for lock in cache.glob(f"*-*/{OWNED}"):
        if lock.parent in _working:
            continue
        handle = _taken(lock, sure=True)
        if handle is not None:
            shutil.rmtree(lock.parent, ignore_errors=True)
            os.close(handle)
            shutil.rmtree(lock.parent, ignore_errors=True)  # what Windows has kept because it was open


def _taken(path: Path, *, sure: bool = False) -> int | None:
    """The open file, locked; None where another process or thread holds its lock, or has removed it meanwhile. Where
    the file system has no locks, the file is taken for locked by us, with `sure` by another."""
    try:
        handle = os.open(path, os.O_RDWR if sure else os.O_RDWR | os.O_CREAT, 0o666)
    except FileNotFoundError:
        return None
    except PermissionError:
        if sys.platform == "win32" or sure:  # Windows: it is being removed
            return None
        raise
    try:
        free = _lock(handle)
    except OSError:
        free = not sure
    with contextlib.suppress(OSError):
        if free and os.path.samestat(os.fstat(handle), os.stat(path)):
            return handle
    os.close(handle)
    return None


if sys.platform == "win32":
    import msvcrt

    def _lock(handle: int) -> bool:
        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        except PermissionError:
            return False
        return True

else:
    import fcntl

    def _lock(handle: int) -> bool:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            return False
        return True

"""Worker processes of this machine, kept from one problem to the next."""

from __future__ import annotations

import atexit
import collections
import contextlib
import os
import secrets
import socket
import subprocess
import sys
from concurrent.futures import Future, ThreadPoolExecutor, wait
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection, Listener
from typing import Any

from skadmm.backends.base import WorkerGone
from skadmm.backends.processes.serve import Answer, Drop, Message, without_delay

PROGRAM = "from skadmm.backends.processes.serve import main; main()"
CLOSE_SECONDS = 5.0
"""How long a worker may take to end before it is killed."""
POLL_SECONDS = 0.5
"""How often it is checked whether a process that has not connected yet is still running."""
MAX_STARTS = 5
"""The number of processes that may end before they connect."""


class WorkerProcess:
    """One worker. Messages to it are answered in their order."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.generation = 0
        """How many processes this worker has been: what one of them held is gone with it."""
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"skadmm-process-{number}")
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Connection | None = None
        self._forgotten: collections.deque[str] = collections.deque()
        self.start()

    @property
    def pid(self) -> int:
        """The number that the system gave the process."""
        return -1 if self._process is None else self._process.pid

    @property
    def alive(self) -> bool:
        """Is the process running?"""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start the process, or another one in its place. One that ends before it answers is started again."""
        for _ in range(MAX_STARTS):
            self.close()
            connection = self._started()
            if connection is not None:
                self._connection = without_delay(connection)
                self.generation += 1
                return
        raise RuntimeError(f"a worker process ended {MAX_STARTS} times before it could be used")

    def _started(self) -> Connection | None:
        """The connection to a new process; None where it has ended before it connected."""
        key = secrets.token_bytes(32)
        with Listener(("127.0.0.1", 0), authkey=key) as listener, ThreadPoolExecutor(1) as thread:
            host, port = listener.address
            environment = os.environ | {"PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)}
            process = self._process = subprocess.Popen(
                [sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, env=environment, start_new_session=True
            )
            assert process.stdin is not None
            with contextlib.suppress(BrokenPipeError), process.stdin as stream:
                stream.write(f"{host}:{port}\n{key.hex()}\n".encode())
            accepted = thread.submit(listener.accept)
            while not wait([accepted], POLL_SECONDS).done:
                if process.poll() is not None:
                    with contextlib.suppress(OSError):  # ends the wait of the other thread
                        socket.create_connection((host, port)).close()
            try:
                return accepted.result()
            except (EOFError, OSError, AuthenticationError):
                return None

    def send(self, message: Message) -> Future[Any]:
        """The response to a message, later; it raises WorkerGone where the process has ended."""
        return self._thread.submit(self._exchange, message)

    def forget(self, name: str) -> None:
        """Let the worker drop a table or a problem before its next message. Finalizers call this, in the middle of
        anything, so it takes no lock."""
        self._forgotten.append(name)

    def _exchange(self, message: Message) -> Any:
        while self._forgotten and not isinstance(message, Drop):
            self._exchange(Drop(self._forgotten.popleft()))
        connection = self._connection
        if connection is None:
            raise WorkerGone
        try:
            connection.send(message)
            answer: Answer = connection.recv()
        except (EOFError, OSError):
            raise WorkerGone from None
        if answer.error is not None:
            raise answer.error
        return answer.value

    def close(self) -> None:
        """End the process."""
        if self._connection is not None:
            self._connection.close()
        if self._process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(CLOSE_SECONDS)
            if self._process.poll() is None:
                self._process.kill()
                self._process.wait()
        self._process = self._connection = None


_started: dict[int, tuple[WorkerProcess, ...]] = {}
"""The workers that run, by how many were asked for."""


def workers(count: int) -> tuple[WorkerProcess, ...]:
    """So many workers, started at the first call and ended with this process."""
    if count not in _started:
        _started[count] = tuple(WorkerProcess(number) for number in range(count))
        for worker in _started[count]:
            atexit.register(worker.close)
    return _started[count]


def forget(count: int, names: list[str]) -> None:
    """Let the workers drop what they hold under some names; nothing where they were never started."""
    for worker in _started.get(count, ()):
        for name in names:
            worker.forget(name)

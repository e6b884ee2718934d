"""The program of a worker process: it holds blocks of rows, and calls functions on them.

The process that started it writes an address and a key to its standard input, one line each. The worker connects to
that address, and answers one message after the other until the connection is closed.
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable
from multiprocessing.connection import Client, Connection
from typing import Any, NamedTuple

import numpy as np

from skadmm.backends.files import FileBlocks
from skadmm.backends.slicing import Rows, slice_rows
from skadmm.backends.tables import as_rows
from skadmm.backends.worker import Held
from skadmm.backends.writer import with_ones
from skadmm.kernels.rows import as_matrix
from skadmm.kernels.samples import Samples


class HoldRows(NamedTuple):
    """Keep the rows of a block of a table."""

    table: str
    block: int
    rows: Rows | tuple[str, int, int]
    """The rows, or a folder of blocks with the first row and the row after the last."""
    ones: bool
    """Add a last column of ones?"""


class HoldSamples(NamedTuple):
    """Keep the samples of a block of a problem, on the rows of a table that are here already."""

    problem: str
    table: str
    block: int
    target: np.ndarray
    weight: np.ndarray
    loss: Any


class Drop(NamedTuple):
    """Forget all blocks of a table or of a problem."""

    name: str


class Call(NamedTuple):
    """Call a function on blocks of a problem."""

    problem: str
    blocks: list[int]
    call: Callable[..., Any]
    """``worker.run_on_blocks``, or ``worker.run_on_one``."""
    function: Callable[..., Any]
    arguments: Any


Message = HoldRows | HoldSamples | Drop | Call


class Answer(NamedTuple):
    """The response to a message: a value, or what was raised."""

    value: Any = None
    error: BaseException | None = None


class Blocks:
    """What a worker process holds."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, int], Rows] = {}
        self._held: dict[tuple[str, int], Held] = {}
        self._folders: dict[str, FileBlocks] = {}

    def respond(self, message: Message) -> Any:
        """Do what a message says."""
        if isinstance(message, Call):
            held = [self._held[message.problem, k] for k in message.blocks]
            return message.call(held, message.function, message.arguments)
        if isinstance(message, HoldRows):
            self._rows[message.table, message.block] = self._read(message)
        elif isinstance(message, HoldSamples):
            rows = self._rows[message.table, message.block]
            samples = Samples(rows, message.target, message.weight, message.loss, message.target.size)
            self._held[message.problem, message.block] = Held(samples)
        else:
            for kept in (self._rows, self._held):
                for key in [key for key in kept if key[0] == message.name]:
                    del kept[key]
        return None

    def _read(self, message: HoldRows) -> Rows:
        rows: Any = message.rows
        if isinstance(rows, tuple) and isinstance(rows[0], str):
            path, start, stop = rows
            if path not in self._folders:
                self._folders[path] = FileBlocks(path)
            rows = slice_rows(self._folders[path].rows, start, stop)
        return as_rows(with_ones(as_matrix(rows)))[0] if message.ones else rows


def serve(connection: Connection) -> None:
    """Answer messages until the connection is closed."""
    blocks = Blocks()
    while True:
        try:
            message = connection.recv()
        except (EOFError, OSError):
            return
        try:
            answer = Answer(blocks.respond(message))
        except Exception as error:
            answer = Answer(error=error)
        try:
            connection.send(answer)
        except (TypeError, AttributeError, ValueError) as error:  # the answer cannot be pickled
            connection.send(Answer(error=RuntimeError(f"{error}: {answer!r}"[:1000])))


def without_delay(connection: Connection) -> Connection:
    """The same connection, on which each message leaves at once. Otherwise the second part of a message of more than
    16 kB waits until the first is acknowledged, 40 ms in each direction."""
    link = socket.socket(fileno=connection.fileno())
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    link.detach()  # the connection keeps its socket
    return connection


def main() -> None:
    """Connect to the process that started this one."""
    address, key = sys.stdin.readline().strip(), bytes.fromhex(sys.stdin.readline().strip())
    host, _, port = address.rpartition(":")
    serve(without_delay(Client((host, int(port)), authkey=key)))


if __name__ == "__main__":
    main()

"""A table that is divided among processes of this machine."""

from __future__ import annotations

import os
import uuid
import weakref
from typing import Any

import numpy as np

from skadmm import _checks
from skadmm._types import TableLike
from skadmm.backends.files import FileBlocks
from skadmm.backends.processes.pool import WorkerProcess, forget, workers
from skadmm.backends.processes.serve import HoldRows
from skadmm.backends.slicing import Rows, slice_rows
from skadmm.backends.sources import as_folder, is_stored
from skadmm.backends.tables import as_rows


class Processes:
    """A table whose rows are divided among processes of this machine, so that all its cores work on one problem.

    Every process holds a part of the rows. Give the object in place of X to :class:`skadmm.Problem` or to an
    estimator. The processes are started once, and end with the process that uses them; one that is killed is
    replaced, and the run continues.

    Parameters
    ----------
    X : array, sparse matrix, DataFrame, or path of a table on disk
        The table. Processes read a folder of blocks themselves, so that it is not copied.
    workers : int, optional
        The number of processes; by default as many as this process may use cores.

    See Also
    --------
    skadmm.Problem : Takes it as X.

    Examples
    --------
    >>> import numpy as np
    >>> from skadmm.backends import Processes
    >>> Processes(np.eye(4), workers=2)
    Processes(4 × 4, workers=2)
    """

    def __init__(self, X: TableLike, workers: int | None = None) -> None:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        self.count = _checks.count(cores if workers is None else workers, "workers")
        self.folder: FileBlocks | None = as_folder(X) if is_stored(X) else None
        self.rows, self.names = as_rows(X if self.folder is None else self.folder)
        self.target = None if self.folder is None else self.folder.target
        self.sample_weight = None if self.folder is None else self.folder.sample_weight
        self.shape = self.rows.shape
        self.count = min(self.count, self.shape[0])
        self.edges = np.linspace(0, self.shape[0], self.count + 1).astype(int)
        """The first row of each block; block k is held by worker k."""
        self._name = uuid.uuid4().hex
        self._placed: dict[tuple[int, bool], int] = {}
        """The generation of the worker that holds a block, with or without a column of ones."""
        weakref.finalize(self, forget, self.count, [self.key(ones) for ones in (False, True)])

    def __repr__(self) -> str:
        return f"Processes({self.shape[0]} × {self.shape[1]}, workers={self.count})"

    def key(self, ones: bool) -> str:
        """The name under which workers hold its rows."""
        return f"{self._name}{'+1' * ones}"

    @property
    def workers(self) -> tuple[WorkerProcess, ...]:
        """The processes, one for each block."""
        return workers(self.count)

    def place(self, k: int, ones: bool) -> None:
        """Give worker k its rows, unless it has them."""
        worker = self.workers[k]
        if self._placed.get((k, ones)) == worker.generation:
            return
        start, stop = int(self.edges[k]), int(self.edges[k + 1])
        rows: Rows | tuple[str, int, int]
        if self.folder is not None:
            rows = (str(self.folder.folder.resolve()), start, stop)
        else:
            rows = _copied(slice_rows(self.rows, start, stop))
        worker.send(HoldRows(self.key(ones), k, rows, ones)).result()
        self._placed[k, ones] = worker.generation

    def release(self) -> None:
        """Release the memory of the pages read so far, where the table is on disk."""
        if self.folder is not None:
            self.folder.release()


def _copied(rows: Any) -> Rows:
    """Rows without the entries of other rows, which slices of a sparse table refer to."""
    if hasattr(rows, "indptr"):
        first, last = rows.indptr[0], rows.indptr[-1]
        return rows._replace(data=rows.data[first:last], indices=rows.indices[first:last], indptr=rows.indptr - first)
    return rows

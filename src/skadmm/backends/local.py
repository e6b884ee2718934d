"""Backends whose rows compiled code in this process can read: in memory, or mapped from files."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import numpy as np

from skadmm import _cancel
from skadmm.backends import tasks
from skadmm.backends.base import Evaluation, Evaluations, StoredSamples
from skadmm.backends.directions import Directions, directions_of
from skadmm.backends.files import FileBlocks
from skadmm.backends.single_entries import SingleEntries, find_single_entries
from skadmm.backends.slicing import Rows, part_of, take_rows
from skadmm.kernels.coupled_samples import CoupledSamples
from skadmm.kernels.expansion import several
from skadmm.kernels.rows import DenseRows, StackedRows, as_matrix, is_dense, outputs_of, stored_entries
from skadmm.kernels.samples import Samples, mean_conjugate
from skadmm.losses import Loss

ENTRIES_PER_CHUNK, ENTRIES_OF_FILES = 8_000_000, 2_000_000
"""Stored entries of X in a chunk, in memory and on disk. A run can be cancelled between two chunks, and the pages of a
file are released there."""
ROWS_PER_CHUNK = (1024, 1 << 20)
"""The minimum and the maximum number of rows in a chunk."""
CHUNKS_AT_ONCE = 2
"""Chunks evaluated at the same time, each on a thread of its own."""


class LocalBackend(StoredSamples):
    """Samples in memory.

    Parameters
    ----------
    rows : DenseRows, CSRRows or StackedRows
        Rows as compiled code reads them, see :func:`as_rows`; stacked for several outputs.
    target : ndarray of shape (n,)
        The targets; classes are coded as −1 and +1. With several outputs those of all outputs of a sample, then those
        of the next.
    weight : ndarray of shape (n,) or (0,)
        Weights whose mean is the number of outputs, or an empty array where there is one and all samples count the
        same.
    loss : loss
        An instance of one of the classes of losses.
    classes : array, optional
        The classes, in classification.
    feature_names : list of str, optional
        The names of the columns.

    Attributes
    ----------
    rows_per_chunk : int
        Rows that are read between two checks of whether the run was cancelled.

    See Also
    --------
    skadmm.backends.FileBackend : Samples in files.

    Examples
    --------
    >>> import numpy as np
    >>> from skadmm.backends import open_backend
    >>> from skadmm.losses import Squared
    >>> backend = open_backend(np.eye(3), np.ones(3), None, Squared())
    >>> type(backend).__name__
    'LocalBackend'
    """

    name = "memory"
    local_rows = True
    block_memory = False
    slow_reads = False
    natural_batch = 1

    entries_per_chunk = ENTRIES_PER_CHUNK

    def __init__(
        self,
        rows: Rows,
        target: np.ndarray,
        weight: np.ndarray,
        loss: Loss,
        *,
        classes: np.ndarray | None = None,
        feature_names: list[str] | None = None,
    ) -> None:
        self.rows, self.target, self.weight, self.loss = rows, target, weight, loss
        self.classes, self.feature_names = classes, feature_names
        self.n, self.d = rows.shape
        self.n_outputs = outputs_of(rows)
        self.nnz = stored_entries(rows)
        self.sparse = not is_dense(rows)
        first = int(np.count_nonzero(rows.values[:1])) if isinstance(rows, DenseRows) else 0
        self.several_entries = first > 1 or (self.sparse and self.nnz > self.n)
        self.weighted = weight.size > 0
        rows_per_chunk = int(self.entries_per_chunk * self.n / max(1, self.nnz))
        rows_per_chunk = max(ROWS_PER_CHUNK[0], min(ROWS_PER_CHUNK[1], rows_per_chunk))
        self.rows_per_chunk = -(-rows_per_chunk // self.n_outputs) * self.n_outputs  # whole samples

    @property
    def fingerprint(self) -> Any:
        """Rows, targets and weights."""
        return self.rows, self.target, self.weight

    @cached_property
    def single_entries(self) -> SingleEntries | str:
        """The entries of X, where every sample sees one feature; a reason where one sees more."""
        return find_single_entries(self.rows, self.target, self.weight)

    @cached_property
    def directions(self) -> Directions | None:
        """The singular directions of the rows; None where they take too much work."""
        return directions_of(as_matrix(self.rows), self.weight)

    def samples(self, batch_size: int = 1) -> Samples:
        """The rows as kernels see them, in blocks of `batch_size` samples."""
        kind: Any = CoupledSamples if self.loss.coupled else Samples
        samples: Samples = kind(self.rows, self.target, self.weight, self.loss, batch_size * self.n_outputs)
        return samples

    def block_sizes(self, batch_size: int) -> np.ndarray:
        """The number of margins in each block of `batch_size` samples; the last one may be short."""
        size = batch_size * self.n_outputs
        return np.minimum(size, self.n - np.arange(0, self.n, size)).astype(float)

    def take(self, indices: np.ndarray) -> LocalBackend:
        """The samples of some margins, copied; their weights are scaled to the mean they have here."""
        if self.n_outputs > 1:
            samples = np.unique(np.asarray(indices) // self.n_outputs)
            indices = (samples[:, None] * self.n_outputs + np.arange(self.n_outputs)).ravel()
        weight = self.n_outputs * normalised(self.weight[indices]) if self.weighted else self.weight
        return self.with_samples(take_rows(self.rows, indices), self.target[indices], weight)

    def with_samples(self, rows: Rows, target: np.ndarray, weight: np.ndarray) -> LocalBackend:
        """Other samples in memory, under the same loss and classes."""
        return LocalBackend(rows, target, weight, self.loss, classes=self.classes, feature_names=self.feature_names)

    def of_output(self, number: int) -> LocalBackend:
        """The samples of one of several outputs; the rows are shared."""
        return self.with_samples(*self._parts_of_output(number))

    def _parts_of_output(self, number: int) -> tuple[Rows, np.ndarray, np.ndarray]:
        """The rows, targets and weights of one of several outputs."""
        rows, k = self.rows, self.n_outputs
        if not isinstance(rows, StackedRows):
            return rows, self.target, self.weight
        weight = self.weight[number::k] / k
        return rows.rows, self.target[number::k].copy(), np.empty(0) if np.all(weight == 1.0) else weight

    def with_targets(self, loss: Any, target: np.ndarray) -> LocalBackend:
        """The same rows and weights, with other targets under another loss."""
        return LocalBackend(
            self.rows, target, self.weight, loss, classes=self.classes, feature_names=self.feature_names
        )

    def prefetch(self, order: np.ndarray, batch_size: int) -> None:
        """Do nothing: the rows are in memory."""

    def fetch(self, start: int, stop: int) -> None:
        """Rows from `start` to `stop` will be read next; nothing is done for rows in memory."""

    def between_chunks(self) -> None:
        """Raise where the run was cancelled."""
        _cancel.check_cancelled()

    def chunks(self) -> Iterator[tuple[slice, Samples]]:
        """Consecutive samples, each chunk with its place among all of them."""
        whole, n = self.samples(), self.n
        rows_per_chunk = self.rows_per_chunk
        if n > rows_per_chunk and isinstance(self.rows, DenseRows) and not self.rows.values.flags.c_contiguous:
            rows_per_chunk = n  # a slice of an F-ordered array would need kernels of its own
        for start in range(0, n, rows_per_chunk):
            self.between_chunks()
            stop = min(start + rows_per_chunk, n)
            if (start, stop) == (0, n):
                yield slice(0, n), whole
                return
            yield slice(start, stop), part_of(whole, start, stop)

    def _results(self, work: Callable[[slice, Samples], Any]) -> Iterator[tuple[slice, Any]]:
        """The results of `work` on all chunks, in their order. Some chunks at a time are evaluated in parallel."""
        chunks = self.chunks()
        while group := list(itertools.islice(chunks, CHUNKS_AT_ONCE)):
            each = several() if len(group) > 1 else map
            yield from zip((place for place, _ in group), each(lambda chunk: work(*chunk), group), strict=True)

    def each(self, task: Callable[..., Any], *arguments: Any) -> list[Any]:
        """The results of a task, one per chunk."""
        return [result for _, result in self._results(lambda _, samples: task(samples, *arguments))]

    def mean(self, task: Callable[..., Any], *arguments: Any) -> Any:
        """The mean of a task's results over all samples."""
        total = None
        for place, result in self._results(lambda _, samples: task(samples, *arguments)):
            if place.stop - place.start == self.n:
                return result
            share = tasks.scaled(result, (place.stop - place.start) / self.n)
            total = share if total is None else tasks.added([total, share])
        return total

    def evaluate(self, x: np.ndarray) -> Evaluation:
        """All samples at `x`."""
        slopes, margins = np.empty(self.n), np.empty(self.n)
        gradient = np.zeros(self.d)
        loss = 0.0
        results = self._results(
            lambda place, samples: tasks.evaluate(samples, x, self.n, slopes[place], margins[place])
        )
        for _, (part, slope) in results:
            loss += part
            gradient += slope
        return Evaluation(loss, gradient, slopes, margins)

    def mean_conjugate(self, slopes: Any, scale: float) -> float:
        """(1/n) Σ w_i ℓ*(scale θ_i / w_i, b_i), θ the slopes of an evaluation."""
        return float(mean_conjugate(self.samples(), scale * slopes))


class FileBackend(LocalBackend):
    """Samples mapped from a folder of blocks; the memory of rows that were read is released between two chunks.

    Parameters
    ----------
    folder : FileBlocks
        The folder.
    target : ndarray of shape (n,)
        The targets; classes are coded as −1 and +1.
    weight : ndarray of shape (n,) or (0,)
        Weights with mean one, or an empty array where all samples count the same.
    loss : loss
        An instance of one of the classes of losses.
    classes : ndarray or None
        The classes, in classification.
    rows : StackedRows, optional
        The rows of the folder for several outputs.

    See Also
    --------
    skadmm.backends.FileBlocks : The folder.
    skadmm.backends.LocalBackend : Samples in memory.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> from skadmm.backends import open_backend
    >>> from skadmm.backends.convert import write_blocks
    >>> from skadmm.losses import Squared
    >>> folder = pathlib.Path(tempfile.mkdtemp()) / "rows"
    >>> _ = write_blocks(folder, [(np.eye(3), np.ones(3))])
    >>> open_backend(folder, None, None, Squared()).name
    'files'
    """

    name = "files"
    slow_reads = True

    entries_per_chunk = ENTRIES_OF_FILES

    def __init__(
        self,
        folder: FileBlocks,
        target: np.ndarray,
        weight: np.ndarray,
        loss: Loss,
        classes: np.ndarray | None,
        rows: Rows | None = None,
    ) -> None:
        rows = folder.rows if rows is None else rows
        super().__init__(rows, target, weight, loss, classes=classes, feature_names=folder.names)
        self.folder = folder

    def with_targets(self, loss: Any, target: np.ndarray) -> FileBackend:
        """The same rows and weights, with other targets under another loss."""
        return FileBackend(self.folder, target, self.weight, loss, self.classes, self.rows)

    def of_output(self, number: int) -> FileBackend:
        """The samples of one of several outputs; the rows are shared."""
        rows, target, weight = self._parts_of_output(number)
        return FileBackend(self.folder, target, weight, self.loss, self.classes, rows)

    @property
    def fingerprint(self) -> Any:
        """The checksum of the folder, with the targets and weights in use."""
        return self.folder.fingerprint, self.target, self.weight

    def prefetch(self, order: np.ndarray, batch_size: int) -> None:
        """Let the system read the first of these blocks ahead, where blocks are large."""
        self.folder.expect(order, batch_size)

    def fetch(self, start: int, stop: int) -> None:
        """Let the system read these rows ahead."""
        self.folder.fetch(start // self.n_outputs, -(-stop // self.n_outputs))

    @cached_property
    def evaluations(self) -> Evaluations:
        """One evaluation at a time is kept, because a table on disk may have very many rows."""
        return Evaluations(self, kept=1)

    @cached_property
    def at_zero(self) -> tuple[float, float]:
        """The mean loss at x = 0, and the norm of its gradient there."""
        loss, gradient = self.mean(tasks.loss_and_gradient, np.zeros(self.d))
        with np.errstate(over="ignore"):  # infinite under a logarithmic link with large offsets
            return float(loss), float(np.linalg.norm(gradient))

    def between_chunks(self) -> None:
        """Release the pages read so far, and raise where the run was cancelled."""
        self.folder.release()
        super().between_chunks()


def normalised(weight: np.ndarray) -> np.ndarray:
    """The weights, scaled to mean one."""
    return weight * (weight.size / weight.sum())

"""What a storage backend is: where rows are kept, and how functions of them are evaluated there.

A backend holds the samples of one problem: rows, targets and weights under a loss. Whatever cannot be done in one place
is a declared capability, an attribute of the backend, and a solver that needs it says so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy.sparse.linalg

from skadmm.backends import tasks
from skadmm.kernels.samples import Samples


class Evaluation(NamedTuple):
    """All samples at one point: the mean loss, its gradient, and the slope of each sample, wherever it is kept."""

    loss: float
    gradient: np.ndarray
    slopes: Any
    """An array, or a handle that ``mean_conjugate`` of the same backend takes."""
    margins: np.ndarray | None
    """None where they are kept elsewhere."""


class Backend(Protocol):
    """Where the samples of a problem are."""

    name: str
    """In messages: "memory", "files", "dask"."""
    local_rows: bool
    """Capability: can compiled code in this process read the rows?"""
    slow_reads: bool
    """Do rows come from a disk or another process, so that reading each of them once per step is worth a guess?"""

    n: int
    """The number of samples."""
    d: int
    """The number of features."""
    nnz: int
    """Stored entries of X."""
    sparse: bool
    """Are the rows sparse?"""
    weighted: bool
    """Do samples have weights of their own?"""
    loss: Any
    classes: np.ndarray | None
    """The two classes that targets −1 and +1 stand for; None in regression."""
    feature_names: list[str] | None

    @property
    def evaluations(self) -> Evaluations:
        """Evaluations of all samples, the last ones remembered."""

    @property
    def largest_norm(self) -> float:
        """The largest w_i ‖a_i‖²."""

    @property
    def mean_norm(self) -> float:
        """(1/n) Σ w_i ‖a_i‖²."""

    @property
    def top_eigenvalue(self) -> float:
        """A bound of the largest eigenvalue of XᵀWX/n, tight to a part in a hundred."""

    @property
    def at_zero(self) -> tuple[float, float]:
        """The mean loss at x = 0, and the norm of its gradient there."""

    @property
    def fingerprint(self) -> Any:
        """What identifies the data in a checkpoint."""

    @property
    def natural_batch(self) -> int:
        """Samples in a block unless the user says otherwise."""

    def samples(self, batch_size: int = 1) -> Samples:
        """The rows as kernels see them, in blocks of `batch_size`; an error without the capability `local_rows`."""

    def block_sizes(self, batch_size: int) -> np.ndarray:
        """The number of samples in each block of `batch_size`; the last one may be short."""

    def take(self, indices: np.ndarray) -> Backend:
        """Some samples, copied into memory."""

    def prefetch(self, order: np.ndarray, batch_size: int) -> None:
        """Blocks of `batch_size` will be read in this order."""

    def between_chunks(self) -> None:
        """Called between two chunks of rows: ends a run that was cancelled, and releases memory of rows read."""

    def each(self, task: Callable[..., Any], *arguments: Any) -> list[Any]:
        """The results of a task (``tasks.py``), one per chunk."""

    def mean(self, task: Callable[..., Any], *arguments: Any) -> Any:
        """The weighted mean of a task's results over all samples."""

    def evaluate(self, x: np.ndarray) -> Evaluation:
        """All samples at `x`."""

    def mean_conjugate(self, slopes: Any, scale: float) -> float:
        """(1/n) Σ w_i ℓ*(scale θ_i / w_i, b_i), θ the slopes of an evaluation."""


class WorkerBackend(Backend, Protocol):
    """A backend whose chunks are on workers, which keep state between two calls."""

    sizes: np.ndarray
    """The number of samples in each chunk."""

    def number(self) -> int:
        """A number that this backend has never given before, by which workers know what they keep."""

    def bounds(self, batch_size: int) -> list[tuple[int, int, int]]:
        """For each block of `batch_size`: its chunk, its first row there, and the row after its last."""

    def place(self, k: int) -> str | None:
        """The worker that holds chunk k, if known."""

    def locate(self) -> None:
        """Find out again which worker holds which chunk."""

    def stateful(self, k: int, task: Callable[..., Any], *arguments: Any) -> Any:
        """Send a task to chunk k, which may use what the chunk keeps; :meth:`result` waits for the response."""

    def result(self, asked: Any) -> Any:
        """The response to a task sent by :meth:`stateful`."""

    def each_stateful(self, task: Callable[..., Any], arguments: list[tuple[Any, ...]]) -> list[Any]:
        """The results of a task on every chunk, with an entry of `arguments` for each."""

    def call_on_one(self, blocks: list[int], task: Callable[..., Any], *arguments: Any) -> Any:
        """The result of a task on several chunks of one worker."""


class StoredSamples:
    """What the backends share: evaluations that are remembered, and the constants of the data.

    A subclass has the attributes and methods of :class:`Backend`.
    """

    @cached_property
    def evaluations(self: Any) -> Evaluations:
        """Evaluations of all samples, the last ones remembered."""
        return Evaluations(self)

    @cached_property
    def largest_norm(self: Any) -> float:
        """The largest w_i ‖a_i‖²."""
        return float(max(self.each(tasks.largest_norm)))

    @cached_property
    def mean_norm(self: Any) -> float:
        """(1/n) Σ w_i ‖a_i‖²."""
        return float(self.mean(tasks.mean_norm))

    @cached_property
    def top_eigenvalue(self: Any) -> float:
        """A bound of the largest eigenvalue of XᵀWX/n, tight to a part in a hundred."""
        d = self.d

        def product(v: np.ndarray) -> np.ndarray:
            return self.mean(tasks.gram_product, np.ascontiguousarray(v.ravel(), dtype=float))

        if d == 1:
            return float(product(np.ones(1))[0])
        start = np.random.default_rng(0).standard_normal(d)
        operator = scipy.sparse.linalg.LinearOperator((d, d), matvec=product, dtype=float)
        if not np.any(product(start)):
            return 0.0
        try:
            top = scipy.sparse.linalg.eigsh(operator, k=1, v0=start, tol=1e-3, return_eigenvectors=False)[0]
        except scipy.sparse.linalg.ArpackError:  # numbers whose squares overflow: the trace is a bound too
            return self.mean_norm
        return float(top) * 1.01

    @cached_property
    def at_zero(self: Any) -> tuple[float, float]:
        """The mean loss at x = 0, and the norm of its gradient there."""
        evaluation = self.evaluations.uncounted(np.zeros(self.d))
        return evaluation.loss, float(np.linalg.norm(evaluation.gradient))


class Evaluations:
    """Evaluations of one backend's samples; the last two points are remembered, so that no one reads them twice."""

    KEPT = 2

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._kept: list[_Kept] = []

    def start_run(self) -> None:
        """A new run counts every sample that it uses, also where an earlier run has read them."""
        for kept in self._kept:
            kept.counted = False

    def known(self, x: np.ndarray) -> Evaluation | None:
        """The evaluation at `x`, if it is remembered."""
        return next((kept.evaluation for kept in self._kept if np.array_equal(kept.x, x)), None)

    def at(self, x: np.ndarray) -> tuple[Evaluation, int]:
        """The evaluation at `x` for a solver, and the samples to count for it: all of them the first time, also where
        they were read for the record, and none after that."""
        kept = self._find(x)
        touched, kept.counted = (0 if kept.counted else self._backend.n), True
        return kept.evaluation, touched

    def uncounted(self, x: np.ndarray) -> Evaluation:
        """The evaluation at `x` for the record or for a scale."""
        return self._find(x).evaluation

    def _find(self, x: np.ndarray) -> _Kept:
        for kept in self._kept:
            if np.array_equal(kept.x, x):
                return kept
        del self._kept[self.KEPT - 1 :]  # before the arrays of the new one are made
        made = _Kept(x.copy(), self._backend.evaluate(x))
        self._kept.insert(0, made)
        return made


@dataclass
class _Kept:
    x: np.ndarray
    evaluation: Evaluation
    counted: bool = False
    """Has a solver's count of samples touched included it?"""

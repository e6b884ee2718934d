"""What a storage backend is: it keeps the samples of one problem, and evaluates functions of them where they are.

The samples are rows, targets and weights under a loss. :class:`Backend` is what every backend does. What only some can
do is a declared capability, an attribute of the backend; a solver that needs it refuses the others with a reason.
:class:`RemoteBackend` adds what backends in other processes do.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol, cast

import numpy as np
import scipy.sparse.linalg

from skadmm.backends import tasks
from skadmm.backends.constant_margin import ConstantScale, constant_scale
from skadmm.kernels.samples import Samples
from skadmm.losses import Loss

FAR_BELOW = 1e-3
"""What is below this share of a loss or curvature at the margin zero shows that zero is far from any solution."""


class Evaluation(NamedTuple):
    """The loss of all samples and its derivatives at one point x.

    Parameters
    ----------
    loss : float
        The mean loss.
    gradient : ndarray of shape (d,)
        The gradient of the mean loss.
    slopes : array or object
        The weighted slope w_i ℓ'(a_i·x, b_i) of each sample: an array, or a handle that ``mean_conjugate`` of the same
        backend takes.
    margins : ndarray or None
        The margin a_i·x of each sample; None where they stay in other processes.

    See Also
    --------
    skadmm.backends.Evaluations : Remembers the last ones.

    Examples
    --------
    >>> import numpy as np
    >>> from skadmm.backends import open_backend
    >>> from skadmm.losses import Squared
    >>> backend = open_backend(np.eye(3), np.ones(3), None, Squared())
    >>> backend.evaluate(np.zeros(3)).gradient
    array([-0.33333333, -0.33333333, -0.33333333])
    """

    loss: float
    gradient: np.ndarray
    slopes: Any
    margins: np.ndarray | None


class Backend(Protocol):
    """The samples of a problem, and what can be computed of them where they are; a Protocol for type checkers.

    See Also
    --------
    skadmm.backends.StoredSamples : The base class of backends.
    skadmm.backends.open_backend : The backend that holds a given X.

    Examples
    --------
    >>> import numpy as np
    >>> from skadmm.backends import open_backend
    >>> from skadmm.losses import Squared
    >>> backend = open_backend(np.eye(3), np.ones(3), None, Squared())
    >>> backend.name, backend.n, backend.d, backend.local_rows
    ('memory', 3, 3, True)
    """

    name: str
    """In messages: "memory", "files", "dask"."""
    local_rows: bool
    """Capability: can compiled code in this process read the rows?"""
    block_memory: bool
    """Capability: can tasks keep values with the blocks of rows between two calls? Rows in this process need none; for
    rows elsewhere the backend has the members of :class:`RemoteBackend` then."""
    slow_reads: bool
    """Do rows come from a disk or another process? Solvers then save reads at the price of computations."""

    n: int
    """The number of margins: of samples, times that of outputs."""
    d: int
    """The number of coefficients: of features, times that of outputs."""
    n_outputs: int
    """The number of outputs, k. Margin i·k + c is that of sample i and output c; coefficient c·d/k + j is that of
    feature j and output c."""
    nnz: int
    """Stored entries of X."""
    sparse: bool
    """Are the rows sparse?"""
    weighted: bool
    """Do samples have weights of their own?"""
    several_entries: bool
    """True where it is known at once that a row of X has several entries, so that nothing need be searched."""
    loss: Loss
    classes: np.ndarray | None
    """The two classes that targets −1 and +1 stand for, or those of the outputs; None in regression."""
    feature_names: list[str] | None
    """Column names of X, where it has any."""

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
    def constant_scale(self) -> ConstantScale | None:
        """The scale of the loss at the best constant margin; None where the loss has none."""

    @property
    def curvature_scale(self) -> float:
        """A bound of ℓ''; a typical curvature where the loss has no bound."""

    @property
    def typical_curvature(self) -> float:
        """The same for solvers that need no bound: a curvature that ℓ'' has near solutions."""

    @property
    def mean_curvatures(self) -> tuple[float, float]:
        """The mean of ℓ'' at the margin 0, and at the constant margin of the mean target."""

    @property
    def fingerprint(self) -> Any:
        """What identifies the data in a checkpoint."""

    @property
    def natural_batch(self) -> int:
        """The default batch size."""

    def samples(self, batch_size: int = 1) -> Samples:
        """The rows as kernels see them, in blocks of `batch_size` samples; an error without the capability
        `local_rows`."""

    def block_sizes(self, batch_size: int) -> np.ndarray:
        """The number of margins in each block of `batch_size` samples; the last one may be short."""

    def take(self, indices: np.ndarray) -> Backend:
        """The samples of some margins, copied into memory."""

    def prefetch(self, order: np.ndarray, batch_size: int) -> None:
        """A hint: blocks of `batch_size` will be read in this order."""

    def between_chunks(self) -> None:
        """To be called between two chunks of rows: raises where the run was cancelled, and releases the memory of rows
        read."""

    def each(self, task: Callable[..., Any], *arguments: Any) -> list[Any]:
        """The results of a task (``tasks.py``), one per chunk."""

    def mean(self, task: Callable[..., Any], *arguments: Any) -> Any:
        """The weighted mean of a task's results over all samples."""

    def evaluate(self, x: np.ndarray) -> Evaluation:
        """All samples at `x`."""

    def mean_conjugate(self, slopes: Any, scale: float) -> float:
        """(1/n) Σ w_i ℓ*(scale θ_i / w_i, b_i), θ the slopes of an evaluation."""


NumberedPoint = tuple[int, np.ndarray]
"""A point x under a number that no other point has, by which a worker knows whether what it keeps belongs to x."""


class Executor(Protocol):
    """Blocks in other processes (workers), and calls of functions on them; a Protocol for type checkers.

    Each block has a memory that tasks may use. It is lost with its worker: a task must be able to do without it, or
    report ``tasks.Lost``. Dask clusters and processes of this machine are two implementations.

    Attributes
    ----------
    sizes : ndarray
        The number of samples in each block.

    See Also
    --------
    skadmm.backends.RemoteBackend : A backend that is one.

    Examples
    --------
    >>> from skadmm.backends import BACKENDS
    >>> {"dask", "processes"} <= set(BACKENDS)
    True
    """

    sizes: np.ndarray

    def number(self) -> int:
        """A number that was not returned before, for a :data:`NumberedPoint`."""

    def place(self, k: int) -> str | None:
        """The address of the worker that holds block k; None where it is not known."""

    def locate(self) -> None:
        """Find out where the blocks are. Needed after :class:`WorkerGone`."""

    def stateful(self, k: int, task: Callable[..., Any], *arguments: Any) -> Any:
        """Start a task on block k and its memory. The pending request it returns is for :meth:`result`."""

    def result(self, pending: Any) -> Any:
        """The response to a pending request."""

    def call_on_each(self, name: str, function: Callable[..., Any], arguments: dict[int, tuple[Any, ...]]) -> list[Any]:
        """The responses of some blocks, which are the keys of `arguments`, in their order."""

    def each_stateful(self, task: Callable[..., Any], arguments: list[tuple[Any, ...]]) -> list[Any]:
        """The responses of all blocks to a task on a block and its memory; `arguments` has a tuple per block."""

    def call_on_one(self, blocks: list[int], task: Callable[..., Any], *arguments: Any) -> Any:
        """Call a task on several blocks of one worker at once; raises :class:`WorkerGone` where they are not there."""

    def map_reduce(
        self, kind: str, function: Callable[..., Any], arguments: list[tuple[Any, ...]], *, retry: bool = True
    ) -> Any:
        """Call a function on every block and add up the responses (``tasks.added``); `arguments` has a tuple per block.

        With ``retry=False`` a lost worker raises :class:`WorkerGone` instead of another attempt.
        """


class RemoteBackend(Backend, Executor, Protocol):
    """A backend whose rows are blocks in other processes (workers); a Protocol for type checkers.

    See Also
    --------
    skadmm.backends.Backend : What every backend has.
    skadmm.backends.Executor : How functions are called on the blocks.

    Examples
    --------
    The backend of Dask collections is one:

    >>> from skadmm.backends import BACKENDS
    >>> "dask" in BACKENDS
    True
    """

    def bounds(self, batch_size: int) -> list[tuple[int, int, int]]:
        """Each batch as (block, first row, row after the last); no batch spans two blocks."""


class WorkerGone(Exception):  # noqa: N818
    """The error for a lost worker, which held blocks of rows or their memory.

    See Also
    --------
    skadmm.backends.RemoteBackend : Raises it.

    Examples
    --------
    >>> from skadmm.backends import WorkerGone
    >>> issubclass(WorkerGone, Exception)
    True
    """


def as_remote(backend: Backend) -> RemoteBackend:
    """A backend without the capability `local_rows`, with the methods that such backends have."""
    if backend.local_rows:
        raise TypeError(f"the rows are kept in this process ({backend.name}): they are not divided among workers")
    return cast(RemoteBackend, backend)


class StoredSamples:
    """The base class of backends: it remembers evaluations and computes constants of the data.

    A subclass adds the other members of :class:`Backend`.

    See Also
    --------
    skadmm.backends.Backend : The members that a subclass adds.

    Examples
    --------
    >>> import numpy as np
    >>> from skadmm.backends import open_backend
    >>> from skadmm.losses import Squared
    >>> backend = open_backend(np.eye(3), np.ones(3), None, Squared())
    >>> backend.largest_norm, backend.at_zero[0]
    (1.0, 0.5)
    """

    n_outputs: int = 1
    several_entries: bool = False

    def __getstate__(self) -> dict[str, Any]:
        """All but the evaluations, which belong to this object."""
        return {name: value for name, value in self.__dict__.items() if name != "evaluations"}

    @cached_property
    def evaluations(self: Backend) -> Evaluations:
        """Evaluations of all samples, the last ones remembered."""
        return Evaluations(self)

    @cached_property
    def largest_norm(self: Backend) -> float:
        """The largest w_i ‖a_i‖²."""
        return float(max(self.each(tasks.largest_norm))) / self.n_outputs

    @cached_property
    def mean_norm(self: Backend) -> float:
        """(1/n) Σ w_i ‖a_i‖²."""
        return float(self.mean(tasks.mean_norm))

    @cached_property
    def top_eigenvalue(self: Backend) -> float:
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
    def at_zero(self: Backend) -> tuple[float, float]:
        """The mean loss at x = 0, and the norm of its gradient there."""
        evaluation = self.evaluations.uncounted(np.zeros(self.d))
        with np.errstate(over="ignore"):  # infinite under a logarithmic link with large offsets
            return evaluation.loss, float(np.linalg.norm(evaluation.gradient))

    @cached_property
    def constant_scale(self: Backend) -> ConstantScale | None:
        """The scale of the loss at the best constant margin; None where the loss has none."""
        return constant_scale(self)

    @cached_property
    def curvature_scale(self: Backend) -> float:
        """The bound of ℓ'', where the loss has one. Otherwise the mean of ℓ'' at the margin 0 or at the constant margin
        of the mean target, whichever is larger; 1 for a loss with kinks."""
        scale = max(self.mean_curvatures)
        return scale if 0.0 < scale < math.inf else 1.0

    @cached_property
    def typical_curvature(self: Backend) -> float:
        """The same without the margin 0 where the curvature there is more than a thousand times larger: no solution is
        near it, unless there is no intercept. For solvers that search along lines, and need no bound."""
        at_zero, there = self.mean_curvatures
        return there if 0.0 < there < FAR_BELOW * at_zero else self.curvature_scale

    @cached_property
    def mean_curvatures(self: Backend) -> tuple[float, float]:
        """The mean of ℓ'' at the margin 0, and at the constant margin of the mean target, 0 where there is none. Where
        the loss has a bound of ℓ'', both are the bound."""
        loss = self.loss
        if math.isfinite(loss.curvature_bound):
            return loss.curvature_bound, loss.curvature_bound
        if not loss.smooth:
            return 1.0, 1.0
        scale, there = float(self.mean(tasks.mean_curvature, 0.0)), 0.0
        if loss.link is not None:
            mean, offset = self.mean(tasks.mean_target)
            margin = float(loss.link(np.asarray(mean))) - offset
            there = float(self.mean(tasks.mean_curvature, margin)) if math.isfinite(margin) else 0.0
        return scale, there


class Evaluations:
    """The evaluations of a backend; the last ones are remembered, so that no point is evaluated twice.

    Parameters
    ----------
    backend : Backend
        The samples.
    kept : int
        How many are remembered.

    See Also
    --------
    skadmm.backends.Evaluation : One of them.

    Examples
    --------
    >>> import numpy as np
    >>> from skadmm.backends import open_backend
    >>> from skadmm.losses import Squared
    >>> backend = open_backend(np.eye(3), np.ones(3), None, Squared())
    >>> evaluation, touched = backend.evaluations.at(np.zeros(3))
    >>> evaluation.loss, touched
    (0.5, 3)
    >>> backend.evaluations.at(np.zeros(3))[1]
    0
    """

    def __init__(self, backend: Backend, kept: int = 2) -> None:
        self._most = kept
        self._owner = weakref.ref(backend)
        """The backend keeps this object, not the other way round: what a fold of a cross-validation has computed is
        freed with it, and not some time later by the collector of cycles."""
        self._kept: list[_Kept] = []

    @property
    def _backend(self) -> Backend:
        backend = self._owner()
        if backend is None:
            raise ReferenceError("the samples of these evaluations are gone")
        return backend

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
        del self._kept[self._most - 1 :]  # before the arrays of the new one are made
        made = _Kept(x.copy(), self._backend.evaluate(x))
        self._kept.insert(0, made)
        return made


@dataclass
class _Kept:
    x: np.ndarray
    evaluation: Evaluation
    counted: bool = False
    """Has a solver's count of samples touched included it?"""

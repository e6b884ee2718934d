"""The backends by name, and which of them keeps a given X.

A new backend is one file, with a class that has the members of :class:`~skadmm.backends.base.Backend` and two functions
that recognise and open its X, and one line here. ``CONTRIBUTING.md`` has an example.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, cast

import numpy as np

from skadmm._names import Registry
from skadmm._types import TableLike, Values
from skadmm.backends.base import Backend, StoredSamples
from skadmm.backends.kinds import is_dask
from skadmm.backends.local import FileBackend, LocalBackend
from skadmm.backends.named_columns import vectors_of
from skadmm.backends.processes.table import Processes
from skadmm.backends.sources import as_folder, is_npz, is_stored, read_npz
from skadmm.backends.tables import as_rows, as_target, as_weight, for_outputs
from skadmm.losses import Loss


class BackendKind(NamedTuple):
    """An entry of ``BACKENDS``: how a kind of storage is recognised and opened.

    Parameters
    ----------
    recognises : callable
        From X to True where X is stored this way. Must not import optional packages.
    open : callable
        From X, target, sample_weight and the loss to the backend. May import optional packages.
    example : callable, optional
        From an array in memory to an X that is stored this way, for the tests that every backend has to pass.

    See Also
    --------
    skadmm.backends.open_backend : Tries the kinds, the last one added first.

    Examples
    --------
    >>> from skadmm.backends import BACKENDS
    >>> BACKENDS["files"].recognises("a/folder"), BACKENDS["files"].recognises([[1.0, 2.0]])
    (True, False)
    """

    recognises: Callable[[Any], bool]
    open: Callable[[Any, Any, Any, Loss], Backend]
    example: Callable[[np.ndarray], Any] | None = None


def _open_dask(X: Any, target: Any, weight: Any, loss: Loss) -> Backend:
    from skadmm.backends.dask.backend import DaskBackend

    if loss.coupled or getattr(target, "ndim", 1) == 2:
        raise ValueError("X is on Dask: it takes a target with one output; several need rows in memory or in files")
    return DaskBackend(X, target, weight, loss)


def _open_folder(X: Any, target: Any, weight: Any, loss: Loss) -> Backend:
    X, given = vectors_of(X, {"target": target, "sample_weight": weight}, "target")
    target, weight = given.values()
    column, by_name = target if isinstance(target, str) else None, weight if isinstance(weight, str) else None
    folder = as_folder(X, column, by_name, labelled=target is None or column is not None)
    own = target is None or column is not None
    target, classes = as_target(folder.target if own else target, folder.n, loss)
    weight = as_weight(folder.sample_weight if weight is None or by_name is not None else weight, folder.n)
    rows, weight = for_outputs(folder.rows, target, weight)
    return FileBackend(folder, target, weight, loss, classes, rows)


def _open_memory(X: Any, target: Any, weight: Any, loss: Loss) -> Backend:
    if not isinstance(X, np.ndarray) and is_npz(X):
        X, target, weight = read_npz(X, target, weight)
    rows, names = as_rows(X)
    target, classes = as_target(target, rows.shape[0], loss)
    stacked, weight = for_outputs(rows, target, as_weight(weight, rows.shape[0]))
    return LocalBackend(stacked, target, weight, loss, classes=classes, feature_names=names)


def _open_processes(X: Any, target: Any, weight: Any, loss: Loss) -> Backend:
    from skadmm.backends.processes.backend import ProcessBackend

    return ProcessBackend(X, target, weight, loss)


BACKENDS: Registry[BackendKind] = Registry("backend")
"""The last one added is tried first."""
BACKENDS.add("memory", BackendKind(lambda X: True, _open_memory, np.asarray))
BACKENDS.add("files", BackendKind(is_stored, _open_folder))
BACKENDS.add("dask", BackendKind(is_dask, _open_dask))
BACKENDS.add("processes", BackendKind(lambda X: isinstance(X, Processes), _open_processes))


def open_backend(X: TableLike, target: Values | None, sample_weight: Values | None, loss: Loss) -> Backend:
    """Open the backend that holds the samples of X.

    Parameters
    ----------
    X : array, sparse matrix, table, folder, Dask collection or backend
        The rows; a backend is returned as it is.
    target : array-like or None
        The targets; None for a folder that has its own.
    sample_weight : array-like or None
        The weights of the samples.
    loss : loss
        An instance of one of the classes of losses.

    Returns
    -------
    Backend
        The samples where they are stored.

    See Also
    --------
    skadmm.Problem : Opens its backend this way.

    Examples
    --------
    >>> import numpy as np
    >>> from skadmm.backends import open_backend
    >>> from skadmm.losses import Squared
    >>> backend = open_backend(np.eye(3), np.ones(3), None, Squared())
    >>> backend.name
    'memory'
    """
    if isinstance(X, StoredSamples):
        return cast(Backend, X)
    if type(X) is np.ndarray:
        return _open_memory(X, target, sample_weight, loss)
    kind = next(kind for _, kind in reversed(list(BACKENDS.items())) if kind.recognises(X))
    return kind.open(X, target, sample_weight, loss)

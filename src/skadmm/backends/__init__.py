"""Where rows are kept: in memory, in a folder of files, or on the workers of a Dask cluster.

Each backend is one file and one line in ``BACKENDS``: what it recognises, and how it opens it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from skadmm._names import Registry
from skadmm.backends.base import Backend, Evaluation, Evaluations, StoredSamples
from skadmm.backends.files import BlocksError, FileBlocks, as_folder, is_folder
from skadmm.backends.kinds import is_dask
from skadmm.backends.local import FileBackend, LocalBackend
from skadmm.backends.tables import as_rows
from skadmm.backends.targets import as_target, as_weight


class BackendKind(NamedTuple):
    """How a kind of storage is recognised and opened."""

    recognises: Callable[[Any], bool]
    """Is this X kept there? Must not import optional packages."""
    open: Callable[[Any, Any, Any, Any], Backend]
    """From X, target, sample_weight and the loss to the backend."""
    example: Callable[[Any], Any] | None = None
    """From an array in memory to an X that is kept there, for the tests that every backend has to pass."""


def _open_dask(X: Any, target: Any, weight: Any, loss: Any) -> Backend:
    from skadmm.backends.dask.backend import DaskBackend

    return DaskBackend(X, target, weight, loss)


def _open_folder(X: Any, target: Any, weight: Any, loss: Any) -> Backend:
    folder = as_folder(X)
    target, classes = as_target(folder.target if target is None else target, folder.n, loss)
    return FileBackend(
        folder, target, as_weight(folder.sample_weight if weight is None else weight, folder.n), loss, classes
    )


def _open_memory(X: Any, target: Any, weight: Any, loss: Any) -> Backend:
    rows, names = as_rows(X)
    target, classes = as_target(target, rows.shape[0], loss)
    return LocalBackend(rows, target, as_weight(weight, rows.shape[0]), loss, classes=classes, feature_names=names)


BACKENDS: Registry[BackendKind] = Registry("backend")
BACKENDS.add("dask", BackendKind(is_dask, _open_dask))
BACKENDS.add("files", BackendKind(is_folder, _open_folder))
BACKENDS.add("memory", BackendKind(lambda X: True, _open_memory, np.asarray))  # last: it takes whatever is left


def open_backend(X: Any, target: Any, sample_weight: Any, loss: Any) -> Backend:
    """The samples of `X`, kept where they are; a backend is returned as it is."""
    if isinstance(X, StoredSamples):
        return X
    kind = next(kind for _, kind in BACKENDS.items() if kind.recognises(X))
    return kind.open(X, target, sample_weight, loss)


__all__ = [
    "BACKENDS",
    "Backend",
    "BackendKind",
    "BlocksError",
    "Evaluation",
    "Evaluations",
    "FileBackend",
    "FileBlocks",
    "LocalBackend",
    "StoredSamples",
    "as_folder",
    "as_rows",
    "as_target",
    "as_weight",
    "is_dask",
    "is_folder",
    "open_backend",
]

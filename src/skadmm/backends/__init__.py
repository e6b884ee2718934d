"""Where rows are kept: in memory, in a folder of files, or on the workers of a Dask cluster."""

from skadmm.backends.base import Backend, Evaluation, Evaluations, Executor, RemoteBackend, StoredSamples, WorkerGone
from skadmm.backends.files import BlocksError, FileBlocks
from skadmm.backends.kinds import is_dask
from skadmm.backends.local import FileBackend, LocalBackend
from skadmm.backends.processes.table import Processes
from skadmm.backends.registry import BACKENDS, BackendKind, open_backend
from skadmm.backends.sources import as_folder, is_stored
from skadmm.backends.tables import as_rows, as_target, as_weight

__all__ = [
    "BACKENDS",
    "Backend",
    "BackendKind",
    "BlocksError",
    "Evaluation",
    "Evaluations",
    "Executor",
    "FileBackend",
    "FileBlocks",
    "LocalBackend",
    "Processes",
    "RemoteBackend",
    "StoredSamples",
    "WorkerGone",
    "as_folder",
    "as_rows",
    "as_target",
    "as_weight",
    "is_dask",
    "is_stored",
    "open_backend",
]

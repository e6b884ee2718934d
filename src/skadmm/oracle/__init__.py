"""What a second-order solver may ask about the samples, wherever they are kept."""

from __future__ import annotations

from typing import Any, cast

from skadmm.backends.base import Backend
from skadmm.backends.local import LocalBackend
from skadmm.oracle.base import LARGE_SHIFT, LARGE_SHIFT_SHARE, LostMemory, ModelSums, SampleOracle
from skadmm.oracle.coupled import CoupledOracle
from skadmm.oracle.local import LocalOracle
from skadmm.oracle.reduced import LocalReducedOracle, ReducedOracle
from skadmm.oracle.remote import RemoteOracle
from skadmm.oracle.remote_reduced import RemoteReducedOracle
from skadmm.oracle.single_pass import FileOracle
from skadmm.oracle.speculative import SpeculativeOracle


def oracle_for(backend: Backend, checkpoint: Any = None) -> SampleOracle:
    """The oracle over the samples of a backend, chosen by its capabilities; `checkpoint` is that of the run, or None.

    Where rows are slow to read, all of a step is computed at once.
    """
    if not backend.local_rows:
        return SpeculativeOracle(RemoteOracle(cast(Any, backend), checkpoint), backend.n)
    local = cast(LocalBackend, backend)
    if backend.loss.coupled:
        return CoupledOracle(local.samples(), local.rows_per_chunk, local.between_chunks)
    if backend.slow_reads:
        return SpeculativeOracle(FileOracle(local), local.n)
    return LocalOracle(local.samples(), 0, local.rows_per_chunk, local.between_chunks)


def reduced_oracle_for(backend: Backend, checkpoint: Any = None) -> ReducedOracle:
    """The oracle of the reduced Newton solver over the samples of a backend."""
    if not backend.local_rows:
        return RemoteReducedOracle(cast(Any, backend), checkpoint)
    local = cast(LocalBackend, backend)
    return LocalReducedOracle(local.samples(), 0, local.rows_per_chunk, local.between_chunks)


__all__ = [
    "LARGE_SHIFT",
    "LARGE_SHIFT_SHARE",
    "LostMemory",
    "ModelSums",
    "ReducedOracle",
    "SampleOracle",
    "oracle_for",
    "reduced_oracle_for",
]

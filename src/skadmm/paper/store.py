"""The folder of finished cells. A file is there whole or not at all, and its name holds its settings' fingerprint."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse

from skadmm.io.atomic import write_atomically
from skadmm.paper.settings import Cell, fingerprint

if TYPE_CHECKING:
    import pandas as pd

META = b"skadmm"


def sweep(folder: Path) -> None:
    """Remove what killed writers left half-written, anywhere under `folder`."""
    for path in folder.rglob(".*.part"):
        path.unlink(missing_ok=True)


@dataclass(frozen=True)
class Store:
    """Finished cells under one folder."""

    folder: Path

    def data_path(self, data: str, sha256: str) -> Path:
        """A data set as arrays, so that its text is read once."""
        return self.folder / "data" / f"{_safe(data)}-{sha256[:16]}.npz"

    def graph_path(self, known: dict[str, Any]) -> Path:
        """The graph of a training half."""
        return self.folder / "graphs" / f"{_safe(known['data'])}-r{known['repeat']:02d}-{fingerprint(known)}.npz"

    def optimum_path(self, known: dict[str, Any]) -> Path:
        """The smallest objective of a problem."""
        name = f"{known['matrix']}-{known['problem']}-r{known['repeat']:02d}-{fingerprint(known)}.json"
        return self.folder / "optima" / _safe(known["data"]) / name

    def cell_path(self, cell: Cell, known: dict[str, Any]) -> Path:
        """The recordings of a run."""
        method = cell.method if cell.variant == "paper" else f"{cell.method}-{cell.variant}"
        name = f"{cell.matrix}-{cell.problem}-{method}-r{cell.repeat:02d}-{fingerprint(known)}.parquet"
        return self.folder / "runs" / _safe(cell.data) / name


def _safe(name: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "-._" else "_" for letter in name)


def save_matrix(path: Path, matrix: Any, **more: Any) -> None:
    """A dense or CSR matrix with other arrays."""
    if scipy.sparse.issparse(matrix):
        csr = scipy.sparse.csr_array(matrix)
        parts = {"values": csr.data, "indices": csr.indices, "indptr": csr.indptr, "shape": np.array(csr.shape)}
    else:
        parts = {"dense": matrix}
    write_atomically(path, lambda stream: np.savez(stream, **parts, **more))


def load_matrix(path: Path) -> tuple[Any, dict[str, np.ndarray]]:
    """What :func:`save_matrix` saved."""
    with np.load(path, allow_pickle=False) as kept:
        arrays = dict(kept)
    if "dense" in arrays:
        return arrays.pop("dense"), arrays
    parts = tuple(arrays.pop(name) for name in ("values", "indices", "indptr"))
    return scipy.sparse.csr_array(parts, shape=tuple(arrays.pop("shape"))), arrays


def save_json(path: Path, content: dict[str, Any]) -> None:
    """A dictionary of plain types."""
    write_atomically(path, lambda stream: stream.write(json.dumps(content, indent=1).encode()))


def load_json(path: Path) -> dict[str, Any]:
    """What :func:`save_json` saved."""
    return json.loads(path.read_text())


def save_run(path: Path, frame: pd.DataFrame, meta: dict[str, Any]) -> None:
    """The recordings of a run, its settings and versions in one Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata({META: json.dumps(meta).encode()})
    write_atomically(path, lambda stream: pq.write_table(table, stream))


def load_run(path: Path) -> tuple[pd.DataFrame, dict[str, Any]]:
    """What :func:`save_run` saved."""
    import pyarrow.parquet as pq

    table = pq.read_table(path, partitioning=None)
    return table.to_pandas(ignore_metadata=True), json.loads(table.schema.metadata[META])

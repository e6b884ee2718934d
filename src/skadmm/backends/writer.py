"""Writing a folder of blocks (see ``files.py``), one block of rows after another, in bounded memory.

After every block the lengths of all files and the position in the source are written to ``progress.json``. A writer
that finds this file truncates the other files to these lengths and continues from the position.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from skadmm.backends.files import (
    ARRAYS,
    CHECKSUM,
    FORMAT,
    HEADER_BYTES,
    MANIFEST,
    VERSION,
    BlocksError,
    RefusedTableError,
    file_name,
    npy_header,
)

PROGRESS = "progress.json"


class Block(NamedTuple):
    """Consecutive rows of a source."""

    X: np.ndarray | scipy.sparse.csr_array
    target: np.ndarray | None
    """Numbers, or texts that are classes."""
    weight: np.ndarray | None
    position: int
    """Where the source continues after these rows, in the reader's own measure."""


class BlockWriter:
    """Writes a folder of blocks, one block after the other.

    Parameters
    ----------
    folder : path
        New, empty, or begun by a writer with the same `origin`.
    origin : dict
        What identifies the source and the options; a folder begun from another origin is refused.
    dtype : "<f8" or "<f4"
    ones : bool
        Does the last column hold ones, for an intercept?
    names : sequence of str, optional
        The names of the columns, for messages.

    Attributes
    ----------
    position : int
        Where the source continues after the last block written.
    rows : int
        Rows written so far.
    """

    def __init__(
        self,
        folder: Path,
        origin: dict[str, Any],
        *,
        dtype: str = "<f8",
        ones: bool = False,
        names: Sequence[str] | None = None,
    ) -> None:
        self.folder, self.names = folder, names
        folder.mkdir(parents=True, exist_ok=True)
        self.origin = origin | {"dtype": dtype, "ones": ones}
        self.dtype, self.ones = np.dtype(dtype), ones
        self.position = 0
        self.blocks: list[dict[str, Any]] = []
        self.lengths = dict.fromkeys(ARRAYS, 0)
        self.about: dict[str, Any] = {"kind": None, "columns": 0, "names": None, "target": False, "weight": False,
                                      "labels": None, "target_type": None}  # fmt: skip
        if (folder / MANIFEST).exists():
            raise BlocksError(f"{folder}: it is finished already; remove it, or give another name")
        self._resume()

    @property
    def rows(self) -> int:
        """Rows written so far."""
        return sum(block["rows"] for block in self.blocks)

    def _resume(self) -> None:
        """Continue where ``progress.json`` says; begin in an empty folder."""
        path = self.folder / PROGRESS
        if not path.exists():
            others = sorted(entry.name for entry in self.folder.iterdir())
            if others:
                raise BlocksError(f"{self.folder}: it holds other files ({others[0]}): give a new folder")
            self._save_progress()
            return
        try:
            kept = json.loads(path.read_text(encoding="utf-8"))
            if kept["origin"] != self.origin:
                raise BlocksError(
                    f"{self.folder}: it was begun from another file or with other options; remove it to begin again"
                )
            self.position, self.blocks, self.about = int(kept["place"]), kept["blocks"], kept["about"]
            self.lengths = {name: int(kept["lengths"][name]) for name in ARRAYS}
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
            if isinstance(error, BlocksError):
                raise
            raise BlocksError(f"{path}: damaged ({error}); remove the folder to begin again") from error
        for name, length in self.lengths.items():
            path = self.folder / file_name(name)
            if length > 0 and (not path.is_file() or path.is_symlink() or path.stat().st_size < length):
                raise BlocksError(f"{path}: damaged: shorter than it was; remove the folder to begin again")
            if path.exists():
                os.truncate(path, length)

    def write(self, block: Block) -> None:
        """Append a block. It is on disk when this returns. A block without rows adds nothing."""
        X = block.X
        if X.shape[0] == 0:
            self.position = block.position
            return
        sparse = scipy.sparse.issparse(X)
        kind = "csr" if sparse else "dense"
        if self.about["kind"] is None:
            self.about |= {"kind": kind, "target": block.target is not None, "weight": block.weight is not None}
        known = (self.about["kind"], self.about["target"], self.about["weight"])
        if known != (kind, block.target is not None, block.weight is not None):
            raise BlocksError(f"block {len(self.blocks)}: its kind is not that of the blocks before it")
        n, d = X.shape
        if not sparse and self.blocks and d != self.about["columns"]:
            raise BlocksError(f"block {len(self.blocks)} has {d} columns, those before it {self.about['columns']}")
        self.about["columns"] = max(d, self.about["columns"])
        parts = self._parts(X, block)
        for name, array in parts.items():
            if array.dtype.kind == "f" and not np.isfinite(array).all():
                raise RefusedTableError(self._not_finite(name, X, array))
            header = b"" if self.lengths[name] else npy_header(array.dtype, (0,))  # the shape is known at the end
            with open(self.folder / file_name(name), "ab") as file:
                file.write(header)
                file.write(np.ascontiguousarray(array).data)
                file.flush()
                os.fsync(file.fileno())
            self.lengths[name] += len(header) + array.nbytes
        sums = {name: hashlib.sha256(array.data).hexdigest() for name, array in parts.items() if name != "indptr"}
        self.blocks.append({"rows": n, "entries": int(parts["values"].size), "sha256": sums})
        self.position = block.position
        self._save_progress()

    def _parts(self, X: Any, block: Block) -> dict[str, np.ndarray]:
        """What is appended to each file."""
        if scipy.sparse.issparse(X):
            X = scipy.sparse.csr_array(X)
            X.sum_duplicates()
            begun = sum(done["entries"] for done in self.blocks)
            starts = X.indptr.astype("<i8") + begun
            parts = {"values": X.data.astype(self.dtype), "indices": X.indices.astype("<i4"),
                     "indptr": starts if not self.blocks else starts[1:]}  # fmt: skip
        else:
            parts = {"values": np.ascontiguousarray(X, dtype=self.dtype).reshape(-1)}
        for name, vector in (("target", self._numbers(block.target)), ("weight", block.weight)):
            if vector is not None:
                parts[name] = np.ascontiguousarray(vector, dtype="<f8")
        return parts

    def _not_finite(self, part: str, X: Any, array: np.ndarray) -> str:
        """Where NaN or infinity is: the file, the first row, the column, and how many rows read so far have it."""
        first = int(np.argmax(~np.isfinite(array)))
        row, column = first, None
        if part == "values" and scipy.sparse.issparse(X):
            csr = scipy.sparse.csr_array(X)
            row, column = int(np.searchsorted(csr.indptr, first, side="right")) - 1, int(csr.indices[first])
        elif part == "values":
            row, column = divmod(first, X.shape[1])
        where = f"the {part}" if column is None else f"column {self.names[column] if self.names else column!r}"
        source = self.origin.get("source")
        found = f"{f'{source}: ' if source else ''}row {self.rows + row:,}: {where} holds NaN or infinity"
        if column is None:
            return found
        entries = X.tocsc()[:, [column]].data if scipy.sparse.issparse(X) else X[:, column]
        count = f"{np.count_nonzero(~np.isfinite(entries)):,} of the {self.rows + X.shape[0]:,} rows read so far"
        return f"{found} ({count}): impute the values, leave out these rows, or drop the column"

    def _numbers(self, target: np.ndarray | None) -> np.ndarray | None:
        """Targets as numbers: a class that is a text is numbered where it first occurs."""
        if target is None:
            return None
        target = np.asarray(target)
        texts = target.dtype.kind in "OUST"
        if not self.blocks:
            self.about["labels"] = [] if texts else None
        if texts != (self.about["labels"] is not None):
            raise BlocksError(f"block {len(self.blocks)}: its targets are texts and those of other blocks are numbers")
        if not texts:
            kind = "bool" if target.dtype.kind == "b" else "int" if target.dtype.kind in "iu" else None
            self.about["target_type"] = kind if kind == self.about.get("target_type") or not self.blocks else None
            return target
        found, places = np.unique(target.astype(str), return_inverse=True)
        labels = self.about["labels"]
        labels += [str(label) for label in found if label not in labels]
        return np.array([labels.index(label) for label in found], dtype=np.float64)[places]

    def _save_progress(self) -> None:
        kept = {"origin": self.origin, "place": self.position, "blocks": self.blocks, "lengths": self.lengths,
                "about": self.about}  # fmt: skip
        _replace(self.folder / PROGRESS, json.dumps(kept).encode())

    def finish(self, names: list[str] | None = None, columns: int | None = None) -> None:
        """Write the manifest, which makes the folder complete."""
        if not self.blocks:
            raise RefusedTableError(f"{self.origin.get('source', self.folder)}: the table has no rows")
        width = max(self.about["columns"], columns or 0)
        manifest = {
            "format": FORMAT, "version": VERSION, "rows": self.rows, "dtype": self.dtype.str, "ones": self.ones,
            "blocks": self.blocks,
        } | self.about | {"columns": width, "names": names}  # fmt: skip
        self._write_headers(width)
        text = json.dumps(manifest, ensure_ascii=False).encode()
        _replace(self.folder / CHECKSUM, hashlib.sha256(text).hexdigest().encode())
        _replace(self.folder / MANIFEST, text)
        (self.folder / PROGRESS).unlink()

    def _write_headers(self, width: int) -> None:
        """Give the npy files the shapes of their arrays."""
        types = {"values": self.dtype, "indices": np.dtype("<i4"), "indptr": np.dtype("<i8")}
        for name in (name for name, length in self.lengths.items() if length):
            dtype = types.get(name, np.dtype("<f8"))
            count = (self.lengths[name] - HEADER_BYTES) // dtype.itemsize
            shape = (self.rows, width) if name == "values" and self.about["kind"] == "dense" else (count,)
            with open(self.folder / file_name(name), "r+b") as file:
                file.write(npy_header(dtype, shape))
                file.flush()
                os.fsync(file.fileno())


def _replace(path: Path, content: bytes) -> None:
    """Write a file so that it holds the old content or the new, never a part."""
    beside = path.with_name(path.name + ".part")
    with open(beside, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(beside, path)


def write_blocks(
    folder: str | os.PathLike[str], blocks: Iterable[tuple[Any, ...]], *, dtype: str = "<f8", ones: bool = False
) -> None:
    """Write a folder of blocks from blocks in memory.

    Parameters
    ----------
    folder : path
        New or empty.
    blocks : iterable of (X, target) or (X, target, weight)
        Made one at a time, so that only one has to fit into memory.
    dtype : "<f8" or "<f4"
        The type of the entries on disk.
    ones : bool
        Add a last column of ones, for an intercept.
    """
    writer = BlockWriter(Path(folder), {"source": "blocks"}, dtype=dtype, ones=ones)
    for number, block in enumerate(blocks):
        X, target, weight = (*block, None, None)[:3]
        _check_vectors(number, X.shape[0], {"target": target, "weight": weight})
        writer.write(Block(with_ones(X) if ones else X, target, weight, number + 1))
    writer.finish()


def _check_vectors(number: int, rows: int, vectors: dict[str, Any]) -> None:
    """Raise where the targets or weights of a block are not one number for each row."""
    for what, vector in vectors.items():
        if vector is not None and np.shape(vector) != (rows,):
            more = ": give the columns of several outputs to fit, as y" if np.ndim(vector) == 2 else ""
            raise ValueError(
                f"block {number}: its {what} has the shape {np.shape(vector)}: it takes a vector of length {rows}, the "
                f"number of its rows{more}"
            )


def with_ones(X: Any) -> Any:
    """The rows with a last column of ones, for an intercept."""
    column = np.ones((X.shape[0], 1))
    if scipy.sparse.issparse(X):
        return scipy.sparse.csr_array(scipy.sparse.hstack([X, column], format="csr"))
    return np.column_stack([X, column])

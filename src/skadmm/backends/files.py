"""A folder of blocks: rows on disk, mapped into memory, whose pages can be released after use.

    manifest.json       shape, kind, types, names; for every block its rows and the checksums of its part of each file
    manifest.sha256     the checksum of the manifest
    values.npy          the entries: all rows (dense, in C order), or the stored entries of CSR
    indices.npy, indptr.npy     the columns of the entries, and where each row begins (CSR only)
    target.npy, weight.npy      one number per row, where there are any

``numpy.load`` reads each of the arrays. Classes that are texts are in the manifest, and the targets are their numbers;
the manifest says too where targets were booleans or integers.
The file names are fixed: nothing in a manifest is ever used as a path. Opening a folder reads it once, checks every
checksum and refuses a folder that is incomplete or damaged, so that compiled code can trust it. Folders of version 1
(files named ``.bin``, without the header of an npy file) still open.
"""

from __future__ import annotations

import hashlib
import json
import math
import mmap
import os
from pathlib import Path
from typing import Any

import numpy as np

from skadmm import _cancel
from skadmm.kernels.rows import CSRRows, DenseRows, stored_entries

FORMAT, VERSION = "skadmm-blocks", 2
MANIFEST, CHECKSUM = "manifest.json", "manifest.sha256"
ARRAYS = ("values", "indices", "indptr", "target", "weight")
HEADER_BYTES = 128
"""The length of the header of an npy file: enough for any shape, so that it can be replaced when the rows are known."""
LARGEST_MANIFEST = 1 << 28
"""Bytes."""
LARGE_BLOCK = 32_768
"""Blocks with fewer stored entries are not prefetched."""
PREFETCHED_BYTES = 64_000_000
"""Bytes that are prefetched at a time."""


def file_name(array: str, version: int = VERSION) -> str:
    """The file of an array."""
    return f"{array}.npy" if version > 1 else f"{array}.bin"


def npy_header(dtype: np.dtype, shape: tuple[int, ...]) -> bytes:
    """The header of an npy file (format 1.0) of an array in C order, padded to HEADER_BYTES."""
    magic, room = b"\x93NUMPY\x01\x00", HEADER_BYTES - 10
    text = f"{{'descr': {dtype.str!r}, 'fortran_order': False, 'shape': {shape!r}, }}"
    return magic + room.to_bytes(2, "little") + text.ljust(room - 1).encode("latin1") + b"\n"


class BlocksError(ValueError):
    """The error for a folder that is not a complete, undamaged set of blocks.

    See Also
    --------
    skadmm.backends.FileBlocks : Raises it.

    Examples
    --------
    >>> import tempfile
    >>> from skadmm.backends import BlocksError, FileBlocks
    >>> try:
    ...     FileBlocks(tempfile.mkdtemp())
    ... except BlocksError:
    ...     print("refused")
    refused
    """


class RefusedTableError(BlocksError):
    """What a table holds is not accepted, although it could be read."""


class FileBlocks:
    """A folder of blocks of rows on a disk, which estimators and ``Problem`` take in place of X.

    Parameters
    ----------
    folder : path
        A folder, as ``skadmm data convert`` or :func:`skadmm.backends.convert.write_blocks` writes it.

    Attributes
    ----------
    shape : tuple of int
        The numbers of rows and columns, (n, d).
    target, sample_weight : ndarray or None
        The targets and weights that are stored with the rows.
    names : list of str or None
        The names of the columns.
    ones : bool
        True where the last column holds ones, for an intercept.

    Raises
    ------
    BlocksError
        Where the folder is incomplete, damaged, or not a folder of blocks.

    See Also
    --------
    skadmm.Problem : Takes such a folder for X.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> from skadmm.backends import FileBlocks
    >>> from skadmm.backends.convert import write_blocks
    >>> folder = pathlib.Path(tempfile.mkdtemp()) / "rows"
    >>> _ = write_blocks(folder, [(np.eye(3), np.ones(3))])
    >>> FileBlocks(folder).shape
    (3, 3)
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self._mappings: dict[str, mmap.mmap] = {}
        manifest = self._manifest = read_manifest(self.folder)
        self._version: int = manifest["version"]
        self.n, self.d = manifest["rows"], manifest["columns"]
        self.names: list[str] | None = manifest["names"]
        self.ones: bool = manifest["ones"]
        dtype = np.dtype(manifest["dtype"])
        entries = sum(block["entries"] for block in manifest["blocks"])
        dense = manifest["kind"] == "dense"
        values = self._map("values", dtype, (self.n, self.d) if dense else (entries,))
        if dense:
            self.rows: DenseRows | CSRRows = DenseRows(values)
        else:
            indices, indptr = (
                self._map("indices", np.dtype("<i4"), (entries,)),
                self._map("indptr", np.dtype("<i8"), (self.n + 1,)),
            )
            starts = np.array(indptr)
            if starts[0] != 0 or starts[-1] != entries or np.any(np.diff(starts) < 0):
                raise BlocksError(f"{self.folder}: damaged: rows of {self._name('indptr')} do not follow each other")
            small = entries < np.iinfo(np.int32).max
            self.rows = CSRRows(values, indices, starts.astype(np.int32) if small else starts, self.d)
        self._targets = self._vector("target")
        self.sample_weight = self._vector("weight")
        self._verify()
        self.target = self._typed(self._targets)
        self._targets = None  # its numbers are not needed again

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.n, self.d

    @property
    def fingerprint(self) -> str:
        """The checksum of the manifest, which holds those of all blocks."""
        return manifest_checksum(self.folder)

    def expect(self, order: np.ndarray, batch_size: int) -> None:
        """Blocks of `batch_size` rows will be read in this order: where they are large, prefetch the first of them."""
        if batch_size * stored_entries(self.rows) < LARGE_BLOCK * self.n:
            return
        fetched = 0
        for k in order:
            if fetched >= PREFETCHED_BYTES:
                return
            fetched += self.fetch(int(k) * batch_size, min((int(k) + 1) * batch_size, self.n))

    def fetch(self, start: int, stop: int) -> int:
        """Let the operating system read some rows ahead, and none beyond them; returns the number of bytes.

        Its own read-ahead does not help where the next block is elsewhere in the file.
        """
        rows = self.rows
        if isinstance(rows, CSRRows):
            arrays = {"values": rows.data, "indices": rows.indices}
            first, last = int(rows.indptr[start]), int(rows.indptr[stop])
        else:
            arrays, first, last = {"values": rows.values}, start * self.d, stop * self.d
        fetched, header = 0, self._header
        for name, array in arrays.items():
            begin = (header + first * array.itemsize) // mmap.PAGESIZE * mmap.PAGESIZE
            length = header + last * array.itemsize - begin
            if length > 0 and _advise(self._mappings[name], "MADV_WILLNEED", begin, length):
                fetched += length
        return fetched

    def release(self) -> None:
        """Release the memory of the pages read so far. Reading a page again brings it back."""
        for mapping in self._mappings.values():
            _advise(mapping, "MADV_DONTNEED")

    def _file(self, name: str) -> Path:
        """The path of a file, which must be a regular file of the folder itself."""
        path = self.folder / self._name(name)
        if path.is_symlink():
            raise BlocksError(f"{path}: it is a link: a folder of blocks holds its files itself")
        if not path.is_file():
            raise BlocksError(f"{self.folder}: damaged: there is no {path.name}")
        return path

    def _name(self, array: str) -> str:
        return file_name(array, self._version)

    @property
    def _header(self) -> int:
        """Bytes before the first entry of a file."""
        return HEADER_BYTES if self._version > 1 else 0

    def _map(self, name: str, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
        """A file as an array of this shape that is read from disk when it is used."""
        path, count, header = self._file(name), math.prod(shape), self._header
        size = header + count * dtype.itemsize
        if path.stat().st_size != size:
            raise BlocksError(f"{path}: damaged: {path.stat().st_size:,} bytes, its manifest says {size:,}")
        # Copy on write, although nothing is written: read-only arrays would need kernels of their own.
        with open(path, "rb") as file:
            if header and file.read(header) != npy_header(dtype, shape):
                raise BlocksError(f"{path}: damaged: its header is not that of {shape} numbers of type {dtype}")
            if count == 0:
                return np.empty(shape, dtype)
            mapping = mmap.mmap(file.fileno(), size, access=mmap.ACCESS_COPY)
        self._mappings[name] = mapping
        return np.frombuffer(mapping, dtype, offset=header).reshape(shape)

    def _vector(self, name: str) -> np.ndarray | None:
        """The targets or the weights, in memory; None where the folder has none."""
        if not self._manifest[name]:
            return None
        return np.array(self._map(name, np.dtype("<f8"), (self.n,)))

    def _typed(self, targets: np.ndarray | None) -> np.ndarray | None:
        """The targets in the type that they were written from: numbers, booleans or texts."""
        labels, kind = self._manifest.get("labels"), self._manifest.get("target_type")
        if targets is None or (labels is None and kind is None):
            return targets
        if labels is not None:
            return np.asarray(labels)[targets.astype(np.intp)]
        return targets.astype(np.bool_ if kind == "bool" else np.int64)

    def _verify(self) -> None:
        """Check every byte against its checksum, that numbers are finite, and that columns are in range."""
        row, entry = 0, 0
        values = self.rows.values.reshape(-1) if isinstance(self.rows, DenseRows) else self.rows.data
        for number, block in enumerate(self._manifest["blocks"]):
            _cancel.check_cancelled()
            self.release()
            rows, entries = slice(row, row + block["rows"]), slice(entry, entry + block["entries"])
            parts = {"values": values[entries]}
            if isinstance(self.rows, CSRRows):
                parts["indices"] = self.rows.indices[entries]
            for name, vector in (("target", self._targets), ("weight", self.sample_weight)):
                if vector is not None:
                    parts[name] = vector[rows]
            if parts.keys() != block["sha256"].keys():
                raise BlocksError(f"{self.folder}: damaged: block {number} lacks a checksum, or has one too many")
            for name, part in parts.items():
                if hashlib.sha256(part.data).hexdigest() != block["sha256"][name]:
                    raise BlocksError(f"{self.folder}: damaged: block {number} of {self._name(name)} has changed")
                if part.dtype.kind == "f" and not np.isfinite(part).all():
                    raise BlocksError(f"{self.folder}: block {number} of {self._name(name)} holds NaN or infinity")
            if isinstance(self.rows, CSRRows):
                starts = np.asarray(self.rows.indptr[rows.start : rows.stop + 1]) - entry
                if not _sorted_within(parts["indices"], starts, self.d):
                    raise BlocksError(f"{self.folder}: damaged: columns of block {number} out of range or out of order")
            row, entry = rows.stop, entries.stop
        labels = self._manifest.get("labels")
        if labels is not None and self._targets is not None and not _numbers_of(self._targets, len(labels)):
            raise BlocksError(f"{self.folder}: damaged: {self._name('target')} has numbers that no class has")
        whole = None if self._manifest.get("target_type") is None else self._targets
        if whole is not None and np.any(np.mod(whole, 1.0)):
            raise BlocksError(f"{self.folder}: damaged: {self._name('target')} has numbers that are not whole")


def _numbers_of(targets: np.ndarray, count: int) -> bool:
    """Are they all whole numbers from 0 to count − 1?"""
    return bool(np.all((targets >= 0) & (targets < count) & (targets == np.floor(targets))))


def _sorted_within(columns: np.ndarray, starts: np.ndarray, width: int) -> bool:
    """Are the columns of every row in range and in increasing order?"""
    if starts[0] != 0 or starts[-1] != columns.size:
        return False
    if columns.size == 0:
        return True
    increasing = np.diff(columns) > 0
    inner = starts[1:-1]
    increasing[inner[(inner > 0) & (inner < columns.size)] - 1] = True  # a new row may begin anywhere
    return bool(columns.min() >= 0 and columns.max() < width and increasing.all())


def _advise(mapping: mmap.mmap, advice: str, *span: int) -> bool:
    """Advise the operating system how a file will be read; False where it takes no advice (Windows)."""
    if not hasattr(mapping, "madvise") or not hasattr(mmap, advice):
        return False
    mapping.madvise(getattr(mmap, advice), *span)
    return True


def manifest_checksum(folder: Path) -> str:
    """The checksum of the manifest, as written beside it."""
    return (folder / CHECKSUM).read_text(encoding="ascii")


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a folder, with its checksum and its form checked."""
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder}: there is no such folder")
    if not (folder / MANIFEST).is_file() or not (folder / CHECKSUM).is_file():
        raise BlocksError(
            f"{folder}: not a folder of blocks, or not finished: it has no {MANIFEST}; a folder of Parquet files "
            "is a table as well, and holds files that end in .parquet or .pq"
        )
    if (folder / MANIFEST).stat().st_size > LARGEST_MANIFEST or (folder / CHECKSUM).stat().st_size > 1000:
        raise BlocksError(f"{folder}: damaged: its manifest is too large")
    text = (folder / MANIFEST).read_bytes()
    if hashlib.sha256(text).hexdigest().encode() != (folder / CHECKSUM).read_bytes():
        raise BlocksError(f"{folder}: damaged: {MANIFEST} does not have its checksum")
    try:
        manifest = json.loads(text)
        _check_form(manifest)
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise BlocksError(f"{folder}: damaged: {MANIFEST} is not valid: {error}") from error
    return manifest


def _check_form(manifest: Any) -> None:
    """Raise where a manifest does not have the entries that it must have, of the right types."""
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise ValueError("it is not a manifest of blocks")
    if not _is_count(manifest["version"]) or manifest["version"] > VERSION:
        raise ValueError(f"version {manifest['version']!r} is not known: upgrade skadmm")
    if manifest["kind"] not in ("dense", "csr") or manifest["dtype"] not in ("<f4", "<f8"):
        raise ValueError(f"kind {manifest['kind']!r} of {manifest['dtype']!r} is not known")
    for name in ("target", "weight", "ones"):
        if not isinstance(manifest[name], bool):
            raise ValueError(f"{name} is {manifest[name]!r}")
    names, labels = manifest["names"], manifest.get("labels")
    for what, texts in (("names", names), ("labels", labels)):
        if texts is not None and not (isinstance(texts, list) and all(isinstance(text, str) for text in texts)):
            raise ValueError(f"{what} are not texts")
    if manifest.get("target_type") not in (None, "bool", "int"):
        raise ValueError(f"targets of type {manifest['target_type']!r} are not known")
    if not (_is_count(manifest["rows"]) and _is_count(manifest["columns"]) and manifest["columns"] < 2**31):
        raise ValueError("it has no rows or no columns")
    if names is not None and len(names) != manifest["columns"]:
        raise ValueError(f"{len(names)} names for {manifest['columns']} columns")
    for block in manifest["blocks"]:
        if not _is_count(block["rows"]) or not _is_count(block["entries"], 0) or not isinstance(block["sha256"], dict):
            raise ValueError("a block has no rows")
        if manifest["kind"] == "dense" and block["entries"] != block["rows"] * manifest["columns"]:
            raise ValueError("a block of another width")
    if sum(block["rows"] for block in manifest["blocks"]) != manifest["rows"]:
        raise ValueError("its blocks do not add up to its rows")


def _is_count(value: Any, minimum: int = 1) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and minimum <= value < 2**62

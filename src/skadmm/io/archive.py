"""Arrays and JSON in one file: an uncompressed zip archive with a version and checksums. Nothing is ever unpickled.

    manifest.json       format, version, the fields of the kind of file, and the checksums of the arrays
    manifest.sha256     the checksum of the manifest
    arrays/0.npy, …     the arrays

A file is written beside its name and moved over it when complete, so a failed write leaves the old file as it was.
Names inside the file are compared with those expected, never used as paths.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import struct
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from skadmm._version import __version__

FIXED_TIME = (1980, 1, 1, 0, 0, 0)
"""The time stamp of every entry: the same content gives the same bytes."""

DAMAGE = (zipfile.BadZipFile, EOFError, OSError, RuntimeError, ValueError, OverflowError, KeyError, struct.error)
"""What reading a damaged zip file raises."""


class Kind(NamedTuple):
    """A kind of file: its format name, the newest version, its name in messages, and the error it raises."""

    format: str
    version: int
    noun: str
    error: type[ValueError]
    fields: Mapping[str, type]
    """What its manifest must hold."""


def write(path: Path, kind: Kind, content: dict[str, Any], arrays: list[np.ndarray]) -> None:
    """Write a file of `kind` completely, or not at all."""
    encoded = [_npy(array) for array in arrays]
    manifest = {"format": kind.format, "version": kind.version, "skadmm": __version__} | content
    manifest["arrays"] = [hashlib.sha256(data).hexdigest() for data in encoded]
    text = json.dumps(manifest, allow_nan=False, ensure_ascii=False, indent=1).encode()
    entries = {"manifest.json": text, "manifest.sha256": hashlib.sha256(text).hexdigest().encode()}
    entries |= {f"arrays/{k}.npy": data for k, data in enumerate(encoded)}
    _write_atomically(path, entries)


def _npy(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.ascontiguousarray(array), allow_pickle=False)
    return buffer.getvalue()


def _write_atomically(path: Path, entries: dict[str, bytes]) -> None:
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder: it takes the name of a file")
    folder = path.parent
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder}: there is no such folder")
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=folder)
    try:
        with os.fdopen(handle, "wb") as file:
            with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
                for entry, data in entries.items():
                    archive.writestr(zipfile.ZipInfo(entry, FIXED_TIME), data)
            file.flush()
            os.fsync(file.fileno())
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(name, 0o666 & ~mask)
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


def read(path: Path, kind: Kind) -> tuple[dict[str, Any], list[np.ndarray]]:
    """The manifest and the arrays, with every checksum verified."""
    damaged = kind.error
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise FileNotFoundError(f"{path}: there is no such file") from None
    except IsADirectoryError:
        raise IsADirectoryError(f"{path} is a folder: it takes the name of a file") from None
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            infos = archive.infolist()
            if any(info.compress_type != zipfile.ZIP_STORED for info in infos):
                raise damaged(f"{path}: not a skadmm {kind.noun} (its entries are compressed)")
            names = [info.filename for info in infos]
            if len(set(names)) != len(names) or "manifest.json" not in names or "manifest.sha256" not in names:
                raise damaged(f"{path}: not a skadmm {kind.noun} (it has no manifest)")
            if sum(info.file_size for info in infos) > len(content):
                raise damaged(f"{path}: damaged: its entries are larger than the file")
            entries = {name: archive.read(name) for name in names}
    except kind.error:
        raise
    except DAMAGE as error:
        raise damaged(f"{path}: not a skadmm {kind.noun}, or damaged or cut short ({error})") from error
    text = entries.pop("manifest.json")
    if hashlib.sha256(text).hexdigest().encode() != entries.pop("manifest.sha256"):
        raise damaged(f"{path}: damaged: the manifest does not have its checksum")
    try:
        manifest = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise damaged(f"{path}: damaged: the manifest is not JSON") from error
    if not isinstance(manifest, dict) or manifest.get("format") != kind.format:
        raise damaged(f"{path}: not a skadmm {kind.noun}")
    version = manifest.get("version")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise damaged(f"{path}: version={version!r} is not a version of the format")
    if version > kind.version:
        raise damaged(
            f"{path}: written in version {version} of the format by skadmm {manifest.get('skadmm')}; "
            f"this is skadmm {__version__}, which reads up to version {kind.version}: upgrade skadmm"
        )
    for key, held in ({"skadmm": str, "arrays": list} | dict(kind.fields)).items():
        if not isinstance(manifest.get(key), held):
            raise damaged(f"{path}: damaged: the manifest has no {key}")
    return manifest, _read_arrays(path, kind, manifest["arrays"], entries)


def _read_arrays(path: Path, kind: Kind, sums: list[Any], entries: dict[str, bytes]) -> list[np.ndarray]:
    damaged = kind.error
    names = [f"arrays/{k}.npy" for k in range(len(sums))]
    if set(entries) != set(names):
        raise damaged(f"{path}: damaged: it does not hold the arrays its manifest lists")
    arrays = []
    for name, checksum in zip(names, sums, strict=True):
        data = entries[name]
        if hashlib.sha256(data).hexdigest() != checksum:
            raise damaged(f"{path}: damaged: {name} does not have its checksum")
        try:
            arrays.append(np.lib.format.read_array(io.BytesIO(data), allow_pickle=False))
        except (ValueError, EOFError, MemoryError) as error:
            raise damaged(f"{path}: damaged: {name} is not an array ({error})") from error
    return arrays

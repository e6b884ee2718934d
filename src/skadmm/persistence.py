"""Models in files: arrays and JSON in an uncompressed zip, versioned and checksummed. Nothing is ever unpickled.

    manifest.json       format, version, class, parameters, fitted state; arrays by name with their checksums
    manifest.sha256     the checksum of the manifest
    arrays/0.npy, …     the arrays

A file is written beside its name and moved over it when complete, so a failed save leaves the old file as it was.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from skadmm import _encoding
from skadmm._version import __version__

FORMAT = "skadmm-model"
VERSION = 1
LONG_AGO = (1980, 1, 1, 0, 0, 0)  # the same model makes the same bytes


class ModelFileError(ValueError):
    """A file that is not a whole, sound model of this package."""


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator to `path`."""
    from sklearn.utils.validation import check_is_fitted

    from skadmm.estimators import ESTIMATORS

    name = type(model).__name__
    if ESTIMATORS.get(name) is not type(model):
        raise TypeError(f"model={name}: save takes an estimator of skadmm")
    check_is_fitted(model)
    writer = _encoding.Writer()
    parameters = {key: writer.encode(value, key) for key, value in model.get_params(deep=False).items()}
    state = {key: writer.encode(getattr(model, key), key) for key in _fitted_names(model)}
    arrays = [_npy(array) for array in writer.arrays]
    manifest = {
        "format": FORMAT, "version": VERSION, "skadmm": __version__, "class": name,
        "parameters": parameters, "state": state, "arrays": [hashlib.sha256(data).hexdigest() for data in arrays],
    }  # fmt: skip
    text = json.dumps(manifest, allow_nan=False, ensure_ascii=False, indent=1).encode()
    entries = {"manifest.json": text, "manifest.sha256": hashlib.sha256(text).hexdigest().encode()}
    entries |= {f"arrays/{k}.npy": data for k, data in enumerate(arrays)}
    _write_atomically(Path(path), entries)


def load(path: str | os.PathLike[str]) -> Any:
    """The estimator in the file at `path`.

    Raises
    ------
    ModelFileError
        Where the file is none of ours, damaged, cut short, or written by a newer version.
    """
    path = Path(path)
    manifest, arrays = _read(path)
    from skadmm.estimators import ESTIMATORS

    try:
        cls = ESTIMATORS[manifest["class"]]
        reader = _encoding.Reader(arrays)
        parameters = {key: reader.decode(value) for key, value in manifest["parameters"].items()}
        state = {key: reader.decode(value) for key, value in manifest["state"].items()}
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, RecursionError) as error:
        raise ModelFileError(f"{path}: not a sound skadmm model: {error}") from error
    known = set(cls().get_params(deep=False))
    if set(parameters) != known:
        odd = sorted(set(parameters) ^ known)[0]
        raise ModelFileError(f"{path}: the parameter {odd!r} does not belong to {cls.__name__} of this version")
    model = cls(**parameters)
    for key, value in state.items():
        if not (key.isidentifier() and key.endswith("_") and not key.startswith("_")):
            raise ModelFileError(f"{path}: {key!r} is not the name of a fitted attribute")
        setattr(model, key, value)
    _check_shapes(path, model)
    return model


def describe(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What a model file holds, without building the model: class, versions, parameters, and the shapes of arrays."""
    manifest, arrays = _read(Path(path))
    return {
        "class": manifest["class"], "version": manifest["version"], "skadmm": manifest["skadmm"],
        "parameters": _encoding.readable(manifest["parameters"], arrays),
        "state": _encoding.readable(manifest["state"], arrays),
    }  # fmt: skip


def _fitted_names(model: Any) -> list[str]:
    return sorted(key for key in vars(model) if key.endswith("_") and not key.startswith("_"))


def _check_shapes(path: Path, model: Any) -> None:
    width = getattr(model, "n_features_in_", None)
    coef = getattr(model, "coef_", None)
    knots = getattr(model, "knots_", None)
    wanted = width if knots is None else np.size(knots)
    if not isinstance(coef, np.ndarray) or coef.dtype.kind != "f" or not isinstance(width, int):
        raise ModelFileError(f"{path}: the model has no coefficients")
    if coef.ndim not in (1, 2) or coef.shape[-1] != wanted or not np.all(np.isfinite(coef)):
        raise ModelFileError(f"{path}: coef_ has shape {coef.shape}: it takes {wanted} finite numbers a row")
    classes = getattr(model, "classes_", None)
    if (classes is None) != (coef.ndim == 1):
        raise ModelFileError(f"{path}: classes_ and coef_ do not belong together")
    if classes is not None and (len(coef) != (1 if len(classes) == 2 else len(classes)) or len(classes) < 2):
        raise ModelFileError(f"{path}: {len(classes)} classes do not belong to {len(coef)} rows of coef_")
    if np.shape(getattr(model, "intercept_", "none")) != coef.shape[:-1]:
        raise ModelFileError(f"{path}: intercept_ and coef_ do not belong together")


def _npy(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.ascontiguousarray(array), allow_pickle=False)
    return buffer.getvalue()


def _write_atomically(path: Path, entries: dict[str, bytes]) -> None:
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder: save takes the name of a file")
    folder = path.parent
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder}: there is no such folder")
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=folder)
    try:
        with os.fdopen(handle, "wb") as file:
            with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
                for entry, data in entries.items():
                    archive.writestr(zipfile.ZipInfo(entry, LONG_AGO), data)
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


def _read(path: Path) -> tuple[dict[str, Any], list[np.ndarray]]:
    """The manifest and the arrays, with every checksum verified."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise FileNotFoundError(f"{path}: there is no such file") from None
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            infos = archive.infolist()
            if any(info.compress_type != zipfile.ZIP_STORED for info in infos):
                raise ModelFileError(f"{path}: not a skadmm model (its entries are compressed)")
            names = [info.filename for info in infos]
            if len(set(names)) != len(names) or "manifest.json" not in names or "manifest.sha256" not in names:
                raise ModelFileError(f"{path}: not a skadmm model (it has no manifest)")
            entries = {name: archive.read(name) for name in names}
    except (zipfile.BadZipFile, EOFError, OSError, RuntimeError, NotImplementedError) as error:
        raise ModelFileError(f"{path}: not a skadmm model, or damaged or cut short ({error})") from error
    text = entries.pop("manifest.json")
    if hashlib.sha256(text).hexdigest().encode() != entries.pop("manifest.sha256"):
        raise ModelFileError(f"{path}: damaged: the manifest does not have its checksum")
    try:
        manifest = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"{path}: damaged: the manifest is not JSON") from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise ModelFileError(f"{path}: not a skadmm model")
    version = manifest.get("version")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise ModelFileError(f"{path}: version={version!r} is not a version of the format")
    if version > VERSION:
        raise ModelFileError(
            f"{path}: written in version {version} of the format by skadmm {manifest.get('skadmm')}; "
            f"this is skadmm {__version__}, which reads up to version {VERSION}: upgrade skadmm"
        )
    kinds = {"class": str, "skadmm": str, "parameters": dict, "state": dict, "arrays": list}
    for key, kind in kinds.items():
        if not isinstance(manifest.get(key), kind):
            raise ModelFileError(f"{path}: damaged: the manifest has no {key}")
    return manifest, _read_arrays(path, manifest["arrays"], entries)


def _read_arrays(path: Path, sums: list[Any], entries: dict[str, bytes]) -> list[np.ndarray]:
    names = [f"arrays/{k}.npy" for k in range(len(sums))]
    if set(entries) != set(names):
        raise ModelFileError(f"{path}: damaged: it does not hold the arrays its manifest lists")
    arrays = []
    for name, checksum in zip(names, sums, strict=True):
        data = entries[name]
        if hashlib.sha256(data).hexdigest() != checksum:
            raise ModelFileError(f"{path}: damaged: {name} does not have its checksum")
        try:
            arrays.append(np.lib.format.read_array(io.BytesIO(data), allow_pickle=False))
        except (ValueError, EOFError, MemoryError) as error:
            raise ModelFileError(f"{path}: damaged: {name} is not an array ({error})") from error
    return arrays

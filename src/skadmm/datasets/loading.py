"""Loading a data set by name, or an svmlight file by path, with checks that it is the right one."""

import io
import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from skadmm import _summary
from skadmm.backends.svmlight import ENDINGS, parse, read_bytes, sha256
from skadmm.datasets.builtin import BUILTIN, load_builtin
from skadmm.datasets.catalogue import CATALOGUE, DataSet, Facts
from skadmm.datasets.locating import VARIABLE, DataError, data_folders, find_file
from skadmm.io.cache import cache_folder


class Loaded(NamedTuple):
    """A data set in memory.

    Parameters
    ----------
    name : str
        The name of the set, or of the file.
    X : csr_array or ndarray of shape (n, d)
        The rows.
    target : ndarray of shape (n,)
        The classes −1 and +1: the larger label of the file is +1, except where the set says otherwise.
    sha256 : str
        The checksum of the uncompressed text, or of the arrays where there is no text.
    origin : str
        The name of the file, or where the data were generated.

    See Also
    --------
    skadmm.datasets.load : Returns it.

    Examples
    --------
    >>> from skadmm.datasets import load
    >>> load("breast-cancer").X.shape
    (569, 30)
    """

    name: str
    X: Any
    target: np.ndarray
    sha256: str
    origin: str

    def __repr__(self) -> str:
        return _summary.fields(self)


def load(name: str, data_dir: str | os.PathLike[str] | None = None, *, check: bool = True) -> Loaded:
    """Load a data set by name, or any svmlight file by path.

    Parameters
    ----------
    name : str
        A name in ``skadmm.datasets.CATALOGUE`` or ``skadmm.datasets.BUILTIN``, or the path of an svmlight file.
    data_dir : path, optional
        Where the files are. By default the folders in SKADMM_DATA, then ./data, then the cache of downloads.
    check : bool
        Refuse a file with another checksum or other dimensions than the set has.

    Returns
    -------
    Loaded
        The rows, the classes, a checksum and the origin.

    Raises
    ------
    DataError
        Where there is no file, or it is not the right one; the message says what was expected.

    See Also
    --------
    skadmm.datasets.fetch : Downloads a set.
    skadmm.datasets.load_builtin : Sets that need no file.

    Examples
    --------
    >>> from skadmm.datasets import load
    >>> data = load("digits")
    >>> data.X.shape, data.target.shape
    ((1797, 64), (1797,))
    """
    if name in BUILTIN:
        X, target = load_builtin(name)
        return Loaded(name, X, target, digest_of(X, target), "scikit-learn")
    if name not in CATALOGUE and _is_path(name):
        return load_file(name)
    entry = CATALOGUE[name]
    path = find_file(entry.stems, data_folders(data_dir))
    if path is None:
        raise DataError(missing(entry, data_dir))
    return read(entry, path, check=check)


def load_file(path: Any) -> Loaded:
    """An svmlight file with two classes."""
    path = Path(path)
    if not path.is_file():
        raise DataError(f"{path}: there is no such file")
    try:
        content = read_bytes(path)
        X, target = parse(content, None, path.name)
    except ValueError as error:
        raise DataError(str(error)) from error
    name = path.name.removesuffix(path.suffix if path.suffix in ENDINGS else "").removesuffix(".svm")
    return Loaded(name, X, two_classes(target, path.name), sha256(content), path.name)


def read(entry: DataSet, path: Path, *, check: bool = True) -> Loaded:
    """The set `entry` from the file at `path`; an error where the file is another one."""
    try:
        content = read_bytes(path)
        digest = sha256(content)
        if check:
            check_sum(entry, path, digest)
        X, target = _parse(entry, path, content)
    except ValueError as error:
        raise DataError(str(error)) from error
    if check:
        check_facts(entry.name, entry.facts, path, X, target)
    return Loaded(entry.name, X, two_classes(target, path.name), digest, path.name)


def missing(entry: DataSet, data_dir: Any = None) -> str:
    """The message for a set whose file is not found: where it was searched for, and how to get it."""
    folder = Path(data_dir) if data_dir is not None else cache_folder("data")
    searched = ", ".join(str(path) for path in data_folders(data_dir))
    if entry.url is not None:
        hint = f"run `skadmm data fetch {entry.name}`, or point {VARIABLE} or --data-dir at a folder with it"
    else:
        hint = (entry.by_hand or "").format(folder=folder)
    return f"{entry.name}: no {entry.stems[0]} (plain, .xz, .bz2 or .gz) in {searched}; {hint}"


def check_sum(entry: DataSet, path: Path, digest: str) -> None:
    """Raise where the checksum of a file is not the known one, or not the one that was written when it was fetched."""
    stem = path.name.split(".")[0]
    known = entry.facts.text_sha256.get(stem) if "libsvm" not in path.name else None
    if known is not None:
        if digest != known:
            raise DataError(
                f"{path}: not {entry.name}: the SHA-256 of its text is {digest[:16]}…, expected {known[:16]}…; "
                "fetch or copy the file again"
            )
        return
    pinned = path.with_name(path.name + ".sha256")
    if pinned.is_file() and digest != (first := pinned.read_text().split()[0]):
        raise DataError(f"{path}: changed since it was fetched: SHA-256 of its text {digest[:16]}…, then {first[:16]}…")


def check_facts(name: str, facts: Facts, path: Path, X: Any, target: np.ndarray) -> None:
    """Raise where data have other dimensions or labels than the set."""
    values, counts = np.unique(target, return_counts=True)
    found: dict[str, Any] = {
        "samples": X.shape[0],
        "features": X.shape[1],
        "nonzeros": int(X.nnz) if scipy.sparse.issparse(X) else None,
        "labels": dict(zip(values.tolist(), counts.tolist(), strict=True)),
    }
    for what, here in found.items():
        expected = getattr(facts, what)
        if expected is not None and here is not None and here != expected:
            raise DataError(f"{path}: not {name}: {_shown(here)} {what}, expected {_shown(expected)}")


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{label:g}: {count:,}" for label, count in sorted(value.items())[:5]) + "}"
    return f"{value:,}"


def two_classes(target: np.ndarray, origin: str) -> np.ndarray:
    """−1 for the smaller label and +1 for the larger."""
    classes = np.unique(target)
    if classes.size != 2:
        raise DataError(f"{origin}: {classes.size} classes; the experiments take exactly two")
    return np.where(target == classes[1], 1.0, -1.0)


def digest_of(X: Any, target: np.ndarray) -> str:
    """A SHA-256 of arrays in memory."""
    parts = (X.data, X.indices, X.indptr) if scipy.sparse.issparse(X) else (X,)
    return sha256(b"".join(np.ascontiguousarray(part).tobytes() for part in (*parts, target)))


def _is_path(name: str) -> bool:
    return os.sep in name or Path(name).is_file() or any(name.endswith(".svm" + ending) for ending in ENDINGS)


def _parse(entry: DataSet, path: Path, content: bytes) -> tuple[Any, np.ndarray]:
    plain = path.name.removesuffix(path.suffix if path.suffix in ENDINGS else "")
    if entry.layout == "phy" and plain.endswith(".dat"):
        return _parse_phy(content, path)
    if entry.layout == "sido0" and plain.endswith(".data"):
        return _parse_sido0(content, path)
    return parse(content, _width(entry, content), path.name)


def _width(entry: DataSet, content: bytes) -> int | None:
    """The number of features of the set; None for a wider file, for which ``check_facts`` then names both numbers."""
    try:
        parse(content[: content.find(b"\n", 100_000) + 1] or content, entry.facts.features, "")
    except ValueError:
        return None
    return entry.facts.features


def _table(content: bytes, path: Path) -> np.ndarray:
    try:
        return np.loadtxt(io.BytesIO(content), ndmin=2)
    except ValueError as error:
        raise ValueError(f"{path}: not a table of numbers ({error})") from error


def _parse_phy(content: bytes, path: Path) -> tuple[Any, np.ndarray]:
    """KDD Cup 2004: the number of the event, its label, 78 features; 999 and 9999 mean missing."""
    table = _table(content, path)
    X = np.ascontiguousarray(table[:, 2:])
    X[(X == 999) | (X == 9999)] = 0.0
    return X, table[:, 1]


def _parse_sido0(content: bytes, path: Path) -> tuple[Any, np.ndarray]:
    """Causality Workbench: a dense 0/1 table, and the labels in a file beside it."""
    beside = find_file(("sido0_train.targets",), [path.parent])
    if beside is None:
        raise ValueError(f"{path}: sido0_train.targets, which holds the labels, must lie beside it")
    X = scipy.sparse.csr_array(_table(content, path))
    return X, _table(read_bytes(beside), beside).ravel()

"""svmlight files, plain or compressed, read as a whole. ``readers.py`` reads large ones in blocks."""

import bz2
import gzip
import hashlib
import io
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import IO

import numpy as np
import scipy.sparse

from skadmm._types import FilePath

OPENERS: dict[str, Callable[..., IO[bytes]]] = {"": open, ".xz": lzma.open, ".bz2": bz2.open, ".gz": gzip.open}  # type: ignore[dict-item]
ENDINGS = tuple(OPENERS)


def read_bytes(path: Path) -> bytes:
    """The uncompressed content of a file; the ending of its name says how it is compressed."""
    opener = OPENERS.get(path.suffix, open)
    try:
        with opener(path, "rb") as stream:
            return stream.read()
    except (EOFError, lzma.LZMAError, gzip.BadGzipFile) as error:
        raise ValueError(f"{path}: the {path.suffix} file is damaged or cut short ({error})") from error
    except OSError as error:
        if path.suffix == ".bz2" and "stream" in str(error).lower():
            raise ValueError(f"{path}: the .bz2 file is damaged ({error})") from error
        raise


def sha256(content: bytes) -> str:
    """The SHA-256 of some bytes, in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def parse(content: bytes, n_features: int | None, origin: str) -> tuple[scipy.sparse.csr_array, np.ndarray]:
    """X and the labels from svmlight text."""
    from sklearn.datasets import load_svmlight_file

    try:
        X, target = load_svmlight_file(io.BytesIO(content), n_features=n_features, zero_based="auto")
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{origin}: not svmlight text, or wider than {n_features} features ({error})") from error
    return scipy.sparse.csr_array(X), target


def read_svmlight(path: FilePath, n_features: int | None = None) -> tuple[scipy.sparse.csr_array, np.ndarray]:
    r"""Read the rows and the labels of an svmlight file.

    Parameters
    ----------
    path : path
        ``.xz``, ``.bz2`` and ``.gz`` are uncompressed on the way.
    n_features : int, optional
        The number of columns, where the last ones may be empty; by default the largest index used.

    Returns
    -------
    X : csr_array of shape (n, d)
        The rows.
    target : ndarray of shape (n,)
        The labels as written.

    See Also
    --------
    skadmm.datasets.load : Loads data sets by name.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from skadmm.datasets import read_svmlight
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "rows.txt"
    >>> _ = file.write_text("+1 1:0.5 3:2\n-1 2:1\n")
    >>> X, target = read_svmlight(file)
    >>> X.toarray()
    array([[0.5, 0. , 2. ],
           [0. , 1. , 0. ]])
    """
    path = Path(path)
    return parse(read_bytes(path), n_features, str(path))

"""Folders of data files: one given by the user, those in SKADMM_DATA, ./data, and the cache of downloads."""

import os
from pathlib import Path

from skadmm.backends.svmlight import ENDINGS
from skadmm.io.cache import cache_folder

VARIABLE = "SKADMM_DATA"


class DataError(Exception):
    """The error for data that are missing, or are not what their name says.

    The message is one line and says what to do.

    See Also
    --------
    skadmm.datasets.load : Raises it.

    Examples
    --------
    >>> import tempfile
    >>> from skadmm.datasets import DataError, load
    >>> try:
    ...     load("rcv1", data_dir=tempfile.mkdtemp())
    ... except DataError as error:
    ...     print("not found")
    not found
    """


def data_folders(data_dir: str | os.PathLike[str] | None = None) -> list[Path]:
    """List the folders in which data sets are searched, in order.

    Parameters
    ----------
    data_dir : path, optional
        A folder to search in place of the others. By default they are those in the environment variable SKADMM_DATA,
        then ./data, then the cache of downloads.

    Returns
    -------
    list of Path
        The folders. One given by argument or by SKADMM_DATA must exist.

    See Also
    --------
    skadmm.datasets.load : Searches these folders.

    Examples
    --------
    >>> import tempfile
    >>> from skadmm.datasets import data_folders
    >>> folder = tempfile.mkdtemp()
    >>> [str(path) for path in data_folders(folder)] == [folder]
    True
    """
    if data_dir is not None:
        return [_existing(Path(data_dir), "--data-dir")]
    named = [Path(part) for part in os.environ.get(VARIABLE, "").split(os.pathsep) if part]
    return [_existing(folder, VARIABLE) for folder in named] + [Path("data"), cache_folder("data")]


def _existing(folder: Path, origin: str) -> Path:
    if not folder.is_dir():
        raise DataError(f"{origin}={folder}: there is no such folder")
    return folder


def find_file(stems: tuple[str, ...], folders: list[Path]) -> Path | None:
    """Find a data file by its possible names.

    Parameters
    ----------
    stems : tuple of str
        Possible names, without the endings of compression.
    folders : list of Path
        Where to search, in order.

    Returns
    -------
    Path or None
        The first file with one of the names, plain or compressed; None where there is none.

    See Also
    --------
    skadmm.datasets.data_folders : The folders that :func:`load` searches.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from skadmm.datasets import find_file
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> (folder / "numbers.gz").touch()
    >>> find_file(("numbers",), [folder]).name
    'numbers.gz'
    """
    for folder in folders:
        for stem in stems:
            for ending in ENDINGS:
                path = folder / (stem + ending)
                if path.is_file():
                    return path
    return None

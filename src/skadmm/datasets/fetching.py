"""Downloads of data sets, with their checksums and dimensions checked."""

import os
from pathlib import Path

from skadmm.datasets.catalogue import CATALOGUE, DataSet
from skadmm.datasets.loading import Loaded, read
from skadmm.datasets.locating import DataError, find_file
from skadmm.io.cache import cache_folder


def fetch(name: str, data_dir: str | os.PathLike[str] | None = None) -> Path:
    """Download a data set, unless it is there already, and check it.

    Parameters
    ----------
    name : str
        A name in ``skadmm.datasets.CATALOGUE``.
    data_dir : path, optional
        Where to put it; by default the cache of downloads.

    Returns
    -------
    Path
        The file, whose checksum (where known) and dimensions are right.

    Raises
    ------
    DataError
        Where the set asks for a form (the message says what to download and where to put it), the download fails,
        or the file is not the set.

    See Also
    --------
    skadmm.datasets.load : Reads a set that has been downloaded.

    Examples
    --------
    A set that has no public address is refused with what to do:

    >>> import tempfile
    >>> from skadmm.datasets import DataError, fetch
    >>> try:
    ...     fetch("20ng-ltc", tempfile.mkdtemp())
    ... except DataError as error:
    ...     print("20ng-ltc" in str(error))
    True
    """
    entry = CATALOGUE[name]
    folder = Path(data_dir) if data_dir is not None else cache_folder("data")
    present = find_file(entry.stems, [folder])
    if present is not None:
        read(entry, present)
        return present
    if entry.url is None:
        raise DataError((entry.by_hand or f"{name} has no public address").format(folder=folder))
    folder.mkdir(parents=True, exist_ok=True)
    path = _download(entry, folder)
    try:
        loaded = read(entry, path)
    except DataError:
        path.unlink()
        raise
    remember(path, loaded)
    return path


def remember(path: Path, loaded: Loaded) -> None:
    """Write the checksum to a file beside it, so that a later change is detected."""
    path.with_name(path.name + ".sha256").write_text(f"{loaded.sha256}  {path.name}\n")


def _download(entry: DataSet, folder: Path) -> Path:
    try:
        import pooch
    except ImportError as error:
        raise DataError("fetching needs pooch: pip install 'skadmm[data]'") from error
    assert entry.url is not None
    pooch.get_logger().setLevel("ERROR")
    try:
        found = pooch.retrieve(entry.url, known_hash=None, fname=entry.url.rsplit("/", 1)[-1], path=folder)
    except Exception as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(f"{entry.name}: {entry.url} could not be downloaded: {reason}") from error
    return Path(found)

"""Folders of data files: one given by the user, those in SKADMM_DATA, ./data, and the cache of downloads."""

import os
from pathlib import Path

from skadmm.backends.svmlight import ENDINGS

VARIABLE = "SKADMM_DATA"


class DataError(Exception):
    """Data that are missing, or not what their name says. The message is one line and says what to do."""


def cache_folder() -> Path:
    """The default folder of downloads: the system's cache where platformdirs is installed to find it, else ~/.cache."""
    if not os.environ.get("XDG_CACHE_HOME"):
        try:
            from platformdirs import user_cache_path
        except ImportError:
            pass
        else:
            return Path(user_cache_path("skadmm", appauthor=False)) / "data"
    base = os.environ.get("XDG_CACHE_HOME") or (
        os.environ.get("LOCALAPPDATA") if os.name == "nt" else str(Path.home() / ".cache")
    )
    return Path(base or ".") / "skadmm" / "data"


def data_folders(data_dir: str | os.PathLike[str] | None = None) -> list[Path]:
    """The folders to search, in order. A folder given by argument or by SKADMM_DATA must exist."""
    if data_dir is not None:
        return [_existing(Path(data_dir), "--data-dir")]
    named = [Path(part) for part in os.environ.get(VARIABLE, "").split(os.pathsep) if part]
    return [_existing(folder, VARIABLE) for folder in named] + [Path("data"), cache_folder()]


def _existing(folder: Path, origin: str) -> Path:
    if not folder.is_dir():
        raise DataError(f"{origin}={folder}: there is no such folder")
    return folder


def find_file(stems: tuple[str, ...], folders: list[Path]) -> Path | None:
    """The first file with one of the names `stems`, plain or compressed; None where there is none."""
    for folder in folders:
        for stem in stems:
            for ending in ENDINGS:
                path = folder / (stem + ending)
                if path.is_file():
                    return path
    return None

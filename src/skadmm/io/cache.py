"""Folders for what can be made again: downloads and converted tables."""

import os
from pathlib import Path

VARIABLE = "SKADMM_CACHE"


def cache_folder(part: str) -> Path:
    """The folder of one kind of cached files: in SKADMM_CACHE where that is set, else in the system's cache where
    platformdirs is installed to find it, else in ~/.cache."""
    if os.environ.get(VARIABLE):
        return Path(os.environ[VARIABLE]) / part
    if not os.environ.get("XDG_CACHE_HOME"):
        try:
            from platformdirs import user_cache_path
        except ImportError:
            pass
        else:
            return Path(user_cache_path("skadmm", appauthor=False)) / part
    base = os.environ.get("XDG_CACHE_HOME") or (
        os.environ.get("LOCALAPPDATA") if os.name == "nt" else str(Path.home() / ".cache")
    )
    return Path(base or ".") / "skadmm" / part


def made(cache: Path) -> Path:
    """The folder, made where there is none; an error that says what names it where it cannot be written."""
    try:
        cache.mkdir(parents=True, exist_ok=True)
        if os.access(cache, os.W_OK | os.X_OK):
            return cache
        why = "there is no permission to write there"
    except FileExistsError:
        why = "it is a file"
    except OSError as error:
        why = (error.strerror or str(error)).lower()
    root = os.environ.get(VARIABLE)
    if root and cache.is_relative_to(root):
        raise OSError(f"{VARIABLE}={root}: tables on disk cannot be kept in {cache}: {why}")
    raise OSError(f"tables on disk cannot be kept in {cache}: {why}; set {VARIABLE} to a folder that can be written")

"""What the numbers were made with."""

import functools
import hashlib
import importlib.metadata
import os
import platform
from pathlib import Path

from skadmm import _version

PACKAGES = ("numpy", "scipy", "numba", "scikit-learn", "pandas", "pyarrow", "matplotlib")
_NUMERICAL = ("backends", "kernels", "losses", "operators", "oracle", "problem", "regularizers", "run", "solvers")


@functools.cache
def source_digest() -> str:
    """A digest of the sources that the numbers come from; the report lists cells of another digest."""
    root = Path(_version.__file__).parent
    digest = hashlib.sha256()
    for folder in _NUMERICAL:
        for path in sorted((root / folder).rglob("*.py")):
            digest.update(path.read_bytes())
    for path in sorted(root.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def versions() -> dict[str, str]:
    """Python, the packages, the kind of machine."""
    found = {"skadmm": _version.__version__, "Python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    found["system"] = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    return found

"""Other commits of this project: their sources in a temporary folder, and processes that import them.

It imports nothing of skadmm, so that a process can choose which version it imports.
"""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


@contextmanager
def checkout(commit: str) -> Iterator[Path]:
    """The files of a commit in a temporary worktree."""
    git = ["git", "-C", str(ROOT), "worktree"]
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        subprocess.run([*git, "add", "--detach", "--quiet", str(tree), commit], check=True)
        try:
            yield tree
        finally:
            subprocess.run([*git, "remove", "--force", str(tree)], check=True)


def environment(tree: Path) -> dict[str, str]:
    """Variables of a process that imports the package of `tree`, on one thread."""
    threads = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "NUMBA")}
    return os.environ | threads | {"PYTHONPATH": str(tree / "src")}

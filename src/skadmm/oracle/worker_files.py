"""What is kept for the samples of a block, in a file that its worker writes next to a checkpoint. It is never sent.

Each checkpoint has a folder of its own inside ``<checkpoint>.blocks``, under a name that the checkpoint holds, with one
file for each block. The folder of the last checkpoint stays until the next checkpoint is written. Where a worker does
not have access to the checkpoint's folder, or finds no file there, the run continues from the point alone.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Collection
from pathlib import Path
from typing import Any

from skadmm.backends.tasks import Lost
from skadmm.io import archive, codec
from skadmm.kernels.samples import Samples
from skadmm.oracle.local import LocalOracle


class KeptError(ValueError):
    """A file that does not hold the state of a block."""


NAME = re.compile("[0-9a-f]{32}")
"""The pattern of the name of one checkpoint's folder."""
KIND = archive.Kind("skadmm-oracle", 1, "block of a checkpoint", KeptError, {"oracle": dict})


def keep(
    samples: Samples, memory: dict[str, Any], run: str, number: int, folder: Path, name: str, stay: Collection[str]
) -> Any:
    """Write the state of this block after request `number`; returns 1 where that failed. Folders other than `stay` and
    the new one are removed."""
    last, oracle = memory.get(run, (None, None))
    if last != number:
        return (Lost(),)
    try:
        folder.mkdir(exist_ok=True)
        for old in folder.iterdir():
            if NAME.fullmatch(old.name) and old.name not in (name, *stay):
                shutil.rmtree(old, ignore_errors=True)
        (folder / name).mkdir(exist_ok=True)
        writer = codec.Writer()
        content = {"oracle": writer.encode(oracle.state(), "the block")}
        archive.write(_file(folder, name, oracle), KIND, content, writer.arrays)
    except OSError:
        return (1,)
    return (0,)


def resume_from(samples: Samples, memory: dict[str, Any], run: str, folder: Path, name: str) -> Any:
    """Restore the state of this block's new oracle from the file."""
    number, oracle = memory.pop(run, (None, None))
    if oracle is None:
        return (Lost(),)
    try:
        manifest, arrays = archive.read(_file(folder, name, oracle), KIND)
        oracle.resume(dict(codec.Reader(arrays).decode(manifest["oracle"])))
    except (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError):
        return (Lost(),)
    memory[run] = (number, oracle)
    return (0,)


def _file(folder: Path, name: str, oracle: LocalOracle) -> Path:
    return folder / name / f"{oracle.first}.oracle"

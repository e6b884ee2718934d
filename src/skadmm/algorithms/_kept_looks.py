"""What the samples of a block know, in a file that its worker writes beside a checkpoint: nothing of it travels.

Each checkpoint has a folder of its own inside ``<checkpoint>.blocks``, under a name that the checkpoint holds, with one
file for each block. The folder of the last checkpoint that was written stays until the next one is. Where a worker does
not see the checkpoint's folder, or finds no file there, the run goes on from the point alone.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Collection
from pathlib import Path
from typing import Any

from skadmm import _archive, _encoding
from skadmm.algorithms._looks import Looks
from skadmm.blocks.tasks import Missing
from skadmm.kernels.samples import Samples


class KeptError(ValueError):
    """A file that does not hold what a block knows."""


NAME = re.compile("[0-9a-f]{32}")
"""Of the folder of one checkpoint."""
KIND = _archive.Kind("skadmm-looks", 1, "block of a checkpoint", KeptError, {"looks": dict})


def keep(
    samples: Samples, memory: dict[str, Any], run: str, number: int, folder: Path, name: str, stay: Collection[str]
) -> Any:
    """Write what this block knows after question `number`; how often that failed. Older folders go, but for `stay`."""
    last, looks = memory.get(run, (None, None))
    if last != number:
        return (Missing(),)
    looks.hard_end()  # the next look would see to it
    try:
        folder.mkdir(exist_ok=True)
        for old in folder.iterdir():
            if NAME.fullmatch(old.name) and old.name not in (name, *stay):
                shutil.rmtree(old, ignore_errors=True)
        (folder / name).mkdir(exist_ok=True)
        writer = _encoding.Writer()
        content = {"looks": writer.encode(looks.state(), "the block")}
        _archive.write(_file(folder, name, looks), KIND, content, writer.arrays)
    except OSError:
        return (1,)
    return (0,)


def take_up(samples: Samples, memory: dict[str, Any], run: str, folder: Path, name: str) -> Any:
    """Let the fresh looks of this block know what the file says."""
    number, looks = memory.pop(run, (None, None))
    if looks is None:
        return (Missing(),)
    try:
        manifest, arrays = _archive.read(_file(folder, name, looks), KIND)
        looks.resume(dict(_encoding.Reader(arrays).decode(manifest["looks"])))
    except (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError):
        return (Missing(),)
    memory[run] = (number, looks)
    return (0,)


def _file(folder: Path, name: str, looks: Looks) -> Path:
    return folder / name / f"{looks.first}.looks"

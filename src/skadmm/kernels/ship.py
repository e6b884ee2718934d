"""Compile the kernels that a wheel carries: ``python -m skadmm.kernels.ship FOLDER``, run by ``hatch_build.py``.

One process compiles the kernels of the common kinds of model for the baseline processor and records them. A second
process runs the same models with these kernels. It must compile nothing; kernels that it does not load are parts of
others and are removed.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from skadmm.kernels import shipped

COMPILE = """
from skadmm.warm_up import SHIPPED, warm_up
warm_up(SHIPPED, say=lambda name: print(f"compiling {name}", flush=True))
"""
REPEAT = """
import sys
from pathlib import Path
from skadmm.kernels import shipped
shipped.FOLDER = Path(sys.argv[1])
from skadmm.warm_up import SHIPPED, warm_up
warm_up(SHIPPED)
Path(sys.argv[2]).write_text(" ".join(shipped.used))
"""


def build(folder: Path) -> int:
    """Fill `folder` with kernels and their manifest; returns the number of kernels."""
    cpu, features = shipped.baseline()
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    with tempfile.TemporaryDirectory() as work:
        target = {"NUMBA_CPU_NAME": cpu, "NUMBA_CPU_FEATURES": "", "OPENBLAS_NUM_THREADS": "1"}
        settings = {key: value for key, value in os.environ.items() if not key.startswith(("NUMBA_", "SKADMM_"))}
        settings |= target | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        first = settings | {"NUMBA_CACHE_DIR": str(Path(work, "first")), "SKADMM_RECORD_KERNELS": str(folder)}
        subprocess.run([sys.executable, "-c", COMPILE], env=first, check=True)
        shipped.write_manifest(folder, cpu, features)
        loaded, missed = Path(work, "loaded"), Path(work, "missed")
        missed.mkdir()
        second = settings | {"NUMBA_CACHE_DIR": str(Path(work, "second")), "SKADMM_RECORD_KERNELS": str(missed)}
        subprocess.run([sys.executable, "-c", REPEAT, str(folder), str(loaded)], env=second, check=True)
        used, again = set(loaded.read_text().split()), len(list(missed.iterdir()))
    if again:
        raise RuntimeError(f"{again} kernels were compiled again although the first process had kept them")
    for file in folder.glob("*.bin"):
        if file.stem not in used:
            file.unlink()
    return shipped.write_manifest(folder, cpu, features)


if __name__ == "__main__":
    count = build(Path(sys.argv[1]))
    print(f"{count} kernels for {shipped.baseline()[0]}")

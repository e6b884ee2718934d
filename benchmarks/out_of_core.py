"""Dense rows in files larger than the allowed memory: resident memory, and speed compared with reading the file.

    python benchmarks/out_of_core.py --folder /tmp/rows --gigabytes 6

The folder is written once and kept if --keep is given. Reading is timed with plain ``read`` calls into one buffer,
before and after the run; the fastest of three counts. The file is dropped from the system's cache before each reading
and twice a second during the run, so that every pass reads the disk, as it would with a file larger than memory. With
--cached it stays in the cache, and reading means copying from memory.
"""

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

WIDTH, BLOCK = 100, 50_000
BUFFER = 8 << 20
FORGET_EVERY = 0.5
"""Seconds, of a cold run; much less than a pass, and long enough that what is read ahead is of use."""


def write(folder: Path, gigabytes: float) -> None:
    from skadmm.backends.convert import write_blocks

    truth = np.zeros(WIDTH)
    truth[:10], truth[40:50] = 1.0, -0.5

    def blocks():
        rng = np.random.default_rng(0)
        for _ in range(max(1, round(gigabytes * 1e9 / (8 * WIDTH * BLOCK)))):
            rows = rng.standard_normal((BLOCK, WIDTH)) / np.sqrt(WIDTH)
            yield rows, np.where(rows @ truth + 0.3 * rng.standard_normal(BLOCK) > 0, 1.0, -1.0)

    write_blocks(folder, blocks())


def forget(path: Path) -> None:
    """Drop a file from the system's cache."""
    with open(path, "rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


@contextlib.contextmanager
def forgetting(path: Path) -> Iterator[None]:
    """Drop a file from the system's cache repeatedly; pages in use stay."""
    forget(path)
    over = threading.Event()

    def go_on() -> None:
        while not over.wait(FORGET_EVERY):
            forget(path)

    thread = threading.Thread(target=go_on)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def reading(path: Path) -> float:
    """Seconds to read a whole file."""
    buffer = bytearray(BUFFER)
    began = time.perf_counter()
    with open(path, "rb", buffering=0) as file:
        while file.readinto(buffer):
            pass
    return time.perf_counter() - began


def timed_reading(path: Path, cold: bool) -> float:
    if cold:
        forget(path)
    return reading(path)


CHILD = """
import json, sys, tempfile, time
import numpy as np
from skadmm import Problem, solve
from skadmm.backends.convert import write_blocks
from skadmm.operators import chain, stack
from skadmm.regularizers import L1

def resident(name):
    return 1024 * int(next(line for line in open("/proc/self/status") if line.startswith(name)).split()[1])

def from_disk():
    return int(next(line for line in open("/proc/self/io") if line.startswith("read_bytes")).split()[1])

folder, method, passes = sys.argv[1], sys.argv[2], float(sys.argv[3])
model = {"psi": L1(1e-4), "A": stack(chain(100), "identity")}
options = {} if method == "san-admm" else {"step": 1.0, "batch_size": 10_000}
rng = np.random.default_rng(0)
with tempfile.TemporaryDirectory() as small:
    write_blocks(small + "/rows", [(rng.standard_normal((90_000, 100)), np.where(rng.random(90_000) < 0.5, 1.0, -1.0))])
    solve(Problem(small + "/rows", **model), method, passes=2, **options)  # compiled
open("/proc/self/clear_refs", "w").write("5")
before = resident("VmRSS")
began = time.perf_counter()
problem = Problem(folder, **model)
opened = time.perf_counter() - began
read = from_disk()
began = time.perf_counter()
result = solve(problem, method, passes=passes, record_every=0, **options)
print(json.dumps({"opened": opened, "seconds": result.seconds, "all": time.perf_counter() - began,
                  "passes": result.passes, "disk": from_disk() - read,
                  "memory": resident("VmHWM") - before, "objective": result.objective,
                  "gap": result.gap}))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, required=True, help="where the rows go")
    parser.add_argument("--gigabytes", type=float, default=6.0)
    parser.add_argument("--passes", type=float, default=6.0)
    parser.add_argument("--methods", nargs="+", default=["batch-iu-admm", "sa-iu-admm", "san-admm"])
    parser.add_argument("--cached", action="store_true", help="leave the file in the system's cache")
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    cold = not options.cached
    if not (options.folder / "manifest.json").exists():
        write(options.folder, options.gigabytes)
    values = options.folder / "values.npy"
    size = values.stat().st_size
    try:
        print(f"{size / 1e9:.2f} GB, rows of {WIDTH} numbers; cache {'emptied' if cold else 'as it is'}")
        for method in options.methods:
            read = [timed_reading(values, cold) for _ in range(2)]
            arguments = [sys.executable, "-c", CHILD, str(options.folder), method, str(options.passes)]
            with forgetting(values) if cold else contextlib.nullcontext():
                report = json.loads(subprocess.run(arguments, check=True, capture_output=True, text=True).stdout)
            read = min(*read, timed_reading(values, cold))
            share = read * report["passes"] / report["seconds"]
            print(
                f"{method:<14} {report['passes']:6.2f} passes in {report['seconds']:7.1f} s; "
                f"reading {read:5.1f} s per pass ({size / read / 1e9:.2f} GB/s); "
                f"speed {share:.0%} of reading's (wanted: 60 %); "
                f"{report['disk'] / 1e9:.1f} GB from the disk, evaluation included; "
                f"memory {report['memory'] / 1e9:.2f} GB (wanted: < 1); opening and checking {report['opened']:.1f} s"
            )
    finally:
        if not options.keep:
            shutil.rmtree(options.folder)


if __name__ == "__main__":
    main()

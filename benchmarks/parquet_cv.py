"""A Parquet file larger than the allowed memory, cross-validated by ``skadmm fit``: memory, and time in readings.

    python benchmarks/parquet_cv.py --folder /tmp/rows                     # 10,000,000 × 100, 8 GB; about half an hour
    python benchmarks/parquet_cv.py --folder /tmp/rows --rows 1000000      # a tenth of it

The file is written by this program, one row group at a time, and removed at the end unless --keep is given. The command
line runs as a user would run it. Memory is the resident memory of the process and its children, read ten times a
second: all of it, and without the pages of files, which the system takes back when others need them. Time is given in
units of one sequential reading of the Parquet file into a buffer, its pages dropped from the system's cache before
that, and of one decoding of it by pyarrow. Where other programs share the machine, processor seconds tell more.
"""

import argparse
import contextlib
import json
import os
import resource
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

WIDTH, GROUP = 100, 100_000
BUFFER = 8 << 20


def write(path: Path, rows: int) -> None:
    """Random rows, and labels by two runs of equal coefficients."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = [f"x{j}" for j in range(WIDTH)]
    truth = np.zeros(WIDTH)
    truth[:10], truth[40:50] = 1.0, -0.5
    rng = np.random.default_rng(0)
    schema = pa.schema([(name, pa.float64()) for name in names] + [("label", pa.string())])
    with pq.ParquetWriter(path, schema, compression="none", use_dictionary=["label"]) as writer:
        for start in range(0, rows, GROUP):
            X = rng.standard_normal((min(GROUP, rows - start), WIDTH)) / np.sqrt(WIDTH)
            label = np.where(X @ truth + 0.3 * rng.standard_normal(len(X)) > 0, "yes", "no")
            columns = [pa.array(column) for column in X.T] + [pa.array(label)]
            writer.write_table(pa.table(columns, schema=schema), row_group_size=GROUP)


def reading(path: Path) -> float:
    """Seconds to read a file from the disk."""
    buffer = bytearray(BUFFER)
    with open(path, "rb", buffering=0) as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        began = time.perf_counter()
        while file.readinto(buffer):
            pass
    return time.perf_counter() - began


def decoding(path: Path) -> float:
    """Seconds of pyarrow for all row groups of a file, with one thread."""
    import pyarrow.parquet as pq

    began = time.perf_counter()
    for _ in pq.ParquetFile(path).iter_batches(GROUP, use_threads=False):
        pass
    return time.perf_counter() - began


def descendants(pid: int) -> list[int]:
    """A process and all that it has started."""
    found = [pid]
    for one in found:
        with contextlib.suppress(OSError):
            found += map(int, Path(f"/proc/{one}/task/{one}/children").read_text().split())
    return found


class Memory(threading.Thread):
    """The largest resident memory of a process and its children."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.pid, self.all, self.own, self.over = pid, 0, 0, threading.Event()

    def run(self) -> None:
        while not self.over.wait(0.1):
            total = own = 0
            for one in descendants(self.pid):
                with contextlib.suppress(OSError, ValueError):
                    lines = dict(
                        line.split(":", 1)
                        for line in Path(f"/proc/{one}/status").read_text().splitlines()
                        if ":" in line
                    )
                    total += 1024 * int(lines.get("VmRSS", "0 kB").split()[0])
                    own += 1024 * int(lines.get("RssAnon", "0 kB").split()[0])
            self.all, self.own = max(self.all, total), max(self.own, own)


def run(arguments: list[str]) -> dict[str, Any]:
    """Run the command line; seconds, memory, and what it printed."""
    began, used = time.perf_counter(), processor_seconds()
    process = subprocess.Popen([sys.executable, "-m", "skadmm", *arguments], stdout=subprocess.PIPE, text=True)
    memory = Memory(process.pid)
    memory.start()
    printed, _ = process.communicate()
    memory.over.set()
    if process.returncode:
        raise SystemExit(f"skadmm {' '.join(arguments)} ended with {process.returncode}: {printed}")
    return {
        "seconds": time.perf_counter() - began,
        "processor": processor_seconds() - used,
        "all": memory.all,
        "own": memory.own,
        "printed": printed,
    }


def processor_seconds() -> float:
    """Processor seconds of all processes that this one has started and that have ended."""
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, required=True, help="where the file and the cache go")
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--keep", action="store_true", help="leave the file and the cache")
    parser.add_argument("fit", nargs="*", help="further options of skadmm fit, after --")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    path, cache = options.folder / f"rows-{options.rows}.parquet", options.folder / "cache"
    try:
        if not path.exists():
            write(path, options.rows)
        size = path.stat().st_size
        read, decoded = reading(path), decoding(path)
        print(
            f"{options.rows:,} × {WIDTH}, {size / 1e9:.2f} GB; one reading {read:.1f} s "
            f"({size / read / 1e9:.2f} GB/s), one decoding {decoded:.1f} s",
            flush=True,
        )
        model = options.folder / "model.skadmm"
        given = [
            "fit", str(path), "--target", "label", "-o", str(model), "--cache-dir", str(cache), "--force", "--json",
            "--quiet", "--on-disk", *options.fit,
        ]  # fmt: skip
        for name in ("first run, the file is converted", "second run, from the cache"):
            report = run(given)
            printed = json.loads(report["printed"])
            print(
                f"{name}: {report['seconds']:.0f} s = {report['seconds'] / read:.0f} readings = "
                f"{report['seconds'] / decoded:.1f} decodings ({report['processor']:.0f} processor seconds); at most "
                f"{report['all'] / 1e9:.2f} GB resident, {report['own'] / 1e9:.2f} GB of it not pages of files",
                flush=True,
            )
            print(
                "  "
                + ", ".join(f"{key}: {value}" for key, value in printed.items() if not isinstance(value, (list, dict)))
            )
    finally:
        if not options.keep:
            for what in (path, options.folder / "model.skadmm"):
                what.unlink(missing_ok=True)
            shutil.rmtree(cache, ignore_errors=True)


if __name__ == "__main__":
    main()

"""Paths, cross-validation and groups: skadmm against scikit-learn, celer, skglm and adelie where they are installed.

    python benchmarks/paths.py                        the whole table
    python benchmarks/paths.py --rows group,text      rows whose name holds one of these words
    python benchmarks/paths.py --seeds 1 --repeats 1  a first look
    python benchmarks/paths.py --write                also into paths.json, docs/benchmarks.md and README.md; rows that
                                                      were not run stay as they are

One process, one thread; seconds are of processor time, which other programs disturb less than wall time. All packages
of a row run in turns; the table has the best of the repeats (one run where that takes more than three seconds), and of
that the median over the seeds. Everything is compiled before the first run that counts.

Every package solves to the same relative duality gap, 1e-6 at every strength unless its row says otherwise. The gap is
computed here, from the coefficients that the package returns. Its own tolerance is tightened in powers of ten, on the
first seed, until the largest gap is small enough. A package that takes longer than the limit (``--limit``) before it
gets there is reported with the gap it has reached, and left out after ten times the limit. In cross-validation
skadmm has its default (folds are solved to a gap of 1e-3 of the objective, between 3e-5 and 1e-4 of the loss at zero),
scikit-learn has its default (2e-4 of the loss at zero, which is looser) and adelie a tolerance with gaps of about that
size. Graphs have no path elsewhere: the other side is a grid search over our own estimator. Sparse and
overlapping groups are compared with our own general solvers.
"""

import os

os.environ |= {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "NUMBA")}

import argparse
import signal
import statistics
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from _common import data_folder
from _path_rows import GAP, ROWS, Row, Run
from _path_tables import Measured, keep

SLOW = 3.0
"""Runs of more seconds than this are not repeated."""
PATIENCE = 10.0
"""A run is ended after this many times the limit."""
COMPILATION = 40.0
"""The additional seconds that the first run, which may compile, is given."""

# -- timing --------------------------------------------------------------------------------------------------------


def timed(run: Run, limit: float = 0.0) -> tuple[float, Any]:
    """Seconds, and what the run returns; infinity and None where it took longer than a limit."""

    stopped = []

    def stop(*_: Any) -> None:
        stopped.append(True)
        raise TimeoutError

    signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, limit)
    start = time.process_time()
    try:
        found = run()
    except (TimeoutError, SystemError):  # the latter where compiled code was running
        if not stopped:
            raise
        return np.inf, None
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
    return time.process_time() - start, found


def tuned(solve_to: Callable[[float], Any], gap: Callable[[Any], float], limit: float) -> float:
    """The loosest tolerance, a power of ten, with which the gap is met, or the last one within the limit of time; NaN
    where not even a rough solution is."""
    if timed(lambda: solve_to(1e-2), COMPILATION + PATIENCE * limit)[1] is None:
        return np.nan
    best = np.nan
    for power in range(4, 19):
        seconds, found = timed(lambda: solve_to(10.0**-power), PATIENCE * limit)  # noqa: B023
        if found is None:
            break
        best = 10.0**-power
        if seconds > limit or gap(found) <= GAP:
            break
    return best


def measured(
    row: Row, tolerances: dict[str, float], repeats: int, limit: float
) -> tuple[dict[str, float], dict[str, float]]:
    """The best seconds and the largest gap of every package; `tolerances` is filled where it lacks one."""
    for name in row.tunable:
        if name not in tolerances and row.gap is not None:
            tolerances[name] = tuned(row.runs[name], row.gap, limit)
    runs = {
        name: (lambda run=run, tol=tolerances[name]: run(tol)) if name in row.tunable else run
        for name, run in row.runs.items()
        if not np.isnan(tolerances.get(name, 0.0))
    }
    best, gaps = dict.fromkeys(runs, np.inf), dict.fromkeys(runs, np.nan)
    for repeat in range(repeats + 1):  # the first one compiles
        for name, run in runs.items():
            if (repeat > 1 and best[name] > SLOW) or (repeat == 0 and name != "skadmm"):
                continue
            seconds, found = timed(run)
            best[name] = min(best[name], seconds) if repeat else np.inf
            if row.gap is not None and repeat == 1:
                gaps[name] = row.gap(found)
    return best, gaps


def lines(name: str, seconds: dict[str, list[float]], gaps: dict[str, list[float]]) -> Iterator[str]:
    """The lines of one row: medians over the seeds."""
    ours = statistics.median(seconds["skadmm"])
    for package, values in seconds.items():
        median, gap = statistics.median(values), max(gaps[package])
        reached = "" if np.isnan(gap) else f"{gap:.0e}{'' if gap <= 1.01 * GAP else ' (short)'}"
        yield f"{name:<46}{package:<18}{median:>9.4f}{ours / median:>9.2f}   {reached}"


def summary(seconds: dict[str, list[float]], gaps: dict[str, list[float]], late: list[str]) -> Measured:
    """What is kept of a row: medians over the seeds, and the largest gap; nothing of packages that took too long."""
    found: Measured = {}
    for package, values in seconds.items():
        gap = max(gaps[package])
        known = not np.isnan(gap)
        met = not known or gap <= 1.01 * GAP
        found[package] = {"seconds": statistics.median(values), "gap": gap if known else None, "met": bool(met)}
    return found | {package: {"seconds": None, "gap": None, "met": False} for package in late}


def main() -> None:
    """Print a line per row and package."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", default="", help="words, separated by commas, of which a row's name holds one")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--limit", type=float, default=2.0, help="seconds after which a tolerance is not tightened")
    parser.add_argument("--write", action="store_true", help="keep the rows, and fill the tables of the documentation")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    words = arguments.rows.split(",")
    print(f"{'':<46}{'package':<18}{'seconds':>9}{'ours/it':>9}   largest gap")
    for name, make in ROWS.items():
        if not any(word in name for word in words):
            continue
        if "text" in name and not (data_folder() / "20ng-ltc.svm.xz").exists():
            print(f"{name:<46}left out: 20ng-ltc.svm.xz is not in {data_folder()}")
            continue
        tolerances: dict[str, float] = {}
        seconds: dict[str, list[float]] = {}
        gaps: dict[str, list[float]] = {}
        for seed in range(arguments.seeds):
            best, reached = measured(make(seed), tolerances, arguments.repeats, arguments.limit)
            for package in best:
                seconds.setdefault(package, []).append(best[package])
                gaps.setdefault(package, []).append(reached[package])
        for package, tol in tolerances.items():
            if np.isnan(tol):
                print(f"{name:<46}{package:<18}  took longer than {PATIENCE * arguments.limit:.0f} s")
        print(*lines(name, seconds, gaps), sep="\n", flush=True)
        if arguments.write:
            late = [package for package, tol in tolerances.items() if np.isnan(tol)]
            keep({name: summary(seconds, gaps, late)}, list(ROWS))
    print(f"{time.process_time() / 60:.1f} minutes of processor time")


if __name__ == "__main__":
    main()

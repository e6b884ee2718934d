"""Where compile time goes: seconds by kernel, and how many specialisations each has.

    python benchmarks/compile_seconds.py                   # the kinds of model that wheels carry
    python benchmarks/compile_seconds.py fused solve       # some kinds, as for ``skadmm warm-up``
    python benchmarks/compile_seconds.py --before ae60d81  # this checkout and a commit in turns: their sums
    python benchmarks/compile_seconds.py --before ae60d81 --rounds 3

No cache is used. Seconds are processor time of the compiling thread, which a busy machine changes less than the
clock. They are exclusive: the time to compile the functions that a kernel calls is counted for those. The sum is the
compile time of the whole run. With ``--before`` both sides fit the models of the commit's own list of kinds, so that
kinds which were added later do not count; ae60d81 is the first commit with such a list.
"""

import argparse
import importlib.util
import os
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path

from _trees import ROOT, checkout, environment


class Seconds:
    """Exclusive seconds of each compiled kernel; compilations nest."""

    def __init__(self):
        self.own, self.count = defaultdict(float), defaultdict(int)
        self.running = []

    def on_start(self, event):
        self.running.append([time.thread_time(), 0.0])

    def on_end(self, event):
        started, inner = self.running.pop()
        taken = time.thread_time() - started
        function = event.data["dispatcher"].py_func
        name = f"{function.__module__.removeprefix('skadmm.')}.{function.__name__}"
        self.own[name] += taken - inner
        self.count[name] += 1
        if self.running:
            self.running[-1][1] += taken


def measure(kinds, path):
    """Compile the kinds of model that the file at `path` lists, and return the seconds by kernel."""
    from numba.core import event

    listener = type("Listener", (Seconds, event.Listener), {})()
    spec = importlib.util.spec_from_file_location("kinds_of_model", path)
    listed = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(listed)
    event.register("numba:compile", listener)
    listed.warm_up(kinds or listed.SHIPPED)
    event.unregister("numba:compile", listener)
    return listener


def table(seconds):
    """The kernels, the longest first."""
    total, shown = sum(seconds.own.values()), 0.0
    print(f"{'kernel':<58}{'specialisations':>16}{'seconds':>10}{'share':>8}")
    for name, taken in sorted(seconds.own.items(), key=lambda pair: -pair[1]):
        if taken < 0.005 * total:
            continue
        shown += taken
        print(f"{name:<58}{seconds.count[name]:>16}{taken:>10.1f}{taken / total:>8.1%}")
    print(f"{'others':<58}{'':>16}{total - shown:>10.1f}{1 - shown / total:>8.1%}")
    print(f"{'sum':<58}{sum(seconds.count.values()):>16}{total:>10.1f}")


def compare(commit, kinds, rounds):
    """The sums of two trees, measured in turns."""
    with checkout(commit) as tree:
        listed = tree / "src" / "skadmm" / "warm_up.py"
        sums = defaultdict(list)
        for _ in range(rounds):
            for name, side in ((commit, tree), ("now", ROOT)):
                command = [sys.executable, __file__, "--kinds-of", str(listed), *kinds]
                process = subprocess.run(command, env=environment(side), check=True, stdout=subprocess.PIPE, text=True)
                _, count, total = process.stdout.splitlines()[-1].split()
                sums[name].append(float(total))
                print(f"{name:<12}{count:>6} functions{total:>10} s", flush=True)
    before, now = (min(column) for column in sums.values())
    print(f"best of {rounds}: {now:.1f} s / {before:.1f} s = {now / before:.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="*")
    parser.add_argument("--before", metavar="COMMIT")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--kinds-of", type=Path, default=ROOT / "src" / "skadmm" / "warm_up.py")
    given = parser.parse_args()
    if given.before:
        compare(given.before, given.kinds, given.rounds)
        return
    os.environ["SKADMM_KERNEL_CACHE"] = "0"  # before the kernels are defined
    table(measure(given.kinds, given.kinds_of))


if __name__ == "__main__":
    main()

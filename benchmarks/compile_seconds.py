"""Where compile time goes: seconds by kernel, and how many specialisations each has.

    python benchmarks/compile_seconds.py                   # the kinds of model that wheels carry
    python benchmarks/compile_seconds.py fused solve       # some kinds, as for ``skadmm warm-up``

No cache is used. Seconds are processor time of the compiling thread, which a busy machine changes less than the
clock. They are exclusive: the time to compile the functions that a kernel calls is counted for those. The sum is the
compile time of the whole run.
"""

import os
import sys
import time
from collections import defaultdict

os.environ["SKADMM_KERNEL_CACHE"] = "0"  # before the kernels are defined

from numba.core import event

from skadmm.warm_up import SHIPPED, warm_up


class Seconds(event.Listener):
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


def main():
    seconds = Seconds()
    event.register("numba:compile", seconds)
    warm_up(sys.argv[1:] or SHIPPED)
    event.unregister("numba:compile", seconds)
    total, shown = sum(seconds.own.values()), 0.0
    print(f"{'kernel':<48}{'specialisations':>16}{'seconds':>10}{'share':>8}")
    for name, taken in sorted(seconds.own.items(), key=lambda pair: -pair[1]):
        if taken < 0.005 * total:
            continue
        shown += taken
        print(f"{name:<48}{seconds.count[name]:>16}{taken:>10.1f}{taken / total:>8.1%}")
    print(f"{'others':<48}{'':>16}{total - shown:>10.1f}{1 - shown / total:>8.1%}")
    print(f"{'sum':<48}{sum(seconds.count.values()):>16}{total:>10.1f}")


if __name__ == "__main__":
    main()

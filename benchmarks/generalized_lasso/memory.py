"""Peak memory of each solver beyond the data, each in its own process (Linux); writes outputs/memory.json."""

import ctypes
import importlib.util
import json
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
SETS = ("a9a", "chain")
SECONDS = 5.0


def resident(field: str) -> float:
    """VmRSS (now) or VmHWM (the peak), in MB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f"{field} is not in /proc/self/status: this needs Linux")


def load(kind: str, path: Path):
    spec = importlib.util.spec_from_file_location(f"{kind}_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, kind)


class Clock:
    """A callback as benchopt's, for a few seconds and without evaluations."""

    def __init__(self):
        self.start()

    def start(self):
        self.end = time.perf_counter() + SECONDS

    def __call__(self):
        return time.perf_counter() < self.end


def measure(data_file: str, solver_file: str) -> None:
    """Print the peak of one solver on one data set; nothing where it is skipped."""
    sys.path.insert(0, str(HERE))
    data = load("Dataset", HERE / "datasets" / data_file).get_instance().get_data()
    solver = load("Solver", HERE / "solvers" / solver_file).get_instance()
    if solver.skip(**data)[0]:
        return
    if hasattr(data["X"], "sum"):
        data["X"].sum()  # every page of the data is in memory
    ctypes.CDLL(None).malloc_trim(0)  # what preparing the data left behind would hide what the solver takes
    before = resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts here
    solver.set_objective(**data)
    strategy = solver.sampling_strategy
    solver.run(Clock() if strategy == "callback" else 1e-4 if strategy == "tolerance" else 50)
    print(max(0.0, resident("VmHWM") - before))


def main() -> None:
    if len(sys.argv) == 3:
        measure(*sys.argv[1:])
        return
    used: dict[str, dict[str, float]] = {}
    names = {"20ng-ltc": "text", "hiv-path4932": "hiv"}
    for data in SETS:
        used[data] = {}
        for solver in sorted((HERE / "solvers").glob("*.py")):
            command = [sys.executable, __file__, f"{names.get(data, data)}.py", solver.name]
            try:
                done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
            except subprocess.TimeoutExpired:
                continue
            lines = done.stdout.strip().splitlines()
            if done.returncode == 0 and lines:
                used[data][solver.stem.replace("_", "-")] = float(lines[-1])
                print(data, solver.stem, f"{float(lines[-1]):.0f} MB", flush=True)
    (HERE / "outputs").mkdir(exist_ok=True)
    (HERE / "outputs" / "memory.json").write_text(json.dumps(used, indent=1))


if __name__ == "__main__":
    main()

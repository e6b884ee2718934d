"""The wheel in an empty environment: size, import, the README's example in a first and in later processes.

    python benchmarks/install.py            # prints the table
    python benchmarks/install.py --write    # and keeps it in benchmarks/install.md, which the documentation shows

Needs the package ``build``, and packages to install from.
"""

import os
import re
import resource
import subprocess
import sys
import tempfile
import time
import venv
import zipfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
REPEATS = 5


def run(*command, **options):
    """What a command takes: seconds, and seconds of processor time. It must succeed."""
    start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([str(part) for part in command], check=True, stdout=subprocess.DEVNULL, **options)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return np.array([time.perf_counter() - start, used])


def median(*command, **options):
    return np.median([run(*command, **options) for _ in range(REPEATS)], axis=0)


def shown(seconds):
    return f"{seconds[0]:.1f} s, {seconds[1]:.1f} s of processor time"


def size(folder):
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)


def measure(folder):
    """Rows of the table."""
    run(sys.executable, "-m", "build", "--outdir", folder / "dist", ROOT, stderr=subprocess.DEVNULL)
    (wheel,) = (folder / "dist").glob("*.whl")
    (source,) = (folder / "dist").glob("*.tar.gz")
    check(wheel)
    venv.create(folder / "env", with_pip=True)
    python = folder / "env" / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", wheel, stderr=subprocess.DEVNULL)
    (packages,) = (folder / "env" / "lib").glob("python*/site-packages")
    run(python, "-c", "import skadmm", cwd=folder)  # the first time writes byte code
    imported = median(python, "-c", "import skadmm", cwd=folder) - median(python, "-c", "pass")
    (example,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.DOTALL)
    (folder / "example.py").write_text(example, encoding="utf-8")
    settings = {key: value for key, value in os.environ.items() if not key.startswith(("NUMBA_", "PYTHON"))}
    settings["NUMBA_CACHE_DIR"] = str(folder / "kernels")
    first = run(python, folder / "example.py", cwd=folder, env=settings)
    later = median(python, folder / "example.py", cwd=folder, env=settings)
    return [
        ("wheel, source archive", f"{wheel.stat().st_size / 1e6:.2f} MB, {source.stat().st_size / 1e6:.2f} MB"),
        ("installed, without byte code", f"{size(packages / 'skadmm') / 1e6:.2f} MB"),
        ("installed, with everything it needs", f"{size(packages) / 1e6:.0f} MB"),
        ("`import skadmm`", shown(imported)),
        ("the README's example, first process (compiles)", shown(first)),
        ("the README's example, later processes", shown(later)),
        ("kernels it keeps on disk", f"{size(folder / 'kernels') / 1e6:.1f} MB"),
    ]


def check(wheel):
    """The package, its licence and nothing else."""
    names = zipfile.ZipFile(wheel).namelist()
    assert "skadmm/py.typed" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    strange = [name for name in names if not re.match(r"skadmm(-[\w.]+\.dist-info)?/", name) or name.endswith(".pyc")]
    assert not strange, strange


def main():
    with tempfile.TemporaryDirectory() as folder:
        rows = measure(Path(folder))
    table = "\n".join(["| what | |", "|---|---|", *(f"| {name} | {figure} |" for name, figure in rows)]) + "\n"
    print(table)
    if "--write" in sys.argv[1:]:
        (ROOT / "benchmarks" / "install.md").write_text(table, encoding="utf-8")


if __name__ == "__main__":
    main()

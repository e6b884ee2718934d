"""The wheel in an empty environment: size, import, the README's example, and first fits with shipped kernels.

    python benchmarks/install.py                   # two tables: without kernels in the wheel, and with them
    python benchmarks/install.py --write           # and into docs/benchmarks.md, between two marks
    python benchmarks/install.py --kinds [WHEEL]   # the second table alone

The first table is of a wheel without kernels, which compiles them. For the second the wheel is built with kernels
(minutes) unless one is given. Each kind of model is fitted in its own process with an empty kernel cache, then in a
second one. Below it, one kind where the kernels of the wheel cannot be used and are compiled: they are refused, another
processor is given to Numba, or another version of Numba is installed. Needs the package ``build``, and packages to
install from.
"""

import itertools
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
PAGE, MARKS = ROOT / "docs" / "benchmarks.md", ("<!-- install.py -->", "<!-- end of install.py -->")
REPEATS = 5
OTHER_NUMBA = "numba==0.61.*"
"""A version of Numba that the wheel is not built with."""
FIRST_FIT = """
import sys, time
start = time.perf_counter()
import numpy as np, scipy.sparse as sp
import skadmm
from skadmm.kernels import shipped
family, task, storage = sys.argv[1:]
rng = np.random.default_rng(1)
X = rng.standard_normal((500, 40)) * (rng.random((500, 40)) < 0.4)
signal = X[:, :5].sum(axis=1) - X[:, 20] + 0.1 * rng.standard_normal(500)
settings = {
    "fused": {}, "trend": {"A": skadmm.operators.trend(40, 2)},
    "group": {"groups": [list(range(k, k + 4)) for k in range(0, 40, 4)]},
    "generalized": {"A": np.diff(np.eye(40), axis=0)},
}[family]
name = {"trend": "Generalized"}.get(family, family.capitalize()) + "Lasso" + task.capitalize()
if family == "trend" and task == "regressor":
    name, settings = "TrendFilter", {"design": "matrix"}
model = getattr(skadmm, name)(0.01, **settings)
imported = time.perf_counter()
model.fit(sp.csr_array(X) if storage == "sparse" else X, signal > 0 if task == "classifier" else signal)
print(imported - start, time.perf_counter() - imported, len(shipped.used), shipped.summary(), sep="|")
"""
KINDS = list(
    itertools.product(("fused", "group", "generalized", "trend"), ("classifier", "regressor"), ("dense", "sparse"))
)
COLUMNS = ("model", "rows", "import, s", "first fit, s", "kernels from the wheel", "kernels compiled",
           "import, later process, s", "fit, later process, s")  # fmt: skip


def run(*command, **options):
    """Run a command, which must succeed; return its seconds and its seconds of processor time."""
    start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([str(part) for part in command], check=True, stdout=subprocess.DEVNULL, **options)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return np.array([time.perf_counter() - start, used])


def median(*command, **options):
    return np.median([run(*command, **options) for _ in range(REPEATS)], axis=0)


def shown(seconds, digits=1):
    return f"{seconds[0]:.{digits}f} s, {seconds[1]:.{digits}f} s of processor time"


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
    nothing = median(python, "-c", "pass")
    imported = median(python, "-c", "import skadmm", cwd=folder) - nothing
    peers = median(python, "-c", "import pandas, sklearn.linear_model") - nothing
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
        ("`import skadmm`", shown(imported, 2)),
        ("`import pandas, sklearn.linear_model`", shown(peers, 2)),
        ("the README's example, first process (compiles)", shown(first)),
        ("the README's example, later processes", shown(later)),
        ("kernels it keeps on disk", f"{size(folder / 'kernels') / 1e6:.1f} MB"),
        ("`skadmm --help`", shown(helped(folder, python, wheel), 2)),
    ]


def helped(folder, python, wheel):
    """Seconds of the command line's help; its packages are installed last, because sizes are measured without them."""
    run(python, "-m", "pip", "install", "--quiet", f"{wheel}[cli]", stderr=subprocess.DEVNULL)
    return median(python.parent / "skadmm", "--help", cwd=folder)


def kinds(folder, wheel):
    """A table of first fits: seconds to import and to fit, in a first and in a second process."""
    if wheel is None:
        settings = os.environ | {"SKADMM_SHIP_KERNELS": "1"}
        run(sys.executable, "-m", "build", "--wheel", "--outdir", folder / "dist", ROOT, env=settings)
        (wheel,) = (folder / "dist").glob("*.whl")
    python, other = environment(folder / "env", wheel), environment(folder / "other", wheel, OTHER_NUMBA)
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("NUMBA_", "PYTHON", "SKADMM_"))}

    def fit(kind, cache, python=python, **settings):
        variables = clean | {"NUMBA_CACHE_DIR": str(folder / cache)} | settings
        process = subprocess.run([str(python), "-c", FIRST_FIT, *kind], cwd=folder, env=variables, check=True,
                                 stdout=subprocess.PIPE, text=True)  # fmt: skip
        imported, fitted, used, said = process.stdout.strip().split("|")
        compiled = len(list((folder / cache).rglob("*.nbc")))
        return float(imported), float(fitted), f"{used} | {compiled}", said

    fit(KINDS[0], "unused")  # the first time writes byte code
    lines = [f"A wheel with kernels, `{wheel.name}` ({wheel.stat().st_size / 1e6:.2f} MB):", "",
             f"| {' | '.join(COLUMNS)} |", "|---" * len(COLUMNS) + "|"]  # fmt: skip
    firsts = []
    for kind in KINDS:
        first, second = (fit(kind, "-".join(kind)) for _ in range(2))
        firsts.append(first[1])
        seconds = [f"{value:.2f}" for value in (*first[:2], *second[:2])]
        lines.append(f"| {' | '.join([model(kind), kind[2], *seconds[:2], first[2], *seconds[2:]])} |")
    lines += ["", f"The median of the first fits is {np.median(firsts):.2f} s, the maximum {max(firsts):.2f} s."]
    for settings in ({"SKADMM_SHIPPED_KERNELS": "0"}, {"NUMBA_CPU_NAME": "nocona", "NUMBA_CPU_FEATURES": ""}):
        named = " ".join(f"{key}={value}" for key, value in settings.items())
        lines.append(without(named, fit(KINDS[0], "other-" + "-".join(settings), **settings)))
    lines.append(without(OTHER_NUMBA, fit(KINDS[0], "other-numba", other)))
    return "\n".join(lines) + "\n"


def environment(folder, *packages):
    """The Python of a new environment with these packages."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", *packages, stderr=subprocess.DEVNULL)
    return python


def model(kind):
    """The estimator of a kind, in words."""
    family, task, _ = kind
    if family != "trend":
        return f"`{family.capitalize()}Lasso{task.capitalize()}`"
    return "`TrendFilter`, a matrix of features" if task == "regressor" else "`GeneralizedLassoClassifier`, A a trend"


def without(named, found):
    """A line on one fit that the kernels of the wheel are not for."""
    return f"\n{model(KINDS[0])}, {KINDS[0][2]} rows, with `{named}`: first fit {found[1]:.2f} s; kernels: {found[3]}."


def filled(page, text):
    """The page with new tables between its marks."""
    before, (_, after) = page.split(MARKS[0])[0], page.split(MARKS[0])[1].split(MARKS[1])
    return f"{before}{MARKS[0]}\n{text}{MARKS[1]}{after}"


def check(wheel):
    """The package, its licence and nothing else."""
    names = zipfile.ZipFile(wheel).namelist()
    assert "skadmm/py.typed" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    strange = [name for name in names if not re.match(r"skadmm(-[\w.]+\.dist-info)?/", name) or name.endswith(".pyc")]
    assert not strange, strange


def main():
    given = [Path(part).resolve() for part in sys.argv[1:] if part.endswith(".whl")]
    text = ""
    if "--kinds" not in sys.argv[1:]:
        with tempfile.TemporaryDirectory() as folder:
            rows = measure(Path(folder))
        lines = ["A wheel without kernels:", "", "| size or time | measured |", "|---|---|"]
        lines += [f"| {name} | {figure} |" for name, figure in rows]
        text = "\n".join(lines) + "\n\n"
    with tempfile.TemporaryDirectory() as folder:
        text += kinds(Path(folder), given[0] if given else None)
    print(text)
    if "--write" in sys.argv[1:]:
        PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), text), encoding="utf-8")


if __name__ == "__main__":
    main()

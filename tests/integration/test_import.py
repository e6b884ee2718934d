"""Importing skadmm and asking for help load nothing that they do not need; editors and type checkers see every name."""

import inspect
import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import skadmm
from skadmm import datasets, estimators, losses, operators, regularizers

HEAVY = {
    "numpy",
    "scipy",
    "numba",
    "pandas",
    "sklearn",
    "matplotlib",
    "dask",
    "distributed",
    "typer",
    "rich",
    "asyncio",
}


def loaded(program: str) -> set[str]:
    """The packages that a fresh process has loaded after `program`."""
    tail = "import sys; sys.stdout.write(chr(10) + ' '.join(sys.modules))"
    process = subprocess.run(
        [sys.executable, "-c", f"{program}\n{tail}"], stdout=subprocess.PIPE, check=True, text=True
    )
    return set(process.stdout.splitlines()[-1].split())


def seconds(*command: str) -> float:
    """Processor time of a fresh process, the best of five."""
    best = float("inf")
    for _ in range(5):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *command], stdout=subprocess.DEVNULL, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        best = min(best, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return best


def test_import_loads_nothing_heavy():
    assert not HEAVY & loaded("import skadmm")
    assert not HEAVY & loaded("import skadmm.estimators")


def test_solving_loads_no_estimators_and_no_frames():
    absent = {"pandas", "sklearn", "matplotlib", "dask", "typer", "rich", "scipy.optimize", "scipy.stats"}
    assert not absent & loaded("import skadmm; skadmm.solve, skadmm.path, skadmm.compare")


def test_help_loads_no_numerics():
    pytest.importorskip("typer")
    modules = loaded("from skadmm.cli import run; assert run(['--help']) == 0")
    assert not {"scipy", "numba", "pandas", "sklearn", "matplotlib", "dask"} & modules


HELP = "from skadmm.cli import run; run(['--help'])"


def test_import_and_help_are_fast():
    """Far under the limits (0.35 of scikit-learn and pandas; 0.5 s), which leaves room for busy machines."""
    pytest.importorskip("typer")
    nothing = seconds("-c", "pass")
    peers = seconds("-c", "import sklearn.linear_model, pandas") - nothing
    assert seconds("-c", "import skadmm") - nothing < 0.35 * peers
    assert seconds("-c", HELP) < 0.5


@pytest.mark.parametrize("module", [skadmm, estimators], ids=lambda module: module.__name__)
def test_every_public_name_is_there(module):
    assert set(module.__all__) <= set(dir(module))
    for name in module.__all__:
        assert getattr(module, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        module.nothing  # noqa: B018


def test_path_and_compare_are_functions():
    program = (
        "import importlib.util, inspect, json; "
        "import skadmm.run.path, skadmm.run.compare, skadmm; from skadmm import compare, path; "
        "print(json.dumps([*(inspect.isfunction(name) for name in (path, skadmm.path, compare, skadmm.compare)), "
        "*(importlib.util.find_spec(f'skadmm.{name}') is None for name in ('path', 'compare')), "
        "callable(skadmm.plotting.convergence), callable(skadmm.losses.Logistic)]))"
    )
    process = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, check=True)
    assert json.loads(process.stdout) == [True] * 8


FROM_THE_TOP = sorted(set(skadmm.__all__) - {"__version__"})
ESTIMATORS = sorted(set(estimators.__all__) - {"ESTIMATORS"})
USER = f"""
import pathlib

import numpy as np
import pandas as pd
import scipy.sparse as sp
import skadmm
from sklearn.model_selection import KFold
from skadmm.losses import Huber
from skadmm import {", ".join(FROM_THE_TOP)}
from skadmm.estimators import {", ".join(ESTIMATORS)}
from skadmm.regularizers import L1, GroupL2

{chr(10).join(f"reveal_type(skadmm.{name})" for name in FROM_THE_TOP)}
{chr(10).join(f"reveal_type(skadmm.estimators.{name})" for name in ESTIMATORS)}
reveal_type(skadmm.plotting.convergence)

X, b = np.eye(3), np.ones(3)
problem = Problem(X, b, loss="squared", psi=L1(0.1))
reveal_type(problem)
result = solve(problem, tol=1e-6)
reveal_type(result)
reveal_type(result.x)
reveal_type(result.status)
reveal_type(result.objective)
reveal_type(path(problem, [0.1, 0.01]))
reveal_type(FusedLassoRegressor(alpha=0.1))
skadmm.no_such_name

frame = pd.DataFrame(X, columns=["a", "b", "c"])
Problem(sp.csr_array(X), b, loss=Huber(0.5), psi=GroupL2(0.1, groups=[[0, 1], [2]]), A=sp.eye_array(3))
Problem("folder", pathlib.Path("table.csv"))
FusedLassoRegressor(graph=[("a", "b", 2.0)], penalty_factor={{"a": 2.0}}, bounds=(0.0, [1.0, 2.0, 3.0])).fit(frame, b)
FusedLassoRegressor(loss=Huber(0.5), random_state=np.random.default_rng(0)).fit(pathlib.Path("a.parquet"), "price")
skadmm.FusedLassoClassifier(graph=sp.eye_array(3), class_weight={{0: 1.0, 1: 2.0}}, adaptive=True).fit(X, ["u", "v"])
skadmm.GroupLassoRegressorCV(groups={{"one": ["a", "b"], "two": ["c"]}}, cv=KFold(3), l1_ratio=[0.1, 0.5]).fit(frame, b)
FusedLassoRegressor(output_penalty="columns")
"""
"""What an editor sees of every public name and of results; arguments that users give, two of them wrong."""
USES = 7
"""Lines of it that reveal the type of a value."""


def test_type_checkers_see_every_name(tmp_path):
    pytest.importorskip("mypy")
    (tmp_path / "user.py").write_text(USER)
    command = [sys.executable, "-m", "mypy", "--follow-imports", "silent", "--ignore-missing-imports"]
    command += ["--cache-dir", str(tmp_path / "cache"), "--config-file", os.devnull, str(tmp_path / "user.py")]
    environment = os.environ | {"MYPYPATH": str(Path(skadmm.__file__).parents[1])}
    said = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=False).stdout
    revealed = [line.split("Revealed type is", 1)[1] for line in said.splitlines() if "Revealed type is" in line]
    assert len(revealed) == len(FROM_THE_TOP) + len(ESTIMATORS) + 1 + USES, said
    assert not any('"Any"' in kind for kind in revealed), said
    for kind, name in zip(revealed, FROM_THE_TOP, strict=False):
        if isinstance(getattr(skadmm, name), type):
            assert f".{name}" in kind, said
    assert '.Result"' in revealed[-USES + 1], said
    assert '.FusedLassoRegressor"' in revealed[-1], said
    errors = [line for line in said.splitlines() if ": error: " in line]
    assert len(errors) == 3, errors
    assert 'has no attribute "no_such_name"' in errors[0]
    assert 'Argument 2 to "Problem"' in errors[1]
    assert 'Argument "output_penalty"' in errors[2]


GENERICS = {"value", "derivative", "curvature", "conjugate", "load"}
"""Functions that take or return objects of any class."""


def test_public_signatures_name_their_types():
    found = []
    for package in (skadmm, skadmm.plotting, operators, losses, regularizers, datasets):
        for name in set(package.__all__) - GENERICS:
            public = getattr(package, name)
            functions = [public] if inspect.isfunction(public) else []
            if inspect.isclass(public):
                own = inspect.getmembers(public, inspect.isfunction)
                functions += [method for key, method in own if key == "__init__" or not key.startswith("_")]
            for function in functions:
                if function.__module__.startswith("skadmm."):
                    found += [
                        f"{function.__module__}.{function.__qualname__}({argument})"
                        for argument, kind in function.__annotations__.items()
                        if kind in ("Any", Any) and argument not in VARIADIC
                    ]
    assert not found, sorted(set(found))


VARIADIC = {"options", "common", "params", "changes"}
"""Keyword arguments that are passed on."""

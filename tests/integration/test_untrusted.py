"""Nothing in a file is unpickled, evaluated or executed, and no name in an archive leads out of it."""

import ast
import io
import os
import pickle
import zipfile
from pathlib import Path

import archives
import numpy as np
import pytest

import skadmm
from skadmm import CheckpointError, FusedLassoRegressor, ModelFileError, Problem, solve
from skadmm.backends import BlocksError, FileBlocks
from skadmm.backends.convert import write_blocks
from skadmm.regularizers import L1

rng = np.random.default_rng(3)
X = rng.standard_normal((40, 4))
NUMBERS = X @ [1.0, 1.0, 0.0, -1.0] + 0.1 * rng.standard_normal(40)
CLASSES = np.where(NUMBERS > 0, 1.0, -1.0)


class Trap:
    """Unpickled, it would leave a mark."""

    def __init__(self, mark):
        self.mark = str(mark)

    def __reduce__(self):
        return os.mkdir, (self.mark,)


def test_pickles_in_any_place_are_not_unpickled(tmp_path):
    mark = tmp_path / "mark"
    bomb = pickle.dumps(Trap(mark))
    buffer = io.BytesIO()
    np.save(buffer, np.array([Trap(mark)], dtype=object), allow_pickle=True)
    model = FusedLassoRegressor(alpha=0.01).fit(X, NUMBERS)
    model.save(tmp_path / "model")
    problem = Problem(X, NUMBERS, "squared", psi=L1(0.01))
    solve(problem, "sa-iu-admm", step=0.1, passes=1, checkpoint=tmp_path / "checkpoint")
    for name in ("model", "checkpoint"):
        path = tmp_path / name
        entries = archives.entries_of(path)
        for entry in list(entries):
            for bad in (bomb, buffer.getvalue()):
                in_place = entry.startswith("arrays/")
                archives.write(path, archives.with_array(entries, entry, bad) if in_place else entries | {entry: bad})
                with pytest.raises((ModelFileError, CheckpointError)):
                    skadmm.load(path) if name == "model" else solve(problem, "sa-iu-admm", step=0.1, checkpoint=path)
        path.write_bytes(bomb)
        with pytest.raises((ModelFileError, CheckpointError)):
            skadmm.load(path) if name == "model" else solve(problem, "sa-iu-admm", step=0.1, checkpoint=path)
    write_blocks(tmp_path / "f", [(X, CLASSES)])
    for file in (tmp_path / "f").iterdir():
        content = file.read_bytes()
        file.write_bytes(bomb)
        with pytest.raises(BlocksError):
            FileBlocks(tmp_path / "f")
        file.write_bytes(content)
    assert not mark.exists()


def test_names_in_an_archive_lead_nowhere(tmp_path):
    model = FusedLassoRegressor(alpha=0.01).fit(X, NUMBERS)
    path = tmp_path / "inside" / "model"
    path.parent.mkdir()
    model.save(path)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("../escaped", b"1")
        archive.writestr("/tmp/escaped-absolutely", b"1")
    with pytest.raises(ModelFileError, match="does not hold the arrays"):
        skadmm.load(path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["inside"]


def test_the_package_calls_nothing_that_executes_data():
    """No pickle, eval, exec, or array loader that would unpickle, anywhere in the package."""
    bad = {"eval", "exec", "compile", "__import__"}
    package = Path(skadmm.__file__).parent
    for path in package.rglob("*.py"):
        if path == package / "kernels" / "compile.py":  # Numba keeps compiled kernels in its own way, in its own folder
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                names = [alias.name for alias in node.names] + [getattr(node, "module", None) or ""]
                assert not {name.split(".")[0] for name in names} & {"pickle", "marshal", "shelve", "dill"}, path
            if isinstance(node, ast.Call):
                called = node.func
                assert not (isinstance(called, ast.Name) and called.id in bad), path
                allowed = [k.value for k in node.keywords if k.arg == "allow_pickle"]
                assert all(isinstance(value, ast.Constant) and value.value is False for value in allowed), path
                if isinstance(called, ast.Attribute) and called.attr == "load" and ast.unparse(called.value) == "np":
                    assert allowed, path

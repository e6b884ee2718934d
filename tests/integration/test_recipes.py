"""The recipes of CONTRIBUTING.md, followed to the letter in a copy of the project."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
KINDS = ("loss", "regulariser", "operator", "first-order method", "second-order solver", "storage backend", "estimator",
         "command")  # fmt: skip
COPIED = ("src", "tests", "docs", "pyproject.toml", "README.md", "CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md")
PROGRAMS = {
    "pytest": [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"],
    "ruff": [sys.executable, "-m", "ruff"],
    "skadmm": [sys.executable, "-c", "from skadmm.cli import main; main()"],
}


class Recipe(NamedTuple):
    """What a section of CONTRIBUTING.md says."""

    file: Path
    """The new file."""
    source: str
    registry: Path
    """The file that is changed."""
    changes: list[tuple[str, str]]
    """What is replaced in it, and by what."""
    commands: list[str]


def blocks(section: str, kind: str) -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)```", section, flags=re.DOTALL)


def recipe(kind: str) -> Recipe:
    """The one Python block, the one diff and the commands under a heading."""
    article = "an" if kind[0] in "aeio" else "a"
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = text.split(f"\n## Add {article} {kind}\n")[1].split("\n## ")[0]
    (source,), (diff,), (console,) = (blocks(section, name) for name in ("python", "diff", "console"))
    registry, lines = diff.split("\n", 1)
    changes = []
    for hunk in lines.split("@@\n"):
        marked = [(line[0], line[1:]) for line in hunk.splitlines()]
        before = "".join(f"{line}\n" for mark, line in marked if mark in " -")
        after = "".join(f"{line}\n" for mark, line in marked if mark in " +")
        changes.append((before, after))
    commands = [line.removeprefix("$ ") for line in console.splitlines()]
    return Recipe(_path(source.split("\n", 1)[0]), source, _path(registry), changes, commands)


def _path(line: str) -> Path:
    assert re.fullmatch(r"# src/skadmm/[\w/]+\.py", line), line
    return Path(line.removeprefix("# "))


@pytest.fixture(scope="module")
def tree(tmp_path_factory) -> Path:
    """A copy of the project, in which compiled kernels are shared by the recipes that do not change them."""
    folder = tmp_path_factory.mktemp("project")
    ignored = shutil.ignore_patterns("__pycache__", "*.nbi", "*.nbc", "build", "_figures", "api", "reproduction")
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=ignored)
        else:
            shutil.copy2(source, folder / name)
    return folder


def run(command: str, tree: Path) -> str:
    """One command in the copy; its output. It must succeed, and where it is pytest, run a test."""
    program, *arguments = shlex.split(command)
    environment = os.environ | {
        "PYTHONPATH": str(tree / "src"), "NUMBA_CACHE_DIR": str(tree / "kernels"), "OPENBLAS_NUM_THREADS": "1",
        "PYTHONDONTWRITEBYTECODE": "1", "NO_COLOR": "1", "PYTEST_ADDOPTS": "", "RUFF_NO_CACHE": "true",
    }  # fmt: skip
    ended = subprocess.run(
        [*PROGRAMS[program], *arguments], cwd=tree, env=environment, capture_output=True, text=True, timeout=300,
        check=False,
    )  # fmt: skip
    assert ended.returncode == 0, f"{command}\n{ended.stdout}\n{ended.stderr}"
    if program == "pytest":
        assert re.search(r"\d+ passed", ended.stdout), ended.stdout
        assert " skipped" not in ended.stdout, ended.stdout
    return ended.stdout


@pytest.mark.parametrize("kind", KINDS)
def test_a_recipe_works_as_it_is_written(kind, tree):
    steps = recipe(kind)
    file, registry = tree / steps.file, tree / steps.registry
    original, times = registry.read_text(encoding="utf-8"), registry.stat()
    assert file.parent.is_dir()
    assert not file.exists()
    assert steps.commands[:2] == [f"ruff check {file_folder(steps)}", f"ruff format --check {file_folder(steps)}"]
    try:
        file.write_text(steps.source, encoding="utf-8")
        changed = original
        for before, after in steps.changes:
            assert changed.count(before) == 1, (
                f"{steps.registry} has these lines {changed.count(before)} times:\n{before}"
            )
            changed = changed.replace(before, after)
        registry.write_text(changed, encoding="utf-8")
        for command in steps.commands:
            run(command, tree)
    finally:
        file.unlink()
        registry.write_text(original, encoding="utf-8")
        os.utime(registry, ns=(times.st_atime_ns, times.st_mtime_ns))


def file_folder(steps: Recipe) -> str:
    """The package that the recipe's two files are in."""
    return "/".join(steps.file.parts[:3])


def test_every_recipe_is_tested():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert tuple(re.findall(r"^## Add an? (.*)$", text, flags=re.MULTILINE)) == KINDS

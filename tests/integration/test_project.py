"""Facts about the project itself."""

import ast
import importlib
import json
import os
import pkgutil
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
from numba.core.dispatcher import Dispatcher

import skadmm
from skadmm.kernels.compile import shared_sources

ROOT = Path(__file__).resolve().parents[2]


def test_the_version_is_in_one_place():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert "version" in project["dynamic"]
    assert "version" not in project
    assert f'"{skadmm.__version__}"' in (ROOT / "src/skadmm/_version.py").read_text()
    number = skadmm.__version__.split(".dev")[0]
    assert f"## {number}" in (ROOT / "CHANGELOG.md").read_text()


def test_continuous_integration_runs_the_command_of_the_readme():
    script = ROOT / ".ci/run"
    assert os.access(script, os.X_OK)
    assert script.read_text().splitlines()[-1] == "make test"
    assert "make test" in (ROOT / "README.md").read_text()


def test_the_conda_recipe_has_the_floors_of_the_package():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    recipe = (ROOT / "packaging/conda/meta.yaml").read_text()
    needed = recipe.split("  run:\n")[1].split("\n\n")[0]
    listed = {line.strip(" -").replace(" ", "") for line in needed.splitlines()}
    assert listed == {*project["dependencies"], f"python{project['requires-python']}"}


@pytest.mark.parametrize("address", ["", "https://host.example/skadmm"])
def test_links_of_the_readme_are_absolute_in_the_metadata_where_the_repository_is_known(address):
    """A package index shows the README without the files beside it."""
    pytest.importorskip("hatchling")
    command = [sys.executable, "-m", "hatchling", "metadata"]
    shown = subprocess.run(
        command, cwd=ROOT, env=os.environ | {"SKADMM_REPOSITORY": address}, capture_output=True, text=True, check=True
    )
    metadata = json.loads(shown.stdout)
    links = re.findall(r"\]\(([^)]+)\)", metadata["readme"]["text"])
    assert len(links) > 10
    assert all(link.startswith(f"{address}/") for link in links) == bool(address)
    assert (f"{address}/raw/main/docs/images/readme.png" in links) == bool(address)
    assert ("urls" in metadata) == bool(address)


def test_the_extra_of_the_documentation_has_what_its_pages_use():
    """Read the Docs installs the extra alone, and builds the site by running every page and every example."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras, required, waiting = project["optional-dependencies"], set(), [*project["dependencies"], "skadmm[docs]"]
    while waiting:
        name, chosen = re.match(r"([\w-]+)(?:\[([\w,-]+)\])?", waiting.pop()).groups()
        required.add(name.replace("-", "_").lower())
        waiting += [each for extra in (chosen or "").split(",") if name == "skadmm" for each in extras[extra]]
    pages = [path.read_text(encoding="utf-8") for path in (*ROOT.glob("docs/*.md"), *ROOT.glob("docs/guides/*.md"))]
    code = [block for page in pages for block in re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)]
    code += [path.read_text(encoding="utf-8") for path in ROOT.glob("examples/*.py")]
    trees = [ast.parse(text) for text in code]
    found = [node for tree in trees for node in ast.walk(tree)]
    used = {alias.name for node in found if isinstance(node, ast.Import) for alias in node.names}
    used |= {node.module for node in found if isinstance(node, ast.ImportFrom)}
    used = {name.split(".")[0] for name in used} - set(sys.stdlib_module_names)
    used = {"scikit_learn" if name == "sklearn" else name for name in used}
    used |= {"pyarrow"} if any("parquet" in text for text in code) else set()
    assert {"dask", "polars", "pyarrow"} <= used <= required


def test_the_citation_is_of_this_version():
    citation = (ROOT / "CITATION.cff").read_text()
    assert f"version: {skadmm.__version__.split('.dev')[0]}\n" in citation
    assert re.search(r"^date-released: \d{4}-\d{2}-\d{2}$", citation, re.MULTILINE)


BANNED = {
    r"dear(er|est)?": "expensive",
    r"mend(s|ed|ing)?": "fix",
    r"rooms|homes": "memory, storage",
    r"greatest": "largest, maximum",
    r"(passes|numbers) an? (sample|step|model|run)": "per",
    r"asked wrongly": "usage error",
    r"told(?! apart)": "given, stated",
    r"at the door|know it again": "on input; restore",
    r"rows? an? (strength|sample|model|line|quantity|step|level)": "per",
    r"EagerLooks|Relay|AT_ONCE|as_one|hard rows": "the field's word: ARCHITECTURE, vocabulary",
    r"whilst|thrice|hitherto|amongst": "a plain word",
    r"creeps?|creeping|spoilt": "converges slowly; damaged",
    r"(at most|at least|about|after|up to|than|over) so many|so many (steps|passes|samples)": "this many",
    r"sees? to it|of no use|all the same|goes on|go on(?= |\.|,)": "checks; useless; anyway; continues",
    r"nothing but rounding|next to nothing|nothing is known but": "only rounding error; almost nothing",
    r"rounding allows? no more|not a sound": "rounding prevents progress; not a valid",
}
"""Words that readers stumble over, and what to write instead."""
READ = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "CODE_OF_CONDUCT.md", "docs/**/*.md",
        "src/**/*.py", "examples/*.py", "benchmarks/**/*.py", "benchmarks/**/*.md")  # fmt: skip


FRAGMENTS = {
    r'"""…|…"""|^…': "one sentence per docstring, not one over several of them",
    r'"""(Of|And) (?!course)': "a sentence with a subject: the gradient of the loss",
}
"""Beginnings and ends of docstrings that make no sense without their neighbours."""


IMAGES = {
    r"creeps?|creeping": "converges slowly",
    r"for ever|anew": "without bound, without end; again",
    r"gives way|gave way": "hands over to",
    r"goes on|go on": "continues, resumes",
    r"runs? off": "diverges, becomes large",
    r"(data|rows|model|X) (lives?|sits?)": "is, are kept",
    r"quickly|quickest": "fast, soon; the fastest",
    r"(alpha|model|method|solver|kernel) wants?": "needs",
    r"least (AIC|BIC|error|value)": "minimum",
    r"rows? (a|an) \w+ing|one (row|panel|column|line|sample) an? \w+": "per",
    r"speaks? of|goes by|go by|bits and pieces|by and large": "is about, is called",
    r"(do|does|did) not arrive|got there|as it goes": "reaches the tolerance; while it runs",
    r"flatters?|weak sides?|plays? no part|played no part|say more than": "looks better; weaknesses; is not used",
}
"""Images that a user of the package should not have to read."""
READ_BY_USERS = ("README.md", "CONTRIBUTING.md", "docs/*.md", "docs/guides/*.md", "src/skadmm/cli/*.py",
                 "src/skadmm/datasets/*.py", "src/skadmm/estimators/*.py", "src/skadmm/paper/*.py",
                 "src/skadmm/paper/assets/*.html", "src/skadmm/plotting/*.py", "src/skadmm/run/[cmprs]*.py",
                 "examples/*.py")  # fmt: skip


def _lines_with(word, globs):
    pattern = re.compile(rf"\b({word})\b", re.IGNORECASE)
    return [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for glob in globs
        for path in sorted(ROOT.glob(glob))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if pattern.search(line)
    ]


@pytest.mark.parametrize("word", BANNED)
def test_plain_words(word):
    """Pages, docstrings, messages and comments are in plain technical English."""
    assert not _lines_with(word, READ), f"write: {BANNED[word]}"


@pytest.mark.parametrize("word", IMAGES)
def test_what_users_read_has_no_images(word):
    """Pages, and the docstrings and messages of the layers that users call."""
    assert not _lines_with(word, READ_BY_USERS), f"write: {IMAGES[word]}"


@pytest.mark.parametrize("fragment", FRAGMENTS)
def test_docstrings_make_sense_by_themselves(fragment):
    """A reader sees one of them at a time."""
    pattern = re.compile(fragment)
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in sorted((ROOT / "src").rglob("*.py"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if pattern.search(line.strip())
    ]
    assert not found, f"write: {FRAGMENTS[fragment]}"


def _modules():
    return [
        importlib.import_module(found.name)
        for found in pkgutil.walk_packages(skadmm.__path__, "skadmm.")
        if not found.name.endswith("__main__")
    ]


@pytest.mark.parametrize("module", _modules(), ids=lambda module: module.__name__)
def test_kernels_use_only_what_their_cache_is_keyed_on(module):
    """A compiled function or a number taken from a file outside SHARED would go stale in the cache unseen."""
    kernels = [value for value in vars(module).values() if isinstance(value, Dispatcher)]
    own = [value for value in kernels if value.py_func.__module__ == module.__name__]
    if not own or Path(module.__file__) in shared_sources():
        return
    tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
    for node in tree.body:
        if not (isinstance(node, ast.ImportFrom) and (node.module or "").startswith("skadmm")):
            continue
        for alias in node.names:
            value = getattr(module, alias.asname or alias.name)
            if isinstance(value, (Dispatcher, int, float, np.ndarray)) and not isinstance(value, bool):
                assert Path(importlib.import_module(node.module).__file__) in shared_sources(), (
                    node.module,
                    alias.name,
                )

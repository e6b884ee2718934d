"""Every Python block of every page runs, page by page, each in an empty folder; what pages list is all there is."""

import re
import runpy
import sys
from pathlib import Path
from types import ModuleType
from unittest.mock import patch

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest

import skadmm
from skadmm import ALGORITHMS, Status
from skadmm.losses import LOSSES
from skadmm.regularizers import REGULARIZERS

DOCS = Path(__file__).resolve().parents[2] / "docs"
GENERATED = ("api", "gallery", "_figures")
PAGES = sorted(path for path in DOCS.rglob("*.md") if path.relative_to(DOCS).parts[0] not in GENERATED)
WITHOUT_CODE = {
    "benchmarks.md",  # made by benchmarks/generalized_lasso/page.py
    "changelog.md",
    "checklist.md",
    "contributing.md",  # CONTRIBUTING.md: its recipes are followed by test_project.py
    "design.md",
    "guides/index.md",  # a list of the guides
    "reproduction.md",  # commands, run by test_experiments.py
    "reproduction/README.md",
    "reproduction/summary.md",  # made by skadmm reproduce
}


def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def name_of(path: Path) -> str:
    return path.relative_to(DOCS).as_posix()


@pytest.mark.parametrize("path", [page for page in PAGES if name_of(page) not in WITHOUT_CODE], ids=name_of)
def test_the_code_of_a_page_runs(path, tmp_path, monkeypatch):
    blocks = re.findall(r"^```python\n(.*?)^```", text_of(path), flags=re.DOTALL | re.MULTILINE)
    assert blocks, "a page has an example that runs"
    monkeypatch.chdir(tmp_path)
    mpl.use("Agg")
    module = ModuleType("page")  # kernels ask where a class was written
    monkeypatch.setitem(sys.modules, "page", module)
    with patch.dict(LOSSES), patch.dict(REGULARIZERS):  # a page may register its own
        for number, block in enumerate(blocks):
            exec(compile(block, f"{name_of(path)}, block {number + 1}", "exec"), vars(module))
    plt.close("all")


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_links_of_a_page_lead_somewhere(path):
    for target in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", text_of(path)):
        if Path(target).parts[0] not in GENERATED:
            assert (path.parent / target).exists(), target


def test_every_page_is_in_a_table_of_contents():
    listed = set()
    for path in PAGES:
        for block in re.findall(r"^```\{toctree\}\n(.*?)^```", text_of(path), flags=re.DOTALL | re.MULTILINE):
            entries = [line for line in block.splitlines() if line and not line.startswith(":")]
            listed |= {(path.parent / f"{entry}.md").resolve() for entry in entries}
    assert {page for page in PAGES if name_of(page) != "reproduction/README.md"} - listed == {DOCS / "index.md"}


def test_the_words_people_search_for_are_on_their_pages():
    """``docs/check_site.py`` asks the search of the built site for the same twelve words."""
    words = runpy.run_path(str(DOCS / "check_site.py"))["WORDS"]
    assert len(words) == 12
    for word, page in words.items():
        assert re.search(rf"\b{word}", text_of(DOCS / f"{page}.md"), re.IGNORECASE), (word, page)


def test_outputs_are_shown_below_their_blocks():
    with_outputs = runpy.run_path(str(DOCS / "_extensions" / "executed.py"))["with_outputs"]
    page = "Text.\n\n```python\na = 3\n```\n\n```python\nprint(a + 1)\n```\n"
    assert with_outputs(page).count("code-block") == 1
    assert with_outputs(page).endswith("\n4\n```\n")


def test_figures_are_shown_below_the_output_of_their_block(tmp_path):
    executed = runpy.run_path(str(DOCS / "_extensions" / "executed.py"))
    draw = "```python\nimport matplotlib.pyplot as plt\nplt.figure(figsize=(3, 2))\nprint(1)\n```\n"
    described = "<!-- figure: An empty\nfigure -->\n"
    page = executed["with_outputs"](draw + described + "\nText.\n\n" + draw + "\n" + described, "guides/a", tmp_path)
    assert page.index("class: output") < page.index("{image} /_figures/pages/guides-a-1.png") < page.index("Text.")
    assert page.count(":alt: An empty figure\n:width: 300px") == 2
    assert "<!--" not in page
    assert sorted(path.name for path in tmp_path.iterdir()) == ["guides-a-1.png", "guides-a-2.png"]
    assert plt.imread(tmp_path / "guides-a-2.png").shape[:2] == (400, 600)  # twice the width it is shown in

    executed["with_outputs"](draw + described, "guides/a", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["guides-a-1.png"]  # no picture of an earlier build is left
    for wrong in (draw, "```python\nprint(1)\n```\n" + described):
        with pytest.raises(ValueError, match="described"):
            executed["with_outputs"](wrong, "guides/a", tmp_path)
        plt.close("all")


def test_every_description_of_a_figure_is_below_a_block():
    for path in PAGES:
        if name_of(path) not in WITHOUT_CODE:
            text = text_of(path)
            described = re.findall(r"^```\n\n?<!-- figure: ", text, flags=re.MULTILINE)
            assert text.count("<!-- figure: ") == len(described), f"{name_of(path)}: a description is not below a block"


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_formulas_fit_a_narrow_screen(path):
    """A long formula is cut before its relations and sums, without a loss, into pieces that fit a line."""
    pytest.importorskip("latex2mathml")
    extension = runpy.run_path(str(DOCS / "_extensions" / "mathml.py"))
    for formula in re.findall(r"\$\$(.*?)\$\$", text_of(path), flags=re.DOTALL):
        pieces = extension["divided"](formula.strip(), extension["BLOCK"])
        assert re.sub(r"\s", "", "".join(pieces)) == re.sub(r"\s", "", formula)
        assert max(map(extension["_width"], pieces)) <= extension["BLOCK"]


def test_every_status_and_error_is_explained():
    page = text_of(DOCS / "trouble.md")
    for status in Status:
        assert f"| `{status.name}` |" in page
    errors = [name for name in skadmm.__all__ if name.endswith("Error")]
    assert errors
    for name in errors:
        assert f"`skadmm.{name}`" in page


def test_every_method_has_a_row():
    table = runpy.run_path(str(DOCS / "_extensions" / "algorithm_facts.py"))
    assert sorted(row[0] for row in table["rows"]()) == sorted(ALGORITHMS)


def test_every_public_name_has_a_place_in_the_reference():
    pages = runpy.run_path(str(DOCS / "_extensions" / "api_pages.py"))["entries"]()
    shown = {name for found in pages.values() for name, _ in found}
    assert {f"skadmm.{name}" for name in skadmm.__all__} <= shown


def test_the_citation_has_the_version_of_the_package():
    citation = text_of(DOCS.parent / "CITATION.cff")
    assert f"\nversion: {skadmm.__version__.split('.dev')[0]}\n" in citation

"""Run the Python blocks of every page at build time, and show below each block what it prints and draws.

The blocks of a page run one after the other in an empty folder, as in ``tests/integration/test_docs.py``. The figures
of matplotlib that a block leaves open are shown below its output, and then closed. Each needs a description for readers
who do not see it: a comment below the block, of one line or several, in the order of the figures::

    <!-- figure: The error against the strength, with its minimum -->
"""

import contextlib
import io
import os
import re
import sys
import tempfile
import warnings
from pathlib import Path
from types import ModuleType

import matplotlib as mpl

BLOCK = re.compile(r"^```python\n(.*?)^```\n((?:\n?<!-- figure: .*? -->\n)*)", re.DOTALL | re.MULTILINE)
DESCRIPTION = re.compile(r"<!-- figure: (.*?) -->", re.DOTALL)
WITHOUT = ("contributing", "changelog", "reproduction", "design", "benchmarks", "checklist")
"""Pages whose blocks are not run: they show files of the project, or are generated."""
PIXELS_PER_INCH = 100
"""Of the page. A file has twice as many, for screens of high density."""


def run(source, module):
    """What a block prints."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        exec(compile(source, "a block", "exec"), vars(module))
    return said.getvalue().rstrip()


def figures(descriptions, stem, folder):
    """The Markdown of the figures that are open, which are saved as `stem` and a number, and closed."""
    import matplotlib.pyplot as plt

    numbers = plt.get_fignums()
    if len(numbers) != len(descriptions):
        raise ValueError(f"a block draws {len(numbers)} figures and {len(descriptions)} are described: {descriptions}")
    shown = ""
    for number, text in zip(numbers, descriptions, strict=True):
        figure = plt.figure(number)
        name = f"{stem}-{len(list(folder.glob(f'{stem}-*.png'))) + 1}.png"
        figure.savefig(folder / name, dpi=2 * PIXELS_PER_INCH, facecolor="white")  # legible on a dark page too
        width = round(figure.get_figwidth() * PIXELS_PER_INCH)
        shown += (
            f"\n```{{image}} /_figures/pages/{name}\n:alt: {' '.join(text.split())}\n:width: {width}px\n"
            f":class: drawn\n```\n"
        )
        plt.close(figure)
    return shown


def with_outputs(text, name="page", pictures=None):
    """The page, with what each block prints and draws below it.

    Parameters
    ----------
    text : str
        Its Markdown.
    name : str
        Its name, from which those of its pictures are made.
    pictures : Path, optional
        The folder for the pictures; those of the same page are removed first.
    """
    module = ModuleType("page")  # kernels ask where a class was written
    before, sys.modules["page"] = os.getcwd(), module
    stem = name.replace("/", "-")
    try:
        with tempfile.TemporaryDirectory() as folder:
            pictures = Path(pictures or folder).resolve()
            pictures.mkdir(parents=True, exist_ok=True)
            for old in pictures.glob(f"{stem}-*.png"):
                old.unlink()
            os.chdir(folder)
            mpl.use("Agg")

            def shown(found):
                output = run(found[1], module)
                printed = f"\n```{{code-block}} text\n:class: output\n\n{output}\n```\n" if output else ""
                code = found[0][: found.start(2) - found.start()]
                return code + printed + figures(DESCRIPTION.findall(found[2]), stem, pictures)

            return BLOCK.sub(shown, text)
    finally:
        os.chdir(before)
        sys.modules.pop("page", None)


def on_read(app, name, source):
    """Replace the source of a Markdown page before it is parsed."""
    if name.startswith(("api/", "gallery/", *WITHOUT)) or not str(app.env.doc2path(name)).endswith(".md"):
        return
    try:
        source[0] = with_outputs(source[0], name, Path(app.srcdir) / "_figures" / "pages")
    except Exception as error:
        raise RuntimeError(f"{name}: a Python block failed: {error!r}") from error


def setup(app):
    """Connect the extension to Sphinx."""
    app.connect("source-read", on_read)
    return {"parallel_read_safe": False}

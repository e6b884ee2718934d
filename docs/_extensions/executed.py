"""Run the Python blocks of every page at build time, and show below each block what it prints.

The blocks of a page run one after the other in an empty folder, as in ``tests/integration/test_docs.py``.
"""

import contextlib
import io
import os
import re
import sys
import tempfile
import warnings
from types import ModuleType

import matplotlib as mpl

BLOCK = re.compile(r"^```python\n(.*?)^```\n", re.DOTALL | re.MULTILINE)
WITHOUT = ("contributing", "changelog", "reproduction", "design", "benchmarks", "checklist")
"""Pages whose blocks are not run: they show files of the project, or are generated."""


def run(source, module):
    """What a block prints."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        exec(compile(source, "a block", "exec"), vars(module))
    return said.getvalue().rstrip()


def with_outputs(text):
    """The page, with a block of output after each block of code that prints."""
    module = ModuleType("page")  # kernels ask where a class was written
    before, sys.modules["page"] = os.getcwd(), module
    try:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            mpl.use("Agg")

            def shown(found):
                output = run(found[1], module)
                return found[0] + (f"\n```{{code-block}} text\n:class: output\n\n{output}\n```\n" if output else "")

            return BLOCK.sub(shown, text)
    finally:
        os.chdir(before)
        sys.modules.pop("page", None)


def on_read(app, name, source):
    """Replace the source of a Markdown page before it is parsed."""
    if name.startswith(("api/", "gallery/", *WITHOUT)) or not str(app.env.doc2path(name)).endswith(".md"):
        return
    try:
        source[0] = with_outputs(source[0])
    except Exception as error:
        raise RuntimeError(f"{name}: a Python block failed: {error!r}") from error


def setup(app):
    """Connect the extension to Sphinx."""
    app.connect("source-read", on_read)
    return {"parallel_read_safe": False}

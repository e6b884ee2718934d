"""Draw the figures of ``docs/figures.py`` before Sphinx reads the sources."""

import runpy
from pathlib import Path

import matplotlib as mpl


def draw(app):
    """Draw the figures that are missing or older than ``docs/figures.py``."""
    source, folder = Path(app.srcdir) / "figures.py", Path(app.srcdir) / "_figures"
    mpl.use("Agg")
    names = runpy.run_path(str(source))
    for name in names["FIGURES"]:
        path = folder / f"{name}.png"
        if not path.exists() or path.stat().st_mtime < source.stat().st_mtime:
            names["save"](name, path)


def setup(app):
    """What Sphinx calls."""
    app.connect("builder-inited", draw, priority=100)
    return {"parallel_read_safe": True}

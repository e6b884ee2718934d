"""What the theme leaves out for keyboards and screen readers: levels of headings, and focus for what scrolls."""

from pathlib import Path

CHANGES = (
    ('<p class="caption" role="heading">', '<p class="caption" role="heading" aria-level="2">'),
    ("<pre>", '<pre tabindex="0">'),
    ('<div class="math">', '<div class="math" tabindex="0" role="group" aria-label="Formula">'),
    ('<aside class="toc-drawer', '<aside aria-label="On this page" class="toc-drawer'),
    ('<div class="table-wrapper', '<div tabindex="0" class="table-wrapper'),
)


def finish(app, error):
    """Change the written pages."""
    if error is not None or app.builder.format != "html":
        return
    for path in Path(app.outdir).rglob("*.html"):
        text = before = path.read_text(encoding="utf-8")
        for old, new in CHANGES:
            text = text.replace(old, new)
        if text != before:
            path.write_text(text, encoding="utf-8")


def setup(app):
    """What Sphinx calls."""
    app.connect("build-finished", finish)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

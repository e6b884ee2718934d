"""What the theme leaves out for keyboards and screen readers: levels of headings, and focus for what scrolls."""

import re
from pathlib import Path

CHANGES = (
    ('<p class="caption" role="heading">', '<p class="caption" role="heading" aria-level="2">'),
    ("<pre>", '<pre tabindex="0">'),
    ('<div class="math">', '<div class="math" tabindex="0" role="group" aria-label="Formula">'),
    ('<aside class="toc-drawer', '<aside aria-label="On this page" class="toc-drawer'),
    ('<div class="table-wrapper', '<div tabindex="0" class="table-wrapper'),
)


PATTERNS = (
    # The text of a link over a thumbnail is hidden, and its title is not part of the link.
    (
        r'(<a class="reference internal")( href="[^"]*"><span class="doc">)([^<]*)(</span></a></p>\s*'
        r'<div class="sphx-glr-thumbnail-title">)',
        r'\1 aria-label="\3"\2\3\4',
    ),
    # A browser may break a line at the hyphen of 1e-06.
    (r"<td><p>(\d[\d.,]*e-\d+)</p></td>", r'<td class="number"><p>\1</p></td>'),
    # And at those of a solver's name, such as lbfgs-smoothed[width=1e-05]; it may break before the bracket.
    (
        r'<td><p>(<code class="docutils literal notranslate"><span class="pre">)'
        r"([\w-]{1,20})(\[[^\]<]{1,16}\])?</span></code>",
        r'<td class="name"><p>\1\2</span><wbr><span class="pre">\3</span></code>',
    ),
)
HEADINGS = {"search.html": "Search"}
"""Pages that the theme writes without a heading."""


def finish(app, error):
    """Change the written pages."""
    if error is not None or app.builder.format != "html":
        return
    for path in Path(app.outdir).rglob("*.html"):
        text = before = path.read_text(encoding="utf-8")
        for old, new in CHANGES:
            text = text.replace(old, new)
        for pattern, new in PATTERNS:
            text = re.sub(pattern, new, text)
        if path.name in HEADINGS and "<h1" not in text:
            heading = f'<article role="main" id="furo-main-content"><h1>{HEADINGS[path.name]}</h1>'
            text = text.replace('<article role="main" id="furo-main-content">', heading)
        if text != before:
            path.write_text(text, encoding="utf-8")


def setup(app):
    """What Sphinx calls."""
    app.connect("build-finished", finish)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

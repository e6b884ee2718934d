"""Check the built site: no dead link, and the search finds the words that people search for.

``python docs/check_site.py [build/docs]`` after ``make docs``. What needs a browser is in ``docs/check_site.mjs``.
"""

import json
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

WORDS = {
    "multiclass": "glossary",
    "missing": "guides/preprocessing",
    "variation": "glossary",
    "preprocessing": "guides/preprocessing",
    "selection": "guides/preprocessing",
    "hyperparameter": "glossary",
    "changepoint": "glossary",
    "segmentation": "glossary",
    "outliers": "glossary",
    "imputation": "glossary",
    "overlap": "guides/groups",
    "laplacian": "glossary",
}
"""Twelve words, and a page that the search must list for each."""


class Page(HTMLParser):
    """The links and the anchors of a page."""

    def __init__(self, text):
        super().__init__()
        self.links, self.anchors = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):  # noqa: D102
        found = dict(attributes)
        self.anchors |= {found[key] for key in ("id", "name") if found.get(key)}
        self.links += [found[key] for key in ("href", "src") if found.get(key)]


def dead_links(site: Path) -> list[str]:
    """Links within the site to files or anchors that do not exist."""
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}
    dead = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or link.startswith("//"):
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            missing = not target.exists()
            if not missing and parts.fragment and target in pages:
                missing = unquote(parts.fragment) not in pages[target].anchors | {"top"}
            if missing:
                dead.append(f"{path.relative_to(site)}: {link}")
    return dead


def not_found(site: Path) -> list[str]:
    """The words that the index of the search does not have, or not for their page."""
    text = (site / "searchindex.js").read_text(encoding="utf-8")
    index = json.loads(re.fullmatch(r"Search\.setIndex\((.*)\)", text.strip(), re.DOTALL)[1])
    names = index["docnames"]
    missing = []
    for word, page in WORDS.items():
        stems = [key for key in {*index["terms"], *index["titleterms"]} if word.startswith(key) and len(key) > 3]
        listed = set()
        for stem in stems:
            for terms in (index["terms"], index["titleterms"]):
                found = terms.get(stem, [])
                listed |= {names[k] for k in ([found] if isinstance(found, int) else found)}
        if page not in listed:
            missing.append(f"{word}: {page} is not among {len(listed)} pages")
    return missing


def main() -> int:
    """Print what is wrong; the exit code."""
    site = Path(sys.argv[1] if len(sys.argv) > 1 else "build/docs").resolve()
    if not (site / "index.html").exists():
        print(f"{site}: there is no site; make docs builds it")
        return 2
    faults = [f"dead link in {link}" for link in dead_links(site)] + [f"search: {word}" for word in not_found(site)]
    print("\n".join(faults) or f"{site}: links and search are right")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())

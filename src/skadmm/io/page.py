"""The parts that every HTML report has: one file each, which loads nothing from elsewhere.

The style sheet ``assets/page.css`` has colours for light and dark screens; a report adds its own rules to it.
"""

from __future__ import annotations

import base64
import html
import importlib.resources
import json
from collections.abc import Mapping, Sequence
from typing import Any


def escape(value: Any) -> str:
    """Return `value` as text that cannot end an element or an attribute."""
    return html.escape(str(value), quote=True)


def asset(package: str, name: str) -> str:
    """Read a file of the folder ``assets`` of a package."""
    return importlib.resources.files(package).joinpath("assets", name).read_text(encoding="utf-8")


def style(package: str) -> str:
    """Return the common style sheet, followed by the ``report.css`` of `package`."""
    return asset("skadmm.io", "page.css") + asset(package, "report.css")


def embedded(content: Any) -> str:
    """Return `content` as JSON that can stand inside a script element."""
    return json.dumps(content, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")


def table(rows: Sequence[Mapping[str, Any]], label: str) -> str:
    """Return a table with one column per key; `label` names it for screen readers."""
    if not rows:
        return ""
    heads = list(dict.fromkeys(head for row in rows for head in row))
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in heads)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(row.get(name, ''))}</td>" for name in heads) + "</tr>" for row in rows
    )
    return scrolling(f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>", label)


def facts(values: Mapping[str, Any], label: str) -> str:
    """Return a table of two columns: names and values."""
    rows = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td>{escape(text)}</td></tr>' for name, text in values.items()
    )
    return scrolling(f'<table class="facts"><tbody>{rows}</tbody></table>', label)


def scrolling(content: str, label: str) -> str:
    """Return a region that scrolls sideways by itself, also from the keyboard."""
    return f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(label)}">{content}</div>'


def download(text: str, name: str, label: str) -> str:
    """Return a link that saves `text` as the file `name`."""
    coded = base64.b64encode(text.encode()).decode()
    return f'<a class="download" download="{escape(name)}" href="data:text/csv;base64,{coded}">{escape(label)}</a>'

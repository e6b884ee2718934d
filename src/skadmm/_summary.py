"""Short descriptions of objects: one line for a terminal, a small table for a notebook."""

from __future__ import annotations

import html
from collections.abc import Mapping
from typing import Any


def line(title: str, facts: Mapping[str, Any]) -> str:
    """``title(name=value, ...)``, without the facts that are None."""
    return f"{title}({', '.join(f'{name}={value}' for name, value in facts.items() if value is not None)})"


def table(title: str, facts: Mapping[str, Any]) -> str:
    """The same as HTML: a caption, and a row for each fact."""
    rows = "".join(
        f"<tr><th style='text-align:left'>{_text(name)}</th><td style='text-align:left'>{_text(value)}</td></tr>"
        for name, value in facts.items()
        if value is not None
    )
    return f"<table><caption><b>{_text(title)}</b></caption><tbody>{rows}</tbody></table>"


def _text(value: Any) -> str:
    return html.escape(str(value))

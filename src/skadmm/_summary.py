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


def fields(record: Any) -> str:
    """``Title(name=value, ...)`` of a named tuple, with the kinds and shapes of its arrays instead of their entries."""
    return line(type(record).__name__, {name: _in_short(value) for name, value in record._asdict().items()})


def _in_short(value: Any) -> str | None:
    if value is None:
        return None
    shape = getattr(value, "shape", None)
    return repr(value) if shape is None or shape == () else f"{type(value).__name__} of shape {shape}"


def _text(value: Any) -> str:
    return html.escape(str(value))

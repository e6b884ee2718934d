"""Numbers, lists and sizes as text for a reader."""

from __future__ import annotations

from typing import Any


def in_words(value: Any) -> str:
    """A fact for a reader: numbers to six digits, lists with commas, equal entries once."""
    if isinstance(value, float):
        return f"{value:.6g}"
    if not isinstance(value, list):
        return str(value)
    entries = [in_words(entry) for entry in value]
    return entries[0] if len(set(entries)) == 1 else ", ".join(entries)


def size_in_words(size: float) -> str:
    """A number of bytes in the largest unit of which it has one."""
    for unit, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if size >= unit:
            return f"{size / unit:,.3g} {name}"
    return f"{size:.0f} bytes"

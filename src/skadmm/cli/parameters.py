"""``--set NAME=VALUE``: parameters of an estimator that have no option of their own."""

from __future__ import annotations

import json
from typing import Any

from skadmm._names import nearest
from skadmm.cli._errors import CommandError


def parameters(given: list[str], known: list[str]) -> dict[str, Any]:
    """Parameters by name from texts such as ``bounds=[0, 1]``: the value is JSON, or a text where it is not JSON."""
    found: dict[str, Any] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals:
            raise CommandError(f"--set {text}: it takes a parameter and its value, such as positive=true", 2)
        if name not in known:
            raise CommandError(f"--set {text}: there is no parameter {name!r}.{nearest(name, known)}", 2)
        try:
            found[name] = json.loads(value)
        except ValueError:
            found[name] = value
    return found

"""``--set NAME=VALUE``: parameters of an estimator that have no option of their own."""

from __future__ import annotations

import json
from typing import Any

from skadmm._names import nearest
from skadmm.cli._errors import CommandError
from skadmm.cli.loss_option import loss_of

WORDS: dict[str, bool | None] = {"true": True, "false": False, "none": None}
"""Values in Python's spelling, in any case; JSON has true, false and null."""
ANSWERS = {"yes": True, "no": False}
"""Further words for parameters that are True or False."""


def parameters(given: list[str], defaults: dict[str, Any]) -> dict[str, Any]:
    """Parameters by name from texts such as ``bounds=[0, 1]``: the value is JSON, or a text where it is not JSON.
    `defaults` are the parameters that there are, with their values."""
    found: dict[str, Any] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals:
            raise CommandError(f"--set {text}: it takes a parameter and its value, such as positive=true", 2)
        if name not in defaults:
            raise CommandError(f"--set {text}: there is no parameter {name!r}.{nearest(name, sorted(defaults))}", 2)
        words = {**WORDS, **ANSWERS} if isinstance(defaults[name], bool) else WORDS
        try:
            found[name] = words[value.lower()] if value.lower() in words else json.loads(value)
        except ValueError:
            found[name] = value
    if isinstance(found.get("loss"), str):
        found["loss"] = loss_of(found["loss"])
    columns = found.get("categorical_features")
    if isinstance(columns, str) and columns != "from_dtype":
        found["categorical_features"] = [columns]
    return found

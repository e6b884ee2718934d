"""``--loss NAME`` and ``--loss NAME(PARAMETERS)``: a registered loss, with its parameters."""

from __future__ import annotations

import ast
import inspect
import re
from typing import Any

from skadmm._names import nearest, unknown
from skadmm.cli._errors import CommandError


def loss_of(text: str) -> Any:
    """The loss of a text such as ``tweedie(1.3)`` or ``smoothed-quantile(q=0.9, width=0.2)``; parameters are numbers,
    by name or in their order. A name alone is returned as it is, for the model to check."""
    from skadmm.losses import LOSSES, as_loss

    found = re.fullmatch(r"\s*([^\s()]+)\s*\((.*)\)\s*", text, re.DOTALL)
    if found is None:
        if "(" in text or ")" in text:
            raise CommandError(f"--loss {text}: it takes a name, or a name and numbers such as tweedie(power=1.3)", 2)
        return text
    name, inside = found.groups()
    if name not in LOSSES:
        raise CommandError(f"--loss {text}: {unknown('loss', name, LOSSES)}", 2)
    kind: Any = LOSSES[name]
    parameters = {field: entry.default for field, entry in inspect.signature(kind).parameters.items()}
    defaults = ", ".join(f"{field}={value}" for field, value in parameters.items())
    takes = f"{name} takes {defaults}" if defaults else f"{name} has no parameters"
    given: dict[str, float] = {}
    for field, value in _numbers(text, inside, list(parameters), takes):
        if field not in parameters:
            raise CommandError(f"--loss {text}: there is no {field!r}; {takes}.{nearest(field, parameters)}", 2)
        if field in given:
            raise CommandError(f"--loss {text}: {field} is given twice; {takes}", 2)
        given[field] = value
    return as_loss(kind(**given))


def _numbers(text: str, inside: str, fields: list[str], takes: str) -> list[tuple[str, float]]:
    """The parameters by name; nothing but numbers is read."""
    try:
        call: Any = ast.parse(f"loss({inside})", mode="eval").body
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
            raise ValueError(inside)
        positional = [ast.literal_eval(value) for value in call.args]
        named = [(str(entry.arg), ast.literal_eval(entry.value)) for entry in call.keywords]
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        raise CommandError(f"--loss {text}: parameters are numbers; {takes}", 2) from None
    if len(positional) > len(fields):
        count = len(positional)
        numbers = f"{count} number{'' if count == 1 else 's'}"
        message = f"{numbers} without a name; {takes}" if fields else f"{takes}, got {numbers}"
        raise CommandError(f"--loss {text}: {message}", 2)
    pairs = [*zip(fields, positional, strict=False), *named]
    if any(isinstance(value, bool) or not isinstance(value, (int, float)) for _, value in pairs):
        raise CommandError(f"--loss {text}: parameters are numbers; {takes}", 2)
    return pairs

"""The Python that fits a model again, for its report."""

from __future__ import annotations

import ast
import inspect
from typing import Any

import numpy as np

from skadmm.estimators.persistence import OF_THE_MACHINE
from skadmm.losses import LOSSES

LONGEST = 80
"""Characters of a parameter that are written out; a longer one is a variable."""


def code_of(model: Any, with_offset: bool) -> str:
    """Python that fits the model again to X and y; parameters that are no short literals are variables, as X and y."""
    name, imports, lines = type(model).__name__, [], []
    known = inspect.signature(type(model)).parameters
    for key, value in model.get_params(deep=False).items():
        if key in OF_THE_MACHINE or repr(value) == repr(known[key].default):
            continue
        plain = value.item() if isinstance(value, np.generic) else value
        if type(value) in set(LOSSES.values()):
            imports.append(f"from skadmm.losses import {type(value).__name__}")
            lines.append(f"    loss={value!r},")
        elif _is_literal(plain):
            lines.append(f"    {key}={plain!r},")
        else:
            variable = "edges" if key == "graph" and isinstance(value, (list, tuple)) else key
            lines.append(f"    {key}={variable},  # {_in_words(value, variable)}")
    arguments = "\n".join(["", *lines, ""]) if lines else ""
    head = "\n".join([f"from skadmm import {name}", *imports])
    return f"{head}\n\nmodel = {name}({arguments})\nmodel.fit(X, y{', offset=offset' if with_offset else ''})"


def _is_literal(value: Any) -> bool:
    """Return whether the text of a value is Python for it, and short."""
    text = repr(value)
    if len(text) > LONGEST:
        return False
    try:
        ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return False
    return True


def _in_words(value: Any, variable: str) -> str:
    """What a variable of the code holds, in a few words."""
    if hasattr(value, "shape"):
        return f"{type(value).__name__} of shape {tuple(value.shape)}"
    if isinstance(value, (list, tuple, dict)):
        return f"{len(value):,} {variable if variable in ('edges', 'groups') else 'entries'}"
    return type(value).__name__

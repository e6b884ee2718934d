"""Plotting functions by name, so that results can be drawn without depending on the layer that draws them.

``Result.plot`` and its like ask for a function by its name, and the module is imported when it is first drawn with, as
pandas does for its plotting backends. An entry is "module:function".
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

PLOTS = {
    "coefficient_path": "skadmm.plotting:coefficient_path",
    "convergence": "skadmm.plotting:convergence",
}


def plot(name: str) -> Callable[..., Any]:
    """The plotting function registered under `name`."""
    module, _, function = PLOTS[name].partition(":")
    return getattr(importlib.import_module(module), function)

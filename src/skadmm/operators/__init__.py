"""Builders of the penalty matrix A, one idea a file."""

from collections.abc import Callable
from typing import Any

from skadmm._names import Registry
from skadmm.operators.canonical import as_operator, identity
from skadmm.operators.graph import incidence
from skadmm.operators.grid import grid
from skadmm.operators.groups import overlapping_groups
from skadmm.operators.outputs import across_outputs, output_groups
from skadmm.operators.precision import precision_graph
from skadmm.operators.precision_result import PrecisionGraph
from skadmm.operators.stacking import stack
from skadmm.operators.trend import chain, trend
from skadmm.operators.wavelet import wavelet

OPERATORS: Registry[Callable[..., Any]] = Registry("operator")
OPERATORS.add("incidence", incidence)
OPERATORS.add("chain", chain)
OPERATORS.add("grid", grid)
OPERATORS.add("trend", trend)
OPERATORS.add("wavelet", wavelet)
OPERATORS.add("overlapping-groups", overlapping_groups)
OPERATORS.add("identity", identity)
OPERATORS.add("stack", stack)
OPERATORS.add("precision-graph", precision_graph)

__all__ = [
    "OPERATORS",
    "PrecisionGraph",
    "across_outputs",
    "as_operator",
    "chain",
    "grid",
    "identity",
    "incidence",
    "output_groups",
    "overlapping_groups",
    "precision_graph",
    "stack",
    "trend",
    "wavelet",
]

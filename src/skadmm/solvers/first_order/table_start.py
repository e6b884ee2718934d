"""How the table of a stochastic average starts: the option ``table`` of the sa- and saga- methods.

"x0" is Algorithm 1 of Zhong and Kwok (2013), τᵢ(−1) = 0: every sample is seen at x₀, which costs one pass. "zero" is
the start of SAG: a sample that has not been seen has the gradient 0, no pass is made, and averages are over all n
samples, seen or not, so that the gradient grows to its size as samples are seen. (SAG's authors also divide by the
number of samples seen; here that would undo the short first steps for which a table of zeros is taken.) The points of
SA-ADMM's table are x₀ in both.

The default is "x0": from x = 0 a table of zeros is often ahead in the first passes, but from a good starting point it
is behind, often by orders of magnitude (``benchmarks/table_start.py``). The theorems of the paper are for "x0"; see
``skadmm/paper/theory.py`` for what is left of them with "zero".

References
----------
Schmidt, M., Le Roux, N. and Bach, F. (2017). Minimizing finite sums with the stochastic average gradient.
"""

from typing import Any

import numpy as np

from skadmm.solvers.base import Option, Setup, chosen

STARTS = ("x0", "zero")


def _checked(value: Any, name: str) -> str:
    if value not in STARTS:
        raise ValueError(f"{name}={value!r}: it takes one of {', '.join(map(repr, STARTS))}")
    return str(value)


OPTIONS = {"table": Option("x0", _checked, "'x0' (all samples seen at x₀, one pass) or 'zero' (none seen)")}


def filled(setup: Setup) -> bool:
    """Return whether all samples are seen at x₀ before the first step."""
    return bool(chosen(setup, OPTIONS)["table"] == "x0")


def start_at(rule: Any, x: np.ndarray) -> None:
    """What a table holds before any sample is read: τᵢ = 0 for all i, so that every sample has the point `x` = x₀."""
    rule.points[:] = x
    rule.visited[:] = rule.filled
    rule.slopes[:] = 0.0
    rule.grad_bar[:] = 0.0
    if rule.reads == "average":
        rule.x_bar[:] = x

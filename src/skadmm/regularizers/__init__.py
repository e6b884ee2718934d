"""Regularisers Ω and ψ, one file each."""

from typing import Any

from skadmm._names import Registry
from skadmm.regularizers._base import Regularizer, define, define_separable
from skadmm.regularizers.l1 import L1
from skadmm.regularizers.squared_l2 import SquaredL2
from skadmm.regularizers.stacked import Stacked
from skadmm.regularizers.zero import Zero

REGULARIZERS: Registry[type] = Registry("regularizer")
REGULARIZERS.add("zero", Zero)
REGULARIZERS.add("l1", L1)
REGULARIZERS.add("squared-l2", SquaredL2)


def as_regularizer(reg: Any, size: int, role: str) -> Any:
    """`reg` checked and prepared for vectors of `size`; None is :class:`Zero`. `role` names the argument."""
    if reg is None:
        return Zero()
    if isinstance(reg, str):
        reg = REGULARIZERS[reg]()
    if isinstance(reg, type) or not hasattr(reg, "prepared"):
        raise TypeError(f"{role}={reg!r} is not a regulariser; give an instance such as L1(0.1), or None")
    return reg.prepared(size, role)


__all__ = [
    "L1",
    "REGULARIZERS",
    "Regularizer",
    "SquaredL2",
    "Stacked",
    "Zero",
    "as_regularizer",
    "define",
    "define_separable",
]

"""Regularisers Ω and ψ, one file each."""

from typing import cast

from skadmm._names import Registry
from skadmm._types import PenaltyLike
from skadmm.regularizers._base import Regularizer, define, define_separable, with_strength
from skadmm.regularizers.box import Box
from skadmm.regularizers.elastic_net import ElasticNet
from skadmm.regularizers.group_l2 import GroupL2
from skadmm.regularizers.group_linf import GroupLInf
from skadmm.regularizers.l1 import L1
from skadmm.regularizers.l2 import L2
from skadmm.regularizers.linf import LInf
from skadmm.regularizers.non_negative import NonNegative
from skadmm.regularizers.nuclear import Nuclear
from skadmm.regularizers.squared_l2 import SquaredL2
from skadmm.regularizers.stacked import Stacked
from skadmm.regularizers.zero import Zero

REGULARIZERS: Registry[type] = Registry("regularizer")
REGULARIZERS.add("zero", Zero)
REGULARIZERS.add("l1", L1)
REGULARIZERS.add("l2", L2)
REGULARIZERS.add("squared-l2", SquaredL2)
REGULARIZERS.add("linf", LInf)
REGULARIZERS.add("elastic-net", ElasticNet)
REGULARIZERS.add("group-l2", GroupL2)
REGULARIZERS.add("group-linf", GroupLInf)
REGULARIZERS.add("non-negative", NonNegative)
REGULARIZERS.add("box", Box)
REGULARIZERS.add("nuclear", Nuclear)


def as_regularizer(reg: PenaltyLike | Regularizer | None, size: int, role: str) -> Regularizer:
    """Check a regulariser and prepare it for vectors of a given length.

    Parameters
    ----------
    reg : regulariser or None
        None is :class:`Zero`.
    size : int
        The length of the vectors.
    role : str
        The name of the argument in messages.

    Returns
    -------
    regulariser
        The same with its parameters checked, and turned into arrays of the right length.

    See Also
    --------
    skadmm.regularizers.Regularizer : What a regulariser has.

    Examples
    --------
    >>> from skadmm.regularizers import Box, as_regularizer
    >>> as_regularizer(Box(0.0, 1.0), 2, "omega")
    Box(lower=array([0., 0.]), upper=array([1., 1.]))
    """
    if reg is None:
        return cast(Regularizer, Zero())
    if isinstance(reg, str):
        reg = REGULARIZERS[reg]()
    if isinstance(reg, type) or not hasattr(reg, "prepared"):
        raise TypeError(f"{role}={reg!r} is not a regulariser; give an instance such as L1(0.1), or None")
    return cast(Regularizer, reg).prepared(size, role)


__all__ = [
    "L1",
    "L2",
    "REGULARIZERS",
    "Box",
    "ElasticNet",
    "GroupL2",
    "GroupLInf",
    "LInf",
    "NonNegative",
    "Nuclear",
    "Regularizer",
    "SquaredL2",
    "Stacked",
    "Zero",
    "as_regularizer",
    "define",
    "define_separable",
    "with_strength",
]

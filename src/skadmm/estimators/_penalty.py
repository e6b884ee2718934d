"""The penalty of a model: ψ(Ax) with one strength, and how it is put together."""

from typing import Any, NamedTuple

import scipy.sparse as sp

from skadmm import _checks
from skadmm.operators import stack
from skadmm.operators.canonical import canonical
from skadmm.regularizers import L1, GroupL2


class Penalty(NamedTuple):
    """alpha · ψ(Ax), ψ the sum of |·|, or of the groups' Euclidean norms where there are `groups`."""

    A: sp.csr_array
    groups: Any = None
    """The rows of A in each group, or None."""
    trend: Any = None
    """What is known of A where it is differences alone: a :class:`~skadmm.operators.line.Line`, or a
    :class:`~skadmm.operators.line.GraphTrend`."""
    graph: Any = None
    """The :class:`FeatureGraph` that A was built from, or None."""
    members: Any = None
    """The column numbers of each group of features, or None."""

    def psi(self, alpha: float) -> Any:
        """ψ of strength `alpha`."""
        return L1(alpha) if self.groups is None else GroupL2(alpha, self.groups)


def with_l1(matrix: sp.csr_array, l1_ratio: float) -> sp.csr_array:
    """(1 − l1_ratio)‖Gx‖₁ + l1_ratio‖x‖₁ as one ‖Ax‖₁; parts that weigh nothing are left out."""
    d = matrix.shape[1]
    if l1_ratio == 0.0:
        return canonical(matrix)
    if l1_ratio == 1.0 or matrix.shape[0] == 0:
        return canonical(l1_ratio * sp.eye_array(d, format="csr"))
    return stack(matrix, "identity", weights=[1.0 - l1_ratio, l1_ratio])


def checked_ratio(l1_ratio: Any) -> float:
    """`l1_ratio` as a number in [0, 1]."""
    ratio = _checks.number(l1_ratio, "l1_ratio", least=0)
    if ratio > 1:
        raise ValueError(f"l1_ratio={l1_ratio!r}: it takes a number in [0, 1]")
    return ratio

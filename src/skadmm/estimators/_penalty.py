"""The penalty of a model: ψ(Ax) with one strength, and how it is composed."""

from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from skadmm._names import nearest
from skadmm.estimators._factors import NO_FACTORS, Factors
from skadmm.estimators._mixture import Mixture
from skadmm.operators import stack
from skadmm.operators.canonical import canonical
from skadmm.regularizers import L1, REGULARIZERS, GroupL2, as_regularizer, with_strength


class Penalty(NamedTuple):
    """alpha · ψ(Ax). Unless `kind` is given, ψ is the ℓ1 norm, or the sum of the groups' Euclidean norms."""

    A: sp.csr_array
    groups: Any = None
    """The rows of A in each group, or None."""
    trend: Any = None
    """The structure of A where it holds only differences: a :class:`~skadmm.operators.line.Line` or a
    :class:`~skadmm.operators.line.GraphTrend`; None otherwise."""
    graph: Any = None
    """The :class:`FeatureGraph` that A was built from, or None."""
    members: Any = None
    """The column numbers of each group of features, or None."""
    member_names: Any = None
    """The names of these groups, where they have names."""
    kind: Any = None
    """Another ψ: a regulariser with a strength."""
    copies: Any = None
    """The columns of A as copies of features, a :class:`~skadmm.estimators._latent.Copies`, where every group has
    coefficients of its own; None where a feature has one coefficient."""

    def psi(self, alpha: float) -> Any:
        """ψ of strength `alpha`."""
        if self.kind is not None:
            return with_strength(self.kind, alpha)
        return L1(alpha) if self.groups is None else GroupL2(alpha, self.groups)


def with_l1(matrix: sp.csr_array, l1_ratio: float, factors: Factors = NO_FACTORS) -> sp.csr_array:
    """(1 − l1_ratio)‖Gx‖₁ + l1_ratio‖x‖₁ as one ‖Ax‖₁, rows and features times their `factors`; parts with the weight
    zero are left out."""
    d = matrix.shape[1]
    matrix = multiplied(matrix, factors.rows)
    if l1_ratio == 0.0:
        if factors.features is not None:
            raise ValueError(
                "penalty_factor: numbers per feature multiply the terms of the ℓ1 norm, which l1_ratio=0 leaves out; "
                "give numbers per edge, or a larger l1_ratio"
            )
        return canonical(matrix)
    plain = multiplied(sp.eye_array(d, format="csr"), factors.features)
    if l1_ratio == 1.0 or matrix.shape[0] == 0:
        return canonical(l1_ratio * plain)
    return canonical(sp.vstack([(1.0 - l1_ratio) * matrix, l1_ratio * plain], format="csr"))


def multiplied(matrix: Any, factors: np.ndarray | None) -> sp.csr_array:
    """Each row times its factor; rows with a factor of zero are left out."""
    if factors is None:
        return sp.csr_array(matrix)
    return sp.csr_array(sp.csr_array(sp.diags_array(factors) @ matrix)[np.flatnonzero(factors)])


def general_penalty(matrix: sp.csr_array, penalty: Any, l1_ratio: float, factors: Factors = NO_FACTORS) -> Penalty:
    """(1 − l1_ratio) reg(Gx) + l1_ratio ‖x‖₁ for any regulariser with a strength, which alpha replaces; rows of G and
    features times their `factors`."""
    reg = checked_penalty(penalty, matrix.shape[0])
    if l1_ratio == 1.0 or (isinstance(reg, L1) and reg.weights is None):
        return Penalty(with_l1(matrix, l1_ratio, factors))
    if factors.rows is not None and np.any(factors.rows == 0.0):
        raise ValueError("penalty_factor: a factor 0 for a row of A takes penalty='l1'; or remove the row from A")
    matrix = multiplied(matrix, factors.rows)
    if l1_ratio == 0.0:
        with_l1(sp.csr_array((0, matrix.shape[1])), 0.0, factors._replace(rows=None))  # refuses factors of features
        return Penalty(canonical(matrix), kind=reg)
    plain = L1(l1_ratio, factors.features)
    mixture = Mixture(1.0, with_strength(reg, 1.0 - l1_ratio), plain, matrix.shape[0])
    return Penalty(stack(matrix, "identity"), kind=mixture)


def checked_penalty(penalty: Any, rows: int) -> Any:
    """`penalty`, a name in ``REGULARIZERS`` or an instance for vectors of length `rows`, as an instance."""
    names = [name for name, cls in REGULARIZERS.items() if has_strength(cls)]
    allowed = f"it takes one of {', '.join(map(repr, names))}, or an instance of a regulariser with a field 'strength'"
    reg = penalty
    if isinstance(penalty, str):
        if penalty not in REGULARIZERS:
            raise ValueError(f"penalty={penalty!r}: {allowed}.{nearest(penalty, names)}")
        reg = REGULARIZERS[penalty]()
    elif penalty is None:
        raise TypeError(f"penalty=None: {allowed}")
    as_regularizer(reg, rows, "penalty")
    if not has_strength(type(reg)):
        raise ValueError(f"penalty={penalty!r} has no strength, which alpha would scale: {allowed}")
    return reg


def has_strength(cls: type[Any]) -> bool:
    """Return whether a class of regularisers has a field that multiplies it."""
    return "strength" in cls._fields


def checked_ratio(l1_ratio: Any) -> float:
    """`l1_ratio` as a number in [0, 1]."""
    number = isinstance(l1_ratio, Real) and not isinstance(l1_ratio, bool)
    if not number or not 0 <= l1_ratio <= 1:
        several = "; from a list the CV estimators choose one" if np.ndim(l1_ratio) == 1 else ""
        raise ValueError(f"l1_ratio={l1_ratio!r}: it takes a number in [0, 1]{several}")
    return float(l1_ratio)

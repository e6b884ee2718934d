"""The nuclear norm of a matrix: the sum of its singular values."""

import math
from typing import NamedTuple, Self

import numpy as np

from skadmm import _checks
from skadmm.kernels.compile import facts, jitable
from skadmm.regularizers._base import checked_strength, define, shrunk

NEGLIGIBLE = 1e-12
"""A singular value below this share of the largest one is zero to the subgradient."""


@facts(
    name="nuclear", separable=False, smooth=False, subdifferentiable=True, allocates=True,
    examples=((0.7, 7), (0.7, 2, 1), (0.3, 3, 1), (0.0, 2, 1), (0.7, 2, 5)),
)  # fmt: skip
class Nuclear(NamedTuple):
    """The nuclear norm, reg(v) = strength · Σ σ_i(V), of the matrix V whose columns are consecutive parts of v.

    With several outputs, v = Ax has the rows of A for the first output first, so that V = AW has one column per output.
    The singular values of V become zero one by one: the outputs share a few directions.

    Parameters
    ----------
    strength : float
        The factor ≥ 0 of the whole function.
    columns : int
        The number of columns of V: outputs.
    single : int
        The number of coordinates at the end of v that are not part of V; strength times their absolute values is added.

    See Also
    --------
    skadmm.regularizers.GroupL2 : With ``operators.output_groups``, a norm for each row of V.

    References
    ----------
    Yuan, M., Ekici, A., Lu, Z. and Monteiro, R. (2007). Dimension reduction and coefficient estimation in multivariate
    linear regression.

    Examples
    --------
    >>> import numpy as np
    >>> from skadmm import Problem
    >>> from skadmm.regularizers import Nuclear
    >>> problem = Problem(np.eye(4), np.zeros(4), loss="squared", psi=Nuclear(1.0, columns=2))
    >>> round(problem.psi_value(np.array([3.0, 0.0, 0.0, 0.5])), 6)
    3.5
    >>> problem.prox_psi(np.array([3.0, 0.0, 0.0, 0.5])).round(6) + 0.0
    array([2., 0., 0., 0.])
    """

    strength: float = 1.0
    columns: int = 1
    single: int = 0

    def prepared(self, size: int, role: str) -> Self:
        where = f"{role}=Nuclear(...)"
        columns = _checks.count(self.columns, f"{where}: columns")
        single = _checks.count(self.single, f"{where}: single", least=0)
        if single > size or (size - single) % columns:
            raise ValueError(
                f"{where}: columns={columns}, single={single}: the length {size} less the single coordinates must be a "
                "multiple of the columns"
            )
        return self._replace(strength=checked_strength(self, role), columns=columns, single=single)

    @property
    def strong_convexity(self) -> float:
        return 0.0

    def lipschitz(self, size: int) -> float:
        smaller = min(self.columns, (size - self.single) // self.columns)
        return self.strength * math.sqrt(smaller + self.single)

    def rank(self, v: np.ndarray) -> int:
        """The number of singular values of V that are not zero."""
        matrix = v[: v.size - self.single].reshape(self.columns, -1)
        return int(np.linalg.matrix_rank(matrix, tol=RANK_ROUNDING * float(np.abs(matrix).max(initial=0.0))))


RANK_ROUNDING = 1e-8
"""Singular values below this share of the largest entry are rounding to :meth:`Nuclear.rank`."""


@jitable
def _matrix(reg, v):
    """The transpose of V, contiguous."""
    rows = (v.size - reg.single) // reg.columns
    out = np.empty((reg.columns, rows))
    for c in range(reg.columns):
        for r in range(rows):
            out[c, r] = v[c * rows + r]
    return out


@jitable
def _usable(V):
    """LAPACK takes matrices with entries, all of them finite."""
    return V.size > 0 and bool(np.all(np.isfinite(V)))


@jitable
def _largest(reg, w):
    """The largest singular value of the matrix, and of the single coordinates' 1 × 1 matrices."""
    largest = 0.0
    for j in range(w.size - reg.single, w.size):
        if not abs(w[j]) <= largest:
            largest = abs(w[j])
    V = _matrix(reg, w)
    if V.size == 0:
        return largest
    if not _usable(V):
        return math.inf
    _, sizes, _ = np.linalg.svd(V, False)
    return max(largest, sizes[0])


def _value(reg, v):
    total = 0.0
    for j in range(v.size - reg.single, v.size):
        total += abs(v[j])
    V = _matrix(reg, v)
    if V.size == 0:
        return reg.strength * total
    if not _usable(V):
        return math.nan
    _, sizes, _ = np.linalg.svd(V, False)
    for i in range(sizes.size):
        total += sizes[i]
    return reg.strength * total


def _prox(reg, v, step, out):
    bound = step * reg.strength
    V = _matrix(reg, v)
    columns, rows = V.shape
    for j in range(v.size - reg.single, v.size):
        out[j] = v[j] - min(max(v[j], -bound), bound)
    if not _usable(V) or bound == 0.0:
        good = bound == 0.0 and V.size > 0
        for j in range(columns * rows):
            out[j] = v[j] if good else math.nan
        return
    left, sizes, right = np.linalg.svd(V, False)
    for j in range(columns * rows):
        out[j] = 0.0
    for i in range(sizes.size):
        if sizes[i] > bound:
            for c in range(columns):
                factor = (sizes[i] - bound) * left[c, i]
                for r in range(rows):
                    out[c * rows + r] += factor * right[i, r]


def _subgradient(reg, v, out):
    V = _matrix(reg, v)
    columns, rows = V.shape
    for j in range(v.size - reg.single, v.size):
        out[j] = 0.0 if v[j] == 0.0 else math.copysign(reg.strength, v[j])
    usable = _usable(V)
    for j in range(columns * rows):
        out[j] = 0.0 if usable else math.nan
    if not usable:
        return
    left, sizes, right = np.linalg.svd(V, False)
    for i in range(sizes.size):
        if sizes[i] > NEGLIGIBLE * sizes[0]:
            for c in range(columns):
                for r in range(rows):
                    out[c * rows + r] += reg.strength * left[c, i] * right[i, r]


def _conjugate(reg, w):
    return 0.0 if _largest(reg, w) <= reg.strength else math.inf


def _dual_scale(reg, w):
    largest = _largest(reg, w)
    return 1.0 if largest <= reg.strength else shrunk(reg.strength / largest, 4 * w.size)


def _dual_norm(reg, w):
    largest = _largest(reg, w)
    if largest == 0.0:
        return 0.0
    return largest / reg.strength if reg.strength > 0.0 else math.inf


define(
    Nuclear,
    value=_value,
    prox=_prox,
    conjugate=_conjugate,
    dual_scale=_dual_scale,
    subgradient=_subgradient,
    dual_norm=_dual_norm,
)

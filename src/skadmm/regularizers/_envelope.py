"""The curvature of a Moreau envelope: I − ∂prox, which a Newton step on an augmented Lagrangian asks for.

min over y of reg(y) + ‖y − v‖²/(2·step) is differentiable in v with the gradient (v − prox(v))/step, and (I − J)/step
is its generalised second derivative, J in the generalised Jacobian of the prox. Separable regularisers are
differentiated one coordinate at a time, which is exact where the prox is piecewise linear; norms of groups have their
own formulas; the prox of any other regulariser is differentiated numerically as a whole.
"""

from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from skadmm.kernels.compile import compiled, kernel
from skadmm.regularizers._base import prox, prox_at
from skadmm.regularizers._repeated import Repeated
from skadmm.regularizers.group_l2 import GroupL2
from skadmm.regularizers.group_linf import GroupLInf
from skadmm.regularizers.l2 import L2
from skadmm.regularizers.linf import LInf
from skadmm.regularizers.stacked import Stacked

SPACING = 1e-7
"""The spacing of finite differences, relative to the size of a coordinate."""
LARGEST_NUMERICAL = 400
"""Up to this many coordinates the prox of an unknown regulariser is differentiated as a whole."""


def can_differentiate(reg: Any, size: int) -> bool:
    """Does :func:`envelope_curvature` take this regulariser at this size?"""
    return all(
        part.reg.separable
        or isinstance(part.reg, (L2, LInf, GroupL2, GroupLInf))
        or part.stop - part.start <= LARGEST_NUMERICAL
        for part in parts_of(reg, size)
    )


class Part(NamedTuple):
    """A regulariser of some consecutive coordinates."""

    reg: Any
    start: int
    stop: int

    @property
    def where(self) -> slice:
        """Its coordinates."""
        return slice(self.start, self.stop)


def parts_of(reg: Any, size: int, start: int = 0) -> list[Part]:
    """`reg` taken apart, where it is a sum over consecutive coordinates."""
    if isinstance(reg, Repeated):
        return [Part(reg.each, first, first + reg.size) for first in range(start, start + size, reg.size)]
    if not isinstance(reg, Stacked):
        return [Part(reg, start, start + size)] if size else []
    middle = start + reg.split
    return parts_of(reg.first, reg.split, start) + parts_of(reg.second, size - reg.split, middle)


def prox_with_steps(reg: Any, v: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """The prox with a step for each coordinate; of a regulariser that is not separable, all must be the same."""
    out = np.empty_like(v)
    if reg.separable:
        _each_prox(reg, v, steps, out)
    else:
        _prox(reg, v, float(steps[0]), out)
    return out


def envelope_curvature(reg: Any, v: np.ndarray, steps: np.ndarray) -> sp.csr_array:
    """I − J at v, J in the generalised Jacobian of :func:`prox_with_steps`: symmetric, eigenvalues in [0, 1]."""
    if reg.separable:
        slope = np.empty_like(v)
        _slopes(reg, v, steps, SPACING, slope)
        return sp.csr_array(sp.diags_array(1.0 - np.clip(slope, 0.0, 1.0)))
    return _whole(reg, v, float(steps[0]))


@singledispatch
def _whole(reg: Any, v: np.ndarray, step: float) -> sp.csr_array:
    """I − J of a regulariser that is not separable."""
    return _numerical(reg, v, step)


@_whole.register
def _(reg: L2, v: np.ndarray, step: float) -> sp.csr_array:
    return _in_blocks([(np.arange(v.size), _euclidean(v, step * reg.strength))], v.size)


@_whole.register
def _(reg: LInf, v: np.ndarray, step: float) -> sp.csr_array:
    return _in_blocks([(np.arange(v.size), _largest(v, step * reg.strength))], v.size)


@_whole.register
def _(reg: GroupL2, v: np.ndarray, step: float) -> sp.csr_array:
    return _in_groups(reg, v, step, _euclidean)


@_whole.register
def _(reg: GroupLInf, v: np.ndarray, step: float) -> sp.csr_array:
    return _in_groups(reg, v, step, _largest)


def _euclidean(v: np.ndarray, bound: float) -> np.ndarray:
    """For bound·‖·‖₂: (bound/‖v‖)(I − vvᵀ/‖v‖²) beyond the bound, I within it."""
    norm = float(np.linalg.norm(v))
    if norm <= bound:
        return np.eye(v.size)
    unit = v / norm
    return (bound / norm) * (np.eye(v.size) - np.outer(unit, unit))


def _largest(v: np.ndarray, bound: float) -> np.ndarray:
    """For bound·‖·‖∞: the Jacobian of the projection onto the ℓ1 ball of radius `bound`."""
    size = np.abs(v)
    if size.sum() <= bound:
        return np.eye(v.size)
    order = np.sort(size)[::-1]
    levels = (np.cumsum(order) - bound) / np.arange(1, v.size + 1)
    count = int(np.count_nonzero(order > levels)) if bound > 0 else 0
    if count == 0:
        return np.zeros((v.size, v.size))
    sign = np.where(size > levels[count - 1], np.sign(v), 0.0)
    return np.diag(np.abs(sign)) - np.outer(sign, sign) / max(1, np.count_nonzero(sign))


def _in_groups(reg: Any, v: np.ndarray, step: float, block: Any) -> sp.csr_array:
    members, starts = reg.groups
    bounds = step * reg.strength * np.asarray(reg.weights)
    groups = [members[starts[g] : starts[g + 1]] for g in range(starts.size - 1)]
    return _in_blocks([(group, block(v[group], bounds[g])) for g, group in enumerate(groups)], v.size)


def _in_blocks(blocks: list[tuple[np.ndarray, np.ndarray]], size: int) -> sp.csr_array:
    """Dense blocks on some coordinates as one matrix; zero elsewhere."""
    if not blocks:
        return sp.csr_array((size, size))
    rows = np.concatenate([np.repeat(index, index.size) for index, _ in blocks])
    columns = np.concatenate([np.tile(index, index.size) for index, _ in blocks])
    entries = np.concatenate([block.ravel() for _, block in blocks])
    return sp.csr_array(sp.coo_array((entries, (rows, columns)), shape=(size, size)))


@kernel
def _slopes(reg, v, steps, spacing, out):
    for j in range(v.size):
        h = spacing * max(abs(v[j]), 1e-8)
        out[j] = (prox_at(reg, j, v[j] + h, steps[j]) - prox_at(reg, j, v[j] - h, steps[j])) / (2.0 * h)


@kernel
def _each_prox(reg, v, steps, out):
    for j in range(v.size):
        out[j] = prox_at(reg, j, v[j], steps[j])


_prox = compiled(prox)


def _numerical(reg: Any, v: np.ndarray, step: float) -> sp.csr_array:
    h = SPACING * max(float(np.abs(v).max(initial=0.0)), 1e-8)
    jacobian = np.empty((v.size, v.size))
    above, below = np.empty(v.size), np.empty(v.size)
    for j in range(v.size):
        moved = v.copy()
        moved[j] += h
        _prox(reg, moved, step, above)
        moved[j] = v[j] - h
        _prox(reg, moved, step, below)
        jacobian[j] = (above - below) / (2.0 * h)
    values, vectors = np.linalg.eigh(np.eye(v.size) - 0.5 * (jacobian + jacobian.T))
    return sp.csr_array((vectors * np.clip(values, 0.0, 1.0)) @ vectors.T)

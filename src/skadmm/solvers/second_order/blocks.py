"""Penalties that separate over disjoint blocks of features, in the form that the block solver takes.

Every row of A must hold one feature. Then ψ(Ax) and Ω(x) together are a sum over blocks of

    Σ_j l1_j |x_j| + ½ Σ_j ridge_j x_j² + group_b · ‖x_b‖₂ (or ‖x_b‖∞) + bounds lower_j ≤ x_j ≤ upper_j

where a block is a group of features, or one feature by itself. Bounds of features in groups must be zero: then the
proximal step of a block is that of the bounds and, after it, that of the norm.
"""

from __future__ import annotations

from functools import singledispatch
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from skadmm.problem.problem import Problem
from skadmm.regularizers import L1, Box, ElasticNet, GroupL2, GroupLInf, NonNegative, SquaredL2, Stacked, Zero

NO_NORM, L2_NORM, LINF_NORM = 0, 1, 2
"""The norm of a block."""


class BlockPenalty(NamedTuple):
    """A penalty over disjoint blocks, as kernels read it."""

    features: np.ndarray
    """The features, block by block."""
    starts: np.ndarray
    """Block b is ``features[starts[b]:starts[b + 1]]``."""
    block: np.ndarray
    """The block of each feature."""
    l1: np.ndarray
    """λ_j of each feature."""
    ridge: np.ndarray
    """The strength of the squared ℓ2 norm of each feature."""
    lower: np.ndarray
    upper: np.ndarray
    norm: np.ndarray
    """The norm of each block: NO_NORM, L2_NORM or LINF_NORM."""
    group: np.ndarray
    """The strength of that norm."""

    def scaled(self, ratio: float) -> BlockPenalty:
        """All strengths, but not the bounds, times a number."""
        return self._replace(l1=ratio * self.l1, ridge=ratio * self.ridge, group=ratio * self.group)

    @property
    def n_blocks(self) -> int:
        """The number of blocks."""
        return self.starts.size - 1


class _Parts:
    """The terms of a penalty, collected row by row."""

    def __init__(self, d: int, m: int) -> None:
        self.row_l1, self.row_ridge = np.zeros(m), np.zeros(m)
        """The share of l1 and of ridge of each row of A."""
        self.in_group, self.in_bounds = np.zeros(m, bool), np.zeros(m, bool)
        """For each row of A whether it is part of a group, and whether it has bounds."""
        self.l1, self.ridge = np.zeros(d), np.zeros(d)
        self.lower, self.upper = np.full(d, -np.inf), np.full(d, np.inf)
        self.groups: list[Groups] = []
        """The groups of each regulariser that has any."""


class Groups(NamedTuple):
    """Groups of two features or more with one kind of norm."""

    features: np.ndarray
    """The features, group by group."""
    sizes: np.ndarray
    norm: int
    strength: np.ndarray


class Rows(NamedTuple):
    """The feature of each row of A, its entry, and its number; −1 where the term is Ω's and has no row."""

    feature: np.ndarray
    entry: np.ndarray
    number: np.ndarray

    def part(self, start: int, stop: int) -> Rows:
        """Some consecutive rows."""
        return Rows(*(array[start:stop] for array in self))


class NotInBlocks(ValueError):  # noqa: N818
    """The error for a penalty that does not separate over disjoint blocks, with the reason."""


@singledispatch
def _collect(reg: Any, rows: Rows, parts: _Parts) -> None:
    raise NotInBlocks(f"{type(reg).__name__} is not a sum over blocks of features")


@_collect.register
def _(reg: Zero, rows: Rows, parts: _Parts) -> None:
    """No term."""


@_collect.register
def _(reg: L1, rows: Rows, parts: _Parts) -> None:
    weights = reg.weights if reg.weights.size else np.ones(rows.feature.size)
    _add_l1(rows, reg.strength * weights * np.abs(rows.entry), parts)


@_collect.register
def _(reg: ElasticNet, rows: Rows, parts: _Parts) -> None:
    weights = reg.weights if reg.weights.size else np.ones(rows.feature.size)
    _add_l1(rows, reg.strength * reg.l1_ratio * weights * np.abs(rows.entry), parts)
    _add_ridge(rows, reg.strength * (1.0 - reg.l1_ratio) * rows.entry**2, parts)


@_collect.register
def _(reg: SquaredL2, rows: Rows, parts: _Parts) -> None:
    weights = reg.weights if reg.weights.size else np.ones(rows.feature.size)
    _add_ridge(rows, reg.strength * weights * rows.entry**2, parts)


def _add_l1(rows: Rows, strength: np.ndarray, parts: _Parts) -> None:
    np.add.at(parts.l1, rows.feature, strength)
    parts.row_l1[rows.number] += strength


def _add_ridge(rows: Rows, strength: np.ndarray, parts: _Parts) -> None:
    np.add.at(parts.ridge, rows.feature, strength)
    parts.row_ridge[rows.number] += strength


@_collect.register
def _(reg: NonNegative, rows: Rows, parts: _Parts) -> None:
    _bound(rows, np.zeros(rows.feature.size), np.full(rows.feature.size, np.inf), parts)


@_collect.register
def _(reg: Box, rows: Rows, parts: _Parts) -> None:
    _bound(rows, reg.lower, reg.upper, parts)


def _bound(rows: Rows, lower: np.ndarray, upper: np.ndarray, parts: _Parts) -> None:
    ends = np.sort([lower / rows.entry, upper / rows.entry], axis=0)
    np.maximum.at(parts.lower, rows.feature, ends[0])
    np.minimum.at(parts.upper, rows.feature, ends[1])
    parts.in_bounds[rows.number] = True


@_collect.register
def _(reg: GroupL2, rows: Rows, parts: _Parts) -> None:
    _collect_groups(reg, rows, parts, L2_NORM)


@_collect.register
def _(reg: GroupLInf, rows: Rows, parts: _Parts) -> None:
    _collect_groups(reg, rows, parts, LINF_NORM)


def _collect_groups(reg: Any, rows: Rows, parts: _Parts, norm: int) -> None:
    members, starts = reg.groups
    sizes = np.diff(starts)
    kept = sizes > 0
    members, weights, sizes = members[: starts[-1]], reg.weights[kept], sizes[kept]
    if sizes.size == 0:
        return
    entries = np.abs(rows.entry[members])
    first = entries[np.cumsum(sizes) - sizes]
    strength = reg.strength * weights * first
    if np.any(np.abs(entries - np.repeat(first, sizes)) > 1e-14 * np.repeat(first, sizes)):
        raise NotInBlocks("the rows of A of one group have entries of different sizes")
    in_group = np.repeat(sizes > 1, sizes)
    alone, members = members[~in_group], members[in_group]
    _add_l1(Rows(*(array[alone] for array in rows)), strength[sizes == 1], parts)
    if members.size:
        parts.groups.append(Groups(rows.feature[members], sizes[sizes > 1], norm, strength[sizes > 1]))
        parts.in_group[rows.number[members]] = True


@_collect.register
def _(reg: Stacked, rows: Rows, parts: _Parts) -> None:
    _collect(reg.first, rows.part(0, reg.split), parts)
    _collect(reg.second, rows.part(reg.split, rows.feature.size), parts)


def rows_of(problem: Problem) -> Rows:
    """The feature and the entry of every row of A; NotInBlocks where a row holds more or less than one feature."""
    constraint = problem.constraint
    if constraint.B is not None or constraint.c.any():
        raise NotInBlocks("B must be −I and c = 0")
    A = constraint.A
    if A.shape[0] and (np.any(np.diff(A.indptr) != 1) or np.any(A.data == 0.0)):
        raise NotInBlocks("every row of A must hold one feature")
    return Rows(A.indices.astype(np.int64), A.data, np.arange(A.shape[0]))


class RowShares(NamedTuple):
    """How a subgradient of the penalty over features is shared among the rows of A."""

    feature: np.ndarray
    entry: np.ndarray
    l1_share: np.ndarray
    """For each row its share of the ℓ1 part of its feature."""
    ridge: np.ndarray
    takes_above: np.ndarray
    """For each row whether it takes what the ℓ1 parts leave, where that is positive."""
    takes_below: np.ndarray
    """For each row whether it takes what the ℓ1 parts leave, where that is negative."""
    bounded: np.ndarray
    """For each feature whether it has bounds."""

    def of(self, v: np.ndarray, x: np.ndarray, l1: np.ndarray) -> np.ndarray:
        """β with Aᵀβ = v + ridge x on the penalised features; its ℓ1 parts are subgradients of |x| where v allows it.

        Where a feature has bounds, they take what is left, and the ℓ1 part is the one that belongs to x.
        """
        clipped = np.where(self.bounded & (x != 0.0), np.sign(x) * l1, np.clip(v, -l1, l1))
        j = self.feature
        rest = (v - clipped)[j]
        taken = np.where(np.where(rest > 0.0, self.takes_above, self.takes_below), rest, 0.0)
        return (self.l1_share * clipped[j] + self.ridge * x[j] + taken) / self.entry


_KNOWN: WeakKeyDictionary[Problem, tuple[BlockPenalty, RowShares] | NotInBlocks] = WeakKeyDictionary()
"""The penalties of existing problems, because several solvers need them before one runs."""


def block_penalty(problem: Problem) -> tuple[BlockPenalty, RowShares]:
    """The penalty of a problem over blocks; NotInBlocks with the reason where it does not separate."""
    known = _KNOWN.get(problem)
    if known is None:
        try:
            known = _collected(problem)
        except NotInBlocks as reason:
            known = NotInBlocks(*reason.args)  # without its traceback, whose frames would keep the problem alive
        _KNOWN[problem] = known
    if isinstance(known, NotInBlocks):
        raise NotInBlocks(*known.args)
    return known


def _collected(problem: Problem) -> tuple[BlockPenalty, RowShares]:
    d, rows = problem.n_features, rows_of(problem)
    m = rows.feature.size
    parts = _Parts(d, m + 1)  # the last one is for Ω's terms, which have no row
    _collect(problem.psi, rows, parts)
    _collect(problem.omega, Rows(np.arange(d), np.ones(d), np.full(d, m)), parts)
    total = np.bincount(rows.feature, parts.row_l1[:m], minlength=d)
    share = parts.row_l1[:m] / np.where(total > 0.0, total, 1.0)[rows.feature]
    above, below = _takers(rows.feature, parts, d)
    bounded = np.isfinite(parts.lower) | np.isfinite(parts.upper)
    shares = RowShares(rows.feature, rows.entry, share, parts.row_ridge[:m].copy(), above, below, bounded)
    return _assembled(parts, d), shares


def _takers(feature: np.ndarray, parts: _Parts, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Which rows take what the ℓ1 parts leave of a multiplier, where it is positive and where it is negative.

    A group does, or bounds; where a feature has both, the bounds take the side on which they hold it. What is left of a
    feature without either goes to the first of its rows.
    """
    m = feature.size
    in_group, in_bounds = parts.in_group[:m], parts.in_bounds[:m]
    grouped = np.bincount(feature, in_group, minlength=d)[feature] > 0
    first = np.zeros(m, bool)
    first[np.unique(feature, return_index=True)[1]] = True
    neither = first & ~(grouped | (np.bincount(feature, in_bounds, minlength=d)[feature] > 0))
    sides = []
    for bound in (parts.upper, parts.lower):
        held = np.isfinite(bound)[feature]
        sides.append(neither | (in_group & ~held) | (in_bounds & (held | ~grouped)))
    return sides[0], sides[1]


def _assembled(parts: _Parts, d: int) -> BlockPenalty:
    groups = parts.groups
    in_groups = np.concatenate([np.empty(0, np.int64), *(part.features for part in groups)]).astype(np.int64)
    sizes = np.concatenate([np.empty(0, np.int64), *(part.sizes for part in groups)]).astype(np.int64)
    block = np.full(d, -1)
    block[in_groups] = np.repeat(np.arange(sizes.size), sizes)
    alone = np.flatnonzero(block < 0)
    if in_groups.size + alone.size > d:
        raise NotInBlocks("groups share features")
    ends = np.concatenate([parts.lower[in_groups], parts.upper[in_groups]])
    if np.any(np.isfinite(ends) & (ends != 0.0)):
        raise NotInBlocks("a feature of a group has a bound other than zero")
    if np.isfinite(ends).any() and any(part.norm != L2_NORM for part in groups):
        raise NotInBlocks("a feature of a group with the maximum norm has a bound")
    block[alone] = sizes.size + np.arange(alone.size)
    norm = [np.full(part.sizes.size, part.norm) for part in groups] + [np.full(alone.size, NO_NORM)]
    group = [part.strength for part in groups] + [np.zeros(alone.size)]
    starts = np.concatenate([[0], np.cumsum(np.concatenate([sizes, np.ones(alone.size, np.int64)]))])
    return BlockPenalty(
        np.concatenate([in_groups, alone]), starts.astype(np.int64), block, parts.l1, parts.ridge, parts.lower,
        parts.upper, np.concatenate(norm), np.concatenate(group),
    )  # fmt: skip


def has_groups(problem: Problem) -> bool:
    """Return whether the penalty separates and a block of it has more than one feature."""
    penalty, _ = block_penalty(problem)
    return bool(penalty.norm.any())


def has_maximum_norms(problem: Problem) -> bool:
    """Return whether the penalty separates and a block of it has an ℓ∞ norm."""
    penalty, _ = block_penalty(problem)
    return bool((penalty.norm == LINF_NORM).any())

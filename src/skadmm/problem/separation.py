"""Problems of several outputs that are a sum over outputs: each output by itself.

Where the loss is a sum over outputs, no row of A has coefficients of two outputs and no term of ψ or Ω joins rows of
two, the minimum is the sum of the minima of one problem for each output, and so are lower bounds of it.
"""

from __future__ import annotations

from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from skadmm.problem.constraint import Constraint
from skadmm.problem.problem import COUPLED, Problem
from skadmm.regularizers import L1, Box, ElasticNet, GroupL2, GroupLInf, NonNegative, SquaredL2, Stacked, Zero
from skadmm.regularizers._envelope import parts_of


class Joined(ValueError):  # noqa: N818
    """The error for a regulariser that joins coordinates of two outputs, or of which that is not known."""


class Output(NamedTuple):
    """One of several outputs by itself."""

    problem: Problem
    features: slice
    """Its coefficients among those of all outputs."""
    rows: np.ndarray
    """Its rows of A among those of all outputs."""


def reason_against(problem: Problem) -> str | None:
    """Why a problem is not a sum over several outputs; None where it is."""
    if problem.n_outputs == 1:
        return "the problem has one output"
    if problem.is_coupled:
        return COUPLED
    if not problem.backend.local_rows:
        return f"it {problem.lacks_local_rows()}"
    constraint = problem.constraint
    if constraint.B is not None or constraint.folded:
        return "B is not −I"
    owner = _owners(problem)
    if owner is None:
        return "a row of A has coefficients of two outputs"
    try:
        for part in parts_of(problem.psi, problem.n_split):
            of_part = owner[part.where]
            if not np.all(of_part == of_part[0]):
                check_apart(part.reg, of_part)
        check_apart(problem.omega, np.arange(problem.n_features) // _width(problem))
    except Joined as reason:
        return str(reason)
    return None


def outputs_apart(problem: Problem) -> list[Output]:
    """Every output of a problem for which :func:`reason_against` has none; the rows of X are shared."""
    return [one_output(problem, number) for number in range(problem.n_outputs)]


def one_output(problem: Problem, number: int) -> Output:
    """One output by itself."""
    width, constraint, owner = _width(problem), problem.constraint, _owners(problem)
    features = slice(number * width, (number + 1) * width)
    rows = np.flatnonzero(owner == number)
    psi: Any = Zero()
    for part in reversed(parts_of(problem.psi, problem.n_split)):
        inside = rows[(rows >= part.start) & (rows < part.stop)] - part.start
        if inside.size:
            size = part.stop - part.start
            first = part.reg if inside.size == size else taken(part.reg, inside, size)
            psi = first if isinstance(psi, Zero) else Stacked(first, psi, inside.size)
    A = sp.csr_array(constraint.A[rows][:, features]) if rows.size else None
    alone = Constraint(A, None, constraint.c[rows] if rows.size else None, width)
    backend = problem.local.of_output(number)
    omega = taken(problem.omega, np.arange(features.start, features.stop), problem.n_features)
    return Output(problem.replace(backend=backend, omega=omega, psi=psi, constraint=alone), features, rows)


def _width(problem: Problem) -> int:
    return problem.n_features // problem.n_outputs


def _owners(problem: Problem) -> np.ndarray | None:
    """The output of each row of A, the first one for rows of zeros; None where a row belongs to two."""
    A = problem.constraint.A
    output = A.indices // _width(problem)
    filled = np.flatnonzero(np.diff(A.indptr))
    owner = np.zeros(A.shape[0], np.int64)
    if filled.size:
        starts = A.indptr[filled]
        owner[filled] = np.minimum.reduceat(output, starts)
        if not np.array_equal(owner[filled], np.maximum.reduceat(output, starts)):
            return None
    return owner


@singledispatch
def check_apart(reg: Any, owner: np.ndarray) -> None:
    """Raise where a regulariser joins coordinates of two owners, or may do so."""
    raise Joined(f"{type(reg).__name__} may join coefficients of two outputs")


@check_apart.register(Zero)
@check_apart.register(L1)
@check_apart.register(ElasticNet)
@check_apart.register(SquaredL2)
@check_apart.register(NonNegative)
@check_apart.register(Box)
def _(reg: Any, owner: np.ndarray) -> None:
    """Sums over coordinates join none."""


@check_apart.register(GroupL2)
@check_apart.register(GroupLInf)
def _(reg: Any, owner: np.ndarray) -> None:
    members, starts = reg.groups
    grouped = owner[members[: starts[-1]]]
    if not np.array_equal(grouped, np.repeat(owner[members[starts[:-1]]], np.diff(starts))):
        raise Joined("a group has coefficients of two outputs")


@singledispatch
def taken(reg: Any, where: np.ndarray, size: int) -> Any:
    """A regulariser of `size` coordinates that is a sum over them, on the coordinates `where` alone."""
    fields = reg._asdict()
    arrays = {name: field[where] for name, field in fields.items() if np.shape(field) == (size,)}
    return reg._replace(**arrays)


@taken.register(GroupL2)
@taken.register(GroupLInf)
def _(reg: Any, where: np.ndarray, size: int) -> Any:
    """The groups that lie in `where`."""
    members, starts = reg.groups
    label = np.full(size, -1)
    label[members[: starts[-1]]] = np.repeat(np.arange(starts.size - 1), np.diff(starts))
    kept = np.unique(label[where][label[where] >= 0])
    return reg._replace(groups=label[where], weights=reg.weights[kept])

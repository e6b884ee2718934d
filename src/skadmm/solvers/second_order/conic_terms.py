"""Losses and regularisers as terms of a conic programme, and the programme itself.

A programme minimises ½v·Pv + q·v subject to b − M v in a product of cones, P diagonal. :func:`add_loss` and
:func:`add_regularizer` add the terms that stand for a loss or for a regulariser of some of its variables; a loss
without a conic form of its own is taken by its second-order expansion.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from skadmm import _cancel
from skadmm.losses import Gamma, Huber, Logistic, Multinomial, Poisson, Squared, SquaredHinge
from skadmm.regularizers import L1, L2, Box, ElasticNet, GroupL2, GroupLInf, LInf, NonNegative, SquaredL2, Zero
from skadmm.regularizers._envelope import parts_of


def is_installed() -> bool:
    """Return whether a solver for conic programmes is installed."""
    return importlib.util.find_spec("clarabel") is not None


class Solution(NamedTuple):
    """What the conic solver found."""

    values: np.ndarray
    """The values of the variables."""
    multipliers: np.ndarray
    """The multipliers of the rows of M."""


class Programme:
    """A conic programme that is composed term by term."""

    def __init__(self) -> None:
        self.size = 0
        """Variables so far."""
        self.height = 0
        """Rows of M so far."""
        self._quadratic: list[tuple[np.ndarray, np.ndarray]] = []
        self._linear: list[tuple[np.ndarray, np.ndarray]] = []
        self._blocks: list[tuple[int, np.ndarray, Any]] = []
        self._right: list[np.ndarray] = []
        self._cones: list[tuple[str, int]] = []

    def variables(self, count: int) -> np.ndarray:
        """Add variables, and return their indices."""
        self.size += count
        return np.arange(self.size - count, self.size)

    def add_quadratic(self, where: np.ndarray, weights: Any) -> None:
        """Add ½ Σ weights v²."""
        self._quadratic.append((where, np.broadcast_to(np.asarray(weights, float), where.shape)))

    def add_linear(self, where: np.ndarray, weights: Any) -> None:
        """Add Σ weights v."""
        self._linear.append((where, np.broadcast_to(np.asarray(weights, float), where.shape)))

    def add_rows(self, cone: str, right: np.ndarray, terms: Sequence[tuple[np.ndarray, Any]], many: int = 1) -> slice:
        """`right` − Σ matrix v[where] lies in the cone, or in `many` equal cones one after the other; their rows."""
        rows = slice(self.height, self.height + right.size)
        for where, matrix in terms:
            self._blocks.append((self.height, where, sp.coo_array(matrix)))
        self.height += right.size
        self._right.append(right)
        self._cones += [(cone, right.size // many)] * many
        return rows

    def solve(self, scale: float, **settings: Any) -> Solution:
        """The solution, as accurate as the solver computes it; the solver gets the objective divided by `scale`."""
        import clarabel

        made = {
            "zero": clarabel.ZeroConeT,
            "non-negative": clarabel.NonnegativeConeT,
            "second-order": clarabel.SecondOrderConeT,
        }
        cones = [clarabel.ExponentialConeT() if name == "exponential" else made[name](n) for name, n in self._cones]
        options = clarabel.DefaultSettings()
        options.verbose = False
        left = _cancel.seconds_left()
        if np.isfinite(left):
            options.time_limit = max(left, 0.01)
        for name, value in settings.items():
            setattr(options, name, value)
        P, q, M, right = self.arrays()
        found = clarabel.DefaultSolver(sp.csc_matrix(P / scale), q / scale, M, right, cones, options).solve()
        _cancel.check_cancelled()
        return Solution(np.asarray(found.x), scale * np.asarray(found.z))

    def arrays(self) -> tuple[sp.dia_array, np.ndarray, sp.csc_matrix, np.ndarray]:
        """P, q, M and b."""
        diagonal, q = np.zeros(self.size), np.zeros(self.size)
        for where, weights in self._quadratic:
            np.add.at(diagonal, where, weights)
        for where, weights in self._linear:
            np.add.at(q, where, weights)
        rows = np.concatenate([first + block.coords[0] for first, _, block in self._blocks])
        columns = np.concatenate([where[block.coords[1]] for _, where, block in self._blocks])
        entries = np.concatenate([block.data for _, _, block in self._blocks])
        M = sp.csc_matrix((entries, (rows, columns)), shape=(self.height, self.size))
        return sp.diags_array(diagonal), q, M, np.concatenate(self._right)


# -- losses -----------------------------------------------------------------------------------------------------------


class Expansion(NamedTuple):
    """The loss of each sample to second order in its margin."""

    margins: np.ndarray
    slopes: np.ndarray
    curvatures: np.ndarray


def add_expansion(programme: Programme, z: np.ndarray, weights: np.ndarray, at: Expansion) -> None:
    """Σ weights (slope (z − margin) + ½ curvature (z − margin)²)."""
    programme.add_quadratic(z, weights * at.curvatures)
    programme.add_linear(z, weights * (at.slopes - at.curvatures * at.margins))


@singledispatch
def add_loss(loss: Any, programme: Programme, z: np.ndarray, target: np.ndarray, weights: np.ndarray) -> bool:
    """Add Σ weights ℓ(z, target), and return True; False where the loss has no conic form here."""
    return False


def takes_loss(loss: Any) -> bool:
    """Return whether a loss has a conic form here."""
    return add_loss.dispatch(type(loss)) is not add_loss.dispatch(object)


@add_loss.register
def _(loss: Squared, programme: Programme, z: np.ndarray, target: np.ndarray, weights: np.ndarray) -> bool:
    programme.add_quadratic(z, weights)
    programme.add_linear(z, -weights * target)
    return True


@add_loss.register
def _(loss: Huber, programme: Programme, z: np.ndarray, target: np.ndarray, weights: np.ndarray) -> bool:
    """½s² + δ(above + below) with z − b = s + above − below."""
    n, unit = z.size, sp.eye_array(z.size)
    s, above, below = programme.variables(n), programme.variables(n), programme.variables(n)
    programme.add_quadratic(s, weights)
    programme.add_linear(above, loss.delta * weights)
    programme.add_linear(below, loss.delta * weights)
    programme.add_rows("zero", target, [(z, unit), (s, -unit), (above, -unit), (below, unit)])
    programme.add_rows("non-negative", np.zeros(n), [(above, -unit)])
    programme.add_rows("non-negative", np.zeros(n), [(below, -unit)])
    return True


@add_loss.register
def _(loss: SquaredHinge, programme: Programme, z: np.ndarray, target: np.ndarray, weights: np.ndarray) -> bool:
    """½t² with t ≥ 1 − bz and t ≥ 0."""
    n, unit = z.size, sp.eye_array(z.size)
    t = programme.variables(n)
    programme.add_quadratic(t, weights)
    programme.add_rows("non-negative", -np.ones(n), [(z, -sp.diags_array(target)), (t, -unit)])
    programme.add_rows("non-negative", np.zeros(n), [(t, -unit)])
    return True


@add_loss.register
def _(loss: Logistic, programme: Programme, z: np.ndarray, target: np.ndarray, weights: np.ndarray) -> bool:
    """t with exp(−t) + exp(−bz − t) ≤ 1."""
    n, unit = z.size, sp.eye_array(z.size)
    t, first, second = programme.variables(n), programme.variables(n), programme.variables(n)
    programme.add_linear(t, weights)
    programme.add_rows("non-negative", np.ones(n), [(first, unit), (second, unit)])
    # Each cone holds (u, 1, e) with exp(u) ≤ e.
    ones = np.tile([0.0, 1.0, 0.0], n)
    top, last = _spread(n, 0), _spread(n, 2)
    programme.add_rows("exponential", ones, [(t, top), (first, -last)], n)
    programme.add_rows("exponential", ones, [(z, top @ sp.diags_array(target)), (t, top), (second, -last)], n)
    return True


@add_loss.register
def _(loss: Multinomial, programme: Programme, z: np.ndarray, target: np.ndarray, weights: np.ndarray) -> bool:
    """t − b·z with Σ exp(z_c − t) ≤ 1, for each sample; b has a single one for each."""
    rows = z.size
    n = int(target.sum())
    classes = sp.kron(sp.eye_array(n), np.ones((rows // n, 1)), format="csr")
    t, e = programme.variables(n), programme.variables(rows)
    programme.add_linear(t, weights[:: rows // n])
    programme.add_linear(z, -weights * target)
    programme.add_rows("non-negative", np.ones(n), [(e, classes.T)])
    top, last = _spread(rows, 0), _spread(rows, 2)
    terms = [(z, -top), (t, top @ classes), (e, -last)]
    programme.add_rows("exponential", np.tile([0.0, 1.0, 0.0], rows), terms, rows)
    return True


@add_loss.register
def _(loss: Poisson, programme: Programme, z: np.ndarray, target: np.ndarray, weights: np.ndarray) -> bool:
    """t − bz with exp(z) ≤ t."""
    n = z.size
    t = programme.variables(n)
    programme.add_linear(t, weights)
    programme.add_linear(z, -weights * target)
    programme.add_rows("exponential", np.tile([0.0, 1.0, 0.0], n), [(z, -_spread(n, 0)), (t, -_spread(n, 2))], n)
    return True


@add_loss.register
def _(loss: Gamma, programme: Programme, z: np.ndarray, target: np.ndarray, weights: np.ndarray) -> bool:
    """bt + z with exp(−z) ≤ t."""
    n = z.size
    t = programme.variables(n)
    programme.add_linear(t, weights * target)
    programme.add_linear(z, weights)
    programme.add_rows("exponential", np.tile([0.0, 1.0, 0.0], n), [(z, _spread(n, 0)), (t, -_spread(n, 2))], n)
    return True


def _spread(n: int, place: int) -> sp.csr_array:
    """The matrix that puts entry i of n at 3i + place."""
    return sp.csr_array((np.ones(n), (3 * np.arange(n) + place, np.arange(n))), shape=(3 * n, n))


# -- regularisers -----------------------------------------------------------------------------------------------------


def takes(reg: Any, size: int) -> bool:
    """Return whether a regulariser has a conic form here."""
    return all(add_term.dispatch(type(part.reg)) is not add_term.dispatch(object) for part in parts_of(reg, size))


def add_regularizer(reg: Any, programme: Programme, y: np.ndarray, unit: float) -> None:
    """Add reg(unit · v) of the variables `y`."""
    for part in parts_of(reg, y.size):
        add_term(part.reg, programme, y[part.where], unit)


@singledispatch
def add_term(reg: Any, programme: Programme, y: np.ndarray, unit: float) -> None:
    """Add reg(unit · v) of a regulariser that is not a sum over parts."""
    raise NotImplementedError(f"{type(reg).__name__} has no conic form")


@add_term.register
def _(reg: Zero, programme: Programme, y: np.ndarray, unit: float) -> None:
    pass


@add_term.register
def _(reg: L1, programme: Programme, y: np.ndarray, unit: float) -> None:
    weights = reg.weights if reg.weights.size else np.ones(y.size)
    _add_absolute(programme, y, unit * reg.strength * weights)


@add_term.register
def _(reg: ElasticNet, programme: Programme, y: np.ndarray, unit: float) -> None:
    weights = reg.weights if reg.weights.size else np.ones(y.size)
    _add_absolute(programme, y, unit * reg.strength * reg.l1_ratio * weights)
    programme.add_quadratic(y, unit**2 * reg.strength * (1.0 - reg.l1_ratio))


@add_term.register
def _(reg: SquaredL2, programme: Programme, y: np.ndarray, unit: float) -> None:
    programme.add_quadratic(y, unit**2 * reg.strength * (reg.weights if reg.weights.size else 1.0))


@add_term.register
def _(reg: L2, programme: Programme, y: np.ndarray, unit: float) -> None:
    _add_euclidean(programme, y, unit * reg.strength)


@add_term.register
def _(reg: LInf, programme: Programme, y: np.ndarray, unit: float) -> None:
    _add_largest(programme, y, unit * reg.strength)


@add_term.register
def _(reg: GroupL2, programme: Programme, y: np.ndarray, unit: float) -> None:
    for group, weight in _groups(reg):
        _add_euclidean(programme, y[group], unit * reg.strength * weight)


@add_term.register
def _(reg: GroupLInf, programme: Programme, y: np.ndarray, unit: float) -> None:
    for group, weight in _groups(reg):
        _add_largest(programme, y[group], unit * reg.strength * weight)


@add_term.register
def _(reg: NonNegative, programme: Programme, y: np.ndarray, unit: float) -> None:
    programme.add_rows("non-negative", np.zeros(y.size), [(y, -sp.eye_array(y.size))])


@add_term.register
def _(reg: Box, programme: Programme, y: np.ndarray, unit: float) -> None:
    for bound, sign in ((reg.upper, 1.0), (-reg.lower, -1.0)):
        held = np.isfinite(bound)
        if held.any():
            rows = sign * unit * sp.eye_array(int(held.sum()))
            programme.add_rows("non-negative", bound[held], [(y[held], rows)])


def _groups(reg: Any) -> list[tuple[np.ndarray, float]]:
    members, starts = reg.groups
    return [(members[starts[g] : starts[g + 1]], float(reg.weights[g])) for g in range(starts.size - 1)]


def _add_absolute(programme: Programme, y: np.ndarray, weights: np.ndarray) -> None:
    """Σ weights t with t ≥ |y|, where a weight is positive."""
    y, weights = y[weights > 0.0], weights[weights > 0.0]
    if not y.size:
        return
    t, unit = programme.variables(y.size), sp.eye_array(y.size)
    programme.add_linear(t, weights)
    programme.add_rows("non-negative", np.zeros(y.size), [(t, -unit), (y, unit)])
    programme.add_rows("non-negative", np.zeros(y.size), [(t, -unit), (y, -unit)])


def _add_euclidean(programme: Programme, y: np.ndarray, weight: float) -> None:
    """weight · t with t ≥ ‖y‖₂."""
    if weight == 0.0 or not y.size:
        return
    t = programme.variables(1)
    programme.add_linear(t, weight)
    below = sp.csr_array((np.ones(y.size), (np.arange(1, y.size + 1), np.arange(y.size))), shape=(y.size + 1, y.size))
    top = sp.csr_array(([1.0], ([0], [0])), shape=(y.size + 1, 1))
    programme.add_rows("second-order", np.zeros(y.size + 1), [(t, -top), (y, -below)])


def _add_largest(programme: Programme, y: np.ndarray, weight: float) -> None:
    """weight · t with t ≥ |y_j| for every j."""
    if weight == 0.0 or not y.size:
        return
    t, unit = programme.variables(1), sp.eye_array(y.size)
    ones = sp.csr_array(np.ones((y.size, 1)))
    programme.add_linear(t, weight)
    programme.add_rows("non-negative", np.zeros(y.size), [(t, -ones), (y, unit)])
    programme.add_rows("non-negative", np.zeros(y.size), [(t, -ones), (y, -unit)])

"""An active set method for penalties and constraints on features and on pairs of them, for columns of any scales.

ψ is a sum of piecewise linear functions of the rows of A, which have one or two entries: absolute values, bounds and
orders. Rows that lie at a kink of theirs tie features to each other or hold them. The quadratic model of the loss is
minimised exactly over the clusters of tied features, up to the first row that meets a kink, which is then tied too. At
the minimum of a set of ties the multipliers of the tied rows are computed along the rows; where one is outside the
subdifferential at its kink, that row is released, and the model decreases further.

A chain of ties transmits forces between columns of large entries through columns of small ones. Methods that move the
multipliers by steps need a step of another size for each row; here they are computed exactly.

References
----------
Nocedal, J. and Wright, S. J. (2006). Numerical Optimization, chapter 16.5.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse as sp
import scipy.sparse.linalg

from skadmm import _cancel
from skadmm.kernels.expansion import add_squares, expand
from skadmm.operators.clusters import clusters, contract_matrix, contract_vector, expand_vector
from skadmm.problem.problem import COUPLED, Problem
from skadmm.regularizers import L1, Box, NonNegative, SquaredL2, Zero
from skadmm.regularizers._envelope import parts_of
from skadmm.solvers.base import Setup
from skadmm.solvers.dual_update import Point
from skadmm.solvers.second_order.best_point import BestPointSolver, BestPointState, Candidate, hessian
from skadmm.solvers.second_order.line_search import shorten
from skadmm.solvers.second_order.polish import ConstrainedRows

MAX_FEATURES = 1000
"""The largest number of features: each change of a tie solves a dense system of the order of the clusters."""
SAME = 1e-12
"""Values closer than this, relative to their terms, are the same."""
LOWER = 1e-10
"""A smaller decrease of the objective, relatively, is no progress."""
DAMPING = 1e-14
"""The share by which the diagonal of the model of the clusters, scaled to one, is increased."""


@dataclass(frozen=True)
class TiedSetConfig:
    """Settings of the active set method."""

    changes_per_row: int = 50
    """The maximum number of ties that are made or released in one step, for each row of A."""
    idle_changes_per_row: int = 10
    """The maximum number of such changes, for each row of A, that do not decrease the model. Where many rows are at a
    kink of theirs, ties are exchanged before a direction of decrease appears."""
    rounding: float = 1e-9
    """Multipliers outside their subdifferentials by no more than this, relative to its ends, stay tied."""
    first_damping: float = 1e-4
    """The damping τ after a step that had to be shortened; it grows tenfold after each further one, and whole steps
    divide it by ten."""
    min_damping: float = 1e-9
    """A smaller τ becomes zero."""
    max_idle: int = 6
    """The solver stops after this many steps without a better measure of optimality."""


@dataclass(kw_only=True)
class TiedSetState(BestPointState):
    """State of the active set method."""

    idle: int = 0
    """Steps since the measure of optimality last improved."""
    damping: float = 0.0
    """τ, the curvature that is added to the model, as a share of the largest curvature of the loss along a feature."""


class Kinks(NamedTuple):
    """The pieces of ψ on each row: slopes[e, k] between places[e, k − 1] and places[e, k]."""

    places: np.ndarray
    """The kinks of each row, an array of shape (m, 2); infinite where there is none."""
    slopes: np.ndarray
    """The slopes of the pieces, an array of shape (m, 3); infinite beyond a bound."""

    @classmethod
    def of(cls, reg: Any, m: int) -> Kinks | None:
        """The pieces of a regulariser; None where one of its parts has no such form."""
        places, slopes = np.tile([-np.inf, np.inf], (m, 1)), np.zeros((m, 3))
        for part in parts_of(reg, m):
            at, one = part.where, part.reg
            if isinstance(one, L1):
                strength = one.strength * (one.weights if one.weights.size else np.ones(part.stop - part.start))
                places[at, 0] = 0.0
                slopes[at, 0], slopes[at, 1] = -strength, strength
            elif isinstance(one, (Box, NonNegative)):
                lower, upper = (one.lower, one.upper) if isinstance(one, Box) else (0.0, np.inf)
                places[at, 0], places[at, 1] = lower, upper
                slopes[at, 0], slopes[at, 2] = -np.inf, np.inf
            elif not isinstance(one, Zero):
                return None
        return cls(places, slopes)


@dataclass
class _Ties:
    """Which rows are tied, and on which piece the others are."""

    tied: np.ndarray
    """A mask of the rows at a kink whose features are tied."""
    kink: np.ndarray
    """The index of the kink of each tied row."""
    piece: np.ndarray
    """The index of the piece of each other row."""


def _positive(curvature: np.ndarray) -> np.ndarray:
    """The curvatures, at least a tiny part of the largest: a feature without curvature has a long step, but no infinite
    one."""
    smallest = SAME**2 * float(curvature.max(initial=0.0))
    return np.maximum(curvature, smallest if smallest > 0.0 else 1.0)


class TiedSet(BestPointSolver[TiedSetState]):
    """The active set method. A step minimises one quadratic model of the loss plus ψ, and searches along the way."""

    name = "tied-set"
    summary = "Active sets of tied and bounded features"
    Config: ClassVar[type[Any]] = TiedSetConfig
    config: TiedSetConfig

    def __init__(self, setup: Setup, config: TiedSetConfig | None = None) -> None:
        super().__init__(setup, config)
        problem = setup.problem
        self.A = problem.constraint.A
        self.At = sp.csr_array(self.A.T)
        self.size = abs(self.A)
        kinks = Kinks.of(problem.psi, problem.n_split)
        assert kinks is not None
        self.kinks = kinks
        self.rows = ConstrainedRows.of(problem)
        self.every = np.arange(problem.n_samples)
        squares = np.zeros(problem.n_features)
        add_squares(problem.rows, self.every, squares)
        self.metric = problem.typical_curvature * squares / problem.n_samples + self.ridge

    @classmethod
    def applies(cls, problem: Problem) -> str | None:
        """Few features in memory, in rows of one or two entries with absolute values and bounds."""
        if problem.is_coupled:
            return COUPLED
        if not problem.backend.local_rows:
            return "its rows are on a cluster"
        if problem.n_features > MAX_FEATURES:
            return f"{problem.n_features} features are more than an active set takes ({MAX_FEATURES})"
        if not isinstance(problem.omega, (Zero, SquaredL2)):
            return f"omega={type(problem.omega).__name__} is neither zero nor a squared l2"
        constraint = problem.constraint
        if problem.n_split == 0 or constraint.B is not None or constraint.c.any():
            return "it needs rows of A with B = −I and c = 0"
        if int(np.diff(constraint.A.indptr).max()) > 2:
            return "rows of A have three entries or more"
        kinks = Kinks.of(problem.psi, problem.n_split)
        if kinks is None:
            return f"psi={type(problem.psi).__name__} is not made of absolute values and bounds"
        pairs = kinks.places[np.diff(constraint.A.indptr) == 2]
        if np.any(np.isfinite(pairs) & (pairs != 0.0)):
            return "rows of two entries have bounds other than zero"
        return None

    def init(self, point: Point, rho: float) -> TiedSetState:
        """The state before the first evaluation."""
        return TiedSetState(point=point, rho=rho, multiplier=rho * point.dual, x=point.x.copy(), y=point.y.copy())

    def warm_start(self, state: TiedSetState) -> None:
        """Start from an earlier point."""
        super().warm_start(state)
        state.x, state.y = state.point.x.copy(), state.point.y.copy()

    def step(self, state: TiedSetState) -> None:
        """Minimise the model at the best point, and keep the best point on the way to its minimiser."""
        if not np.isfinite(state.objective):
            self._place(state)
        n, problem, x, before = self.problem.n_samples, self.problem, state.x.copy(), state.objective
        evaluation = problem.backend.evaluate(x)
        slopes, curvatures = np.empty(n), np.empty(n)
        expand(problem.samples(), self.every, np.asarray(evaluation.margins), slopes, curvatures)
        H = hessian(problem, curvatures)
        np.einsum("ii->i", H)[:] += self.ridge + state.damping * self.metric
        gradient = evaluation.gradient + self.ridge * x
        end, y, multiplier = self._minimised(H, gradient, x)
        state.point.clock[1] += 2 * n
        improved = np.isfinite(end).all() and self._search(state, x, end, y, multiplier)
        lower = state.objective < before - LOWER * abs(before)
        state.idle = 0 if improved or lower else state.idle + 1
        state.finished = self.tol is not None and state.reached <= self.tol
        state.stalled = not state.finished and state.idle >= self.config.max_idle
        self.give_up(state)

    def finish(self, state: TiedSetState) -> None:
        """The best point, exactly fused and sparse."""
        if not np.isfinite(state.objective):
            self._place(state)
        self.polish(state)
        self.give_up(state)

    # -- a step ----------------------------------------------------------------------------------------------

    def _place(self, state: TiedSetState) -> None:
        """Measure the first point, moved onto the constraints."""
        weight = np.ones(state.x.size)
        x = state.x if self.rows is None else self.rows.moved(state.x, state.y, weight)
        state.point.clock[1] += self.problem.n_samples
        self.measure(state, Candidate.at(x.copy(), state.y, state.multiplier, self.problem.backend.evaluate(x)))
        state.x = x.copy()

    def _search(
        self, state: TiedSetState, x: np.ndarray, end: np.ndarray, y: np.ndarray, multiplier: np.ndarray
    ) -> bool:
        """Shorten the step until the objective decreases, and measure the point."""
        problem, before = self.problem, state.objective

        def merit(length: float) -> float:
            point = x + length * (end - x) if length < 1.0 else end
            state.point.clock[1] += problem.n_samples
            return problem.backend.evaluate(point).loss + problem.penalty(point, self._values(point))

        length = shorten(merit, before)
        if length == 1.0:
            state.damping = 0.1 * state.damping if state.damping > self.config.min_damping else 0.0
        else:
            state.damping = max(10.0 * state.damping, self.config.first_damping)
        if length == 0.0:
            return False
        point = end if length == 1.0 else x + length * (end - x)
        values = y if length == 1.0 else self._values(point)
        return self.measure(state, Candidate.at(point.copy(), values, multiplier, problem.backend.evaluate(point)))

    def _values(self, x: np.ndarray) -> np.ndarray:
        """A x, with values at a kink up to rounding exactly there."""
        values = np.asarray(self.A @ x)
        close = SAME * (self.size @ np.abs(x))
        for k in (0, 1):
            place = self.kinks.places[:, k]
            near = np.abs(values - place) <= close
            values[near] = place[near]
        return values

    def _first_ties(self, x: np.ndarray) -> _Ties:
        """The rows at a kink, as far as they are independent of each other."""
        values, places = self._values(x), self.kinks.places
        piece = (values > places[:, 0]).astype(int) + (values > places[:, 1])
        piece = np.maximum(piece, np.isinf(self.kinks.slopes[:, 0]))
        piece = np.where(np.isinf(self.kinks.slopes[:, 2]), np.minimum(piece, 1), piece)
        ties = _Ties(np.zeros(values.size, bool), np.zeros(values.size, int), piece)
        at = [(values == places[:, k]) & np.isfinite(places[:, k]) for k in (0, 1)]
        candidates = np.flatnonzero(at[0] | at[1])
        # Constraints first: they may hold where absolute values would not.
        order = candidates[np.argsort(np.isfinite(self.kinks.slopes[candidates]).all(axis=1), kind="stable")]
        leader, held = np.arange(x.size), np.zeros(x.size, bool)

        def find(j: int) -> int:
            while leader[j] != j:
                leader[j] = leader[leader[j]]
                j = leader[j]
            return j

        for e in order:
            ends = [find(int(j)) for j in self.A.indices[self.A.indptr[e] : self.A.indptr[e + 1]]]
            if not ends or all(held[j] for j in ends) or (len(ends) == 2 and ends[0] == ends[1]):
                continue
            if len(ends) == 1:
                held[ends[0]] = True
            else:
                leader[ends[1]] = ends[0]
                held[ends[0]] |= held[ends[1]]
            ties.tied[e], ties.kink[e] = True, 0 if at[0][e] else 1
        return ties

    def _minimised(
        self, H: np.ndarray, gradient: np.ndarray, start: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The minimiser of the model plus ψ, its values of the rows, and their multipliers."""
        x, ties, m = start.copy(), self._first_ties(start), self.A.shape[0]
        reach = self._reach(np.diag(H))
        multiplier = np.zeros(m)
        idle, decreased = 0, 0.0
        for _ in range(self.config.changes_per_row * m):
            _cancel.check_cancelled()
            g = gradient + H @ (x - start)
            slopes = self._slopes(ties)
            labels, factors = clusters(self.A, ties.tied)
            step = self._step(H, g + self.At @ slopes, labels, factors)
            if step is not None:
                length, row, kink = self._length(x, step, ties)
                x = x + length * step
                decrease = -length * (1.0 - 0.5 * length) * float((g + self.At @ slopes) @ step)
                decreased += max(decrease, 0.0)
                idle = 0 if decrease > LOWER * decreased else idle + 1
                if row >= 0:
                    ties.tied[row], ties.kink[row] = True, kink
                    continue
                g = gradient + H @ (x - start)
            multiplier = slopes
            of_ties = self._multipliers(g + self.At @ slopes, ties.tied, labels, np.diag(H))
            if of_ties is None:
                break
            multiplier = slopes + of_ties
            if idle > self.config.idle_changes_per_row * m or not self._release(multiplier, ties, reach):
                break
        values, rows = self._values(x), np.flatnonzero(ties.tied)
        values[rows] = self.kinks.places[rows, ties.kink[rows]]
        return self._exact(x, ties), values, multiplier

    def _reach(self, curvature: np.ndarray) -> np.ndarray:
        """Σ_j a_ej²/curvature_j for each row e: how far its value moves when a unit of force is released."""
        return np.asarray(self.A.multiply(self.A) @ (1.0 / _positive(curvature)))

    def _slopes(self, ties: _Ties) -> np.ndarray:
        """The slopes of ψ on the rows that are not tied."""
        slopes = self.kinks.slopes[np.arange(ties.piece.size), ties.piece]
        slopes[ties.tied] = 0.0
        return slopes

    def _step(self, H: np.ndarray, g: np.ndarray, labels: np.ndarray, factors: np.ndarray) -> np.ndarray | None:
        """The step to the minimum over the clusters; None where there are none."""
        size = int(labels.max(initial=-1)) + 1
        if size == 0:
            return None
        reduced, right = contract_matrix(H, labels, factors, size), -contract_vector(g, labels, factors, size)
        unit = 1.0 / np.sqrt(_positive(np.diag(reduced)))
        scaled = unit[:, None] * reduced * unit
        tau = DAMPING * size
        while True:
            factor, failed = scipy.linalg.lapack.dpotrf(scaled + tau * np.eye(size), lower=1)
            if not failed:
                break
            tau *= 100.0
        u = scipy.linalg.cho_solve((factor, True), unit * right, check_finite=False)
        u += scipy.linalg.cho_solve((factor, True), unit * right - scaled @ u, check_finite=False)
        return expand_vector(unit * u, labels, factors)

    def _length(self, x: np.ndarray, step: np.ndarray, ties: _Ties) -> tuple[float, int, int]:
        """How far the step goes until a row meets a kink: the length, the row (−1 for none) and its kink."""
        values, moves = self._values(x), np.asarray(self.A @ step)
        moves[np.abs(moves) <= SAME * (self.size @ np.abs(step))] = 0.0
        moves[ties.tied] = 0.0
        kink = np.where(moves > 0.0, ties.piece, ties.piece - 1)
        inside = (kink >= 0) & (kink <= 1)
        places = self.kinks.places[np.arange(kink.size), np.clip(kink, 0, 1)]
        places = np.where(inside, places, np.copysign(np.inf, moves))
        with np.errstate(divide="ignore", invalid="ignore"):
            lengths = np.where(moves != 0.0, np.maximum((places - values) / moves, 0.0), np.inf)
        row = int(np.argmin(lengths)) if lengths.size else -1
        if row < 0 or not lengths[row] < 1.0:
            return 1.0, -1, 0
        return float(lengths[row]), row, int(kink[row])

    def _multipliers(
        self, g: np.ndarray, tied: np.ndarray, labels: np.ndarray, curvature: np.ndarray
    ) -> np.ndarray | None:
        """λ with Aᵀλ = −g on the tied features but the one of largest curvature in each cluster; None where it is not
        unique."""
        out, rows = np.zeros(tied.size), np.flatnonzero(tied)
        if not rows.size:
            return out
        balanced = np.zeros(g.size, bool)
        balanced[self.A[rows].indices] = True
        order = np.lexsort((curvature, labels))
        last = np.append(labels[order][1:] != labels[order][:-1], True)
        heads = order[last]
        balanced[heads[labels[heads] >= 0]] = False
        features = np.flatnonzero(balanced)
        if features.size != rows.size:
            return None
        system = sp.csc_array(sp.csr_array(self.At[features])[:, rows])
        try:
            factor = scipy.sparse.linalg.splu(system)
        except RuntimeError:
            return None
        solution = factor.solve(-g[features])
        solution += factor.solve(-g[features] - system @ solution)
        if not np.isfinite(solution).all():
            return None
        out[rows] = solution
        return out

    def _release(self, multiplier: np.ndarray, ties: _Ties, reach: np.ndarray) -> bool:
        """Release the row whose multiplier is outside the subdifferential at its kink, and whose release decreases the
        model most; returns whether there is one."""
        rows = np.flatnonzero(ties.tied)
        if not rows.size:
            return False
        kink = ties.kink[rows]
        low, high = self.kinks.slopes[rows, kink], self.kinks.slopes[rows, kink + 1]
        fixed = self.kinks.places[rows, 0] == self.kinks.places[rows, 1]
        low, high = np.where(fixed, -np.inf, low), np.where(fixed, np.inf, high)
        size = np.maximum(*(np.where(np.isfinite(end), np.abs(end), 0.0) for end in (low, high)))
        positive = size[size > 0.0]
        usual = float(np.median(positive)) if positive.size else SAME * float(np.abs(multiplier[rows]).max())
        slack = self.config.rounding * np.where(size > 0.0, size, usual)
        above, below = multiplier[rows] - high, low - multiplier[rows]
        outside = np.maximum(above, below)
        gain = np.where(outside > slack, outside, 0.0) * np.sqrt(reach[rows])
        best = int(np.argmax(gain))
        if not gain[best] > 0.0:
            return False
        row = int(rows[best])
        ties.tied[row] = False
        ties.piece[row] = kink[best] + int(above[best] > 0.0)
        return True

    def _exact(self, x: np.ndarray, ties: _Ties) -> np.ndarray:
        """x with its ties exact, where they are at zero."""
        at_zero = ties.tied & (self.kinks.places[np.arange(ties.kink.size), ties.kink] == 0.0)
        labels, factors = clusters(self.A, at_zero)
        out = np.where(labels < 0, 0.0, x)
        free = np.flatnonzero(labels >= 0)
        heads = np.zeros(int(labels.max(initial=-1)) + 1, int)
        heads[labels[free[::-1]]] = free[::-1]
        head = heads[labels[free]]
        out[free] = np.where(head == free, x[free], factors[free] * (x[head] / factors[head]))
        if self.rows is not None:
            weight = np.ones(out.size)
            out = self.rows.moved(out, np.where(at_zero, 0.0, self._values(out)), weight)
        return out

"""A primal-dual interior point method for ℓ1 penalties of any rows of A, where features are many and samples few.

The penalty Σ λ_e |r_e| with r = A x − c is written by r = p − q with p, q ≥ 0 and the multiplier u in [−λ, λ].
Optimality is ∇f(x) + Aᵀu = 0 with p(λ − u) = q(λ + u) = 0; Newton steps on these equations, with μ in place of 0, lead
μ to zero. Some 15 to 40 steps are enough for most λ and A, where methods that follow the zeros of r take the more steps
the more its rows depend on each other. The systems are in ``row_systems.py``. Once the zeros of r are known, Newton
steps on the other rows give the last digits.

References
----------
Mehrotra, S. (1992). On the implementation of a primal-dual interior point method. SIAM Journal on Optimization 2.
Kim, S.-J., Koh, K., Boyd, S. and Gorinevsky, D. (2009). ℓ1 trend filtering. SIAM Review 51.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from skadmm import _cancel
from skadmm.kernels.expansion import expand
from skadmm.losses.offset import split_offset
from skadmm.problem.problem import COUPLED, Problem
from skadmm.regularizers import SquaredL2, Zero
from skadmm.solvers.base import Setup
from skadmm.solvers.dual_update import Point
from skadmm.solvers.second_order.base import ridge_of
from skadmm.solvers.second_order.best_point import BestPointSolver, BestPointState, Candidate
from skadmm.solvers.second_order.l1_rows import checked_strengths, row_strengths
from skadmm.solvers.second_order.row_systems import Move, RowSystem, reason_against, system_for


@dataclass(frozen=True)
class RowInteriorPointConfig:
    """Settings of the interior point method for general rows."""

    first_share: float = 1.0
    """The first p and q: the change of each row when the margins change by this share of their scale."""
    first_multiplier: float = 0.9
    """The first u is at most this share of λ."""
    to_boundary: float = 0.995
    """The share of the way to the boundary that a step may go."""
    max_halvings: int = 8
    """The maximum number of times that a step is halved while it increases the dual residual."""
    measured: float = 30.0
    """Points are measured once the products p(λ − u) and q(λ + u) are below this many times the tolerance."""
    support_steps: int = 2
    """Newton steps on the rows that are not zero, when a point is measured."""
    max_steps: int = 120
    """The maximum number of steps."""
    max_idle: int = 8
    """The solver stops after this many measured points without a better one."""


@dataclass(kw_only=True)
class RowInteriorPointState(BestPointState):
    """State of the interior point method for general rows."""

    z: np.ndarray
    """The coordinates of x."""
    m: np.ndarray
    """The margins."""
    u: np.ndarray
    """The multiplier, between −λ and λ."""
    p: np.ndarray
    """The positive part of A x − c."""
    q: np.ndarray
    """The negative part of A x − c."""
    placed: bool = False
    """True once the starting point has been found."""
    idle: int = 0
    """Measured points since the last better one."""


class Residuals(NamedTuple):
    """The residuals of the equations, and the samples at the margins."""

    dual: np.ndarray
    margin: np.ndarray
    row: np.ndarray
    loss: float
    curvatures: np.ndarray
    product: float
    """Σ p(λ − u) + q(λ + u)."""


class RowInteriorPoint(BestPointSolver[RowInteriorPointState]):
    """The interior point method for general rows. A step is one factorisation, and counts as three evaluations."""

    name = "row-interior-point"
    summary = "An interior point method for l1 penalties of any rows of A, with many features and few samples"
    Config: ClassVar[type[Any]] = RowInteriorPointConfig
    config: RowInteriorPointConfig

    def __init__(self, setup: Setup, config: RowInteriorPointConfig | None = None) -> None:
        super().__init__(setup, config)
        self.strengths = checked_strengths(setup.problem)

    @cached_property
    def system(self) -> RowSystem:
        """The linear systems of the steps."""
        return system_for(self.problem, self.ridge)

    @classmethod
    def applies(cls, problem: Problem) -> str | None:
        """ψ must be an ℓ1 norm with positive weights, and the systems of the steps small enough."""
        if problem.is_coupled:
            return COUPLED
        strengths = row_strengths(problem.psi, problem.n_split)
        if strengths is None or not strengths.size or strengths.min() <= 0.0:
            return "psi must be an ℓ1 norm with positive weights"
        if problem.constraint.B is not None or not isinstance(problem.omega, (Zero, SquaredL2)):
            return "it takes no B, and no omega but a squared ℓ2"
        if not problem.backend.local_rows:
            return "its rows are on a cluster"
        if not _is_curved(problem):
            return f"loss={problem.loss.name} has no curvature at some margins"
        return reason_against(problem, ridge_of(problem))

    def init(self, point: Point, rho: float) -> RowInteriorPointState:
        """The state before the first evaluation; the interior point is found in the first step."""
        m, n = self.problem.n_constraints, self.problem.n_samples
        return RowInteriorPointState(
            point=point, rho=rho, multiplier=rho * point.dual, x=point.x.copy(), y=point.y.copy(), z=np.zeros(0),
            m=np.zeros(n), u=np.zeros(m), p=np.ones(m), q=np.ones(m),
        )  # fmt: skip

    def warm_start(self, state: RowInteriorPointState) -> None:
        """Start from an earlier multiplier."""
        super().warm_start(state)
        state.x, state.y, state.placed = state.point.x.copy(), state.point.y.copy(), False

    def step(self, state: RowInteriorPointState) -> None:
        """A predictor, then a corrector with the same factorisation."""
        if not state.placed:
            self._place(state)
        here = self._residuals(state)
        if not all(np.isfinite(part).all() for part in here):
            state.stalled = True
            return
        self.system.factorise(here.curvatures, self._inverse_theta(state))
        _cancel.check_cancelled()
        size = 2 * state.u.size
        predictor = self._direction(state, here, 0.0, 0.0, 0.0)
        length = self._longest(state, predictor)
        after = self._moved(state, predictor, length)
        centring = (self._product(after.u, after.p, after.q) / here.product) ** 3 if here.product > 0.0 else 0.0
        change = predictor.u * predictor.p, -predictor.u * predictor.q
        step = self._direction(state, here, min(centring, 1.0) * here.product / size, *change)
        self._search(state, here, step)
        state.point.clock[1] += 3 * self.problem.n_samples
        self._judge(state)
        self.give_up(state)

    def finish(self, state: RowInteriorPointState) -> None:
        """The best point, exactly fused and sparse where that is cheap."""
        if not np.isfinite(state.objective):
            self._measure(state)
        self.polish(state)
        self.give_up(state)

    # -- a step ----------------------------------------------------------------------------------------------

    def _place(self, state: RowInteriorPointState) -> None:
        """A starting point in the interior: x = 0 in its coordinates, the multiplier within its bounds."""
        problem, config = self.problem, self.config
        state.z = np.zeros(self.system.size)
        state.m = self.system.margins(state.z)
        bound = config.first_multiplier * self.strengths
        state.u = np.clip(state.multiplier, -bound, bound)
        _, target, _ = split_offset(problem.loss, problem.target)
        scale = float(np.std(target)) or float(np.abs(target).max(initial=0.0)) or 1.0
        sizes = config.first_share * scale * self.system.row_sizes() / np.sqrt(state.u.size)
        rows = self.system.rows(state.z)
        state.p, state.q = np.maximum(rows, 0.0) + sizes, np.maximum(-rows, 0.0) + sizes
        state.placed = True

    def _expanded(self, m: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """Mean loss, slopes and curvatures of the mean at the margins."""
        n = self.problem.n_samples
        slopes, curvatures = np.empty(n), np.empty(n)
        total = expand(self.problem.samples(), np.arange(n), m, slopes, curvatures)
        return float(total) / n, slopes / n, curvatures / n

    def _residuals(self, state: RowInteriorPointState) -> Residuals:
        loss, slopes, curvatures = self._expanded(state.m)
        dual = self.system.adjoint(state.z, slopes, state.u)
        margin = self.system.margins(state.z) - state.m
        row = self.system.rows(state.z) - (state.p - state.q)
        return Residuals(dual, margin, row, loss, curvatures, self._product(state.u, state.p, state.q))

    def _product(self, u: np.ndarray, p: np.ndarray, q: np.ndarray) -> float:
        return float(p @ (self.strengths - u) + q @ (self.strengths + u))

    def _inverse_theta(self, state: RowInteriorPointState) -> np.ndarray:
        above, below = self._distances(state)
        return state.p / above + state.q / below

    def _distances(self, state: RowInteriorPointState) -> tuple[np.ndarray, np.ndarray]:
        """λ − u and λ + u; the smallest positive difference where rounding has put u on its bound."""
        least = np.finfo(float).eps * self.strengths
        return np.maximum(self.strengths - state.u, least), np.maximum(self.strengths + state.u, least)

    def _direction(self, state: RowInteriorPointState, here: Residuals, mu: float, of_p: Any, of_q: Any) -> _Step:
        """The Newton step towards p(λ − u) = q(λ + u) = μ; `of_p` and `of_q` correct for its curvature."""
        above, below = self._distances(state)
        p0, q0 = (mu + of_p) / above - state.p, (mu + of_q) / below - state.q
        move = self.system.solve(here.dual, here.margin, here.row - (p0 - q0))
        return _Step(move, p0 + state.p / above * move.u, q0 - state.q / below * move.u)

    def _longest(self, state: RowInteriorPointState, step: _Step) -> float:
        """The length up to which everything stays positive; 1 at most."""
        length = 1.0
        pairs = (
            *zip(self._distances(state), (-step.u, step.u), strict=True), (state.p, step.p), (state.q, step.q),
        )  # fmt: skip
        for values, changes in pairs:
            falling = changes < 0.0
            if falling.any():
                length = min(length, float((values[falling] / -changes[falling]).min()))
        return length

    def _moved(self, state: RowInteriorPointState, step: _Step, length: float) -> _Inside:
        return _Inside(
            state.z + length * step.move.z, state.m + length * step.move.m, state.u + length * step.u,
            state.p + length * step.p, state.q + length * step.q,
        )  # fmt: skip

    def _search(self, state: RowInteriorPointState, here: Residuals, step: _Step) -> None:
        """Move as far as the boundary allows; less where the slopes differ from their expansion."""
        longest = self._longest(state, step)
        length = min(1.0, self.config.to_boundary * longest) if longest < 1.0 else 1.0
        size = float(np.linalg.norm(here.dual))
        allowed = size + float(np.linalg.norm(self.strengths)) * min(1.0, here.product / max(abs(here.loss), 1e-300))
        for _ in range(self.config.max_halvings):
            after = self._moved(state, step, length)
            slopes = self._expanded(after.m)[1]
            if float(np.linalg.norm(self.system.adjoint(after.z, slopes, after.u))) <= allowed:
                break
            length *= 0.5
        if np.isfinite(after.z).all() and np.isfinite(after.u).all():
            state.z, state.m, state.u, state.p, state.q = after
        else:
            state.stalled = True

    # -- the best point --------------------------------------------------------------------------------------

    def _judge(self, state: RowInteriorPointState) -> None:
        """Measure the point once it is close, and decide whether the run continues."""
        tol = self.tol if self.tol is not None else 1e-10
        size = max(abs(state.objective) if np.isfinite(state.objective) else 0.0, self._expanded(state.m)[0])
        size = self.certifier.size(size + float(self.strengths @ np.abs(state.p - state.q)))
        close = self._product(state.u, state.p, state.q) <= self.config.measured * tol * size
        if close or not np.isfinite(state.objective):
            better = self._measure(state)
            state.idle = 0 if better or not close else state.idle + 1
        state.finished = self.tol is not None and state.reached <= self.tol
        ended = state.idle >= self.config.max_idle or state.steps + 1 >= self.config.max_steps
        state.stalled = not state.finished and (state.stalled or ended)

    def _measure(self, state: RowInteriorPointState) -> bool:
        """Measure x; x with the rows that vanish in the limit at zero; and that after Newton steps on the others."""
        if not state.placed:
            self._place(state)
        z = state.z
        rows = self._sparse_rows(state)
        better = self._try(state, z, self.system.rows(z), state.u)
        better = self._try(state, z, rows, state.u) or better
        if not self.system.exact_rows:
            return better
        z = np.concatenate([rows, z[rows.size :]])
        pulls = self.strengths * np.sign(rows)
        for _ in range(self.config.support_steps):
            _, slopes, curvatures = self._expanded(self.system.margins(z))
            z = self.system.on_support(z, slopes, curvatures, pulls)
            if not np.array_equal(np.sign(z[: rows.size]), np.sign(rows)):
                return better
        slopes = self._expanded(self.system.margins(z))[1]
        multiplier = self.system.multiplier(slopes)
        return self._try(state, z, z[: rows.size], state.u if multiplier is None else multiplier) or better

    def _sparse_rows(self, state: RowInteriorPointState) -> np.ndarray:
        """The rows p − q, zero where p and q are small against the distance of u from its bounds."""
        distance = np.minimum(self.strengths - state.u, self.strengths + state.u) / self.strengths
        sizes = np.maximum(state.p, state.q) / self.system.row_sizes()
        largest = float(sizes.max(initial=0.0)) or 1.0
        return np.where(sizes / largest < distance, 0.0, state.p - state.q)

    def _try(self, state: RowInteriorPointState, z: np.ndarray, rows: np.ndarray, u: np.ndarray) -> bool:
        """Measure one point, and return whether the measure improved."""
        x = self.system.x_of(z, rows)
        state.point.clock[1] += self.problem.n_samples
        y = rows.copy() if self.system.exact_rows else np.where(rows == 0.0, 0.0, np.asarray(self.problem.y_of_x(x)))
        return self.measure(state, Candidate.at(x, y, u.copy(), self.problem.backend.evaluate(x)))


def _is_curved(problem: Problem) -> bool:
    """Return whether the loss of every sample has a positive curvature at three margins."""
    n = problem.n_samples
    _, target, offset = split_offset(problem.loss, problem.target)
    sizes = [np.abs(numbers).max(initial=0.0) for numbers in (target, offset) if numbers is not None]
    far = 10.0 * (1.0 + float(sum(sizes)))
    slopes, curvatures = np.empty(n), np.empty(n)
    weighted = problem.sample_weight > 0.0 if problem.sample_weight.size else np.ones(n, bool)
    for margin in (-far, 0.0, far):
        expand(problem.samples(), np.arange(n), np.full(n, margin), slopes, curvatures)
        if problem.loss.curvature_bound > 0.0 and np.any(curvatures[weighted] == 0.0):
            return False
    return True


class _Step(NamedTuple):
    """A Newton step."""

    move: Move
    p: np.ndarray
    q: np.ndarray

    @property
    def u(self) -> np.ndarray:
        """The step of the multiplier."""
        return self.move.u


class _Inside(NamedTuple):
    """A point in the interior."""

    z: np.ndarray
    m: np.ndarray
    u: np.ndarray
    p: np.ndarray
    q: np.ndarray

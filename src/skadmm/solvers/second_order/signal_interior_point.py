"""A primal-dual interior point method for signals along a line under losses of two straight pieces.

    minimise over x      Σ_i c_i |a_i x_j(i) − k_i| + l·x + ½ x·Rx + Σ bound_e |(D x)_e|

The quantile loss and the absolute error are a multiple of |z − k| plus a linear function. So the problem is a linear
programme, or a quadratic one with a ridge R, in which the samples are further rows of D (``signal_samples.py``).

Slopes θ of the samples and multipliers u of the rows of D prove a lower bound where Sᵀθ + Dᵀu + Rx = 0, S the rows of
the samples. The slopes of samples that are fitted exactly may change, and make this exact for the u of the iterate, or
make the sums of slopes orthogonal to polynomials, from which u follows by cumulative sums.

References
----------
Brantley, H. L., Guinness, J. and Chi, E. C. (2020). Baseline drift estimation for air quality data using quantile trend
filtering. Annals of Applied Statistics 14.
Portnoy, S. and Koenker, R. (1997). The Gaussian hare and the Laplacian tortoise. Statistical Science 12.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from skadmm import _cancel
from skadmm.operators.line import Line
from skadmm.problem.certificate import Assessment
from skadmm.problem.kkt import GRADIENT_FLOOR, KKT
from skadmm.problem.problem import COUPLED, Problem
from skadmm.solvers.base import Setup
from skadmm.solvers.dual_update import Point
from skadmm.solvers.second_order.barrier_move import MoveConfig, Solve, System, move
from skadmm.solvers.second_order.base import SecondOrderSolver, SolverState, ridge_of
from skadmm.solvers.second_order.interior_point import no_signal
from skadmm.solvers.second_order.l1_rows import row_strengths
from skadmm.solvers.second_order.signal_samples import EliminatedSystem, PiecewiseSamples
from skadmm.solvers.second_order.signal_systems import LineSystem

TINY = float(np.finfo(float).tiny)


@dataclass(frozen=True, kw_only=True)
class SignalInteriorPointConfig(MoveConfig):
    """Settings of the interior point solver for losses of two pieces."""

    max_steps: int = 100
    """The maximum number of steps."""
    max_idle: int = 5
    """The solver stops when this many steps in a row have not decreased the gap."""
    target_gap: float = 1e-9
    """The steps aim at this relative gap, or at that of the tolerance where it is smaller, so that the zeros of D x can
    be identified."""
    near_gap: float = 1e-3
    """From this relative gap on the systems are solved for changes, not for points."""
    projections: int = 4
    """The maximum number of changes of slopes that make their sums orthogonal to polynomials."""
    orthogonality: float = 1e-14
    """Sums of slopes whose part along polynomials is below this share are orthogonal to them."""
    least_orthogonality: float = 1e-12
    """With a larger part there is no bound."""
    lost_share: float = 0.1
    """The share of the tolerance by which the exact pattern may increase the objective."""


@dataclass(kw_only=True)
class SignalInteriorPointState(SolverState):
    """State of the interior point solver for losses of two pieces. ``point`` is the best point so far."""

    x: np.ndarray
    """The iterate."""
    v: np.ndarray
    """a_i x_j(i) − k_i of each sample, then D x."""
    up: np.ndarray
    """The multiplier of v ≤ s. The multiplier of v is up − down."""
    down: np.ndarray
    """The multiplier of −v ≤ s; up + down = bound."""
    s: np.ndarray
    """The bound of |v|."""
    residual: np.ndarray
    """The sums of slopes, plus Dᵀu, plus Rx: zero at the solution. A step of length t takes the share t of it away."""
    weight: np.ndarray
    """The diagonal of the last Newton system, by which the iterate is moved to its pattern."""
    gradient: np.ndarray
    """The sums of the slopes that prove the bound, the gradient of the mean loss."""
    conjugate: float = 0.0
    """The mean conjugate of those slopes."""
    loss: float = np.inf
    """The mean loss at ``point``."""
    idle: int = 0
    """Steps in a row that have not decreased the gap."""


class _Pair(NamedTuple):
    """Slopes and multipliers that prove a bound once they are within their bounds."""

    slopes: np.ndarray
    gradient: np.ndarray
    """Σ a_i θ_i of each coefficient."""
    beta: np.ndarray


class SignalInteriorPoint(SecondOrderSolver[SignalInteriorPointState]):
    """Mehrotra's predictor and corrector on the multipliers of samples and rows, with |a_i x_j − k_i| ≤ s_i and
    |D x| ≤ s. A step is one factorisation; it counts as one pass over the samples."""

    name = "signal-interior-point"
    summary = "Interior point steps on signals: a loss of two straight pieces, one feature per sample, ψ = ℓ1 on a line"
    Config: ClassVar[type[Any]] = SignalInteriorPointConfig
    config: SignalInteriorPointConfig
    takes_kinks = True

    def __init__(
        self, setup: Setup, config: SignalInteriorPointConfig | None = None, samples: PiecewiseSamples | None = None
    ) -> None:
        super().__init__(setup, config)
        problem = setup.problem
        line, strengths = problem.constraint.line, row_strengths(problem.psi, problem.n_split)
        assert line is not None, "see applies()"
        assert strengths is not None, "see applies()"
        self.line: Line = line
        self.samples = PiecewiseSamples.of(problem) if samples is None else samples
        self.ridge = np.broadcast_to(np.asarray(ridge_of(problem), dtype=np.float64), problem.n_features)
        samples = self.samples
        self.middle = 0.5 * (samples.lower + samples.upper)
        """The slopes of the linear part of each sample's loss."""
        self.linear = samples.sums(self.middle, problem.n_features)
        self.strengths = strengths * np.abs(line.scale)
        self.bound = np.concatenate([0.5 * (samples.upper - samples.lower), self.strengths])
        self.limit = strengths
        """The largest multiplier of each row of A."""
        self.polynomials = line.null_space()

    @classmethod
    def applies(cls, problem: Problem) -> str | None:
        """A loss of two pieces with slopes on both sides, one coefficient per sample, and ψ an ℓ1 norm of differences
        along a line."""
        if problem.is_coupled:
            return COUPLED
        if problem.loss.pieces is None:
            return f"the loss must consist of two straight pieces, and {problem.loss.name} does not"
        if problem.loss.labels:
            return f"loss={problem.loss.name} is constant on one side of its kink"
        if problem.constraint.line is None:
            return "the rows of A must be differences along a line"
        return no_signal(problem)

    def init(self, point: Point, rho: float) -> SignalInteriorPointState:
        """The centre of the multipliers' bounds, at the kinks of the losses."""
        samples, d = self.samples, self.problem.n_features
        size = self.bound[: samples.kink.size] * samples.value
        total = samples.sums(size, d)
        x = samples.sums(self.bound[: samples.kink.size] * samples.kink, d) / np.where(total != 0.0, total, 1.0)
        v, n = self._values(x), samples.kink.size
        up, down = 0.5 * self.bound, 0.5 * self.bound
        up[:n], down[:n] = -0.5 * samples.lower, 0.5 * samples.upper  # the slopes of the losses are zero
        mean = float(self.bound @ np.abs(v)) / v.size or float(self.bound[:n].mean())
        return SignalInteriorPointState(
            point=point, rho=rho, multiplier=rho * point.dual, x=x, v=v, up=up, down=down,
            s=np.abs(v) + mean / self.bound, residual=self.ridge * x, weight=total, gradient=np.zeros(d),
        )  # fmt: skip

    def step(self, state: SignalInteriorPointState) -> None:
        """Judge the iterate, and move it where it is not good enough."""
        _cancel.check_cancelled()
        config = self.config
        state.point.clock[1] += self.problem.n_samples
        before = self.optimality(state)[1]
        self._keep(state)
        relative = self.optimality(state)[1]
        state.idle = 0 if relative < before else state.idle + 1
        state.finished = relative <= min(config.target_gap, np.inf if self.tol is None else self.tol)
        tired = state.idle >= config.max_idle or state.steps + 1 >= config.max_steps
        if not (state.finished or tired):
            tired = not self._move(state, near=relative <= config.near_gap)
        if tired and not state.finished:
            state.finished = self.tol is not None and relative <= self.tol
            state.stalled = not state.finished

    def finish(self, state: SignalInteriorPointState) -> None:
        """The point nearest to the last iterate on its pattern, with exact zeros of D x."""
        self._keep(state)
        rows = slice(self.samples.kink.size, None)
        size, slack = np.abs(state.v[rows]), 2.0 * np.minimum(state.up, state.down)[rows]
        scale = self.certifier.size(state.objective)
        allowed = self.config.lost_share * (self.tol or 0.0) * scale
        # A row is zero where its multiplier is farther from its bound, relatively, than its term is from zero.
        for largest in (scale, float(np.max(size * self.strengths))):
            exact = self._on_pattern(state, size * self.strengths**2 > largest * slack)
            if exact is not None and self._objective(*exact) <= state.objective + allowed:
                self._place(state, *exact)
                return

    def optimality(self, state: SignalInteriorPointState) -> tuple[str, float]:
        """The relative duality gap of the best point."""
        return "gap", self.certifier.pair(state.objective, state.lower_bound).relative

    def last_loss(self, state: SignalInteriorPointState) -> float:
        """The mean loss at the best point."""
        return state.loss

    def loss_gradient(self, state: SignalInteriorPointState) -> np.ndarray:
        """The sums of the slopes that prove the bound."""
        return state.gradient

    def assessed(self, state: SignalInteriorPointState, x: np.ndarray, y: np.ndarray) -> Assessment | None:
        """The best point with the slopes that prove the bound. The general evaluation would take other subgradients."""
        if not (np.array_equal(x, state.point.x) and np.array_equal(y, state.point.y)):
            return None
        if not np.isfinite(state.lower_bound):
            return None
        beta, floor = state.multiplier, GRADIENT_FLOOR * float(np.linalg.norm(self.limit))
        split = float(np.linalg.norm(y - self.problem.prox_psi(y + beta)))
        apart = abs(state.loss + state.conjugate - float(state.gradient @ x))
        scale = max(self.certifier.size(state.objective), TINY)
        relative = max(split / max(float(np.linalg.norm(beta)), floor, TINY), apart / scale)
        # The multiplier follows from the gradient, which makes stationarity hold up to rounding.
        kkt = KKT(0.0, 0.0, split, relative)
        return Assessment(state.loss, state.gradient, kkt, self.certifier.pair(state.objective, state.lower_bound))

    def reweighted(self, problem: Problem) -> SignalInteriorPoint:
        """The same samples."""
        return type(self)(replace(self.setup, problem=problem), self.config, self.samples)

    def follow(self, state: SignalInteriorPointState, problem: Problem) -> SignalInteriorPointState:
        """The steps start from the centre in any case."""
        return self.init(state.point, state.rho)

    # -- points --------------------------------------------------------------------------------------------------

    def _values(self, x: np.ndarray) -> np.ndarray:
        """a_i x_j − k_i of each sample, then D x."""
        samples = self.samples
        differences = (self.problem.constraint.A @ x) / self.line.scale
        return np.concatenate([samples.value * x[samples.feature] - samples.kink, differences])

    def _objective(self, x: np.ndarray, v: np.ndarray) -> float:
        """The objective at x with v = D x."""
        return self.samples.loss(x) + 0.5 * float(x @ (self.ridge * x)) + float(self.strengths @ np.abs(v))

    def _place(self, state: SignalInteriorPointState, x: np.ndarray, v: np.ndarray) -> None:
        """Make x with v = D x the best point."""
        state.objective, state.loss = self._objective(x, v), self.samples.loss(x)
        state.point.x[:] = x
        state.point.y[:] = v * self.line.scale

    def _keep(self, state: SignalInteriorPointState) -> None:
        """Keep the iterate where its objective is the smallest so far, and its multipliers where their bound is the
        largest."""
        v = state.v[self.samples.kink.size :]
        if self._objective(state.x, v) < state.objective:
            self._place(state, state.x, v)
        self._raise_bound(state)

    def _on_pattern(self, state: SignalInteriorPointState, active: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """The point nearest to the iterate, in the metric of the last Newton system, with D x = 0 off `active`."""
        system = LineSystem(self.line, state.weight)
        found = system.with_zeros(state.weight * state.x, ~active, np.zeros(active.size))
        if found is None:
            return None
        if self.line.order > 0:
            return found.x, found.v
        label = np.concatenate([[0], np.cumsum(active)])
        x = (np.bincount(label, weights=found.x) / np.bincount(label))[label]
        return x, np.diff(x)

    # -- steps ---------------------------------------------------------------------------------------------------

    def _move(self, state: SignalInteriorPointState, *, near: bool) -> bool:
        aim = -state.residual if near else -self.linear

        def factored(e: np.ndarray) -> Solve:
            system = EliminatedSystem(self.samples, self.line, self.ridge, e)
            state.weight = system.h
            return lambda b, refine: system.solve(aim, b, near=near, refine=refine)

        length = move(state, System(factored, near), self.config)
        state.residual = (1.0 - length) * state.residual
        return length > 0.0

    # -- the bound -----------------------------------------------------------------------------------------------

    def _raise_bound(self, state: SignalInteriorPointState) -> None:
        """The better bound of two pairs of slopes and multipliers, each scaled until it is feasible."""
        samples, pull = self.samples, self.ridge * state.x
        for slopes, gradient, beta in self._pairs(state, pull):
            scale = min(1.0, _share(beta, -self.limit, self.limit), _share(slopes, samples.lower, samples.upper))
            conjugate = scale * float(slopes @ samples.kink) - samples.constant
            lower = -conjugate - 0.5 * scale**2 * float(state.x @ pull)
            if lower > state.lower_bound:
                state.lower_bound, state.conjugate, state.gradient = lower, conjugate, scale * gradient
                state.multiplier = scale * beta
                state.point.dual[:] = state.multiplier / state.rho

    def _pairs(self, state: SignalInteriorPointState, pull: np.ndarray) -> Iterator[_Pair]:
        """Slopes, their sums and multipliers, close to those of the iterate, with Sᵀθ + Aᵀβ + Rx = 0.

        Cumulative sums of slopes have large rounding errors where multipliers are small, and differences of multipliers
        where they are large.
        """
        samples = self.samples
        n, d = samples.kink.size, pull.size
        found = self.middle + (state.up - state.down)[:n]
        room = np.maximum(np.minimum(found - samples.lower, samples.upper - found), TINY)
        beta = (state.up - state.down)[n:] / self.line.scale
        gradient = -pull - self.problem.constraint.At(beta)
        change = (gradient - samples.sums(found, d)) / samples.sums(samples.value * room, d)
        yield _Pair(found + room * samples.value * change[samples.feature], gradient, beta)
        slopes = self._orthogonal_slopes(found, room**2, pull)
        if slopes is not None:
            gradient = samples.sums(slopes, d)
            yield _Pair(slopes, gradient, self.line.multiplier(-gradient - pull))

    def _orthogonal_slopes(self, slopes: np.ndarray, weight: np.ndarray, pull: np.ndarray) -> np.ndarray | None:
        """Slopes whose sums plus `pull` are orthogonal to polynomials, each changed in proportion to its weight; None
        where there are none."""
        samples, basis, config = self.samples, self.polynomials, self.config
        weights = samples.sums(samples.value * weight, pull.size)
        gram = basis.T @ (weights[:, None] * basis)
        for _ in range(config.projections + 1):
            total = samples.sums(slopes, pull.size) + pull
            along = basis.T @ total
            left, size = float(np.linalg.norm(along)), float(np.linalg.norm(total))
            if left <= config.orthogonality * size:
                break
            try:
                shift = basis @ np.linalg.solve(gram, along)
            except np.linalg.LinAlgError:
                return None
            slopes = slopes - weight * samples.value * shift[samples.feature]
        return slopes if left <= config.least_orthogonality * size else None


def _share(values: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> float:
    """The largest share of `values` that is within its bounds, which contain zero."""
    excess = float(np.max(values / np.where(values < 0.0, lower, upper), initial=0.0))
    return 1.0 / excess if excess > 0.0 else np.inf

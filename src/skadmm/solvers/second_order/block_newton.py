"""Block Newton: proximal Newton steps on a working set of blocks, for many features whose rows are on workers.

For the penalties of block descent (``blocks.py``): ℓ1, elastic net, groups, sparse groups, bounds. A step

  chooses    a working set: blocks that are not zero, and as many again of those that violate optimality most;
  models     the loss to second order on the features of the set: their columns are gathered and multiplied where the
             rows are (``oracle/reduced.py``), and what arrives is Σ h z zᵀ on them;
  minimises  the model and the penalty by block coordinate descent (``block_model.py``);
  searches   along the step, in the margins, which stay where the rows are;
  evaluates  all samples: objective, gradient over all features, violations, certificate.

Features without penalty or bound, such as an intercept, are eliminated from the model. Nothing of the size of d² or n
is formed in the process that runs the solver. Rows in memory are left to block descent, which keeps margins and columns
at hand and minimises several models before it evaluates all features.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from skadmm.io.state import resizable
from skadmm.losses import Squared
from skadmm.oracle import ReducedOracle, reduced_oracle_for
from skadmm.oracle.reduced import Contraction
from skadmm.oracle.reduced_hessian import HessianConfig, feature_keys
from skadmm.problem.problem import COUPLED, Problem
from skadmm.solvers.base import Setup
from skadmm.solvers.dual_update import Point
from skadmm.solvers.second_order.block_model import BlockModel
from skadmm.solvers.second_order.block_set import curvature_bounds
from skadmm.solvers.second_order.block_sweeps import violations
from skadmm.solvers.second_order.blocks import BlockPenalty, NotInBlocks, block_penalty
from skadmm.solvers.second_order.reduced_solver import DampingConfig, ReducedSolver, ReducedState


@dataclass(frozen=True)
class BlockNewtonConfig(HessianConfig, DampingConfig):
    """Settings of the block Newton solver."""

    first_set: int = 50
    """The minimum number of features that may join the working set in a step."""
    growth: float = 1.0
    """The number of features that may join in a step, as a multiple of those that are not zero."""
    surplus: float = 3.0
    """Zero blocks leave the set where it has this many times the nonzero features, and more than `first_set`."""
    max_set: int = 5000
    """The maximum number of features for which a model is formed."""
    min_improvement: float = 1e-13
    """A step that improves the objective by less than this share is refused."""
    max_refusals: int = 6
    """The solver stops after this many refused steps in a row."""
    inner_tol: float = 1e-3
    """Sweeps on a model end when no step changes more than this share of the largest violation."""
    exact_tol: float = 1e-6
    """The same share where the loss is quadratic, so that the model is exact."""
    max_reduction: float = 0.1
    """Sweeps on a model do not end before no step changes more than this share of the largest violation."""
    max_rounds: int = 100
    """The maximum number of rounds on one model, each of sweeps and a Newton step on the support."""
    sweeps: int = 3
    """The number of sweeps over all blocks of the working set in one round."""
    short_sweeps: int = 5
    """The number of sweeps over the nonzero blocks after each sweep over all blocks."""
    max_eliminated: int = 10
    """Up to this many features without penalty or bound are eliminated from the models."""
    min_strong_share: float = 0.5
    """On a path, blocks that would leave zero at 2λ − λ_before join first, if that is at least this share of λ."""
    max_steps: int = 100
    """The number of steps after which another solver may take over."""


@dataclass(kw_only=True)
class BlockNewtonState(ReducedState):
    """State of the block Newton solver."""

    violation: np.ndarray
    """How far each block is from optimal."""
    blocks: np.ndarray = resizable(default_factory=lambda: np.empty(0, np.int64))
    """The blocks of the working set."""
    candidates: np.ndarray = resizable(default_factory=lambda: np.empty(0, np.int64))
    """Blocks that may leave zero at a new strength."""


class FeatureSet(NamedTuple):
    """The features of a model: those of the working set, block by block, and then the free ones."""

    blocks: np.ndarray
    features: np.ndarray
    starts: np.ndarray
    """Where each block begins among the features, and where the last one ends; the free features follow."""

    @property
    def size(self) -> int:
        """The number of features without the free ones."""
        return int(self.starts[-1])

    def contraction(self, d: int) -> Contraction:
        """One coordinate for each of the features; the others are zero."""
        labels = np.full(d, -1)
        labels[self.features] = np.arange(self.features.size)
        return Contraction(labels, np.ones(d), self.features.size, feature_keys(d)[self.features])


class Eliminated(NamedTuple):
    """A quadratic model without its free features: they follow from the others."""

    G: np.ndarray
    """The Hessian, less what the free features take."""
    gradient: np.ndarray
    newton: np.ndarray
    """The step of the free features where the others stay."""
    follows: np.ndarray
    """The decrease of each free feature when another one increases by 1, of shape (f, k)."""

    @classmethod
    def of(cls, H: np.ndarray, gradient: np.ndarray, size: int) -> Eliminated:
        """The model on the first `size` features, the others eliminated."""
        inverse = np.linalg.pinv(H[size:, size:], hermitian=True)
        follows = inverse @ H[size:, :size]
        G = np.ascontiguousarray(H[:size, :size] - H[:size, size:] @ follows)
        return cls(G, gradient[:size] - gradient[size:] @ follows, -inverse @ gradient[size:], follows)

    def whole(self, change: np.ndarray) -> np.ndarray:
        """The step of all features for a step of the first ones."""
        return np.concatenate([change, self.newton - self.follows @ change])


class BlockNewton(ReducedSolver[BlockNewtonState]):
    """Proximal Newton steps on working sets of blocks. A step is one evaluation of all samples."""

    name = "block-newton"
    summary = "Proximal Newton with working sets whose columns stay on the workers, for penalties over disjoint blocks"
    Config: ClassVar[type[Any]] = BlockNewtonConfig
    config: BlockNewtonConfig

    def __init__(self, setup: Setup, config: BlockNewtonConfig | None = None) -> None:
        super().__init__(setup, config)
        self.penalty, self.row_shares = block_penalty(setup.problem)
        self.quadratic = isinstance(setup.problem.loss, Squared)
        free = _free_features(self.penalty)
        self.free = free if free.size <= self.config.max_eliminated else free[:0]
        always = _never_zero(self.penalty)
        always[self.penalty.block[self.free]] = False
        self.always = np.flatnonzero(always)
        """Blocks that are part of every working set, because no penalty makes them zero."""

    @classmethod
    def applies(cls, problem: Problem) -> str | None:
        """The penalty must separate over disjoint blocks, and make almost all of them zero."""
        if problem.is_coupled:
            return COUPLED
        if not (problem.backend.local_rows or problem.backend.block_memory):
            return f"it {problem.lacks_local_rows()}"
        try:
            penalty, _ = block_penalty(problem)
        except NotInBlocks as reason:
            return str(reason)
        limit = cls.Config().max_set
        if np.count_nonzero(_never_zero(penalty)) > limit:
            return f"more than {limit} features have no penalty that makes them zero"
        return None

    def init(self, point: Point, rho: float) -> BlockNewtonState:
        """The state before the first evaluation; the columns are prepared here, before the clock runs."""
        oracle = reduced_oracle_for(self.problem.backend, self.setup.checkpoint)
        oracle.prepare()
        return self._at(point, rho, oracle)

    def _at(self, point: Point, rho: float, oracle: ReducedOracle) -> BlockNewtonState:
        """The state at a point of which nothing is known."""
        return BlockNewtonState(
            point=point, rho=rho, multiplier=rho * point.dual, gradient=np.zeros(self.problem.n_features),
            violation=np.zeros(self.penalty.n_blocks), damping=self.config.damping, oracle=oracle,
        )  # fmt: skip

    def _step(self, state: BlockNewtonState) -> None:
        """A proximal Newton step on the working set."""
        if not state.evaluated:
            self._start(state)
            self._judge(state)
            if state.finished:
                return
        chosen = self._choose(state)
        if chosen.features.size:
            self._newton_step(state, chosen)
        else:
            state.refusals += 1
        self._judge(state)

    def _judge(self, state: BlockNewtonState) -> None:
        config = self.config
        state.finished = self.tol is not None and self.optimality(state)[1] <= self.tol
        too_large = self._sizes(state.blocks).sum() > config.max_set
        state.stalled = not state.finished and bool(state.refusals >= config.max_refusals or too_large)

    def slow(self, state: BlockNewtonState) -> bool:
        """Return whether the solver cannot improve x any more, or has made more steps than it needs where it is
        fast."""
        long = state.steps >= self.config.max_steps and not state.finished
        return super().slow(state) or (self.tol is not None and long)

    def finish(self, state: BlockNewtonState) -> None:
        """Certify x, which is exactly sparse at all times."""
        if not state.evaluated:
            self._whole(state, self._start)

    def reweighted(self, problem: Problem) -> Self:
        """The same solver for another strength of ψ."""
        other = copy.copy(self)
        other.setup, other.problem = replace(self.setup, problem=problem), problem
        other.certifier = self.certifier.reweighted(problem)
        other.penalty, other.row_shares = block_penalty(problem)
        return other

    def follow(self, state: BlockNewtonState, problem: Problem) -> BlockNewtonState:
        """Start from the last solution, with the samples there; the blocks that the sequential strong rule keeps join
        the set."""
        state.point.dual[:] *= self.dual_ratio(problem)
        after = self._at(state.point, state.rho, state.oracle)
        after.sampled, after.loss, after.gradient = state.sampled, state.loss, state.gradient
        after.blocks = state.blocks
        share = 2.0 - problem.psi.strength / self.problem.psi.strength if self.problem.psi.strength > 0.0 else 0.0
        if state.sampled and share >= self.config.min_strong_share:
            self._violations(after, self.penalty.scaled(share)._replace(ridge=self.penalty.ridge))
            after.candidates = np.flatnonzero(after.violation > 0.0)
        return after

    # -- a step ----------------------------------------------------------------------------------------------

    def _start(self, state: BlockNewtonState) -> None:
        if not state.sampled:
            x = state.point.x
            np.clip(x, self.penalty.lower, self.penalty.upper, out=x)
            self._sample(state, state.oracle.place(x), 0.0)
        self._evaluate(state)

    def _evaluate(self, state: BlockNewtonState) -> None:
        """The whole problem at x, where the samples are known."""
        problem, penalty, point = self.problem, self.penalty, state.point
        y = problem.y_of_x(point.x)
        point.y[:] = y
        state.objective = state.loss / problem.n_samples + problem.penalty(point.x, y)
        self._violations(state, penalty)
        state.multiplier = self.row_shares.of(-self._slope(state), point.x, penalty.l1)
        point.dual[:] = state.multiplier / state.rho
        state.evaluated = True
        self._improve_bound(state)

    def _slope(self, state: BlockNewtonState) -> np.ndarray:
        """The gradient of the loss and of the squared terms of the penalty."""
        return state.gradient + self.penalty.ridge * state.point.x

    def _violations(self, state: BlockNewtonState, penalty: BlockPenalty) -> None:
        violations(
            state.point.x, self._slope(state), penalty.features, penalty.starts, penalty.l1, penalty.lower,
            penalty.upper, penalty.norm, penalty.group, state.violation,
        )  # fmt: skip
        state.violation[penalty.block[self.free]] = 0.0

    def _sizes(self, blocks: np.ndarray) -> np.ndarray:
        return self.penalty.starts[blocks + 1] - self.penalty.starts[blocks]

    def _choose(self, state: BlockNewtonState) -> FeatureSet:
        """Blocks that are not zero or never will be, those of the last set, and those that violate optimality most."""
        penalty, config = self.penalty, self.config
        nonzero = np.flatnonzero(state.point.x)
        wanted = np.zeros(penalty.n_blocks, bool)
        wanted[penalty.block[nonzero]] = True
        wanted[self.always] = True
        if self._sizes(state.blocks).sum() <= max(config.first_set, config.surplus * nonzero.size):
            wanted[state.blocks] = True
        wanted[state.candidates] = True
        state.candidates = state.candidates[:0]
        wanted[penalty.block[self.free]] = False
        violating = np.flatnonzero((state.violation > 0.0) & ~wanted)
        if violating.size:
            order = violating[np.argsort(-state.violation[violating])]
            sizes, room = self._sizes(order), max(config.first_set, int(config.growth * nonzero.size))
            wanted[order[np.cumsum(sizes) <= max(room, sizes.max())]] = True
        state.blocks = np.flatnonzero(wanted)
        return self._features_of(state.blocks)

    def _features_of(self, blocks: np.ndarray) -> FeatureSet:
        penalty, sizes = self.penalty, self._sizes(blocks)
        starts = np.concatenate([[0], np.cumsum(sizes)])
        places = np.repeat(penalty.starts[blocks] - starts[:-1], sizes) + np.arange(starts[-1])
        return FeatureSet(blocks, np.concatenate([penalty.features[places], self.free]), starts)

    def _newton_step(self, state: BlockNewtonState, chosen: FeatureSet) -> None:
        """Minimise the model on the set, and move towards its minimiser."""
        n, config, x = self.problem.n_samples, self.config, state.point.x
        features, size = chosen.features, chosen.size
        H = state.oracle.contract(chosen.contraction(x.size), state.improvement, config)
        H /= n
        diagonal = np.einsum("ii->i", H)
        metric = self.problem.typical_curvature * state.oracle.squares[features] / n
        diagonal += self.penalty.ridge[features] + config.diagonal(state.damping, metric)
        model = Eliminated.of(H, self._slope(state)[features], size)
        change = model.whole(self._minimise(state, chosen, model))
        candidate = x.copy()
        candidate[features] += change
        length, loss, improvement = self._find_length(state, change, candidate)
        self._sample(state, loss, length)
        self._evaluate(state)
        state.improvement, state.damping = improvement, config.after(state.damping, length)
        state.refusals = 0 if improvement > config.min_improvement else state.refusals + 1

    def _minimise(self, state: BlockNewtonState, chosen: FeatureSet, model: Eliminated) -> np.ndarray:
        """The change of x on the working set that minimises the model with the penalty."""
        config, penalty, features = self.config, self.penalty, chosen.features[: chosen.size]
        part = BlockModel(
            model.G, curvature_bounds(model.G, chosen.starts), chosen.starts, penalty.l1[features],
            penalty.lower[features], penalty.upper[features], penalty.norm[chosen.blocks], penalty.group[chosen.blocks],
        )  # fmt: skip
        before = state.point.x[features]
        x, q = before.copy(), model.gradient.copy()
        part.minimise(x, q, self._goal(state, before), config.max_rounds, config.sweeps, config.short_sweeps)
        return x - before

    def _goal(self, state: BlockNewtonState, x: np.ndarray) -> float:
        """The change by a sweep at which the sweeps on a model end."""
        config, violation = self.config, state.violation[state.blocks]
        if np.any(violation < 0.0):  # that of a block with a maximum norm is not known
            return self._target(state, x)
        largest = float(violation.max(initial=0.0))
        share = config.exact_tol if self.quadratic else config.inner_tol
        return min(max(share * largest, self._target(state, x)), config.max_reduction * largest)

    def _target(self, state: BlockNewtonState, x: np.ndarray) -> float:
        """The violation that goes with the tolerance: a violation of v, for which the dual point must shrink too, costs
        a gap of about 2v‖x‖₁."""
        size = 2.0 * float(np.abs(x).sum())
        return 0.0 if self.tol is None or size == 0.0 else self.tol * abs(state.objective) / size


def _free_features(penalty: BlockPenalty) -> np.ndarray:
    """Features without penalty or bound."""
    held = (penalty.l1 > 0.0) | (penalty.ridge > 0.0) | np.isfinite(penalty.lower) | np.isfinite(penalty.upper)
    return np.flatnonzero(~held & (penalty.norm[penalty.block] == 0))


def _never_zero(penalty: BlockPenalty) -> np.ndarray:
    """Which blocks no penalty makes zero."""
    return (penalty.norm == 0) & (np.bincount(penalty.block, penalty.l1) == 0.0)

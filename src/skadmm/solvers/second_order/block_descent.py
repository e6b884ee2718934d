"""Block descent: proximal Newton steps on a working set, minimised by block coordinate descent on its Gram matrix.

For penalties that separate over disjoint blocks of features (``blocks.py``): ℓ1, elastic net, groups, sparse groups,
bounds. A step

  chooses    a working set: blocks that are not zero, and as many again of those that violate optimality most;
  models     the loss to second order in the margins, on the features of the set only: G = XᵀDX/n there;
  minimises  the model and the penalty by sweeps over blocks (``block_sweeps.py``), which cost almost nothing for
             blocks that stay at zero;
  searches   along the step, in the margins, unless the loss is quadratic and the model exact;
  evaluates  all samples and features: objective, gradient, certificate.

Nothing of the size of d² is formed. For the squared loss G does not change, so it is kept and only grows with the set.

References
----------
Friedman, J., Hastie, T. and Tibshirani, R. (2010). Regularization paths for generalized linear models via coordinate
descent. Journal of Statistical Software 33.
Massias, M., Gramfort, A. and Salmon, J. (2018). Celer: a fast solver for the lasso with dual extrapolation. ICML.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from skadmm.backends import Evaluation
from skadmm.kernels.expansion import expand, loss_along
from skadmm.kernels.rows import as_matrix
from skadmm.losses import Squared
from skadmm.problem.problem import COUPLED, Problem
from skadmm.regularizers import SquaredL2, Zero, with_strength
from skadmm.solvers.base import Setup
from skadmm.solvers.dual_update import Point
from skadmm.solvers.second_order.base import SecondOrderSolver, SolverState
from skadmm.solvers.second_order.block_model import BlockModel
from skadmm.solvers.second_order.block_path import BlockPath, PathSettings
from skadmm.solvers.second_order.block_set import BlockSet
from skadmm.solvers.second_order.block_sweeps import violations
from skadmm.solvers.second_order.blocks import BlockPenalty, NotInBlocks, block_penalty
from skadmm.solvers.second_order.free_features import FreeFeatures
from skadmm.solvers.second_order.line_search import ROUNDING, shorten
from skadmm.solvers.second_order.stretch import Accuracy, Stretch


@dataclass(frozen=True)
class BlockDescentConfig:
    """Settings of the block descent solver."""

    first_set: int = 50
    """The minimum number of features that may join the working set in a step."""
    growth: float = 1.0
    """The number of features that may join in a step, as a multiple of those that are not zero."""
    max_set: int = 5000
    """The maximum number of features for which a Gram matrix is formed."""
    max_refusals: int = 6
    """Steps in a row without progress after which the solver stops: the objective does not decrease by more than
    rounding, and the gap or residual is not half of what it was at the last step with progress."""
    inner_tol: float = 1e-3
    """Sweeps on a model end when no step changes more than this share of the largest violation."""
    exact_tol: float = 1e-6
    """The same share where the loss is quadratic, so that the model is exact."""
    max_models: int = 10
    """The maximum number of models of the loss on one working set before all features are evaluated."""
    target_share: float = 1.0
    """The models on a working set end when the violation on it corresponds to this share of the tolerance."""
    min_reduction: float = 1e-3
    """The models on a working set end when the violation on it has fallen to this share."""
    max_reduction: float = 0.1
    """The models on a working set do not end before the violation has fallen to this share."""
    cheap_gram: float = 4.0
    """A Gram matrix with at most this many times d entries is formed again for every model."""
    max_rounds: int = 30
    """The maximum number of rounds on one model, each of sweeps and a Newton step on the support."""
    sweeps: int = 3
    """The number of sweeps over all blocks of the working set in one round."""
    short_sweeps: int = 5
    """The number of sweeps over the nonzero blocks after each sweep over all blocks."""
    damping: float = 1e-10
    """The diagonal of the Gram matrix is increased by this share."""
    max_eliminated: int = 10
    """Up to this many features without penalty or bound are eliminated from the models."""
    min_strong_share: float = 0.5
    """On a path, blocks that would leave zero at 2λ − λ_before join first, if that is at least this share of λ."""
    strong_growth: float = 4.0
    """The number of features that may join by this rule, as a multiple of those that are not zero; at least as many
    as in ten steps."""
    max_steps: int = 100
    """The number of steps after which another solver may take over."""
    max_passes: int = 60
    """The number of passes, with those of the models on working sets, after which another solver may take over."""
    stale_curvature: float = 0.1
    """The Gram matrix is formed again when the curvature of a sample has changed by this share of the largest."""
    set_share: float = 0.5
    """Where many strengths are solved together, the gap on the working set must fall to this share of the accuracy."""
    whole_set: float = 5.0
    """Where many strengths are solved together, all features join the set if that costs no more than this many
    gradients at every strength."""
    exact_below: float = 1e-5
    """Relative accuracies below this are confirmed on the samples, not on the Gram matrix alone."""
    lookahead: float = 0.2
    """A strength starts with the blocks that would leave zero at a strength smaller by this share of the last change of
    strength; 1 is the sequential strong rule."""
    surplus: float = 3.0
    """Zero blocks leave the set where it has this many times the nonzero features, and more than `first_set`."""
    min_curvature: float = 1e-6
    """A sample's curvature in a model is at least this share of the largest."""


@dataclass(kw_only=True)
class BlockDescentState(SolverState):
    """State of the block descent solver."""

    margins: np.ndarray
    """aᵢ·x of each sample."""
    slopes: np.ndarray
    """wᵢℓ' of each sample."""
    curvatures: np.ndarray
    """wᵢℓ'' of each sample."""
    gradient: np.ndarray
    """The gradient of the loss and of the squared terms of the penalty, at x."""
    violation: np.ndarray
    """How far each block is from optimal."""
    working: BlockSet
    """The blocks that the models are minimised over."""
    loss: float = np.inf
    """The mean loss at x."""
    evaluated: bool = False
    """True where the fields above belong to the current x."""
    begun: float = 0.0
    """Samples touched before the first step at this strength."""
    refusals: int = 0
    """Steps in a row without progress."""
    last_accuracy: float = np.inf
    """The relative gap or residual at the last step with progress."""
    kept_by_strong_rule: np.ndarray | None = None
    """The numbers of blocks that may leave zero at a new strength."""
    origin: float = 0.0
    """The strength of ψ from which the penalty is scaled; 0 before another one follows."""


class Origin(NamedTuple):
    """The problem for which a penalty over blocks was built, and that penalty."""

    problem: Problem
    penalty: BlockPenalty

    @property
    def strength(self) -> float:
        """That of ψ."""
        return float(self.problem.psi.strength)

    def scaled_to(self, strength: float) -> BlockPenalty:
        """The penalty at another strength. From one origin: ratios of ratios would add up their rounding, and a resumed
        path would differ."""
        return self.penalty.scaled(strength / self.strength)._replace(ridge=self.penalty.ridge)


class BlockDescent(SecondOrderSolver[BlockDescentState]):
    """Proximal Newton steps on working sets of blocks. A step evaluates all samples once."""

    name = "block-descent"
    summary = "Proximal Newton with working sets and block coordinate descent, for penalties over disjoint blocks"
    Config: ClassVar[type[Any]] = BlockDescentConfig
    config: BlockDescentConfig

    def __init__(self, setup: Setup, config: BlockDescentConfig | None = None) -> None:
        super().__init__(setup, config)
        problem = setup.problem
        self.penalty, self.row_shares = block_penalty(problem)
        self.origin = Origin(problem, self.penalty)
        self.samples, self.every = problem.samples(), np.arange(problem.n_samples)
        self.columns = self._read_columns(problem)
        self.transposed = self.columns.T
        self.quadratic = isinstance(problem.loss, Squared)
        self.damping = self.config.damping
        self.fixed_weights = problem.sample_weight
        self.free = self._eliminated(self._free_features())
        self.free_blocks = self.penalty.block[self.free.index]
        alone = (self.penalty.norm == 0) & (np.bincount(self.penalty.block, self.penalty.l1) == 0.0)
        alone[self.free_blocks] = False
        self.unpenalised = np.flatnonzero(alone)

    def _read_columns(self, problem: Problem) -> Any:
        """X as a matrix whose columns can be selected fast."""
        matrix = as_matrix(problem.rows)
        return matrix.tocsc() if problem.is_sparse else matrix

    def _eliminated(self, index: np.ndarray) -> FreeFeatures:
        """Free features, with their columns."""
        return FreeFeatures(self.columns, index, self.fixed_weights)

    def _free_features(self) -> np.ndarray:
        """Features without penalty or bound, where they are few enough to be eliminated."""
        penalty = self.penalty
        held = (penalty.l1 > 0.0) | (penalty.ridge > 0.0) | np.isfinite(penalty.lower) | np.isfinite(penalty.upper)
        free = np.flatnonzero(~held & (penalty.norm[penalty.block] == 0))
        return free if free.size <= self.config.max_eliminated else free[:0]

    @classmethod
    def applies(cls, problem: Problem) -> str | None:
        """The penalty must separate over disjoint blocks."""
        if problem.is_coupled:
            return COUPLED
        if not problem.backend.local_rows:
            return f"it {problem.lacks_local_rows()}"
        try:
            block_penalty(problem)
        except NotInBlocks as reason:
            return str(reason)
        return None

    def init(self, point: Point, rho: float) -> BlockDescentState:
        """The state before the first evaluation."""
        n, d = self.problem.n_samples, self.problem.n_features
        return BlockDescentState(
            point=point, rho=rho, multiplier=rho * point.dual,
            margins=np.zeros(n), slopes=np.zeros(n), curvatures=np.zeros(n), gradient=np.zeros(d),
            violation=np.zeros(self.penalty.n_blocks),
            working=self._empty_set(), begun=float(point.clock[1]),
        )  # fmt: skip

    def _empty_set(self) -> BlockSet:
        weights = self.fixed_weights if self.quadratic else np.zeros(self.problem.n_samples)
        return BlockSet(weights=weights, centre=np.zeros((len(self.free), 0)), shift=np.zeros((len(self.free), 0)))

    @property
    def squares_change(self) -> bool:
        """True where ψ has squared terms, which change with its strength."""
        return bool(self.row_shares.ridge.any())

    def step(self, state: BlockDescentState) -> None:
        """A proximal Newton step on the working set."""
        if not state.evaluated:
            self.evaluate(state)
            self._certify(state)
            self._judge(state)
            if state.finished:
                return
        before = state.objective
        moved = self._descend(state, self._choose(state))
        self._certify(state)
        self._note_progress(state, before, moved)
        self._judge(state)

    def _note_progress(self, state: BlockDescentState, before: float, moved: bool) -> None:
        """Count the steps in a row without progress."""
        accuracy = self.optimality(state)[1]
        decreased = before - state.objective > ROUNDING * abs(before)
        if moved and (decreased or accuracy < 0.5 * state.last_accuracy):
            state.last_accuracy, state.refusals = accuracy, 0
        else:
            state.refusals += 1

    def reweighted(self, problem: Problem) -> Self:
        """The same solver for another strength of ψ; columns, Gram matrices and the structure of A are shared."""
        if self.problem.psi.strength <= 0.0 or self.squares_change or not isinstance(problem.omega, (Zero, SquaredL2)):
            return super().reweighted(problem)
        other = copy.copy(self)
        other.setup, other.problem = replace(self.setup, problem=problem), problem
        other.certifier = self.certifier.reweighted(problem)
        other.penalty = self.origin.scaled_to(problem.psi.strength)
        return other

    def restore(self, state: BlockDescentState, kept: dict[str, Any]) -> None:
        """Also the penalty, from the strength at which it was built."""
        super().restore(state, kept)
        if state.origin > 0.0:
            first = self.problem.replace(psi=with_strength(self.problem.psi, state.origin))
            self.origin = Origin(first, block_penalty(first)[0])
            self.penalty = self.origin.scaled_to(self.problem.psi.strength)

    def follow(self, state: BlockDescentState, problem: Problem) -> BlockDescentState:
        """Margins, gradient and Gram matrix stay; the blocks that the sequential strong rule keeps join the set."""
        state.finished = state.stalled = False
        state.origin = self.origin.strength
        state.steps, state.refusals, state.lower_bound, state.last_accuracy = 0, 0, -np.inf, np.inf
        state.begun = float(state.point.clock[1])
        if self.squares_change:
            state.working, state.evaluated = self._empty_set(), False
        if not state.evaluated:
            return state
        state.objective = state.loss + self.problem.penalty(state.point.x, state.point.y)
        share = 2.0 - problem.psi.strength / self.problem.psi.strength if self.problem.psi.strength > 0.0 else 0.0
        if share >= self.config.min_strong_share:
            self._violations(state, self.penalty.scaled(share))
            room = max(10 * self.config.first_set, int(self.config.strong_growth * np.count_nonzero(state.point.x)))
            state.kept_by_strong_rule = self._worst(state.violation, np.flatnonzero(state.violation > 0.0), room)
        self._violations(state, self.penalty)
        return state

    def follow_many(self, state: BlockDescentState, strengths: np.ndarray, accuracy: Accuracy) -> Stretch | None:
        """The squared loss under ℓ1, ℓ2 or ℓ∞ norms of blocks: many strengths in compiled code."""
        if not self.has_stretches or self.problem.psi.strength <= 0.0:
            return None
        config = self.config
        settings = PathSettings(
            config.sweeps, config.short_sweeps, config.max_rounds, config.first_set, config.growth, config.set_share,
            config.whole_set, config.exact_below, config.lookahead, config.surplus,
        )  # fmt: skip
        state.origin = self.origin.strength
        stretch = BlockPath(self, accuracy, settings).follow(state, strengths)
        if state.evaluated:
            self._at_gradient(state)
        return stretch

    @cached_property
    def has_stretches(self) -> bool:
        """Return whether many strengths can be solved together. They cannot where bounds, unpenalised blocks, a mixture
        of norms, or squared terms that change with the strength need the general certificate."""
        penalty = self.penalty
        mixed = np.bincount(penalty.block, penalty.l1)[penalty.norm > 0].any()
        bounded = np.isfinite(penalty.lower).any() or np.isfinite(penalty.upper).any()
        single = self.problem.n_outputs == 1
        known = single and self.quadratic and self.certifier.kind != "none" and not self.squares_change
        settled = self.free.index.size == self.certifier.free.size
        return bool(known and settled and not (mixed or bounded or self.unpenalised.size))

    def finish(self, state: BlockDescentState) -> None:
        """Certify x, which is exactly sparse at all times."""
        if not state.evaluated:
            self.evaluate(state)
            self._certify(state)

    def loss_gradient(self, state: BlockDescentState) -> np.ndarray:
        """The gradient of the mean loss, without the squared terms."""
        return state.gradient - self.penalty.ridge * state.point.x

    def evaluated_at(self, state: BlockDescentState, x: np.ndarray) -> Evaluation | None:
        """The last evaluation, if it was at `x`."""
        if not state.evaluated or not np.array_equal(state.point.x, x):
            return None
        return Evaluation(state.loss, self.loss_gradient(state), state.slopes, state.margins)

    def warm_start(self, state: BlockDescentState) -> None:
        """Start from an earlier point."""
        super().warm_start(state)
        state.evaluated = False

    # -- a step ----------------------------------------------------------------------------------------------

    def evaluate(self, state: BlockDescentState) -> None:
        """Move x within its bounds, and compute margins, slopes, gradient and violations there."""
        x = state.point.x
        np.clip(x, self.penalty.lower, self.penalty.upper, out=x)
        support = np.flatnonzero(x)
        state.margins = np.asarray(self.columns[:, support] @ x[support]) if support.size else np.zeros(self.every.size)
        state.margins = state.margins.astype(np.float64, copy=False)
        state.loss = self._expand(state)
        self._from_slopes(state)

    def _expand(self, state: BlockDescentState) -> float:
        """The mean loss, slopes and curvatures at the margins."""
        return float(expand(self.samples, self.every, state.margins, state.slopes, state.curvatures)) / self.every.size

    def update_gradient(self, state: BlockDescentState) -> None:
        """Set the free coefficients to their optimum, and compute the gradient there."""
        n, x = self.every.size, state.point.x
        if len(self.free):
            change, state.loss = self.free.settle(
                state.margins, state.slopes, state.curvatures, lambda: self._expand(state), state.loss
            )
            x[self.free.index] += change
        state.gradient = np.asarray(self.transposed @ (state.slopes / n), dtype=np.float64) + self.penalty.ridge * x
        state.point.clock[1] += n

    def _from_slopes(self, state: BlockDescentState) -> None:
        """Set the free coefficients to their optimum, and compute gradient, objective and violations there."""
        self.update_gradient(state)
        self._at_gradient(state)

    def _at_gradient(self, state: BlockDescentState) -> None:
        """y, objective and violations, where the gradient is known."""
        x, penalty = state.point.x, self.penalty
        y = self.problem.y_of_x(x)
        state.point.y[:] = y
        state.objective = state.loss + self.problem.penalty(x, y)
        self._violations(state, penalty)
        state.evaluated = True

    def _violations(self, state: BlockDescentState, penalty: BlockPenalty) -> None:
        violations(
            state.point.x, state.gradient, penalty.features, penalty.starts, penalty.l1, penalty.lower, penalty.upper,
            penalty.norm, penalty.group, state.violation,
        )  # fmt: skip
        state.violation[self.free_blocks] = 0.0

    def _choose(self, state: BlockDescentState) -> BlockSet:
        """Blocks that are not zero, unpenalised ones, and those that violate optimality most."""
        penalty, config = self.penalty, self.config
        working = state.working
        inside = np.zeros(penalty.n_blocks, bool)
        inside[working.blocks] = True
        nonzero = np.flatnonzero(state.point.x)
        wanted = np.zeros(penalty.n_blocks, bool)
        wanted[penalty.block[nonzero]] = True
        wanted[self.unpenalised] = True
        wanted[self.free_blocks] = False
        room = max(config.first_set, int(config.growth * nonzero.size))
        candidates = np.flatnonzero((state.violation > 0.0) & ~inside & ~wanted)
        wanted[self._worst(state.violation, candidates, room)] = True
        if state.kept_by_strong_rule is not None:
            wanted[state.kept_by_strong_rule] = True
            state.kept_by_strong_rule = None
        if not self.quadratic:
            self._renew(state, working)
        working.grow(self, np.flatnonzero(wanted & ~inside))
        return working

    def _worst(self, violation: np.ndarray, blocks: np.ndarray, room: int) -> np.ndarray:
        """The blocks that violate optimality most, among some, with at most `room` features; at least one block."""
        if blocks.size == 0:
            return blocks
        order = blocks[np.argsort(-violation[blocks])]
        sizes = self.penalty.starts[order + 1] - self.penalty.starts[order]
        return order[np.cumsum(sizes) <= max(room, sizes.max())]

    def _renew(self, state: BlockDescentState, working: BlockSet) -> None:
        """The Gram matrix for the curvatures at x, where it is cheap to form or those of the last one are stale."""
        config, largest = self.config, float(state.curvatures.max())
        curvatures = np.maximum(state.curvatures, config.min_curvature * largest)
        changed = float(np.abs(curvatures - working.weights).max())
        cheap = working.size**2 <= config.cheap_gram * self.problem.n_features
        if changed > (0.0 if cheap else config.stale_curvature * largest):
            working.reweigh(self, curvatures)

    def _descend(self, state: BlockDescentState, working: BlockSet) -> bool:
        """Steps on models over the working set until it is near optimal; then evaluate all features. Returns False
        where x has not moved."""
        n, features, free = self.every.size, working.features, state.gradient[self.free.index]
        gradient = state.gradient[features] - free @ working.centre
        violation = largest = float(np.abs(state.violation[working.blocks]).max(initial=0.0))
        part, moved = self._on_set(working), False
        for model in range(1 if self.quadratic else self.config.max_models):
            if model:
                self._renew(state, working)
            change = self._minimise(state, working, part, gradient - free @ working.shift, violation)
            if not self.move(state, working, change, free):
                break
            moved = True
            if self.quadratic:
                break
            gradient = np.asarray(working.columns(self).T @ (state.slopes / n), dtype=np.float64)
            gradient += self.penalty.ridge[features] * state.point.x[features]
            state.point.clock[1] += round(2 * n * features.size / self.problem.n_features)
            free = state.slopes @ self.free.columns / n
            violation = self._violation_on_set(state.point.x[features], gradient - free @ working.shift, working, part)
            least = max(self._target(state, working), self.config.min_reduction * largest)
            if violation <= min(least, self.config.max_reduction * largest):
                break
        if moved:
            self._from_slopes(state)
        return moved

    def _target(self, state: BlockDescentState, working: BlockSet) -> float:
        """The violation that goes with a share of the tolerance: a violation of v, for which the dual point must shrink
        too, costs a gap of about 2v‖x‖₁."""
        size = 2.0 * float(np.abs(state.point.x[working.features]).sum())
        if self.tol is None or size == 0.0:
            return 0.0
        return self.config.target_share * self.tol * abs(state.objective) / size

    def _on_set(self, working: BlockSet) -> BlockModel:
        """The penalty on the working set; its Gram matrix changes in place."""
        penalty, features, blocks = self.penalty, working.features, working.blocks
        return BlockModel(
            working.G, working.bounds, working.starts, penalty.l1[features], penalty.lower[features],
            penalty.upper[features], penalty.norm[blocks], penalty.group[blocks],
        )  # fmt: skip

    def _violation_on_set(self, x: np.ndarray, gradient: np.ndarray, working: BlockSet, part: BlockModel) -> float:
        """The largest violation among the blocks of the working set."""
        out = np.empty(working.blocks.size)
        violations(
            x, gradient, np.arange(x.size), part.starts, part.l1, part.lower, part.upper, part.norm, part.group, out
        )
        return float(out.max(initial=0.0))

    def _minimise(
        self, state: BlockDescentState, working: BlockSet, part: BlockModel, gradient: np.ndarray, violation: float
    ) -> np.ndarray:
        """The change of x on the working set that minimises the model with the penalty."""
        config, before = self.config, state.point.x[working.features]
        x, share = before.copy(), config.exact_tol if self.quadratic else config.inner_tol
        goal = min(max(share * violation, self._target(state, working)), config.max_reduction * violation)
        if np.any(state.violation[working.blocks] < 0.0):  # that of a block with a maximum norm is not known
            goal = self._target(state, working)
        model = part._replace(bound=working.bounds)
        model.minimise(x, gradient, goal, config.max_rounds, config.sweeps, config.short_sweeps)
        return x - before

    def move(self, state: BlockDescentState, working: BlockSet, change: np.ndarray, free: np.ndarray) -> bool:
        """Move along the change as far as the objective decreases; returns False where it does not."""
        x = state.point.x
        if not (change.any() or free.any()):
            return False
        move = np.asarray(working.columns(self) @ change, dtype=np.float64)
        target = x.copy()
        target[working.features] += change
        if len(self.free):
            follows = -self.free.inverse_curvature(working.weights) @ free - working.shift @ change
            move += self.free.columns @ follows
            target[self.free.index] += follows - working.centre @ change
        length = 1.0 if self.quadratic else self._length(state, x, target, move)
        if length == 0.0:
            return False
        x[:] = target if length == 1.0 else x + length * (target - x)
        state.margins += length * move
        state.loss = self._expand(state)
        if not self.quadratic:
            state.objective = state.loss + self.problem.penalty(x)
        return True

    def _length(self, state: BlockDescentState, x: np.ndarray, target: np.ndarray, move: np.ndarray) -> float:
        n, step = self.every.size, target - x
        here, there = state.objective - state.loss, self.problem.penalty(target)
        expected = float(state.slopes @ move) / n + there - here

        def merit(t: float) -> float:
            penalty = there if t == 1.0 else self.problem.penalty(x + t * step)
            return float(loss_along(self.samples, self.every, state.margins, move, t)) / n + penalty

        return shorten(merit, state.objective, expected)

    def slow(self, state: BlockDescentState) -> bool:
        """Return whether the solver cannot improve x any more, or the working set has become too large."""
        passes = (float(state.point.clock[1]) - state.begun) / self.every.size
        long = state.steps >= self.config.max_steps or passes >= self.config.max_passes
        return super().slow(state) or (self.tol is not None and not state.finished and long)

    def _judge(self, state: BlockDescentState) -> None:
        state.finished = self.tol is not None and self.optimality(state)[1] <= self.tol
        state.stalled = not state.finished and (
            state.refusals >= self.config.max_refusals or state.working.size > self.config.max_set
        )

    def _certify(self, state: BlockDescentState) -> None:
        state.multiplier = self.row_shares.of(-state.gradient, state.point.x, self.penalty.l1)
        state.point.dual[:] = state.multiplier / state.rho
        gradient = self.loss_gradient(state)
        settled = len(self.free) and self.free.index.size == self.certifier.free.size
        if self.certifier.kind == "none" or not settled or not self.free.orthogonal(state.slopes):
            self.raise_bound(state, state.slopes, state.margins, gradient)
            return
        bounds = self.certifier.certify(state.objective, state.slopes, gradient, state.multiplier)
        state.lower_bound = max(state.lower_bound, bounds.dual)

"""Stretches of a path for the squared loss, over penalties that separate over blocks.

Where the working set holds all features, one compiled call solves many strengths (``block_sweeps.py``). Otherwise
every strength is solved on the blocks that are not zero or are about to leave zero, and then evaluated on all samples
and features: blocks that violate optimality join. Newton steps on the support take over where sweeps are slow.

References
----------
Tibshirani, R. et al. (2012). Strong rules for discarding predictors in lasso-type problems. JRSS B 74.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from skadmm.solvers.second_order.block_model import BlockModel, sweeps_are_cheaper
from skadmm.solvers.second_order.block_set import BlockSet, Columns
from skadmm.solvers.second_order.block_sweeps import bounds_of, follow_strengths, violations, workspace
from skadmm.solvers.second_order.stretch import Accuracy, Stretch

TINY = float(np.finfo(float).tiny)


class Source(Columns, Protocol):
    """The solver whose path is followed."""

    transposed: Any
    """Xᵀ."""
    free_blocks: np.ndarray
    """The blocks of the features that are eliminated."""

    def evaluate(self, state: Any) -> None:
        """Margins, slopes, gradient and violations at the point of the state."""

    def update_gradient(self, state: Any) -> None:
        """Set the free coefficients to their optimum, and compute the gradient there."""

    def move(self, state: Any, working: BlockSet, change: np.ndarray, free: np.ndarray) -> bool:
        """Move along a change of the coefficients of the working set."""


class PathSettings(NamedTuple):
    """How a stretch of a path is solved; see the Config of the solver."""

    limit: int
    """Sweeps over all blocks before a Newton step is considered."""
    short: int
    """Sweeps over the nonzero blocks after each of those, at most."""
    max_rounds: int
    """Rounds of sweeps and a Newton step, and rounds of growing the set, at one strength."""
    first_set: int
    growth: float
    """The number of features, and the multiple of those that are not zero, that may join the set in one round."""
    set_share: float
    """The gap on the working set must be at most this share of the accuracy; features outside add to it."""
    whole_set: float
    """All features join where the Gram matrix of all costs at most this many times the gradients of all strengths."""
    exact_below: float
    """Relative accuracies below this are confirmed on the samples, not on the Gram matrix alone."""
    lookahead: float
    """A strength starts with the blocks that would leave zero at a strength smaller by this share of the last change of
    strength; 1 is the sequential strong rule."""
    surplus: float
    """Zero blocks leave the set where it has this many times the nonzero features, and more than `first_set`."""


class BlockPath:
    """The squared loss and a penalty over blocks, at one strength after another."""

    def __init__(self, source: Source, accuracy: Accuracy, settings: PathSettings) -> None:
        self.source, self.accuracy, self.settings = source, accuracy, settings
        strength = source.problem.psi.strength
        self.unit = source.penalty.scaled(1.0 / strength)._replace(ridge=source.penalty.ridge)
        """The penalty at strength one."""
        self.last = strength

    def follow(self, state: Any, strengths: np.ndarray) -> Stretch:
        """The strengths from the first one on that reach their accuracy."""
        if not state.evaluated:
            self.source.evaluate(state)
        if self._whole(strengths.size):
            inside = self._inside(state.working)
            inside[self.source.free_blocks] = True
            state.working.grow(self.source, np.flatnonzero(~inside))
        inside = self._inside(state.working)
        inside[self.source.free_blocks] = True
        if inside.all():
            return self._on_all_features(state, strengths)
        return self._one_by_one(state, strengths)

    def _inside(self, working: BlockSet) -> np.ndarray:
        inside = np.zeros(self.unit.n_blocks, bool)
        inside[working.blocks] = True
        return inside

    def _whole(self, count: int) -> bool:
        """Return whether the Gram matrix of all features is cheaper than the gradients at `count` strengths."""
        problem = self.source.problem
        n, d = problem.n_samples, problem.n_features
        return bool(d <= n and d * d * problem.nnz / n <= self.settings.whole_set * count * problem.nnz)

    # -- all features in the set ---------------------------------------------------------------------------------

    def _on_all_features(self, state: Any, strengths: np.ndarray) -> Stretch:
        """Many strengths in one call."""
        source, working = self.source, state.working
        features, start = working.features, state.point.x.copy()
        model = self._model(working)
        x, q, loss = self._on_set(state, working)
        done, solutions, found = self._descend(model, strengths, x, q, loss, self.accuracy)
        d = source.problem.n_features
        full = np.zeros((done, d))
        full[:, features] = solutions[:done]
        if len(source.free):
            changes = solutions[:done] - start[features]
            full[:, source.free.index] = start[source.free.index] - changes @ (working.centre + working.shift).T
        bounds = found[:done]
        if self.accuracy.relative < self.settings.exact_below:
            bounds = self._exact(full, strengths[:done])
        squares = 0.5 * (full**2 @ self.unit.ridge)
        gaps = bounds[:, 1] - bounds[:, 2]
        good = gaps <= self.accuracy.allowed(bounds[:, 1])
        count = done if good.all() else int(np.argmin(good))
        if count:
            state.point.x[:] = full[count - 1]
            state.evaluated = False
            self.last = strengths[count - 1]
        n = source.problem.n_samples
        state.point.clock[1] += n
        return Stretch(
            full[:count],
            (bounds[:, 0] - squares)[:count],
            self._relative(bounds[:count]),
            np.full(count, n / max(count, 1)),
        )

    def _exact(self, full: np.ndarray, strengths: np.ndarray) -> np.ndarray:
        """Loss, objective and lower bound of solutions, from the samples."""
        source, unit = self.source, self.unit
        problem = source.problem
        n, weights = problem.n_samples, problem.sample_weight
        out = np.empty((strengths.size, 3))
        slopes = np.asarray(source.columns @ full.T, dtype=np.float64) - problem.target[:, None]
        slopes = weights[:, None] * slopes if weights.size else slopes
        if len(source.free):
            slopes = source.free.projected(slopes)
        gradients = np.asarray(source.transposed @ slopes, dtype=np.float64).T / n + unit.ridge * full
        for k, strength in enumerate(strengths):
            out[k, 0] = self._loss(slopes[:, k]) + 0.5 * float(unit.ridge @ full[k] ** 2)
            out[k, 1:] = self._bounds(full[k], gradients[k], strength, out[k, 0])
            if len(source.free) and not source.free.orthogonal(slopes[:, k]):
                out[k, 2] = -np.inf
        return out

    def _loss(self, slopes: np.ndarray) -> float:
        """The mean loss at which the samples have these slopes; a sample of weight zero has neither."""
        problem = self.source.problem
        weights = problem.sample_weight
        if not weights.size:
            return 0.5 * float(slopes @ slopes) / problem.n_samples
        counted = weights > 0.0
        return 0.5 * float(slopes[counted] @ (slopes[counted] / weights[counted])) / problem.n_samples

    # -- a set that grows ----------------------------------------------------------------------------------------

    def _one_by_one(self, state: Any, strengths: np.ndarray) -> Stretch:
        """Every strength is evaluated on all samples and features."""
        source, solved = self.source, []
        for strength in strengths:
            touched = int(state.point.clock[1])
            objective, dual = self._solve_at(state, strength, self._screen(state, strength))
            if not objective - dual <= self.accuracy.allowed(objective):
                break
            self.last = strength
            solved.append((state.point.x.copy(), state.loss, objective, dual, int(state.point.clock[1]) - touched))
        if not solved:
            return Stretch(np.empty((0, source.problem.n_features)), np.empty(0), np.empty(0), np.empty(0))
        numbers = np.array([entry[1:] for entry in solved], dtype=float)
        return Stretch(
            np.array([entry[0] for entry in solved]), numbers[:, 0], self._relative(numbers[:, :3]), numbers[:, 3]
        )

    def _screen(self, state: Any, strength: float) -> np.ndarray:
        """The blocks to start a strength with: those that are not zero, and those that would leave zero at a strength
        a little smaller, as by the sequential strong rule, if the gradient changes no faster than the strength."""
        working, settings = state.working, self.settings
        nonzero = state.point.x != 0.0
        active = np.zeros(self.unit.n_blocks, bool)
        active[self.unit.block[nonzero]] = True
        active[self.source.free_blocks] = False
        threshold = strength - settings.lookahead * (self.last - strength)
        active[self._leaving(state, max(threshold, 0.5 * strength), active)] = True
        if working.size > settings.surplus * np.count_nonzero(nonzero) + settings.first_set:
            working.keep(self.source, active[working.blocks])
        working.grow(self.source, np.flatnonzero(active & ~self._inside(working)))
        return active

    def _leaving(self, state: Any, strength: float, active: np.ndarray) -> np.ndarray:
        """The blocks that are not active and violate optimality most at a strength, as many as may join at once."""
        settings, starts = self.settings, self.unit.starts
        violation = self._violations(state, strength)
        violation[active] = 0.0
        candidates = np.flatnonzero(violation > 0.0)
        if candidates.size == 0:
            return candidates
        order = candidates[np.argsort(-violation[candidates])]
        sizes = starts[order + 1] - starts[order]
        room = max(settings.first_set, int(settings.growth * np.count_nonzero(state.point.x)), int(sizes.max()))
        return order[np.cumsum(sizes) <= room]

    def _solve_at(self, state: Any, strength: float, active: np.ndarray) -> tuple[float, float]:
        """Solve one strength, starting with the blocks `active`; returns the objective and a lower bound."""
        source, settings, working = self.source, self.settings, state.working
        share, single = settings.set_share, np.array([strength])
        objective, dual = self._full_bounds(state, strength)
        for _ in range(settings.max_rounds):
            if objective - dual <= self.accuracy.allowed(objective):
                break
            grew = self._grow(state, strength, active)
            free = state.gradient[source.free.index]
            x, q, loss = self._on_set(state, working)
            change = self._change(working, active, single, x, q, loss, self.accuracy.scaled(share))
            moved = source.move(state, working, change, free)
            if not (moved or grew):
                break
            source.update_gradient(state)
            objective, dual = self._full_bounds(state, strength)
            if not grew:
                share *= 0.1
        return objective, dual

    def _change(
        self, working: BlockSet, active: np.ndarray, strength: np.ndarray, x: np.ndarray, q: np.ndarray, loss: float,
        accuracy: Accuracy,
    ) -> np.ndarray:  # fmt: skip
        """The change of the coefficients of the set, of which the active blocks move."""
        change, moving = np.zeros(x.size), active[working.blocks]
        model = self._model(working)
        if moving.all():
            part, features = model, np.arange(x.size)
        else:
            part, features = model.part(moving)
        here, slopes = x[features], q[features]
        self._descend(part, strength, here, slopes, loss, accuracy)
        change[features] = here - x[features]
        return change

    def _grow(self, state: Any, strength: float, active: np.ndarray) -> bool:
        """Make blocks that violate optimality active, and return whether there were any."""
        chosen = self._leaving(state, strength, active)
        active[chosen] = True
        state.working.grow(self.source, chosen[~self._inside(state.working)[chosen]])
        return bool(chosen.size)

    # -- on a working set ----------------------------------------------------------------------------------------

    def _model(self, working: BlockSet) -> BlockModel:
        """The Gram matrix and the penalty at strength one on the set."""
        unit, features, blocks = self.unit, working.features, working.blocks
        return BlockModel(
            working.G, working.bounds, working.starts, unit.l1[features], unit.lower[features], unit.upper[features],
            unit.norm[blocks], unit.group[blocks],
        )  # fmt: skip

    def _on_set(self, state: Any, working: BlockSet) -> tuple[np.ndarray, np.ndarray, float]:
        """x and the gradient on the set, the free features eliminated, and the loss with the squared terms."""
        features, free = working.features, state.gradient[self.source.free.index]
        q = state.gradient[features] - free @ (working.centre + working.shift)
        return state.point.x[features], q, self._with_squares(state)

    def _with_squares(self, state: Any) -> float:
        return float(state.loss + 0.5 * (self.unit.ridge @ state.point.x**2))

    def _descend(
        self, model: BlockModel, strengths: np.ndarray, x: np.ndarray, q: np.ndarray, loss: float, accuracy: Accuracy
    ) -> tuple[int, np.ndarray, np.ndarray]:
        """Solve the strengths in turn; x and q end at the last one. Returns how many were solved, their solutions, and
        (loss, objective, bound) of each."""
        settings, strengths = self.settings, np.ascontiguousarray(strengths)  # slices would be compiled for again
        solutions, found = np.empty((strengths.size, x.size)), np.full((strengths.size, 3), np.nan)
        scaled = model._replace(l1=model.l1.copy(), group=model.group.copy())
        work, index = workspace(x.size, model.norm.size, settings.short), np.arange(x.size)
        done, rounds, before = 0, 0, np.inf
        while done < strengths.size:
            last = done
            done, loss = follow_strengths(
                model.l1, model.group, scaled, work, index, strengths, done, x, q, loss, accuracy, settings.limit,
                settings.short, solutions, found,
            )  # fmt: skip
            if done == strengths.size:
                break
            if done > last:
                rounds, before = 0, np.inf
            rounds += 1
            if rounds > settings.max_rounds:
                break
            gap, goal = found[done, 1] - found[done, 2], accuracy.allowed(found[done, 1])
            if not sweeps_are_cheaper(x, goal, before, gap):
                from_x, from_q = x.copy(), q.copy()
                scaled.newton_step(x, q)
                loss += 0.5 * float((x - from_x) @ (from_q + q))
            before = gap
        return done, solutions, found

    # -- bounds --------------------------------------------------------------------------------------------------

    def _violations(self, state: Any, strength: float) -> np.ndarray:
        penalty, out = self.unit, np.empty(self.unit.n_blocks)
        violations(
            state.point.x, state.gradient, penalty.features, penalty.starts, strength * penalty.l1, penalty.lower,
            penalty.upper, penalty.norm, strength * penalty.group, out,
        )  # fmt: skip
        out[self.source.free_blocks] = 0.0
        return out

    def _bounds(self, x: np.ndarray, gradient: np.ndarray, strength: float, loss: float) -> tuple[float, float]:
        unit = self.unit
        return bounds_of(x, gradient, unit.features, unit.starts, unit.l1, unit.norm, unit.group, strength, loss)

    def _full_bounds(self, state: Any, strength: float) -> tuple[float, float]:
        """The objective and a lower bound from all samples and features."""
        source, x = self.source, state.point.x
        free = source.free
        objective, dual = self._bounds(x, state.gradient, strength, self._with_squares(state))
        if not len(free) or free.orthogonal(state.slopes):
            return objective, dual
        slopes = free.projected(state.slopes)
        if not free.orthogonal(slopes):
            return objective, -np.inf
        gradient = np.asarray(source.transposed @ slopes, dtype=np.float64) / slopes.size + self.unit.ridge * x
        state.point.clock[1] += slopes.size
        loss = self._loss(slopes) + 0.5 * float(self.unit.ridge @ x**2)
        return objective, self._bounds(x, gradient, strength, loss)[1]

    def _relative(self, bounds: np.ndarray) -> np.ndarray:
        """The relative gaps."""
        gaps = np.maximum(bounds[:, 1] - bounds[:, 2], 0.0)
        return gaps / np.maximum(np.maximum(np.abs(bounds[:, 1]), self.accuracy.floor), TINY)

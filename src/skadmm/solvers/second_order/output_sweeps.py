"""Block descent for several outputs with large working sets: no Gram matrix is formed.

The steps are those of :mod:`~skadmm.solvers.second_order.output_descent`, but the model of the loss on the working set
is minimised by sweeps over the columns of X (:mod:`~skadmm.solvers.second_order.column_sweeps`). Memory and time grow
with the entries of the columns and the number of outputs, not with the square of the number of coefficients.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, cast

import numpy as np
import scipy.sparse as sp

from skadmm.io.state import transient
from skadmm.kernels.rows import CSRRows, DenseRows
from skadmm.problem.problem import Problem
from skadmm.solvers.second_order.block_descent import BlockDescentState
from skadmm.solvers.second_order.block_model import BlockModel
from skadmm.solvers.second_order.block_set import BlockSet, Columns
from skadmm.solvers.second_order.column_sweeps import SweepModel, SweepPenalty, column_sweeps, diagonal_bounds
from skadmm.solvers.second_order.output_columns import OutputBlockSet, OutputColumns, PairColumns
from skadmm.solvers.second_order.output_descent import OutputDescent, OutputDescentConfig


@dataclass(frozen=True)
class OutputSweepsConfig(OutputDescentConfig):
    """Settings of block descent for several outputs without a Gram matrix."""

    first_set: int = 1000
    """The minimum number of coefficients that may join the working set in a step."""
    growth: float = 2.0
    """The number of coefficients that may join in a step, as a multiple of those that are not zero."""
    min_reduction: float = 1e-2
    """The models on a working set end when the violation on it has fallen to this share."""
    max_set: int = 100_000_000
    """The maximum number of coefficients in the working set."""
    inner_tol: float = 0.1
    """Sweeps on a model end when no step changes more than this share of the largest violation."""
    sweeps: int = 20
    """The number of sweeps over all blocks of the working set on one model."""
    short_sweeps: int = 10
    """The number of sweeps over the nonzero blocks after each sweep over all blocks."""
    max_passes: int = 10_000
    """Passes after which another solver may take over."""


class FeatureColumns(OutputColumns):
    """Columns of X, dense or sparse, stored once for all outputs."""

    def __getitem__(self, key: tuple[slice, np.ndarray]) -> PairColumns:
        """The columns of some pairs of a feature and an output."""
        return self.pairs(np.asarray(key[1]))


@dataclass(kw_only=True)
class SweepSet(OutputBlockSet):
    """A working set of pairs of a feature and an output, without their Gram matrix."""

    model: SweepModel | None = transient(default=None)
    """The columns, as the sweeps read them; built again where it is missing."""

    def grow(self, source: Columns, blocks: np.ndarray) -> None:
        """Add blocks to the set; the pairs of a block are ordered by feature."""
        if blocks.size == 0:
            return
        penalty = source.penalty
        sizes = penalty.starts[blocks + 1] - penalty.starts[blocks]
        ends = np.cumsum(sizes)
        new = penalty.features[np.repeat(penalty.starts[blocks] - ends + sizes, sizes) + np.arange(ends[-1])]
        width = source.columns.width
        new = new[np.lexsort((new // width, new % width, np.repeat(np.arange(blocks.size), sizes)))]
        self.blocks = np.concatenate([self.blocks, blocks])
        self.features = np.concatenate([self.features, new])
        self.starts = np.concatenate([self.starts, self.starts[-1] + ends])
        self.centre = self.shift = np.zeros((0, self.size))  # no feature is eliminated
        self.X = self.model = None

    def columns(self, source: Columns) -> PairColumns:
        """The columns of X, one per pair."""
        if self.X is None:
            self.X = source.columns[:, self.features]
        return self.X

    def reweigh(self, source: Columns, curvatures: np.ndarray) -> None:
        """The curvatures of the samples in the next model."""
        self.weights = curvatures

    def as_model(self, source: Columns) -> SweepModel:
        """The model of the loss for the curvatures of the samples."""
        pairs = self.columns(source)
        if self.model is None:
            self.model = self._runs(pairs)
        h = self.weights.reshape(-1, pairs.outputs)
        total = h.sum(axis=1) if self.problem.is_coupled else np.empty(0)
        return self.model._replace(h=h, inverse=np.divide(1.0, total, out=np.zeros_like(total), where=total > 0.0))

    def _runs(self, pairs: PairColumns) -> SweepModel:
        """Runs of consecutive pairs of one feature within a block, and the columns as rows."""
        begins = np.ones(self.size, bool)
        begins[1:] = pairs.position[1:] != pairs.position[:-1]
        begins[self.starts[:-1]] = True
        first = np.flatnonzero(begins)
        base = pairs.base
        columns = CSRRows(base.data, base.indices, base.indptr, base.shape[0]) if sp.issparse(base) else None
        return SweepModel(
            DenseRows(np.ascontiguousarray(base.T)) if columns is None else columns,
            np.append(first, self.size), pairs.position[first], pairs.output,
            np.searchsorted(first, self.starts), np.empty((0, 0)), np.empty(0), 1.0 / pairs.shape[0],
        )  # fmt: skip


class OutputSweeps(OutputDescent):
    """Block descent over pairs of a feature and an output, by sweeps over columns."""

    name = "output-sweeps"
    summary = "Block descent for several outputs by sweeps over columns, for large working sets"
    Config: ClassVar[type[Any]] = OutputSweepsConfig
    config: OutputSweepsConfig

    def _read_columns(self, problem: Problem) -> Any:
        return FeatureColumns(problem.rows)

    def _free_features(self) -> np.ndarray:
        """None: features without a penalty take part in the sweeps."""
        return np.empty(0, np.int64)

    def _empty_set(self) -> BlockSet:
        weights = self.fixed_weights if self.quadratic else np.zeros(self.problem.n_samples)
        none = np.zeros((0, 0))
        return SweepSet(weights=weights, centre=none, shift=none, problem=self.problem, samples=self.samples)

    def _renew(self, state: BlockDescentState, working: BlockSet) -> None:
        """Every model has the curvatures at x."""
        curvatures = state.curvatures.copy()
        if not self.problem.is_coupled:
            np.maximum(curvatures, self.config.min_curvature * float(curvatures.max()), out=curvatures)
        working.reweigh(self, curvatures)

    def _minimise(
        self, state: BlockDescentState, working: BlockSet, part: BlockModel, gradient: np.ndarray, violation: float
    ) -> np.ndarray:
        """The change of x on the working set that nearly minimises the model with the penalty."""
        config, before = self.config, state.point.x[working.features]
        share = config.exact_tol if self.quadratic else config.inner_tol
        goal = min(max(share * violation, self._target(state, working)), config.max_reduction * violation)
        model, ridge = cast(SweepSet, working).as_model(self), self.penalty.ridge[working.features]
        penalty = SweepPenalty(part.starts, part.l1, ridge, part.lower, part.upper, part.norm, part.group)
        bounds, x = np.empty(working.size), before.copy()
        diagonal_bounds(model, ridge, config.damping, bounds)
        slopes = state.slopes.reshape(model.h.shape).copy()
        made = column_sweeps(
            model, penalty, bounds, x, slopes, goal, config.sweeps, config.short_sweeps, np.empty((3, x.size))
        )
        state.point.clock[1] += round(2 * made * self.every.size * working.size / self.problem.n_features)
        return x - before

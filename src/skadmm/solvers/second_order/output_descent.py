"""Block descent for several outputs: multi-task regression, the multinomial loss, and groups across outputs.

The steps are those of :mod:`~skadmm.solvers.second_order.block_descent`. Columns of X are stored once for all outputs,
and the models of a loss that joins the margins of a sample have its exact Hessian: entry ((j, c), (j', c')) of the Gram
matrix is (1/n) Σᵢ aᵢⱼ aᵢⱼ' (δ_cc' hᵢ_c − hᵢ_c hᵢ_c' / Σ hᵢ).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from skadmm.problem.problem import Problem
from skadmm.solvers.second_order.block_descent import BlockDescent, BlockDescentConfig, BlockDescentState
from skadmm.solvers.second_order.block_set import BlockSet
from skadmm.solvers.second_order.blocks import NotInBlocks, block_penalty
from skadmm.solvers.second_order.free_features import FreeFeatures
from skadmm.solvers.second_order.output_columns import OutputBlockSet, OutputColumns, OutputFreeFeatures


@dataclass(frozen=True)
class OutputDescentConfig(BlockDescentConfig):
    """Settings of block descent for several outputs."""

    max_eliminated_entries: int = 20_000_000
    """Free features are eliminated where their columns, over all outputs, have no more entries than this."""
    damping: float = 1e-9
    """The diagonal of the Gram matrix is increased by this share."""
    max_passes: int = 400
    """Passes after which another solver takes over. A dense model over all pairs is slower still, so it comes late."""


class OutputDescent(BlockDescent):
    """Block descent over pairs of a feature and an output."""

    name = "output-descent"
    summary = "Block descent for several outputs, with the exact Hessian of losses that join them"
    Config: ClassVar[type[Any]] = OutputDescentConfig
    config: OutputDescentConfig

    @classmethod
    def applies(cls, problem: Problem) -> str | None:
        """Several outputs, and a penalty that separates over disjoint blocks."""
        if problem.n_outputs == 1:
            return "the problem has one output"
        if not problem.backend.local_rows:
            return f"it {problem.lacks_local_rows()}"
        try:
            block_penalty(problem)
        except NotInBlocks as reason:
            return str(reason)
        return None

    def _read_columns(self, problem: Problem) -> Any:
        return OutputColumns(problem.rows)

    def _eliminated(self, index: np.ndarray) -> FreeFeatures:
        return OutputFreeFeatures(self.columns, index, self.fixed_weights, self.samples)

    def _free_features(self) -> np.ndarray:
        penalty = self.penalty
        held = (penalty.l1 > 0.0) | (penalty.ridge > 0.0) | np.isfinite(penalty.lower) | np.isfinite(penalty.upper)
        free = np.flatnonzero(~held & (penalty.norm[penalty.block] == 0))
        fits = free.size * self.problem.n_samples <= self.config.max_eliminated_entries
        return free if fits else free[:0]

    def _empty_set(self) -> BlockSet:
        weights = self.fixed_weights if self.quadratic else np.zeros(self.problem.n_samples)
        none = np.zeros((len(self.free), 0))
        return OutputBlockSet(
            weights=weights, centre=none, shift=none.copy(), problem=self.problem, samples=self.samples
        )

    def _renew(self, state: BlockDescentState, working: BlockSet) -> None:
        """The Gram matrix for the curvatures at x, where those of the last one are stale."""
        config, largest = self.config, float(state.curvatures.max())
        curvatures = state.curvatures.copy()
        if not self.problem.is_coupled:
            np.maximum(curvatures, config.min_curvature * largest, out=curvatures)
        changed = float(np.abs(curvatures - working.weights).max())
        cheap = working.size**2 <= config.cheap_gram * self.problem.n_features
        if changed > (0.0 if cheap else config.stale_curvature * largest):
            working.reweigh(self, curvatures)

"""Hessians of losses that join the margins of a sample: Σ_i (diag(hᵢ) − hᵢ hᵢᵀ / Σ hᵢ) ⊗ aᵢ aᵢᵀ."""

from collections.abc import Callable

import numpy as np

from skadmm.kernels.expansion import sum_outer
from skadmm.kernels.rows import StackedRows


def block_weights(h: np.ndarray, one: int, other: int) -> np.ndarray:
    """Entry (one, other) of diag(h) − h hᵀ / Σ h for each sample; h has a row per sample."""
    total = h.sum(axis=1)
    shared = h[:, one] * h[:, other] / np.where(total > 0.0, total, 1.0)
    return h[:, one] - shared if one == other else -shared


def sum_coupled_outer(
    rows: StackedRows,
    index: np.ndarray,
    curvatures: np.ndarray,
    work: float,
    rows_per_chunk: int,
    between: Callable[[], None],
) -> np.ndarray:
    """The sum over the samples in `index`, both triangles; `curvatures` has the h of one sample after the other."""
    k, d = rows.outputs, rows.width
    out, h = np.empty((k * d, k * d)), curvatures.reshape(-1, k)
    for one in range(k):
        for other in range(one + 1):
            weights = block_weights(h, one, other)
            block = sum_outer(rows.rows, index, weights, work / (k * k), rows_per_chunk, between)
            out[one * d : (one + 1) * d, other * d : (other + 1) * d] = block
            out[other * d : (other + 1) * d, one * d : (one + 1) * d] = block
    return out

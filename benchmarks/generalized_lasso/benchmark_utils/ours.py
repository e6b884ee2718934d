"""skadmm's first-order methods under benchopt's callback."""

from collections.abc import Callable
from typing import Any

import numpy as np

from skadmm import Problem, solve

FOREVER = 1e9


def balanced_block(problem: Problem) -> int:
    """The block size at which the work on rows and on x and y is even."""
    per_row = max(1.0, problem.nnz / problem.n_samples)
    return int(np.clip((problem.n_features + problem.constraint.A.nnz) / per_row, 1, max(1, problem.n_samples // 32)))


def run(problem: Problem, method: str, callback: Callable[[Any], bool], **options: Any) -> None:
    """`callback` is told of every second pass, and answers whether to go on. Recording is on its clock."""
    solve(
        problem, method, passes=FOREVER, batch_size=balanced_block(problem), record_every=2.0,
        callback=lambda snapshot: not callback(snapshot), **options,
    )  # fmt: skip


def compile_kernels(problem: Problem, method: str, **options: Any) -> None:
    """A short run, so that no clock meets the compiler."""
    few = problem.subset(np.arange(min(64, problem.n_samples)))
    solve(few, method, passes=1, step=1e-3, batch_size=2, record_every=0, **options)

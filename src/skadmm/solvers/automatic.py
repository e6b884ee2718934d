"""method="auto": which method, with which settings, and why, in one sentence."""

from typing import NamedTuple

from skadmm.problem.problem import Problem
from skadmm.solvers.select import refusal


class Choice(NamedTuple):
    """A method, the block size for it, and the reason."""

    method: str
    batch_size: int
    reason: str


def choose(problem: Problem) -> Choice:
    """The method for `problem`: second-order where d² fits and the model allows it, else SA-IU-ADMM in blocks."""
    n, d = problem.n_samples, problem.n_features
    why_not = refusal(problem)
    if why_not is None:
        return Choice("san-admm", 1, f"auto chose san-admm: second-order steps suit {n} samples of {d} features")
    if not (problem.backend.local_rows or problem.backend.block_memory):
        return Choice("batch-iu-admm", problem.backend.natural_batch, f"auto chose batch-iu-admm: {why_not}")
    if not problem.backend.local_rows:
        return Choice("sa-iu-admm", problem.backend.natural_batch, f"auto chose sa-iu-admm: {why_not}")
    per_row = max(1.0, problem.nnz / n)
    balanced = (d + problem.constraint.A.nnz) / per_row
    batch_size = int(min(max(1.0, balanced), max(1, n // 32)))
    return Choice(
        "sa-iu-admm",
        batch_size,
        f"auto chose sa-iu-admm: {why_not}; blocks of {batch_size} balance the work on rows and on x and y",
    )

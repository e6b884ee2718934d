"""skadmm's first-order methods under benchopt's callback: what their solver files share."""

from typing import Any

import numpy as np

from benchmark_utils.reference import as_problem
from skadmm import Problem, solve

FOREVER = 1e9


def balanced_block(problem: Problem) -> int:
    """The block size at which the work on rows equals the work on x and y."""
    per_row = max(1.0, problem.nnz / problem.n_samples)
    return int(np.clip((problem.n_features + problem.constraint.A.nnz) / per_row, 1, max(1, problem.n_samples // 32)))


class FirstOrder:
    """A benchopt solver without its name, its method's name and its parameters."""

    requirements = ["pip::skadmm"]
    sampling_strategy = "callback"
    method: str
    precondition: str

    def set_objective(self, X: Any, target: Any, loss: str, A: Any, strength: float) -> None:
        self.problem = as_problem(X, target, loss, A, strength)

    def warm_up(self) -> None:
        """A short run on a few rows, so that compilation is not timed."""
        few = self.problem.subset(np.arange(min(64, self.problem.n_samples)))
        solve(few, self.method, passes=1, step=1e-3, batch_size=2, record_every=0, precondition=self.precondition)

    def run(self, callback: Any) -> None:
        """`callback` is called after every second pass and returns whether to continue. Recording is timed."""

        def after_record(snapshot: Any) -> bool:
            self.x, self.y = snapshot.x, snapshot.y
            return not callback()

        solve(
            self.problem, self.method, passes=FOREVER, batch_size=balanced_block(self.problem), record_every=2.0,
            callback=after_record, precondition=self.precondition,
        )  # fmt: skip

    def get_result(self) -> dict[str, Any]:
        return {"x": self.x, "y": self.y}

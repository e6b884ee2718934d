import numpy as np
from benchmark_utils.reference import as_problem
from benchopt import BaseSolver

from skadmm import solve


class Solver(BaseSolver):
    """san-admm with a number of passes, as others are given iterations; each run starts from zero."""

    name = "skadmm-san-admm"
    requirements = ["pip::skadmm"]
    sampling_strategy = "iteration"
    references = ["Zhong and Kwok (2013). Fast stochastic alternating direction method of multipliers. ICML."]

    def set_objective(self, X, target, loss, A, strength):
        self.problem = as_problem(X, target, loss, A, strength)
        self.x = np.zeros(X.shape[1])

    def warm_up(self):
        self.run(1)

    def get_next(self, quarters):
        return quarters + 1 if quarters < 16 else int(1.3 * quarters)

    def run(self, quarters):
        """A quarter of a pass per iteration of benchopt."""
        if quarters == 0:
            self.x = np.zeros_like(self.x)
            return
        self.x = solve(self.problem, "san-admm", passes=quarters / 4, record_every=0).x

    def get_result(self):
        return {"x": self.x}

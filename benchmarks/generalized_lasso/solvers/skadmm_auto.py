from benchmark_utils.reference import as_problem
from benchopt import BaseSolver

from skadmm import solve


class Solver(BaseSolver):
    """skadmm as a user calls it: method="auto" to a tolerance, certificate included."""

    name = "skadmm-auto"
    requirements = ["pip::skadmm"]
    sampling_strategy = "tolerance"
    references = ["Zhong and Kwok (2013). Fast stochastic alternating direction method of multipliers. ICML."]

    def set_objective(self, X, target, loss, A, strength):
        self.problem = as_problem(X, target, loss, A, strength)

    def warm_up(self):
        self.run(0.1)

    def get_next(self, tolerance):
        return 0.3 if tolerance > 1 else max(tolerance / 3, 1e-12)

    def run(self, tolerance):
        self.result = solve(self.problem, tol=min(tolerance, 1.0), passes=2000, record_every=0)

    def get_result(self):
        return {"x": self.result.x, "y": self.result.y}

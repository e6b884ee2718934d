import numpy as np
from benchmark_utils.baselines import SmoothedFista
from benchmark_utils.problem import NO_GROUPS, structure_of
from benchopt import BaseSolver


class Solver(BaseSolver):
    """|·| rounded within ±width; a smaller width is more accurate and slower."""

    name = "fista-smoothed"
    requirements = ["pip::numba"]
    sampling_strategy = "callback"
    parameters = {"width": [1e-2, 1e-4]}
    references = ["Nesterov (2005). Smooth minimization of non-smooth functions. Math. Programming."]

    def skip(self, X, target, loss, A, strength):
        return NO_GROUPS if structure_of(A) == "groups" else (False, None)

    def set_objective(self, X, target, loss, A, strength):
        self.method = SmoothedFista(X, target, loss, A, strength, self.width)

    def warm_up(self):
        self.run_once()

    def run(self, callback):
        method = self.method
        method.x, method.ahead, method.momentum = np.zeros_like(method.x), np.zeros_like(method.x), 1.0
        while callback():
            method.step()

    def get_result(self):
        return {"x": self.method.x.copy()}

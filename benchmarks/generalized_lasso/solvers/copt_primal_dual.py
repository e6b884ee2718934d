import copt
import numpy as np
from benchmark_utils.peers import soft
from benchmark_utils.problem import NO_GROUPS, loss_and_slopes, structure_of
from benchopt import BaseSolver


class Solver(BaseSolver):
    """copt's primal-dual method with line search, any A."""

    name = "copt-primal-dual"
    requirements = ["pip::copt"]
    sampling_strategy = "callback"
    references = ["Malitsky and Pock (2018). A first-order primal-dual algorithm with linesearch. SIAM J. Optim."]

    def skip(self, X, target, loss, A, strength):
        return NO_GROUPS if structure_of(A) == "groups" else (False, None)

    def set_objective(self, X, target, loss, A, strength):
        self.A, self.strength, self.x = A, strength, np.zeros(X.shape[1])

        def value_and_gradient(x, return_gradient=True):
            value, slopes = loss_and_slopes(loss, X @ x, target)
            return (value, X.T @ slopes / X.shape[0]) if return_gradient else value

        self.value_and_gradient = value_and_gradient

    def run(self, callback):
        self.x = np.zeros_like(self.x)

        def record(state):
            self.x = state["x"]
            return callback()

        callback()
        copt.minimize_primal_dual(
            self.value_and_gradient, self.x, prox_2=lambda v, step: soft(v, step * self.strength), L=self.A,
            callback=record, tol=0.0, max_iter=10**7, step_size=1.0,
        )  # fmt: skip

    def get_result(self):
        return {"x": np.array(self.x)}

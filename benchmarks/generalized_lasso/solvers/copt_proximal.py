import copt
import numpy as np
from benchmark_utils.peers import soft
from benchmark_utils.problem import loss_and_slopes, structure_of
from benchopt import BaseSolver
from copt import tv_prox


class Solver(BaseSolver):
    """copt's accelerated proximal gradient with the exact proximal step of the chain or of ‖x‖₁."""

    name = "copt-fista"
    requirements = ["pip::copt"]
    sampling_strategy = "callback"

    def skip(self, X, target, loss, A, strength):
        if structure_of(A) not in ("chain", "identity"):
            return True, "it needs the proximal step of ‖Ax‖₁, known for a chain and the identity only"
        return False, None

    def set_objective(self, X, target, loss, A, strength):
        self.x, chain = np.zeros(X.shape[1]), structure_of(A) == "chain"

        def value_and_gradient(x):
            value, slopes = loss_and_slopes(loss, X @ x, target)
            return value, X.T @ slopes / X.shape[0]

        self.value_and_gradient = value_and_gradient
        self.prox = (
            (lambda v, step: tv_prox.prox_tv1d(v, step * strength))
            if chain
            else (lambda v, step: soft(v, step * strength))
        )

    def warm_up(self):
        self.run_once()

    def run(self, callback):
        self.x = np.zeros_like(self.x)

        def record(state):
            self.x = state["x"]
            return callback()

        callback()
        copt.minimize_proximal_gradient(
            self.value_and_gradient, self.x, prox=self.prox, jac=True, accelerated=True, callback=record, tol=0.0,
            max_iter=10**7,
        )  # fmt: skip

    def get_result(self):
        return {"x": np.array(self.x)}

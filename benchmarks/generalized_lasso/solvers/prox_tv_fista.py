import numpy as np
from benchmark_utils.problem import gradient, smoothness, structure_of
from benchopt import BaseSolver
from prox_tv import tv1_1d


class Solver(BaseSolver):
    """FISTA in NumPy, restarted when it turns, with prox_tv's exact proximal step of the chain."""

    name = "prox-tv-fista"
    requirements = ["pip::prox_tv"]
    sampling_strategy = "callback"

    def skip(self, X, target, loss, A, strength):
        return (True, "A is not a chain") if structure_of(A) != "chain" else (False, None)

    def set_objective(self, X, target, loss, A, strength):
        self.gradient = lambda x: gradient(X, target, loss, x)
        self.step, self.strength = 1.0 / smoothness(X, loss), strength
        self.x = np.zeros(X.shape[1])

    def run(self, callback):
        self.x = ahead = np.zeros_like(self.x)
        momentum = 1.0
        while callback():
            new = tv1_1d(ahead - self.step * self.gradient(ahead), self.step * self.strength)
            turned = (ahead - new) @ (new - self.x) > 0
            following = 1.0 if turned else 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum**2))
            ahead = new if turned else new + (momentum - 1.0) / following * (new - self.x)
            self.x, momentum = new, following

    def get_result(self):
        return {"x": self.x}

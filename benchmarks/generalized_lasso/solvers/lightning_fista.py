import numpy as np
import scipy.sparse as sp
from benchmark_utils.problem import smoothness, structure_of
from benchopt import BaseSolver
from lightning.regression import FistaRegressor


class Solver(BaseSolver):
    """lightning's FISTA with the proximal step of the chain or of ‖x‖₁, at a constant step.

    Its constant step takes the curvature of ½‖Xx − b‖² to be 1, so X is divided by the root of what it is.
    """

    name = "lightning-fista"
    requirements = ["pip::sklearn-contrib-lightning"]
    sampling_strategy = "callback"

    def skip(self, X, target, loss, A, strength):
        if structure_of(A) not in ("chain", "identity"):
            return True, "it needs the proximal step of ‖Ax‖₁, known for a chain and the identity only"
        if loss != "squared":
            return True, "the logistic loss of its FISTA is the multinomial one only"
        return False, None

    def set_objective(self, X, target, loss, A, strength):
        n = X.shape[0]
        self.scale = 1.0 / np.sqrt(n * smoothness(X, loss))
        scaled = self.scale * X
        self.X, self.target = (sp.csr_matrix(scaled) if sp.issparse(X) else np.ascontiguousarray(scaled)), target
        self.penalty = "tv1d" if structure_of(A) == "chain" else "l1"
        self.alpha = n * strength * self.scale
        self.x = np.zeros(X.shape[1])

    def run(self, callback):
        self.x = np.zeros_like(self.x)

        def record(model):
            self.x = self.scale * model.coef_
            return None if callback() else "enough"

        callback()
        FistaRegressor(
            C=1.0, alpha=self.alpha, penalty=self.penalty, max_steps=0, max_iter=10**7, callback=record
        ).fit(self.X, self.target)  # fmt: skip

    def get_result(self):
        return {"x": np.array(self.x).ravel()}

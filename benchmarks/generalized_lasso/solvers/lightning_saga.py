import numpy as np
import scipy.sparse as sp
from benchmark_utils.problem import structure_of
from benchopt import BaseSolver
from lightning.classification import SAGAClassifier
from lightning.regression import SAGARegressor


class Solver(BaseSolver):
    """lightning's SAGA where A = I, with the step of the largest row or one that it searches for."""

    name = "lightning-saga"
    requirements = ["pip::sklearn-contrib-lightning"]
    sampling_strategy = "callback"
    parameters = {"eta": ["auto", "line-search"]}

    def skip(self, X, target, loss, A, strength):
        if structure_of(A) != "identity":
            return True, "its SAGA has ‖x‖₁ only; on a chain see lightning-fista"
        return False, None

    def set_objective(self, X, target, loss, A, strength):
        self.X, self.target = (sp.csr_matrix(X) if sp.issparse(X) else np.ascontiguousarray(X)), target
        self.kind = SAGARegressor if loss == "squared" else SAGAClassifier
        self.options = {"loss": "squared" if loss == "squared" else "log", "penalty": "l1", "beta": strength}
        self.x = np.zeros(X.shape[1])

    def run(self, callback):
        self.x = np.zeros_like(self.x)

        def keep(model):
            self.x = model.coef_
            return None if callback() else "enough"

        callback()
        self.kind(eta=self.eta, alpha=0.0, max_iter=10**7, tol=0.0, random_state=0, callback=keep, **self.options).fit(
            self.X, self.target
        )

    def get_result(self):
        return {"x": np.array(self.x).ravel()}

import numpy as np
import scipy.sparse as sp
from benchmark_utils.peers import Estimator
from benchopt import BaseSolver
from lightning.classification import CDClassifier
from lightning.regression import CDRegressor


class Solver(Estimator, BaseSolver):
    """lightning's coordinate descent where A = I. Its losses are sums, the squared one without a half."""

    name = "lightning-cd"
    requirements = ["pip::sklearn-contrib-lightning"]
    parameters = {"shrinking": [True, False]}

    def set_objective(self, X, target, loss, A, strength):
        self.X, self.target = (sp.csc_matrix(X) if sp.issparse(X) else np.asfortranarray(X)), target
        options = {
            "penalty": "l1",
            "alpha": strength,
            "shrinking": self.shrinking,
            "max_iter": 10**6,
            "random_state": 0,
        }
        n = X.shape[0]
        if loss == "squared":
            self.model = CDRegressor(C=0.5 / n, **options)
        else:
            self.model = CDClassifier(loss="log", C=1.0 / n, max_steps=30, **options)

    def warm_up(self):
        """Nothing is compiled while it runs."""

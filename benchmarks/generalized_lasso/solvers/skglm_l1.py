import numpy as np
import skglm
from benchmark_utils.peers import Estimator
from benchopt import BaseSolver


class Solver(Estimator, BaseSolver):
    """skglm where A = I: working sets and Anderson-accelerated coordinate descent, or proximal Newton."""

    name = "skglm"
    requirements = ["pip::skglm"]

    def set_objective(self, X, target, loss, A, strength):
        self.X, self.target = (np.asfortranarray(X) if isinstance(X, np.ndarray) else X.tocsc()), target
        kind = skglm.Lasso if loss == "squared" else skglm.SparseLogisticRegression
        self.model = kind(alpha=strength, fit_intercept=False, max_iter=1000)
        self.unit = strength  # skglm measures the largest violation of the optimality conditions

import numpy as np
import skglm
from benchmark_utils.peers import Estimator
from benchmark_utils.problem import structure_of
from benchopt import BaseSolver


class Solver(Estimator, BaseSolver):
    """skglm where A = I or with groups: working sets, Anderson-accelerated coordinate descent, proximal Newton."""

    name = "skglm"
    requirements = ["pip::skglm"]
    structures = ("identity", "groups")

    def skip(self, X, target, loss, A, strength):
        if structure_of(A) == "groups" and loss != "squared":
            return True, "its group lasso has the squared loss only"
        return super().skip(X, target, loss, A, strength)

    def set_objective(self, X, target, loss, A, strength):
        self.X, self.target = (np.asfortranarray(X) if isinstance(X, np.ndarray) else X.tocsc()), target
        settings = {"alpha": strength, "fit_intercept": False, "max_iter": 1000}
        if structure_of(A) == "groups":
            self.model = skglm.GroupLasso(groups=A.group_size, **settings)
        else:
            self.model = (skglm.Lasso if loss == "squared" else skglm.SparseLogisticRegression)(**settings)
        self.unit = strength  # skglm measures the largest violation of the optimality conditions

import celer
import numpy as np
from benchmark_utils.peers import Estimator
from benchmark_utils.problem import structure_of
from benchopt import BaseSolver


class Solver(Estimator, BaseSolver):
    """celer where A = I or with groups: working sets from the duality gap."""

    name = "celer"
    requirements = ["pip::celer"]
    structures = ("identity", "groups")

    def skip(self, X, target, loss, A, strength):
        if structure_of(A) == "groups" and loss != "squared":
            return True, "its group lasso has the squared loss only"
        return super().skip(X, target, loss, A, strength)

    def set_objective(self, X, target, loss, A, strength):
        self.X, self.target = (np.asfortranarray(X) if isinstance(X, np.ndarray) else X.tocsc()), target
        if structure_of(A) == "groups":
            self.model = celer.GroupLasso(groups=A.group_size, alpha=strength, fit_intercept=False, max_iter=1000)
        elif loss == "squared":
            self.model = celer.Lasso(alpha=strength, fit_intercept=False, max_iter=1000)
        else:
            self.model = celer.LogisticRegression(C=1.0 / (X.shape[0] * strength), fit_intercept=False, max_iter=1000)

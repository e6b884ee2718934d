import celer
import numpy as np
from benchmark_utils.peers import Estimator
from benchopt import BaseSolver


class Solver(Estimator, BaseSolver):
    """celer where A = I: working sets from the duality gap."""

    name = "celer"
    requirements = ["pip::celer"]

    def set_objective(self, X, target, loss, A, strength):
        self.X, self.target = (np.asfortranarray(X) if isinstance(X, np.ndarray) else X.tocsc()), target
        if loss == "squared":
            self.model = celer.Lasso(alpha=strength, fit_intercept=False, max_iter=1000)
        else:
            self.model = celer.LogisticRegression(C=1.0 / (X.shape[0] * strength), fit_intercept=False, max_iter=1000)

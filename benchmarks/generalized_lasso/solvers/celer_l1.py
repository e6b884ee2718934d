import warnings

import celer
import numpy as np
from benchmark_utils.peers import next_tolerance
from benchmark_utils.problem import structure_of
from benchopt import BaseSolver


class Solver(BaseSolver):
    """celer where A = I: working sets from the duality gap."""

    name = "celer"
    requirements = ["pip::celer"]
    sampling_strategy = "tolerance"

    def skip(self, X, target, loss, A, strength):
        return (True, "A is not the identity") if structure_of(A) != "identity" else (False, None)

    def set_objective(self, X, target, loss, A, strength):
        self.X, self.target = (np.asfortranarray(X) if isinstance(X, np.ndarray) else X.tocsc()), target
        if loss == "squared":
            self.model = celer.Lasso(alpha=strength, fit_intercept=False, max_iter=1000)
        else:
            self.model = celer.LogisticRegression(C=1.0 / (X.shape[0] * strength), fit_intercept=False, max_iter=1000)

    def warm_up(self):
        self.run(0.1)

    def get_next(self, tolerance):
        return next_tolerance(tolerance)

    def run(self, tolerance):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.model.set_params(tol=min(tolerance, 1.0)).fit(self.X, self.target)

    def get_result(self):
        return {"x": np.ravel(self.model.coef_)}

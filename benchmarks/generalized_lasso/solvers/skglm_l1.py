import warnings

import numpy as np
import skglm
from benchmark_utils.peers import next_tolerance
from benchmark_utils.problem import structure_of
from benchopt import BaseSolver


class Solver(BaseSolver):
    """skglm where A = I: working sets and Anderson-accelerated coordinate descent, or proximal Newton."""

    name = "skglm"
    requirements = ["pip::skglm"]
    sampling_strategy = "tolerance"

    def skip(self, X, target, loss, A, strength):
        return (True, "A is not the identity") if structure_of(A) != "identity" else (False, None)

    def set_objective(self, X, target, loss, A, strength):
        self.X, self.target = (np.asfortranarray(X) if isinstance(X, np.ndarray) else X.tocsc()), target
        kind = skglm.Lasso if loss == "squared" else skglm.SparseLogisticRegression
        self.model = kind(alpha=strength, fit_intercept=False, max_iter=1000)

    def warm_up(self):
        self.run(0.1)

    def get_next(self, tolerance):
        return next_tolerance(tolerance)

    def run(self, tolerance):
        # skglm's tolerance is the largest violation of the optimality conditions, in units of the strength here.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.model.set_params(tol=min(tolerance, 1.0) * self.model.alpha).fit(self.X, self.target)

    def get_result(self):
        return {"x": np.ravel(self.model.coef_)}

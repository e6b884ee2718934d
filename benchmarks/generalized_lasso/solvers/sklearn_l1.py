import warnings

import numpy as np
from benchmark_utils.peers import next_tolerance
from benchmark_utils.problem import structure_of
from benchopt import BaseSolver
from sklearn.linear_model import Lasso, LogisticRegression


class Solver(BaseSolver):
    """scikit-learn where A = I: coordinate descent for the squared loss, liblinear or SAGA for the logistic."""

    name = "scikit-learn"
    requirements = ["pip::scikit-learn"]
    sampling_strategy = "tolerance"
    parameters = {"solver": ["liblinear", "saga"]}

    def skip(self, X, target, loss, A, strength):
        if structure_of(A) != "identity":
            return True, "A is not the identity"
        if loss == "squared" and self.solver == "saga":
            return True, "Lasso has one solver"
        return False, None

    def set_objective(self, X, target, loss, A, strength):
        self.X, self.target = (np.asfortranarray(X) if loss == "squared" and isinstance(X, np.ndarray) else X), target
        if loss == "squared":
            self.model = Lasso(alpha=strength, fit_intercept=False, max_iter=10**7)
        else:
            self.model = LogisticRegression(
                C=1.0 / (X.shape[0] * strength), l1_ratio=1.0, fit_intercept=False, solver=self.solver, max_iter=10**5,
                random_state=0,
            )  # fmt: skip

    def get_next(self, tolerance):
        return next_tolerance(tolerance)

    def run(self, tolerance):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.model.set_params(tol=min(tolerance, 1.0)).fit(self.X, self.target)

    def get_result(self):
        return {"x": np.ravel(self.model.coef_)}

import numpy as np
from benchmark_utils.peers import Estimator
from benchopt import BaseSolver
from sklearn.linear_model import Lasso, LogisticRegression


class Solver(Estimator, BaseSolver):
    """scikit-learn where A = I: coordinate descent for the squared loss, liblinear or SAGA for the logistic."""

    name = "scikit-learn"
    requirements = ["pip::scikit-learn"]
    parameters = {"solver": ["liblinear", "saga"]}

    def skip(self, X, target, loss, A, strength):
        if loss == "squared" and self.solver == "saga":
            return True, "Lasso has one solver"
        return super().skip(X, target, loss, A, strength)

    def set_objective(self, X, target, loss, A, strength):
        self.X, self.target = (np.asfortranarray(X) if loss == "squared" and isinstance(X, np.ndarray) else X), target
        if loss == "squared":
            self.model = Lasso(alpha=strength, fit_intercept=False, max_iter=10**7)
        else:
            self.model = LogisticRegression(
                C=1.0 / (X.shape[0] * strength), l1_ratio=1.0, fit_intercept=False, solver=self.solver, max_iter=10**5,
                random_state=0,
            )  # fmt: skip

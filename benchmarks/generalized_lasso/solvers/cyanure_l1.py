import logging
import warnings
from functools import partial

import numpy as np
import scipy.sparse as sp
from benchmark_utils.peers import next_tolerance
from benchmark_utils.problem import structure_of
from benchopt import BaseSolver
from cyanure.estimators import Classifier, Regression


class Solver(BaseSolver):
    """cyanure where A = I: accelerated variance reduction with its own restarts."""

    name = "cyanure"
    requirements = ["pip::cyanure"]
    sampling_strategy = "tolerance"

    def skip(self, X, target, loss, A, strength):
        return (True, "A is not the identity") if structure_of(A) != "identity" else (False, None)

    def set_objective(self, X, target, loss, A, strength):
        logging.getLogger("cyanure").setLevel(logging.ERROR)
        self.X, self.target = (sp.csr_matrix(X) if sp.issparse(X) else np.ascontiguousarray(X)), target
        common = {"penalty": "l1", "lambda_1": strength, "fit_intercept": False, "max_iter": 10**5, "n_threads": 1}
        kind = Regression if loss == "squared" else partial(Classifier, loss="logistic")
        self.model = kind(**common, verbose=False)

    def warm_up(self):
        self.run(0.1)

    def get_next(self, tolerance):
        return next_tolerance(tolerance)

    def run(self, tolerance):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.model.set_params(tol=min(tolerance, 1.0)).fit(self.X, self.target)

    def get_result(self):
        return {"x": np.ravel(self.model.coef_).astype(float)}

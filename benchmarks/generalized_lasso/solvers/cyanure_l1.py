import logging
from functools import partial

import numpy as np
import scipy.sparse as sp
from benchmark_utils.peers import Estimator
from benchopt import BaseSolver
from cyanure.estimators import Classifier, Regression


class Solver(Estimator, BaseSolver):
    """cyanure where A = I: accelerated variance reduction with its own restarts."""

    name = "cyanure"
    requirements = ["pip::cyanure"]

    def set_objective(self, X, target, loss, A, strength):
        logging.getLogger("cyanure").setLevel(logging.ERROR)
        self.X, self.target = (sp.csr_matrix(X) if sp.issparse(X) else np.ascontiguousarray(X)), target
        common = {"penalty": "l1", "lambda_1": strength, "fit_intercept": False, "max_iter": 10**5, "n_threads": 1}
        kind = Regression if loss == "squared" else partial(Classifier, loss="logistic")
        self.model = kind(**common, verbose=False)

import numpy as np
import scipy.optimize
from benchmark_utils.baselines import smoothed_objective
from benchmark_utils.peers import EnoughError
from benchmark_utils.problem import NO_GROUPS, structure_of
from benchopt import BaseSolver


class Solver(BaseSolver):
    """SciPy's L-BFGS on the penalty rounded within ±width."""

    name = "lbfgs-smoothed"
    requirements = ["pip::scipy"]
    sampling_strategy = "callback"
    parameters = {"width": [1e-3, 1e-5]}

    def skip(self, X, target, loss, A, strength):
        return NO_GROUPS if structure_of(A) == "groups" else (False, None)

    def set_objective(self, X, target, loss, A, strength):
        self.arguments = (X, target, loss, A, strength, self.width)
        self.x = np.zeros(X.shape[1])

    def run(self, callback):
        self.x = np.zeros(self.arguments[0].shape[1])

        def record(x):
            self.x = x
            if not callback():
                raise EnoughError

        try:
            record(self.x)
            scipy.optimize.minimize(
                lambda x: smoothed_objective(*self.arguments, x), self.x, jac=True, method="L-BFGS-B", callback=record,
                options={"maxiter": 10**7, "maxfun": 10**8, "ftol": 0.0, "gtol": 1e-14, "maxcor": 20},
            )  # fmt: skip
        except EnoughError:
            pass

    def get_result(self):
        return {"x": self.x.copy()}

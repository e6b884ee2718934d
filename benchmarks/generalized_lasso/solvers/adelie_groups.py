import adelie
import numpy as np
import scipy.sparse as sp
from benchmark_utils.peers import next_tolerance
from benchmark_utils.problem import structure_of
from benchopt import BaseSolver


class Solver(BaseSolver):
    """adelie where A = I or with groups: block coordinate descent along a path, here of one strength."""

    name = "adelie"
    requirements = ["pip::adelie"]
    sampling_strategy = "tolerance"

    def skip(self, X, target, loss, A, strength):
        if structure_of(A) not in ("identity", "groups"):
            return True, "A is neither the identity nor groups"
        return False, None

    def set_objective(self, X, target, loss, A, strength):
        starts = np.arange(0, X.shape[1], getattr(A, "group_size", 1))
        self.settings = {
            "X": adelie.matrix.sparse(sp.csc_matrix(X)) if sp.issparse(X) else np.asfortranarray(X),
            "glm": adelie.glm.gaussian(target) if loss == "squared" else adelie.glm.binomial(1.0 * (target > 0)),
            "groups": starts, "penalty": np.ones(starts.size), "lmda_path": np.array([strength]),
            "intercept": False, "progress_bar": False, "early_exit": False,
        }  # fmt: skip

    def warm_up(self):
        self.run(0.1)

    def get_next(self, tolerance):
        return next_tolerance(tolerance)

    def run(self, tolerance):
        tolerance = min(tolerance, 1.0) ** 2  # its criterion is a squared change
        self.x = adelie.grpnet(**self.settings, tol=tolerance, irls_tol=tolerance).betas[-1].toarray().ravel()

    def get_result(self):
        return {"x": self.x}

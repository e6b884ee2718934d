import numpy as np
import regreg.api as rr
import scipy.sparse as sp
from benchmark_utils.problem import NO_GROUPS, structure_of
from benchopt import BaseSolver


class Solver(BaseSolver):
    """regreg's container: FISTA, the proximal step of λ‖Ax‖₁ by FISTA on its dual."""

    name = "regreg"
    requirements = ["pip::regreg"]
    sampling_strategy = "iteration"

    def skip(self, X, target, loss, A, strength):
        return NO_GROUPS if structure_of(A) == "groups" else (False, None)

    def set_objective(self, X, target, loss, A, strength):
        n, d = X.shape
        self.x = np.zeros(d)
        rows = sp.csr_matrix(X) if sp.issparse(X) else X
        if loss == "logistic":
            fit = rr.glm.logistic(rows, (target + 1) / 2, coef=1.0 / n)
        else:
            fit = rr.squared_error(rows, target, coef=1.0 / n)
        penalty = rr.l1norm.linear(sp.csr_matrix(A), lagrange=strength)
        self.make = lambda: rr.FISTA(rr.container(fit, penalty))

    def run(self, n_iterations):
        self.x = np.zeros_like(self.x)
        if n_iterations == 0:
            return
        solver = self.make()
        solver.fit(tol=1e-16, max_its=int(n_iterations), min_its=1)
        self.x = np.array(solver.composite.coefs)

    def get_result(self):
        return {"x": self.x}

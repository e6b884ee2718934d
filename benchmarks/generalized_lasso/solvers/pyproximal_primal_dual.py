import numpy as np
import pylops
import pyproximal
import scipy.sparse as sp
from benchmark_utils.peers import EnoughError
from benchmark_utils.problem import NO_GROUPS, largest_eigenvalue, smoothness, structure_of
from benchopt import BaseSolver


class Solver(BaseSolver):
    """pyproximal's Chambolle–Pock method (primal-dual), or its linearised ADMM."""

    name = "pyproximal"
    requirements = ["pip::pyproximal"]
    sampling_strategy = "callback"
    parameters = {"method": ["primal-dual", "linearised-admm"]}

    def skip(self, X, target, loss, A, strength):
        if structure_of(A) == "groups":
            return NO_GROUPS
        if loss != "squared":
            return True, "it needs the proximal step of the loss, which it has for the squared loss only"
        if sp.issparse(X):
            return True, "its proximal step of the loss factorises a dense X"
        return False, None

    def set_objective(self, X, target, loss, A, strength):
        d = X.shape[1]
        self.X, self.target = X, target
        self.penalty = pyproximal.L1(sigma=strength)
        self.A = pylops.MatrixMult(sp.csr_matrix(A))
        top = largest_eigenvalue(lambda v: A.T @ (A @ v), d)
        self.tau = 1.0 / smoothness(X, loss)
        self.mu = 0.99 / (self.tau * top)
        self.x, self.top = np.zeros(d), top

    def loss(self):
        """(1/2n)‖Xx − b‖² through its Gram matrix: the proximal step then solves with order d, not n. On the clock."""
        n = self.X.shape[0]
        values, vectors = np.linalg.eigh(self.X.T @ self.X / n)
        root = (vectors * np.sqrt(np.maximum(values, 0.0))).T
        right = vectors.T @ (self.X.T @ self.target / n) / np.sqrt(np.maximum(values, 1e-300))
        return pyproximal.L2(Op=pylops.MatrixMult(root), b=right, densesolver="factorize")

    def warm_up(self):
        self.run_once()

    def run(self, callback):
        self.x = np.zeros_like(self.x)

        def record(x):
            self.x = x
            if not callback():
                raise EnoughError

        try:
            record(self.x)
            fit = self.loss()
            if self.method == "primal-dual":
                pyproximal.optimization.primaldual.PrimalDual(
                    fit, self.penalty, self.A, np.zeros_like(self.x), tau=self.tau, mu=self.mu, niter=10**7,
                    callback=record,
                )  # fmt: skip
            else:
                pyproximal.optimization.primal.LinearizedADMM(
                    fit, self.penalty, self.A, np.zeros_like(self.x), tau=10 * self.tau,
                    mu=0.99 * 10 * self.tau / self.top, niter=10**7, callback=record,
                )  # fmt: skip
        except EnoughError:
            pass

    def get_result(self):
        return {"x": np.array(self.x)}

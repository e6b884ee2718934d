import numpy as np
import spams
from benchmark_utils.problem import structure_of
from benchopt import BaseSolver

MOST = 10**7  # its counter is a 32-bit integer


class Solver(BaseSolver):
    """SPAMS's FISTA with the proximal step of the fused lasso or of ‖x‖₁. Its squared loss is a sum: λ is times n."""

    name = "spams"
    requirements = ["pip::spams-bin"]
    sampling_strategy = "iteration"

    def skip(self, X, target, loss, A, strength):
        if structure_of(A) not in ("chain", "identity"):
            return True, "it needs the proximal step of ‖Ax‖₁, known for a chain and the identity only"
        if not isinstance(X, np.ndarray):
            return True, "X is sparse"
        return False, None

    def set_objective(self, X, target, loss, A, strength):
        self.X, self.target = np.asfortranarray(X), np.asfortranarray(target[:, None])
        self.options = {
            "loss": "square" if loss == "squared" else "logistic",
            "regul": "fused-lasso" if structure_of(A) == "chain" else "l1",
            "lambda1": strength * (X.shape[0] if loss == "squared" else 1),
        }
        self.x = np.zeros(X.shape[1])

    def run(self, n_iterations):
        start = np.zeros((self.X.shape[1], 1), order="F")
        if n_iterations == 0:
            self.x = start.ravel()
            return
        answer = spams.fistaFlat(
            self.target, self.X, start, max_it=min(int(n_iterations), MOST), tol=1e-16, numThreads=1, intercept=False,
            **self.options,
        )  # fmt: skip
        self.x = np.ravel(answer[0] if isinstance(answer, tuple) else answer)

    def get_result(self):
        return {"x": self.x}

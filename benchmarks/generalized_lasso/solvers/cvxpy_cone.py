import cvxpy as cp
import numpy as np
from benchmark_utils.problem import NO_GROUPS, structure_of
from benchopt import BaseSolver

LIMIT = {"logistic": 600_000, "squared": 3_000_000}
ECOS_LIMIT = 600_000
SECONDS = 60.0


class Solver(BaseSolver):
    """CVXPY with a conic solver. The translation into a cone program is cached, and off the clock."""

    name = "cvxpy"
    requirements = ["pip::cvxpy", "pip::clarabel", "pip::scs", "pip::ecos"]
    sampling_strategy = "tolerance"
    parameters = {"solver": ["CLARABEL", "SCS", "ECOS"]}

    def skip(self, X, target, loss, A, strength):
        if structure_of(A) == "groups":
            return NO_GROUPS
        entries = X.nnz if hasattr(X, "nnz") else X.size
        if entries > min(LIMIT[loss], ECOS_LIMIT if self.solver == "ECOS" else LIMIT[loss]):
            return True, f"{entries:,} entries of X: the cone program would not end within any limit here"
        if self.solver not in cp.installed_solvers():
            return True, f"{self.solver} is not installed"
        return False, None

    def set_objective(self, X, target, loss, A, strength):
        self.x = np.zeros(X.shape[1])
        self.variable = cp.Variable(X.shape[1])
        margins = X @ self.variable
        if loss == "logistic":
            fit = cp.sum(cp.logistic(cp.multiply(-target, margins))) / X.shape[0]
        else:
            fit = cp.sum_squares(margins - target) / (2 * X.shape[0])
        self.program = cp.Problem(cp.Minimize(fit + strength * cp.norm1(A @ self.variable)))

    def warm_up(self):
        self.program.get_problem_data(self.solver)

    def get_next(self, tolerance):
        return 1e-2 if tolerance > 1 else max(tolerance / 100, 1e-12)

    def run(self, tolerance):
        self.x = np.zeros_like(self.x)
        if tolerance > 1:
            return
        options = {
            "CLARABEL": {
                "tol_gap_abs": tolerance,
                "tol_gap_rel": tolerance,
                "tol_feas": tolerance,
                "time_limit": SECONDS,
            },
            "SCS": {"eps_abs": tolerance, "eps_rel": tolerance, "max_iters": 10**6, "time_limit_secs": SECONDS},
            "ECOS": {"abstol": tolerance, "reltol": tolerance, "feastol": tolerance, "max_iters": 200},
        }[self.solver]
        try:
            self.program.solve(solver=self.solver, **options)
        except cp.error.SolverError:  # numerical trouble at a tight tolerance: the run shows as no better
            return
        if self.variable.value is not None:
            self.x = self.variable.value

    def get_result(self):
        return {"x": self.x}

"""minimise (1/n) Σ ℓ(aᵢ·x, bᵢ) + λ‖Ax‖₁: the generalized lasso, with the logistic or the squared loss.

Where A is ``Groups``, the penalty is λ Σ_g ‖x_g‖₂.
"""

import numpy as np
from benchmark_utils.problem import gradient_seconds, objective
from benchmark_utils.reference import optimum
from benchopt import BaseObjective
from benchopt.stopping_criterion import StoppingCriterion


class Reached(StoppingCriterion):
    """Stop below a relative suboptimality of 1e-8, and on benchopt's own limits of time and runs."""

    def __init__(self, level=1e-8, **options):
        self.level = level
        super().__init__(level=level, **options)

    def get_runner_instance(self, **options):
        self.strategy = None  # one criterion serves solvers of every sampling strategy
        return super().get_runner_instance(**options)

    def check_convergence(self, objective_list):
        gap = objective_list[-1]["objective_suboptimality"]
        return gap <= self.level, float(np.clip(np.log10(max(gap, 1e-300)) / np.log10(self.level), 0.0, 1.0))


class Objective(BaseObjective):
    name = "Generalized lasso"
    min_benchopt_version = "1.6"
    requirements = ["pip::skadmm"]
    test_dataset_name = "simulated"
    stopping_criterion = Reached()
    sampling_strategy = "callback"

    def set_data(self, X, target, loss, A, strength):
        self.data = {"X": X, "target": target, "loss": loss, "A": A, "strength": strength}
        self.best = optimum(**self.data)
        self.gradient_seconds = gradient_seconds(X, target, loss)

    def get_objective(self):
        return self.data

    def get_one_result(self):
        return {"x": np.zeros(self.data["X"].shape[1])}

    def evaluate_result(self, x, y=None):
        """The value is computed here from x alone, whatever the solver reports."""
        value = objective(**self.data, x=x)
        best = self.best
        return {
            "value": value,
            "suboptimality": (value - best.value) / abs(best.value),
            "gap": (value - best.bound) / abs(value),
            "feasibility": 0.0 if y is None else float(np.linalg.norm(self.data["A"] @ x - y)),
            "gradient_seconds": self.gradient_seconds,
        }

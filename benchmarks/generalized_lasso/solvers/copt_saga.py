import contextlib

import copt
import copt.loss
import copt.penalty
import numpy as np
import scipy.sparse as sp
from benchmark_utils.peers import EnoughError
from benchmark_utils.problem import structure_of
from benchopt import BaseSolver


class Solver(BaseSolver):
    """copt's SAGA: with the proximal step of ‖x‖₁, or the three-operator variant on a chain."""

    name = "copt-saga"
    requirements = ["pip::copt"]
    sampling_strategy = "callback"
    references = ["Pedregosa, Fatras and Casotto (2019). Proximal splitting meets variance reduction. AISTATS."]

    def skip(self, X, target, loss, A, strength):
        if structure_of(A) not in ("chain", "identity"):
            return True, "it needs proximal steps of blocks of A, given for a chain and the identity only"
        return False, None

    def set_objective(self, X, target, loss, A, strength):
        d = X.shape[1]
        self.chain, self.x = structure_of(A) == "chain", np.zeros(d)
        self.X = sp.csr_matrix(X)
        self.target = (target + 1) / 2 if loss == "logistic" else target
        made = copt.loss.LogLoss(self.X, self.target) if loss == "logistic" else copt.loss.SquareLoss(self.X, target)
        self.derivative = made.partial_deriv
        squares = np.asarray(self.X.multiply(self.X).sum(axis=1)).max()
        self.step = 1.0 / (3.0 * squares * (0.25 if loss == "logistic" else 1.0))
        if self.chain:
            penalty = copt.penalty.FusedLasso(strength)
            self.proxes = penalty.prox_1_factory(d), penalty.prox_2_factory(d)
        else:
            self.proxes = (copt.penalty.L1Norm(strength).prox_factory(d),)

    def warm_up(self):
        self.run_once()

    def run(self, callback):
        self.x = np.zeros_like(self.x)

        fresh = True

        def record(state):
            nonlocal fresh
            if fresh:  # copt compiles its epoch inside every call, before the first callback: not on the clock
                callback.start()
                fresh = False
            self.x = state["z" if self.chain else "x"]
            if not callback():
                raise EnoughError

        method = copt.minimize_vrtos if self.chain else copt.minimize_saga
        with contextlib.suppress(EnoughError):
            method(self.derivative, self.X, self.target, np.zeros_like(self.x), self.step, *self.proxes,
                   callback=record, max_iter=10**6, tol=0.0, verbose=0)  # fmt: skip

    def get_result(self):
        return {"x": np.array(self.x)}

from benchmark_utils.baselines import CondatVu
from benchmark_utils.problem import NO_GROUPS, structure_of
from benchopt import BaseSolver


class Solver(BaseSolver):
    """Full gradients, diagonal steps, compiled. The setup (a power iteration) is off the clock."""

    name = "condat-vu"
    requirements = ["pip::numba"]
    sampling_strategy = "callback"
    parameters = {"balance": [0.01, 1.0]}
    references = ["Condat (2013). A primal-dual splitting method. JOTA.", "Pock and Chambolle (2011). ICCV."]

    def skip(self, X, target, loss, A, strength):
        return NO_GROUPS if structure_of(A) == "groups" else (False, None)

    def set_objective(self, X, target, loss, A, strength):
        self.data = {"X": X, "target": target, "loss": loss, "A": A, "strength": strength}
        self.method = CondatVu(**self.data, balance=self.balance)

    def warm_up(self):
        self.run_once()

    def run(self, callback):
        method = self.method
        method.x[:], method.w[:], method._pull[:] = 0.0, 0.0, 0.0
        while callback():
            method.step()

    def get_result(self):
        return {"x": self.method.x.copy()}

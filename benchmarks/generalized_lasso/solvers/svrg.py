from benchmark_utils import ours
from benchmark_utils.reference import as_problem
from benchopt import BaseSolver

METHOD = "svrg-iu-admm"


class Solver(BaseSolver):
    name = "skadmm-svrg-iu-admm"
    requirements = ["pip::skadmm"]
    sampling_strategy = "callback"
    parameters = {"precondition": ["diagonal"]}
    references = ["Zheng and Kwok (2016). Fast-and-light stochastic ADMM. IJCAI."]

    def set_objective(self, X, target, loss, A, strength):
        self.problem = as_problem(X, target, loss, A, strength)
        self.x = None

    def warm_up(self):
        ours.compile_kernels(self.problem, METHOD, precondition=self.precondition)

    def run(self, callback):
        def told(snapshot):
            self.x, self.y = snapshot.x, snapshot.y
            return callback()

        ours.run(self.problem, METHOD, told, precondition=self.precondition)

    def get_result(self):
        return {"x": self.x, "y": self.y}

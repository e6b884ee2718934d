from benchmark_utils.ours import FirstOrder
from benchopt import BaseSolver


class Solver(FirstOrder, BaseSolver):
    name = "skadmm-svrg-iu-admm"
    method = "svrg-iu-admm"
    parameters = {"precondition": ["diagonal"]}
    references = ["Zheng and Kwok (2016). Fast-and-light stochastic ADMM. IJCAI."]

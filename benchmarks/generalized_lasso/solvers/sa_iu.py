from benchmark_utils.ours import FirstOrder
from benchopt import BaseSolver


class Solver(FirstOrder, BaseSolver):
    name = "skadmm-sa-iu-admm"
    method = "sa-iu-admm"
    parameters = {"precondition": ["diagonal"]}
    references = ["Zhong and Kwok (2013). Fast stochastic alternating direction method of multipliers. ICML."]

from benchmark_utils.ours import FirstOrder
from benchopt import BaseSolver


class Solver(FirstOrder, BaseSolver):
    name = "skadmm-saga-iu-admm"
    method = "saga-iu-admm"
    parameters = {"precondition": ["diagonal"]}
    references = ["Defazio, Bach and Lacoste-Julien (2014). SAGA. NeurIPS."]

from benchmark_utils.ours import FirstOrder
from benchopt import BaseSolver


class Solver(FirstOrder, BaseSolver):
    name = "skadmm-asvrg-iu-admm"
    method = "asvrg-iu-admm"
    parameters = {"precondition": ["diagonal"]}
    references = ["Liu, Shang and Cheng (2017). Accelerated variance reduced stochastic ADMM. AAAI."]

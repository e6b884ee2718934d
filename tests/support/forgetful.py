"""A cluster that loses the memory of its worker at a given request."""

import numpy as np

from skadmm.backends.worker import Held
from skadmm.oracle.channel import ask_oracle


class Forgetful:
    """A cluster of one worker with one block, which loses its memory at the request with the number `when`."""

    def __init__(self, problem, when):
        self.when, self.asked = when, 0
        self.n, self.sizes = problem.n_samples, np.array([problem.n_samples])
        self.block = Held(problem.samples())

    def locate(self):
        pass

    def map_reduce(self, kind, function, arguments, *, retry=True):
        ((task, given),) = arguments
        self.asked += task is ask_oracle
        if self.asked == self.when:
            self.asked += 1
            self.block.memory.clear()
        return function(self.block, task, given)

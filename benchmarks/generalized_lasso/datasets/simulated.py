from benchmark_utils.data import simulated
from benchopt import BaseDataset


class Dataset(BaseDataset):
    name = "simulated"
    parameters = {"n": [500], "d": [30], "loss": ["logistic"], "structure": ["graph"]}
    test_parameters = {
        "n": [100],
        "d": [10],
        "loss": ["logistic", "squared"],
        "structure": ["graph", "chain", "identity"],
    }

    def get_data(self):
        return simulated(self.n, self.d, loss=self.loss, structure=self.structure)

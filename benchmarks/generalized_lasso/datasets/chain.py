from benchmark_utils.data import simulated
from benchopt import BaseDataset


class Dataset(BaseDataset):
    name = "chain"
    parameters = {"n": [5000], "d": [500], "loss": ["squared"], "share": [0.05]}

    def get_data(self):
        return simulated(self.n, self.d, loss=self.loss, structure="chain", share=self.share)

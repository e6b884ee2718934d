from benchmark_utils.data import simulated
from benchopt import BaseDataset


class Dataset(BaseDataset):
    name = "lasso"
    parameters = {"n": [5000], "d": [500], "loss": ["squared", "logistic"], "share": [0.05]}

    def get_data(self):
        return simulated(self.n, self.d, loss=self.loss, structure="identity", share=self.share)

from benchmark_utils.data import simulated
from benchopt import BaseDataset


class Dataset(BaseDataset):
    name = "groups"
    parameters = {"n, d": [(5000, 500), (1000, 2000)], "loss": ["squared", "logistic"], "share": [0.2]}

    def get_data(self):
        return simulated(self.n, self.d, loss=self.loss, structure="groups", share=self.share)
